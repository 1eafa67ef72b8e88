package memories

import (
	"context"

	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/prompts"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/retrieval"
	"cairn/internal/memory/vaults"
	"cairn/internal/store"
)

// Service provides the memories of all users of a store: the calls of all packages of memory, and
// those that combine several of them. Goroutines and processes may call it concurrently.
//
// Errors are fault.Error with the codes of package memory, a hint and details; memory.Status
// returns their HTTP status. A failed call stores nothing.
type Service struct {
	*memory.Kernel
	*vaults.Calls
	*entries.Entries
	*retrieval.Retrieval
	*items.Items
	*replication.Replication
}

// New returns the service of a store. With a nil store, reads find nothing, and writes run in an
// empty scratch store that is discarded. Settings must have passed their Check. Stop ends the
// workers of the service.
func New(s *store.Store, c memory.Config) *Service {
	k := memory.New(s, c)
	return &Service{k, vaults.New(k), entries.New(k), retrieval.New(k), items.New(k), replication.New(k)}
}

// Prompts returns the instructions for agents that keep memories of a kind, see prompts.Of.
func (b *Service) Prompts(kind string) (out prompts.Prompts, warnings []string, err error) {
	return prompts.Of(b.Config.Settings.PromptsDir, kind)
}

// TopK is get_top_k (memories §3). With a query it returns the result of Search, without one the
// newest k entries; one of the two results is set. Errors are those of Search and ListEntries.
func (b *Service) TopK(ctx context.Context, c memory.Caller, memoryID string, k int64, query string) (*retrieval.Found, *entries.Listed, error) {
	if query != "" {
		found, err := b.Search(ctx, c, retrieval.SearchArgs{MemoryID: memoryID, Query: query, TopK: k})
		return &found, nil, err
	}
	listed, err := b.ListEntries(ctx, c, entries.ListArgs{MemoryID: memoryID, Limit: int64(retrieval.TopK(k))})
	return nil, &listed, err
}
