package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/observation/browse"
	"cairn/internal/pathpattern"
	"cairn/internal/store"
)

const (
	maxMapped   = 1000 // maximum recent edits of a project that the map reads
	maxHeldRows = 100  // maximum rows of one project; after that many rows, further projects are only named
)

// reservationsPage lists the reservations, and the files edited in the hour before.
type reservationsPage struct {
	asOf
	Project  string        `json:"project,omitempty"`
	Held     []heldProject `json:"projects"`
	More     []string      `json:"more_projects,omitempty"` // ids of projects that were not read
	Holds    int           `json:"reservations"`
	Overlaps int           `json:"overlaps"`
	Edited   int           `json:"files_edited"`
	Unheld   int           `json:"files_edited_without_reservation"`
}

// heldProject contains the reservations of one project.
type heldProject struct {
	Project string                           `json:"project"`
	Slug    string                           `json:"slug"`
	Holds   []holding                        `json:"reservations"`
	Edits   []edited                         `json:"edited"` // edited in the last hour without a reservation, latest first
	Ended   []reservations.ListedReservation `json:"ended"`  // ended in the last hour, latest first; only without a past moment
	Axis    *axis                            `json:"-"`

	MoreHolds int `json:"more_reservations,omitempty"` // number of reservations not shown
	MoreEdits int `json:"more_edited,omitempty"`
}

// holding is a reservation on the axis, with the edited files that it covers.
type holding struct {
	reservations.ListedReservation
	Overlap string   `json:"overlaps_with,omitempty"` // agent whose reservation covers the same files
	Edits   []edited `json:"edited"`
	Bar     drawn    `json:"-"`
}

// edited is a file that agents wrote or edited on one branch.
type edited struct {
	Path     string   `json:"path"`
	At       int64    `json:"at"`                // time of the last edit
	Agents   []string `json:"agents,omitempty"`  // names of the editing agents, if known
	Branch   string   `json:"branch,omitempty"`  // branch of its sessions; other branches have separate entries
	Session  string   `json:"session_id"`        // session of the last edit
	Foreign  bool     `json:"foreign,omitempty"` // edited by a session other than the holder's
	ByHolder bool     `json:"by_holder,omitempty"`
	Ticks    []point  `json:"-"`
}

func (s *Site) reservations(r *http.Request, v Visitor, _ place) (Response, error) {
	p := &reservationsPage{asOf: s.readAsOf(r), Project: r.URL.Query().Get("project")}
	p.Held = []heldProject{}
	if err := s.held(r.Context(), p); err != nil {
		return Response{}, err
	}
	return s.show(r, v, "reservations", "Reservations", p)
}

// held lists reservations and the edits of the hour before, by project. It reads one
// project, or all for "". It omits projects without either. After maxHeldRows rows,
// further projects are only named.
func (s *Site) held(ctx context.Context, p *reservationsPage) error {
	projects, err := ask(ctx, s, func(ctx context.Context, o *service.Mail, _ mail.Caller) ([]service.ProjectShort, error) {
		return o.Projects(ctx)
	})
	for _, q := range projects {
		switch {
		case err != nil:
			return err
		case p.Project != "" && p.Project != q.ProductID:
			continue
		case p.Holds+p.Edited >= maxHeldRows:
			p.More = append(p.More, q.ProductID)
			continue
		}
		var h heldProject
		if h, err = s.heldIn(ctx, q, &p.asOf); err == nil && len(h.Holds)+len(h.Edits)+len(h.Ended) > 0 {
			p.add(h)
		}
	}
	return err
}

// add adds a project to the counts and cuts its rows to maxHeldRows.
func (p *reservationsPage) add(h heldProject) {
	p.Holds, p.Edited, p.Unheld = p.Holds+len(h.Holds), p.Edited+len(h.Edits), p.Unheld+len(h.Edits)
	for _, one := range h.Holds {
		p.Edited += len(one.Edits)
		if one.Overlap != "" {
			p.Overlaps++
		}
	}
	if n := len(h.Holds) - maxHeldRows; n > 0 {
		h.Holds, h.MoreHolds = h.Holds[:maxHeldRows], n
	}
	if n := len(h.Edits) - maxHeldRows; n > 0 {
		h.Edits, h.MoreEdits = h.Edits[:maxHeldRows], n
	}
	p.Held = append(p.Held, h)
}

// heldIn returns the reservations of a project, ordered by path.
func (s *Site) heldIn(ctx context.Context, q service.ProjectShort, when *asOf) (h heldProject, err error) {
	h = heldProject{Project: q.ProductID, Slug: q.Slug, Holds: []holding{}, Edits: []edited{}, Ended: []reservations.ListedReservation{}}
	list, now, err := s.listed(ctx, q, when)
	if err != nil || now.IsZero() {
		return h, err
	}
	h.layOut(list, now)
	if when.At == "" {
		h.Ended, err = ask(ctx, s, func(ctx context.Context, o *service.Mail, c mail.Caller) ([]reservations.ListedReservation, error) {
			return o.EndedReservations(ctx, c, q.Slug, now.Add(-time.Hour))
		})
		if err != nil {
			return h, err
		}
	}
	patterns := make([]pathpattern.Pattern, len(list))
	for i, one := range list {
		if patterns[i], err = pathpattern.Parse(one.PathPattern, pathpattern.Options{}); err != nil {
			return h, err // stored patterns were parsed before they were stored
		}
	}
	for i, k := range pathpattern.Pairs(patterns) {
		if a, b := &h.Holds[i], &h.Holds[k]; a.Agent != b.Agent && (a.Exclusive || b.Exclusive) {
			a.Overlap, b.Overlap = b.Agent, a.Agent
		}
	}
	files, err := s.editedSince(ctx, q.ProductID, now, h.Axis)
	for _, f := range files {
		h.put(f, patterns)
	}
	return h, err
}

// listed returns the reservations of a project, ordered by path, and their moment. The
// moment is zero if it is before the project's first change.
func (s *Site) listed(ctx context.Context, q service.ProjectShort, when *asOf) (list []reservations.ListedReservation, now time.Time, err error) {
	now = s.now()
	list, err = ask(ctx, s, func(ctx context.Context, o *service.Mail, c mail.Caller) ([]reservations.ListedReservation, error) {
		if when.At == "" {
			return o.FileReservations(ctx, c, q.Slug, false)
		}
		past, err := o.FileReservationsAt(ctx, c, q.Slug, false, when.At)
		now = past.At.Time
		if past.At.Note != store.BeforeFirst { // that note concerns one project only
			when.found(past.At)
		}
		return past.Result, err
	})
	slices.SortFunc(list, func(a, b reservations.ListedReservation) int {
		return cmp.Or(cmp.Compare(a.PathPattern, b.PathPattern), cmp.Compare(a.ID, b.ID))
	})
	return list, now, err
}

// layOut draws the reservations on an axis from one hour before now to the last expiry.
func (h *heldProject) layOut(list []reservations.ListedReservation, now time.Time) {
	from, to := now.Add(-time.Hour).Unix(), now.Add(15*time.Minute).Unix()
	for _, one := range list {
		to = max(to, one.Expires.UTC().Unix())
	}
	h.Axis = newAxis(from, to, []browse.Span{{From: from, To: to}})
	h.Axis.Now = h.Axis.at(now.Unix())
	for _, one := range list {
		start := h.Axis.at(max(one.Created.UTC().Unix(), from))
		h.Holds = append(h.Holds, holding{ListedReservation: one, Edits: []edited{}, Bar: drawn{start, max(h.Axis.at(one.Expires.UTC().Unix())-start, 0.5)}})
	}
}

// editedSince returns the files that agents edited in the hour before a moment, latest
// first.
func (s *Site) editedSince(ctx context.Context, projectID string, now time.Time, x *axis) (files []edited, err error) {
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return nil, err
	}
	list, err := browse.FileEdits(ctx, j, browse.FileEditsArgs{Project: projectID, Since: now.Add(-time.Hour).Unix(), Until: now.Unix() + 1, Limit: maxMapped})
	if err != nil {
		return nil, err
	}
	names, err := s.agents(ctx, sessionsOf(list))
	at := map[[2]string]int{}
	for _, e := range list {
		i, known := at[[2]string{e.Path, e.Branch}]
		if !known {
			i = len(files)
			at[[2]string{e.Path, e.Branch}] = i
			files = append(files, edited{Path: e.Path, At: e.At, Branch: e.Branch, Session: e.SessionID})
		}
		f := &files[i]
		for _, name := range names[e.SessionID] {
			if !slices.Contains(f.Agents, name) {
				f.Agents = append(f.Agents, name)
			}
		}
		f.Ticks = append(f.Ticks, point{x.at(e.At), strings.Join(names[e.SessionID], ",")})
	}
	return files, err
}

// sessionsOf returns the sessions of edits without duplicates.
func sessionsOf(list []browse.FileEdit) []string {
	var ids []string
	seen := map[string]bool{}
	for _, e := range list {
		if !seen[e.SessionID] {
			seen[e.SessionID] = true
			ids = append(ids, e.SessionID)
		}
	}
	return ids
}

// put shows a file below the reservation that covers it, otherwise among the files without
// a reservation. A file outside the worktree has no reservation.
func (h *heldProject) put(f edited, patterns []pathpattern.Pattern) {
	file, err := pathpattern.Parse(f.Path, pathpattern.Options{})
	holder := -1
	for i := range patterns {
		if err == nil && pathpattern.Overlap(patterns[i], file) {
			holder = i
			if slices.Contains(f.Agents, h.Holds[i].Agent) {
				break
			}
		}
	}
	by := ""
	if holder >= 0 {
		by = h.Holds[holder].Agent
	}
	for i := range f.Ticks {
		kind := "edit"
		switch {
		case holder < 0:
		case slices.Contains(strings.Split(f.Ticks[i].Kind, ","), by):
			f.ByHolder = true
		default:
			kind, f.Foreign = "foreign", true
		}
		f.Ticks[i].Kind = kind
	}
	if holder < 0 {
		h.Edits = append(h.Edits, f)
		return
	}
	h.Holds[holder].Edits = append(h.Holds[holder].Edits, f)
}

func (p *reservationsPage) live() bool { return p.At == "" }

// endOf describes when and how a reservation ended.
func endOf(now int64, one reservations.ListedReservation) string {
	at, how := one.Expires, "expired"
	switch {
	case one.Released != 0 && one.Ended:
		at, how = one.Released, "released with its session"
	case one.Released != 0:
		at, how = one.Released, "released"
	}
	return how + " " + back(now, at.UTC().Unix())
}

// editTicks is the data for the template of a file's edits.
type editTicks struct {
	edited
	Axis *axis
}

// Marks returns the edits of a kind as a path in a drawing of 100 by 30 units.
func (e editTicks) Marks(kind string) string {
	var xs []float64
	for _, t := range e.Ticks {
		if t.Kind == kind {
			xs = append(xs, t.X)
		}
	}
	return verticals(xs, 9, 21)
}

func ticksOf(x *axis, f edited) editTicks { return editTicks{f, x} }
