package web

import (
	"cmp"
	"net/http"
	"slices"

	"cairn/internal/observation"
)

// worth is what agents were told in a period and whether they used it, and what the store takes.
type worth struct {
	choice
	Days     int                `json:"days"`
	Ledger   observation.Ledger `json:"ledger"`
	Sections []worthOf          `json:"-"`
	Store    measured           `json:"store"`
}

// worthOf is a section as bars: what was told and, of it, what was used.
type worthOf struct {
	observation.SectionStats
	Told, UsedWidth float64 // in percent of the largest section
}

func (s *Site) worth(r *http.Request, v Visitor, _ place) (Response, error) {
	now := s.now().Unix()
	c, err := s.choose(r, now)
	if err != nil {
		return Response{}, err
	}
	p := &worth{choice: c, Days: int((now - c.Since) / (24 * 3600))}
	if p.Ledger, err = s.cairn.Ledger(r.Context(), c.Project, p.Days); err != nil {
		return Response{}, err
	}
	if p.Store, err = s.measures(r.Context()); err != nil {
		return Response{}, err
	}
	most := 1
	for _, one := range p.Ledger.Sections {
		most = max(most, one.Tokens)
	}
	for _, one := range p.Ledger.Sections {
		told := 100 * float64(one.Tokens) / float64(most)
		p.Sections = append(p.Sections, worthOf{one, told, told * one.UseRate})
	}
	slices.SortStableFunc(p.Sections, func(a, b worthOf) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return s.show(r, v, "worth", "Worth", p)
}
