package browse

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"cairn/internal/observation"
	"cairn/internal/observation/search"
	"cairn/internal/oneline"
	"cairn/internal/project"
	"cairn/internal/shell"
	"cairn/internal/store"
)

// ActivityArgs are the arguments of ActiveSessions.
type ActivityArgs struct {
	Project string // an id or alias; "" for all projects
	Since   int64  // Unix seconds, inclusive
	Until   int64  // Unix seconds, exclusive
	Limit   int    // maximum number of sessions, clamped to 1–500
	Session string // only this session; "" for any
	Whole   int    // number of first sessions with all fields, 0 for all; others lack Asked, Actions, Working, Marks and Last
}

// Activity is a session with its rows in a range of time. Counts and times cover only that
// range, unless a field says otherwise.
type Activity struct {
	SessionID string `json:"session_id"`
	Project   string `json:"project"`
	Harness   string `json:"harness,omitempty"`
	Model     string `json:"model,omitempty"`
	Branch    string `json:"branch,omitempty"`
	Asked     string `json:"asked"`      // first prompt that describes the purpose of the session, one line; "" if none
	StartedAt int64  `json:"started_at"` // Unix seconds, like all times here
	LastSeen  int64  `json:"last_seen"`
	ClosedAt  int64  `json:"closed_at,omitempty"` // when the session ended; 0 if it may still continue

	Actions int                  `json:"actions"`
	Files   []string             `json:"files"`             // last 20 edited files, newest first, over the whole session
	Commits []observation.Commit `json:"commits"`           // newest first, over the whole session
	Fixed   []string             `json:"fixed,omitempty"`   // commands that failed and later passed, over the whole session
	Failing []string             `json:"failing,omitempty"` // checks and tasks of the project whose last run failed, over the whole session

	Working []Span `json:"working"` // periods without a pause of more than two minutes, in order
	Marks   []Mark `json:"marks"`   // in order

	Last TraceRow `json:"last"` // newest row of the range that is neither a prompt nor a message; zero if none
}

// Span is a period in Unix seconds; both ends are inclusive.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Mark is a notable moment of a session.
type Mark struct {
	At   int64  `json:"at"` // Unix seconds
	Kind string `json:"kind"`
	ID   int64  `json:"id"` // id of the row
}

// Values of Mark.Kind.
const (
	MarkPrompt  = "prompt"
	MarkFailure = "failure"
	MarkCommit  = "commit"
)

// pause is the maximum number of seconds between two consecutive rows of one Span.
const pause = 120

const (
	// The branch of a session s; other branches are preferred to the main branch.
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

// ActiveSessions lists the sessions that were active in a range of time, latest start first.
// The list is nil if no session was active or no store exists. An unknown project is NotFound.
// more reports whether there are more sessions than a.Limit.
func ActiveSessions(ctx context.Context, svc *observation.Service, a ActivityArgs) (list []Activity, more bool, err error) {
	a.Limit = min(max(a.Limit, 1), 500)
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		id, err := observation.ProjectID(ctx, tx, a.Project)
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

// fill completes a session from its rows and its digest. If the session has no digest yet, fill
// computes it.
func (s *Activity) fill(ctx context.Context, tx *store.Tx, key int64, summary string, a ActivityArgs, whole bool) error {
	var d observation.Digest
	var err error
	if summary == "" || json.Unmarshal([]byte(summary), &d) != nil {
		if d, err = observation.DigestOf(ctx, tx, project.Session{Key: key, ID: s.SessionID}); err != nil {
			return err
		}
	}
	s.Files, s.Commits, s.Fixed = d.FilesEdited, d.Commits, d.Fixed
	s.Failing = slices.DeleteFunc(d.Failing, func(command string) bool { return !shell.LeavesWork(command) })
	s.Working, s.Marks = []Span{}, []Mark{}
	if !whole {
		return nil
	}
	if s.Asked, err = search.AboutSession(ctx, tx, key, d.Intent); err != nil {
		return err
	}
	last := int64(0)
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var id, at int64
		var kind string
		if err := rows.Scan(&id, &at, &kind); err != nil {
			return err
		}
		if observation.IsAction(kind) {
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

// add adds a row of the session to Working and Marks.
func (s *Activity) add(id, at int64, kind string) {
	if n := len(s.Working); n > 0 && at-s.Working[n-1].To <= pause {
		s.Working[n-1].To = max(s.Working[n-1].To, at)
	} else {
		s.Working = append(s.Working, Span{at, at})
	}
	marks := map[string]string{observation.TypePrompt: MarkPrompt, observation.TypeCommandError: MarkFailure, observation.TypeGitCommit: MarkCommit}
	if mark := marks[kind]; mark != "" {
		s.Marks = append(s.Marks, Mark{at, mark, id})
	}
}

func readTraceRow(ctx context.Context, tx *store.Tx, id int64) (row TraceRow, err error) {
	var command, said string
	err = tx.Get(ctx, []any{&row.ID, &row.Timestamp, &row.ObsType, &row.FilePath, &row.ContentPreview, &row.IsPinned,
		&row.Failed, &row.Interrupted, &command, &said}, selectTraceRow, id)
	row.complete(command, said)
	return row, err
}

// RowsArgs are the arguments of Rows.
type RowsArgs struct {
	Project string   // an id or alias; "" for all projects
	ObsType string   // "" for every type
	Path    string   // only rows of this file, relative to its worktree, with slashes; "" for any. Requires Project
	Branch  string   // only rows of sessions that were on this branch; "" for any
	Since   int64    // only rows from this time on, in Unix seconds
	Before  Position // only rows before this position; zero for the newest
	Limit   int      // maximum number of rows, clamped to 1–200

	Sessions []string // only rows of the sessions with these ids; nil for all
}

// Position is the position of a row in order of time.
type Position struct {
	At int64 `json:"at"` // Unix seconds
	ID int64 `json:"id"`
}

// TimelineRow is a row in the form that lists of several sessions use.
type TimelineRow struct {
	TraceRow
	SessionID string `json:"session_id"`
	Project   string `json:"project"`
	Harness   string `json:"harness,omitempty"`
	Branch    string `json:"branch,omitempty"` // branch of the row's session
}

const (
	selectTimelineRow = `SELECT o.id, o.timestamp, o.obs_type, o.file_path, substr(o.content, 1, 200), o.is_pinned,
o.metadata ->> '$.failed' IS NOT NULL, o.metadata ->> '$.interrupted' IS NOT NULL,
ifnull(o.metadata ->> '$.command', ''), ifnull(o.metadata ->> '$.error', ''), s.id, p.id, ifnull(s.harness, ''),
` + sessionBranch + `
FROM observation_rows o JOIN sessions s ON s.key = o.session_key JOIN projects p ON p.key = o.project_key WHERE o.id = ?`

	// Positions of the newest rows of each source. An index alone answers the first query.
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

// Rows lists rows of many sessions, newest first; the list is never nil. An unknown project is
// NotFound. For the next page, set Before to the position of the last row.
//
// Rows merges the newest rows of each project and type, or of each selected session.
func Rows(ctx context.Context, svc *observation.Service, a RowsArgs) (list []TimelineRow, err error) {
	a.Limit = min(max(a.Limit, 1), 200)
	list = []TimelineRow{}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		id, err := observation.ProjectID(ctx, tx, a.Project)
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

// merging collects the newest positions of several sources.
type merging struct {
	ctx    context.Context
	tx     *store.Tx
	args   RowsArgs
	places []Position // at most args.Limit, newest first
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
			for _, name := range observation.Types() {
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

// sessions returns the keys of the selected sessions: those on the branch, those with the given
// ids, or those that match both.
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

// add merges the positions of one source.
func (m *merging) add(query string, args ...any) error {
	err := m.tx.Each(m.ctx, func(r *sql.Rows) error {
		var p Position
		err := r.Scan(&p.At, &p.ID)
		m.places = append(m.places, p)
		return err
	}, query, args...)
	slices.SortFunc(m.places, func(x, y Position) int { return y.compare(x) })
	m.places = m.places[:min(len(m.places), m.args.Limit)]
	return err
}

func scanTimelineRow(r *sql.Rows) (row TimelineRow, err error) {
	var command, said string
	err = r.Scan(&row.ID, &row.Timestamp, &row.ObsType, &row.FilePath, &row.ContentPreview, &row.IsPinned,
		&row.Failed, &row.Interrupted, &command, &said, &row.SessionID, &row.Project, &row.Harness, &row.Branch)
	row.complete(command, said)
	return row, err
}

const selectPassedSince = `SELECT o.timestamp, o.id, o.content FROM observation_rows o
WHERE o.project_key = (SELECT key FROM projects WHERE id = ?1) AND o.obs_type = 'command'
AND (o.timestamp, o.id) > (?2, ?3) AND o.metadata ->> '$.interrupted' IS NULL ORDER BY o.timestamp DESC LIMIT 2000`

// FailedCommands are the failed commands of a session and the position of its last row.
type FailedCommands struct {
	Commands []string
	After    Position
}

// StillFailing returns, for each element of failed, the commands that did not pass after its
// position. A command passes if the same command or a check that covers it succeeded later.
// StillFailing reads at most the newest 2,000 commands after the earliest position. projectID
// is the id of the sessions' project.
func StillFailing(ctx context.Context, svc *observation.Service, projectID string, failed []FailedCommands) (open [][]string, err error) {
	var passed []passedRow
	if len(failed) > 0 {
		first := slices.MinFunc(failed, func(x, y FailedCommands) int { return x.After.compare(y.After) })
		passed, err = passedSince(ctx, svc, projectID, first.After)
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

// passedRow is a command that passed, with the checks it contains.
type passedRow struct {
	place   Position
	command string
	checks  []shell.PassedCheck
}

// passedSince reads the newest commands that passed after a position.
func passedSince(ctx context.Context, svc *observation.Service, projectID string, after Position) (passed []passedRow, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var row passedRow
			var line string
			err := r.Scan(&row.place.At, &row.place.ID, &line)
			row.command = oneline.Cut(shell.Normal(line), observation.MaxIntent)
			if shell.MayCheck(line) {
				row.checks = shell.PassedChecks(line)
			}
			passed = append(passed, row)
			return err
		}, selectPassedSince, projectID, after.At, after.ID)
	})
	return passed, err
}

// passesAfter reports whether rows after a position show that a command passes.
func passesAfter(passed []passedRow, after Position, command string) bool {
	var checks []shell.PassedCheck
	for _, row := range passed {
		if row.place.compare(after) <= 0 {
			continue
		}
		if row.command == command {
			return true
		}
		checks = append(checks, row.checks...)
	}
	return shell.Resolves(checks, command)
}

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.At, q.At), cmp.Compare(p.ID, q.ID))
}

const (
	selectSessionBefore = `SELECT s.id FROM sessions s, sessions o WHERE o.id = ? AND s.project_id = o.project_id
AND (s.started_at, s.key) < (o.started_at, o.key) AND EXISTS (SELECT 1 FROM observation_rows r WHERE r.session_key = s.key)
ORDER BY s.started_at DESC, s.key DESC LIMIT 1`

	selectSessionAfter = `SELECT s.id FROM sessions s, sessions o WHERE o.id = ? AND s.project_id = o.project_id
AND (s.started_at, s.key) > (o.started_at, o.key) AND EXISTS (SELECT 1 FROM observation_rows r WHERE r.session_key = s.key)
ORDER BY s.started_at, s.key LIMIT 1`
)

// Neighbours returns the ids of the previous and next session of the same project, by start
// time. An id is "" if there is no such session.
func Neighbours(ctx context.Context, svc *observation.Service, session string) (before, after string, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
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

// first returns the first text, "" if there is none.
func first(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}
