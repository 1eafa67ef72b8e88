package replication

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// Bounds of timeout_ms of an await (memories §5.1).
const (
	DefaultAwait = 30 * time.Second
	MaxAwait     = 300 * time.Second
)

// metaPaused is the name of the store's note that replication is paused.
const metaPaused = "replication.paused"

const (
	selectAcked   = `SELECT acked_seq FROM memory_streams WHERE stream = ?`
	selectSettled = `SELECT s.acked_seq, s.state, ifnull(u.stop_code, ''), ifnull(u.stop_why, '') FROM memory_streams s JOIN memory_users u ON u.user_id = s.user_id WHERE s.stream = ?`
	selectAllGone = `SELECT f.lane, f.seq FROM set_aside f JOIN memory_streams s ON s.stream = f.lane JOIN memory_users u ON u.user_id = s.user_id
WHERE f.follower = 'replication' AND s.user_id = ? AND u.hub_url IS NOT NULL AND f.lane NOT IN (SELECT memory_id FROM memories) ORDER BY f.seq LIMIT 1`
	selectOwnGone = `SELECT s.stream, s.head_seq FROM memory_streams s JOIN memory_users u ON u.user_id = s.user_id
WHERE s.user_id = ?1 AND u.hub_url IS NOT NULL AND (s.stream = ?2 OR s.remote_id = ?2)`
	selectFailedTo = `SELECT detail ->> '$.local_id' FROM set_aside WHERE follower = 'replication' AND lane = ? AND seq <= ? ORDER BY seq`
	unsettled      = `FROM changes WHERE stream = (SELECT id FROM symbols WHERE text = ?1) AND seq > ?2 AND seq <= ?3 AND doc IS NOT NULL
AND device <> ifnull((SELECT id FROM symbols WHERE text = '` + memory.HubDevice + `'), 0)
AND op <> ifnull((SELECT id FROM symbols WHERE text = 'confirm'), 0)`
	countUnsettled = `SELECT count(*) ` + unsettled
	anyUnsettled   = `SELECT EXISTS (SELECT 1 ` + unsettled + `)`
)

// AwaitConsistency waits until the hub has confirmed every write of a memory that was acknowledged
// before the call. timeout is clamped to MaxAwait; 0 checks once. It returns nil for a memory that
// is missing, another user's, without a hub, or without pending writes (memories §10.5). A memory
// that another device has deleted has pending writes until this device's writes to it are sent or
// discarded.
//
// Errors: CodeReplicationFailed (Conflict) with details.failed if the hub has refused one of the
// writes and it was neither retried nor discarded; the same code with details.state and details.why
// if writes wait and replication has stopped until a person acts, or the hub was restored from an
// older backup; CodeAwaitTimeout (Unavailable) with details pending and paused; CodeInvalid for a
// negative timeout.
func (b *Replication) AwaitConsistency(ctx context.Context, c memory.Caller, memoryID string, timeout time.Duration) error {
	memoryID, err := memory.MemoryArg(memoryID)
	if err = cmp.Or(err, c.CheckArgs()); err != nil {
		return err
	}
	if timeout < 0 {
		return rules.Invalid("timeout_ms", "timeout_ms is negative")
	}
	timer := time.NewTimer(min(timeout, MaxAwait))
	defer timer.Stop()
	var stream string
	var until int64
	err = b.ReadMemory(ctx, c, memoryID, func(_ context.Context, s *memory.CallTx) error {
		if s.User.IsJoined() {
			stream, until = s.Memory.MemoryID, s.Memory.HeadSeq
		}
		return nil
	})
	if fault.HasCode(err, memory.CodeNotFound) || err == nil && until == 0 && memoryID == memory.DefaultMemory {
		stream, until, err = b.remains(ctx, c, memoryID)
	}
	if err == nil && until == 0 {
		return nil
	}
	for err == nil {
		var consistent bool
		seen := b.Progress.Changed()
		if consistent, err = b.consistent(ctx, stream, until); consistent || err != nil {
			return err
		}
		if timeout == 0 {
			err = memory.ErrTimeout
		} else {
			err = b.Pause(ctx, seen, timer.C)
		}
	}
	if errors.Is(err, memory.ErrTimeout) {
		return b.awaited(ctx, stream, until)
	}
	return err
}

// remains returns the stream of a deleted memory and its newest change; 0 if the user has none. For
// the default memory, which can no longer be identified, it is any deleted memory of the user with
// pending writes. The error is that of a user_id that is not the acting user's.
func (b *Replication) remains(ctx context.Context, c memory.Caller, memoryID string) (stream string, until int64, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.Enter(ctx, tx, c, false)
		if err != nil {
			return err
		}
		if memoryID == memory.DefaultMemory {
			return memory.IgnoreNone(tx.Get(ctx, []any{&stream, &until}, selectAllGone, s.User.UserID))
		}
		return memory.IgnoreNone(tx.Get(ctx, []any{&stream, &until}, selectOwnGone, s.User.UserID, memoryID))
	})
	return stream, until, err
}

// StopHint returns what a person can do about a stop with a code.
func StopHint(code string) string {
	switch code {
	case StopRestored:
		return "at the hub, restore the newer backup, or run `cairn hub restored`: then devices send again what the hub lacks"
	case StopReadOnly:
		return "at the hub, create a token with `cairn hub token create --level admin`, then run `cairn hub join` with it"
	case StopDiskFull:
		return "free disk space at the hub; what waits is then sent"
	case StopUnauthorized:
		return "at the hub, create a token with `cairn hub token create`, then run `cairn hub join` with it"
	case StopTooOld:
		return "update cairn at the hub"
	}
	return "look at `cairn replication status`"
}

// stopped returns the error of an await while replication has stopped.
func stopped(code, why string) error {
	return memory.Conflict(memory.CodeReplicationFailed, StopHint(code), "replication has stopped: "+why, "failed", []string{}, "state", code, "why", why)
}

// consistent checks whether a stream's changes up to one are confirmed.
func (b *Replication) consistent(ctx context.Context, stream string, until int64) (ok bool, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		failed, err := tx.Texts(ctx, selectFailedTo, stream, until)
		if err == nil && len(failed) > 0 {
			return memory.Conflict(memory.CodeReplicationFailed, "retry or discard them with `cairn replication retry` or `discard`",
				"the hub has refused writes of this memory", "failed", failed)
		}
		var acked int64
		var state, code, why string
		if err == nil {
			err = tx.Get(ctx, []any{&acked, &state, &code, &why}, selectSettled, stream)
		}
		if ok = errors.Is(err, sql.ErrNoRows); ok || err != nil {
			return memory.IgnoreNone(err)
		}
		more := false
		if acked < until {
			err = tx.Get(ctx, []any{&more}, anyUnsettled, stream, acked, until)
		}
		if err == nil && (code == StopRestored || code != "" && more) {
			return stopped(code, why)
		}
		ok = !more && state != StreamRestoring
		return err
	})
	return ok, err
}

// awaited returns the error of an await after its timeout.
func (b *Replication) awaited(ctx context.Context, stream string, until int64) error {
	var pending int
	var paused bool
	err := b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var acked int64
		err := memory.IgnoreNone(tx.Get(ctx, []any{&acked}, selectAcked, stream))
		err = cmp.Or(err, tx.Get(ctx, []any{&pending}, countUnsettled, stream, acked, until))
		if err == nil {
			_, paused, err = tx.Meta(ctx, metaPaused)
		}
		return err
	})
	if err != nil {
		return err
	}
	return rules.Failure(fault.Unavailable, memory.CodeAwaitTimeout, "look at `cairn replication status`, then call again",
		"the hub has not confirmed all writes in time", "pending", pending, "paused", paused)
}

// Paused reports whether replication is paused by command. Restarts do not change that.
func (b *Replication) Paused(ctx context.Context) (paused bool, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, paused, err = tx.Meta(ctx, metaPaused)
		return err
	})
	return paused, err
}

// SetPaused pauses or resumes replication, push and pull, in every process. It is idempotent.
func (b *Replication) SetPaused(ctx context.Context, paused bool) error {
	defer b.Progress.Notify()
	return b.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if paused {
			return tx.SetMeta(ctx, metaPaused, "1")
		}
		return tx.DeleteMeta(ctx, metaPaused)
	})
}

// AwaitFor returns the timeout for a number of milliseconds. Nil means the default; a value above
// the maximum means the maximum. AwaitConsistency refuses a negative timeout.
func AwaitFor(milliseconds *int64) time.Duration {
	if milliseconds == nil {
		return DefaultAwait
	}
	return time.Duration(max(-1, min(*milliseconds, MaxAwait.Milliseconds()))) * time.Millisecond
}
