package search

import (
	"context"
	"testing"

	"cairn/internal/observation/observationtest"
	"cairn/internal/store"
)

func TestHelpThatIsLateShowsWhatItHasFound(t *testing.T) {
	t.Parallel()
	b := observationtest.Helped(t)
	b.Call(observationtest.Bash("feed zebra quagga okapi"), "")
	done := b.Prompt("nothing of this", "")
	err := b.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		late := false
		var r *relating
		r = newRelating(ctx, b.Service, tx, RelatedArgs{
			Prompt: "what do zebra, quagga and okapi eat?", Project: done.Project, Near: map[int64]string{done.Project.Key: done.Project.ID},
			InTime: func(ctx context.Context) context.Context {
				return lateContext{ctx, func() bool { late = len(r.found) > 0; return late }}
			},
		})
		found, err := r.rankInTime(ctx)
		if err == nil && (!late || len(found) != 1 || len(r.helpRows(found)) != 1) {
			t.Errorf("late: %v, found %d sessions", late, len(found))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
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
