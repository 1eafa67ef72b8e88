package memory

import (
	"cmp"
	"context"

	"cairn/internal/memory/shards"
	"cairn/internal/store/follow"
)

// The names under which the two directions of the replication are in the account of all
// followers (follow.Progress). Their lanes are streams.
const (
	PushFollower = "replication"
	PullFollower = "replication-pull"
)

// HubDevice is the device name of pulled changes in the log.
const HubDevice = "hub"

const (
	upsertStream = `INSERT INTO memory_streams (stream, user_id, lane, head_seq, subscribed) VALUES (?1, ?2, ?3, ?4, 1)
ON CONFLICT (stream) DO UPDATE SET subscribed = 1, acked_seq = CASE WHEN acked_seq >= head_seq THEN max(acked_seq, excluded.head_seq - 1) ELSE acked_seq END,
head_seq = max(head_seq, excluded.head_seq)`
	selectHere    = `SELECT EXISTS (SELECT 1 FROM memory_streams WHERE stream = ?1 OR user_id = ?2 AND remote_id = ?1)`
	selectLocalOf = `SELECT stream FROM memory_streams WHERE remote_id = ? AND user_id = ?`
	updateRemote  = `UPDATE memory_streams SET remote_id = ?2 WHERE stream = ?1`
	updateSubscr  = `UPDATE memory_streams SET subscribed = 1 WHERE stream = ?`
)

// Advance moves the head of a stream of the acting user to a change, 0 for none. It creates a
// missing stream, and subscribes it.
func (s *CallTx) Advance(ctx context.Context, stream string, seq int64) error {
	return s.Exec(ctx, upsertStream, stream, s.User.UserID, shards.LaneOf(stream), seq)
}

// KnowsStream reports whether the acting user has a stream, by its id here or at the hub.
func (s *CallTx) KnowsStream(ctx context.Context, stream string) (yes bool, err error) {
	err = s.Tx.Get(ctx, []any{&yes}, selectHere, stream, s.User.UserID)
	return yes, err
}

// LocalStream returns the local id of a stream of the hub: the id itself if no other one is known.
func (s *CallTx) LocalStream(ctx context.Context, stream string) (string, error) {
	local := stream
	err := s.Tx.Get(ctx, []any{&local}, selectLocalOf, stream, s.User.UserID)
	return local, IgnoreNone(err)
}

// SetRemote stores the id that a stream has at the hub.
func (s *CallTx) SetRemote(ctx context.Context, stream, remote string) error {
	return s.Exec(ctx, updateRemote, stream, remote)
}

// Subscribe notes that a stream must be pulled.
func (s *CallTx) Subscribe(ctx context.Context, stream string) error {
	return s.Exec(ctx, updateSubscr, stream)
}

// ForgetTries forgets the failures of streams, and the changes that a hub has refused.
func (s *CallTx) ForgetTries(ctx context.Context, streams ...string) error {
	return cmp.Or(follow.DropLanes(ctx, s.Tx, PushFollower, streams...), follow.DropLanes(ctx, s.Tx, PullFollower, streams...))
}
