package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"cairn/bench/workload"
	"cairn/internal/observation"
	"cairn/internal/observation/capture"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// journal is an open store with the services that query it.
type journal struct {
	*observation.Service
	store *store.Store
}

// openJournal opens the store at path as a server does. It creates the store if necessary.
func openJournal(ctx context.Context, path string) (journal, error) {
	filter, err := redact.New(redact.Options{})
	if err != nil {
		return journal{}, err
	}
	s, err := store.Open(ctx, store.Config{Path: path, Role: store.Server})
	if err != nil {
		return journal{}, err
	}
	return journal{observation.New(s, observation.Config{Filter: filter, DedupWindow: observation.DefaultDedupWindow}), s}, nil
}

// storeSpan is the age of the oldest generated rows. It is short enough that no type's
// retention deletes them.
const storeSpan = 80 * 24 * time.Hour

// goesOn is the maximum duration of a generated session. The last session begins that long ago,
// so that no row has a time in the future.
const goesOn = 12 * time.Hour

// filledStore returns the path of a store of about the given number of rows, created at its
// first use. It must only be read; copyStore makes a copy for writing.
func (b *bench) filledStore(ctx context.Context, rows int) (string, error) {
	path := filepath.Join(b.dir, fmt.Sprintf("store-%d", rows), "cairn.db")
	done := path + ".complete"
	if _, err := os.Stat(done); err == nil {
		return path, nil
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		return "", err
	}
	b.say("filling a store with %s rows", grouped(rows))
	if err := b.fill(ctx, path, rows, 0, storeSpan); err != nil {
		return "", err
	}
	return path, os.WriteFile(done, nil, 0o600)
}

// fill stores sessions, starting with the given number, through the normal path of events. A
// goroutine prepares them. They begin within the given time span until now.
func (b *bench) fill(ctx context.Context, path string, rows, first int, span time.Duration) (err error) {
	j, err := openJournal(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.store.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const rowsPerSession = 110
	load := b.load.Lean()
	sessions := rows/rowsPerSession + 1
	prepared := make(chan chan preparedSession, 2)
	go func() {
		defer close(prepared)
		for n := 0; ; n++ { // a few more may be needed than the number in sessions
			one := make(chan preparedSession, 1)
			select {
			case prepared <- one:
			case <-ctx.Done():
				return
			}
			begin := time.Now().Add(-span + (span-goesOn)*time.Duration(n)/time.Duration(sessions*21/20))
			go func() { one <- prepareSession(j, load.Session(first+n, begin), rowsPerSession) }()
		}
	}()
	importer := capture.NewImporter(j.Service, capture.ImportOptions{})
	for added, told := 0, 0; added < rows; {
		s := <-<-prepared
		if s.err != nil {
			return s.err
		}
		for _, p := range s.events {
			if err := importer.Add(ctx, p); err != nil {
				return err
			}
		}
		done, err := importer.EndFile(ctx, capture.ImportedFile{}, false)
		if err != nil {
			return err
		}
		if added += done.Added; added-told >= 200_000 {
			told = added
			b.say("  %s", grouped(added))
		}
	}
	if _, err := j.IndexTurns(ctx, math.MaxInt); err != nil {
		return err
	}
	return j.store.Checkpoint(ctx)
}

type preparedSession struct {
	events []capture.Prepared
	err    error
}

func prepareSession(j journal, s *workload.Session, steps int) (p preparedSession) {
	preparer := capture.NewPreparer(j.Service)
	for range steps/2 + s.IntN(steps) {
		e, err := s.Event(s.Next())
		if err != nil {
			return preparedSession{err: err}
		}
		ready, err := preparer.Prepare(e)
		if err != nil {
			return preparedSession{err: err}
		}
		p.events = append(p.events, ready)
	}
	return p
}

// copyStore copies a closed store into a new folder below b.dir and returns the
// path of the copy.
func (b *bench) copyStore(path, name string) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return "", err
	}
	to := filepath.Join(dir, "cairn.db")
	for _, suffix := range []string{"", "-wal"} {
		err := copyFile(path+suffix, to+suffix)
		if err != nil && !(suffix != "" && errors.Is(err, fs.ErrNotExist)) {
			return "", err
		}
	}
	return to, nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err = io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}

// count returns the result of a query for one number.
func (j journal) count(ctx context.Context, query string, args ...any) (n int, err error) {
	err = j.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&n}, query, args...)
	})
	return n, err
}

// withJournal opens the store at path while fn runs.
func withJournal(ctx context.Context, path string, fn func(j journal) error) error {
	j, err := openJournal(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(fn(j), j.store.Close())
}

// countRows returns the number of observations in the store at path.
func countRows(ctx context.Context, path string) (n int, err error) {
	err = withJournal(ctx, path, func(j journal) error {
		n, err = j.count(ctx, `SELECT count(*) FROM observation_rows`)
		return err
	})
	return n, err
}

// texts runs a query for one column of texts.
func (j journal) texts(ctx context.Context, query string, args ...any) (found []string, err error) {
	err = j.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var text string
			err := r.Scan(&text)
			found = append(found, text)
			return err
		}, query, args...)
	})
	return found, err
}
