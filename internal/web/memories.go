package web

import (
	"context"
	"net/http"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
)

// memoriesPage lists the memories by vault, and shows one of them with its entries.
type memoriesPage struct {
	asOf
	Vaults   []vault            `json:"vaults"`
	One      *memory.Memory     `json:"memory,omitempty"`
	Context  *shownContext      `json:"context,omitempty"` // nil if the memory has none
	Versions []entries.Version  `json:"context_versions,omitempty"`
	Inflight []entries.Inflight `json:"inflight,omitempty"` // entries that the hub has not confirmed
	Entries  *entries.Listed    `json:"entries,omitempty"`
	Older    string             `json:"older,omitempty"` // URL of the next page, "" for none
}

// shownContext is the context document of a memory, now or at a past moment.
type shownContext struct {
	Markdown  string      `json:"markdown"`
	UpdatedAt memory.Time `json:"updated_at"`
	Conflicts int         `json:"conflicts,omitempty"` // unmerged versions
}

const (
	maxVersions = 10 // maximum versions shown of a context
	maxInflight = 20
)

type vault struct {
	memory.Vault
	Memories []memory.Memory `json:"memories"`
}

// remembers reads from the memories as the owner of the store.
func (s *Site) remembers(ctx context.Context, read func(context.Context, *memories.Service, memory.Caller) error) error {
	return s.cairn.Memories().Read(ctx, memory.Caller{}, read)
}

func (s *Site) memories(r *http.Request, v Visitor, at place) (Response, error) {
	p := &memoriesPage{asOf: s.readAsOf(r), Vaults: []vault{}}
	title := "Memories"
	err := s.remembers(r.Context(), func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		if !b.Exists() {
			return nil
		}
		all, err := b.Vaults(ctx, c)
		if err != nil {
			return err
		}
		for _, one := range all.Vaults {
			list, err := b.Memories(ctx, c, one.VaultID)
			if err != nil {
				return err
			}
			p.Vaults = append(p.Vaults, vault{one, list.Memories})
		}
		if at.key == "" {
			return nil
		}
		m, err := b.Memory(ctx, c, at.key)
		if err != nil {
			return err
		}
		p.One, title = &m, m.Title
		return p.fill(ctx, b, c, r)
	})
	if err == nil && at.key != "" && p.One == nil {
		err = fault.Newf(fault.NotFound, "not_found", "memory %.60q not found", at.key)
	}
	if err != nil {
		return Response{}, err
	}
	return s.show(r, v, "memories", title, p)
}

// fill reads the context and one page of entries of the chosen memory.
func (p *memoriesPage) fill(ctx context.Context, b *memories.Service, c memory.Caller, r *http.Request) error {
	if err := p.readContext(ctx, b, c); err != nil || p.At != "" { // entries have no past state
		return err
	}
	list, err := b.ListEntries(ctx, c, entries.ListArgs{MemoryID: p.One.MemoryID, Limit: rowsPerPage, Before: r.URL.Query().Get("before")})
	if err != nil {
		return err
	}
	p.Entries = &list
	if n := len(list.Entries); n == rowsPerPage {
		p.Older = with(r.URL, "before", list.Entries[n-1].EntryID)
	}
	return nil
}

// readContext reads the context of the chosen memory. For now it also reads the versions
// and the inflight entries.
func (p *memoriesPage) readContext(ctx context.Context, b *memories.Service, c memory.Caller) error {
	id := p.One.MemoryID
	if p.At != "" {
		doc, err := b.GetContextAt(ctx, c, id, p.At)
		if p.found(doc.At); err == nil && doc.ContextID != "" {
			p.Context = &shownContext{doc.Markdown, doc.UpdatedAt, 0}
		}
		return err
	}
	inflight, err := b.ListInflight(ctx, c, id, maxInflight)
	if err != nil {
		return err
	}
	p.Inflight = inflight.Entries
	doc, err := b.GetContext(ctx, c, id)
	switch {
	case err == nil && doc.Markdown == "", err != nil && fault.As(err).Kind == fault.NotFound:
		return nil
	case err != nil:
		return err
	}
	p.Context = &shownContext{doc.Markdown, doc.UpdatedAt, doc.Conflicts}
	versions, err := b.ContextHistory(ctx, c, id, maxVersions)
	p.Versions = versions.Versions
	return err
}
