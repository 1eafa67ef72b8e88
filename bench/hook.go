package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"cairn/bench/baresqlite"
	"cairn/bench/workload"
)

// The load defined in observations §14.
const (
	parallelSessions = 16
	pace             = 250 * time.Millisecond
)

// hook measures a hook from process start to exit. An empty Go program and a bare insert,
// started in the same way and in turn with it, are the comparison.
func (b *bench) hook(ctx context.Context) error {
	full, err := b.filledStore(ctx, b.small)
	if err != nil {
		return err
	}
	h := &hookBench{bench: b}
	if h.empty, err = b.plainComparison(ctx, "empty"); err != nil {
		return err
	}
	if h.insert, err = b.comparison(ctx, "bareinsert"); err != nil {
		return err
	}
	if h.db, err = b.copyStore(full, "hook"); err != nil {
		return err
	}
	h.bare = filepath.Join(b.dir, "hook", "bare.db")
	if err := baresqlite.Make(ctx, h.bare, b.small, 400); err != nil {
		return err
	}
	h.insert.args = []string{h.bare}
	for _, held := range []bool{true, false} {
		if err := h.measure(ctx, held); err != nil {
			return err
		}
	}
	if err := b.phases(ctx, h.db); err != nil {
		return err
	}
	return b.sessionEdges(ctx, full)
}

// hookBench is the hook experiment on one store.
type hookBench struct {
	*bench
	empty, insert program
	db            string // database file of cairn's store
	bare          string // file of the bare store
	feeds         int    // number of sessions created
}

// measure fills one table. With held, another process keeps the stores open, as the stdio
// server of a session does.
func (h *hookBench) measure(ctx context.Context, held bool) (err error) {
	title := "no other process has the store open"
	if held {
		title = "an idle `cairn serve` has the store open"
	}
	before, err := countRows(ctx, h.db)
	if err != nil {
		return err
	}
	if held {
		release, err := h.hold(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	t := newTable("hook", fmt.Sprintf("one hook, process start to exit, %s rows, %s", grouped(h.small), title),
		"p50 ms", "p95 ms", "p99 ms", "max ms", "cpu ms", "× bare insert", "calls", "failed")
	sent := 0
	for _, load := range h.loads() {
		subjects := h.subjects()
		h.say("  %s, held open: %v", load.name, held)
		if err := load.run(ctx, subjects); err != nil {
			return err
		}
		bare := subjects[1].wall.median()
		for _, s := range subjects {
			r := t.add(load.name+": "+s.name, s.wall.median(), s.wall.at(0.95), s.wall.at(0.99), s.wall.at(1), s.cpu.median(),
				ratio(s.wall.median(), bare), len(s.wall), len(s.failed))
			if s == subjects[3] && load.promised {
				r.target("p50 ≤ 5 ms, p99 ≤ 20 ms", s.wall.median() <= 5*time.Millisecond && s.wall.at(0.99) <= 20*time.Millisecond)
			}
			if len(s.failed) > 0 {
				t.note("%s: %s: %v", load.name, s.name, s.failed[0])
			}
		}
		for _, s := range subjects[2:] {
			sent += len(s.wall) - len(s.failed)
		}
	}
	if err := h.account(ctx, t, before, sent); err != nil {
		return err
	}
	return h.publish(t)
}

// hookLoad is one way of calling the subjects.
type hookLoad struct {
	name     string
	promised bool // the contract has a target for it
	run      func(ctx context.Context, subjects []*subject) error
}

func (h *hookBench) loads() []hookLoad {
	many := func(p parallel) func(context.Context, []*subject) error {
		return func(ctx context.Context, subjects []*subject) error {
			var blocks []func() error
			for _, s := range subjects {
				blocks = append(blocks, func() error { return p.block(ctx, s, h.feed) })
			}
			return inTurn(max(h.rounds-2, 1), blocks...)
		}
	}
	return []hookLoad{
		{"1 session", false, func(_ context.Context, subjects []*subject) error {
			return h.oneByOne(subjects, h.runs, h.feed)
		}},
		{"16 sessions, paced", true, many(parallel{parallelSessions, h.runs / 3, pace})},
		{"16 sessions, at once", false, many(parallel{parallelSessions, h.runs / 3, 0})},
	}
}

func (h *hookBench) subjects() []*subject {
	return []*subject{
		{name: "empty Go program", program: h.empty},
		{name: "bare insert", program: h.insert},
		{name: "cairn record", program: h.cairnProgram(h.db, "record", "--from", "claude")},
		{name: "the hook as init writes it", program: h.hookProgram(h.db, "--from", "claude")},
	}
}

// feed returns the payloads of a new session.
func (h *hookBench) feed() source {
	h.feeds++
	return workload.NewPayloads(h.load, 1_000_000+h.feeds, fmt.Sprintf("bench%d", h.feeds)).Next
}

// hold opens both stores in a process other than the hook's and keeps them open until release.
func (h *hookBench) hold(ctx context.Context) (release func() error, err error) {
	bare, err := baresqlite.Open(ctx, h.bare, false)
	if err != nil {
		return nil, err
	}
	if _, err = bare.Count(ctx); err == nil {
		var stop func() error
		if stop, err = h.serve(ctx, h.db); err == nil {
			return func() error { return errors.Join(stop(), bare.Close()) }, nil
		}
	}
	return nil, errors.Join(err, bare.Close())
}

// account reports whether every acknowledged call is in the store.
func (h *hookBench) account(ctx context.Context, t *table, before, sent int) error {
	return withJournal(ctx, h.db, func(j journal) error {
		after, err := j.count(ctx, `SELECT count(*) FROM observation_rows`)
		if err != nil {
			return err
		}
		found, err := j.store.Check(ctx)
		if err != nil {
			return err
		}
		t.note("%s calls acknowledged, %s rows added, %d lost; findings of the store's own check: %d",
			grouped(sent), grouped(after-before), sent-(after-before), len(found))
		return nil
	})
}
