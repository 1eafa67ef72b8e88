package observation

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"cairn/internal/project"
	"cairn/internal/store"
)

// ActivityArgs ask which sessions worked in a range of time.
type ActivityArgs struct {
	Project string // an id or alias; "" for all projects
	Since   int64  // Unix seconds, inclusive
	Until   int64  // Unix seconds, exclusive
	Limit   int    // maximum number of sessions, kept within 1 to 500
	Session string // only this session; "" for any
	Whole   int    // of how many sessions, the first ones, everything is told; 0 for all. The others lack Asked, Actions, Working, Marks and Last
}

// Activity is a session and what happened in it during a range of time. Counts and times
// are those of the range.
type Activity struct {
	SessionID string `json:"session_id"`
	Project   string `json:"project"`
	Harness   string `json:"harness,omitempty"`
	Model     string `json:"model,omitempty"`
	Branch    string `json:"branch,omitempty"`
	Asked     string `json:"asked"`      // the first prompt that says what the session is about, one line; "" for none
	StartedAt int64  `json:"started_at"` // Unix seconds, like all times here
	LastSeen  int64  `json:"last_seen"`
	ClosedAt  int64  `json:"closed_at,omitempty"` // when the session ended; 0 while it may go on

	Actions int      `json:"actions"`
	Files   []string `json:"files"`             // the last 20 that it edited, newest first, over the whole session
	Commits []Commit `json:"commits"`           // newest first, over the whole session
	Fixed   []string `json:"fixed,omitempty"`   // commands that failed and later passed, over the whole session
	Failing []string `json:"failing,omitempty"` // checks and tasks of the project whose last run failed, over the whole session

	Working []Span `json:"working"` // stretches without a pause of more than two minutes, in order
	Marks   []Mark `json:"marks"`   // in order

	Last TraceRow `json:"last"` // the newest row of the range that is neither a prompt nor a message; zero for none
}

// Span is a stretch of time, in Unix seconds; both ends belong to it.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Mark is a moment of a session that stands out.
type Mark struct {
	At   int64  `json:"at"` // Unix seconds
	Kind string `json:"kind"`
	ID   int64  `json:"id"` // of the row
}

// Values of Mark.Kind.
const (
	MarkPrompt  = "prompt"
	MarkFailure = "failure"
	MarkCommit  = "commit"
)

// pause is how many seconds may lie between two rows of one Span.
const pause = 120

const (
	// The branch of a session s; one that is not the main branch before it.
	sessionBranch = `ifnull((SELECT b.branch FROM session_branches b WHERE b.session_key = s.key ORDER BY b.branch IN ('main', 'master'), b.branch LIMIT 1), '')`

	selectActiveSessions = `SELECT s.key, s.id, s.project_id, ifnull(s.harness, ''), ifnull(s.model, ''),
` + sessionBranch + `,
s.started_at, s.last_seen, ifnull(s.closed_at, 0), ifnull(s.summary, '')
FROM sessions s WHERE (?1 = '' OR s.project_id = ?1) AND s.last_seen >= ?2 AND s.started_at < ?3
AND (?5 = '' OR s.id = ?5) AND EXISTS (SELECT 1 FROM observation_rows o WHERE o.session_key = s.key)
ORDER BY s.started_at DESC, s.key DESC LIMIT +?4`

	selectActivity = `SELECT id, timestamp, obs_type FROM observation_rows
WHERE session_key = ? AND timestamp >= ? AND timestamp < ? ORDER BY timestamp, id`

	selectTraceRow = `SELECT id, timestamp, obs_type, file_path, substr(content, 1, 120), is_pinned,
metadata ->> '$.failed' IS NOT NULL, metadata ->> '$.interrupted' IS NOT NULL,
ifnull(metadata ->> '$.command', ''), ifnull(metadata ->> '$.error', '')
FROM observation_rows WHERE id = ?`
)

// Activity lists the sessions that were active in a range of time, those that began last
// first; nil for none and while there is no store. An unknown project is NotFound. more
// reports that there were further sessions.
func (j *Service) Activity(ctx context.Context, a ActivityArgs) (list []Activity, more bool, err error) {
	a.Limit = min(max(a.Limit, 1), 500)
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		id, err := projectID(ctx, tx, a.Project)
		if err != nil {
			return err
		}
		var keys []int64
		var summaries []string
		err = tx.Each(ctx, func(r *sql.Rows) error {
			var s Activity
			var key int64
			var summary string
			err := r.Scan(&key, &s.SessionID, &s.Project, &s.Harness, &s.Model, &s.Branch, &s.StartedAt, &s.LastSeen, &s.ClosedAt, &summary)
			keys, summaries, list = append(keys, key), append(summaries, summary), append(list, s)
			return err
		}, selectActiveSessions, id, a.Since, a.Until, a.Limit+1, a.Session)
		if more = len(list) > a.Limit; more {
			list = list[:a.Limit]
		}
		for i := range list {
			if err == nil {
				err = list[i].fill(ctx, tx, keys[i], summaries[i], a, a.Whole == 0 || i < a.Whole)
			}
		}
		return err
	})
	return list, more, err
}

// projectID is the id of the project that an id or alias names, "" for "".
func projectID(ctx context.Context, tx *store.Tx, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	p, ok, err := project.Find(ctx, tx, name)
	if err == nil && !ok {
		err = project.NotFound(name)
	}
	return p.ID, err
}

// fill completes a session from its rows and its digest, which is made here where the
// session has none yet.
func (s *Activity) fill(ctx context.Context, tx *store.Tx, key int64, summary string, a ActivityArgs, whole bool) error {
	var d Digest
	var err error
	if summary == "" || json.Unmarshal([]byte(summary), &d) != nil {
		if d, err = digest(ctx, tx, project.Session{Key: key, ID: s.SessionID}); err != nil {
			return err
		}
	}
	s.Files, s.Commits, s.Fixed = d.FilesEdited, d.Commits, d.Fixed
	s.Failing = slices.DeleteFunc(d.Failing, func(command string) bool { return !leavesWork(command) })
	s.Working, s.Marks = []Span{}, []Mark{}
	if !whole {
		return nil
	}
	r := recalling{ctx: ctx, tx: tx}
	if s.Asked, err = r.about(key, d.Intent); err != nil {
		return err
	}
	last := int64(0)
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var id, at int64
		var kind string
		if err := rows.Scan(&id, &at, &kind); err != nil {
			return err
		}
		if isAction(kind) {
			s.Actions++
			last = id
		}
		s.add(id, at, kind)
		return nil
	}, selectActivity, key, a.Since, a.Until)
	if err == nil && last != 0 {
		s.Last, err = readTraceRow(ctx, tx, last)
	}
	return err
}

// add takes a row of the session into its stretches and marks.
func (s *Activity) add(id, at int64, kind string) {
	if n := len(s.Working); n > 0 && at-s.Working[n-1].To <= pause {
		s.Working[n-1].To = max(s.Working[n-1].To, at)
	} else {
		s.Working = append(s.Working, Span{at, at})
	}
	marks := map[string]string{typePrompt: MarkPrompt, typeCommandError: MarkFailure, typeGitCommit: MarkCommit}
	if mark := marks[kind]; mark != "" {
		s.Marks = append(s.Marks, Mark{at, mark, id})
	}
}

func readTraceRow(ctx context.Context, tx *store.Tx, id int64) (row TraceRow, err error) {
	var command, said string
	err = tx.Get(ctx, []any{&row.ID, &row.Timestamp, &row.ObsType, &row.FilePath, &row.ContentPreview, &row.IsPinned,
		&row.Failed, &row.Interrupted, &command, &said}, selectTraceRow, id)
	row.settle(command, said)
	return row, err
}

// RowsArgs ask for rows in the order of time.
type RowsArgs struct {
	Project string // an id or alias; "" for all projects
	ObsType string // "" for every type
	Path    string // rows of one file, relative to its worktree, with slashes; "" for any. Needs Project
	Branch  string // rows of sessions that were on this branch; "" for any
	Since   int64  // only rows from this time on, in Unix seconds
	Before  Place  // only rows before this one; zero for the newest
	Limit   int    // kept within 1 to 200

	Sessions []string // only rows of these sessions, by their ids; nil for all
}

// Place is where a row stands in the order of time.
type Place struct {
	At int64 `json:"at"` // Unix seconds
	ID int64 `json:"id"`
}

// TimelineRow is a row as lists of several sessions show it.
type TimelineRow struct {
	TraceRow
	SessionID string `json:"session_id"`
	Project   string `json:"project"`
	Harness   string `json:"harness,omitempty"`
	Branch    string `json:"branch,omitempty"` // of its session
}

const (
	selectTimelineRow = `SELECT o.id, o.timestamp, o.obs_type, o.file_path, substr(o.content, 1, 200), o.is_pinned,
o.metadata ->> '$.failed' IS NOT NULL, o.metadata ->> '$.interrupted' IS NOT NULL,
ifnull(o.metadata ->> '$.command', ''), ifnull(o.metadata ->> '$.error', ''), s.id, p.id, ifnull(s.harness, ''),
` + sessionBranch + `
FROM observation_rows o JOIN sessions s ON s.key = o.session_key JOIN projects p ON p.key = o.project_key WHERE o.id = ?`

	// The places of the newest rows of each source. The first is answered by an index alone.
	timelineEnd = ` AND (?3 = 0 OR (timestamp, id) < (?3, ?4)) ORDER BY timestamp DESC, id DESC LIMIT +?5`

	selectPlacesOfType = `SELECT timestamp, id FROM observation_rows WHERE project_key = ?1 AND obs_type = ?2` + timelineEnd
	selectPlacesOfPath = `SELECT timestamp, id FROM observation_rows WHERE project_key = ?1 AND path_key = ?2
AND (?6 = '' OR obs_type = ?6)` + timelineEnd
	selectPlacesOfSession = `SELECT timestamp, id FROM observation_rows WHERE session_key = ?1 AND (?2 = '' OR project_key = (SELECT key FROM projects WHERE id = ?2))
AND (?6 = '' OR obs_type = ?6) AND (?7 = '' OR path_key = ?7)` + timelineEnd

	selectTimelineProjects = `SELECT key FROM projects WHERE ?1 = '' OR id = ?1`
	selectSessionsOfBranch = `SELECT session_key FROM session_branches WHERE branch = ?`
	selectSessionsNamed    = `SELECT key FROM sessions WHERE id IN (SELECT value FROM json_each(?))`
)

// Rows lists rows of many sessions, newest first, never nil. An unknown project is
// NotFound. The next page begins before the place of the last row.
//
// The newest rows of each project and type, or of each session that is meant, are merged.
func (j *Service) Rows(ctx context.Context, a RowsArgs) (list []TimelineRow, err error) {
	a.Limit = min(max(a.Limit, 1), 200)
	list = []TimelineRow{}
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		id, err := projectID(ctx, tx, a.Project)
		if err != nil {
			return err
		}
		m := merging{ctx: ctx, tx: tx, args: a}
		if a.Branch != "" || a.Sessions != nil {
			err = m.ofSessions(id)
		} else {
			err = m.ofProjects(id)
		}
		for _, p := range m.places {
			if err == nil && p.At >= a.Since {
				err = tx.Each(ctx, func(r *sql.Rows) error {
					row, err := scanTimelineRow(r)
					list = append(list, row)
					return err
				}, selectTimelineRow, p.ID)
			}
		}
		return err
	})
	return list, err
}

// merging collects the newest places of several sources.
type merging struct {
	ctx    context.Context
	tx     *store.Tx
	args   RowsArgs
	places []Place // at most args.Limit, newest first
}

func (m *merging) ofProjects(id string) error {
	keys, err := m.tx.Keys(m.ctx, selectTimelineProjects, id)
	if err != nil {
		return err
	}
	a := m.args
	for _, key := range keys {
		switch {
		case a.Path != "":
			err = m.add(selectPlacesOfPath, key, a.Path, a.Before.At, a.Before.ID, a.Limit, a.ObsType)
		case a.ObsType != "":
			err = m.add(selectPlacesOfType, key, a.ObsType, a.Before.At, a.Before.ID, a.Limit)
		default:
			for _, name := range types() {
				if err == nil {
					err = m.add(selectPlacesOfType, key, name, a.Before.At, a.Before.ID, a.Limit)
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *merging) ofSessions(id string) error {
	sessions, err := m.sessions()
	for _, key := range sessions {
		if err == nil {
			err = m.add(selectPlacesOfSession, key, id, m.args.Before.At, m.args.Before.ID, m.args.Limit, m.args.ObsType, m.args.Path)
		}
	}
	return err
}

// sessions are the keys of the sessions that are meant: those on the branch, those named, or
// those that are both.
func (m *merging) sessions() (keys []int64, err error) {
	if m.args.Branch != "" {
		if keys, err = m.tx.Keys(m.ctx, selectSessionsOfBranch, m.args.Branch); err != nil || m.args.Sessions == nil {
			return keys, err
		}
	}
	ids, err := json.Marshal(m.args.Sessions)
	if err != nil {
		return nil, err
	}
	named, err := m.tx.Keys(m.ctx, selectSessionsNamed, string(ids))
	if m.args.Branch == "" {
		return named, err
	}
	return slices.DeleteFunc(keys, func(key int64) bool { return !slices.Contains(named, key) }), err
}

// add merges the places of one source.
func (m *merging) add(query string, args ...any) error {
	err := m.tx.Each(m.ctx, func(r *sql.Rows) error {
		var p Place
		err := r.Scan(&p.At, &p.ID)
		m.places = append(m.places, p)
		return err
	}, query, args...)
	slices.SortFunc(m.places, func(x, y Place) int { return y.compare(x) })
	m.places = m.places[:min(len(m.places), m.args.Limit)]
	return err
}

func scanTimelineRow(r *sql.Rows) (row TimelineRow, err error) {
	var command, said string
	err = r.Scan(&row.ID, &row.Timestamp, &row.ObsType, &row.FilePath, &row.ContentPreview, &row.IsPinned,
		&row.Failed, &row.Interrupted, &command, &said, &row.SessionID, &row.Project, &row.Harness, &row.Branch)
	row.settle(command, said)
	return row, err
}

// Types are the values of ObsType, in the order in which people look for them.
func Types() []string { return types() }

const selectPassedSince = `SELECT o.timestamp, o.id, o.content FROM observation_rows o
WHERE o.project_key = (SELECT key FROM projects WHERE id = ?1) AND o.obs_type = 'command'
AND (o.timestamp, o.id) > (?2, ?3) AND o.metadata ->> '$.interrupted' IS NULL ORDER BY o.timestamp DESC LIMIT 2000`

// FailedCommands are commands of a session that failed, and the place of its last row.
type FailedCommands struct {
	Commands []string
	After    Place
}

// StillFailing are, for each of some sessions of a project that is given by its id, those of
// their failed commands that nothing has shown to pass after their place: neither the same
// command nor a check that covers it. It looks at the newest 2,000 commands of that time.
func (j *Service) StillFailing(ctx context.Context, projectID string, failed []FailedCommands) (open [][]string, err error) {
	var passed []passedRow
	if len(failed) > 0 {
		first := slices.MinFunc(failed, func(x, y FailedCommands) int { return x.After.compare(y.After) })
		passed, err = j.passedSince(ctx, projectID, first.After)
	}
	for _, f := range failed {
		var left []string
		for _, command := range f.Commands {
			if err == nil && !passesAfter(passed, f.After, command) {
				left = append(left, command)
			}
		}
		open = append(open, left)
	}
	return open, err
}

// passedRow is a command that passed, with the checks in it.
type passedRow struct {
	place   Place
	command string
	checks  []passedCheck
}

// passedSince reads the newest commands that passed after a place.
func (j *Service) passedSince(ctx context.Context, projectID string, after Place) (passed []passedRow, err error) {
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var row passedRow
			var line string
			err := r.Scan(&row.place.At, &row.place.ID, &line)
			row.command = cutRunes(normalCommand(line), maxIntent)
			if mayBeCheck(line) {
				row.checks = passedChecks(line)
			}
			passed = append(passed, row)
			return err
		}, selectPassedSince, projectID, after.At, after.ID)
	})
	return passed, err
}

// passesAfter reports whether rows after a place show that a command passes.
func passesAfter(passed []passedRow, after Place, command string) bool {
	var checks []passedCheck
	for _, row := range passed {
		if row.place.compare(after) <= 0 {
			continue
		}
		if row.command == command {
			return true
		}
		checks = append(checks, row.checks...)
	}
	return resolves(checks, command)
}

func (p Place) compare(q Place) int { return cmp.Or(cmp.Compare(p.At, q.At), cmp.Compare(p.ID, q.ID)) }

const (
	selectSessionBefore = `SELECT s.id FROM sessions s, sessions o WHERE o.id = ? AND s.project_id = o.project_id
AND (s.started_at, s.key) < (o.started_at, o.key) AND EXISTS (SELECT 1 FROM observation_rows r WHERE r.session_key = s.key)
ORDER BY s.started_at DESC, s.key DESC LIMIT 1`

	selectSessionAfter = `SELECT s.id FROM sessions s, sessions o WHERE o.id = ? AND s.project_id = o.project_id
AND (s.started_at, s.key) > (o.started_at, o.key) AND EXISTS (SELECT 1 FROM observation_rows r WHERE r.session_key = s.key)
ORDER BY s.started_at, s.key LIMIT 1`
)

// Neighbours are the ids of the sessions of the same project that began before and after a
// session; "" where there is none.
func (j *Service) Neighbours(ctx context.Context, session string) (before, after string, err error) {
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		earlier, err := tx.Texts(ctx, selectSessionBefore, session)
		if err != nil {
			return err
		}
		later, err := tx.Texts(ctx, selectSessionAfter, session)
		before, after = first(earlier), first(later)
		return err
	})
	return before, after, err
}

// first is the first of some texts, "" for none.
func first(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}
