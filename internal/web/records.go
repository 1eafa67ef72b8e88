package web

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"

	"cairn/internal/record"
)

// recordsPage is the records of a project as a tree, and one of them.
type recordsPage struct {
	Project  string                  `json:"project"`
	Projects []record.ProjectSummary `json:"-"`
	At       string                  `json:"at,omitempty"` // the moment of the past that is shown
	State    record.State            `json:"state,omitempty"`
	States   []facet                 `json:"states"`
	Tree     []node                  `json:"records"`
	One      *record.Record          `json:"record,omitempty"`
	History  []record.HistoryItem    `json:"history,omitempty"` // newest first
	Now      string                  `json:"-"`                 // the address of the same page without At
}

// node is a record in the tree.
type node struct {
	record.Ref
	Depth int    `json:"depth"`
	Path  string `json:"-"`
	Here  bool   `json:"-"`
}

func recordPath(project, id string) string {
	return "/records/" + url.PathEscape(project) + "/" + url.PathEscape(id)
}

// firstRecords sends to the records of the project in which most is open.
func (s *Site) firstRecords(r *http.Request, v Visitor, _ place) (Response, error) {
	projects, err := s.cairn.Records().ListProjects(r.Context())
	if err != nil {
		return Response{}, err
	}
	if len(projects) == 0 {
		return s.show(r, v, "records", "Records", &recordsPage{States: []facet{}, Tree: []node{}})
	}
	most := slices.MaxFunc(projects, func(a, b record.ProjectSummary) int {
		return cmp.Or(cmp.Compare(a.OpenRecords, b.OpenRecords), cmp.Compare(a.Tick, b.Tick))
	})
	return Response{To: "/records/" + url.PathEscape(most.ID)}, nil
}

func (s *Site) records(r *http.Request, v Visitor, at place) (Response, error) {
	ctx, q := r.Context(), r.URL.Query()
	p := &recordsPage{Project: at.key, At: q.Get("at"), State: record.State(q.Get("state")), States: []facet{}, Tree: []node{}, Now: with(r.URL, "at", "")}
	var err error
	if p.Projects, err = s.cairn.Records().ListProjects(ctx); err != nil {
		return Response{}, err
	}
	c := record.Caller{ProjectID: at.key}
	all, err := s.cairn.Records().List(ctx, record.ListArgs{Caller: c, Roots: true, Depth: math.MaxInt, At: p.At})
	if err != nil {
		return Response{}, err
	}
	p.count(r, all)
	p.Tree = treeOf(all, p.State, at.key, at.id, p.At)
	title := "Records of " + at.key
	if at.id != "" {
		one, err := s.cairn.Records().Get(ctx, record.GetRefArgs{Caller: c, ID: at.id, At: p.At})
		if err != nil {
			return Response{}, err
		}
		p.One, title = &one, one.ID+" "+one.Title
		if p.History, err = s.cairn.Records().History(ctx, record.HistoryArgs{Caller: c, ID: at.id, At: p.At}); err != nil {
			return Response{}, err
		}
		slices.Reverse(p.History)
	}
	return s.show(r, v, "records", title, p)
}

// count makes the links that filter by state.
func (p *recordsPage) count(r *http.Request, all []record.Ref) {
	for _, state := range []record.State{record.Open, record.Later, record.Resolved, record.Discarded} {
		f := facet{Name: string(state), Chosen: state == p.State, Path: with(r.URL, "state", string(state))}
		for _, ref := range all {
			if ref.State == state {
				f.N++
			}
		}
		if f.Chosen {
			f.Path = with(r.URL, "state", "")
		}
		p.States = append(p.States, f)
	}
}

// treeOf puts each record below its parent. Of a state only its records remain, with what
// is above them.
func treeOf(all []record.Ref, state record.State, project, here, at string) []node {
	below := map[string][]record.Ref{}
	known := map[string]bool{}
	for _, ref := range all {
		known[ref.ID] = true
	}
	for _, ref := range all {
		parent := ""
		if ref.ParentID != nil && known[*ref.ParentID] {
			parent = *ref.ParentID
		}
		below[parent] = append(below[parent], ref)
	}
	suffix := ""
	if at != "" {
		suffix = "?at=" + url.QueryEscape(at)
	}
	var grow func(parent string, depth int) []node
	grow = func(parent string, depth int) (out []node) {
		for _, ref := range below[parent] {
			under := grow(ref.ID, depth+1)
			if state == "" || ref.State == state || len(under) > 0 {
				out = append(append(out, node{ref, depth, recordPath(project, ref.ID) + suffix, ref.ID == here}), under...)
			}
		}
		return out
	}
	return append([]node{}, grow("", 0)...)
}
