package commands

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"cairn/internal/record"
	"cairn/internal/record/lookup"
)

// The records that a session changed after a tick, in the order of the changes.
const selectUnsaved = `SELECT c.id FROM record_ticks t CROSS JOIN changes c ON c.seq = t.seq CROSS JOIN symbols k ON k.id = c.kind
CROSS JOIN symbols s ON s.id = c.session
WHERE t.project_key = ? AND t.tick > ? AND s.text = ? AND k.text = '` + record.KindRecord + `' ORDER BY t.tick`

// Save marks the session's changes as saved; they are stored anyway (records §2,
// save_session). Each call costs a tick.
//
// Errors: CodeSessionNotFound, CodeInvalid for a summary over 1,000 characters.
func (b *Commands) Save(ctx context.Context, a record.SaveArgs) (out record.Saved, err error) {
	if err := checkText("summary", a.Summary, maxSummary); err != nil {
		return out, err
	}
	err = b.Write(ctx, a.Caller, func(ctx context.Context, s *record.CallTx) error {
		m, err := openMember(ctx, s, a.Caller)
		if err != nil {
			return err
		}
		ids, err := unsavedRecords(ctx, s, m)
		if err != nil {
			return err
		}
		tick := s.Advance(m)
		if err := s.PutEvent(ctx, m, record.Event{Type: record.SessionSaved, Tick: tick, Records: ids, Summary: s.Line(a.Summary, maxSummary)}); err != nil {
			return err
		}
		out = record.Saved{Success: true, SavedRecords: ids, LastSave: record.Time(m.LastSave)}
		return nil
	})
	return out, err
}

// unsavedRecords returns the records that a session changed since its last save, in the order of
// the first change.
func unsavedRecords(ctx context.Context, s *record.CallTx, m *record.Session) ([]string, error) {
	ids := []string{}
	err := s.Log.Each(ctx, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return err
	}, selectUnsaved, s.Project.Key, m.SaveTick, m.ID)
	return ids, err
}

// Close ends the session in the project and deactivates its records (records §2,
// close_session). Its changes are stored, saved or not. Closing again succeeds with an
// empty list. Activating or creating with its id opens it again.
//
// Errors: CodeSessionNotFound for a session that never opened a record of the
// project, CodeInvalid for a summary over 1,000 characters.
func (b *Commands) Close(ctx context.Context, a record.SaveArgs) (out record.Closed, err error) {
	if err := checkText("summary", a.Summary, maxSummary); err != nil {
		return out, err
	}
	err = b.Write(ctx, a.Caller, func(ctx context.Context, s *record.CallTx) error {
		m, err := s.Member(ctx, a.Caller)
		if err != nil {
			return err
		}
		out = record.Closed{Success: true, DeactivatedRecords: []string{}}
		switch {
		case !m.Known:
			return sessionNotFound(m.ID)
		case m.Closed:
			return nil
		}
		unsaved, err := unsavedRecords(ctx, s, m)
		if err != nil {
			return err
		}
		if len(unsaved) > 0 {
			out.UnsavedWarning = "changed since the last save: " + strings.Join(unsaved, ", ") + "; the changes are stored all the same"
		}
		if out.DeactivatedRecords, err = lookup.ActiveRecords(ctx, s, m.Key); err != nil {
			return err
		}
		return s.PutEvent(ctx, m, record.Event{Type: record.SessionClosed, Records: out.DeactivatedRecords, Summary: s.Line(a.Summary, maxSummary)})
	})
	return out, err
}
