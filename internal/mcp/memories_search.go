package mcp

import (
	"context"
	"encoding/json"
	"log/slog"

	"cairn/internal/memory"
)

func (t memoryTools) searchTools() []Tool {
	return []Tool{
		{
			Name: "search_memories", ReadOnly: true, Lean: true, Brief: "Find kept texts.", Description: "Find a memory's committed entries; any words.",
			Params: and(params(memoryParam(), must("query"), told("top_k", Integer)), untold(String, "mode", "session_id"), untold(Object, "tags")),
			Call:   remembers(t, searchMemory),
		},
		{
			Name: "get_top_k", ReadOnly: true, Description: "The k entries that suit query best; without one the newest.",
			Params: params(memoryParam(), told("k", Integer), told("query", String)),
			Call: remembers(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (any, error) {
				found, listed, err := b.TopK(ctx, c, a.String("memory_id"), a.count("k"), a.String("query"))
				if found != nil {
					return found, err
				}
				return listed, err
			}),
		},
		{
			Name: "get_default_prompts", ReadOnly: true, Description: "How to keep a memory.",
			Params: params(must("memory_type").among(memory.PromptKinds()...)),
			Call: remembers(t, func(_ context.Context, b *memory.Book, _ memory.Caller, a Args) (memory.Prompts, error) {
				out, warnings, err := b.Prompts(a.String("memory_type"))
				for _, w := range warnings {
					slog.Warn(w)
				}
				return out, err
			}),
		},
	}
}

func searchMemory(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (memory.Found, error) {
	q := memory.SearchArgs{
		MemoryID: a.String("memory_id"), Query: a.String("query"), TopK: a.count("top_k"), Mode: a.String("mode"), SessionID: a.String("session_id"),
	}
	if raw := a.Object("tags"); raw != nil && json.Unmarshal(raw, &q.Tags) != nil {
		return memory.Found{}, unsound("tags", "tags must be an object of strings")
	}
	return b.Search(ctx, c, q)
}
