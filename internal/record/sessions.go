package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	selectMember = `SELECT s.key, r.opened_at, ifnull(r.last_activity, 0), ifnull(r.last_sync_tick, 0), ifnull(r.save_tick, 0),
ifnull(r.last_save, 0), ifnull(r.closed, 0), ifnull(p.id, '')
FROM sessions s LEFT JOIN record_sessions r ON r.session_key = s.key AND r.project_key = ?1
LEFT JOIN sessions p ON p.key = r.parent WHERE s.id = ?2`
	selectRecordSessions = `SELECT session_key FROM record_sessions WHERE project_key = ?`
)

// Session is the state of a session in a project's records.
type Session struct {
	ID         string
	Key        int64 // 0 if the session has no row
	Known      bool  // it has opened records of the project before
	Closed     bool
	parent     string
	SyncTick   int64
	SaveTick   int64 // tick of the last save, or of the first opening
	LastSave   int64
	activity   int64
	OpenedHere bool // opened by this call
}

// IsOpen reports whether the session has opened records and was not closed since.
func (m *Session) IsOpen() bool { return m.Known && !m.Closed }

const maxSessionID = 200

// SessionID returns the id of the caller's session (records §1, current session), or ""
// if a new one must be created.
func SessionID(ctx context.Context, tx *store.Tx, c Caller) (string, error) {
	if c.SessionID != "" {
		return c.SessionID, checkSessionID(c.SessionID)
	}
	if len(c.Ancestors) > 0 {
		s, ok, err := project.CurrentSession(ctx, tx, c.Ancestors)
		if err != nil || ok {
			return s.ID, err
		}
	}
	return c.Transport, nil
}

func checkSessionID(id string) error {
	if !utf8.ValidString(id) || utf8.RuneCountInString(id) > maxSessionID || strings.TrimSpace(id) == "" ||
		strings.ContainsFunc(id, unicode.IsControl) {
		return Invalid("session_id", "a session id must be one line of 1 to 200 characters")
	}
	return nil
}

// Member returns the state of the caller's session.
func (s *CallTx) Member(ctx context.Context, c Caller) (*Session, error) {
	id, err := SessionID(ctx, s.Tx, c)
	if err != nil {
		return nil, err
	}
	return s.MemberOf(ctx, id)
}

// MemberOf returns the state of the session with an id.
func (s *CallTx) MemberOf(ctx context.Context, id string) (*Session, error) {
	m := &Session{ID: id}
	if id == "" || s.Project.Key == 0 {
		return m, nil
	}
	var opened sql.NullInt64
	err := s.Tx.Get(ctx, []any{&m.Key, &opened, &m.activity, &m.SyncTick, &m.SaveTick, &m.LastSave, &m.Closed, &m.parent},
		selectMember, s.Project.Key, id)
	m.Known = opened.Valid
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return m, err
}

// Open makes the caller's session active and creates it if necessary. The last change
// that it logs is the start of the session.
func (s *CallTx) Open(ctx context.Context, c Caller) (*Session, error) {
	m, err := s.Member(ctx, c)
	if err != nil || m.IsOpen() {
		return m, err
	}
	if m.ID == "" {
		m.ID = "S-" + strings.ToUpper(store.NewID())
	}
	m.OpenedHere = true
	m.SyncTick = s.Tick
	m.parent = ""
	return m, s.PutEvent(ctx, m, Event{Type: SessionStarted})
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

// SessionKeys returns the keys of the sessions that have opened records of one project.
func SessionKeys(ctx context.Context, tx *store.Tx, of project.Scope) (keys []int64, err error) {
	if of.ID == "" {
		return nil, nil
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var key int64
		err := r.Scan(&key)
		keys = append(keys, key)
		return err
	}, selectRecordSessions, of.Key)
	return keys, err
}
