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
	InsertWords = `INSERT INTO records_fts (rowid, title, title_wholes, summary, summary_wholes, body, body_wholes)
VALUES (?, ?, ?, ?, ?, ?, ?)`

	InsertTick = `INSERT INTO record_ticks (project_key, tick, seq) VALUES (?, ?, ?)`

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

// ScopeOf returns a CallTx for a project, without settings: for documents, the archive and
// repairs.
func ScopeOf(ctx context.Context, tx *store.Tx, p project.Project) (*CallTx, error) {
	return (&Kernel{}).ScopeOf(ctx, tx, p)
}

// ScopeOfDocument returns a CallTx for the project of a document from elsewhere. It
// creates a missing project.
func ScopeOfDocument(ctx context.Context, tx *store.Tx, id string) (*CallTx, error) {
	p, err := project.Ensure(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	return ScopeOf(ctx, tx, p)
}

// Apply logs a change and updates the rows.
func (s *CallTx) Apply(ctx context.Context, c store.Change) error {
	m, err := s.MemberOf(ctx, c.Session)
	if err != nil {
		return err
	}
	before := s.Tick
	own := store.Change{Kind: c.Kind, ID: c.ID, Doc: c.Doc, At: c.At, Agent: c.Agent}
	switch c.Kind {
	case KindRecord:
		e, err := DecodeEntry(c.Doc)
		if err != nil {
			return err
		}
		if err := s.Follow(e.Tick); err != nil {
			return err
		}
		m.SyncTick = e.SyncTick
		return s.Append(ctx, m, own, func(seq, at int64) error {
			if err := s.begin(ctx, m, before, at); err != nil {
				return err
			}
			return s.applyEntry(ctx, m, e, seq, at)
		})
	case KindEvent:
		var e Event
		if err := json.Unmarshal(c.Doc, &e); err != nil {
			return BadDocument(err)
		}
		if e.Tick != 0 {
			if err := s.Follow(e.Tick); err != nil {
				return err
			}
		}
		m.SyncTick = e.SyncTick
		return s.Append(ctx, m, own, func(seq, at int64) error {
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
func (s *CallTx) begin(ctx context.Context, m *Session, tick, at int64) error {
	if m.IsOpen() {
		return nil
	}
	return s.start(ctx, m, tick, at)
}

// start updates the rows for a session that starts at a tick.
func (s *CallTx) start(ctx context.Context, m *Session, tick, at int64) error {
	_, err := s.Tx.Exec(ctx, openSession, s.Project.Key, m.Key, at, tick)
	if !m.Known {
		m.SaveTick = tick
	}
	m.Known, m.Closed = true, false
	return err
}

// Follow advances the project to a tick, which must be the next one.
func (s *CallTx) Follow(tick int64) error {
	if tick != s.Tick+1 {
		return fault.Newf(fault.Conflict, CodeGap, "tick %d of project %s does not follow its tick %d", tick, s.Project.ID, s.Tick).
			WithHint("import into a project without records")
	}
	s.Tick = tick
	return nil
}

// DecodeEntry returns the version in the document of a change. An invalid document is the
// error of BadDocument.
func DecodeEntry(doc []byte) (*Entry, error) {
	e := &Entry{}
	if err := json.Unmarshal(doc, e); err != nil {
		return nil, BadDocument(err)
	}
	if _, ok := ParseID(e.ID); !ok {
		return nil, BadDocument(fmt.Errorf("id %.40q", e.ID))
	}
	e.Created, e.Modified, e.Cited = Time(e.CreatedNS), Time(e.ModifiedNS), e.Sources
	e.Metadata = Canonical(e.Metadata)
	return e, nil
}

// BadDocument returns the error (Invalid, CodeInvalid) for a document that is not one of
// records.
func BadDocument(err error) error {
	return fault.Wrap(err, fault.Invalid, CodeInvalid, "a change's document is not a record: "+err.Error())
}

// applyEntry updates the rows for a version of a record.
func (s *CallTx) applyEntry(ctx context.Context, m *Session, e *Entry, seq, at int64) error {
	number, _ := ParseID(e.ID)
	if err := s.PutRow(ctx, m, e, number); err != nil {
		return err
	}
	if err := s.PutTick(ctx, e.Tick, number, seq); err != nil {
		return err
	}
	if e.Base > 0 {
		if _, err := s.Tx.Exec(ctx, upsertActivation, s.Project.Key, number, m.Key, e.Base, at); err != nil {
			return err
		}
	}
	return s.touch(ctx, m, at)
}

// PutTick stores the change of a tick. number is the number of its record, 0 for none.
func (s *CallTx) PutTick(ctx context.Context, tick, number, seq int64) error {
	if err := project.AdvanceClock(ctx, s.Tx, s.Project.Key, tick, number); err != nil {
		return err
	}
	_, err := s.Tx.Exec(ctx, InsertTick, s.Project.Key, tick, seq)
	return err
}

func (s *CallTx) touch(ctx context.Context, m *Session, at int64) error {
	_, err := s.Tx.Exec(ctx, touchSession, s.Project.Key, m.Key, at, m.SyncTick)
	return err
}

// PutRow writes a record's row and its searchable words.
func (s *CallTx) PutRow(ctx context.Context, m *Session, e *Entry, number int64) error {
	old, err := s.Find(ctx, number)
	isNew := errors.Is(err, sql.ErrNoRows)
	if err != nil && !isNew {
		return err
	}
	columns, err := ColumnsOf(&e.Record)
	if err != nil {
		return err
	}
	key := old.Key
	if isNew {
		path, err := s.PathOf(ctx, e.ParentID, number)
		if err != nil {
			return err
		}
		args := append([]any{s.Project.Key, number, NumberOrNull(Deref(e.ParentID)), path, m.Key, int64(e.Created)}, columns...)
		res, err := s.Tx.Exec(ctx, insertRecord, args...)
		if err != nil {
			return err
		}
		if key, err = res.LastInsertId(); err != nil {
			return err
		}
	} else if _, err := s.Tx.Exec(ctx, updateRecord, append([]any{s.Project.Key, number}, columns...)...); err != nil {
		return err
	}
	unchanged := !isNew && old.Title == e.Title && old.Summary == e.Summary && old.Body == e.Body
	if unchanged || s.Tx != s.Log { // a search of the past makes its index; see package lookup
		return nil
	}
	return PutWords(ctx, s.Tx, key, &e.Record, isNew)
}

// PutWords stores the searchable words of the record with a row key.
func PutWords(ctx context.Context, tx *store.Tx, key int64, r *Record, isNew bool) error {
	if !isNew {
		if _, err := tx.Exec(ctx, deleteWords, key); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, InsertWords, WordsOf(key, r)...)
	return err
}

// WordsOf returns the arguments of InsertWords for a record.
func WordsOf(key int64, r *Record) []any {
	args := []any{key}
	for _, text := range [...]string{r.Title, r.Summary, r.Body} {
		parts, wholes := words.Index(text)
		args = append(args, parts, wholes)
	}
	return args
}

// applyEvent updates the rows for an event of a session.
func (s *CallTx) applyEvent(ctx context.Context, m *Session, e *Event, seq, at int64) (err error) {
	switch e.Type {
	case SessionStarted:
		return s.start(ctx, m, e.SyncTick, at)
	case SessionBranched:
		parent, err := project.NewSession(ctx, s.Tx, e.Parent, s.Project)
		if err != nil {
			return err
		}
		if _, err := s.Tx.Exec(ctx, branchSession, s.Project.Key, m.Key, parent.Key); err != nil {
			return err
		}
		m.parent = e.Parent
	case SessionSaved:
		err = s.applySave(ctx, m, e.Tick, seq, at)
	case SessionClosed:
		if _, err := s.Tx.Exec(ctx, deleteActivations, s.Project.Key, m.Key); err != nil {
			return err
		}
		_, err = s.Tx.Exec(ctx, closeSession, s.Project.Key, m.Key)
		m.Closed = true
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

func (s *CallTx) applySave(ctx context.Context, m *Session, tick, seq, at int64) error {
	if err := s.PutTick(ctx, tick, 0, seq); err != nil {
		return err
	}
	_, err := s.Tx.Exec(ctx, saveSession, s.Project.Key, m.Key, tick, at)
	m.SaveTick, m.LastSave = tick, at
	return err
}

// applyLoad records that a session has loaded a record.
func (s *CallTx) applyLoad(ctx context.Context, m *Session, e *Event, at int64) error {
	number, ok := ParseID(e.RecordID)
	if !ok {
		return BadDocument(fmt.Errorf("record id %.40q", e.RecordID))
	}
	if _, err := s.Tx.Exec(ctx, upsertActivation, s.Project.Key, number, m.Key, e.Base, at); err != nil {
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
	_, err := s.Tx.Exec(ctx, updateHolders, s.Project.Key, number, m.Key, holders, e.Settled)
	return err
}
