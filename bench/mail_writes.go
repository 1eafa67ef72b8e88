package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"cairn/bench/baresqlite"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/service"
	"cairn/internal/project"
	"cairn/internal/store"
)

// mailWrites measures durable writes, from a bare change to a message over HTTP, with the
// number of callers in mail §11. The disk's own flush and a bare insert are the comparison.
func (b *bench) mailWrites(ctx context.Context) (err error) {
	dir := filepath.Join(b.dir, "mail-writes")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	all, closeAll, err := b.mailCommittings(ctx, dir)
	defer func() { err = errors.Join(err, closeAll()) }()
	if err != nil {
		return err
	}
	var measurements []func() error
	for _, c := range all {
		measurements = append(measurements, func() error { return c.measure(ctx) })
	}
	if err := inTurn(max(b.rounds-2, 1), measurements...); err != nil {
		return err
	}
	t := newTable("mail-writes", "durable writes a second, each measured in turn", "per s", "p50 ms", "p99 ms", "× flush", "× bare insert")
	for i, c := range all {
		r := t.add(c.name, c.rate(), c.took.median(), c.took.at(0.99), c.rate()/all[0].rate(), c.rate()/all[1].rate())
		if i > 1 {
			r.target("≥ 5,000/s, p99 ≤ 50 ms", c.rate() >= 5000 && c.took.at(0.99) <= 50*time.Millisecond)
		}
	}
	return b.publish(t)
}

// mailCommittings returns the ways to write. The first two are the disk's flush and a plain
// SQLite insert.
func (b *bench) mailCommittings(ctx context.Context, dir string) (all []*committing, closeAll func() error, err error) {
	var closers []func() error
	closeAll = func() (err error) {
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return err
	}
	flusher, err := newFlusher(filepath.Join(dir, "flush"))
	if err != nil {
		return nil, closeAll, err
	}
	closers = append(closers, flusher.Close)
	if err := baresqlite.Make(ctx, filepath.Join(dir, "bare.db"), 0, 0); err != nil {
		return nil, closeAll, err
	}
	bare, err := baresqlite.Open(ctx, filepath.Join(dir, "bare.db"), true)
	if err != nil {
		return nil, closeAll, err
	}
	closers = append(closers, bare.Close)
	s, err := store.Open(ctx, store.Config{Path: filepath.Join(dir, "office", "cairn.db"), Role: store.Server})
	if err != nil {
		return nil, closeAll, err
	}
	closers = append(closers, s.Close)
	office, root, names, err := b.office(ctx, s, filepath.Join(dir, "work"), 20)
	if err != nil {
		return nil, closeAll, err
	}
	m, err := b.startMail(ctx, filepath.Join(dir, "home"))
	if err != nil {
		return nil, closeAll, err
	}
	closers = append(closers, m.stop)
	world, err := b.populate(ctx, m)
	if err != nil {
		return nil, closeAll, err
	}
	callers, err := world.callers(ctx, m)
	if err != nil {
		return nil, closeAll, err
	}
	text := fmt.Sprintf("%400s", "")
	return []*committing{
		{name: "4 KiB written and flushed, 1 caller", callers: 1, do: flusher.flush},
		{name: "bare insert with FULL, 1 caller", callers: 1, do: func(ctx context.Context, _, _ int) error { return bare.Insert(ctx, text) }},
		{name: fmt.Sprintf("store.Write of a change, %d callers", mailCallers), callers: mailCallers, do: func(ctx context.Context, caller, n int) error {
			return appendSmall(ctx, s, store.Full, caller, n)
		}},
		{name: fmt.Sprintf("messages in process, %d callers", mailCallers), callers: mailCallers, do: func(ctx context.Context, caller, n int) error {
			_, err := office.SendMessage(ctx, ownerOf(root), messages.SendArgs{
				ProjectKey: root, SenderName: names[caller%20], To: []string{names[(caller+n)%20]}, Subject: strconv.Itoa(n), Body: text,
			})
			return err
		}},
		{name: fmt.Sprintf("messages over HTTP, %d callers", mailCallers), callers: mailCallers, do: func(ctx context.Context, caller, _ int) error {
			c := callers[caller]
			return c.send(ctx, world.agents[caller], world.other(c.Rand, caller))
		}},
	}, closeAll, nil
}

// ownerOf returns the caller that may act as every agent.
func ownerOf(home string) mail.Caller {
	return mail.Caller{Owner: true, Place: project.Location{Home: home}, Ancestors: []project.Process{}}
}

// office returns the mail of a store, with agents in one project.
func (b *bench) office(ctx context.Context, s *store.Store, root string, count int) (*service.Mail, string, []string, error) {
	if err := makeRepository(root); err != nil {
		return nil, "", nil, err
	}
	o := service.New(s, mail.Config{})
	var names []string
	for range count {
		a, err := o.RegisterAgent(ctx, ownerOf(root), agents.RegisterArgs{ProjectKey: root, Program: "codex", Model: "m1"})
		if err != nil {
			return nil, "", nil, err
		}
		names = append(names, a.Name)
	}
	return o, root, names, nil
}
