//go:build !testhooks

package hub

import (
	"context"

	"cairn/internal/replica"
)

// hooks contains a test's changes of a hub's behaviour. In this build there are none (memories
// §15).
type hooks struct{}

// push passes a request's changes to Push.
func (hooks) push(ctx context.Context, h *Hub, who Identity, req replica.PushRequest) ([]replica.Result, error) {
	return h.Push(ctx, who, req)
}
