package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"cairn/internal/fault"
)

// CodeHeld marks forgotten texts whose bytes are still in the write-ahead log or
// the file, because another process reads an older state of the store.
const CodeHeld = "log_held"

// longestHold is how long Rewrite and Shrink wait for other processes' readers
// (observations §11.3).
const longestHold = 5 * time.Second

const (
	blankDocs = `UPDATE changes SET doc = NULL
WHERE kind = (SELECT id FROM symbols WHERE text = ?) AND id = ? AND doc IS NOT NULL
  AND stream = (SELECT id FROM symbols WHERE text = ?)`

	blankChange    = `UPDATE changes SET doc = NULL WHERE seq = ? AND doc IS NOT NULL`
	blankStreamDoc = `UPDATE changes SET doc = NULL WHERE stream = (SELECT id FROM symbols WHERE text = ?) AND doc IS NOT NULL`

	selectBehind = `SELECT name, ?1 - position FROM followers
WHERE position < ?1 AND (lane = '' OR lane IN (SELECT value FROM json_each(?2))) ORDER BY name, lane`
)

// Blank removes the documents of all changes of one entity so far from the log
// and returns how many there were. The entity is named by its stream too, for two
// projects may each have a record R001. Hashes stay, so the chain still holds.
// Repeating it is harmless.
func (t *Tx) Blank(ctx context.Context, stream, kind, id string) (int64, error) {
	res, err := t.Exec(ctx, blankDocs, kind, id, stream)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// BlankChange removes the document of one change. Repeating it is harmless.
func (t *Tx) BlankChange(ctx context.Context, seq int64) error {
	_, err := t.Exec(ctx, blankChange, seq)
	return err
}

// BlankStream removes the documents of all changes of a stream so far.
func (t *Tx) BlankStream(ctx context.Context, stream string) error {
	_, err := t.Exec(ctx, blankStreamDoc, stream)
	return err
}

// Behind is a follower that has not come to a change yet.
type Behind struct {
	Follower string `json:"follower"`
	Changes  int64  `json:"changes"` // how many positions it lacks
}

// Behind lists the followers that have not read the change with this seq, in the
// order of their names; none if all have. Of followers with lanes it lists these lanes
// alone.
func (s *Store) Behind(ctx context.Context, seq int64, lanes ...string) (list []Behind, err error) {
	of, err := json.Marshal(lanes)
	if err != nil {
		return nil, err
	}
	err = s.Read(ctx, func(ctx context.Context, tx *Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var b Behind
			err := r.Scan(&b.Follower, &b.Changes)
			list = append(list, b)
			return err
		}, selectBehind, seq, string(of))
	})
	return list, err
}

// Rewrite builds the file again from what it holds, so that nothing of deleted or
// overwritten rows is left in it, and then empties the write-ahead log. SQLite's
// secure_delete would not do: pages that were divided keep copies of rows that
// moved away. Writers wait meanwhile, about a second per 100 MB; readers go on.
// Repeating it is safe.
//
// Errors: CodeHeld (Conflict) if readers of an older state do not end within 5 s
// (the store's own patience, if that is shorter); CodeBusy if the lock does not
// come; CodeFull, for it takes the file's size twice for a moment; others as of
// Write. The rows themselves are as before in each of these cases.
func (s *Store) Rewrite(ctx context.Context) error {
	return s.alone(ctx, func(ctx context.Context, ses *session) error {
		if err := ses.exec(ctx, "VACUUM"); err != nil {
			return err
		}
		return truncateLog(ctx, ses)
	})
}

// Shrink gives the pages that are free back to the volume, a few hundred at a
// time so that writers hardly wait, and empties the write-ahead log. Errors are
// those of Write, and CodeHeld as for Rewrite.
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
			return s.alone(ctx, truncateLog)
		}
	}
}

// Usage is how many bytes of the file hold something.
func (t *Tx) Used(ctx context.Context) (int64, error) {
	var size, pages, free int64
	err := errors.Join(
		t.Get(ctx, []any{&size}, `PRAGMA page_size`),
		t.Get(ctx, []any{&pages}, `PRAGMA page_count`),
		t.Get(ctx, []any{&free}, `PRAGMA freelist_count`))
	return size * (pages - free), err
}

// alone runs fn on a connection of its own, first in the line of writers and
// outside any transaction.
func (s *Store) alone(ctx context.Context, fn func(context.Context, *session) error) (err error) {
	if err := s.refusal(ctx); err != nil {
		return err
	}
	release, err := s.reserve(ctx)
	if err != nil {
		return err
	}
	defer release()
	wait := min(s.wait, longestHold)
	queue := newLine(s.path)
	defer queue.leave()
	if err := queue.enter(ctx, time.Now().Add(wait)); err != nil && ctx.Err() != nil {
		return ctx.Err()
	} // whoever merely could not queue tries nevertheless
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

// RemoveBackups deletes the store's Copies, which hold what the store has
// forgotten since, and returns how many there were. Repeating it is harmless.
func (s *Store) RemoveBackups() (n int, err error) {
	files, err := Copies(s.path)
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
