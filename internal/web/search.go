package web

import (
	"net/http"
	"strconv"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/recall"
)

// resultsPerPage is how many sessions a search shows.
const resultsPerPage = 20

// searchPage is the answer to a question.
type searchPage struct {
	recall.Answer
	Project string        `json:"project,omitempty"`
	Part    string        `json:"part,omitempty"`
	Parts   []facet       `json:"parts"`    // how many items of each part were found
	Places  []facet       `json:"projects"` // how many groups of each project
	Shown   []resultGroup `json:"-"`
	Problem string        `json:"problem,omitempty"` // why the query cannot be understood
	Hint    string        `json:"hint,omitempty"`
}

// facet is a way to narrow an answer.
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
	Path  string // "" where there is no page
	Rows  []found
}

// found is an item with the words that were found marked.
type found struct {
	recall.Item
	Pieces []recall.Piece
	Path   string
}

func (s *Site) search(r *http.Request, v Visitor, _ place) (Response, error) {
	q := r.URL.Query()
	p := &searchPage{Project: q.Get("project"), Part: q.Get("part"), Parts: []facet{}, Places: []facet{}}
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
	p.count(r)
	for _, g := range answer.Results {
		if shown := p.group(g); len(shown.Rows) > 0 || p.Part == "" {
			p.Shown = append(p.Shown, shown)
		}
	}
	return s.show(r, v, "search", "Search: "+p.Query, p)
}

// count makes the facets, in the order in which the answer has them.
func (p *searchPage) count(r *http.Request) {
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
		for _, item := range g.Items {
			add(&p.Parts, "part", item.Part, p.Part)
		}
	}
}

// group is a group of the answer with the items of the chosen part.
func (p *searchPage) group(g recall.Group) resultGroup {
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
		if p.Part != "" && item.Part != p.Part {
			continue
		}
		row := found{Item: item, Pieces: p.Mark(item.Excerpt), Path: out.Path}
		project := item.Project
		if project == "" {
			project = g.Project
		}
		if item.Part == recall.PartRecords && project != "" {
			row.Path = recordPath(project, item.ID)
		} else if n, err := strconv.ParseInt(item.ID, 10, 64); err == nil && item.Part == recall.PartMail && project != "" {
			row.Path = under(project, "mail", strconv.FormatInt(n, 10))
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
