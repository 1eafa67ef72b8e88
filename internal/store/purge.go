package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store/disk"
	"cairn/internal/store/locks"
)

// CodeHeld means that the write-ahead log or the file still contains bytes of deleted texts,
// because another process reads an older state of the store.
const CodeHeld = "log_held"

// longestHold is how long Rewrite and Shrink wait for readers of other processes (observations
// §11.3).
const longestHold = 5 * time.Second

const (
	blankDocs = `UPDATE changes SET doc = NULL
WHERE kind = (SELECT id FROM symbols WHERE text = ?) AND id = ? AND doc IS NOT NULL
  AND stream = (SELECT id FROM symbols WHERE text = ?)`

	blankChange    = `UPDATE changes SET doc = NULL WHERE seq = ? AND doc IS NOT NULL`
	blankStreamDoc = `UPDATE changes SET doc = NULL WHERE stream = (SELECT id FROM symbols WHERE text = ?) AND doc IS NOT NULL`
)

// Blank removes the documents of all changes of one entity from the log and returns their
// number. The stream is part of the key, because two projects may both have a record
// R001. Hashes stay, so the chain stays valid. It is idempotent.
func (t *Tx) Blank(ctx context.Context, stream, kind, id string) (int64, error) {
	res, err := t.Exec(ctx, blankDocs, kind, id, stream)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// BlankChange removes the document of one change. It is idempotent.
func (t *Tx) BlankChange(ctx context.Context, seq int64) error {
	_, err := t.Exec(ctx, blankChange, seq)
	return err
}

// BlankStream removes the documents of all present changes of a stream.
func (t *Tx) BlankStream(ctx context.Context, stream string) error {
	_, err := t.Exec(ctx, blankStreamDoc, stream)
	return err
}

// Rewrite rebuilds the file, so that it contains no bytes of deleted or overwritten rows,
// and then empties the write-ahead log. SQLite's secure_delete does not suffice: divided
// pages keep copies of rows that were moved. Writers wait about a second per 100 MB;
// readers continue. It is safe to retry.
//
// Errors: CodeHeld (Conflict) if readers of an older state do not end within 5 s, or
// within the store's time limit if that is shorter; CodeBusy if the lock is not
// available; CodeFull, because it briefly needs twice the file's size; others as for
// Write. After an error the rows are unchanged.
func (s *Store) Rewrite(ctx context.Context) error {
	return s.runLocked(ctx, func(ctx context.Context, ses *session) error {
		if err := ses.exec(ctx, "VACUUM"); err != nil {
			return err
		}
		return truncateLog(ctx, ses)
	})
}

// Shrink returns free pages to the volume, a few hundred at a time so that writers wait
// only briefly, and empties the write-ahead log. Errors are those of Write, and CodeHeld
// as for Rewrite.
func (s *Store) Shrink(ctx context.Context) error {
	for {
		var free int
		err := s.Write(ctx, Normal, func(ctx context.Context, tx *Tx) error {
			err := tx.Each(ctx, func(*sql.Rows) error { return nil }, `PRAGMA incremental_vacuum(500)`)
			if err != nil {
				return err
			}
			return tx.Get(ctx, []any{&free}, `PRAGMA freelist_count`)
		})
		if err != nil {
			return err
		}
		if free == 0 {
			return s.runLocked(ctx, truncateLog)
		}
	}
}

// Used returns the number of used bytes of the file.
func (t *Tx) Used(ctx context.Context) (int64, error) {
	var size, pages, free int64
	err := errors.Join(
		t.Get(ctx, []any{&size}, `PRAGMA page_size`),
		t.Get(ctx, []any{&pages}, `PRAGMA page_count`),
		t.Get(ctx, []any{&free}, `PRAGMA freelist_count`))
	return size * (pages - free), err
}

// runLocked runs fn on a separate connection, holding the writers' lock and outside any
// transaction.
func (s *Store) runLocked(ctx context.Context, fn func(context.Context, *session) error) (err error) {
	if err := s.refusal(ctx); err != nil {
		return err
	}
	release, err := s.reserve(ctx)
	if err != nil {
		return err
	}
	defer release()
	wait := min(s.wait, longestHold)
	queue := locks.NewFair(s.path)
	defer queue.Leave()
	if err := queue.Enter(ctx, time.Now().Add(wait)); err != nil && ctx.Err() != nil {
		return ctx.Err()
	} // a process that could not queue tries SQLite's lock directly
	ses, err := newSession(ctx, s.db)
	if err != nil {
		return s.classify(err)
	}
	defer func() { err = s.classify(errors.Join(err, ses.discard())) }()
	if err := errors.Join(ses.known(ctx), ses.exec(ctx, pragmaBusy(wait))); err != nil {
		return err
	}
	return fn(ctx, ses)
}

// truncateLog moves the whole write-ahead log into the file and empties it.
func truncateLog(ctx context.Context, ses *session) error {
	var busy, frames, moved int
	err := ses.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	if err == nil && busy != 0 {
		err = fault.New(fault.Conflict, CodeHeld,
			"the rows are gone, but other processes keep the write-ahead log alive: their bytes remain in it until these close").
			WithHint("close them, then run `cairn sweep`")
	}
	return err
}

// RemoveBackups deletes the store's Copies, because they contain data that was forgotten
// since, and returns their number. It is idempotent.
func (s *Store) RemoveBackups() (n int, err error) {
	files, err := disk.Copies(s.path)
	err = classify(err)
	for _, f := range files {
		if rerr := os.Remove(f.Path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, classify(rerr))
			continue
		}
		n++
	}
	return n, err
}
