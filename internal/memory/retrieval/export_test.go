package retrieval

import (
	"context"

	"cairn/internal/store/follow"
)

// What the tests read.
const (
	MaxExcerpt = maxExcerpt
	MaxQuery   = maxQuery
)

// Admits is admits.
func (a *SearchArgs) Admits(tags, session string) bool { return a.admits(tags, session) }

// Follower is embedFollower.
func (b *Retrieval) Follower() follow.Follower { return b.embedFollower() }

// EmbedMissing is embedMissing.
func (b *Retrieval) EmbedMissing(ctx context.Context) ([]follow.Refusal, error) {
	return b.embedMissing(ctx)
}

// SetModel changes the model of the embedder.
func (b *Retrieval) SetModel(model string) { b.embedder.Model = model }

// Unembedded returns entries without a vector of a dimension.
func (b *Retrieval) Unembedded(ctx context.Context, dimension int) ([]unembeddedRow, error) {
	return b.unembedded(ctx, selectUnembedded, int64(0), dimension)
}

// EmbedRows is embedRows.
func (b *Retrieval) EmbedRows(ctx context.Context, todo []unembeddedRow) ([]follow.Refusal, error) {
	return b.embedRows(ctx, todo)
}
