package replication

import (
	"cmp"
	"context"

	"cairn/internal/crashpoint"
	"cairn/internal/memory"
	"cairn/internal/memory/items"
	"cairn/internal/store/follow"
)

// Catalogue stores the vaults and memories that a hub has of a user. docs are puts of vaults and
// memories; that of a memory contains its vault. Existing rows do not change. A new memory is
// subscribed if its vault belongs to a project of this device; other memories are subscribed when
// they are first read (memories §10.3). Catalogue is idempotent.
func (b *Replication) Catalogue(ctx context.Context, m memory.Membership, docs []items.Item) error {
	return b.replicatorTx(ctx, m, nil, func(ctx context.Context, s *memory.CallTx) error {
		d, err := items.OfHub(ctx, s, m.User)
		if err == nil {
			err = d.ApplyCatalogue(ctx, docs)
		}
		return err
	})
}

// Apply stores a page of a stream that was pulled for a user, in one transaction, and moves the
// pull cursor to next. stream is the hub's id or the local one. An item with the key of an inflight
// entry commits that entry. Apply is idempotent (see Documents). Errors besides the store's:
// CodeLeft, CodeInvalid for an item that is not readable.
func (b *Replication) Apply(ctx context.Context, m memory.Membership, stream string, docs []items.Item, next int64) error {
	return b.replicatorTx(ctx, m, nil, func(ctx context.Context, s *memory.CallTx) error {
		d, err := items.OfHub(ctx, s, m.User)
		if err != nil {
			return err
		}
		local, err := d.ApplyPage(ctx, stream, docs)
		if err != nil {
			return err
		}
		return pulledTo(ctx, s, local, next)
	})
}

// pulledTo moves the pull cursor of a stream.
func pulledTo(ctx context.Context, s *memory.CallTx, local string, next int64) error {
	if err := s.Advance(ctx, local, 0); err != nil {
		return err
	}
	crashpoint.Pass("mid_pull")
	err := s.Exec(ctx, updateCursor, local, next)
	return cmp.Or(err, follow.Recover(ctx, s.Tx, memory.PullFollower, local))
}
