package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn"
	"cairn/bench/workload"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// The store for the pages. Its first project has pagesShare of the messages and records; the
// others share the rest equally.
const (
	pagesShare   = 0.4
	pagesAgents  = 20 // per project
	pagesWriters = 16 // writers that share commits
	recordsBelow = 49 // records below one root, in two levels

	newSessions = 5_000_000 // first number of the sessions of the last days
	pagesSpan   = 3 * 24 * time.Hour
)

// pagesStore returns the data directory of a store for pages, created at its first use. The
// store has about the given number of rows, and a tenth of that number of messages and of
// records. most is the id of the project with most of these.
func (b *bench) pagesStore(ctx context.Context, rows int) (home, most string, err error) {
	home = filepath.Join(b.dir, fmt.Sprintf("pages-%d", rows))
	done := filepath.Join(home, "complete")
	if text, err := os.ReadFile(done); err == nil {
		return home, string(text), nil
	}
	filled, err := b.filledStore(ctx, rows)
	if err != nil {
		return "", "", err
	}
	path, err := b.copyStore(filled, filepath.Base(home))
	if err != nil {
		return "", "", err
	}
	if err := b.fill(ctx, path, rows/50, newSessions, pagesSpan); err != nil { // shown on Today
		return "", "", err
	}
	b.say("adding %s messages and as many records", grouped(rows/10))
	most, err = b.fillPages(ctx, path, rows/10)
	if err != nil {
		return "", "", err
	}
	// Archiving everything would take longer than the measurement. The archive pauses when the
	// disk is nearly full, so these limits make it pause at any level.
	settings := os.WriteFile(filepath.Join(home, "config.toml"), []byte("[disk]\ncritical_mb = 1000000000\nwarning_mb = 1000000000\n"), 0o600)
	return home, most, errors.Join(settings, os.WriteFile(done, []byte(most), 0o600))
}

// fillPages writes messages and records through the services of their parts. It returns the
// project with most of them.
func (b *bench) fillPages(ctx context.Context, path string, n int) (most string, err error) {
	filter, err := redact.New(redact.Options{})
	if err != nil {
		return "", err
	}
	s, err := store.Open(ctx, store.Config{Path: path, Role: store.Server})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	f := pagesFiller{
		load: b.load, home: filepath.Dir(path), ids: make([]string, len(b.load.Projects)), agents: make([][]string, len(b.load.Projects)),
		mail: service.New(s, mail.Config{Filter: filter}), records: commands.New(s, record.Config{Filter: filter}),
	}
	if err := f.register(ctx); err != nil {
		return "", err
	}
	for what, write := range map[string]func(context.Context, *rand.Rand, int, int) error{"records": f.writeRecords, "messages": f.writeMessages} {
		began := time.Now()
		if err := f.share(ctx, n, write); err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		b.say("  %s after %.0f s", what, time.Since(began).Seconds())
	}
	return f.ids[0], s.Checkpoint(ctx)
}

// pagesFiller writes the data shown on the pages of mail and records.
type pagesFiller struct {
	load    *workload.Workload
	home    string
	ids     []string   // ids of the projects
	agents  [][]string // names of agents, by project
	mail    *service.Mail
	records *commands.Commands
}

func (f *pagesFiller) by() mail.Caller {
	return mail.Caller{Owner: true, Ancestors: []project.Process{}, Place: project.Location{Home: f.home}}
}

// register creates the agents of each project, and some reservations.
func (f *pagesFiller) register(ctx context.Context) error {
	for p, r := range f.load.Projects {
		for i := range pagesAgents {
			agent, err := f.mail.RegisterAgent(ctx, f.by(), agents.RegisterArgs{ProjectKey: r.Root, Program: "codex", Model: "m"})
			if err != nil {
				return err
			}
			f.agents[p] = append(f.agents[p], agent.Name)
			if _, err := f.mail.FileReservationPaths(ctx, f.by(), reservations.ReserveArgs{ProjectKey: r.Root, AgentName: agent.Name, Paths: []string{fmt.Sprintf("src/part%d/**", i)}}); err != nil {
				return err
			}
		}
		all, err := f.mail.Projects(ctx)
		if err != nil {
			return err
		}
		for _, one := range all {
			if one.HumanKey == r.Root {
				f.ids[p] = one.ProductID
			}
		}
	}
	return nil
}

// share lets concurrent writers write n items, of which the first project gets its share. A
// writer writes to one project at a time.
func (f *pagesFiller) share(ctx context.Context, n int, write func(ctx context.Context, r *rand.Rand, project, n int) error) error {
	type part struct{ project, n int }
	parts := make(chan part)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(parts)
		for p := range f.load.Projects {
			left := int(float64(n) * (1 - pagesShare) / float64(len(f.load.Projects)-1))
			if p == 0 {
				left = int(float64(n) * pagesShare)
			}
			for ; left > 0; left -= recordsBelow + 1 {
				select {
				case parts <- part{p, min(left, recordsBelow+1)}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	errs := make([]error, pagesWriters)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 17))
			for one := range parts {
				if errs[i] = write(ctx, r, one.project, one.n); errs[i] != nil {
					cancel()
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (f *pagesFiller) text(r *rand.Rand, n int) string { return prose(r, f.load.Words(), n) }

// writeMessages sends n messages in some threads of a project. Most of them are read.
func (f *pagesFiller) writeMessages(ctx context.Context, r *rand.Rand, p, n int) error {
	for range n {
		from, to := r.IntN(pagesAgents), r.IntN(pagesAgents)
		sent, err := f.mail.SendMessage(ctx, f.by(), messages.SendArgs{
			ProjectKey: f.load.Projects[p].Root, SenderName: f.agents[p][from], To: []string{f.agents[p][to]},
			Subject: f.text(r, 5), Body: f.text(r, 60), ThreadID: fmt.Sprintf("T-%d", r.IntN(2000)), AckRequired: r.IntN(10) == 0,
		})
		if err != nil {
			return err
		}
		if r.IntN(4) > 0 {
			_, err = f.mail.MarkMessageRead(ctx, f.by(), f.load.Projects[p].Root, f.agents[p][to], sent.Deliveries[0].Payload.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeRecords creates a root and n-1 records below it, in two levels; one of ten records is
// an open question.
func (f *pagesFiller) writeRecords(ctx context.Context, r *rand.Rand, p, n int) error {
	session := cairn.NewSessionID()
	c := record.Caller{ProjectID: f.ids[p], Transport: session, Ancestors: []project.Process{}}
	root, err := f.createRecord(ctx, c, r, nil)
	if err != nil {
		return err
	}
	c = record.Caller{ProjectID: f.ids[p], SessionID: session}
	above := root
	for i := 1; i < n; i++ {
		parent := &above
		if i%5 == 1 {
			parent = &root
		}
		id, err := f.createRecord(ctx, c, r, parent)
		if err != nil {
			return err
		}
		if i%5 == 1 {
			above = id
		}
	}
	_, err = f.records.Close(ctx, record.SaveArgs{Caller: c})
	return err
}

func (f *pagesFiller) createRecord(ctx context.Context, c record.Caller, r *rand.Rand, parent *string) (string, error) {
	a := record.CreateArgs{Caller: c, ParentID: parent, Type: "conclusion", Title: f.text(r, 6), Summary: f.text(r, 12), Body: f.text(r, 80), State: record.Resolved}
	if r.IntN(10) == 0 {
		a.Type, a.State = "question", record.Open
	}
	created, err := f.records.Create(ctx, a)
	return created.Record.ID, err
}

// plantFile writes a file of 3,000 lines at a path that agents of a project edited, and commits
// it in parts. It returns the address of its page.
func (b *bench) plantFile(ctx context.Context, projectID, path string) (address string, err error) {
	i := slices.IndexFunc(b.load.Projects, func(r workload.Repository) bool {
		return slices.ContainsFunc(r.Files, func(f string) bool { return f == filepath.Join(r.Root, filepath.FromSlash(path)) })
	})
	if i < 0 {
		return "", fmt.Errorf("no repository has %s of %s", path, projectID)
	}
	root := b.load.Projects[i].Root
	git := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root, "-c", "user.name=Ana", "-c", "user.email=ana@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
		return nil
	}
	if err := git("init", "--quiet"); err != nil {
		return "", err
	}
	full := filepath.Join(root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		return "", err
	}
	words := b.load.Words()
	var text strings.Builder
	for line := range 3000 {
		fmt.Fprintf(&text, "\t%s := %s(%s, %d) // %s\n", words[line%len(words)], words[(7*line)%len(words)], words[(13*line)%len(words)], line, words[(31*line)%len(words)])
		if line%100 != 99 {
			continue
		}
		if err := os.WriteFile(full, []byte(text.String()), 0o600); err != nil {
			return "", err
		}
		if err := errors.Join(git("add", "--force", full), git("commit", "--quiet", "--allow-empty", "-m", fmt.Sprintf("Lines up to %d", line+1))); err != nil {
			return "", err
		}
	}
	return "/files/" + url.PathEscape(projectID) + "?path=" + url.QueryEscape(path), nil
}
