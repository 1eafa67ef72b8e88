package hub

import (
	"context"
	"fmt"
	"time"
)

// TokenMemory is how long a revoked token may still be accepted by a process.
const TokenMemory = tokenMemory

// Forget empties the token cache, as its expiry does.
func (h *Hub) Forget() {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	h.known.rows = nil
}

// LimitMemory sets the time limit of a stream in a push, before the first push. Tests need
// more than two seconds, because other tests run concurrently.
func (h *Hub) LimitMemory(d time.Duration) { h.memoryLimit = d }

// MemoryLimit is the limit outside of tests.
const MemoryLimit = memoryLimit

// LimitPages limits an SQLite database to a number of pages, to simulate a full disk; 0
// removes the limit.
func (h *Hub) LimitPages(ctx context.Context, pages int) error {
	if pages == 0 {
		pages = 1 << 30
	}
	var now int
	_, err := h.db.Writing().One(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages), nil, &now)
	return err
}
