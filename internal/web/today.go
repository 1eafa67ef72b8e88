package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/memory"
	"cairn/internal/observation/browse"
	"cairn/internal/project"
	"cairn/internal/record"
)

// Limits of the first page.
const (
	maxBars    = 60  // sessions with a bar
	maxActive  = 500 // all sessions
	maxNeeds   = 10
	runningFor = 10 * 60 // seconds after its last event during which a session counts as running
)

// today is the data of the first page.
type today struct {
	choice
	Sessions int  `json:"sessions"`
	Commits  int  `json:"commits"`
	Files    int  `json:"files"`
	Failing  int  `json:"failing_checks"`
	Projects int  `json:"projects"`
	More     bool `json:"more,omitempty"` // further sessions exist

	Needs     []need    `json:"needs"`
	NeedsMore int       `json:"needs_more,omitempty"`
	Running   []running `json:"running"`
	Groups    []group   `json:"groups"`
	Axis      *axis     `json:"-"`
	Problems  []string  `json:"problems,omitempty"` // data that could not be read
}

// need is an item that waits for the user.
type need struct {
	Kind    string `json:"kind"` // conflict, failure, overlap, mail, question, aside, finding
	What    string `json:"what"`
	Detail  string `json:"detail,omitempty"`
	Code    bool   `json:"-"` // What is a command
	Project string `json:"project,omitempty"`
	At      int64  `json:"at"`
	Action  string `json:"action"`
	Path    string `json:"path"`
}

// running is a session in progress.
type running struct {
	browse.Activity
	Agent string   `json:"agent,omitempty"`
	Holds []string `json:"holds,omitempty"`
}

// group contains the sessions of a project, most recently started first.
type group struct {
	Project  string `json:"project"`
	Rows     []bar  `json:"sessions"`
	Sessions int    `json:"count"`
	More     int    `json:"more,omitempty"` // number of sessions that are not in Rows
}

// bar is a session on the axis.
type bar struct {
	browse.Activity
	Agent    string  `json:"agent,omitempty"`
	Live     bool    `json:"live,omitempty"`
	Open     drawn   `json:"-"` // from its first row to its last
	Works    []drawn `json:"-"`
	Points   []point `json:"-"`
	Sentence string  `json:"-"` // description shown by the bar
}

// drawn is a range on an axis, in percent.
type drawn struct{ X, Width float64 }

// point is a mark on an axis.
type point struct {
	X    float64
	Kind string
}

func (s *Site) today(r *http.Request, v Visitor, _ place) (Response, error) {
	ctx, now := r.Context(), s.now().Unix()
	c, err := s.choose(r, now)
	if err != nil {
		return Response{}, err
	}
	cookie := c.sinceVisit(r, now)
	p := &today{choice: c, Needs: []need{}, Running: []running{}, Groups: []group{}}
	list, more, err := s.activity(ctx, browse.ActivityArgs{Project: c.Project, Since: c.Since, Until: now + 1, Limit: maxActive, Whole: maxBars})
	if err != nil {
		return Response{}, err
	}
	p.More = more
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].SessionID
	}
	names, err := s.agents(ctx, ids)
	if err != nil {
		return Response{}, err
	}
	p.draw(list, names, now)
	if err := s.findRunning(ctx, p, list, names, now); err != nil {
		return Response{}, err
	}
	s.findNeeds(ctx, p, list, now)
	a, err := s.show(r, v, "today", "Today", p)
	a.Cookie = cookie
	return a, err
}

// activity lists the sessions in a time range.
func (s *Site) activity(ctx context.Context, a browse.ActivityArgs) ([]browse.Activity, bool, error) {
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return nil, false, err
	}
	return browse.ActiveSessions(ctx, j, a)
}

// agents returns the agent names of sessions.
func (s *Site) agents(ctx context.Context, ids []string) (map[string][]string, error) {
	return ask(ctx, s, func(ctx context.Context, o *service.Mail, _ mail.Caller) (map[string][]string, error) {
		return o.AgentsOfSessions(ctx, ids)
	})
}

// draw puts the sessions of all projects on one axis, grouped by project.
func (p *today) draw(list []browse.Activity, names map[string][]string, now int64) {
	var busy []browse.Span
	for i := range list {
		busy = append(busy, list[i].Working...)
	}
	p.Axis = newAxis(p.Since, now, busy)
	at, files := map[string]int{}, map[string]bool{} // files by project
	for n, a := range list {
		p.Sessions, p.Commits = p.Sessions+1, p.Commits+len(a.Commits)
		for _, f := range a.Files {
			files[a.Project+"\x00"+f] = true
		}
		i, known := at[a.Project]
		if !known {
			i = len(p.Groups)
			at[a.Project] = i
			p.Groups = append(p.Groups, group{Project: a.Project})
		}
		g := &p.Groups[i]
		if g.Sessions++; n < maxBars {
			g.Rows = append(g.Rows, p.Axis.bar(a, strings.Join(names[a.SessionID], ", "), now))
		} else {
			g.More++
		}
	}
	p.Projects, p.Files = len(p.Groups), len(files)
}

// bar draws a session.
func (x *axis) bar(a browse.Activity, agent string, now int64) bar {
	b := bar{Activity: a, Agent: agent, Live: isRunning(a, now)}
	if len(a.Working) == 0 {
		return b
	}
	first, last := a.Working[0].From, a.Working[len(a.Working)-1].To
	b.Open = drawn{x.at(first), max(x.at(last)-x.at(first), 0.5)}
	for _, w := range a.Working {
		b.Works = append(b.Works, drawn{x.at(w.From), max(x.at(w.To)-x.at(w.From), 0.3)})
	}
	for _, kind := range []string{browse.MarkPrompt, browse.MarkCommit, browse.MarkFailure} {
		b.Points = append(b.Points, x.points(a.Marks, kind)...)
	}
	b.Sentence = fmt.Sprintf("%s, %s, %s.", period(now, first, last), count(a.Actions, "action"), count(len(a.Commits), "commit"))
	return b
}

// points returns the marks of a kind. Marks that would overlap are merged into one.
func (x *axis) points(marks []browse.Mark, kind string) (out []point) {
	const apart = 1.0
	for _, m := range marks {
		if m.Kind != kind {
			continue
		}
		if at := x.at(m.At); len(out) == 0 || at-out[len(out)-1].X >= apart {
			out = append(out, point{at, kind})
		}
	}
	return out
}

func isRunning(a browse.Activity, now int64) bool {
	return a.ClosedAt == 0 && now-a.LastSeen <= runningFor
}

// count formats a number with its noun: "1 commit", "3 commits".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (s *Site) findRunning(ctx context.Context, p *today, list []browse.Activity, names map[string][]string, now int64) error {
	for _, a := range list {
		if !isRunning(a, now) {
			continue
		}
		acting, err := ask(ctx, s, func(ctx context.Context, o *service.Mail, _ mail.Caller) ([]service.Acting, error) {
			return o.Acting(ctx, a.SessionID)
		})
		if err != nil {
			return err
		}
		run := running{Activity: a, Agent: strings.Join(names[a.SessionID], ", ")}
		for _, y := range acting {
			if y.Holds != "" {
				run.Holds = append(run.Holds, y.Holds)
			}
		}
		p.Running = append(p.Running, run)
	}
	slices.SortStableFunc(p.Running, func(a, b running) int { return cmp.Compare(b.LastSeen, a.LastSeen) })
	return nil
}

// findNeeds collects the items that wait for the user. Sources that cannot be read are
// listed as problems.
func (s *Site) findNeeds(ctx context.Context, p *today, list []browse.Activity, now int64) {
	for _, part := range []struct {
		what string
		find func(context.Context, *today, []browse.Activity, int64) error
	}{
		{"conflicts", s.conflicts}, {"checks", s.failingChecks}, {"reservations", s.overlaps}, {"mail", s.unacknowledged},
		{"records", s.openQuestions}, {"followers", s.setAside}, {"doctor", s.findings},
	} {
		if err := part.find(ctx, p, list, now); err != nil {
			p.Problems = append(p.Problems, fmt.Sprintf("%s could not be read: %s", part.what, fault.As(err).Message))
		}
	}
	if n := len(p.Needs) - maxNeeds; n > 0 {
		p.Needs, p.NeedsMore = p.Needs[:maxNeeds], n
	}
}

// conflicts adds the memory contexts that two devices changed and that are not merged.
func (s *Site) conflicts(ctx context.Context, p *today, _ []browse.Activity, _ int64) error {
	status, err := s.cairn.Replication().Status(ctx, memory.Caller{}, false)
	for _, c := range status.Conflicts {
		p.Needs = append(p.Needs, need{"conflict", "Two devices changed the context of a memory", "both versions are kept", false, "", nanoTime(int64(c.UpdatedAt)), "See both", "/memories/" + url.PathEscape(c.MemoryID)})
	}
	return err
}

// overlaps adds the reservations of different agents that cover the same files.
func (s *Site) overlaps(ctx context.Context, p *today, _ []browse.Activity, _ int64) error {
	list, err := ask(ctx, s, func(ctx context.Context, o *service.Mail, _ mail.Caller) ([]reservations.Overlap, error) {
		return o.Overlaps(ctx, p.Project)
	})
	for _, one := range list {
		p.Needs = append(p.Needs, need{"overlap", one.Agent + " and " + one.Other + " hold " + one.PathPattern, "", false, one.Project,
			one.Created.UTC().Unix(), "See overlap", "/reservations?project=" + url.QueryEscape(one.Project)})
	}
	return err
}

// findings adds the findings of doctor's last run on this server.
func (s *Site) findings(_ context.Context, p *today, _ []browse.Activity, _ int64) error {
	d := s.diagnosed.Load()
	if d == nil || p.Project != "" {
		return nil
	}
	for _, c := range d.Checks {
		if isFinding(c) {
			p.Needs = append(p.Needs, need{"finding", c.What, c.Why, false, "", d.At, "How to fix", "/status"})
		}
	}
	return nil
}

// failingChecks adds the checks whose last run failed in a finished session. It omits
// checks that have passed in their project since.
func (s *Site) failingChecks(ctx context.Context, p *today, list []browse.Activity, now int64) error {
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return err
	}
	failed := map[string][]browse.FailedCommands{} // by project
	over := list[:min(len(list), maxBars)]         // older sessions have no bar either
	over = slices.DeleteFunc(slices.Clone(over), func(a browse.Activity) bool { return len(a.Failing) == 0 || isRunning(a, now) })
	for _, a := range over {
		failed[a.Project] = append(failed[a.Project], browse.FailedCommands{Commands: a.Failing, After: browse.Position{At: a.Last.Timestamp, ID: a.Last.ID}})
	}
	open := map[string][][]string{}
	for id, list := range failed {
		if open[id], err = browse.StillFailing(ctx, j, id, list); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, a := range over {
		commands := open[a.Project][0]
		open[a.Project] = open[a.Project][1:]
		for _, command := range commands {
			if key := a.Project + "\x00" + command; !seen[key] {
				seen[key] = true
				p.Failing++
				p.Needs = append(p.Needs, need{"failure", middle(90, command), "still fails", true, a.Project, a.LastSeen, "See failure", sessionPath(a.SessionID)})
			}
		}
	}
	return nil
}

// unacknowledged adds the messages to the overseer that require acknowledgement or are
// unread.
func (s *Site) unacknowledged(ctx context.Context, p *today, _ []browse.Activity, _ int64) error {
	waiting, err := ask(ctx, s, func(ctx context.Context, o *service.Mail, c mail.Caller) ([]service.OverseerMessage, error) {
		return o.WaitingForOverseer(ctx, p.Project)
	})
	for _, m := range waiting {
		detail := "unread"
		if m.AckRequired {
			detail = "acknowledgement requested"
		}
		p.Needs = append(p.Needs, need{"mail", m.From + ": " + m.Subject, detail, false, m.Project, m.Created.UTC().Unix(), "Read",
			under(m.Slug, "mail", fmt.Sprint(m.ID))})
	}
	return err
}

// openQuestions adds the unanswered questions of records, for each project the newest.
func (s *Site) openQuestions(ctx context.Context, p *today, _ []browse.Activity, _ int64) error {
	projects, err := s.cairn.Records().ListProjects(ctx)
	if err != nil {
		return err
	}
	for _, q := range projects {
		if q.OpenRecords == 0 || p.Project != "" && q.ID != p.Project {
			continue
		}
		open, err := s.cairn.Records().OpenQuestions(ctx, record.Caller{ProjectID: q.ID}, maxNeeds+1)
		if err != nil {
			return err
		}
		for _, ref := range open {
			p.Needs = append(p.Needs, need{"question", ref.ID + " is open: " + ref.Title, ref.Summary, false, q.ID, 0, "Answer", recordPath(q.ID, ref.ID)})
		}
	}
	return nil
}

// setAside adds the changes that a follower of the log could not process.
func (s *Site) setAside(ctx context.Context, p *today, _ []browse.Activity, _ int64) error {
	list, err := s.cairn.SetAside(ctx)
	if err != nil || p.Project != "" {
		return err
	}
	for _, a := range list {
		p.Needs = append(p.Needs, need{"aside", fmt.Sprintf("%s could not handle change %d", a.Name(), a.Seq),
			fmt.Sprintf("%s, %s", a.Error, count(a.Attempts, "attempt")), false, "", a.Since.Unix(), "How to fix", "/status"})
	}
	return nil
}

// choice contains the period and the project selected on a page.
type choice struct {
	Period  string   `json:"period"`               // 24h, 7d, 30d or visit
	Visit   int64    `json:"last_visit,omitempty"` // end of the previous visit, 0 if unknown
	Since   int64    `json:"since"`
	Project string   `json:"project,omitempty"`
	All     []string `json:"-"` // project ids, most recently active first
	address *url.URL
	now     int64
}

// periods returns the values of the parameter period, the default first.
func periods() []periodOf {
	return []periodOf{
		{"24h", "24 hours", "In the last 24 hours", 24 * 3600}, {"7d", "7 days", "In the last 7 days", 7 * 24 * 3600},
		{"30d", "30 days", "In the last 30 days", 30 * 24 * 3600},
	}
}

type periodOf struct {
	Value, Label, Sentence string
	seconds                int64
}

// visitPeriod is the period since the previous visit.
const visitPeriod = "visit"

// Periods returns the periods in the selection list.
func (c choice) Periods() []periodOf {
	if c.Visit == 0 {
		return periods()
	}
	return append(periods(), periodOf{visitPeriod, "Since my last visit", "Since your last visit, " + moment(c.now, c.Visit), 0})
}

// sinceVisit adds the period since the previous visit. It is the default if that visit
// ended more than a day ago. sinceVisit returns the cookie to set, nil for none.
func (c *choice) sinceVisit(r *http.Request, now int64) (cookie *http.Cookie) {
	c.now = now
	c.Visit, cookie = lastVisit(r, now)
	asked := r.URL.Query().Get("period")
	if c.Visit != 0 && (asked == visitPeriod || asked == "" && c.Visit < c.Since) {
		c.Period, c.Since = visitPeriod, max(c.Visit, now-maxVisit)
	}
	return cookie
}

// With returns the URL of the same page with one parameter changed; "" removes it.
func (c choice) With(name, value string) string { return with(c.address, name, value) }

// Span describes the period for the beginning of a sentence.
func (c choice) Span() string {
	for _, p := range c.Periods() {
		if p.Value == c.Period {
			return p.Sentence
		}
	}
	return c.Period
}

// choose reads the period and the project from a page's URL.
func (s *Site) choose(r *http.Request, now int64) (c choice, err error) {
	q := r.URL.Query()
	c.address, c.Period = r.URL, cmp.Or(q.Get("period"), periods()[0].Value)
	if c.Period == visitPeriod { // the browser's cookie contains the previous visit
		c.Period = periods()[0].Value
	}
	i := slices.IndexFunc(periods(), func(p periodOf) bool { return p.Value == c.Period })
	if i < 0 {
		return c, fault.Newf(fault.Invalid, "invalid_argument", "the period is %.20q, but must be 24h, 7d or 30d", c.Period)
	}
	c.Since = now - periods()[i].seconds
	list, err := s.cairn.Projects(r.Context())
	if err != nil {
		return c, err
	}
	slices.SortFunc(list, func(a, b project.Summary) int {
		return cmp.Or(cmp.Compare(b.LastSeen, a.LastSeen), cmp.Compare(a.ID, b.ID))
	})
	for _, p := range list {
		if p.LastSeen > 0 {
			c.All = append(c.All, p.ID)
		}
	}
	if c.Project = q.Get("project"); c.Project != "" && !slices.ContainsFunc(list, func(p project.Summary) bool { return p.ID == c.Project }) {
		return c, fault.Newf(fault.NotFound, "project_not_found", "there is no project %.60q", c.Project)
	}
	return c, nil
}

func (p *today) live() bool { return true }
