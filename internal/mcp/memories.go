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
		tools[i].Errors, tools[i].levelled, tools[i].strict = ErrorStatus, true, true // strict: memories §5.3
		tools[i].Params = and(tools[i].Params, common(tools[i])...)
		for j := range tools[i].Params {
			tools[i].Params[j].manner = memorial
		}
		tools[i].Call = exact(tools[i].Call)
	}
	return tools
}

// common are the parameters that every tool of memories takes (memories §3), as far as
// it does not have them itself. What changes nothing of a tool is taken and not told.
func common(t Tool) []Param {
	has := func(name string) bool {
		return slices.ContainsFunc(t.Params, func(p Param) bool { return p.Name == name })
	}
	var all []Param
	if !has("user_id") {
		all = append(all, may("user_id", "Your user's id. Never needed: a call acts for the user of this device, or of the token, and any other id is refused."))
	}
	of := may("project", "The project whose own memory default is. Omitted: the current one.")
	of.untold = !has("memory_id")
	key, request := once(), may("request_id", "An id of this attempt, for the log.")
	key.untold, request.untold = t.ReadOnly, t.ReadOnly
	return append(all, of, key, request)
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

// remembers makes a tool's Call of a question to memory.Service.
func remembers[T any](t memoryTools, ask func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (T, error)) func(context.Context, Args) (any, error) {
	return func(ctx context.Context, a Args) (any, error) {
		var out T
		err := t.memories.Read(ctx, t.caller(a), func(ctx context.Context, b *memory.Service, c memory.Caller) (err error) {
			out, err = ask(ctx, b, c, a)
			return err
		})
		return out, err
	}
}

// keeps is remembers for what stores something.
func keeps[T any](t memoryTools, do func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (T, memory.WriteInfo, error)) func(context.Context, Args) (any, error) {
	return func(ctx context.Context, a Args) (any, error) {
		var out T
		err := t.memories.Write(ctx, t.caller(a), func(ctx context.Context, b *memory.Service, c memory.Caller) (err error) {
			out, *a.receipt, err = do(ctx, b, c, a)
			return err
		})
		return out, err
	}
}

func memoryParam() Param {
	return must("memory_id", "The memory: its id, or default for this project's own.").lean("default: this project's.")
}

func sessionOfText() Param {
	return may("session_id", "The session that writes it: its id, as recall and search show it.")
}

// count is an integer argument, 0 when it was omitted: the default of the service then.
func (a Args) count(name string) int64 {
	if n := a.Int64(name); n != nil {
		return *n
	}
	return 0
}

func (t memoryTools) vaultTools() []Tool {
	title := must("title", "Letters, digits and hyphens, at most 50; unique.")
	about := may("description", "What it is for, at most 500 characters.")
	vault := must("vault_id", "The vault's id, as list_vaults tells it.")
	return []Tool{
		{
			Name: "create_vault", Result: gives[memory.Vault](),
			Description: "Make a vault: a group of memories with a title. Returns it with its id.", Params: params(title, about),
			Call: keeps(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (memory.Vault, memory.WriteInfo, error) {
				return b.CreateVault(ctx, c, memory.NewVault{Title: a.String("title"), Description: a.String("description")})
			}),
		},
		{
			Name: "list_vaults", ReadOnly: true, Result: gives[memory.Vaults](),
			Description: "List all vaults with their ids. Begin here to find a memory other than default.",
			Call: remembers(t, func(ctx context.Context, b *memory.Service, c memory.Caller, _ Args) (memory.Vaults, error) {
				return b.Vaults(ctx, c)
			}),
		},
		{
			Name: "create_memory_in_vault", Result: gives[memory.Memory](),
			Description: "Make a memory: a list of entries with a context document. Ask the user for consent first. Each project has a memory already, default.",
			Params:      params(vault, title, may("memory_type", "A word for its kind: lower-case letters, digits, hyphens, underscores.").by("chat"), about),
			Call: keeps(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (memory.Memory, memory.WriteInfo, error) {
				return b.CreateMemory(ctx, c, memory.NewMemory{
					VaultID: a.String("vault_id"), Title: a.String("title"), MemoryType: a.String("memory_type"), Description: a.String("description"),
				})
			}),
		},
		{
			Name: "list_memories", ReadOnly: true, Result: gives[memory.Memories](),
			Description: "List the memories of a vault with their ids.", Params: params(vault),
			Call: remembers(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (memory.Memories, error) {
				return b.Memories(ctx, c, a.String("vault_id"))
			}),
		},
		{
			Name: "get_memory", ReadOnly: true, Result: gives[memory.Memory](),
			Description: "Look up one memory: its title, type, description and vault. Its entries are read by list_entries.", Params: params(memoryParam()),
			Call: remembers(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (memory.Memory, error) {
				return b.Memory(ctx, c, a.String("memory_id"))
			}),
		},
	}
}

// shownEntry is what get_inflight_entry answers.
type shownEntry struct {
	Entry memory.Inflight `json:"entry"`
}

func (t memoryTools) entryTools() []Tool {
	page := count("limit", 25, "How many entries.").least(1).most(50)
	user := must("user_id", "Your user's id: the actorId of every vault and entry of yours.")
	return []Tool{
		{
			Name: "add_entry", Words: "remember save store note memorize keep", Lean: true, Result: gives[memory.Added](),
			Description: "Keep a text for later sessions and other devices, word for word: a fact, a preference, a lesson. Write it so that it explains itself.",
			Brief:       "Keep a text for later sessions and other devices.",
			Params: params(
				memoryParam(), must("raw_entry", "The text to keep, at most 9,000 characters.").lean("The text."),
				must("summary", "What it says, in one line of at most 512 characters.").lean(""),
				may("tags", "Words to filter by: an object of texts, such as {\"topic\":\"billing\"}.").of(Object),
				may("metadata", "Anything else to keep with it, at most 16 KiB of JSON.").of(Object), sessionOfText(),
			),
			Call: keeps(t, addEntry),
		},
		{
			Name: "list_entries", Words: "remembered", Aliases: []string{"get_entries"}, ReadOnly: true, Result: gives[memory.Listed](),
			Description: "List the committed entries of a memory, newest first, a page at a time. next_before and next_after are the cursors of the next pages.",
			Params: params(
				memoryParam(), page, may("before", "Only what is older: a time (RFC 3339) or an entry's id."),
				may("after", "The page that is newer than this: a time or an entry's id. Not with before."),
				may("tags", "Only entries with all of these tags, each written KEY:VALUE.").of(Strings), may("session_id", "Only entries of this session."),
			),
			Call: remembers(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (memory.Listed, error) {
				return b.ListEntries(ctx, c, memory.ListArgs{
					MemoryID: a.String("memory_id"), Limit: a.count("limit"), Before: a.String("before"), After: a.String("after"),
					Tags: a.Strings("tags"), SessionID: a.String("session_id"),
				})
			}),
		},
		{
			Name: "get_entry", ReadOnly: true, Result: gives[memory.Entry](),
			Description: "Read one committed entry of a memory, whole.", Params: params(memoryParam(), must("entry_id", "The entry's id.")),
			Call: remembers(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (memory.Entry, error) {
				return b.GetEntry(ctx, c, a.String("memory_id"), a.String("entry_id"))
			}),
		},
		{
			Name: "list_inflight_entries", ReadOnly: true, Result: gives[memory.InflightList](),
			Description: "List the entries stored on this device that the hub has not confirmed, oldest first. Without a hub the list is always empty.",
			Params:      params(user, memoryParam(), page),
			Call: remembers(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (memory.InflightList, error) {
				return b.ListInflight(ctx, c, a.String("memory_id"), a.count("limit"))
			}),
		},
		{
			Name: "get_inflight_entry", ReadOnly: true, Result: gives[shownEntry](),
			Description: "Read one entry that the hub has not confirmed. Once it has, the error already_committed says so.",
			Params:      params(user, memoryParam(), must("local_id", "The localId that add_entry returned, such as pending-7.")),
			Call: remembers(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (shownEntry, error) {
				e, err := b.GetInflight(ctx, c, a.String("memory_id"), a.String("local_id"))
				return shownEntry{e}, err
			}),
		},
	}
}

// addEntry wants a summary, which other edges leave to the caller (memories §4).
func addEntry(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (memory.Added, memory.WriteInfo, error) {
	if strings.TrimSpace(a.String("summary")) == "" {
		return memory.Added{}, memory.WriteInfo{}, unsound("summary", "summary is required")
	}
	e := memory.NewEntry{
		MemoryID: a.String("memory_id"), RawEntry: a.String("raw_entry"), Summary: a.String("summary"), Metadata: a.Object("metadata"), SessionID: a.String("session_id"),
	}
	if raw := a.Object("tags"); raw != nil {
		if json.Unmarshal(raw, &e.Tags) != nil {
			return memory.Added{}, memory.WriteInfo{}, unsound("tags", "tags must be an object of strings")
		}
	}
	return b.AddEntry(ctx, c, e)
}

func (t memoryTools) contextTools() []Tool {
	return []Tool{
		{
			Name: "get_context", ReadOnly: true, Result: givesEither[memory.Document, memory.PastDocument](),
			Description: "Read a memory's context document: one Markdown text that sums up what the memory holds. Read it before you use the memory.",
			Params:      params(memoryParam(), momentParam()),
			Call: remembers(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (TextAndValue, error) {
				if at := a.String("at"); at != "" {
					d, err := b.GetContextAt(ctx, c, a.String("memory_id"), at)
					return TextAndValue{Text: cmp.Or(d.Markdown, d.At.Note), Value: d}, err
				}
				d, err := b.GetContext(ctx, c, a.String("memory_id"))
				return TextAndValue{Text: d.Markdown, Value: d}, err
			}),
		},
		{
			Name: "update_context", Aliases: []string{"put_context"}, Result: gives[memory.Document](),
			Description: "Replace a memory's context document, whole. Read it with get_context first and keep what is still true.",
			Params: params(
				memoryParam(), must("session_id", "The session that writes it: its id, as recall and search show it."),
				must("markdown", "The whole new document in Markdown, at most 5,000 characters.").or("content"),
			),
			Call: keeps(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (memory.Document, memory.WriteInfo, error) {
				return b.UpdateContext(ctx, c, memory.NewDocument{MemoryID: a.String("memory_id"), SessionID: a.String("session_id"), Markdown: a.String("markdown")})
			}),
		},
		{
			Name: "await_consistency", ReadOnly: true, Result: gives[consistent](),
			Description: "Wait until the hub has confirmed what this device wrote to a memory. Without a hub it returns at once.",
			Params: params(
				memoryParam(), count("timeout_ms", 30_000, "How long to wait, in milliseconds; 0 looks once.").least(0).most(300_000),
			),
			Call: remembers(t, func(ctx context.Context, b *memory.Service, c memory.Caller, a Args) (TextAndValue, error) {
				err := b.AwaitConsistency(ctx, c, a.String("memory_id"), memory.AwaitFor(a.Int64("timeout_ms")))
				return TextAndValue{Text: "consistent", Value: consistent{"consistent"}}, err
			}),
		},
	}
}

// consistent is what await_consistency answers.
type consistent struct {
	Status string `json:"status"`
}
