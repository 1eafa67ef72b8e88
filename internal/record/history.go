package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"cairn/internal/fault"
	"cairn/internal/linediff"
)

// ofRecord selects the versions of a record in the change log, of the stream ?1 and the
// id ?2, up to the change ?3.
const ofRecord = ` FROM changes c INDEXED BY changes_with_doc LEFT JOIN symbols s ON s.id = c.session
WHERE c.kind = (SELECT id FROM symbols WHERE text = '` + KindRecord + `') AND c.id = ?2 AND c.doc IS NOT NULL
  AND c.stream = (SELECT id FROM symbols WHERE text = ?1) AND c.seq <= ?3 `

const (
	// previousDoc selects the version before that of the change c.
	previousDoc = `ifnull((SELECT b.doc FROM changes b INDEXED BY changes_with_doc WHERE b.kind = c.kind AND b.id = c.id AND b.stream = c.stream
AND b.seq < c.seq AND b.doc IS NOT NULL ORDER BY b.seq DESC LIMIT 1), '')`

	selectHistory = `SELECT c.doc, ifnull(s.text, ''), c.at, ` + previousDoc + ofRecord + `AND c.at >= ?4
ORDER BY c.seq DESC LIMIT +?5`
	selectVersions  = `SELECT c.doc, ifnull(s.text, ''), c.at, ''` + ofRecord + `ORDER BY c.seq DESC`
	selectVersionAt = `SELECT c.doc, ifnull(s.text, ''), c.at, ''` + ofRecord + `ORDER BY c.seq DESC LIMIT 1`
	selectVersionBy = `SELECT c.doc, ifnull(s.text, ''), c.at, ''` + ofRecord + `AND c.at <= ?4 ORDER BY c.seq DESC LIMIT 1`
)

// logged is a version of a record from the change log.
type logged struct {
	*Entry
	session string
	at      int64
	before  *Entry // the version before, nil if there is none or it was not requested
}

// eachVersion calls fn with the versions that a query of this file selects; fn
// returns false for no more.
func (s *callTx) eachVersion(ctx context.Context, fn func(v logged) bool, query string, args ...any) error {
	return enough(s.log.Each(ctx, func(rows *sql.Rows) error {
		v, before := logged{}, ""
		var doc string
		err := rows.Scan(&doc, &v.session, &v.at, &before)
		if err == nil {
			v.Entry, err = decodeEntry([]byte(doc))
		}
		if err == nil && before != "" {
			v.before, err = decodeEntry([]byte(before))
		}
		if err == nil && !fn(v) {
			err = errEnough
		}
		return err
	}, query, args...))
}

// errEnough ends the reading of rows early.
var errEnough = errors.New("enough rows")

// enough returns nil for errEnough, because the wanted rows have been read.
func enough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// version returns one version of a record that was stored.
func (s *callTx) version(ctx context.Context, id string, number int) (r Record, err error) {
	found := false
	err = s.eachVersion(ctx, func(v logged) bool {
		if found = v.Version == number; found {
			r = v.Record
		}
		return v.Version > number
	}, selectVersions, s.stream, id, s.until)
	if err == nil && !found {
		err = invalid("from", fmt.Sprintf("%s has no version %d", id, number))
	}
	return r, err
}

// versionAbove returns the newest version above base.
func (s *callTx) versionAbove(ctx context.Context, id string, base int) (found logged, err error) {
	err = s.eachVersion(ctx, func(v logged) bool {
		if v.Version > base {
			found = v
		}
		return false
	}, selectVersionAt, s.stream, id, s.until)
	return found, err
}

// stateChangedBy returns the other session that last changed a record's state since this
// one loaded the version base, or "" if none did.
func (s *callTx) stateChangedBy(ctx context.Context, m *sessionState, r stored, base int) (by string, err error) {
	if r.Version == base {
		return "", nil
	}
	err = s.eachVersion(ctx, func(v logged) bool {
		if v.Version > base && v.Event == StateTransition && v.session != m.id {
			by = v.session
		}
		return v.Version > base && by == ""
	}, selectVersions, s.stream, r.ID, s.until)
	return by, err
}

// History lists the stored changes of a record, newest first.
//
// Errors: CodeNotFound, CodeInvalid for since and at.
func (b *Service) History(ctx context.Context, a HistoryArgs) ([]HistoryItem, error) {
	since, err := parseSince(a.Since)
	if err != nil {
		return nil, err
	}
	list := []HistoryItem{}
	err = b.readRecords(ctx, a.Caller, a.At, func(ctx context.Context, s *callTx) error {
		number, err := s.mustExist(ctx, a.ID)
		if err != nil {
			return err
		}
		return s.eachVersion(ctx, func(v logged) bool {
			list = append(list, v.item())
			return true
		}, selectHistory, s.stream, formatID(number), s.until, since, clamp(a.Limit, 50))
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (v *logged) item() HistoryItem {
	i := HistoryItem{
		Timestamp: Time(v.at), SessionID: v.session, ChangeType: v.Event, Summary: v.summary(), Version: v.Version, Tick: v.Tick,
	}
	before := Record{}
	if v.before != nil {
		before = v.before.Record
	}
	i.Diff = bodyDiff(&before, &v.Record)
	if i.Other = v.Other; v.Other != nil {
		i.Diff = linediff.Unified(fmt.Sprintf("%s v%d", v.ID, v.Version), "the other version", v.Body, v.Other.Body)
	}
	return i
}

// summary describes a change in one line.
func (e *Entry) summary() string {
	switch e.Event {
	case RecordCreated:
		return fmt.Sprintf("%s created: %s", e.ID, e.Title)
	case ConflictDetected:
		return e.otherSummary()
	case StateTransition:
		text := fmt.Sprintf("%s: %s → %s", e.ID, e.FromState, e.State)
		if e.ResolvedBy != "" {
			text += " by " + e.ResolvedBy
		}
		if e.Reason != "" {
			text += ": " + e.Reason
		}
		return text
	}
	text := fmt.Sprintf("%s updated: %s", e.ID, e.Title)
	if e.Forced {
		text += " (another session's version was overridden)"
	}
	return text
}

func bodyDiff(before, after *Record) string {
	name := func(r *Record) string {
		if r.Version == 0 {
			return "/dev/null"
		}
		return fmt.Sprintf("%s v%d", after.ID, r.Version)
	}
	return linediff.Unified(name(before), name(after), before.Body, after.Body)
}

func diffOf(before, after *Record) Diff {
	pair := func(a, b string) *Pair {
		if a == b {
			return nil
		}
		return &Pair{a, b}
	}
	return Diff{
		Title: pair(before.Title, after.Title), Summary: pair(before.Summary, after.Summary),
		Body: bodyDiff(before, after), State: pair(string(before.State), string(after.State)),
	}
}

// Diff compares two versions of a record (records §2, get_record_diff).
//
// Errors: CodeNotFound; CodeInvalid for an invalid moment or version, a moment before the
// record existed, and a to that is before from.
func (b *Service) Diff(ctx context.Context, a DiffArgs) (out VersionDiff, err error) {
	from, err := parsePoint("from", a.From)
	if err != nil {
		return out, err
	}
	to := point{field: "to", now: true}
	if a.To != "" {
		if to, err = parsePoint("to", a.To); err != nil {
			return out, err
		}
	}
	if from.at != 0 && to.at != 0 && to.at < from.at {
		return out, invalid("to", "to is before from")
	}
	err = b.read(ctx, a.Caller, "", func(ctx context.Context, s *callTx) error {
		r, err := s.mustFind(ctx, a.ID)
		if err != nil {
			return err
		}
		if out.FromVersion, err = s.versionAt(ctx, a.Caller, r, from); err != nil {
			return err
		}
		if out.ToVersion, err = s.versionAt(ctx, a.Caller, r, to); err != nil {
			return err
		}
		if out.ToVersion.Version < out.FromVersion.Version {
			return invalid("to", "to is before from")
		}
		out.Diff = diffOf(&out.FromVersion, &out.ToVersion)
		return nil
	})
	return out, err
}

// versionAt returns the version of a record that was current at a point.
func (s *callTx) versionAt(ctx context.Context, c Caller, r stored, p point) (Record, error) {
	switch {
	case p.now:
		return r.Record, nil
	case p.version != 0:
		if p.version > int64(r.Version) {
			return Record{}, invalid(p.field, fmt.Sprintf("%s has no version %d; its newest is %d", r.ID, p.version, r.Version))
		}
		return s.version(ctx, r.ID, int(p.version))
	}
	query, args := selectVersionAt, []any{s.stream, r.ID, s.until}
	if p.at != 0 {
		query, args = selectVersionBy, append(args, p.at)
	} else {
		seq, err := s.seqOf(ctx, c, p)
		if err != nil {
			return Record{}, err
		}
		args[2] = seq
	}
	var found *Entry
	err := s.eachVersion(ctx, func(v logged) bool { found = v.Entry; return false }, query, args...)
	if err == nil && found == nil {
		err = invalid(p.field, fmt.Sprintf("%s did not exist then; it was created at %s", r.ID, r.Created))
	}
	if err != nil {
		return Record{}, err
	}
	return found.Record, nil
}

const (
	selectTick     = `SELECT seq FROM record_ticks WHERE project_key = ? AND tick = ?`
	selectSaveTick = `SELECT ifnull(max(save_tick), 0) FROM record_sessions WHERE project_key = ? AND last_save IS NOT NULL`
)

// seqOf returns the seq of a tick or of the last save in the change log.
func (s *callTx) seqOf(ctx context.Context, c Caller, p point) (seq int64, err error) {
	tick := p.tick
	if p.lastSave {
		m, err := s.member(ctx, c)
		if err != nil {
			return 0, err
		}
		if tick = m.saveTick; m.lastSave == 0 {
			if err := s.tx.Get(ctx, []any{&tick}, selectSaveTick, s.p.Key); err != nil {
				return 0, err
			}
			if tick == 0 {
				return 0, invalid(p.field, "no session has saved in this project yet")
			}
		}
	}
	return s.seqOfTick(ctx, p.field, tick)
}

// seqOfTick returns the seq of a tick's change; 0 for tick 0.
func (s *callTx) seqOfTick(ctx context.Context, field string, tick int64) (seq int64, err error) {
	switch {
	case tick == 0:
		return 0, nil
	case tick > s.tick:
		return 0, invalid(field, fmt.Sprintf("the project's clock is at tick %d", s.tick))
	}
	err = s.tx.Get(ctx, []any{&seq}, selectTick, s.p.Key, tick)
	if err != nil {
		return 0, fault.Wrap(err, fault.Internal, "internal", fmt.Sprintf("tick %d of %s is not in the log", tick, s.p.ID))
	}
	return seq, nil
}
