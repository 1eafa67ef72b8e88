package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"cairn/internal/mail"
	"cairn/internal/observation"
	"cairn/internal/pathpattern"
)

// reservations is who holds which files, and which files were edited in the last hour.
type reservations struct {
	Project  string        `json:"project,omitempty"`
	Held     []heldProject `json:"projects"`
	Holds    int           `json:"reservations"`
	Overlaps int           `json:"overlaps"`
	Edited   int           `json:"files_edited"`
}

// heldProject is what is held in one project.
type heldProject struct {
	Project string    `json:"project"`
	Slug    string    `json:"slug"`
	Holds   []holding `json:"reservations"`
	Edits   []edited  `json:"edited"` // in the last hour, the last first
	Axis    *axis     `json:"-"`
}

// holding is a reservation on the axis.
type holding struct {
	mail.ListedReservation
	Overlap string `json:"overlaps_with,omitempty"` // the agent whose reservation covers the same files
	Bar     drawn  `json:"-"`
}

// edited is a file that an agent wrote or edited.
type edited struct {
	observation.TouchedFile
	Holder string `json:"holder,omitempty"` // who holds it, "" for nobody
}

func (s *Site) reservations(r *http.Request, v Visitor, _ place) (Response, error) {
	p := &reservations{Project: r.URL.Query().Get("project")}
	var err error
	if p.Held, err = s.held(r.Context(), p.Project); err != nil {
		return Response{}, err
	}
	for _, h := range p.Held {
		p.Holds, p.Edited = p.Holds+len(h.Holds), p.Edited+len(h.Edits)
		for _, one := range h.Holds {
			if one.Overlap != "" {
				p.Overlaps++
			}
		}
	}
	return s.show(r, v, "reservations", "Reservations", p)
}

// held lists what is held and was edited in the last hour, by project; of one or of all ("").
// Projects without either are left out.
func (s *Site) held(ctx context.Context, project string) ([]heldProject, error) {
	projects, err := ask(ctx, s, func(ctx context.Context, o *mail.Service, _ mail.Caller) ([]mail.ProjectShort, error) {
		return o.Projects(ctx)
	})
	list := []heldProject{}
	for _, q := range projects {
		if project != "" && project != q.ProductID {
			continue
		}
		h, err := s.heldIn(ctx, q, s.now())
		if err != nil {
			return list, err
		}
		if len(h.Holds)+len(h.Edits) > 0 {
			list = append(list, h)
		}
	}
	return list, err
}

// heldIn is what is held in a project, ordered by path.
func (s *Site) heldIn(ctx context.Context, q mail.ProjectShort, now time.Time) (h heldProject, err error) {
	h = heldProject{Project: q.ProductID, Slug: q.Slug, Holds: []holding{}, Edits: []edited{}}
	list, err := ask(ctx, s, func(ctx context.Context, o *mail.Service, c mail.Caller) ([]mail.ListedReservation, error) {
		return o.FileReservations(ctx, c, q.Slug, false)
	})
	if err != nil {
		return h, err
	}
	slices.SortFunc(list, func(a, b mail.ListedReservation) int {
		return cmp.Or(cmp.Compare(a.PathPattern, b.PathPattern), cmp.Compare(a.ID, b.ID))
	})
	from, to := now.Add(-time.Hour).Unix(), now.Add(15*time.Minute).Unix()
	for _, one := range list {
		to = max(to, one.Expires.UTC().Unix())
	}
	h.Axis = newAxis(from, to, []observation.Span{{From: from, To: to}})
	h.Axis.Now = h.Axis.at(now.Unix())
	patterns := make([]pathpattern.Pattern, len(list))
	for i, one := range list {
		if patterns[i], err = pathpattern.Parse(one.PathPattern, pathpattern.Options{}); err != nil {
			return h, err // stored patterns have been parsed before
		}
	}
	for i, one := range list {
		start := h.Axis.at(max(one.Created.UTC().Unix(), from))
		x := holding{ListedReservation: one, Bar: drawn{start, max(h.Axis.at(one.Expires.UTC().Unix())-start, 0.5)}}
		for k, other := range list {
			if other.Agent != one.Agent && (one.Exclusive || other.Exclusive) && pathpattern.Overlap(patterns[i], patterns[k]) {
				x.Overlap = other.Agent
			}
		}
		h.Holds = append(h.Holds, x)
	}
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return h, err
	}
	files, err := j.Touched(ctx, q.ProductID, now.Add(-time.Hour))
	for _, f := range files {
		e := edited{TouchedFile: f}
		file, err := pathpattern.Parse(f.Path, pathpattern.Options{})
		for i, one := range list {
			if err == nil && pathpattern.Overlap(patterns[i], file) { // a file outside the worktree is held by nobody
				e.Holder = one.Agent
			}
		}
		h.Edits = append(h.Edits, e)
	}
	return h, err
}

func (p *reservations) live() bool { return true }
