package hub

import (
	"context"
	"fmt"
	"time"
)

// TokenMemory is how long a revoked token may still be accepted.
const TokenMemory = tokenMemory

// Forget drops what is remembered of tokens, as time does.
func (h *Hub) Forget() {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	h.known.rows = nil
}

// LimitMemory says how long a stream may take of a push, of a hub that has had none
// yet. Tests give more than two seconds, for other tests run next to them.
func (h *Hub) LimitMemory(d time.Duration) { h.memoryLimit = d }

// MemoryLimit is what it has outside of tests.
const MemoryLimit = memoryLimit

// LimitPages makes an SQLite database full at a number of pages, as a full disk does; 0
// takes the limit away.
func (h *Hub) LimitPages(ctx context.Context, pages int) error {
	if pages == 0 {
		pages = 1 << 30
	}
	var now int
	return h.db.writer.QueryRowContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages)).Scan(&now)
}
