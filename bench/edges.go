package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cairn/bench/workload"
	"cairn/internal/harness/harnesses"
	"cairn/internal/hook"
	"cairn/internal/observation/assist"
	"cairn/internal/observation/capture"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/workspace"
)

// sessionEdges measures the start of a session, which injects the context, and the end of a
// turn, which creates the digest.
func (b *bench) sessionEdges(ctx context.Context, small string) error {
	t := newTable("hook", "starts of sessions and ends of turns, an idle `cairn serve` has the store open",
		"p50 ms", "p95 ms", "max ms", "cpu ms", "calls", "told bytes")
	db, err := b.copyStore(small, "edges")
	if err != nil {
		return err
	}
	if err := b.measureStarts(ctx, t, db, b.small); err != nil {
		return err
	}
	large, err := b.filledStore(ctx, b.large)
	if err != nil {
		return err
	}
	if large, err = b.copyStore(large, "edges-large"); err != nil {
		return err
	}
	if err := b.measureStarts(ctx, t, large, b.large); err != nil {
		return err
	}
	for _, to := range []struct {
		db   string
		rows int
	}{{db, b.small}, {large, b.large}} {
		err := b.measureHelp(ctx, t, to.db, to.rows, "UserPromptSubmit", "UserPromptSubmit")
		if err == nil {
			err = b.measureHelp(ctx, t, to.db, to.rows, "PreToolUse", "PostToolUse")
		}
		if err != nil {
			return err
		}
	}
	if err := b.measureStops(ctx, t, db); err != nil {
		return err
	}
	return b.publish(t)
}

func (b *bench) measureStarts(ctx context.Context, t *table, db string, rows int) error {
	stop, err := b.serve(ctx, db)
	if err != nil {
		return err
	}
	s := &subject{program: b.hookProgram(db, "--from", "claude")}
	told := 0
	for i := range b.runs {
		session := b.load.Session(2_000_000+i, time.Now())
		text, err := session.Payload(session.Next())
		if err != nil {
			return errors.Join(err, stop())
		}
		l, err := s.program.run(text)
		if err == nil && !strings.HasPrefix(string(l.out), "# cairn context") {
			err = errors.New("the session was told nothing")
		}
		if err != nil {
			return errors.Join(err, stop())
		}
		s.wall, s.cpu, told = append(s.wall, l.wall), append(s.cpu, l.cpu), len(l.out)
	}
	r := t.add(fmt.Sprintf("SessionStart with context, %s rows", grouped(rows)),
		s.wall.median(), s.wall.at(0.95), s.wall.at(1), s.cpu.median(), len(s.wall), told)
	if rows >= 1_000_000 {
		r.target("≤ 50 ms", s.wall.median() <= 50*time.Millisecond)
	}
	return stop()
}

// measureHelp measures an event with assistance and without, in turn. Its payloads are those of
// another event of the workload.
func (b *bench) measureHelp(ctx context.Context, t *table, db string, rows int, event, like string) error {
	stop, err := b.serve(ctx, db)
	if err != nil {
		return err
	}
	subjects := []*subject{
		{name: event, program: b.hookProgram(db, "--from", "claude")},
		{name: event + " with --assist", program: b.hookProgram(db, "--from", "claude", "--assist")},
	}
	told := make([]int, len(subjects))
	for i := range b.runs * len(subjects) {
		session := b.load.Session(5_000_000+i, time.Now())
		step := session.Next()
		for step.Event != like {
			step = session.Next()
		}
		step.Event, step.Response = event, nil
		n := i % len(subjects)
		text, err := session.Payload(step)
		if err != nil {
			return errors.Join(err, stop())
		}
		l, err := subjects[n].program.run(text)
		if err != nil {
			return errors.Join(err, stop())
		}
		subjects[n].wall, subjects[n].cpu = append(subjects[n].wall, l.wall), append(subjects[n].cpu, l.cpu)
		told[n] = max(told[n], len(l.out))
	}
	for n, s := range subjects {
		r := t.add(fmt.Sprintf("%s, %s rows", s.name, grouped(rows)),
			s.wall.median(), s.wall.at(0.95), s.wall.at(1), s.cpu.median(), len(s.wall), told[n])
		if n > 0 {
			r.target("≤ 15 ms over the one without", s.wall.median()-subjects[0].wall.median() <= assist.DefaultTime)
		}
	}
	return stop()
}

// longSession is the number of rows in the session whose turns end here.
const longSession = 2000

func (b *bench) measureStops(ctx context.Context, t *table, db string) error {
	session := b.load.Session(3_000_000, time.Now().Add(-storeSpan/2))
	err := withJournal(ctx, db, func(j journal) error {
		importer, preparer := capture.NewImporter(j.Service, capture.ImportOptions{}), capture.NewPreparer(j.Service)
		for rows := 0; rows < longSession; {
			e, err := session.Event(session.Next())
			if err != nil {
				return err
			}
			ready, err := preparer.Prepare(e)
			if err != nil {
				return err
			}
			if err := importer.Add(ctx, ready); err != nil {
				return err
			}
			done, err := importer.EndFile(ctx, capture.ImportedFile{}, false)
			if err != nil {
				return err
			}
			rows += done.Added
		}
		return nil
	})
	if err != nil {
		return err
	}
	stop, err := b.serve(ctx, db)
	if err != nil {
		return err
	}
	s := &subject{program: b.hookProgram(db, "--from", "claude")}
	for range b.runs {
		text, err := session.Payload(workload.Step{Event: "Stop", Text: session.Message()})
		if err != nil {
			return errors.Join(err, stop())
		}
		s.call(text)
	}
	r := t.add(fmt.Sprintf("Stop with digest, %s rows in the session", grouped(longSession)),
		s.wall.median(), s.wall.at(0.95), s.wall.at(1), s.cpu.median(), len(s.wall), nil)
	r.target("≤ 20 ms", s.wall.median() <= 20*time.Millisecond)
	return errors.Join(s.failure(), stop())
}

// phases measures the parts of a hook in this process. They show cairn's own share of the time,
// and the share of starting and ending a process.
func (b *bench) phases(ctx context.Context, db string) error {
	stop, err := b.serve(ctx, db)
	if err != nil {
		return err
	}
	next := workload.NewPayloads(b.load, 4_000_000, "phases").Next
	names := []string{"payload", "harness process", "settings and repository", "open the store", "write", "close"}
	took := make([]sample, len(names))
	for range b.runs * b.rounds {
		text, err := next()
		if err != nil {
			return errors.Join(err, stop())
		}
		parts, err := b.onePass(ctx, db, text)
		if err != nil {
			return errors.Join(err, stop())
		}
		for i, d := range parts {
			took[i] = append(took[i], d)
		}
	}
	t := newTable("hook", "its own work, part by part, in this process (warm), an idle `cairn serve` has the store open", "p50 ms", "p95 ms")
	for i, name := range names {
		t.add(name, took[i].median(), took[i].at(0.95))
	}
	return errors.Join(b.publish(t), stop())
}

// onePass does what `cairn record` does with a payload and measures the time of each part.
func (b *bench) onePass(ctx context.Context, db string, text []byte) (parts [6]time.Duration, err error) {
	began := time.Now()
	lap := func(i int) {
		parts[i] = time.Since(began)
		began = time.Now()
	}
	e, err := harnesses.Hook(text, "claude", "")
	if err != nil {
		return parts, err
	}
	lap(0)
	process := project.HarnessProcess()
	lap(1)
	c, err := workspace.Open(workspace.Config{Home: b.dir, Dir: b.dir, DB: db, Cwd: e.Cwd, Role: store.Hook}, workspace.Options{OpenStore: store.OpenWithDriver})
	if err != nil {
		return parts, err
	}
	lap(2)
	if _, err = c.Store(ctx); err != nil {
		return parts, errors.Join(err, c.Close())
	}
	lap(3)
	if _, err = hook.Record(ctx, c, e, process, false); err != nil {
		return parts, errors.Join(err, c.Close())
	}
	lap(4)
	err = c.Close()
	lap(5)
	return parts, err
}
