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
	"cairn/internal/mail/service"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/project"
)

// rowsPerPage is the maximum number of rows in a list.
const rowsPerPage = 50

// timeline lists rows of all sessions, newest first.
type timeline struct {
	choice
	Type   string   `json:"type,omitempty"`
	Path   string   `json:"path,omitempty"`
	Branch string   `json:"branch,omitempty"`
	Agent  string   `json:"agent,omitempty"`
	Day    string   `json:"day,omitempty"` // such as 2026-03-01, in the server's time zone
	Days   []day    `json:"days"`
	Types  []string `json:"-"`
	Older  string   `json:"older,omitempty"` // URL of the next page, "" for none
	Newest bool     `json:"-"`               // this is the first page
	Rows   int      `json:"rows"`

	DayBefore string `json:"-"` // URLs of the neighbouring days, "" if no day is chosen
	DayAfter  string `json:"-"`
}

// day contains the rows of one day.
type day struct {
	Name string               `json:"day"`
	Rows []browse.TimelineRow `json:"rows"`
}

func (s *Site) timeline(r *http.Request, v Visitor, _ place) (Response, error) {
	now, q := s.now().Unix(), r.URL.Query()
	c, err := s.choose(r, now)
	if err != nil {
		return Response{}, err
	}
	p := &timeline{choice: c, Type: q.Get("type"), Path: q.Get("file"), Branch: q.Get("branch"), Agent: q.Get("agent"), Day: q.Get("day"), Types: observation.Types(), Days: []day{}}
	if p.Path != "" && p.Project == "" {
		return Response{}, fault.New(fault.Invalid, "invalid_argument", "file requires a project").WithHint("choose a project")
	}
	before, err := readPlace(q.Get("before"))
	if err != nil {
		return Response{}, err
	}
	p.Newest = before == browse.Position{}
	a := browse.RowsArgs{Project: p.Project, ObsType: p.Type, Path: p.Path, Branch: p.Branch, Before: before, Limit: rowsPerPage + 1}
	if err := p.chooseDay(r.URL, &a, now); err != nil {
		return Response{}, err
	}
	if p.Agent != "" {
		a.Sessions, err = ask(r.Context(), s, func(ctx context.Context, o *service.Mail, _ mail.Caller) ([]string, error) {
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
	rows, err := browse.Rows(r.Context(), j, a)
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

// chooseDay limits the rows to the chosen day, and sets the URLs of the days around it.
func (p *timeline) chooseDay(u *url.URL, a *browse.RowsArgs, now int64) error {
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
		a.Before = browse.Position{At: next.Unix()}
	}
	p.DayBefore = with(u, "day", day.AddDate(0, 0, -1).Format(time.DateOnly))
	if next.Unix() <= now {
		p.DayAfter = with(u, "day", next.Format(time.DateOnly))
	}
	return nil
}

// readPlace parses the start position of a page: SECONDS-ID, or "" for the newest row.
func readPlace(text string) (p browse.Position, err error) {
	if text == "" {
		return p, nil
	}
	at, id, ok := strings.Cut(text, "-")
	p.At, err = strconv.ParseInt(at, 10, 64)
	if err == nil {
		p.ID, err = strconv.ParseInt(id, 10, 64)
	}
	if err != nil || !ok || p.At <= 0 {
		return p, fault.Newf(fault.Invalid, "invalid_argument", "before is %.40q, but must be the position of a row", text)
	}
	return p, nil
}

// with returns a URL with one parameter changed; "" removes it.
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

// shorten makes file paths relative to the working tree of their project.
func (s *Site) shorten(ctx context.Context, rows []browse.TimelineRow) error {
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

// relativeTo returns a path relative to the working tree that contains it. Other paths are
// returned unchanged.
func relativeTo(checkouts []project.Checkout, path string) *string {
	for _, c := range checkouts {
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(c.Root, "/")+"/"); ok && c.Root != "" {
			return &rest
		}
	}
	return &path
}

// didOf summarises a row of the timeline in one line.
func didOf(row browse.TimelineRow) string {
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
