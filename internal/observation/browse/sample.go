package browse

import (
	"context"
	"database/sql"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"cairn/internal/observation"
	"cairn/internal/oneline"
	"cairn/internal/shell"
	"cairn/internal/store"
)

// Totals counts the rows that were stored after a given row.
type Totals struct {
	Conversations int   `json:"conversations"`
	Observations  int   `json:"observations"`
	Projects      int   `json:"projects"`
	Oldest        int64 `json:"oldest"` // Unix seconds of the oldest row, 0 if there are no rows
}

const selectTotals = `SELECT count(DISTINCT session_key), count(*), count(DISTINCT project_key), ifnull(min(timestamp), 0)
FROM observation_rows WHERE id > ?`

// CountAfter counts the rows with an id above after; 0 counts all rows. Without a store all
// counts are zero.
func CountAfter(ctx context.Context, svc *observation.Service, after int64) (h Totals, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&h.Conversations, &h.Observations, &h.Projects, &h.Oldest}, selectTotals, after)
	})
	return h, err
}

// SampleQuestion is a question about the user's own history, with its answer. It demonstrates
// what users can ask (observations §16).
type SampleQuestion struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
	ID       int64  `json:"observation"` // id of the row that the answer is about
	Query    string `json:"query"`       // search query that finds that row, with Type and Project as filters
	Type     string `json:"obs_type"`
	Project  string `json:"project"`
}

// Limits of the sample question: newest failures read, sessions read, and characters of a
// quoted text.
const (
	maxShowFailures = 400
	maxShowSessions = 60
	maxShowText     = 70
)

const (
	// By project, so that an index covers the search.
	selectShowFailures = `SELECT session_key FROM (
    SELECT o.session_key, o.timestamp FROM projects p
    JOIN observation_rows o ON o.project_key = p.key AND o.obs_type = 'command_error'
    ORDER BY o.timestamp DESC LIMIT +?)
GROUP BY session_key ORDER BY max(timestamp) DESC LIMIT +?`

	selectShowRows = `SELECT o.id, o.timestamp, p.id, o.obs_type, o.content, ifnull(o.path_key, ''), ifnull(p.root, ''),
ifnull(o.metadata ->> '$.failed', 0), ifnull(o.metadata ->> '$.command', ''), ifnull(o.metadata ->> '$.error', '')
FROM observation_rows o JOIN projects p ON p.key = o.project_key
WHERE o.session_key = ? AND o.metadata ->> '$.interrupted' IS NULL ORDER BY o.timestamp, o.id`

	selectShowFile = `SELECT p.id, ifnull(p.root, ''), o.path_key, count(*), count(DISTINCT o.session_key), max(o.id)
FROM projects p JOIN observation_rows o ON o.project_key = p.key AND o.obs_type IN ('file_edit', 'file_write')
WHERE o.path_key IS NOT NULL AND o.timestamp >= ? AND ifnull(o.metadata ->> '$.failed', 0) = 0
  AND o.metadata ->> '$.interrupted' IS NULL
GROUP BY p.key, o.path_key ORDER BY count(*) DESC, max(o.timestamp) DESC LIMIT 1`

	selectShowEdit = `SELECT o.obs_type, ifnull(q.content, '') FROM observation_rows o
LEFT JOIN prompts q ON q.id = o.prompt_id AND q.source = 'user' WHERE o.id = ?`
)

// FindSampleQuestion finds the last command that failed and later passed, and the changes in
// between. If there is none, it finds the file with the most changes in the last 90 days, and
// their purpose. It returns nil if the history contains neither.
func FindSampleQuestion(ctx context.Context, svc *observation.Service) (out *SampleQuestion, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		best, err := lastFix(ctx, tx)
		if err != nil {
			return err
		}
		now := tx.Now().Unix()
		if best != nil {
			out = best.question(now)
			return nil
		}
		out, err = busiestFile(ctx, tx, now)
		return err
	})
	return out, err
}

// showRow contains the columns of a row that the sample question uses.
type showRow struct {
	id, at                int64
	project, obsType      string
	content, path         string
	failed                bool
	command, errorMessage string
}

// fix is a command that failed and later passed in the same session.
type fix struct {
	command        string // in its normal form
	failed, passed showRow
	changed        []string // paths changed in between, each once
}

// lastFix returns the newest fix, preferring fixes with changes in between. It returns nil if
// there is none.
func lastFix(ctx context.Context, tx *store.Tx) (best *fix, err error) {
	sessions, err := tx.Keys(ctx, selectShowFailures, maxShowFailures, maxShowSessions)
	if err != nil {
		return nil, err
	}
	for _, key := range sessions {
		var rows []showRow
		err := tx.Each(ctx, func(r *sql.Rows) error {
			var s showRow
			var root string
			err := r.Scan(&s.id, &s.at, &s.project, &s.obsType, &s.content, &s.path, &root, &s.failed, &s.command, &s.errorMessage)
			s.path = strings.TrimPrefix(s.path, root+"/")
			rows = append(rows, s)
			return err
		}, selectShowRows, key)
		if err != nil {
			return nil, err
		}
		for _, f := range fixes(rows) {
			if best == nil || better(f, *best) {
				best = &f
			}
		}
	}
	return best, nil
}

func better(a, b fix) bool {
	if told := len(a.changed) > 0; told != (len(b.changed) > 0) {
		return told
	}
	return a.passed.at > b.passed.at
}

// fixes returns the fixes of one session, in order.
func fixes(rows []showRow) []fix {
	var out []fix
	failures := map[string]int{} // command -> index of the last failure
	for i, r := range rows {
		switch r.obsType {
		case observation.TypeCommandError:
			if key := shell.Normal(r.command); searchable(key) != "" {
				failures[key] = i
			}
		case observation.TypeCommand, observation.TypeGitCommit, observation.TypeGitPush, observation.TypeGitHub:
			key := shell.Normal(r.content)
			at, ok := failures[key]
			if !ok {
				continue
			}
			delete(failures, key)
			out = append(out, fix{command: key, failed: rows[at], passed: r, changed: changedPaths(rows[at:i])})
		}
	}
	return out
}

func changedPaths(rows []showRow) []string {
	var out []string
	for _, r := range rows {
		change := r.obsType == observation.TypeEdit || r.obsType == observation.TypeWrite
		if change && !r.failed && r.path != "" && !slices.Contains(out, r.path) {
			out = append(out, r.path)
		}
	}
	return out
}

func (f *fix) question(now int64) *SampleQuestion {
	said := ""
	if e := oneline.Cell(observation.Reason(f.failed.command, f.failed.errorMessage), maxShowText); e != "" {
		said = " with “" + e + "”"
	}
	between := "it passed again"
	if n := len(f.changed); n > 0 {
		between = "after a change to " + oneline.Path(f.changed[n-1], maxShowText)
		if n > 1 {
			between = fmt.Sprintf("after changes to %s and %s", oneline.Path(f.changed[n-1], maxShowText), plural(n-1, "other file"))
		}
		between += " it passed"
	}
	if wait := f.passed.at - f.failed.at; wait >= 60 {
		between += fmt.Sprintf(", %s later", span(wait))
	}
	return &SampleQuestion{
		Question: fmt.Sprintf("What made “%s” pass again in %s?", oneline.Cell(f.command, maxShowText), f.failed.project),
		Answer:   fmt.Sprintf("It failed %s%s; %s.", oneline.Ago(now, f.failed.at), said, between),
		ID:       f.failed.id, Query: searchable(f.command), Type: observation.TypeCommandError, Project: f.failed.project,
	}
}

// busiestFile returns a question about the file with the most changes in the last 90 days, nil
// if there is none.
func busiestFile(ctx context.Context, tx *store.Tx, now int64) (*SampleQuestion, error) {
	const lately = 90 * 24 * 60 * 60
	var project, root, file string
	var edits, sessions int
	var last int64
	found := false
	err := tx.Each(ctx, func(r *sql.Rows) error {
		found = true
		return r.Scan(&project, &root, &file, &edits, &sessions, &last)
	}, selectShowFile, now-lately)
	if err != nil || !found {
		return nil, err
	}
	var intent, obsType string
	if err := tx.Get(ctx, []any{&obsType, &intent}, selectShowEdit, last); err != nil {
		return nil, err
	}
	file = strings.TrimPrefix(file, root+"/")
	query := searchable(path.Base(file))
	if query == "" {
		return nil, nil
	}
	answer := fmt.Sprintf("%s: %s in %s", oneline.Path(file, maxShowText), plural(edits, "edit"), plural(sessions, "conversation"))
	if asked := oneline.Cell(intent, maxShowText); asked != "" {
		answer += ", the last for “" + asked + "”"
	}
	return &SampleQuestion{
		Question: "Which file changes most in " + project + ", and what for?", Answer: answer + ".",
		ID: last, Query: query, Type: obsType, Project: project,
	}, nil
}

// searchable returns up to six leading words of a text for a query between double quotes in any
// shell. The words contain only letters and digits, and none is a search operator. The result
// is "" if there are no such words.
func searchable(text string) string {
	words := strings.FieldsFunc(oneline.Cut(text, observation.MaxIntent), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	words = words[:min(len(words), 6)]
	for i, w := range words {
		switch w {
		case "AND", "OR", "NOT", "NEAR":
			words[i] = strings.ToLower(w)
		}
	}
	return strings.Join(words, " ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// span renders a number of seconds in the largest unit that fits.
func span(seconds int64) string {
	switch {
	case seconds < 60*60:
		return plural(int(seconds/60), "minute")
	case seconds < 24*60*60:
		return plural(int(seconds/60/60), "hour")
	}
	return plural(int(seconds/60/60/24), "day")
}
