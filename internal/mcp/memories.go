package mcp

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/mcp/toolargs"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/vaults"
)

// MemoryTools returns the tools of memories with the names and parameters of memories §3.
// Their errors have the codes of memories §9. project is the default project, whose own
// memory is `default`; "" means the project of the working directory. Over HTTP the
// project in the URL takes precedence.
func MemoryTools(m cairn.Memories, project string) []Tool {
	t := memoryTools{memories: m, project: project}
	tools := slices.Concat(t.vaultTools(), t.entryTools(), t.searchTools(), t.contextTools())
	texts := map[string]string{
		"memory_id": "The memory: its id, or default for this project's own.",
		"vault_id":  "The vault's id, as list_vaults returns it.",
		"user_id":   "Your user's id. Never required: a call acts for the user of this device or of the token, and any other id is refused.",
		"title":     "Letters, digits and hyphens, at most 50; unique.",

		"description":     "Its purpose, at most 500 characters.",
		"idempotency_key": onceText,
		"at":              momentText,
	}
	for i := range tools {
		completeMemory(&tools[i], texts)
	}
	return tools
}

// completeMemory adds the common properties of the tools of memories. Arguments without
// an effect on the tool are accepted and not listed.
func completeMemory(t *Tool, texts map[string]string) {
	t.Errors, t.checksLevel, t.strict = ErrorStatus, true, true // strict: memories §5.3
	toolargs.WithTexts(t.Params, texts)
	hasMemory := slices.ContainsFunc(t.Params, func(p toolargs.Param) bool { return p.Name == "memory_id" })
	for i := range t.Params {
		p := &t.Params[i]
		p.Style = toolargs.MemoryStyle
		switch p.Name {
		case "project":
			p.Unlisted = !hasMemory
		case "idempotency_key", "request_id":
			p.Unlisted = t.ReadOnly
		}
	}
}

// memoryCommon are the arguments of every tool of memories (memories §3).
type memoryCommon struct {
	UserID    string `arg:"user_id,nonempty"`
	Project   string `arg:"project" about:"The project whose own memory default is. Omitted: the current one."`
	Key       string `arg:"idempotency_key"`
	RequestID string `arg:"request_id" about:"Id of this attempt, for the log."`
}

type memoryTools struct {
	memories cairn.Memories
	project  string
}

// asArgError converts an error about a JSON field to one about the tool's argument.
func asArgError(err error) error {
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

// caller returns the caller of the memory service.
func (t memoryTools) caller(c Call) memory.Caller {
	in := c.common.(*memoryCommon)
	return memory.Caller{
		User: c.bearer.User, Level: c.bearer.Level, UserID: in.UserID, Key: cmp.Or(in.Key, c.key), Trace: c.trace,
		ProjectID: cmp.Or(in.Project, c.ProjectOf(t.project)), Remote: c.Remote, Transport: c.Connection,
	}
}

// readMemory returns a tool that calls a reading method of memories.Service.
func readMemory[A, T any](t memoryTools, tool Tool, ask func(b *memories.Service, ctx context.Context, c memory.Caller, a A) (T, error)) Tool {
	tool.ReadOnly, tool.common = true, reflect.TypeFor[memoryCommon]()
	return tool.with(reflect.TypeFor[A](), reflect.TypeFor[T](), func(ctx context.Context, c Call, in any) (out any, err error) {
		err = t.memories.Read(ctx, t.caller(c), func(ctx context.Context, b *memories.Service, c memory.Caller) (err error) {
			out, err = ask(b, ctx, c, *in.(*A))
			return err
		})
		return out, asArgError(err)
	})
}

// writeMemory returns a tool that calls a writing method of memories.Service.
func writeMemory[A, T any](t memoryTools, tool Tool, do func(b *memories.Service, ctx context.Context, c memory.Caller, a A) (T, memory.WriteInfo, error)) Tool {
	tool.common = reflect.TypeFor[memoryCommon]()
	return tool.with(reflect.TypeFor[A](), reflect.TypeFor[T](), func(ctx context.Context, c Call, in any) (out any, err error) {
		receipt := c.receipt
		err = t.memories.Write(ctx, t.caller(c), func(ctx context.Context, b *memories.Service, c memory.Caller) (err error) {
			out, *receipt, err = do(b, ctx, c, *in.(*A))
			return err
		})
		return out, asArgError(err)
	})
}

// Arguments of tools that have no type in package memory.
type (
	vaultArgs struct {
		VaultID string `arg:"vault_id,required,nonempty"`
	}
	memoryArgs struct {
		MemoryID string `arg:"memory_id,required,nonempty"`
	}
	entryArgs struct {
		memoryArgs
		EntryID string `arg:"entry_id,required,nonempty" about:"The entry's id."`
	}
	inflightArgs struct {
		UserID string `arg:"user_id,required,nonempty" about:"Your user's id: the actorId of every vault and entry of yours."`
		memoryArgs
		Limit int64 `arg:"limit,default=25,min=1,max=50" about:"Maximum number of entries."`
	}
	inflightEntryArgs struct {
		UserID string `arg:"user_id,required,nonempty" about:"Your user's id: the actorId of every vault and entry of yours."`
		memoryArgs
		LocalID string `arg:"local_id,required" about:"The localId that add_entry returned, such as pending-7."`
	}
	contextArgs struct {
		memoryArgs
		At string `arg:"at"`
	}
	awaitArgs struct {
		memoryArgs
		Timeout *int64 `arg:"timeout_ms,default=30000,min=0,max=300000" about:"How long to wait, in milliseconds; 0 checks once."`
	}
)

func (t memoryTools) vaultTools() []Tool {
	return []Tool{
		writeMemory(t, Tool{
			Name:        "create_vault",
			Description: "Create a vault: a group of memories with a title. Returns it with its id.",
		}, (*memories.Service).CreateVault),
		readMemory(t, Tool{
			Name:        "list_vaults",
			Description: "List all vaults with their ids. Begin here to find a memory other than default.",
		}, func(b *memories.Service, ctx context.Context, c memory.Caller, _ struct{}) (vaults.Vaults, error) {
			return b.Vaults(ctx, c)
		}),
		writeMemory(t, Tool{
			Name:        "create_memory_in_vault",
			Description: "Create a memory: a list of entries with a context document. Ask the user for consent first. Each project already has a memory, default.",
		}, (*memories.Service).CreateMemory),
		readMemory(t, Tool{
			Name:        "list_memories",
			Description: "List the memories of a vault with their ids.",
		}, func(b *memories.Service, ctx context.Context, c memory.Caller, a vaultArgs) (vaults.Memories, error) {
			return b.Memories(ctx, c, a.VaultID)
		}),
		readMemory(t, Tool{
			Name:        "get_memory",
			Description: "Look up one memory: its title, type, description and vault. list_entries reads its entries.",
		}, func(b *memories.Service, ctx context.Context, c memory.Caller, a memoryArgs) (memory.Memory, error) {
			return b.Memory(ctx, c, a.MemoryID)
		}),
	}
}

// inflightEntry is the result of get_inflight_entry.
type inflightEntry struct {
	Entry entries.Inflight `json:"entry"`
}

func (t memoryTools) entryTools() []Tool {
	return []Tool{
		writeMemory(t, Tool{
			Name: "add_entry", Words: "remember save store note memorize keep", Lean: true,
			Description: "Keep a text for later sessions and other devices, word for word: a fact, a preference, a lesson. Write it so that it explains itself.",
			Brief:       "Keep a text for later sessions and other devices.",
		}, func(b *memories.Service, ctx context.Context, c memory.Caller, a contents.NewEntry) (out entries.Added, info memory.WriteInfo, err error) {
			if strings.TrimSpace(a.Summary) == "" { // optional in the CLI and the JSON API (memories §4)
				return out, info, toolargs.MemoryError("summary", "summary is required")
			}
			return b.AddEntry(ctx, c, a)
		}),
		readMemory(t, Tool{
			Name: "list_entries", Words: "remembered", Aliases: []string{"get_entries"},
			Description: "List the committed entries of a memory, newest first, a page at a time. next_before and next_after are the cursors of the next pages.",
		}, (*memories.Service).ListEntries),
		readMemory(t, Tool{
			Name:        "get_entry",
			Description: "Read one committed entry of a memory, whole.",
		}, func(b *memories.Service, ctx context.Context, c memory.Caller, a entryArgs) (contents.Entry, error) {
			return b.GetEntry(ctx, c, a.MemoryID, a.EntryID)
		}),
		readMemory(t, Tool{
			Name:        "list_inflight_entries",
			Description: "List the entries stored on this device that the hub has not confirmed, oldest first. Without a hub the list is always empty.",
		}, func(b *memories.Service, ctx context.Context, c memory.Caller, a inflightArgs) (entries.InflightList, error) {
			return b.ListInflight(ctx, c, a.MemoryID, a.Limit)
		}),
		readMemory(t, Tool{
			Name:        "get_inflight_entry",
			Description: "Read one entry that the hub has not confirmed. For a confirmed entry the error is already_committed.",
		}, func(b *memories.Service, ctx context.Context, c memory.Caller, a inflightEntryArgs) (inflightEntry, error) {
			e, err := b.GetInflight(ctx, c, a.MemoryID, a.LocalID)
			return inflightEntry{e}, err
		}),
	}
}

func (t memoryTools) contextTools() []Tool {
	return []Tool{
		readMemory(t, Tool{
			Name: "get_context", Result: resultOfEither[contents.Document, entries.PastDocument](),
			Description: "Read a memory's context document: one Markdown text that summarizes the memory. Read it before you use the memory.",
		}, func(b *memories.Service, ctx context.Context, c memory.Caller, a contextArgs) (TextAndValue, error) {
			if a.At != "" {
				d, err := b.GetContextAt(ctx, c, a.MemoryID, a.At)
				return TextAndValue{Text: cmp.Or(d.Markdown, d.At.Note), Value: d}, err
			}
			d, err := b.GetContext(ctx, c, a.MemoryID)
			return TextAndValue{Text: d.Markdown, Value: d}, err
		}),
		writeMemory(t, Tool{
			Name: "update_context", Aliases: []string{"put_context"},
			Description: "Replace a memory's context document, whole. Read it with get_context first and keep what is still true.",
		}, (*memories.Service).UpdateContext),
		readMemory(t, Tool{
			Name: "await_consistency", Result: resultOf[consistent](),
			Description: "Wait until the hub has confirmed this device's writes to a memory. Without a hub it returns immediately.",
		}, func(b *memories.Service, ctx context.Context, c memory.Caller, a awaitArgs) (TextAndValue, error) {
			err := b.AwaitConsistency(ctx, c, a.MemoryID, replication.AwaitFor(a.Timeout))
			return TextAndValue{Text: "consistent", Value: consistent{"consistent"}}, err
		}),
	}
}

// consistent is the result of await_consistency.
type consistent struct {
	Status string `json:"status"`
}
