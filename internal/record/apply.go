package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/words"
)

const (
	insertRecord = `INSERT INTO records (project_key, number, parent, path, creator, created_at,
version, state, type, title, summary, modified_at, resolved_by, related, metadata, cited, body)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)`
	updateRecord = `UPDATE records SET version = ?3, state = ?4, type = ?5, title = ?6, summary = ?7, modified_at = ?8,
resolved_by = ?9, related = ?10, metadata = ?11, cited = ?12, body = ?13 WHERE project_key = ?1 AND number = ?2`

	deleteWords = `DELETE FROM records_fts WHERE rowid = ?`
	insertWords = `INSERT INTO records_fts (rowid, title, title_wholes, summary, summary_wholes, body, body_wholes)
VALUES (?, ?, ?, ?, ?, ?, ?)`

	insertTick = `INSERT INTO record_ticks (project_key, tick, seq) VALUES (?, ?, ?)`

	openSession = `INSERT INTO record_sessions (project_key, session_key, opened_at, last_activity, last_sync_tick, save_tick)
VALUES (?1, ?2, ?3, ?3, ?4, ?4)
ON CONFLICT (project_key, session_key) DO UPDATE SET closed = 0, parent = NULL,
last_activity = excluded.last_activity, last_sync_tick = excluded.last_sync_tick`
	touchSession  = `UPDATE record_sessions SET last_activity = ?3, last_sync_tick = ?4 WHERE project_key = ?1 AND session_key = ?2`
	branchSession = `UPDATE record_sessions SET parent = ?3 WHERE project_key = ?1 AND session_key = ?2`
	saveSession   = `UPDATE record_sessions SET save_tick = ?3, last_save = ?4 WHERE project_key = ?1 AND session_key = ?2`
	closeSession  = `UPDATE record_sessions SET closed = 1 WHERE project_key = ?1 AND session_key = ?2`

	upsertActivation = `INSERT INTO activations (project_key, number, session_key, base_version, at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET base_version = excluded.base_version`
	updateHolders     = `UPDATE activations SET holders = ?4, settled = ?5 WHERE project_key = ?1 AND number = ?2 AND session_key = ?3`
	deleteActivations = `DELETE FROM activations WHERE project_key = ? AND session_key = ?`
)

// CodeGap is the error code (Conflict) for a change that does not follow the stored ones.
const CodeGap = "record_gap"

// scopeOfDocument returns a callTx for the project of a document from elsewhere. It
// creates a missing project.
func scopeOfDocument(ctx context.Context, tx *store.Tx, id string) (*callTx, error) {
	p, err := project.Ensure(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	return (&Service{}).scopeOf(ctx, tx, p)
}

// apply logs a change and updates the rows.
func (s *callTx) apply(ctx context.Context, c store.Change) error {
	m, err := s.memberOf(ctx, c.Session)
	if err != nil {
		return err
	}
	before := s.tick
	own := store.Change{Kind: c.Kind, ID: c.ID, Doc: c.Doc, At: c.At, Agent: c.Agent}
	switch c.Kind {
	case KindRecord:
		e, err := decodeEntry(c.Doc)
		if err != nil {
			return err
		}
		if err := s.follow(e.Tick); err != nil {
			return err
		}
		m.syncTick = e.SyncTick
		return s.append(ctx, m, own, func(seq, at int64) error {
			if err := s.begin(ctx, m, before, at); err != nil {
				return err
			}
			return s.applyEntry(ctx, m, e, seq, at)
		})
	case KindEvent:
		var e Event
		if err := json.Unmarshal(c.Doc, &e); err != nil {
			return badDocument(err)
		}
		if e.Tick != 0 {
			if err := s.follow(e.Tick); err != nil {
				return err
			}
		}
		m.syncTick = e.SyncTick
		return s.append(ctx, m, own, func(seq, at int64) error {
			if e.Type != SessionStarted {
				if err := s.begin(ctx, m, before, at); err != nil {
					return err
				}
			}
			return s.applyEvent(ctx, m, &e, seq, at)
		})
	}
	return fault.Newf(fault.Invalid, CodeInvalid, "%.40q is not a kind of change of records", c.Kind)
}

// begin opens a session whose start is not in the log. Another program may have written
// the log, and its changes must not be lost.
func (s *callTx) begin(ctx context.Context, m *sessionState, tick, at int64) error {
	if m.isOpen() {
		return nil
	}
	return s.start(ctx, m, tick, at)
}

// start updates the rows for a session that starts at a tick.
func (s *callTx) start(ctx context.Context, m *sessionState, tick, at int64) error {
	_, err := s.tx.Exec(ctx, openSession, s.p.Key, m.key, at, tick)
	if !m.known {
		m.saveTick = tick
	}
	m.known, m.closed = true, false
	return err
}

// follow advances the project to a tick, which must be the next one.
func (s *callTx) follow(tick int64) error {
	if tick != s.tick+1 {
		return fault.Newf(fault.Conflict, CodeGap, "tick %d of project %s does not follow its tick %d", tick, s.p.ID, s.tick).
			WithHint("import into a project without records")
	}
	s.tick = tick
	return nil
}

func decodeEntry(doc []byte) (*Entry, error) {
	e := &Entry{}
	if err := json.Unmarshal(doc, e); err != nil {
		return nil, badDocument(err)
	}
	if _, ok := parseID(e.ID); !ok {
		return nil, badDocument(fmt.Errorf("id %.40q", e.ID))
	}
	e.Created, e.Modified, e.Cited = Time(e.CreatedNS), Time(e.ModifiedNS), e.Sources
	e.Metadata = canonical(e.Metadata)
	return e, nil
}

func badDocument(err error) error {
	return fault.Wrap(err, fault.Invalid, CodeInvalid, "a change's document is not a record: "+err.Error())
}

// applyEntry updates the rows for a version of a record.
func (s *callTx) applyEntry(ctx context.Context, m *sessionState, e *Entry, seq, at int64) error {
	number, _ := parseID(e.ID)
	if err := s.putRow(ctx, m, e, number); err != nil {
		return err
	}
	if err := s.putTick(ctx, e.Tick, number, seq); err != nil {
		return err
	}
	if e.Base > 0 {
		if _, err := s.tx.Exec(ctx, upsertActivation, s.p.Key, number, m.key, e.Base, at); err != nil {
			return err
		}
	}
	return s.touch(ctx, m, at)
}

// putTick stores the change of a tick. number is the number of its record, 0 for none.
func (s *callTx) putTick(ctx context.Context, tick, number, seq int64) error {
	if err := project.AdvanceClock(ctx, s.tx, s.p.Key, tick, number); err != nil {
		return err
	}
	_, err := s.tx.Exec(ctx, insertTick, s.p.Key, tick, seq)
	return err
}

func (s *callTx) touch(ctx context.Context, m *sessionState, at int64) error {
	_, err := s.tx.Exec(ctx, touchSession, s.p.Key, m.key, at, m.syncTick)
	return err
}

// putRow writes a record's row and its searchable words.
func (s *callTx) putRow(ctx context.Context, m *sessionState, e *Entry, number int64) error {
	old, err := s.find(ctx, number)
	isNew := errors.Is(err, sql.ErrNoRows)
	if err != nil && !isNew {
		return err
	}
	columns, err := columnsOf(&e.Record)
	if err != nil {
		return err
	}
	key := old.key
	if isNew {
		path, err := s.pathOf(ctx, e.ParentID, number)
		if err != nil {
			return err
		}
		args := append([]any{s.p.Key, number, numberOrNull(deref(e.ParentID)), path, m.key, int64(e.Created)}, columns...)
		res, err := s.tx.Exec(ctx, insertRecord, args...)
		if err != nil {
			return err
		}
		if key, err = res.LastInsertId(); err != nil {
			return err
		}
	} else if _, err := s.tx.Exec(ctx, updateRecord, append([]any{s.p.Key, number}, columns...)...); err != nil {
		return err
	}
	unchanged := !isNew && old.Title == e.Title && old.Summary == e.Summary && old.Body == e.Body
	if unchanged || s.tx != s.log { // a search of the past makes its index; see indexPast
		return nil
	}
	return s.putWords(ctx, key, &e.Record, isNew)
}

func (s *callTx) putWords(ctx context.Context, key int64, r *Record, isNew bool) error {
	if !isNew {
		if _, err := s.tx.Exec(ctx, deleteWords, key); err != nil {
			return err
		}
	}
	_, err := s.tx.Exec(ctx, insertWords, wordsOf(key, r)...)
	return err
}

// wordsOf returns the arguments of insertWords for a record.
func wordsOf(key int64, r *Record) []any {
	args := []any{key}
	for _, text := range [...]string{r.Title, r.Summary, r.Body} {
		parts, wholes := words.Index(text)
		args = append(args, parts, wholes)
	}
	return args
}

// applyEvent updates the rows for an event of a session.
func (s *callTx) applyEvent(ctx context.Context, m *sessionState, e *Event, seq, at int64) (err error) {
	switch e.Type {
	case SessionStarted:
		return s.start(ctx, m, e.SyncTick, at)
	case SessionBranched:
		parent, err := project.NewSession(ctx, s.tx, e.Parent, s.p)
		if err != nil {
			return err
		}
		if _, err := s.tx.Exec(ctx, branchSession, s.p.Key, m.key, parent.Key); err != nil {
			return err
		}
		m.parent = e.Parent
	case SessionSaved:
		err = s.applySave(ctx, m, e.Tick, seq, at)
	case SessionClosed:
		if _, err := s.tx.Exec(ctx, deleteActivations, s.p.Key, m.key); err != nil {
			return err
		}
		_, err = s.tx.Exec(ctx, closeSession, s.p.Key, m.key)
		m.closed = true
	default:
		if e.Base > 0 {
			err = s.applyLoad(ctx, m, e, at)
		}
	}
	if err != nil {
		return err
	}
	return s.touch(ctx, m, at)
}

func (s *callTx) applySave(ctx context.Context, m *sessionState, tick, seq, at int64) error {
	if err := s.putTick(ctx, tick, 0, seq); err != nil {
		return err
	}
	_, err := s.tx.Exec(ctx, saveSession, s.p.Key, m.key, tick, at)
	m.saveTick, m.lastSave = tick, at
	return err
}

// applyLoad records that a session has loaded a record.
func (s *callTx) applyLoad(ctx context.Context, m *sessionState, e *Event, at int64) error {
	number, ok := parseID(e.RecordID)
	if !ok {
		return badDocument(fmt.Errorf("record id %.40q", e.RecordID))
	}
	if _, err := s.tx.Exec(ctx, upsertActivation, s.p.Key, number, m.key, e.Base, at); err != nil {
		return err
	}
	var holders any
	if len(e.Holders) > 0 {
		list, err := json.Marshal(e.Holders)
		if err != nil {
			return err
		}
		holders = string(list)
	}
	_, err := s.tx.Exec(ctx, updateHolders, s.p.Key, number, m.key, holders, e.Settled)
	return err
}
