package web

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/recall"
)

// resultsPerPage is the maximum number of sessions on a search page.
const resultsPerPage = 20

// searchPage is the result of a search.
type searchPage struct {
	recall.Answer
	Project  string        `json:"project,omitempty"`
	Part     string        `json:"part,omitempty"`
	Agent    string        `json:"agent,omitempty"`
	Type     string        `json:"type,omitempty"`
	Branch   string        `json:"branch,omitempty"`
	When     string        `json:"when,omitempty"` // 24h, 7d, 30d or older
	Parts    []facet       `json:"parts"`          // number of items by part
	Places   []facet       `json:"projects"`       // number of groups by project
	Agents   []facet       `json:"agents"`         // number of groups by agent
	Types    []facet       `json:"types"`          // number of items by event type
	Branches []facet       `json:"branches"`       // number of groups by branch
	Times    []facet       `json:"times"`          // number of groups by age
	Shown    []resultGroup `json:"-"`
	Problem  string        `json:"problem,omitempty"` // why the query is invalid
	Hint     string        `json:"hint,omitempty"`
}

// facet is a filter that narrows the results.
type facet struct {
	Name   string `json:"name"`
	N      int    `json:"n"`
	Chosen bool   `json:"chosen,omitempty"`
	Path   string `json:"-"`
}

// resultGroup is a group as the page shows it.
type resultGroup struct {
	recall.Group
	Title string
	Path  string // "" if there is no page
	Rows  []found
}

// found is an item with the matching words marked.
type found struct {
	recall.Item
	Pieces []recall.Piece
	Path   string
}

func (s *Site) search(r *http.Request, v Visitor, _ place) (Response, error) {
	q := r.URL.Query()
	p := &searchPage{Project: q.Get("project"), Part: q.Get("part"), Agent: q.Get("agent"), Type: q.Get("type"), Branch: q.Get("branch"), When: q.Get("when"), Times: []facet{},
		Parts: []facet{}, Places: []facet{}, Agents: []facet{}, Types: []facet{}, Branches: []facet{}}
	p.Query = strings.TrimSpace(q.Get("q"))
	if p.Query == "" {
		return s.show(r, v, "search", "Search", p)
	}
	answer, err := s.cairn.Recall(r.Context(), recall.Args{Query: p.Query, Project: p.Project, Limit: resultsPerPage, Detail: recall.DetailFull})
	if f := fault.As(err); err != nil && f.Kind == fault.Invalid {
		p.Problem, p.Hint = f.Message, f.Hint
		return s.show(r, v, "search", "Search", p)
	}
	if err != nil {
		return Response{}, err
	}
	p.Answer = answer
	now := s.now()
	p.count(r, now)
	all, err := s.cairn.Projects(r.Context())
	if err != nil {
		return Response{}, err
	}
	for _, g := range answer.Results {
		if p.Agent != "" && g.Agent != p.Agent || p.Branch != "" && g.Branch != p.Branch || p.When != "" && ageOf(g.When, now) != p.When {
			continue
		}
		if shown := p.group(g, all); len(shown.Rows) > 0 || p.Part+p.Type == "" {
			p.Shown = append(p.Shown, shown)
		}
	}
	return s.show(r, v, "search", "Search: "+p.Query, p)
}

// ages returns the values of the parameter when, with the time that each covers.
func ages() []periodOf { return append(periods(), periodOf{Value: "older", Label: "older"}) }

// ageOf returns the age of a group: the shortest that covers it. It returns "" if the
// group's time is unknown.
func ageOf(at *time.Time, now time.Time) string {
	if at == nil {
		return ""
	}
	for _, p := range periods() {
		if now.Sub(*at) < time.Duration(p.seconds)*time.Second {
			return p.Value
		}
	}
	return "older"
}

// ageOrder returns the index of an age in ages.
func ageOrder(age string) int {
	return slices.IndexFunc(ages(), func(a periodOf) bool { return a.Value == age })
}

// ageName returns the label of an age in a selection list.
func ageName(age string) string {
	for i, a := range ages() {
		switch {
		case a.Value != age:
		case i == 0:
			return "last " + a.Label
		case i < len(periods()):
			return ages()[i-1].Label + " to " + a.Label
		default:
			return "older than " + ages()[i-1].Label
		}
	}
	return age
}

// count creates the facets, in the order of the results.
func (p *searchPage) count(r *http.Request, now time.Time) {
	add := func(list *[]facet, param, name, chosen string) {
		for i := range *list {
			if (*list)[i].Name == name {
				(*list)[i].N++
				return
			}
		}
		f := facet{Name: name, N: 1, Chosen: name == chosen, Path: with(r.URL, param, name)}
		if f.Chosen {
			f.Path = with(r.URL, param, "")
		}
		*list = append(*list, f)
	}
	for _, g := range p.Results {
		if g.Project != "" {
			add(&p.Places, "project", g.Project, p.Project)
		}
		if age := ageOf(g.When, now); age != "" {
			add(&p.Times, "when", age, p.When)
		}
		if g.Agent != "" {
			add(&p.Agents, "agent", g.Agent, p.Agent)
		}
		if g.Branch != "" {
			add(&p.Branches, "branch", g.Branch, p.Branch)
		}
		for _, item := range g.Items {
			add(&p.Parts, "part", item.Part, p.Part)
			if item.Part == recall.PartObservations {
				add(&p.Types, "type", item.Type, p.Type)
			}
		}
	}
	slices.SortStableFunc(p.Times, func(a, b facet) int { return cmp.Compare(ageOrder(a.Name), ageOrder(b.Name)) })
}

// group returns a result group with the items of the chosen part and type.
func (p *searchPage) group(g recall.Group, all []project.Summary) resultGroup {
	out := resultGroup{Group: g, Title: g.About}
	switch {
	case g.SessionID != "":
		out.Path = sessionPath(g.SessionID)
		if out.Title == "" {
			out.Title = "Session " + g.SessionID
		}
	default:
		out.Title = strings.ToUpper(g.Part[:1]) + g.Part[1:]
	}
	for _, item := range g.Items {
		if p.Part != "" && item.Part != p.Part || p.Type != "" && item.Type != p.Type {
			continue
		}
		in := cmp.Or(item.Project, g.Project)
		row := found{Item: item, Pieces: p.Mark(withoutRoots(all, in, item.Excerpt)), Path: out.Path}
		if item.Part == recall.PartRecords && in != "" {
			row.Path = recordPath(in, item.ID)
		} else if n, err := strconv.ParseInt(item.ID, 10, 64); err == nil && item.Part == recall.PartMail && in != "" {
			row.Path = under(in, "mail", strconv.FormatInt(n, 10))
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// withoutRoots makes the paths in a text relative if they are below a working tree of a
// project.
func withoutRoots(all []project.Summary, id, text string) string {
	for _, q := range all {
		for _, c := range q.Checkouts {
			if root := strings.TrimSuffix(c.Root, "/"); q.ID == id && root != "" {
				text = strings.ReplaceAll(text, root+"/", "")
			}
		}
	}
	return text
}

// partName returns the label of a part.
func partName(part string) string {
	if part == recall.PartObservations {
		return "sessions"
	}
	return part
}

// Kind returns the label of the item's kind.
func (f found) Kind() string {
	switch f.Part {
	case recall.PartObservations:
		return kindOf(f.Type)
	case recall.PartRecords:
		return cmp.Or(f.Type, "record")
	case recall.PartMemories:
		return "entry"
	}
	return f.Part
}

// facetList is the data for the template of a list of facets.
type facetList struct {
	Title string
	List  []facet
}

func facetsOf(title string, list []facet) facetList { return facetList{title, list} }
