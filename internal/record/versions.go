package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"cairn/internal/fault"
)

// OfRecord selects the versions of a record in the change log, of the stream ?1 and the
// id ?2, up to the change ?3.
const OfRecord = ` FROM changes c INDEXED BY changes_with_doc LEFT JOIN symbols s ON s.id = c.session
WHERE c.kind = (SELECT id FROM symbols WHERE text = '` + KindRecord + `') AND c.id = ?2 AND c.doc IS NOT NULL
  AND c.stream = (SELECT id FROM symbols WHERE text = ?1) AND c.seq <= ?3 `

const (
	// PreviousDoc selects the version before that of the change c.
	PreviousDoc = `ifnull((SELECT b.doc FROM changes b INDEXED BY changes_with_doc WHERE b.kind = c.kind AND b.id = c.id AND b.stream = c.stream
AND b.seq < c.seq AND b.doc IS NOT NULL ORDER BY b.seq DESC LIMIT 1), '')`
	selectIsLogged = `SELECT EXISTS (SELECT 1 FROM changes WHERE kind = (SELECT id FROM symbols WHERE text = '` + KindRecord + `') AND id = ?2
AND stream = (SELECT id FROM symbols WHERE text = ?1))`

	selectVersions  = `SELECT c.doc, ifnull(s.text, ''), c.at, ''` + OfRecord + `ORDER BY c.seq DESC`
	selectVersionAt = `SELECT c.doc, ifnull(s.text, ''), c.at, ''` + OfRecord + `ORDER BY c.seq DESC LIMIT 1`
	selectVersionBy = `SELECT c.doc, ifnull(s.text, ''), c.at, ''` + OfRecord + `AND c.at <= ?4 ORDER BY c.seq DESC LIMIT 1`
)

// Logged is a version of a record from the change log.
type Logged struct {
	*Entry
	Session string
	At      int64
	Before  *Entry // the version before, nil if there is none or it was not requested
}

// EachVersion calls fn with the versions that a query of this file selects; fn
// returns false for no more.
func (s *CallTx) EachVersion(ctx context.Context, fn func(v Logged) bool, query string, args ...any) error {
	return Enough(s.Log.Each(ctx, func(rows *sql.Rows) error {
		v, before := Logged{}, ""
		var doc string
		err := rows.Scan(&doc, &v.Session, &v.At, &before)
		if err == nil {
			v.Entry, err = DecodeEntry([]byte(doc))
		}
		if err == nil && before != "" {
			v.Before, err = DecodeEntry([]byte(before))
		}
		if err == nil && !fn(v) {
			err = ErrEnough
		}
		return err
	}, query, args...))
}

// ErrEnough ends the reading of rows early.
var ErrEnough = errors.New("enough rows")

// Enough returns nil for errEnough, because the wanted rows have been read.
func Enough(err error) error {
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return err
}

// Newest returns the newest version of a record up to the change until. Without a version
// its Entry is nil.
func (s *CallTx) Newest(ctx context.Context, id string, until int64) (v Logged, err error) {
	err = s.EachVersion(ctx, func(found Logged) bool { v = found; return false }, selectVersionAt, s.Stream, id, until)
	return v, err
}

// IsLogged reports whether the log has a version of a record, also a blanked one.
func (s *CallTx) IsLogged(ctx context.Context, number int64) (found bool, err error) {
	err = s.Tx.Get(ctx, []any{&found}, selectIsLogged, s.Stream, FormatID(number))
	return found, err
}

// Version returns one version of a record that was stored.
func (s *CallTx) Version(ctx context.Context, id string, number int) (r Record, err error) {
	found := false
	err = s.EachVersion(ctx, func(v Logged) bool {
		if found = v.Version == number; found {
			r = v.Record
		}
		return v.Version > number
	}, selectVersions, s.Stream, id, s.Until)
	if err == nil && !found {
		err = Invalid("from", fmt.Sprintf("%s has no version %d", id, number))
	}
	return r, err
}

// VersionAbove returns the newest version above base.
func (s *CallTx) VersionAbove(ctx context.Context, id string, base int) (found Logged, err error) {
	v, err := s.Newest(ctx, id, s.Until)
	if err == nil && v.Entry != nil && v.Version > base {
		found = v
	}
	return found, err
}

// StateChangedBy returns the other session that last changed a record's state since this
// one loaded the version base, or "" if none did.
func (s *CallTx) StateChangedBy(ctx context.Context, m *Session, r Stored, base int) (by string, err error) {
	if r.Version == base {
		return "", nil
	}
	err = s.EachVersion(ctx, func(v Logged) bool {
		if v.Version > base && v.Event == StateTransition && v.Session != m.ID {
			by = v.Session
		}
		return v.Version > base && by == ""
	}, selectVersions, s.Stream, r.ID, s.Until)
	return by, err
}

// VersionAt returns the version of a record that was current at a point.
func (s *CallTx) VersionAt(ctx context.Context, c Caller, r Stored, p Point) (Record, error) {
	switch {
	case p.now:
		return r.Record, nil
	case p.version != 0:
		if p.version > int64(r.Version) {
			return Record{}, Invalid(p.field, fmt.Sprintf("%s has no version %d; its newest is %d", r.ID, p.version, r.Version))
		}
		return s.Version(ctx, r.ID, int(p.version))
	}
	var v Logged
	var err error
	if p.at != 0 {
		err = s.EachVersion(ctx, func(found Logged) bool { v = found; return false }, selectVersionBy, s.Stream, r.ID, s.Until, p.at)
	} else {
		var seq int64
		if seq, err = s.seqOf(ctx, c, p); err == nil {
			v, err = s.Newest(ctx, r.ID, seq)
		}
	}
	if err == nil && v.Entry == nil {
		err = Invalid(p.field, fmt.Sprintf("%s did not exist then; it was created at %s", r.ID, r.Created))
	}
	if err != nil {
		return Record{}, err
	}
	return v.Record, nil
}

const (
	selectTick     = `SELECT seq FROM record_ticks WHERE project_key = ? AND tick = ?`
	selectSaveTick = `SELECT ifnull(max(save_tick), 0) FROM record_sessions WHERE project_key = ? AND last_save IS NOT NULL`
)

// seqOf returns the seq of a tick or of the last save in the change log.
func (s *CallTx) seqOf(ctx context.Context, c Caller, p Point) (seq int64, err error) {
	tick := p.tick
	if p.lastSave {
		m, err := s.Member(ctx, c)
		if err != nil {
			return 0, err
		}
		if tick = m.SaveTick; m.LastSave == 0 {
			if err := s.Tx.Get(ctx, []any{&tick}, selectSaveTick, s.Project.Key); err != nil {
				return 0, err
			}
			if tick == 0 {
				return 0, Invalid(p.field, "no session has saved in this project yet")
			}
		}
	}
	return s.SeqOfTick(ctx, p.field, tick)
}

// SeqOfTick returns the seq of a tick's change; 0 for tick 0.
func (s *CallTx) SeqOfTick(ctx context.Context, field string, tick int64) (seq int64, err error) {
	switch {
	case tick == 0:
		return 0, nil
	case tick > s.Tick:
		return 0, Invalid(field, fmt.Sprintf("the project's clock is at tick %d", s.Tick))
	}
	err = s.Tx.Get(ctx, []any{&seq}, selectTick, s.Project.Key, tick)
	if err != nil {
		return 0, fault.Wrap(err, fault.Internal, "internal", fmt.Sprintf("tick %d of %s is not in the log", tick, s.Project.ID))
	}
	return seq, nil
}
