package record

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/words"
)

const millisecond = int64(time.Millisecond)

// point is a position in a record's history. Exactly one field is set, besides the
// argument's name; tick may be 0.
type point struct {
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

// parsePoint reads an RFC 3339 time, last_save, vN or tick:N.
func parsePoint(field, text string) (p point, err error) {
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
		return p, invalid(field, field+" must be an RFC 3339 time, last_save, v and a version, or tick: and a number")
	}
	return *at, nil
}

// parseMoment parses tick:N and the forms of words.ParseMoment. It returns nil for "".
func parseMoment(field, text string, now func() time.Time) (*point, error) {
	if p, err := parseAt(field, text); err == nil {
		return p, nil
	}
	m, err := words.ParseMoment(text, now())
	switch {
	case err != nil:
		return nil, invalid(field, fmt.Sprintf("%s must be %s, or tick: and a number, not %.40q", field, words.MomentForms, text))
	case m.Time.IsZero():
		return &point{field: field, isSeq: true, seq: m.Tick}, nil
	}
	return &point{field: field, at: m.Time.UnixNano()}, nil
}

// parseAt reads an RFC 3339 time or tick:N; nil for "".
func parseAt(field, text string) (*point, error) {
	if text == "" {
		return nil, nil
	}
	if number, ok := strings.CutPrefix(text, "tick:"); ok {
		if tick, ok := parseNumber(number); ok {
			return &point{field: field, isTick: true, tick: tick}, nil
		}
	}
	at, ok := parseTime(text)
	if !ok {
		return nil, invalid(field, fmt.Sprintf("%s must be an RFC 3339 time or tick: and a number, not %.40q", field, text))
	}
	return &point{field: field, at: at + millisecond - 1}, nil
}

// parseSince returns the first nanosecond that a time includes; "" includes all.
func parseSince(text string) (int64, error) {
	if text == "" {
		return math.MinInt64, nil
	}
	at, ok := parseTime(text)
	if !ok {
		return 0, invalid("since", fmt.Sprintf("since must be an RFC 3339 time, not %.40q", text))
	}
	return at, nil
}

// parseTime returns the start of the millisecond of an RFC 3339 time. Times before 1970
// or after 2261 are clamped, because no change is outside that range.
func parseTime(text string) (ns int64, ok bool) {
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
func (s *callTx) asOf(ctx context.Context, at *point, fn func(ctx context.Context, s *callTx) error) error {
	moment, err := s.momentOf(ctx, at)
	if err != nil {
		return err
	}
	s.until, s.then = moment.Tick, &moment
	return fn(ctx, s)
}

// readsLog reports whether s shows a past state without a replay of it.
func (s *callTx) readsLog() bool { return s.then != nil && s.tx == s.log }

// shown returns a statement that reads records in the state that s shows, and its arguments:
// ?1 to ?3 are those of recordsThen, ?4 is the first of args.
func (s *callTx) shown(query string, args ...any) (string, []any) {
	if s.readsLog() {
		query = recordsThen + query
	}
	return query, append([]any{s.p.Key, s.stream, s.until}, args...)
}

// replayed runs fn on a past state of the project: its log up to the moment, replayed into a
// separate store.
func (s *callTx) replayed(ctx context.Context, at *point, fn func(ctx context.Context, s *callTx) error) error {
	moment, err := s.momentOf(ctx, at)
	if err != nil {
		return err
	}
	return store.Scratch(ctx, s.tx.Now(), func(ctx context.Context, tx *store.Tx) error {
		past, err := s.replay(ctx, tx, moment.Tick)
		if err != nil {
			return err
		}
		past.then = &moment
		return fn(ctx, past)
	})
}

// momentOf returns the moment in the log for a caller's point.
func (s *callTx) momentOf(ctx context.Context, at *point) (m store.Moment, err error) {
	switch now := s.tx.Now(); {
	case at.isTick:
		if at.seq, err = s.seqOfTick(ctx, at.field, at.tick); err == nil {
			m, err = s.tx.MomentOf(ctx, s.stream, time.Time{}, at.seq)
		}
	case at.isSeq:
		m, err = s.tx.MomentOf(ctx, s.stream, time.Time{}, at.seq)
	default:
		when := time.Unix(0, at.at)
		if when.After(now) && now.UnixNano() > at.at-millisecond {
			when = now // its millisecond has not passed
		}
		m, err = s.tx.MomentOf(ctx, s.stream, when, 0)
	}
	if fault.HasCode(err, store.CodeFuture) {
		err = invalid(at.field, at.field+": "+fault.As(err).Message)
	}
	return m, err
}

// replay brings an empty store to the state of the project after a change.
func (s *callTx) replay(ctx context.Context, tx *store.Tx, until int64) (*callTx, error) {
	d, err := s.details(ctx)
	if err != nil {
		return nil, err
	}
	if err := project.PutCopy(ctx, tx, s.p, d.Description, int64(d.Created)); err != nil {
		return nil, err
	}
	past := &callTx{Service: s.Service, tx: tx, log: s.log, until: until, p: s.p, stream: s.stream}
	err = s.log.ChangesUntil(ctx, s.stream, until, func(c store.Change) error { return past.apply(ctx, c) })
	return past, err
}
