package record

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/words"
)

const millisecond = int64(time.Millisecond)

// Point is a position in a record's history. Exactly one field is set, besides the
// argument's name; tick may be 0.
type Point struct {
	field    string
	now      bool
	lastSave bool
	isTick   bool
	tick     int64
	version  int64
	isSeq    bool
	seq      int64 // seq of a change in the store's log
	at       int64 // the last nanosecond of the given millisecond
}

// NowAs returns the present as the value of an argument.
func NowAs(field string) Point { return Point{field: field, now: true} }

// IsBefore reports whether both points are times and p is before q.
func (p Point) IsBefore(q Point) bool { return p.at != 0 && q.at != 0 && p.at < q.at }

// ParsePoint reads an RFC 3339 time, last_save, vN or tick:N.
func ParsePoint(field, text string) (p Point, err error) {
	p.field = field
	if text == "last_save" {
		p.lastSave = true
		return p, nil
	}
	if number, ok := strings.CutPrefix(text, "v"); ok {
		if p.version, ok = parseNumber(number); ok && p.version > 0 {
			return p, nil
		}
	}
	at, err := parseAt(field, text)
	if err != nil || at == nil {
		return p, Invalid(field, field+" must be an RFC 3339 time, last_save, v and a version, or tick: and a number")
	}
	return *at, nil
}

// parseMoment parses tick:N and the forms of words.ParseMoment. It returns nil for "".
func parseMoment(field, text string, now func() time.Time) (*Point, error) {
	if p, err := parseAt(field, text); err == nil {
		return p, nil
	}
	m, err := words.ParseMoment(text, now())
	switch {
	case err != nil:
		return nil, Invalid(field, fmt.Sprintf("%s must be %s, or tick: and a number, not %.40q", field, words.MomentForms, text))
	case m.Time.IsZero():
		return &Point{field: field, isSeq: true, seq: m.Tick}, nil
	}
	return &Point{field: field, at: m.Time.UnixNano()}, nil
}

// parseAt reads an RFC 3339 time or tick:N; nil for "".
func parseAt(field, text string) (*Point, error) {
	if text == "" {
		return nil, nil
	}
	if number, ok := strings.CutPrefix(text, "tick:"); ok {
		if tick, ok := parseNumber(number); ok {
			return &Point{field: field, isTick: true, tick: tick}, nil
		}
	}
	at, ok := ParseTime(text)
	if !ok {
		return nil, Invalid(field, fmt.Sprintf("%s must be an RFC 3339 time or tick: and a number, not %.40q", field, text))
	}
	return &Point{field: field, at: at + millisecond - 1}, nil
}

// ParseTime returns the start of the millisecond of an RFC 3339 time. Times before 1970
// or after 2261 are clamped, because no change is outside that range.
func ParseTime(text string) (ns int64, ok bool) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, false
	}
	at = at.UTC()
	if first := time.Unix(0, 0); at.Before(first) {
		at = first
	}
	if last := time.Date(2261, 12, 31, 23, 59, 59, 0, time.UTC); at.After(last) {
		at = last
	}
	ns = at.UnixNano()
	return ns - ns%millisecond, true
}

func parseNumber(text string) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// recordsThen begins a statement that reads the records of the project ?1 as they were after
// the change ?3 of its stream ?2. Numbers, parents and paths never change, so they come from
// the rows. The rest comes from a record's newest document at that time.
const recordsThen = `WITH records AS NOT MATERIALIZED (
    SELECT r.project_key, r.number, r.parent, r.path, c.doc ->> '$.state' AS state, c.doc ->> '$.type' AS type,
        c.doc ->> '$.title' AS title, c.doc ->> '$.summary' AS summary, c.doc ->> '$.cited' AS cited
    FROM main.records r CROSS JOIN changes c ON c.seq = (SELECT b.seq FROM changes b INDEXED BY changes_with_doc
        WHERE b.kind = (SELECT id FROM symbols WHERE text = '` + KindRecord + `') AND b.id = printf('R%03d', r.number) AND b.doc IS NOT NULL
          AND b.stream = (SELECT id FROM symbols WHERE text = ?2) AND b.seq <= ?3 ORDER BY b.seq DESC LIMIT 1))
`

// asOf runs fn on the records of the project as of a moment. fn must not read anything else
// that has a past.
func (s *CallTx) asOf(ctx context.Context, at *Point, fn func(ctx context.Context, s *CallTx) error) error {
	moment, err := s.momentOf(ctx, at)
	if err != nil {
		return err
	}
	s.Until, s.Then = moment.Tick, &moment
	return fn(ctx, s)
}

// readsLog reports whether s shows a past state without a replay of it.
func (s *CallTx) readsLog() bool { return s.Then != nil && s.Tx == s.Log }

// Shown returns a statement that reads records in the state that s shows, and its arguments:
// ?1 to ?3 are those of recordsThen, ?4 is the first of args.
func (s *CallTx) Shown(query string, args ...any) (string, []any) {
	if s.readsLog() {
		query = recordsThen + query
	}
	return query, append([]any{s.Project.Key, s.Stream, s.Until}, args...)
}

// replayed runs fn on a past state of the project: its log up to the moment, replayed into a
// separate store.
func (s *CallTx) replayed(ctx context.Context, at *Point, fn func(ctx context.Context, s *CallTx) error) error {
	moment, err := s.momentOf(ctx, at)
	if err != nil {
		return err
	}
	return store.Scratch(ctx, s.Tx.Now(), func(ctx context.Context, tx *store.Tx) error {
		past, err := s.replay(ctx, tx, moment.Tick)
		if err != nil {
			return err
		}
		past.Then = &moment
		return fn(ctx, past)
	})
}

// momentOf returns the moment in the log for a caller's point.
func (s *CallTx) momentOf(ctx context.Context, at *Point) (m store.Moment, err error) {
	switch now := s.Tx.Now(); {
	case at.isTick:
		if at.seq, err = s.SeqOfTick(ctx, at.field, at.tick); err == nil {
			m, err = s.Tx.MomentOf(ctx, s.Stream, time.Time{}, at.seq)
		}
	case at.isSeq:
		m, err = s.Tx.MomentOf(ctx, s.Stream, time.Time{}, at.seq)
	default:
		when := time.Unix(0, at.at)
		if when.After(now) && now.UnixNano() > at.at-millisecond {
			when = now // its millisecond has not passed
		}
		m, err = s.Tx.MomentOf(ctx, s.Stream, when, 0)
	}
	if fault.HasCode(err, store.CodeFuture) {
		err = Invalid(at.field, at.field+": "+fault.As(err).Message)
	}
	return m, err
}

// replay brings an empty store to the state of the project after a change.
func (s *CallTx) replay(ctx context.Context, tx *store.Tx, until int64) (*CallTx, error) {
	d, err := s.Details(ctx)
	if err != nil {
		return nil, err
	}
	if err := project.PutCopy(ctx, tx, s.Project, d.Description, int64(d.Created)); err != nil {
		return nil, err
	}
	past := &CallTx{Kernel: s.Kernel, Tx: tx, Log: s.Log, Until: until, Project: s.Project, Stream: s.Stream}
	err = s.Log.ChangesUntil(ctx, s.Stream, until, func(c store.Change) error { return past.Apply(ctx, c) })
	return past, err
}
