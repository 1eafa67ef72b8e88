package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/memory"
)

// MemoryTools are the tools of memories (memories §3), named and called as there. Their
// errors have the codes of memories §9. project is the one whose own memory `default`
// is in calls that name none, "" for the working directory's; over HTTP the one in the
// URL comes first.
func MemoryTools(m cairn.Memories, project string) []Tool {
	t := memoryTools{memories: m, project: project}
	tools := slices.Concat(t.vaultTools(), t.entryTools(), t.searchTools(), t.contextTools())
	for i := range tools {
		tools[i].Errors, tools[i].levelled, tools[i].strict = Statused, true, true // strict: memories §5.3
		tools[i].Params = append(tools[i].Params, untold(String, "project", "user_id", "request_id", "idempotency_key")...)
		for j := range tools[i].Params {
			tools[i].Params[j].manner = memorial
		}
		tools[i].Call = exact(tools[i].Call)
	}
	return tools
}

type memoryTools struct {
	memories cairn.Memories
	project  string
}

// exact is a call that takes no empty ids and whose errors name fields as its arguments
// do.
func exact(call func(context.Context, Args) (any, error)) func(context.Context, Args) (any, error) {
	return func(ctx context.Context, a Args) (any, error) {
		for _, name := range []string{"user_id", "memory_id", "vault_id", "entry_id", "session_id"} {
			if id := a.Text(name); id != nil && *id == "" {
				return nil, unsound(name, name+" is empty")
			}
		}
		v, err := call(ctx, a)
		return v, inArguments(err)
	}
}

// inArguments is an error about a field of JSON as one about the argument that it is here.
func inArguments(err error) error {
	if err == nil {
		return nil
	}
	f := fault.As(err)
	field, _ := f.Details["field"].(string)
	name, ok := map[string]string{
		"rawEntry": "raw_entry", "sessionId": "session_id", "memoryType": "memory_type", "memoryId": "memory_id", "vaultId": "vault_id", "topK": "top_k",
	}[field]
	if !ok {
		return err
	}
	e := *f
	e.Message, e.Hint = strings.ReplaceAll(f.Message, field, name), strings.ReplaceAll(f.Hint, field, name)
	e.Details = maps.Clone(f.Details)
	e.Details["field"] = name
	return &e
}

// caller is who makes a call.
func (t memoryTools) caller(a Args) memory.Caller {
	c := memory.Caller{
		User: a.bearer.User, Level: a.bearer.Level, UserID: a.String("user_id"), Key: cmp.Or(a.String("idempotency_key"), a.key), Trace: a.trace, ProjectID: t.project,
		Remote: a.IsRemote(), Transport: a.Connection(),
	}
	if url := a.Scope("project").Name; url != "" {
		c.ProjectID = url
	}
	if named := a.String("project"); named != "" {
		c.ProjectID = named
	}
	return c
}

// remembers makes a tool's Call of a question to the book.
func remembers[T any](t memoryTools, ask func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (T, error)) func(context.Context, Args) (any, error) {
	return func(ctx context.Context, a Args) (any, error) {
		var out T
		err := t.memories.Read(ctx, t.caller(a), func(ctx context.Context, b *memory.Book, c memory.Caller) (err error) {
			out, err = ask(ctx, b, c, a)
			return err
		})
		return out, err
	}
}

// keeps is remembers for what stores something.
func keeps[T any](t memoryTools, do func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (T, memory.Receipt, error)) func(context.Context, Args) (any, error) {
	return func(ctx context.Context, a Args) (any, error) {
		var out T
		err := t.memories.Write(ctx, t.caller(a), func(ctx context.Context, b *memory.Book, c memory.Caller) (err error) {
			out, *a.receipt, err = do(ctx, b, c, a)
			return err
		})
		return out, err
	}
}

func memoryParam() Param { return must("memory_id") }

// count is an integer argument, 0 when it was omitted: the book's own then.
func (a Args) count(name string) int64 {
	if n := a.Int64(name); n != nil {
		return *n
	}
	return 0
}

func (t memoryTools) vaultTools() []Tool {
	return []Tool{
		{
			Name: "create_vault", Description: "Make a vault, a group of memories.",
			Params: params(must("title"), told("description", String)),
			Call: keeps(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (memory.Vault, memory.Receipt, error) {
				return b.CreateVault(ctx, c, memory.NewVault{Title: a.String("title"), Description: a.String("description")})
			}),
		},
		{
			Name: "list_vaults", ReadOnly: true, Description: "All vaults.",
			Call: remembers(t, func(ctx context.Context, b *memory.Book, c memory.Caller, _ Args) (memory.Vaults, error) {
				return b.Vaults(ctx, c)
			}),
		},
		{
			Name: "create_memory_in_vault", Description: "Make a memory. Ask the user for consent first.",
			Params: params(must("vault_id"), must("title"), told("memory_type", String), told("description", String)),
			Call: keeps(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (memory.Memory, memory.Receipt, error) {
				return b.CreateMemory(ctx, c, memory.NewMemory{
					VaultID: a.String("vault_id"), Title: a.String("title"), MemoryType: a.String("memory_type"), Description: a.String("description"),
				})
			}),
		},
		{
			Name: "list_memories", ReadOnly: true, Description: "A vault's memories.", Params: params(must("vault_id")),
			Call: remembers(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (memory.Memories, error) {
				return b.Memories(ctx, c, a.String("vault_id"))
			}),
		},
		{
			Name: "get_memory", ReadOnly: true, Description: "One memory.", Params: params(memoryParam()),
			Call: remembers(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (memory.Memory, error) {
				return b.Memory(ctx, c, a.String("memory_id"))
			}),
		},
	}
}

func (t memoryTools) entryTools() []Tool {
	return []Tool{
		{
			Name: "add_entry", Lean: true, Brief: "Keep a text.", Description: "Keep a text, verbatim. memory_id may be default, this project's own.",
			Params: params(memoryParam(), must("raw_entry"), must("summary"), told("tags", Object), told("metadata", Object), told("session_id", String)),
			Call:   keeps(t, addEntry),
		},
		{
			Name: "list_entries", Aliases: []string{"get_entries"}, ReadOnly: true, Description: "Committed entries, newest first. before, after: a time or entry id.",
			Params: and(params(memoryParam(), told("limit", Integer), told("before", String), told("after", String)), untold(Strings, "tags"), untold(String, "session_id")),
			Call: remembers(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (memory.Listed, error) {
				return b.ListEntries(ctx, c, memory.ListArgs{
					MemoryID: a.String("memory_id"), Limit: a.count("limit"), Before: a.String("before"), After: a.String("after"),
					Tags: a.Strings("tags"), SessionID: a.String("session_id"),
				})
			}),
		},
		{
			Name: "get_entry", ReadOnly: true, Description: "One committed entry.", Params: params(memoryParam(), must("entry_id")),
			Call: remembers(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (memory.Entry, error) {
				return b.GetEntry(ctx, c, a.String("memory_id"), a.String("entry_id"))
			}),
		},
		{
			Name: "list_inflight_entries", ReadOnly: true, Description: "Entries stored here that the hub has not confirmed, oldest first.",
			Params: params(must("user_id"), memoryParam(), told("limit", Integer)),
			Call: remembers(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (memory.InflightList, error) {
				return b.ListInflight(ctx, c, a.String("memory_id"), a.count("limit"))
			}),
		},
		{
			Name: "get_inflight_entry", ReadOnly: true, Description: "One of them.",
			Params: params(must("user_id"), memoryParam(), must("local_id")),
			Call: remembers(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (any, error) {
				e, err := b.GetInflight(ctx, c, a.String("memory_id"), a.String("local_id"))
				return map[string]any{"entry": e}, err
			}),
		},
	}
}

// addEntry wants a summary, which other edges leave to the caller (memories §4).
func addEntry(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (memory.Added, memory.Receipt, error) {
	if strings.TrimSpace(a.String("summary")) == "" {
		return memory.Added{}, memory.Receipt{}, unsound("summary", "summary is required")
	}
	e := memory.NewEntry{
		MemoryID: a.String("memory_id"), RawEntry: a.String("raw_entry"), Summary: a.String("summary"), Metadata: a.Object("metadata"), SessionID: a.String("session_id"),
	}
	if raw := a.Object("tags"); raw != nil {
		if json.Unmarshal(raw, &e.Tags) != nil {
			return memory.Added{}, memory.Receipt{}, unsound("tags", "tags must be an object of strings")
		}
	}
	return b.AddEntry(ctx, c, e)
}

func (t memoryTools) contextTools() []Tool {
	return []Tool{
		{
			Name: "get_context", ReadOnly: true, Description: "A memory's context document.", Params: params(memoryParam()),
			Call: remembers(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (Spoken, error) {
				d, err := b.GetContext(ctx, c, a.String("memory_id"))
				return Spoken{d.Markdown, d}, err
			}),
		},
		{
			Name: "update_context", Aliases: []string{"put_context"}, Description: "Replace it, whole.",
			Params: params(memoryParam(), must("session_id"), must("markdown").or("content")),
			Call: keeps(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (memory.Document, memory.Receipt, error) {
				return b.UpdateContext(ctx, c, memory.NewDocument{MemoryID: a.String("memory_id"), SessionID: a.String("session_id"), Markdown: a.String("markdown")})
			}),
		},
		{
			Name: "await_consistency", ReadOnly: true, Description: "Wait until the hub has what was written.", Params: params(memoryParam(), told("timeout_ms", Integer)),
			Call: remembers(t, func(ctx context.Context, b *memory.Book, c memory.Caller, a Args) (Spoken, error) {
				err := b.AwaitConsistency(ctx, c, a.String("memory_id"), memory.AwaitFor(a.Int64("timeout_ms")))
				return Spoken{"consistent", map[string]string{"status": "consistent"}}, err
			}),
		},
	}
}
