package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/prompts"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/retrieval"
	"cairn/internal/memory/vaults"
)

func listVaults(a *memoryRequest) (memoryResponse, error) {
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (vaults.Vaults, error) {
		return b.Vaults(ctx, c)
	})
}

func createVault(a *memoryRequest) (memoryResponse, error) {
	body, err := a.body()
	if err != nil {
		return memoryResponse{}, err
	}
	v := vaults.NewVault{Title: body.string("title"), Description: body.string("description")}
	if err := a.done(body); err != nil {
		return memoryResponse{}, err
	}
	return writing(a, http.StatusCreated, func(ctx context.Context, b *memories.Service, c memory.Caller) (memory.Vault, memory.WriteInfo, error) {
		return b.CreateVault(ctx, c, v)
	})
}

func getVault(a *memoryRequest) (memoryResponse, error) {
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (memory.Vault, error) {
		return b.Vault(ctx, c, a.vars[0])
	})
}

func deleteVault(a *memoryRequest) (memoryResponse, error) {
	return deleting(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (memory.WriteInfo, error) {
		return b.DeleteVault(ctx, c, a.vars[0])
	})
}

func listMemories(a *memoryRequest) (memoryResponse, error) {
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (vaults.Memories, error) {
		return b.Memories(ctx, c, a.vars[0])
	})
}

func createMemory(a *memoryRequest) (memoryResponse, error) {
	body, err := a.body()
	if err != nil {
		return memoryResponse{}, err
	}
	m := vaults.NewMemory{VaultID: a.vars[0], Title: body.string("title"), MemoryType: body.id("memoryType"), Description: body.string("description")}
	if err := a.done(body); err != nil {
		return memoryResponse{}, err
	}
	return writing(a, http.StatusCreated, func(ctx context.Context, b *memories.Service, c memory.Caller) (memory.Memory, memory.WriteInfo, error) {
		return b.CreateMemory(ctx, c, m)
	})
}

func getMemory(a *memoryRequest) (memoryResponse, error) {
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (memory.Memory, error) {
		return b.Memory(ctx, c, a.vars[0])
	})
}

func deleteMemory(a *memoryRequest) (memoryResponse, error) {
	return deleting(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (memory.WriteInfo, error) {
		return b.DeleteMemory(ctx, c, a.vars[0])
	})
}

// asSent returns an error about an argument with the argument's name in the body.
func asSent(err error, names ...string) error {
	f := fault.As(err)
	if f == nil {
		return err
	}
	field, _ := f.Details["field"].(string)
	for i := 0; i+1 < len(names); i += 2 {
		if field == names[i] {
			e := *f
			e.Message, e.Hint = strings.ReplaceAll(f.Message, names[i], names[i+1]), strings.ReplaceAll(f.Hint, names[i], names[i+1])
			e.Details = maps.Clone(f.Details)
			e.Details["field"] = names[i+1]
			return &e
		}
	}
	return err
}

func addEntry(a *memoryRequest) (memoryResponse, error) {
	body, err := a.body()
	if err != nil {
		return memoryResponse{}, err
	}
	e := contents.NewEntry{
		MemoryID: a.vars[0], RawEntry: body.string("rawEntry"), Summary: body.string("summary"), Tags: body.tags(),
		Metadata: body.object("metadata"), SessionID: body.id("sessionId"),
	}
	body.take("creationTime") // only the server sets it (memories §2)
	if err := a.done(body); err != nil {
		return memoryResponse{}, err
	}
	out, err := writing(a, http.StatusCreated, func(ctx context.Context, b *memories.Service, c memory.Caller) (entries.Added, memory.WriteInfo, error) {
		return b.AddEntry(ctx, c, e)
	})
	if added, ok := out.body.(entries.Added); ok && added.Status == entries.Enqueued {
		out.status = http.StatusAccepted
	}
	return out, asSent(err, "session_id", "sessionId")
}

func listEntries(a *memoryRequest) (memoryResponse, error) {
	l := entries.ListArgs{MemoryID: a.vars[0], Before: a.query.id("before"), After: a.query.id("after"), Tags: a.query.texts("tag"), SessionID: a.query.id("session_id")}
	if n := a.query.number("limit"); n != nil {
		l.Limit = *n
	}
	for _, tag := range l.Tags {
		if !strings.Contains(tag, ":") {
			a.query.fail(invalid("tag", "tag is of the form key:value"))
		}
	}
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (entries.Listed, error) {
		return b.ListEntries(ctx, c, l)
	})
}

func getEntry(a *memoryRequest) (memoryResponse, error) {
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (contents.Entry, error) {
		return b.GetEntry(ctx, c, a.vars[0], a.vars[1])
	})
}

func patchEntry(a *memoryRequest) (memoryResponse, error) {
	body, err := a.body()
	if err != nil {
		return memoryResponse{}, err
	}
	p := entries.Patch{Tags: body.tags()}
	if text, there := body.text("summary"); there {
		p.Summary = &text
	}
	if err := a.done(body); err != nil {
		return memoryResponse{}, err
	}
	return writing(a, http.StatusOK, func(ctx context.Context, b *memories.Service, c memory.Caller) (contents.Entry, memory.WriteInfo, error) {
		return b.PatchEntry(ctx, c, a.vars[0], a.vars[1], p)
	})
}

func correctEntry(a *memoryRequest) (memoryResponse, error) {
	body, err := a.body()
	if err != nil {
		return memoryResponse{}, err
	}
	k := entries.Correction{CorrectedEntryID: body.string("correctedEntryId"), Reason: body.string("reason")}
	if err := a.done(body); err != nil {
		return memoryResponse{}, err
	}
	return writing(a, http.StatusOK, func(ctx context.Context, b *memories.Service, c memory.Caller) (contents.Entry, memory.WriteInfo, error) {
		return b.CorrectEntry(ctx, c, a.vars[0], a.vars[1], k)
	})
}

func deleteEntry(a *memoryRequest) (memoryResponse, error) {
	return deleting(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (memory.WriteInfo, error) {
		return b.DeleteEntry(ctx, c, a.vars[0], a.vars[1])
	})
}

func listInflight(a *memoryRequest) (memoryResponse, error) {
	limit := a.query.number("limit")
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (entries.InflightList, error) {
		return b.ListInflight(ctx, c, a.vars[0], orZero(limit))
	})
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func getInflight(a *memoryRequest) (memoryResponse, error) {
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (map[string]entries.Inflight, error) {
		e, err := b.GetInflight(ctx, c, a.vars[0], a.vars[1])
		return map[string]entries.Inflight{"entry": e}, err
	})
}

func getContext(a *memoryRequest) (memoryResponse, error) {
	at := a.query.string("at")
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	if at != "" {
		return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (entries.PastDocument, error) {
			return b.GetContextAt(ctx, c, a.vars[0], at)
		})
	}
	out, err := reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (contents.Document, error) {
		return b.GetContext(ctx, c, a.vars[0])
	})
	if d, ok := out.body.(contents.Document); ok && err == nil && wantsText(a.r.Header.Values("Accept")) {
		out.body = plain(d.Markdown)
		out.header = map[string]string{"Session-Id": d.SessionID, "Updated-At": d.UpdatedAt.String(), "Synced": strconv.FormatBool(d.Synced)}
	}
	return out, err
}

// wantsText reports whether Accept names plain text, and does not name JSON before it.
func wantsText(accept []string) bool {
	text, object := 0.0, 0.0
	for _, one := range strings.Split(strings.Join(accept, ","), ",") {
		kind, rest, _ := strings.Cut(one, ";")
		q := 1.0
		for _, parameter := range strings.Split(rest, ";") {
			if value, ok := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(parameter, " ", "")), "q="); ok {
				if n, err := strconv.ParseFloat(value, 64); err == nil {
					q = n
				}
			}
		}
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "text/plain":
			text = q
		case "application/json":
			object = q
		}
	}
	return text > object
}

func putContext(a *memoryRequest) (memoryResponse, error) {
	kind := mediaType(a.r.Header.Values("Content-Type"))
	session, inQuery := a.query.text("session_id")
	d := entries.NewDocument{MemoryID: a.vars[0], SessionID: session}
	if kind == "text/plain" || kind == "" && inQuery {
		text, err := a.raw()
		if err == nil {
			err = a.done()
		}
		if err != nil {
			return memoryResponse{}, err
		}
		d.Markdown = string(text)
	} else {
		body, err := a.body()
		if err != nil {
			return memoryResponse{}, err
		}
		if there, ok := body.text("session_id"); ok {
			if d.SessionID = there; inQuery && there != session {
				body.fail(invalid("session_id", "the query and the body name two sessions"))
			}
		}
		d.Markdown = body.markdown()
		if err := a.done(body); err != nil {
			return memoryResponse{}, err
		}
	}
	return writing(a, http.StatusCreated, func(ctx context.Context, b *memories.Service, c memory.Caller) (contents.Document, memory.WriteInfo, error) {
		return b.UpdateContext(ctx, c, d)
	})
}

// markdown takes a context, which has two possible names.
func (a *arguments) markdown() string {
	text, there := a.text("markdown")
	content, too := a.text("content")
	if there && too && text != content {
		a.fail(invalid("markdown", "markdown and content have different values"))
	}
	if !there {
		return content
	}
	return text
}

func getTop(a *memoryRequest) (memoryResponse, error) {
	k := orZero(a.query.number("k"))
	query, asks := a.query.text("query")
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	if asks {
		return a.search(retrieval.SearchArgs{MemoryID: a.vars[0], Query: query, TopK: k})
	}
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (entries.Listed, error) {
		return b.ListEntries(ctx, c, entries.ListArgs{MemoryID: a.vars[0], Limit: int64(retrieval.TopK(k))})
	})
}

func search(a *memoryRequest) (memoryResponse, error) {
	body, err := a.body()
	if err != nil {
		return memoryResponse{}, err
	}
	s := retrieval.SearchArgs{
		MemoryID: body.required("memoryId"), Query: body.string("query"), TopK: body.count("topK"), Mode: body.id("mode"),
		Tags: body.tags(), SessionID: body.id("sessionId"),
	}
	if err := a.done(body); err != nil {
		return memoryResponse{}, err
	}
	out, err := a.search(s)
	return out, asSent(err, "memory_id", "memoryId", "session_id", "sessionId")
}

func (a *memoryRequest) search(s retrieval.SearchArgs) (memoryResponse, error) {
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (retrieval.Found, error) {
		return b.Search(ctx, c, s)
	})
}

func awaitCommit(a *memoryRequest) (memoryResponse, error) {
	a.log.WarnContext(a.r.Context(), "await_commit is deprecated, await_consistency replaces it", "request_id", a.w.Header().Get("Request-Id"))
	return awaitConsistency(a)
}

func awaitConsistency(a *memoryRequest) (memoryResponse, error) {
	body, err := a.body()
	if err != nil {
		return memoryResponse{}, err
	}
	timeout := replication.AwaitFor(body.integer("timeout_ms"))
	if err := a.done(body); err != nil {
		return memoryResponse{}, err
	}
	a.clearReadDeadline()
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (map[string]string, error) {
		return map[string]string{"status": "consistent"}, b.AwaitConsistency(ctx, c, a.vars[0], timeout)
	})
}

func exportMemory(a *memoryRequest) (memoryResponse, error) {
	after, limit := a.query.id("after"), orZero(a.query.number("limit"))
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (lines, error) {
		page, err := b.Export(ctx, c, a.vars[0], after, limit)
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		for _, entry := range page.Entries {
			if err == nil {
				err = e.Encode(entry)
			}
		}
		return text.Bytes(), err
	})
}

func importMemory(a *memoryRequest) (memoryResponse, error) {
	text, err := a.raw()
	if err == nil {
		err = a.done()
	}
	if err != nil {
		return memoryResponse{}, err
	}
	return writing(a, http.StatusOK, func(ctx context.Context, b *memories.Service, c memory.Caller) (items.Imported, memory.WriteInfo, error) {
		done, err := b.Import(ctx, c, a.vars[0], bytes.NewReader(text), nil)
		return done, memory.WriteInfo{}, err
	})
}

func getPrompts(a *memoryRequest) (memoryResponse, error) {
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	return reading(a, func(_ context.Context, b *memories.Service, _ memory.Caller) (prompts.Prompts, error) {
		p, warnings, err := b.Prompts(a.vars[0])
		for _, w := range warnings {
			a.log.WarnContext(a.r.Context(), "a prompt of the settings is not used", "why", w)
		}
		return p, err
	})
}

func replicationStatus(a *memoryRequest) (memoryResponse, error) {
	if err := a.done(); err != nil {
		return memoryResponse{}, err
	}
	status, err := a.config.Cairn.Replication().Status(a.r.Context(), a.caller, false)
	return memoryResponse{status: http.StatusOK, body: status}, err
}

// commanding returns an error if the caller is not allowed to control the replication.
func (a *memoryRequest) commanding() error {
	if a.caller.Level == memory.Admin {
		return nil
	}
	return fault.New(fault.Denied, memory.CodeForbidden, "the token's level is too low for this").WithHint("use a token of level admin")
}

func pauseReplication(a *memoryRequest) (memoryResponse, error)  { return a.setPaused(true) }
func resumeReplication(a *memoryRequest) (memoryResponse, error) { return a.setPaused(false) }

func (a *memoryRequest) setPaused(paused bool) (memoryResponse, error) {
	if err := a.requireNoBody(); err != nil {
		return memoryResponse{}, err
	}
	if err := a.commanding(); err != nil {
		return memoryResponse{}, err
	}
	return writing(a, http.StatusOK, func(ctx context.Context, b *memories.Service, _ memory.Caller) (map[string]bool, memory.WriteInfo, error) {
		return map[string]bool{"paused": paused}, memory.WriteInfo{}, b.SetPaused(ctx, paused)
	})
}

func retryFailed(a *memoryRequest) (memoryResponse, error) {
	return a.failures(false, (*memories.Service).Retry)
}
func discardFailed(a *memoryRequest) (memoryResponse, error) {
	return a.failures(true, (*memories.Service).Discard)
}

// failures retries or discards refused changes: those in local_ids, or all. If loses is set, the
// request must contain local_ids or all.
func (a *memoryRequest) failures(loses bool, do func(*memories.Service, context.Context, memory.Caller, []string) (int, error)) (memoryResponse, error) {
	body, err := a.body()
	if err != nil {
		return memoryResponse{}, err
	}
	locals, all := body.texts("local_ids"), body.boolean("all")
	if loses && len(locals) == 0 && !all {
		body.fail(invalid("local_ids", "local_ids or all is required"))
	}
	if all && len(locals) > 0 {
		body.fail(invalid("local_ids", "give local_ids or all"))
	}
	if err := a.done(body); err != nil {
		return memoryResponse{}, err
	}
	return reading(a, func(ctx context.Context, b *memories.Service, c memory.Caller) (map[string]int, error) {
		n, err := do(b, ctx, c, locals)
		if err == nil && n == 0 && len(locals) > 0 {
			err = fault.New(fault.NotFound, memory.CodeNotFound, "none of these changes was refused").WithHint("GET /v1/replication lists refused changes")
		}
		return map[string]int{"changes": n}, err
	})
}

func drainReplication(a *memoryRequest) (memoryResponse, error) {
	if err := a.requireNoBody(); err != nil {
		return memoryResponse{}, err
	}
	if err := a.commanding(); err != nil {
		return memoryResponse{}, err
	}
	a.clearReadDeadline()
	r := a.config.Cairn.Replication()
	err := r.Drain(a.r.Context(), a.caller, a.log)
	var status cairn.ReplicationStatus
	if err == nil {
		status, err = r.Status(a.r.Context(), a.caller, false)
	}
	return memoryResponse{status: http.StatusOK, body: status}, err
}
