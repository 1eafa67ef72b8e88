package observation

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/oneline"
	"cairn/internal/project"
	"cairn/internal/shell"
	"cairn/internal/store"
)

// Digest summarizes a session by rules (observations §10).
type Digest struct {
	Intent      string   `json:"intent"`       // ≤ 200 characters
	FilesEdited []string `json:"files_edited"` // relative, newest first, ≤ 20
	Commits     []Commit `json:"commits"`      // newest first, ≤ 20
	Fixed       []string `json:"fixed"`        // commands that failed and later passed, ≤ 10
	Failing     []string `json:"failing"`      // commands whose last run failed, ≤ 10
	NextSteps   string   `json:"next_steps"`   // the end of the last main-agent message, ≤ 400 characters
	Prompts     int      `json:"prompts"`      // of the user
	Actions     int      `json:"actions"`
	Source      string   `json:"source"` // rules
}

// Commit is one commit made in a session.
type Commit struct {
	Hash    string `json:"hash"`
	Message string `json:"message"`
}

const (
	maxDigestFiles    = 20
	maxDigestCommands = 10
	MaxIntent         = 200
	maxNextSteps      = 400
)

const (
	selectDigestRows = `SELECT obs_type, ifnull(path_key, ''), content,
metadata ->> '$.failed', metadata ->> '$.interrupted', metadata ->> '$.command', metadata ->> '$.commit_hash', metadata ->> '$.commit_message'
FROM observation_rows WHERE session_key = ? ORDER BY timestamp, id`

	selectDigestPrompts = `SELECT content FROM prompts WHERE session_id = ? AND source = 'user' ORDER BY timestamp, id`

	selectLastMessage = `SELECT content FROM prompts
WHERE session_id = ? AND source = 'agent' AND agent_id IS NULL ORDER BY timestamp DESC, id DESC LIMIT 1`
)

// WriteDigest recomputes a session's whole digest and stores it.
func WriteDigest(ctx context.Context, tx *store.Tx, s project.Session) error {
	d, err := DigestOf(ctx, tx, s)
	if err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return project.SetSummary(ctx, tx, s.Key, string(text))
}

func DigestOf(ctx context.Context, tx *store.Tx, s project.Session) (Digest, error) {
	d := Digest{FilesEdited: []string{}, Commits: []Commit{}, Source: "rules"}
	if err := d.readPrompts(ctx, tx, s.ID); err != nil {
		return d, err
	}
	runs := commandRuns{last: map[string]int{}}
	n := 0
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var obsType, path, content string
		var failed, interrupted sql.NullBool
		var command, hash, message sql.NullString
		if err := r.Scan(&obsType, &path, &content, &failed, &interrupted, &command, &hash, &message); err != nil {
			return err
		}
		n++
		if IsAction(obsType) {
			d.Actions++
		}
		switch obsType {
		case TypeEdit, TypeWrite:
			if !failed.Bool && !interrupted.Bool && path != "" {
				d.FilesEdited = append(d.FilesEdited, path)
			}
		case TypeCommand, TypeGitCommit, TypeGitPush, TypeGitHub:
			if hash.String != "" && !shell.InNewRepository(content) {
				d.Commits = append(d.Commits, Commit{hash.String, message.String})
			}
			if !interrupted.Bool { // an interrupted command neither passed nor failed
				runs.add(content, false, n)
			}
		case TypeCommandError:
			if !interrupted.Bool { // earlier versions stored interrupted commands as failed
				runs.add(command.String, true, n)
			}
		}
		return nil
	}, selectDigestRows, s.Key)
	d.FilesEdited = newestOnce(d.FilesEdited, maxDigestFiles)
	slices.Reverse(d.Commits)
	d.Commits = d.Commits[:min(len(d.Commits), maxDigestFiles)]
	d.Fixed, d.Failing = runs.split()
	return d, err
}

func (d *Digest) readPrompts(ctx context.Context, tx *store.Tx, session string) error {
	var first, intent string
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var text string
		err := r.Scan(&text)
		if d.Prompts++; first == "" && !isHarnessPrompt(text) {
			first = text
		}
		if intent == "" && !strings.HasPrefix(text, "/") && !isHarnessPrompt(text) && len(strings.Fields(text)) >= 4 {
			intent = text
		}
		return err
	}, selectDigestPrompts, session)
	if err != nil {
		return err
	}
	if intent == "" {
		intent = first
	}
	d.Intent = oneline.Cut(intent, MaxIntent)
	var last string
	err = tx.Each(ctx, func(r *sql.Rows) error { return r.Scan(&last) }, selectLastMessage, session)
	d.NextSteps = lastSentences(last, maxNextSteps)
	return err
}

// newestOnce returns the last occurrence of each text, newest first, at most n.
func newestOnce(texts []string, n int) []string {
	seen := map[string]bool{}
	out := []string{}
	for _, t := range slices.Backward(texts) {
		if !seen[t] && len(out) < n {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

// commandRuns records, for each command in its normal form, whether it ever failed and whether
// its last run failed.
type commandRuns struct {
	last map[string]int // index into runs
	runs []commandRun
}

type commandRun struct {
	text         string
	everFailed   bool
	failed       bool
	lastRunOrder int
}

func (c *commandRuns) add(command string, failed bool, order int) {
	key := shell.Normal(command)
	if key == "" {
		return
	}
	i, ok := c.last[key]
	if !ok {
		i = len(c.runs)
		c.last[key] = i
		c.runs = append(c.runs, commandRun{text: key})
	}
	r := &c.runs[i]
	r.failed, r.lastRunOrder, r.everFailed = failed, order, r.everFailed || failed
}

// split returns the commands that failed and later passed, and the commands whose last run
// failed, newest first. A failed check is resolved if a later check that passed is equal or
// broader.
func (c *commandRuns) split() (fixed, failing []string) {
	fixed, failing = []string{}, []string{}
	slices.SortFunc(c.runs, func(a, b commandRun) int { return b.lastRunOrder - a.lastRunOrder })
	var passed []shell.PassedCheck // of later runs
	anyFailed := slices.ContainsFunc(c.runs, func(r commandRun) bool { return r.failed })
	for _, r := range c.runs {
		if !r.failed && anyFailed {
			passed = append(passed, shell.PassedChecks(r.text)...)
		}
		switch {
		case r.failed && shell.Resolves(passed, r.text):
		case r.failed && len(failing) < maxDigestCommands:
			failing = append(failing, oneline.Cut(r.text, MaxIntent))
		case r.everFailed && !r.failed && len(fixed) < maxDigestCommands:
			fixed = append(fixed, oneline.Cut(r.text, MaxIntent))
		}
	}
	return fixed, failing
}

// lastSentences returns the end of a text, at most n characters. It begins at the first sentence
// that starts in that range, else at a word.
func lastSentences(s string, n int) string {
	s = strings.TrimSpace(s)
	over := utf8.RuneCountInString(s) - n
	if over <= 0 {
		return s
	}
	tail := s[len(oneline.Cut(s, over)):]
	if i := sentenceStart(tail); i > 0 {
		return tail[i:]
	}
	if i := strings.IndexFunc(tail, unicode.IsSpace); i >= 0 {
		return strings.TrimSpace(tail[i:])
	}
	return tail
}

// sentenceStart returns the offset of the first sentence that begins inside s, 0 if there is
// none.
func sentenceStart(s string) int {
	for i, r := range s {
		if r == '\n' || (r == '.' || r == '!' || r == '?') && strings.HasPrefix(s[i+1:], " ") {
			if rest := strings.TrimLeftFunc(s[i+1:], unicode.IsSpace); rest != "" {
				return len(s) - len(rest)
			}
		}
	}
	return 0
}

// RefreshDigest recomputes a session's digest if it has one.
func RefreshDigest(ctx context.Context, tx *store.Tx, key int64, id string) error {
	var has bool
	if err := tx.Get(ctx, []any{&has}, selectHasDigest, key); err != nil || !has {
		return err
	}
	return WriteDigest(ctx, tx, project.Session{Key: key, ID: id})
}

const selectHasDigest = `SELECT summary IS NOT NULL FROM sessions WHERE key = ?`
