package search

import (
	"context"
	"sync/atomic"
	"testing"

	"cairn/internal/observation/observationtest"
	"cairn/internal/store"
)

func TestHelpThatIsLateShowsWhatItHasFound(t *testing.T) {
	t.Parallel()
	b := observationtest.Helped(t)
	b.Call(observationtest.Bash("feed zebra quagga okapi"), "")
	done := b.Prompt("nothing of this", "")
	// The time ends after each number of steps; after some of them the words are found, but
	// not yet ranked.
	const steps = 100
	shown := false
	for n := int64(1); n < steps && !shown; n++ {
		var taken atomic.Int64
		err := b.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			r := newRelating(ctx, b.Service, tx, RelatedArgs{
				Prompt: "what do zebra, quagga and okapi eat?", Project: done.Project, Near: map[int64]string{done.Project.Key: done.Project.ID},
				InTime: func(ctx context.Context) context.Context {
					return lateContext{ctx, func() bool { return taken.Add(1) > n }}
				},
			})
			found, err := r.rankInTime(ctx)
			shown = err == nil && taken.Load() > n && len(found) == 1 && len(r.helpRows(found)) == 1
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !shown {
		t.Error("help that is late never shows what it has found")
	}
}

// lateContext ends when isOver returns true.
type lateContext struct {
	context.Context //nolint:containedctx // it is one
	isOver          func() bool
}

func (c lateContext) Err() error {
	if c.isOver() {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}
