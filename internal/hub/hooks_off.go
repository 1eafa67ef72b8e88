//go:build !testhooks

package hub

import (
	"context"

	"cairn/internal/replica"
)

// hooks is what a test does to a hub: nothing in this build (memories §15).
type hooks struct{}

// push passes a request's changes to Push.
func (hooks) push(ctx context.Context, h *Hub, who Identity, req replica.PushRequest) ([]replica.Result, error) {
	return h.Push(ctx, who, req)
}
