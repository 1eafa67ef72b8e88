package assist

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/oneline"
	"cairn/internal/shell"
	"cairn/internal/store"
	"cairn/internal/words"
)

// Limits of the search in the past. Reaching a limit only means that less is found.
const (
	maxTouches  = 200  // rows of a file
	maxFailures = 300  // failed commands of a project
	maxPasses   = 3000 // commands of a project since the failure
	maxLater    = 200  // rows of the failing session after the failure
)

const (
	// The innermost query limits the cost for files that are read very often.
	selectLastChange = `SELECT o.id, o.timestamp, o.session_key, coalesce(
    (SELECT q.content FROM observation_rows q WHERE q.prompt_id = o.prompt_id AND q.obs_type = 'user_prompt'),
    (SELECT s.summary ->> '$.intent' FROM sessions s WHERE s.key = o.session_key), '')
FROM observation_rows o WHERE o.id = (
    SELECT c.id FROM (SELECT id, obs_type, metadata FROM observation_rows
        WHERE project_key = ? AND path_key = ? ORDER BY timestamp DESC, id DESC LIMIT +?) c
    WHERE c.obs_type IN ('file_edit', 'file_write') AND c.metadata ->> '$.failed' IS NULL
        AND c.metadata ->> '$.interrupted' IS NULL LIMIT 1)`

	selectFailures = `SELECT id, timestamp, session_key, metadata ->> '$.command', ifnull(metadata ->> '$.error', '')
FROM observation_rows WHERE project_key = ? AND obs_type = 'command_error'
  AND metadata ->> '$.interrupted' IS NULL ORDER BY timestamp DESC, id DESC LIMIT +?`

	selectPasses = `SELECT content FROM observation_rows
WHERE project_key = ? AND obs_type = ? AND timestamp >= ?
  AND (metadata IS NULL OR instr(metadata, '"interrupted":true') = 0) ORDER BY timestamp DESC, id DESC LIMIT +?`

	selectLaterInSession = `SELECT c.id, c.obs_type, c.content FROM (SELECT id, timestamp, obs_type, content, metadata FROM observation_rows
    WHERE session_key = ? AND (timestamp, id) > (?, ?) ORDER BY timestamp, id LIMIT +?) c
WHERE c.obs_type IN ('command', 'git_commit', 'git_push', 'github')
  AND c.metadata ->> '$.interrupted' IS NULL ORDER BY c.timestamp, c.id`
)

// lastChange returns a line about a file's last change if another session made it, else the zero
// line.
func (a *assistant) lastChange(ctx context.Context, tx *store.Tx, path string) (row ledger.Line, err error) {
	path, _ = a.filter.Head(observation.Clean(path), observation.MaxPath)
	if path == "" {
		return row, nil
	}
	key := a.place.PathKey(path)
	var at, session int64
	var intent string
	err = tx.Each(ctx, func(r *sql.Rows) error {
		return r.Scan(&row.ID, &at, &session, &intent)
	}, selectLastChange, a.project.Key, key, maxTouches)
	if err != nil || row.ID == 0 || session == a.session {
		return ledger.Line{}, err
	}
	row.Text = fmt.Sprintf("- %s: last changed %s (#%d)", oneline.Path(strings.TrimPrefix(key, a.project.Root+"/"), ledger.MaxCell), oneline.Ago(a.now, at), row.ID)
	if intent != "" {
		row.Text += " for " + oneline.Quoted(intent, maxHelpIntent)
	}
	return row, nil
}

// failure is the last failed run of a command.
type failure struct {
	id, at, session int64
	command, error  string
	kind            shell.Kind // the part of it that is of the same kind as the call
}

// lately is the maximum age of a failure of another form of a command.
const lately = 14 * 24 * time.Hour

// maxAlike is the number of failures of other forms of a command that are checked.
const maxAlike = 3

// lastFailure returns a line about the last run of a command in the project, and the form that
// worked after it. The run must have failed in another session. If this form of the command never
// failed, failures of the same program and subcommand in the last two weeks count: see
// alikeFailure. Without such a failure lastFailure returns the zero line.
func (a *assistant) lastFailure(ctx context.Context, tx *store.Tx, c *observation.Call) (row ledger.Line, err error) {
	command, _ := a.filter.Head(observation.Clean(c.Command), observation.MaxCommand)
	form := shell.NewForm(command)
	if form.Text == "" {
		return row, nil
	}
	kinds := shell.Kinds(command)
	f, others, err := a.newestFailures(ctx, tx, form, kinds)
	if err != nil || f.session == a.session {
		return row, err
	}
	if f.id == 0 {
		return a.alikeFailure(ctx, tx, c.Tool, kinds, others)
	}
	passed, err := a.passedSince(ctx, tx, c.Tool, form.Text, f.at, form.Is)
	if err != nil || passed {
		return row, err
	}
	worked, id, err := a.workedAfter(ctx, tx, f, form.Text)
	if err != nil {
		return row, err
	}
	return a.failureRow(f, form.Text, worked, id), nil
}

// failureRow returns a line about a failure and the command that worked next, if there is one.
func (a *assistant) failureRow(f failure, form, worked string, id int64) ledger.Line {
	row := ledger.Line{ID: f.id, Text: fmt.Sprintf("- failed %s (#%d): %s", oneline.Ago(a.now, f.at), f.id, commandCell(form, maxHelpIntent))}
	if why := observation.Reason(f.command, f.error); why != "" {
		row.Text += ": " + oneline.Cell(why, maxHelpIntent)
	}
	if id != 0 {
		row.ID = id
		row.Text += fmt.Sprintf("\n- then worked (#%d): %s", id, commandCell(worked, 2*maxHelpIntent))
	}
	return row
}

// alikeFailure returns a line about the newest failure of the same program and subcommand in
// another form, if it is relevant to the call. It is relevant in two cases:
//
//   - The next run of this kind in the failing session worked with a setting that the failed
//     command and the call lack. No run without the setting has passed since.
//   - No later run of this kind in the failing session worked, and the call has the same targets
//     as the failed command. No run for these targets has passed since.
//
// Once it meets a failure of the calling session itself, it returns the zero line, because the
// agent knows that failure.
func (a *assistant) alikeFailure(ctx context.Context, tx *store.Tx, tool string, kinds []shell.Kind, failures []failure) (row ledger.Line, err error) {
	for _, f := range failures {
		if f.session == a.session {
			return row, nil
		}
		call := shell.KindNamed(kinds, f.kind.Name)
		worked, id, mended, err := a.workedAlike(ctx, tx, f)
		if err != nil {
			return row, err
		}
		resolved := func(p *shell.Kind) bool { return p.Concerns(&f.kind) }
		added := mended.Added(&f.kind)
		switch {
		case id != 0 && len(added) > 0 && !call.Has(added):
			resolved = func(p *shell.Kind) bool { return !p.Has(added) }
		case id != 0 || !call.Concerns(&f.kind):
			continue
		}
		passed, err := a.passedSince(ctx, tx, tool, f.command, f.at, func(line string) bool {
			if !strings.Contains(line, f.kind.Program()) {
				return false
			}
			p := shell.KindNamed(shell.Kinds(line), f.kind.Name)
			return p != nil && resolved(p)
		})
		if err != nil {
			return row, err
		}
		if passed {
			continue
		}
		form := shell.Normal(f.command)
		if id == 0 {
			if worked, id, err = a.workedAfter(ctx, tx, f, form); err != nil {
				return row, err
			}
		}
		return a.failureRow(f, form, worked, id), nil
	}
	return row, nil
}

// workedAlike returns the next command of the failing session that passed and is of the same kind.
// id is 0 if there is no such command.
func (a *assistant) workedAlike(ctx context.Context, tx *store.Tx, f failure) (worked string, id int64, kind shell.Kind, err error) {
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var row int64
		var obsType, command string
		if err := r.Scan(&row, &obsType, &command); err != nil || id != 0 || !strings.Contains(command, f.kind.Program()) {
			return err
		}
		if k := shell.KindNamed(shell.Kinds(command), f.kind.Name); k != nil {
			worked, id, kind = shell.Normal(command), row, *k
		}
		return nil
	}, selectLaterInSession, f.session, f.at, f.id, maxLater)
	return worked, id, kind, err
}

// commandCell formats a command like oneline.Cell but keeps its pipes, because the line is not in
// a table and the command may be run again.
func commandCell(form string, n int) string {
	return strings.ReplaceAll(oneline.Cell(form, n), "¦", "|")
}

// newestFailures returns the newest failure of a command in its normal form, and newer failures in
// the project of other forms. The others are of one of the given kinds and at most two weeks old.
// same is zero if this form has not failed.
func (a *assistant) newestFailures(ctx context.Context, tx *store.Tx, form shell.Form, kinds []shell.Kind) (same failure, others []failure, err error) {
	rows, err := tx.Query(ctx, selectFailures, a.project.Key, maxFailures)
	if err != nil {
		return same, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var f failure
		var command sql.NullString
		if err := rows.Scan(&f.id, &f.at, &f.session, &command, &f.error); err != nil {
			return same, nil, err
		}
		f.command = command.String
		if form.Is(f.command) {
			return f, others, nil
		}
		if len(others) < maxAlike && f.at >= a.now-int64(lately/time.Second) && f.isOneOf(kinds) {
			others = append(others, f)
		}
	}
	return same, others, rows.Err()
}

// isOneOf reports whether a part of the failed command is of one of the given kinds, and stores
// that part in f.kind.
func (f *failure) isOneOf(kinds []shell.Kind) bool {
	var own []shell.Kind
	for i := range kinds {
		if !strings.Contains(f.command, kinds[i].Program()) {
			continue
		}
		if own == nil {
			own = shell.Kinds(f.command)
		}
		if k := shell.KindNamed(own, kinds[i].Name); k != nil {
			f.kind = *k
			return true
		}
	}
	return false
}

// passedSince reports whether a command for which is returns true has passed in the project at or
// after the time since. Only rows of the type that the command like has are checked.
func (a *assistant) passedSince(ctx context.Context, tx *store.Tx, tool, like string, since int64, is func(command string) bool) (bool, error) {
	rows, err := tx.Query(ctx, selectPasses, a.project.Key, observation.TypeOfCommand(shell.Read(like, tool)), since, maxPasses)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		var command string
		if err := rows.Scan(&command); err != nil {
			return false, err
		}
		if is(command) {
			return true, nil
		}
	}
	return false, rows.Err()
}

// workedAfter returns the next command of the failing session that passed and resembles the failed
// command. id is 0 if there is no such command.
func (a *assistant) workedAfter(ctx context.Context, tx *store.Tx, f failure, form string) (worked string, id int64, err error) {
	words := commandWords(form)
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var row int64
		var obsType, command string
		if err := r.Scan(&row, &obsType, &command); err != nil || id != 0 {
			return err
		}
		if other := shell.Normal(command); other != form && alike(words, commandWords(other)) {
			worked, id = other, row
		}
		return nil
	}, selectLaterInSession, f.session, f.at, f.id, maxLater)
	return worked, id, err
}

// commandWords returns the words of a command in lower case. Identifiers are split.
func commandWords(form string) (found []string) {
	words.Each(form, func(_ string, parts []string) {
		for _, p := range parts {
			found = append(found, strings.ToLower(p))
		}
	})
	return found
}

// alike reports whether two commands are similar. They must share at least half of the words of
// the first command, and at least two words unless it has only one.
func alike(words, other []string) bool {
	has := map[string]bool{}
	for _, w := range other {
		has[w] = true
	}
	shared := 0
	for _, w := range words {
		if has[w] && utf8.RuneCountInString(w) > 1 {
			shared++
		}
	}
	return shared > 0 && 2*shared >= len(words) && shared >= min(len(words), 2)
}
