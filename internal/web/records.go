package web

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/linediff"
	"cairn/internal/record"
)

// recordsPage is the records of a project as a tree, and one of them.
type recordsPage struct {
	asOf
	Project  string                  `json:"project"`
	Projects []record.ProjectSummary `json:"-"`
	State    record.State            `json:"state,omitempty"`
	States   []facet                 `json:"states"`
	Tree     []node                  `json:"records"`
	More     int                     `json:"more_records,omitempty"` // that the tree leaves out
	One      *record.Record          `json:"record,omitempty"`
	History  []record.HistoryItem    `json:"history,omitempty"`   // newest first
	Compared *record.VersionDiff     `json:"compared,omitempty"`  // two versions that were chosen, nil for none
	Form     *recordForm             `json:"form,omitempty"`      // nil where nothing is being changed
	Others   []record.Other          `json:"conflicts,omitempty"` // versions from elsewhere that no update has followed yet, the newest first
	Authors  map[string]string       `json:"authors,omitempty"`   // agents by the sessions of the history, as far as known
	Tick     int64                   `json:"tick"`                // of the project, now
	Shown    int64                   `json:"-"`                   // the tick that the slider stands at
}

const (
	maxNodes  = 400 // records that the tree shows at once
	maxBranch = 200 // records next to each other, where the project has more than maxNodes
)

// node is a record in the tree.
type node struct {
	record.Ref
	Depth int    `json:"depth"`
	Below int    `json:"hidden_below,omitempty"` // how many records below it are not shown
	Path  string `json:"-"`
	Here  bool   `json:"-"`
}

func recordPath(project, id string) string {
	return "/records/" + url.PathEscape(project) + "/" + url.PathEscape(id)
}

// firstRecords sends to the records of the project in which most is open.
func (s *Site) firstRecords(r *http.Request, v Visitor, _ place) (Response, error) {
	if chosen := r.URL.Query().Get("project"); chosen != "" {
		return Response{To: "/records/" + url.PathEscape(chosen)}, nil
	}
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

// records shows the records of a project, or stores what a form asks for.
func (s *Site) records(r *http.Request, v Visitor, at place) (Response, error) {
	if r.Method == http.MethodPost {
		return s.sendRecord(r, v, at)
	}
	return s.recordsWith(r, v, at, nil)
}

// recordsWith shows the records with a form that was sent; nil for the one that the address
// asks for, if it does.
func (s *Site) recordsWith(r *http.Request, v Visitor, at place, sent *recordForm) (Response, error) {
	ctx, q := r.Context(), r.URL.Query()
	p := &recordsPage{asOf: s.readAsOf(r), Project: at.key, State: record.State(q.Get("state")), States: []facet{}, Tree: []node{}}
	var err error
	if p.Projects, err = s.cairn.Records().ListProjects(ctx); err != nil {
		return Response{}, err
	}
	c := record.Caller{ProjectID: at.key}
	if err := s.readTree(ctx, r, p, at); err != nil {
		return Response{}, err
	}
	for _, q := range p.Projects {
		if q.ID == at.key {
			p.Tick = q.Tick
		}
	}
	if p.Shown = p.Tick; strings.HasPrefix(p.At, "tick:") {
		p.Shown, _ = strconv.ParseInt(p.At[len("tick:"):], 10, 64) // which the records have accepted
	}
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
		if p.Authors, err = s.authors(ctx, p.History); err != nil {
			return Response{}, err
		}
		if p.At == "" {
			p.Others = openConflicts(p.History)
		}
		if from, to := q.Get("from"), q.Get("to"); from != "" && to != "" {
			d, err := s.cairn.Records().Diff(ctx, record.DiffArgs{Caller: c, ID: at.id, From: "v" + from, To: "v" + to})
			if err != nil {
				return Response{}, err
			}
			p.Compared = &d
		}
	}
	if p.Form = sent; sent == nil {
		p.Form = p.newRecordForm(r)
	} else if p.One != nil && sent.Do == doState {
		sent.States = record.NextStates(p.One.State)
	}
	a, err := s.show(r, v, "records", title, p)
	a.Forms = p.Form != nil || len(p.Others) > 0
	return a, err
}

// openConflicts are the versions that are kept beside the newest one, as long as no update has
// followed.
func openConflicts(history []record.HistoryItem) (list []record.Other) {
	for _, h := range history {
		switch {
		case h.Other != nil:
			list = append(list, *h.Other)
		case h.ChangeType != record.StateTransition:
			return list
		}
	}
	return list
}

// Taken is the form that stores a text in place of the two versions of a conflict.
func (p *recordsPage) Taken(button, title, summary, body, token string) takenText {
	return takenText{Button: button, Title: title, Summary: summary, Body: body, FormToken: token, Project: p.Project, ID: p.One.ID, Version: p.One.Version, Tick: newestTick(p.History)}
}

// takenText is what the template of that form needs.
type takenText struct {
	Button, Title, Summary, Body, FormToken, Project, ID string
	Version                                              int
	Tick                                                 int64
}

// Unified is the difference between the stored text and that of a version from elsewhere.
func (p *recordsPage) Unified(other record.Other) string {
	return linediff.Unified(fmt.Sprintf("%s v%d", p.One.ID, p.One.Version), "from elsewhere", p.One.Body, other.Body)
}

// readTree reads the records for the tree: all of a small project, else the roots, what leads
// to the chosen record and what is next to and below it; of one state the first ones.
func (s *Site) readTree(ctx context.Context, r *http.Request, p *recordsPage, at place) error {
	c, counts := record.Caller{ProjectID: at.key}, map[record.State]int{}
	var err error
	if p.At == "" {
		if counts, err = s.cairn.Records().CountStates(ctx, c); err != nil {
			return err
		}
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	if total > maxNodes {
		p.count(r, counts)
		return s.readBranches(ctx, p, at, total)
	}
	all, err := s.cairn.Records().List(ctx, record.ListArgs{Caller: c, Roots: true, Depth: math.MaxInt, At: p.At})
	if err != nil {
		return err
	}
	for _, ref := range all {
		if p.At != "" {
			counts[ref.State]++
		}
	}
	p.count(r, counts)
	p.Tree, p.More = prune(treeOf(all, p.State, at.key, at.id, p.At), maxNodes)
	return nil
}

// readBranches reads a part of a tree of many records, total of them.
func (s *Site) readBranches(ctx context.Context, p *recordsPage, at place, total int) error {
	c := record.Caller{ProjectID: at.key}
	list := func(a record.ListArgs) ([]record.Ref, error) {
		a.Caller, a.Limit = c, maxBranch+1
		return s.cairn.Records().List(ctx, a)
	}
	if p.State != "" {
		all, err := list(record.ListArgs{States: []record.State{p.State}})
		for _, ref := range all {
			p.Tree = append(p.Tree, node{Ref: ref, Path: recordPath(at.key, ref.ID) + "?state=" + string(p.State), Here: ref.ID == at.id})
		}
		p.Tree, p.More = cutBranch(p.Tree)
		return err
	}
	roots, err := list(record.ListArgs{Roots: true})
	if err != nil {
		return err
	}
	below := map[string][]record.Ref{"": roots}
	for id := at.id; id != ""; {
		ref, err := s.cairn.Records().GetRef(ctx, record.GetRefArgs{Caller: c, ID: id})
		if err != nil {
			return err
		}
		if below[ref.ID], err = list(record.ListArgs{ParentID: ref.ID}); err != nil {
			return err
		}
		parent := told(ref.ParentID)
		if siblings := below[parent]; !slices.ContainsFunc(siblings, func(r record.Ref) bool { return r.ID == ref.ID }) {
			below[parent] = append([]record.Ref{ref}, siblings...)
		}
		id = parent
	}
	p.Tree, p.More = branches(below, at.key, at.id)
	return nil
}

// branches puts each known record below its parent. Of those whose records below are not known
// only the number of their children is shown. more is how many there are at least besides.
func branches(below map[string][]record.Ref, project, here string) (tree []node, more int) {
	var grow func(parent string, depth int)
	grow = func(parent string, depth int) {
		for i, ref := range below[parent] {
			if i >= maxBranch {
				more++
				break
			}
			n := node{Ref: ref, Depth: depth, Path: recordPath(project, ref.ID), Here: ref.ID == here}
			if below[ref.ID] == nil {
				n.Below = ref.ChildrenCount
			}
			tree = append(tree, n)
			grow(ref.ID, depth+1)
		}
	}
	grow("", 0)
	return tree, more
}

// cutBranch cuts a list to what is shown of one branch.
func cutBranch(list []node) ([]node, int) {
	if len(list) > maxBranch {
		return list[:maxBranch], 1
	}
	return list, 0
}

// count makes the links that filter by state.
func (p *recordsPage) count(r *http.Request, counts map[record.State]int) {
	for _, state := range []record.State{record.Open, record.Later, record.Resolved, record.Discarded} {
		f := facet{Name: string(state), N: counts[state], Chosen: state == p.State, Path: with(r.URL, "state", string(state))}
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
				out = append(append(out, node{ref, depth, 0, recordPath(project, ref.ID) + suffix, ref.ID == here}), under...)
			}
		}
		return out
	}
	return append([]node{}, grow("", 0)...)
}

// formOfRecord is what the template of the form needs.
type formOfRecord struct {
	*recordsPage
	FormToken string
}

// authors are the agents that changed a record.
func (s *Site) authors(ctx context.Context, history []record.HistoryItem) (map[string]string, error) {
	var sessions []string
	for _, h := range history {
		sessions = append(sessions, h.SessionID)
	}
	names, err := s.agents(ctx, sessions)
	out := map[string]string{}
	for id, list := range names {
		out[id] = strings.Join(list, ", ")
	}
	return out, err
}

// chosenMoment is the moment of the past that an address names: by at, or by the tick of the
// slider; "" for now.
func chosenMoment(q url.Values) string {
	at, tick := q.Get("at"), q.Get("tick")
	if at == "" && tick != "" && tick != q.Get("last") {
		return "tick:" + tick
	}
	return at
}

// prune keeps at most n nodes of a tree: deep levels go first, except those on the way to the
// chosen record, its children and its siblings. What remains says how many records below it
// are not shown. more is how many there are without such a place.
func prune(tree []node, n int) (kept []node, more int) {
	if len(tree) <= n {
		return tree, 0
	}
	parents := map[string]string{}
	for _, x := range tree {
		if x.ParentID != nil {
			parents[x.ID] = *x.ParentID
		}
	}
	way, place := wayTo(tree, parents), map[string]int{}
	const levels = 3
	for _, x := range tree {
		near := way[x.ID] || way[parents[x.ID]]
		if near || len(kept) < n && (x.Depth == 0 || x.Depth < levels && len(tree) <= 10*n) {
			place[x.ID] = len(kept)
			kept = append(kept, x)
			continue
		}
		above := parents[x.ID]
		for above != "" {
			if i, ok := place[above]; ok {
				kept[i].Below++
				break
			}
			above = parents[above]
		}
		if above == "" {
			more++
		}
	}
	return kept, more
}

// wayTo are the ids of the chosen record and of those above it.
func wayTo(tree []node, parents map[string]string) map[string]bool {
	way := map[string]bool{}
	for _, x := range tree {
		for id := x.ID; x.Here && id != "" && !way[id]; id = parents[id] {
			way[id] = true
		}
	}
	return way
}
