package observation

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/words"
)

// How far back is looked. Each bound can only make it find less.
const (
	maxTouches  = 200  // rows of a file
	maxFailures = 300  // failed commands of a project
	maxPasses   = 3000 // commands of a project since the failure
	maxLater    = 200  // rows of the session that failed
)

const (
	// The innermost query bounds what a file that is read all the time costs.
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

// lastChange tells of a file's last change, if another session made it.
func (a *assistant) lastChange(ctx context.Context, tx *store.Tx, path string) (row contextRow, err error) {
	path, _ = a.filter.Head(clean(path), maxPath)
	if path == "" {
		return row, nil
	}
	key := a.place.PathKey(path)
	var at, session int64
	var intent string
	err = tx.Each(ctx, func(r *sql.Rows) error {
		return r.Scan(&row.id, &at, &session, &intent)
	}, selectLastChange, a.project.Key, key, maxTouches)
	if err != nil || row.id == 0 || session == a.session {
		return contextRow{}, err
	}
	row.line = fmt.Sprintf("- %s: last changed %s (#%d)", pathCell(strings.TrimPrefix(key, a.project.Root+"/"), maxCell), ago(a.now, at), row.id)
	if intent != "" {
		row.line += " for " + quotedCell(intent, maxHelpIntent)
	}
	return row, nil
}

// failure is the last failed run of a command.
type failure struct {
	id, at, session int64
	command, error  string
}

// lastFailure tells of the last run of a command in the project, if it failed and
// another session ran it, and of the form that worked after it.
func (a *assistant) lastFailure(ctx context.Context, tx *store.Tx, c *Call) (row contextRow, err error) {
	command, _ := a.filter.Head(clean(c.Command), maxCommand)
	form := newCommandForm(command)
	if form.text == "" {
		return row, nil
	}
	f, err := a.newestFailure(ctx, tx, form)
	if err != nil || f.id == 0 || f.session == a.session {
		return row, err
	}
	passed, err := a.passedSince(ctx, tx, form, c.Tool, f.at)
	if err != nil || passed {
		return row, err
	}
	worked, id, err := a.workedAfter(ctx, tx, f, form.text)
	if err != nil {
		return row, err
	}
	row.id = f.id
	row.line = fmt.Sprintf("- failed %s (#%d): %s", ago(a.now, f.at), f.id, commandCell(form.text, maxHelpIntent))
	if why := reason(f.command, f.error); why != "" {
		row.line += ": " + cell(why, maxHelpIntent)
	}
	if id != 0 {
		row.id = id
		row.line += fmt.Sprintf("\n- then worked (#%d): %s", id, commandCell(worked, 2*maxHelpIntent))
	}
	return row, nil
}

// commandCell is cell for a command that may be run again: its pipes stay, for no
// table is around it.
func commandCell(form string, n int) string { return strings.ReplaceAll(cell(form, n), "¦", "|") }

// newestFailure is the newest failed run in the project of a command in its normal form.
func (a *assistant) newestFailure(ctx context.Context, tx *store.Tx, form commandForm) (found failure, err error) {
	rows, err := tx.Query(ctx, selectFailures, a.project.Key, maxFailures)
	if err != nil {
		return found, err
	}
	defer rows.Close()
	for rows.Next() {
		var f failure
		var command sql.NullString
		if err := rows.Scan(&f.id, &f.at, &f.session, &command, &f.error); err != nil {
			return found, err
		}
		if form.is(command.String) {
			f.command = command.String
			return f, nil
		}
	}
	return found, rows.Err()
}

// commandForm is the normal form of a command, to be compared with many.
type commandForm struct {
	text string
	word string // its longest, which commands of another form most often lack
}

func newCommandForm(command string) (f commandForm) {
	f.text = normalCommand(command)
	for word := range strings.FieldsSeq(f.text) {
		if len(word) > len(f.word) {
			f.word = word
		}
	}
	return f
}

// mayBe tells, without taking a command apart, whether it may have this form.
func (f *commandForm) mayBe(command string) bool { return strings.Contains(command, f.word) }

func (f *commandForm) is(command string) bool {
	return f.mayBe(command) && normalCommand(command) == f.text
}

// passedSince tells whether a command passed in the project, in the same form, at
// some time or later. What passes has the type that its words give it.
func (a *assistant) passedSince(ctx context.Context, tx *store.Tx, form commandForm, tool string, since int64) (bool, error) {
	rows, err := tx.Query(ctx, selectPasses, a.project.Key, readShell(form.text, tool).obsType(), since, maxPasses)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		var command string
		if err := rows.Scan(&command); err != nil {
			return false, err
		}
		if form.is(command) {
			return true, nil
		}
	}
	return false, rows.Err()
}

// workedAfter is the next command of the failing session that passed and is like
// the one that failed; id is 0 if there is none.
func (a *assistant) workedAfter(ctx context.Context, tx *store.Tx, f failure, form string) (worked string, id int64, err error) {
	words := commandWords(form)
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var row int64
		var obsType, command string
		if err := r.Scan(&row, &obsType, &command); err != nil || id != 0 {
			return err
		}
		if other := normalCommand(command); other != form && alike(words, commandWords(other)) {
			worked, id = other, row
		}
		return nil
	}, selectLaterInSession, f.session, f.at, f.id, maxLater)
	return worked, id, err
}

// commandWords are the words of a command, identifiers split.
func commandWords(form string) (found []string) {
	words.Each(form, func(_ string, parts []string) {
		for _, p := range parts {
			found = append(found, strings.ToLower(p))
		}
	})
	return found
}

// alike tells whether two commands do nearly the same: they share at least half of
// the words of the first, and two words unless it is a single one.
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
