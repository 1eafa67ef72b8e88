package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// subject is a program under measurement, with its measurements.
type subject struct {
	name    string
	program program

	mu     sync.Mutex
	wall   sample
	cpu    sample
	failed []error
}

// call runs the program once and stores the measurement.
func (s *subject) call(stdin []byte) {
	l, err := s.program.run(stdin)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall, s.cpu = append(s.wall, l.wall), append(s.cpu, l.cpu)
	if err != nil {
		s.failed = append(s.failed, err)
	}
}

// source returns one input after another.
type source func() ([]byte, error)

// oneByOne runs the subjects in turn, block by block of n runs, b.rounds times. inputs creates
// the source of a block; nil means no input.
func (b *bench) oneByOne(subjects []*subject, n int, inputs func() source) error {
	var blocks []func() error
	for _, s := range subjects {
		blocks = append(blocks, func() error {
			next := source(func() ([]byte, error) { return nil, nil })
			if inputs != nil {
				next = inputs()
			}
			for range n {
				stdin, err := next()
				if err != nil {
					return err
				}
				s.call(stdin)
			}
			return s.failure()
		})
	}
	return inTurn(b.rounds, blocks...)
}

// failure returns the first error of a subject, or nil if all its runs succeeded.
func (s *subject) failure() error {
	if len(s.failed) == 0 {
		return nil
	}
	return s.failed[0]
}

// parallel describes how concurrent sessions call a hook.
type parallel struct {
	sessions int
	calls    int           // per session, in one block
	every    time.Duration // from call to call; 0 starts the next call after the previous one
}

// block runs one subject from all sessions concurrently. It stores failures in the subject.
// With a pace, each session begins at a different time and varies the interval of its calls by
// up to a third. A late call delays the next.
func (p parallel) block(ctx context.Context, s *subject, inputs func() source) error {
	var wg sync.WaitGroup
	errs := make([]error, p.sessions)
	for i := range p.sessions {
		next := inputs()
		wg.Go(func() { errs[i] = p.session(ctx, s, next) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (p parallel) session(ctx context.Context, s *subject, next source) error {
	inputs := make([][]byte, p.calls)
	for i := range inputs {
		var err error
		if inputs[i], err = next(); err != nil {
			return err
		}
	}
	due := time.Now().Add(rand.N(p.every + 1))
	for _, stdin := range inputs {
		if p.every > 0 {
			if err := waitUntil(ctx, due); err != nil {
				return err
			}
			due = time.Now().Add(p.every*2/3 + rand.N(p.every*2/3))
		}
		s.call(stdin)
	}
	return ctx.Err()
}

func waitUntil(ctx context.Context, moment time.Time) error {
	t := time.NewTimer(time.Until(moment))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
