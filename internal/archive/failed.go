package archive

import (
	"context"
	"errors"

	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// retryFailed tries to archive changes of a project that were set aside. It drops a
// change whose entity has a later document.
func (l *projectWorker) retryFailed(ctx context.Context, seqs []int64) error {
	err := l.locked(ctx, func() error {
		for _, seq := range seqs {
			if err := l.retryOne(ctx, seq); err != nil {
				l.drop()
				return err
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		l.count(err)
	}
	return err
}

// retryOne tries one change. It compares and writes the whole project, because files
// rendered from that change alone may be older than the present ones.
func (l *projectWorker) retryOne(ctx context.Context, seq int64) error {
	var c cursor
	var refused error
	pending := false
	err := l.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if c, _, err = cursorOf(ctx, tx, l.project); err != nil {
			return err
		}
		var change store.Change
		if change, pending, err = failedChange(ctx, tx, seq); err != nil || !pending {
			return err
		}
		refused, err = l.refusal(ctx, tx, change)
		return err
	})
	if err != nil {
		return err
	}
	if pending && refused == nil {
		if err = l.open(ctx, c.head); err == nil {
			_, err = l.rebuild(ctx, false)
		}
		if err != nil {
			return err
		}
	}
	return l.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		if refused != nil {
			return follow.SetAside(ctx, tx, FollowerName, l.project, follow.Refusal{Seq: seq, Err: refused})
		}
		return follow.Settle(ctx, tx, FollowerName, seq)
	})
}

// refusal returns the reason why a change cannot be rendered, nil if it can.
func (l *projectWorker) refusal(ctx context.Context, tx *store.Tx, change store.Change) (refused, err error) {
	err = l.streamsOf(ctx, tx, l.project, func(p *Part, stream string) error {
		if stream != change.Stream {
			return nil
		}
		pages, err := render(ctx, tx, partChanges{p, []store.Change{change}})
		if errors.Is(err, errUnfit) {
			refused, err = err, nil
		}
		if len(pages.Refused) > 0 {
			refused = pages.Refused[0].Err
		}
		return err
	})
	return refused, err
}
