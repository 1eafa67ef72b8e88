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
			Name: "search_memories", Words: "remembered find facts notes", ReadOnly: true, Result: gives[memory.Found](),
			Description: "Search the committed entries of a memory in plain words. Best hits first, with the memory's context document.",
			Params: params(
				memoryParam(), must("query", "What to search for, at most 1,000 characters; names and terms help."),
				count("top_k", 10, "How many hits.").least(1).most(100),
				may("mode", "By words, by words and meaning, or whichever is available.").by("auto").among("auto", "lexical", "hybrid"),
				may("tags", "Only entries with all of these tags: an object of texts.").of(Object), may("session_id", "Only entries of this session."),
			),
			Call: remembers(t, searchMemory),
		},
		{
			Name: "get_top_k", ReadOnly: true, Result: givesEither[memory.Found, memory.Listed](),
			Description: "Get the k entries of a memory that match a query best, or the newest k without a query.",
			Params:      params(memoryParam(), count("k", 10, "How many entries; 50 at most without a query.").least(1).most(100), may("query", "What to search for.")),
			Call: remembers(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (any, error) {
				found, listed, err := b.TopK(ctx, c, a.String("memory_id"), a.count("k"), a.String("query"))
				if found != nil {
					return found, err
				}
				return listed, err
			}),
		},
		{
			Name: "get_default_prompts", ReadOnly: true, Result: gives[memory.Prompts](),
			Description: "Get the instructions for keeping a memory of some type: when to add entries, how to sum them up, how to write the context document.",
			Params:      params(must("memory_type", "The type of the memory.").among(memory.PromptKinds()...)),
			Call: remembers(t, func(_ context.Context, b *memory.Service, _ memory.Caller, a Args) (memory.Prompts, error) {
				out, warnings, err := b.Prompts(a.String("memory_type"))
				for _, w := range warnings {
					slog.Warn(w)
				}
				return out, err
			}),
		},
	}
}

func searchMemory(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (memory.Found, error) {
	q := memory.SearchArgs{
		MemoryID: a.String("memory_id"), Query: a.String("query"), TopK: a.count("top_k"), Mode: a.String("mode"), SessionID: a.String("session_id"),
	}
	if raw := a.Object("tags"); raw != nil && json.Unmarshal(raw, &q.Tags) != nil {
		return memory.Found{}, unsound("tags", "tags must be an object of strings")
	}
	return b.Search(ctx, c, q)
}
