package record

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/project"
	"cairn/internal/store"
)

const defaultProject = "default"

const (
	selectClock  = `SELECT tick, ifnull(records_stream, 'records/' || id) FROM projects WHERE key = ?`
	selectMember = `SELECT s.key, r.opened_at, ifnull(r.last_activity, 0), ifnull(r.last_sync_tick, 0), ifnull(r.save_tick, 0),
ifnull(r.last_save, 0), ifnull(r.closed, 0), ifnull(p.id, '')
FROM sessions s LEFT JOIN record_sessions r ON r.session_key = s.key AND r.project_key = ?1
LEFT JOIN sessions p ON p.key = r.parent WHERE s.id = ?2`
)

// callTx is one transaction of one call on one project.
type callTx struct {
	*Service
	tx     *store.Tx       // its rows
	log    *store.Tx       // its changes: tx itself, except for a replay
	until  int64           // seq of the last visible change
	then   *store.Moment   // moment that it shows, for a past state
	p      project.Project // Key is 0 if the project has no row yet
	tick   int64
	stream string // of the change log
}

// sessionState is the state of a session in a project's records.
type sessionState struct {
	id         string
	key        int64 // 0 if the session has no row
	known      bool  // it has opened records of the project before
	closed     bool
	parent     string
	syncTick   int64
	saveTick   int64 // tick of the last save, or of the first opening
	lastSave   int64
	activity   int64
	openedHere bool // opened by this call
}

func (m *sessionState) isOpen() bool { return m.known && !m.closed }

// read runs fn on the caller's project, in its present state or as of a moment. A past state
// is a replay of the log, so it also contains sessions and searchable words.
func (b *Service) read(ctx context.Context, c Caller, at string, fn func(ctx context.Context, s *callTx) error) error {
	return b.readState(ctx, c, at, (*callTx).replayed, fn)
}

// readRecords is read for an fn that reads only records and the log. It replays nothing.
func (b *Service) readRecords(ctx context.Context, c Caller, at string, fn func(ctx context.Context, s *callTx) error) error {
	return b.readState(ctx, c, at, (*callTx).asOf, fn)
}

// readState runs fn on the caller's project. For a past moment, past runs it.
func (b *Service) readState(ctx context.Context, c Caller, at string,
	past func(s *callTx, ctx context.Context, at *point, fn func(ctx context.Context, s *callTx) error) error,
	fn func(ctx context.Context, s *callTx) error,
) error {
	now := time.Now
	if b.store != nil {
		now = b.store.Now
	}
	moment, err := parseMoment("at", at, now)
	if err != nil {
		return err
	}
	if b.store == nil {
		return b.readNothing(ctx, c, moment, fn)
	}
	return toFault(b.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.scope(ctx, tx, c, false)
		switch {
		case err != nil:
			return err
		case moment == nil:
			return fn(ctx, s)
		case s.p.Key == 0:
			return s.atNothing(ctx, moment, fn)
		}
		return past(s, ctx, moment, fn)
	}))
}

// atNothing runs fn on a project without a row, as of a moment, or nil for now. Such a
// project existed at any time, but only at tick 0.
func (s *callTx) atNothing(ctx context.Context, at *point, fn func(ctx context.Context, s *callTx) error) error {
	if at != nil && at.isTick {
		if _, err := s.seqOfTick(ctx, at.field, at.tick); err != nil {
			return err
		}
	}
	return fn(ctx, s)
}

// readNothing runs fn if there is no store yet.
func (b *Service) readNothing(ctx context.Context, c Caller, at *point, fn func(ctx context.Context, s *callTx) error) error {
	if c.ProjectID != "" {
		return projectNotFound(c.ProjectID)
	}
	return toFault(store.Scratch(ctx, time.Now(), func(ctx context.Context, tx *store.Tx) error {
		s, err := b.scope(ctx, tx, c, false)
		if err == nil {
			err = s.atNothing(ctx, at, fn)
		}
		return err
	}))
}

// write runs fn in a transaction on the caller's project, which it creates if necessary.
// If fn fails, nothing is stored.
func (b *Service) write(ctx context.Context, c Caller, fn func(ctx context.Context, s *callTx) error) error {
	return b.change(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.scope(ctx, tx, c, true)
		if err != nil {
			return err
		}
		return fn(ctx, s)
	})
}

// change runs fn in a transaction. If there is no store yet, it uses an in-memory store,
// which is discarded.
func (b *Service) change(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if b.store == nil {
		return toFault(store.Scratch(ctx, time.Unix(0, 0), fn))
	}
	return toFault(b.store.Write(ctx, store.Full, fn))
}

func (b *Service) scope(ctx context.Context, tx *store.Tx, c Caller, make bool) (*callTx, error) {
	p, err := findProject(ctx, tx, c, make)
	if err != nil {
		return nil, err
	}
	return b.scopeOf(ctx, tx, p)
}

func (b *Service) scopeOf(ctx context.Context, tx *store.Tx, p project.Project) (*callTx, error) {
	s := &callTx{Service: b, tx: tx, log: tx, until: math.MaxInt64, p: p}
	if p.Key == 0 {
		return s, nil
	}
	return s, tx.Get(ctx, []any{&s.tick, &s.stream}, selectClock, p.Key)
}

// findProject returns the caller's project (records §1, current project). Without make, a
// project without a row is returned without a key.
func findProject(ctx context.Context, tx *store.Tx, c Caller, make bool) (p project.Project, err error) {
	if c.Remote && c.ProjectID == "" && c.Project == "" {
		p, ok, err := project.OfSession(ctx, tx, cmp.Or(c.SessionID, c.Transport))
		switch {
		case err != nil || ok:
			return p, err
		case make:
			return p, project.Required(ctx, tx)
		}
	}
	name := c.Project
	switch {
	case c.ProjectID != "":
		p, ok, err := project.Find(ctx, tx, c.ProjectID)
		if err == nil && !ok {
			err = projectNotFound(c.ProjectID)
		}
		return p, err
	case name != "":
	case c.Place.Cwd == "":
		name = defaultProject
	case make:
		return project.Resolve(ctx, tx, c.Place)
	default:
		p, ok, err := project.Current(ctx, tx, c.Place)
		if err != nil || ok {
			return p, err
		}
		name = c.Place.Slug
		if c.Place.Identity != "" { // another project may have its slug
			return project.Project{ID: name, Name: c.Place.Name}, nil
		}
	}
	if make {
		return project.Ensure(ctx, tx, name)
	}
	p, ok, err := project.Find(ctx, tx, name)
	if err == nil && !ok {
		p = project.Project{ID: name, Name: name}
	}
	return p, err
}

const maxSessionID = 200

// sessionID returns the id of the caller's session (records §1, current session), or ""
// if a new one must be created.
func sessionID(ctx context.Context, tx *store.Tx, c Caller) (string, error) {
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
		return invalid("session_id", "a session id must be one line of 1 to 200 characters")
	}
	return nil
}

// member returns the state of the caller's session.
func (s *callTx) member(ctx context.Context, c Caller) (*sessionState, error) {
	id, err := sessionID(ctx, s.tx, c)
	if err != nil {
		return nil, err
	}
	return s.memberOf(ctx, id)
}

func (s *callTx) memberOf(ctx context.Context, id string) (*sessionState, error) {
	m := &sessionState{id: id}
	if id == "" || s.p.Key == 0 {
		return m, nil
	}
	var opened sql.NullInt64
	err := s.tx.Get(ctx, []any{&m.key, &opened, &m.activity, &m.syncTick, &m.saveTick, &m.lastSave, &m.closed, &m.parent},
		selectMember, s.p.Key, id)
	m.known = opened.Valid
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return m, err
}

// open makes the caller's session active and creates it if necessary. The last change
// that it logs is the start of the session.
func (s *callTx) open(ctx context.Context, c Caller) (*sessionState, error) {
	m, err := s.member(ctx, c)
	if err != nil || m.isOpen() {
		return m, err
	}
	if m.id == "" {
		m.id = "S-" + strings.ToUpper(store.NewID())
	}
	m.openedHere = true
	m.syncTick = s.tick
	m.parent = ""
	return m, s.event(ctx, m, Event{Type: SessionStarted})
}
