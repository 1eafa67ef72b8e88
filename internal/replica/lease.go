package replica

import (
	"context"
	"log/slog"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/shards"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// NewLeases returns the leases of this process on the lanes of a store's streams (memories
// §10.3). A lane has streams of any user, so all replicators of a process share them. See
// [store.Store.NewLeases].
func NewLeases(s *store.Store, life time.Duration, log *slog.Logger) (*follow.Leases, error) {
	return follow.NewLeases(s, memory.PushFollower, life, func(err error) {
		log.Warn("leases of the replication were not renewed or returned; trying again", "error", err)
	})
}

// leaseOf returns the lease of a stream's lane.
func (r *Replicator) leaseOf(stream string) (lease follow.Lease, ours bool) {
	return r.leases.Of(shards.LaneOf(stream))
}

// takeLanes takes the lanes of some streams, except those that a live process holds.
func (r *Replicator) takeLanes(ctx context.Context, streams []replication.Stream) error {
	lanes := make([]int, len(streams))
	for i, s := range streams {
		lanes[i] = s.Lane
	}
	return r.leases.Take(ctx, lanes...)
}

// LeaseLosses is how many of its configured leases other processes have taken; 0 without
// configured ones.
func (r *Replicator) LeaseLosses() int64 {
	if r.Leases == nil {
		return 0
	}
	return r.Leases.Losses()
}
