package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/observation"
	"cairn/internal/project"
)

// rowsPerPage is how many rows a list shows at once.
const rowsPerPage = 50

// timeline is rows of all sessions, newest first.
type timeline struct {
	choice
	Type   string   `json:"type,omitempty"`
	Path   string   `json:"path,omitempty"`
	Branch string   `json:"branch,omitempty"`
	Agent  string   `json:"agent,omitempty"`
	Day    string   `json:"day,omitempty"` // such as 2026-03-01, in the server's time zone
	Days   []day    `json:"days"`
	Types  []string `json:"-"`
	Older  string   `json:"older,omitempty"` // address of the next page, "" for none
	Newest bool     `json:"-"`               // this is the first page
	Rows   int      `json:"rows"`

	DayBefore string `json:"-"` // addresses of the neighbouring days, "" if no day is chosen
	DayAfter  string `json:"-"`
}

// day are the rows of one day.
type day struct {
	Name string                    `json:"day"`
	Rows []observation.TimelineRow `json:"rows"`
}

func (s *Site) timeline(r *http.Request, v Visitor, _ place) (Response, error) {
	now, q := s.now().Unix(), r.URL.Query()
	c, err := s.choose(r, now)
	if err != nil {
		return Response{}, err
	}
	p := &timeline{choice: c, Type: q.Get("type"), Path: q.Get("file"), Branch: q.Get("branch"), Agent: q.Get("agent"), Day: q.Get("day"), Types: observation.Types(), Days: []day{}}
	if p.Path != "" && p.Project == "" {
		return Response{}, fault.New(fault.Invalid, "invalid_argument", "a file needs a project").WithHint("choose the project, too")
	}
	before, err := readPlace(q.Get("before"))
	if err != nil {
		return Response{}, err
	}
	p.Newest = before == observation.Place{}
	a := observation.RowsArgs{Project: p.Project, ObsType: p.Type, Path: p.Path, Branch: p.Branch, Before: before, Limit: rowsPerPage + 1}
	if err := p.chooseDay(r.URL, &a, now); err != nil {
		return Response{}, err
	}
	if p.Agent != "" {
		a.Sessions, err = ask(r.Context(), s, func(ctx context.Context, o *mail.Service, _ mail.Caller) ([]string, error) {
			return o.SessionsOfAgent(ctx, p.Agent)
		})
		if err != nil {
			return Response{}, err
		}
	}
	j, err := s.cairn.Observations(r.Context())
	if err != nil {
		return Response{}, err
	}
	rows, err := j.Rows(r.Context(), a)
	if err != nil {
		return Response{}, err
	}
	if len(rows) > rowsPerPage {
		rows = rows[:rowsPerPage]
		last := rows[len(rows)-1]
		p.Older = with(r.URL, "before", fmt.Sprintf("%d-%d", last.Timestamp, last.ID))
	}
	if err := s.shorten(r.Context(), rows); err != nil {
		return Response{}, err
	}
	for _, row := range rows {
		name := time.Unix(row.Timestamp, 0).Format("Monday, 2 January 2006")
		if n := len(p.Days); n == 0 || p.Days[n-1].Name != name {
			p.Days = append(p.Days, day{Name: name})
		}
		last := &p.Days[len(p.Days)-1]
		last.Rows = append(last.Rows, row)
	}
	p.Rows = len(rows)
	return s.show(r, v, "timeline", "Timeline", p)
}

// chooseDay limits the rows to the chosen day, and names the days around it.
func (p *timeline) chooseDay(u *url.URL, a *observation.RowsArgs, now int64) error {
	if p.Day == "" {
		return nil
	}
	day, err := time.ParseInLocation(time.DateOnly, p.Day, time.Local)
	if err != nil {
		return fault.Newf(fault.Invalid, "invalid_argument", "day is %.40q, but must be a date such as 2026-03-01", p.Day)
	}
	next := day.AddDate(0, 0, 1)
	a.Since = day.Unix()
	if p.Newest {
		a.Before = observation.Place{At: next.Unix()}
	}
	p.DayBefore = with(u, "day", day.AddDate(0, 0, -1).Format(time.DateOnly))
	if next.Unix() <= now {
		p.DayAfter = with(u, "day", next.Format(time.DateOnly))
	}
	return nil
}

// readPlace reads where a page begins: SECONDS-ID, or nothing for the newest.
func readPlace(text string) (p observation.Place, err error) {
	if text == "" {
		return p, nil
	}
	at, id, ok := strings.Cut(text, "-")
	p.At, err = strconv.ParseInt(at, 10, 64)
	if err == nil {
		p.ID, err = strconv.ParseInt(id, 10, 64)
	}
	if err != nil || !ok || p.At <= 0 {
		return p, fault.Newf(fault.Invalid, "invalid_argument", "before is %.40q, but must be the place of a row", text)
	}
	return p, nil
}

// with is an address with one parameter changed; "" removes it.
func with(u *url.URL, name, value string) string {
	q := u.Query()
	q.Del("before")
	q.Del("format")
	if q.Del(name); value != "" {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return u.EscapedPath()
	}
	return u.EscapedPath() + "?" + q.Encode()
}

func (p *timeline) live() bool { return p.Newest }

// shorten makes the paths of files in a working tree of their project relative to it.
func (s *Site) shorten(ctx context.Context, rows []observation.TimelineRow) error {
	all, err := s.cairn.Projects(ctx)
	roots := map[string][]project.Checkout{}
	for _, q := range all {
		roots[q.ID] = q.Checkouts
	}
	for i := range rows {
		if path := rows[i].FilePath; path != nil {
			rows[i].FilePath = relativeTo(roots[rows[i].Project], *path)
		}
	}
	return err
}

// relativeTo is a path relative to the working tree that holds it, else as it is.
func relativeTo(checkouts []project.Checkout, path string) *string {
	for _, c := range checkouts {
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(c.Root, "/")+"/"); ok && c.Root != "" {
			return &rest
		}
	}
	return &path
}

// didOf says in a line what a row of the timeline is about.
func didOf(row observation.TimelineRow) string {
	switch {
	case row.ObsType == "session_start":
		return "The session began."
	case row.ObsType == "session_end":
		return "The session ended."
	case row.FilePath != nil && *row.FilePath != "":
		return middle(100, *row.FilePath)
	}
	return cmp.Or(cutWords(row.ContentPreview, 120), kindOf(row.ObsType))
}
