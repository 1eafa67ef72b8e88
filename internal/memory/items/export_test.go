package items

import (
	"context"

	"cairn/internal/memory"
)

// NewLogDocuments returns Documents for items of the log.
func NewLogDocuments(k *memory.Kernel) *Documents { return newDocuments(k, fromLog) }

// Name is name.
func (d *Item) Name() string { return d.name() }

// Lost returns the items of the log whose rows are lost.
func Lost(ctx context.Context, s *memory.CallTx) ([]Item, error) {
	return lost(ctx, s, selectLostVaults, selectLostMemories, selectLostEntries, selectLostContexts)
}
