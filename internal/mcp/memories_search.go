package mcp

import (
	"context"
	"log/slog"

	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/prompts"
	"cairn/internal/memory/retrieval"
)

type topArgs struct {
	memoryArgs
	K     int64  `arg:"k,default=10,min=1,max=100" about:"Maximum number of entries; at most 50 without a query."`
	Query string `arg:"query" about:"What to search for."`
}

type promptsArgs struct {
	MemoryType string `arg:"memory_type,required,enum=chat|code" about:"The type of the memory."`
}

func (t memoryTools) searchTools() []Tool {
	return []Tool{
		readMemory(t, Tool{
			Name: "search_memories", Words: "remembered find facts notes",
			Description: "Search the committed entries of a memory in plain words. Best hits first, with the memory's context document.",
		}, (*memories.Service).Search),
		readMemory(t, Tool{
			Name: "get_top_k", Result: resultOfEither[retrieval.Found, entries.Listed](),
			Description: "Get the k entries of a memory that match a query best, or the newest k without a query.",
		}, func(b *memories.Service, ctx context.Context, c memory.Caller, a topArgs) (any, error) {
			found, listed, err := b.TopK(ctx, c, a.MemoryID, a.K, a.Query)
			if found != nil {
				return found, err
			}
			return listed, err
		}),
		readMemory(t, Tool{
			Name:        "get_default_prompts",
			Description: "Get the instructions for a type of memory: when to add entries, how to summarize them, how to write the context document.",
		}, func(b *memories.Service, _ context.Context, _ memory.Caller, a promptsArgs) (prompts.Prompts, error) {
			out, warnings, err := b.Prompts(a.MemoryType)
			for _, w := range warnings {
				slog.Warn(w)
			}
			return out, err
		}),
	}
}
