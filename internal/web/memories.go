package web

import (
	"context"
	"net/http"

	"cairn/internal/fault"
	"cairn/internal/memory"
)

// memoriesPage is what was kept: memories by vault, and one of them with its entries.
type memoriesPage struct {
	Vaults  []vault          `json:"vaults"`
	One     *memory.Memory   `json:"memory,omitempty"`
	Context *memory.Document `json:"context,omitempty"` // nil where the memory has none
	Entries *memory.Listed   `json:"entries,omitempty"`
	Older   string           `json:"older,omitempty"` // address of the next page, "" for none
}

type vault struct {
	memory.Vault
	Memories []memory.Memory `json:"memories"`
}

// remembers reads from the memories as the owner of the store.
func (s *Site) remembers(ctx context.Context, read func(context.Context, *memory.Service, memory.Caller) error) error {
	return s.cairn.Memories().Read(ctx, memory.Caller{}, read)
}

func (s *Site) memories(r *http.Request, v Visitor, at place) (Response, error) {
	p := &memoriesPage{Vaults: []vault{}}
	title := "Memories"
	err := s.remembers(r.Context(), func(ctx context.Context, b *memory.Service, c memory.Caller) error {
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
		if at.id == "" {
			return nil
		}
		m, err := b.Memory(ctx, c, at.id)
		if err != nil {
			return err
		}
		p.One, title = &m, m.Title
		return p.fill(ctx, b, c, r)
	})
	if err == nil && at.id != "" && p.One == nil {
		err = fault.Newf(fault.NotFound, "not_found", "memory %.60q not found", at.id)
	}
	if err != nil {
		return Response{}, err
	}
	return s.show(r, v, "memories", title, p)
}

// fill reads the context and one page of entries of the chosen memory.
func (p *memoriesPage) fill(ctx context.Context, b *memory.Service, c memory.Caller, r *http.Request) error {
	doc, err := b.GetContext(ctx, c, p.One.MemoryID)
	if err == nil && doc.Markdown != "" {
		p.Context = &doc
	} else if err != nil && fault.As(err).Kind != fault.NotFound {
		return err
	}
	list, err := b.ListEntries(ctx, c, memory.ListArgs{MemoryID: p.One.MemoryID, Limit: rowsPerPage, Before: r.URL.Query().Get("before")})
	if err != nil {
		return err
	}
	p.Entries = &list
	if n := len(list.Entries); n == rowsPerPage {
		p.Older = with(r.URL, "before", list.Entries[n-1].EntryID)
	}
	return nil
}
