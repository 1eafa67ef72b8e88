package histories

import (
	"context"
	"database/sql"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/store"
)

const selectCounts = `SELECT (SELECT last_record FROM projects WHERE key = ?), (SELECT last_record FROM projects WHERE key = ?)`

// CodeBothHaveRecords is the error code (Conflict) for an import of two projects with
// records that are one project here.
const CodeBothHaveRecords = "records_in_both"

// metaMergedFrom is the key of a record's metadata that names the project and the id that
// it had before its project was merged.
const metaMergedFrom = "merged_from"

// MoveRows moves the records of a project to the project that it is merged into, with
// their sessions and history; for project.Merge. If the other has no records, they keep
// their ids and ticks. Else their history is appended to the other's, at the present
// time, with the next numbers and ticks. Ids in their texts, relations and parents are
// rewritten; the metadata's merged_from contains the old id. Past states of the other
// project do not change. It is idempotent.
func MoveRows(ctx context.Context, tx *store.Tx, from, into project.Project) error {
	var theirs, ours int64
	if err := tx.Get(ctx, []any{&theirs, &ours}, selectCounts, from.Key, into.Key); err != nil || theirs == 0 {
		return err
	}
	if ours > 0 {
		return appendHistory(ctx, tx, from, into)
	}
	for _, move := range [...]string{
		`UPDATE records SET project_key = ? WHERE project_key = ?`,
		`UPDATE record_sessions SET project_key = ? WHERE project_key = ?`,
		`UPDATE activations SET project_key = ? WHERE project_key = ?`,
		`UPDATE record_ticks SET project_key = ? WHERE project_key = ?`,
	} {
		if _, err := tx.Exec(ctx, move, into.Key, from.Key); err != nil {
			return err
		}
	}
	return project.MoveClock(ctx, tx, from.Key, into.Key)
}

// appendHistory appends the history of one project's records to that of another.
func appendHistory(ctx context.Context, tx *store.Tx, from, into project.Project) error {
	s, err := record.ScopeOf(ctx, tx, into)
	if err != nil {
		return err
	}
	theirs, err := record.ScopeOf(ctx, tx, from)
	if err != nil {
		return err
	}
	h := shift{from: from.ID, ticks: s.Tick}
	if err := tx.Get(ctx, []any{&h.last, &h.numbers}, selectCounts, from.Key, into.Key); err != nil {
		return err
	}
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		_, e, err := scanExported(rows)
		if err != nil {
			return err
		}
		c, err := h.move(&Document{Exported: e}, s.Tick)
		if err != nil {
			return err
		}
		return s.Apply(ctx, c)
	}, selectExportedChanges, theirs.Stream)
	if err != nil {
		return err
	}
	for _, statement := range [...]string{
		`DELETE FROM records_fts WHERE rowid IN (SELECT key FROM records WHERE project_key = ?)`,
		`DELETE FROM records WHERE project_key = ?`,
		`DELETE FROM activations WHERE project_key = ?`,
		`DELETE FROM record_sessions WHERE project_key = ?`,
		`DELETE FROM record_ticks WHERE project_key = ?`,
	} {
		if _, err := tx.Exec(ctx, statement, from.Key); err != nil {
			return err
		}
	}
	if err := project.ResetClock(ctx, tx, from.Key); err != nil {
		return err
	}
	return tx.BlankStream(ctx, theirs.Stream) // its changes are in the other's stream now
}

// shift rewrites the changes of one project so that they follow those of another.
type shift struct {
	from    string // the project's id
	last    int64  // its highest number
	numbers int64  // added to its numbers
	ticks   int64  // added to its ticks
}

// move rewrites a change to follow the tick now.
func (h *shift) move(e *Document, now int64) (store.Change, error) {
	c, why := e.read()
	if why != nil {
		return store.Change{}, record.BadDocument(why)
	}
	c.ID = h.id(c.ID) // the id of an event is a session's, which stays unchanged
	if c.event != nil {
		v := c.event
		if v.Tick != 0 {
			now++
			v.Tick = now
		}
		v.SyncTick = min(v.SyncTick+h.ticks, now)
		renumber(h.id).event(v)
		c.ID = e.ID
	} else if err := h.moveEntry(c.entry, now+1); err != nil {
		return store.Change{}, err
	}
	err := c.write()
	return store.Change{Kind: c.Kind, ID: c.ID, Doc: c.Doc, Session: c.Session, Agent: c.Agent}, err
}

func (h *shift) moveEntry(v *record.Entry, tick int64) error {
	if err := setMergedFrom(v, h.from, v.ID); err != nil {
		return err
	}
	renumber(h.id).entry(v)
	v.SyncTick = min(v.SyncTick+h.ticks, tick)
	v.Tick = tick
	return nil
}

// renumber returns the new id of a record, and any other text unchanged.
type renumber func(id string) string

// event rewrites the ids of records in an event.
func (id renumber) event(v *record.Event) {
	v.RecordID, v.Summary = id(v.RecordID), id.text(v.Summary)
	for i, r := range v.Records {
		v.Records[i] = id(r)
	}
}

// entry rewrites the ids in a version.
func (id renumber) entry(v *record.Entry) {
	v.ID = id(v.ID)
	v.ResolvedBy = id(v.ResolvedBy)
	if v.ParentID != nil {
		parent := id(*v.ParentID)
		v.ParentID = &parent
	}
	for i, r := range v.Related {
		v.Related[i] = id(r)
	}
	for _, text := range [...]*string{&v.Title, &v.Summary, &v.Body, &v.Reason} {
		*text = id.text(*text)
	}
}

// id returns the new id of a record of the project; any other text stays unchanged.
func (h *shift) id(id string) string {
	number, ok := record.NumberOf(id)
	if !ok || number > h.last {
		return id
	}
	return record.FormatID(number + h.numbers)
}

// text returns a text with the ids of the project's records in it rewritten.
func (id renumber) text(text string) string {
	var b strings.Builder
	for rest := text; ; {
		at := strings.IndexByte(rest, 'R')
		if at < 0 {
			return b.String() + rest
		}
		end := at + 1
		for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		before, _ := utf8.DecodeLastRuneInString(rest[:at])
		if at == 0 {
			before, _ = utf8.DecodeLastRuneInString(b.String())
		}
		after, _ := utf8.DecodeRuneInString(rest[end:])
		word := rest[at:end]
		if !isWordRune(before) && !isWordRune(after) {
			word = id(word)
		}
		b.WriteString(rest[:at] + word)
		rest = rest[end:]
	}
}

// isWordRune reports whether a rune next to an id makes it a part of a longer word.
func isWordRune(r rune) bool {
	return r != utf8.RuneError && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
}
