package replication

import (
	"context"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// The codes of a Stop.
const (
	StopRestored     = "hub_restored" // the hub's database is older than what it has confirmed
	StopReadOnly     = "read_only"    // the hub's token permits reading only
	StopDiskFull     = "disk_full"    // the hub cannot store anything
	StopUnauthorized = "unauthorized" // the hub refuses the token
	StopTooOld       = "hub_too_old"  // the hub does not know a request
)

const (
	selectGeneration = `SELECT generation FROM memory_users WHERE user_id = ?`
	updateStop       = `UPDATE memory_users SET stop_code = ?2, stop_why = ?3, stop_ns = ?4 WHERE user_id = ?1 AND (stop_code IS NOT ?2 OR stop_why IS NOT ?3)`
	selectCommon     = `SELECT CASE WHEN unsent IS NULL THEN acked ELSE unsent - 1 END FROM (
SELECT ifnull(max(acked_seq), 0) AS acked, (SELECT min(c.seq) FROM memory_streams s JOIN changes c ON c.stream = (SELECT id FROM symbols WHERE text = s.stream)
AND c.seq > s.acked_seq AND c.doc IS NOT NULL WHERE s.head_seq > s.acked_seq) AS unsent FROM memory_streams)`
	updateGoOn = `UPDATE memory_users SET stop_code = NULL, stop_why = NULL WHERE user_id = ?1 AND stop_code = ?2`
)

// checkMember refuses a membership that has ended.
func checkMember(ctx context.Context, tx *store.Tx, m memory.Membership) error {
	generation := int64(-1)
	if err := memory.IgnoreNone(tx.Get(ctx, []any{&generation}, selectGeneration, m.User)); err != nil {
		return err
	}
	if generation != m.Generation {
		return rules.Failure(fault.Conflict, memory.CodeLeft, "the replicator of the new hub goes on", "the user has left this hub, or joined it again")
	}
	return nil
}

// CheckMember returns CodeLeft (Conflict) if a membership has ended.
func (b *Replication) CheckMember(ctx context.Context, m memory.Membership) error {
	return b.Read(ctx, func(ctx context.Context, tx *store.Tx) error { return checkMember(ctx, tx, m) })
}

// user returns a user of this device.
func (b *Replication) user(ctx context.Context, id string) (u memory.User, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		u, err = memory.FindUser(ctx, tx, id)
		return err
	})
	return u, err
}

// SetStop stores that replication has stopped, and why. Every process of the store shows
// it, and AwaitConsistency reports it. Errors: CodeLeft. It is idempotent.
func (b *Replication) SetStop(ctx context.Context, m memory.Membership, code, why string) error {
	u, err := b.user(ctx, m.User)
	if err != nil || u.Generation == m.Generation && u.Stop.Code == code && u.Stop.Why == why {
		return err
	}
	return b.replicatorTx(ctx, m, nil, func(ctx context.Context, s *memory.CallTx) error {
		return s.Exec(ctx, updateStop, m.User, code, why, s.Tx.Now().UnixNano())
	})
}

// ClearStop removes a stop with one of the given codes. Errors: CodeLeft. It is idempotent, and
// writes nothing if there is no such stop.
func (b *Replication) ClearStop(ctx context.Context, m memory.Membership, codes ...string) error {
	u, err := b.user(ctx, m.User)
	for _, code := range codes {
		if err == nil && u.Stop.Code == code {
			err = b.replicatorTx(ctx, m, nil, func(ctx context.Context, s *memory.CallTx) error {
				return s.Exec(ctx, updateGoOn, m.User, code)
			})
		}
	}
	return err
}

// CommonPosition returns a position of the change log: the hub has confirmed every
// change of a memory up to it. It is 0 if the hub has confirmed none.
func (b *Replication) CommonPosition(ctx context.Context) (position int64, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&position}, selectCommon)
	})
	return position, err
}
