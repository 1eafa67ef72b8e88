package memory

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Bounds of timeout_ms of an await (memories §5.1).
const (
	DefaultAwait = 30 * time.Second
	MaxAwait     = 300 * time.Second
)

const (
	metaPaused   = "replication.paused"
	selectPaused = `SELECT EXISTS (SELECT 1 FROM store_meta WHERE name = '` + metaPaused + `')`
	insertPaused = `INSERT OR IGNORE INTO store_meta (name, value) VALUES ('` + metaPaused + `', '1')`
	deletePaused = `DELETE FROM store_meta WHERE name = '` + metaPaused + `'`

	selectAcked    = `SELECT acked_seq FROM memory_streams WHERE stream = ?`
	selectFailedTo = `SELECT ifnull(local_id, '') FROM memory_failures WHERE stream = ? AND seq <= ? ORDER BY seq`
	unsettled      = `FROM changes WHERE stream = (SELECT id FROM symbols WHERE text = ?1) AND seq > ?2 AND seq <= ?3 AND doc IS NOT NULL
AND device <> ifnull((SELECT id FROM symbols WHERE text = '` + hubDevice + `'), 0)
AND op <> ifnull((SELECT id FROM symbols WHERE text = 'confirm'), 0)`
	countUnsettled = `SELECT count(*) ` + unsettled
	anyUnsettled   = `SELECT EXISTS (SELECT 1 ` + unsettled + `)`
)

// AwaitConsistency waits until the hub has confirmed every write of a memory that was
// acknowledged before; later ones do not prolong it. timeout is clamped to MaxAwait, 0
// looks once. A memory that is missing or foreign, with nothing pending, or without a
// hub is consistent: nil (memories §10.5).
//
// Errors: CodeReplicationFailed (Conflict) with details.failed while the hub has
// refused one of them and nobody has retried or discarded it, CodeAwaitTimeout
// (Unavailable) with details pending and paused, CodeInvalid for a negative timeout.
func (b *Book) AwaitConsistency(ctx context.Context, c Caller, memory string, timeout time.Duration) error {
	memory, err := memoryArg(memory)
	if err = firstError(err, c.checkArgs()); err != nil {
		return err
	}
	if timeout < 0 {
		return invalid("timeout_ms", "timeout_ms is negative")
	}
	timer := time.NewTimer(min(timeout, MaxAwait))
	defer timer.Stop()
	var stream string
	var until int64
	err = b.readMemory(ctx, c, memory, func(_ context.Context, s *scope) error {
		if s.u.hub() {
			stream, until = s.m.MemoryID, s.m.headSeq
		}
		return nil
	})
	if fault.HasCode(err, CodeNotFound) && c.UserID == "" || err == nil && until == 0 {
		return nil
	}
	if fault.HasCode(err, CodeNotFound) {
		return b.onlyUser(ctx, c)
	}
	for err == nil {
		var consistent bool
		seen := b.progress.seen()
		if consistent, err = b.consistent(ctx, stream, until); consistent || err != nil {
			return err
		}
		if timeout == 0 {
			err = errTime
		} else {
			err = b.pause(ctx, seen, timer.C)
		}
	}
	if errors.Is(err, errTime) {
		return b.awaited(ctx, stream, until)
	}
	return err
}

// onlyUser is the error of a user_id that is not the acting user's, and nil for what
// else is not found.
func (b *Book) onlyUser(ctx context.Context, c Caller) error {
	return b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := b.enter(ctx, tx, c, false)
		return err
	})
}

// consistent looks whether a stream's changes up to one are settled.
func (b *Book) consistent(ctx context.Context, stream string, until int64) (ok bool, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		failed, err := tx.Texts(ctx, selectFailedTo, stream, until)
		if err == nil && len(failed) > 0 {
			return conflict(CodeReplicationFailed, "retry or discard them with `cairn replication retry` or `discard`",
				"the hub has refused writes of this memory", "failed", failed)
		}
		var acked int64
		if err == nil {
			err = tx.Get(ctx, []any{&acked}, selectAcked, stream)
		}
		if ok = acked >= until || errors.Is(err, sql.ErrNoRows); ok || err != nil {
			return ignoreNone(err)
		}
		var more bool
		err = tx.Get(ctx, []any{&more}, anyUnsettled, stream, acked, until)
		ok = !more
		return err
	})
	return ok, err
}

// awaited is the error for time that is up.
func (b *Book) awaited(ctx context.Context, stream string, until int64) error {
	var pending int
	var paused bool
	err := b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var acked int64
		err := ignoreNone(tx.Get(ctx, []any{&acked}, selectAcked, stream))
		return firstError(err, tx.Get(ctx, []any{&pending}, countUnsettled, stream, acked, until), tx.Get(ctx, []any{&paused}, selectPaused))
	})
	if err != nil {
		return err
	}
	return failure(fault.Unavailable, CodeAwaitTimeout, "look at `cairn replication status`, then call again",
		"the hub has not confirmed all writes in time", "pending", pending, "paused", paused)
}

// Paused tells whether replication was paused by hand; it stays so over restarts.
func (b *Book) Paused(ctx context.Context) (paused bool, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&paused}, selectPaused)
	})
	return paused, err
}

// SetPaused pauses or resumes replication, push and pull, in every process. Repeating
// it is safe.
func (b *Book) SetPaused(ctx context.Context, paused bool) error {
	defer b.progress.step()
	return b.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		query := deletePaused
		if paused {
			query = insertPaused
		}
		_, err := tx.Exec(ctx, query)
		return err
	})
}

// AwaitFor is the timeout that a number of milliseconds asks for: nil is the default,
// what is too long the longest; a negative one is for AwaitConsistency to refuse.
func AwaitFor(milliseconds *int64) time.Duration {
	if milliseconds == nil {
		return DefaultAwait
	}
	return time.Duration(max(-1, min(*milliseconds, MaxAwait.Milliseconds()))) * time.Millisecond
}
