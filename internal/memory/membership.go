package memory

import (
	"context"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Membership is one join of a user to a hub. Each batch, confirmation and pull belongs to a
// membership. After the membership has ended they are refused with CodeLeft, so that nothing is
// sent to, or accepted from, a hub that the user has left.
type Membership struct {
	User       string // local id
	Generation int64  // counts the user's joins and leaves
}

// Stop is the reason why a user's replication has stopped until a person acts.
type Stop struct {
	Code  string // a Stop code; "" if replication has not stopped
	Why   string // one human-readable sentence
	Since Time
}

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
func checkMember(ctx context.Context, tx *store.Tx, m Membership) error {
	generation := int64(-1)
	if err := ignoreNone(tx.Get(ctx, []any{&generation}, selectGeneration, m.User)); err != nil {
		return err
	}
	if generation != m.Generation {
		return failure(fault.Conflict, CodeLeft, "the replicator of the new hub goes on", "the user has left this hub, or joined it again")
	}
	return nil
}

// CheckMember returns CodeLeft (Conflict) if a membership has ended.
func (b *Service) CheckMember(ctx context.Context, m Membership) error {
	return b.read(ctx, func(ctx context.Context, tx *store.Tx) error { return checkMember(ctx, tx, m) })
}

// SetStop stores that replication has stopped, and why. Every process of the store shows
// it, and AwaitConsistency reports it. Errors: CodeLeft. It is idempotent.
func (b *Service) SetStop(ctx context.Context, m Membership, code, why string) error {
	var u user
	err := b.read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		u, err = findUser(ctx, tx, m.User)
		return err
	})
	if err != nil || u.generation == m.Generation && u.stop.Code == code && u.stop.Why == why {
		return err
	}
	return b.replicatorTx(ctx, m, nil, func(ctx context.Context, s *callTx) error {
		_, err := s.tx.Exec(ctx, updateStop, m.User, code, why, s.tx.Now().UnixNano())
		return err
	})
}

// ClearStop removes a stop with one of the given codes. Errors: CodeLeft. It is idempotent, and
// writes nothing if there is no such stop.
func (b *Service) ClearStop(ctx context.Context, m Membership, codes ...string) error {
	var u user
	err := b.read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		u, err = findUser(ctx, tx, m.User)
		return err
	})
	for _, code := range codes {
		if err == nil && u.stop.Code == code {
			err = b.replicatorTx(ctx, m, nil, func(ctx context.Context, s *callTx) error {
				_, err := s.tx.Exec(ctx, updateGoOn, m.User, code)
				return err
			})
		}
	}
	return err
}

// CommonPosition returns a position of the change log: the hub has confirmed every
// change of a memory up to it. It is 0 if the hub has confirmed none.
func (b *Service) CommonPosition(ctx context.Context) (position int64, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&position}, selectCommon)
	})
	return position, err
}
