package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"cairn/bench/baresqlite"
	"cairn/internal/store"
)

// commitTime is the duration of each measurement in a round.
const commitTime = 2 * time.Second

// committing is one way of making changes durable.
type committing struct {
	name    string
	callers int
	do      func(ctx context.Context, caller, n int) error

	took sample
	busy time.Duration // time in which took was collected
}

// commit measures group commit: concurrent callers in one process, each with a small durable
// change. A bare insert and the disk's own flush are the comparison.
func (b *bench) commit(ctx context.Context) (err error) {
	dir := filepath.Join(b.dir, "commit")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	all, closeAll, err := b.committings(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	var measurements []func() error
	for _, c := range all {
		measurements = append(measurements, func() error { return c.measure(ctx) })
	}
	if err := inTurn(max(b.rounds-2, 1), measurements...); err != nil {
		return err
	}
	t := newTable("commit", "durable writes a second in one process, each measured in turn", "per s", "p50 ms", "p99 ms", "× flush")
	flush := all[0].rate()
	for _, c := range all {
		t.add(c.name, c.rate(), c.took.median(), c.took.at(0.99), c.rate()/flush)
	}
	return b.publish(t)
}

// rate returns the number of commits per second.
func (c *committing) rate() float64 { return float64(len(c.took)) / c.busy.Seconds() }

// committings returns the ways to commit. The first is the disk's own flush.
func (b *bench) committings(ctx context.Context, dir string) (all []*committing, closeAll func() error, err error) {
	flusher, err := newFlusher(filepath.Join(dir, "flush"))
	if err != nil {
		return nil, nil, err
	}
	closers := []func() error{flusher.Close}
	closeAll = func() (err error) {
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return err
	}
	all = []*committing{{name: "4 KiB written and flushed", callers: 1, do: flusher.flush}}
	for _, full := range []bool{true, false} {
		path, word, sync := filepath.Join(dir, fmt.Sprintf("bare-%v.db", full)), "NORMAL", store.Normal
		if full {
			word, sync = "FULL", store.Full
		}
		if err := baresqlite.Make(ctx, path, 0, 0); err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		bare, err := baresqlite.Open(ctx, path, full)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		closers = append(closers, bare.Close)
		all = append(all, &committing{name: word + ": bare insert, 1 caller", callers: 1, do: func(ctx context.Context, _, _ int) error {
			return bare.Insert(ctx, smallDocument)
		}})
		s, err := store.Open(ctx, store.Config{Path: filepath.Join(dir, word, "cairn.db"), Role: store.Server})
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		closers = append(closers, s.Close)
		for _, callers := range []int{1, 8, 64} {
			all = append(all, &committing{
				name: fmt.Sprintf("%s: store.Write, %d callers", word, callers), callers: callers,
				do: func(ctx context.Context, caller, n int) error { return appendSmall(ctx, s, sync, caller, n) },
			})
		}
	}
	return all, closeAll, nil
}

const smallDocument = `{"name":"deploy order","text":"staging first, then one shard of production, then the rest after an hour"}`

// appendSmall writes one change, the minimum of any cairn write.
func appendSmall(ctx context.Context, s *store.Store, sync store.Sync, caller, n int) error {
	return s.Write(ctx, sync, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Append(ctx, store.Change{
			Project: "bench", Stream: "bench/" + strconv.Itoa(caller), Kind: "note", ID: strconv.Itoa(n),
			Op: store.OpPut, Doc: []byte(smallDocument),
		})
		return err
	})
}

// measure lets the callers commit for a while. Each caller commits sequentially.
func (c *committing) measure(ctx context.Context) error {
	began := time.Now()
	end := began.Add(commitTime)
	took, errs := make([]sample, c.callers), make([]error, c.callers)
	var wg sync.WaitGroup
	for caller := range c.callers {
		wg.Go(func() {
			for n := 0; time.Now().Before(end) && errs[caller] == nil; n++ {
				start := time.Now()
				errs[caller] = c.do(ctx, caller, n)
				took[caller] = append(took[caller], time.Since(start))
			}
		})
	}
	wg.Wait()
	c.busy += time.Since(began)
	for _, t := range took {
		c.took = append(c.took, t...)
	}
	return errors.Join(errs...)
}

// flusher overwrites pages of a file of fixed size, as SQLite does with a reused write-ahead
// log.
type flusher struct {
	*os.File
	page []byte
}

const flushPages = 1000

func newFlusher(path string) (*flusher, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	fl := &flusher{f, make([]byte, 4096)}
	for i := range flushPages {
		if _, err := f.WriteAt(fl.page, int64(i)*4096); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return fl, f.Sync()
}

func (f *flusher) flush(_ context.Context, _, n int) error {
	if _, err := f.WriteAt(f.page, int64(n%flushPages)*4096); err != nil {
		return err
	}
	return f.Sync()
}
