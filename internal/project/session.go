package project

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Session is one conversation of a harness. Times are Unix seconds.
type Session struct {
	Key        int64
	ID         string // the harness's own, or one that cairn generated
	ProjectID  string // the session's own project; its rows may have other projects
	ProjectKey int64
	Harness    string // "" until its first event
	Model      string // "" if unknown
	StartedAt  int64  // its earliest event
	EndedAt    int64  // latest end of a turn or of the session, 0 before the first; later events keep it
	LastSeen   int64
	Summary    string  // the digest as JSON, "" if there is none; only FindSession reads it
	Process    Process // the harness, zero if unknown
	Checkout   string  // where it started, see Location.Checkout; "" until its first live event
	ClosedAt   int64   // when the session ended; 0 while it may continue
}

// SessionEvent is one event of a session.
type SessionEvent struct {
	ID       string // of the session; never blank
	Place    Location
	Project  *Project // overrides Location; nil for the usual rules
	Harness  string
	Model    string // "" if unknown
	At       int64  // Unix seconds; 0 is the time of the transaction
	PID      int    // of the harness, 0 if unknown
	PIDStart int64
	Ends     bool // the event ends the turn or the session
	Closes   bool // the event ends the session
	Begins   bool // the session starts, is resumed, or gets a prompt
	Replaces bool // the session, if new, replaces the previous one of its process
	Imported bool // from a transcript: it fills unknown fields and has no process
}

// selectSeen is selectSession without the digest, which can be long.
const selectSeen = `SELECT ` + sessionColumns + `, '' FROM sessions s
JOIN projects r ON r.id = s.project_id WHERE s.id = ?`

// RecordSession creates or updates the row of a session for one of its events. It returns
// the session and the project of the event (observations §2). The first event decides the
// session's own project, also if another part created the row before. last_seen and
// ended_at only grow; started_at only falls. It is idempotent.
//
// It appends changes for other devices to the change log, as kind session: new sessions
// and all changes except last_seen and the process. The digest is not included, because
// it is derived from the rows.
//
// Errors: Invalid for a blank ID, and those of the store.
func RecordSession(ctx context.Context, tx *store.Tx, e SessionEvent) (Session, Project, error) {
	if e.ID == "" {
		return Session{}, Project{}, fault.New(fault.Invalid, "session_blank", "the session id must not be blank")
	}
	if e.At == 0 {
		e.At = tx.Now().Unix()
	}
	var old Session
	var own Project
	err := tx.Get(ctx, scanSession(&old, &own), selectSeen, e.ID)
	known := err == nil
	if err := ignoreNone(err); err != nil {
		return Session{}, Project{}, err
	}
	var inherited *Project
	if known {
		inherited = &own
	}
	q, err := e.project(ctx, tx, inherited)
	if err != nil {
		return Session{}, Project{}, err
	}
	if !known {
		s, err := insertNew(ctx, tx, e.first(q))
		if err == nil && e.Replaces && !e.Imported {
			err = closeReplaced(ctx, tx, s)
		}
		return s, q, err
	}
	s := e.next(old, q)
	return s, q, s.save(ctx, tx, old)
}

func (e *SessionEvent) project(ctx context.Context, tx *store.Tx, inherited *Project) (Project, error) {
	if e.Project != nil {
		return *e.Project, nil
	}
	return resolve(ctx, tx, e.Place, inherited)
}

// first returns the session that begins with an event.
func (e *SessionEvent) first(q Project) Session {
	s := Session{
		ID: e.ID, ProjectID: q.ID, ProjectKey: q.Key, Harness: e.Harness, Model: e.Model,
		StartedAt: e.At, LastSeen: e.At,
	}
	if e.Ends {
		s.EndedAt = e.At
	}
	if !e.Imported {
		s.Process = Process{PID: e.PID, Start: e.PIDStart}
		s.Checkout = e.Place.Checkout()
		if e.Closes {
			s.ClosedAt = e.At
		}
	}
	return s
}

// next returns the session after one more event.
func (e *SessionEvent) next(s Session, q Project) Session {
	if s.Harness == "" && e.Harness != "" { // created by another part: this is the first event
		s.Harness, s.ProjectID, s.ProjectKey = e.Harness, q.ID, q.Key
	}
	if e.Model != "" && (s.Model == "" || !e.Imported) {
		s.Model = e.Model
	}
	s.StartedAt, s.LastSeen = min(s.StartedAt, e.At), max(s.LastSeen, e.At)
	if e.Ends {
		s.EndedAt = max(s.EndedAt, e.At)
	}
	if e.Imported {
		return s
	}
	if e.PID != 0 {
		s.Process = Process{PID: e.PID, Start: e.PIDStart}
	}
	if s.Checkout == "" {
		s.Checkout = e.Place.Checkout()
	}
	switch {
	case e.Closes:
		s.ClosedAt = max(s.ClosedAt, e.At)
	case e.Begins && e.At >= s.ClosedAt:
		s.ClosedAt = 0
	}
	return s
}

// save writes the fields that differ from old.
func (s *Session) save(ctx context.Context, tx *store.Tx, old Session) error {
	if *s == old {
		return nil
	}
	rest := old
	rest.LastSeen = s.LastSeen
	if *s == rest {
		_, err := tx.Exec(ctx, updateLastSeen, s.LastSeen, s.Key)
		return err
	}
	_, err := tx.Exec(ctx, updateSession, append(s.columns(), s.Key)...)
	rest.Process, rest.Checkout, rest.ClosedAt = s.Process, s.Checkout, s.ClosedAt
	if err != nil || *s == rest {
		return err
	}
	return s.log(ctx, tx)
}

// columns returns the values of the row in the order of insertSession after the id, and
// of updateSession.
func (s *Session) columns() []any {
	return []any{
		s.ProjectID, null(s.Harness), null(s.Model), s.StartedAt, nullNumber(s.EndedAt), s.LastSeen,
		nullNumber(int64(s.Process.PID)), nullNumber(s.Process.Start), null(s.Checkout), nullNumber(s.ClosedAt),
	}
}

func insertNew(ctx context.Context, tx *store.Tx, s Session) (Session, error) {
	res, err := tx.Exec(ctx, insertSession, append([]any{s.ID}, s.columns()...)...)
	if err != nil {
		return Session{}, err
	}
	if s.Key, err = res.LastInsertId(); err != nil {
		return Session{}, err
	}
	return s, s.log(ctx, tx)
}

// log appends the session to the change log.
func (s *Session) log(ctx context.Context, tx *store.Tx) error {
	doc, err := json.Marshal(struct {
		ID        string `json:"id"`
		ProjectID string `json:"project_id"`
		Harness   string `json:"harness,omitempty"`
		Model     string `json:"model,omitempty"`
		StartedAt int64  `json:"started_at"`
		EndedAt   int64  `json:"ended_at,omitempty"`
	}{s.ID, s.ProjectID, s.Harness, s.Model, s.StartedAt, s.EndedAt})
	if err != nil {
		return err
	}
	_, err = tx.Append(ctx, store.Change{
		Project: s.ProjectID, Stream: "session/" + s.ID, Kind: "session", ID: s.ID, Op: store.OpPut, Doc: doc,
	})
	return err
}

// SetModel changes a session's model and logs the session again; earlier documents of the
// session in the log are blanked. An unknown session changes nothing.
func SetModel(ctx context.Context, tx *store.Tx, id, model string) error {
	s, ok, err := FindSession(ctx, tx, id)
	if err != nil || !ok {
		return err
	}
	s.Model = model
	if _, err := tx.Exec(ctx, updateSession, append(s.columns(), s.Key)...); err != nil {
		return err
	}
	if _, err := tx.Blank(ctx, "session/"+id, "session", id); err != nil {
		return err
	}
	return s.log(ctx, tx)
}

// SetSummary stores the digest of a session, a JSON text. Nothing is logged.
func SetSummary(ctx context.Context, tx *store.Tx, key int64, summary string) error {
	_, err := tx.Exec(ctx, updateSummary, summary, key)
	return err
}

// DeleteSession deletes the row of a session. No row may refer to it. The caller must
// blank its documents in the log.
func DeleteSession(ctx context.Context, tx *store.Tx, key int64) error {
	_, err := tx.Exec(ctx, deleteSession, key)
	return err
}

// NewSession creates a session that no harness reported, in a given project, at the
// transaction's time. If the id exists, it returns that session unchanged. The harness is
// "" until the session's first event. A blank id is Invalid.
func NewSession(ctx context.Context, tx *store.Tx, id string, q Project) (Session, error) {
	if id == "" {
		return Session{}, fault.New(fault.Invalid, "session_blank", "the session id must not be blank")
	}
	s, ok, err := FindSession(ctx, tx, id)
	if err != nil || ok {
		return s, err
	}
	now := tx.Now().Unix()
	return insertNew(ctx, tx, Session{ID: id, ProjectID: q.ID, ProjectKey: q.Key, StartedAt: now, LastSeen: now})
}

// FindSession returns the session of an id; ok is false if there is none.
func FindSession(ctx context.Context, tx *store.Tx, id string) (s Session, ok bool, err error) {
	s, _, ok, err = findSession(ctx, tx, id)
	return s, ok, err
}

func findSession(ctx context.Context, tx *store.Tx, id string) (s Session, own Project, ok bool, err error) {
	err = tx.Get(ctx, scanSession(&s, &own), selectSession, id)
	return s, own, err == nil, ignoreNone(err)
}

// CurrentSession returns the session whose harness is one of the given processes, by
// number and start (records §1). The earliest process in the list with a session wins, so
// pass the nearest ancestor first. ok is false if there is none, or if the process has
// several open sessions, because it is unknown which one is meant (amendments §B.7).
func CurrentSession(ctx context.Context, tx *store.Tx, ancestors []Process) (s Session, ok bool, err error) {
	all, err := ProcessSessions(ctx, tx, ancestors)
	if err != nil || len(all) != 1 {
		return Session{}, false, err
	}
	return all[0], true, nil
}

// ProcessSessions returns the open sessions of the first process in the list that has a
// session, at most 100, most recently seen first. If none of them is open, it returns the
// one seen last.
func ProcessSessions(ctx context.Context, tx *store.Tx, ancestors []Process) (all []Session, err error) {
	pairs := [][2]int64{}
	for _, p := range ancestors {
		if p.PID != 0 {
			pairs = append(pairs, [2]int64{int64(p.PID), p.Start})
		}
	}
	list, err := json.Marshal(pairs)
	if err != nil || len(pairs) == 0 {
		return nil, err
	}
	nearest := int64(-1)
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var s Session
		var own Project
		var at int64
		if err := rows.Scan(append(scanSession(&s, &own), &at)...); err != nil {
			return err
		}
		if len(all) == 0 {
			nearest = at
		} else if at != nearest || !s.isOpen() {
			return nil
		}
		all = append(all, s)
		return nil
	}, selectByProcess, string(list))
	return all, err
}

// scanSession returns the scan destinations of sessionColumns and a digest.
func scanSession(s *Session, own *Project) []any {
	return append(append([]any{
		&s.Key, &s.ID, &s.ProjectID, &s.ProjectKey, &s.Harness, &s.Model, &s.StartedAt, &s.EndedAt, &s.LastSeen,
		&s.Process.PID, &s.Process.Start, &s.Checkout, &s.ClosedAt,
	}, scanProject(own)...), &s.Summary)
}

func nullNumber(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}
