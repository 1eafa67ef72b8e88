package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"cairn/internal/store"
)

// The records that a session changed after a tick, in the order of the changes.
const selectUnsaved = `SELECT c.id FROM record_ticks t CROSS JOIN changes c ON c.seq = t.seq CROSS JOIN symbols k ON k.id = c.kind
CROSS JOIN symbols s ON s.id = c.session
WHERE t.project_key = ? AND t.tick > ? AND s.text = ? AND k.text = '` + KindRecord + `' ORDER BY t.tick`

// Save marks the session's changes as saved; they are stored anyway (records §2,
// save_session). Each call costs a tick.
//
// Errors: CodeSessionNotFound, CodeInvalid for a summary over 1,000 characters.
func (b *Service) Save(ctx context.Context, a SaveArgs) (out Saved, err error) {
	if err := checkText("summary", a.Summary, maxSummary); err != nil {
		return out, err
	}
	err = b.write(ctx, a.Caller, func(ctx context.Context, s *callTx) error {
		m, err := s.openMember(ctx, a.Caller)
		if err != nil {
			return err
		}
		ids, err := s.unsaved(ctx, m)
		if err != nil {
			return err
		}
		tick := s.advance(m)
		if err := s.event(ctx, m, Event{Type: SessionSaved, Tick: tick, Records: ids, Summary: s.line(a.Summary, maxSummary)}); err != nil {
			return err
		}
		out = Saved{Success: true, SavedRecords: ids, LastSave: Time(m.lastSave)}
		return nil
	})
	return out, err
}

// unsaved returns the records that a session changed since its last save, in the order of
// the first change.
func (s *callTx) unsaved(ctx context.Context, m *sessionState) ([]string, error) {
	ids := []string{}
	err := s.log.Each(ctx, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return err
	}, selectUnsaved, s.p.Key, m.saveTick, m.id)
	return ids, err
}

// Close ends the session in the project and deactivates its records (records §2,
// close_session). Its changes are stored, saved or not. Closing again succeeds with an
// empty list. Activating or creating with its id opens it again.
//
// Errors: CodeSessionNotFound for a session that never opened a record of the
// project, CodeInvalid for a summary over 1,000 characters.
func (b *Service) Close(ctx context.Context, a SaveArgs) (out Closed, err error) {
	if err := checkText("summary", a.Summary, maxSummary); err != nil {
		return out, err
	}
	err = b.write(ctx, a.Caller, func(ctx context.Context, s *callTx) error {
		m, err := s.member(ctx, a.Caller)
		if err != nil {
			return err
		}
		out = Closed{Success: true, DeactivatedRecords: []string{}}
		switch {
		case !m.known:
			return sessionNotFound(m.id)
		case m.closed:
			return nil
		}
		unsaved, err := s.unsaved(ctx, m)
		if err != nil {
			return err
		}
		if len(unsaved) > 0 {
			out.UnsavedWarning = "changed since the last save: " + strings.Join(unsaved, ", ") + "; the changes are stored all the same"
		}
		if out.DeactivatedRecords, err = s.activeOf(ctx, m.key); err != nil {
			return err
		}
		return s.event(ctx, m, Event{Type: SessionClosed, Records: out.DeactivatedRecords, Summary: s.line(a.Summary, maxSummary)})
	})
	return out, err
}

const selectKept = `SELECT value FROM json_each(?) WHERE value IN (SELECT session_key FROM record_sessions)`

// Kept returns the keys of those sessions that have opened records.
func Kept(ctx context.Context, tx *store.Tx, sessions []int64) ([]int64, error) {
	list, err := json.Marshal(sessions)
	if err != nil {
		return nil, err
	}
	return tx.Keys(ctx, selectKept, string(list))
}
