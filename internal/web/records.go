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
	"cairn/internal/record/commands"
)

// recordsPage shows the records of a project as a tree, and one of them in full.
type recordsPage struct {
	asOf
	Project  string                  `json:"project"`
	Projects []record.ProjectSummary `json:"-"`
	State    record.State            `json:"state,omitempty"`
	States   []facet                 `json:"states"`
	Tree     []node                  `json:"records"`
	More     int                     `json:"more_records,omitempty"` // number of records that the tree omits
	One      *record.Record          `json:"record,omitempty"`
	History  []record.HistoryItem    `json:"history,omitempty"`   // newest first
	Compared *record.VersionDiff     `json:"compared,omitempty"`  // comparison of two chosen versions, nil for none
	Form     *recordForm             `json:"form,omitempty"`      // nil if no form is shown
	Others   []record.Other          `json:"conflicts,omitempty"` // versions from other devices that no update has followed yet, newest first
	Authors  map[string]string       `json:"authors,omitempty"`   // agents by session of the history, if known
	Tick     int64                   `json:"tick"`                // current tick of the project
	Shown    int64                   `json:"-"`                   // tick that the slider shows

	Uncounted bool `json:"states_not_counted,omitempty"` // the numbers in States are unknown, as the past of a large tree is not counted
}

const (
	maxNodes  = 400 // maximum records in the tree
	maxBranch = 200 // maximum records in one branch, if the project has more than maxNodes
)

// node is a record in the tree.
type node struct {
	record.Ref
	Depth int    `json:"depth"`
	Below int    `json:"hidden_below,omitempty"` // number of hidden records below it
	Path  string `json:"-"`
	Here  bool   `json:"-"`
}

func recordPath(project, id string) string {
	return "/records/" + url.PathEscape(project) + "/" + url.PathEscape(id)
}

// link returns the URL of a record at the page's moment, with a filter by state unless that is
// "".
func (p *recordsPage) link(id string, state record.State) string {
	q := url.Values{}
	if p.At != "" {
		q.Set("at", p.At)
	}
	if state != "" {
		q.Set("state", string(state))
	}
	if len(q) == 0 {
		return recordPath(p.Project, id)
	}
	return recordPath(p.Project, id) + "?" + q.Encode()
}

// firstRecords redirects to the records of the project with the most open records.
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

// records shows the records of a project, or stores a submitted form.
func (s *Site) records(r *http.Request, v Visitor, at place) (Response, error) {
	if r.Method == http.MethodPost {
		return s.sendRecord(r, v, at)
	}
	return s.recordsWith(r, v, at, nil)
}

// recordsWith shows the records with a submitted form. If sent is nil, it shows the form
// that the URL requests, if any.
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
		p.Shown, _ = strconv.ParseInt(p.At[len("tick:"):], 10, 64) // the record service has already validated it
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
		sent.States = commands.NextStates(p.One.State)
	}
	a, err := s.show(r, v, "records", title, p)
	a.Forms = p.Form != nil || len(p.Others) > 0
	return a, err
}

// openConflicts returns the versions kept next to the newest one, until an update has
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

// Taken returns the form that replaces both versions of a conflict with a text.
func (p *recordsPage) Taken(button, title, summary, body, token string) takenText {
	return takenText{Button: button, Title: title, Summary: summary, Body: body, FormToken: token, Project: p.Project, ID: p.One.ID, Version: p.One.Version, Tick: newestTick(p.History)}
}

// takenText is the data for the template of that form.
type takenText struct {
	Button, Title, Summary, Body, FormToken, Project, ID string
	Version                                              int
	Tick                                                 int64
}

// Unified returns the diff between the stored text and a version from another device.
func (p *recordsPage) Unified(other record.Other) string {
	return linediff.Unified(fmt.Sprintf("%s v%d", p.One.ID, p.One.Version), "from another store", p.One.Body, other.Body)
}

// readTree reads the records for the tree. Of a small project it reads all records.
// Otherwise it reads the roots and the ancestors, siblings and children of the chosen
// record. With a state filter it reads the first records of that state.
func (s *Site) readTree(ctx context.Context, r *http.Request, p *recordsPage, at place) error {
	c := record.Caller{ProjectID: at.key}
	counts, err := s.cairn.Records().CountStates(ctx, c)
	if err != nil {
		return err
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	if total > maxNodes {
		p.Uncounted = p.At != "" // it would take a look into the log for each record
		p.count(r, counts)
		return s.readBranches(ctx, p, at)
	}
	all, err := s.cairn.Records().List(ctx, record.ListArgs{Caller: c, Roots: true, Depth: math.MaxInt, At: p.At})
	if err != nil {
		return err
	}
	clear(counts)
	for _, ref := range all {
		counts[ref.State]++
	}
	p.count(r, counts)
	p.Tree, p.More = prune(p.treeOf(all, at.id), maxNodes)
	return nil
}

// readBranches reads part of a large tree.
func (s *Site) readBranches(ctx context.Context, p *recordsPage, at place) error {
	c := record.Caller{ProjectID: at.key}
	list := func(a record.ListArgs) ([]record.Ref, error) {
		a.Caller, a.Limit, a.At = c, maxBranch+1, p.At
		return s.cairn.Records().List(ctx, a)
	}
	if p.State != "" {
		all, err := list(record.ListArgs{States: []record.State{p.State}})
		for _, ref := range all {
			p.Tree = append(p.Tree, node{Ref: ref, Path: p.link(ref.ID, p.State), Here: ref.ID == at.id})
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
		ref, err := s.cairn.Records().GetRef(ctx, record.GetRefArgs{Caller: c, ID: id, At: p.At})
		if err != nil {
			return err
		}
		if below[ref.ID], err = list(record.ListArgs{ParentID: ref.ID}); err != nil {
			return err
		}
		parent := textOf(ref.ParentID)
		if siblings := below[parent]; !slices.ContainsFunc(siblings, func(r record.Ref) bool { return r.ID == ref.ID }) {
			below[parent] = append([]record.Ref{ref}, siblings...)
		}
		id = parent
	}
	p.Tree, p.More = p.branches(below, at.id)
	return nil
}

// branches puts each known record below its parent. A record whose children were not read
// shows only their number. more is the minimum number of further records.
func (p *recordsPage) branches(below map[string][]record.Ref, here string) (tree []node, more int) {
	var grow func(parent string, depth int)
	grow = func(parent string, depth int) {
		for i, ref := range below[parent] {
			if i >= maxBranch {
				more++
				break
			}
			n := node{Ref: ref, Depth: depth, Path: p.link(ref.ID, ""), Here: ref.ID == here}
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

// cutBranch cuts a list to the number of records shown in one branch.
func cutBranch(list []node) ([]node, int) {
	if len(list) > maxBranch {
		return list[:maxBranch], 1
	}
	return list, 0
}

// count creates the links that filter by state.
func (p *recordsPage) count(r *http.Request, counts map[record.State]int) {
	for _, state := range []record.State{record.Open, record.Later, record.Resolved, record.Discarded} {
		f := facet{Name: string(state), N: counts[state], Chosen: state == p.State, Path: with(r.URL, "state", string(state))}
		if p.Uncounted {
			f.N = 0
		}
		if f.Chosen {
			f.Path = with(r.URL, "state", "")
		}
		p.States = append(p.States, f)
	}
}

// treeOf puts each record below its parent. With a state filter only records in that state
// and their ancestors remain.
func (p *recordsPage) treeOf(all []record.Ref, here string) []node {
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
	var grow func(parent string, depth int) []node
	grow = func(parent string, depth int) (out []node) {
		for _, ref := range below[parent] {
			under := grow(ref.ID, depth+1)
			if p.State == "" || ref.State == p.State || len(under) > 0 {
				out = append(append(out, node{ref, depth, 0, p.link(ref.ID, ""), ref.ID == here}), under...)
			}
		}
		return out
	}
	return append([]node{}, grow("", 0)...)
}

// formOfRecord is the data for the template of the form.
type formOfRecord struct {
	*recordsPage
	FormToken string
}

// authors returns the agents that changed a record.
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

// chosenMoment returns the past moment that a URL names, by at or by the tick of the
// slider; "" for now.
func chosenMoment(q url.Values) string {
	at, tick := q.Get("at"), q.Get("tick")
	if at == "" && tick != "" && tick != q.Get("last") {
		return "tick:" + tick
	}
	return at
}

// prune keeps at most n nodes of a tree. It drops deep levels first, except ancestors,
// children and siblings of the chosen record. Each kept node counts the hidden records
// below it. more is the number of dropped nodes without a kept ancestor.
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

// wayTo returns the ids of the chosen record and its ancestors.
func wayTo(tree []node, parents map[string]string) map[string]bool {
	way := map[string]bool{}
	for _, x := range tree {
		for id := x.ID; x.Here && id != "" && !way[id]; id = parents[id] {
			way[id] = true
		}
	}
	return way
}
