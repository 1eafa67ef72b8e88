package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"cairn/internal/fault"
)

// CodeFuture is the error code (Invalid) for a moment in the future.
const CodeFuture = "moment_in_the_future"

// Moment is a position in the change log. The state at a moment is the result of the changes
// up to Tick. An entity with an expiry time has expired unless that time is after Time.
// Results about the past contain it.
type Moment struct {
	Time time.Time `json:"time,omitzero"`  // zero before the first change
	Tick int64     `json:"tick"`           // seq of the last included change; 0 for none
	Note string    `json:"note,omitempty"` // the unknown part of that time's state; "" if nothing is unknown
}

// BeforeFirst is the Note of a moment before the first change of a stream.
const BeforeFirst = "nothing is known of that time: it is before the first change in the log"

const (
	ofStream = `WHERE c.stream = (SELECT id FROM symbols WHERE text = ?1) AND c.doc IS NOT NULL `

	selectTickAt = `SELECT c.seq FROM changes c INDEXED BY changes_of_stream ` + ofStream + `AND c.at <= ?2 ORDER BY c.seq DESC LIMIT 1`
	selectSkew   = `SELECT max(0, ifnull((SELECT max(c.at) FROM changes c INDEXED BY changes_of_stream ` + ofStream + `AND c.seq <= ?2), ?3) - ?3,
?3 - ifnull((SELECT min(c.at) FROM changes c INDEXED BY changes_of_stream ` + ofStream + `AND c.seq > ?2), ?3))`
	selectTimeOfTick  = `SELECT at FROM changes WHERE seq <= ? ORDER BY seq DESC LIMIT 1`
	existsUntil       = `SELECT EXISTS (SELECT 1 FROM changes c INDEXED BY changes_of_stream ` + ofStream + `AND c.seq <= ?2)`
	selectStreamUntil = changeColumns + ofStream + `AND c.seq <= ?2 ORDER BY c.seq`
	selectDocsUntil   = `SELECT c.doc FROM json_each(?4) j CROSS JOIN changes c ON c.seq = (
    SELECT b.seq FROM changes b INDEXED BY changes_with_doc
    WHERE b.kind = (SELECT id FROM symbols WHERE text = ?2) AND b.id = j.value AND b.doc IS NOT NULL AND b.seq <= ?3
      AND b.stream = (SELECT id FROM symbols WHERE text = ?1) ORDER BY b.seq DESC LIMIT 1)`
)

// MomentOf returns the moment of a stream at a time: after the last change committed at
// or before that time. With the zero time it is the moment after the change with the seq
// tick, of any stream. Before the first change of the stream that has a document, Note is
// BeforeFirst.
//
// Errors: CodeFuture for a time after the transaction's time and for a tick after the
// newest.
func (t *Tx) MomentOf(ctx context.Context, stream string, at time.Time, tick int64) (m Moment, err error) {
	if at.IsZero() {
		return t.momentOfTick(ctx, stream, tick)
	}
	if at.After(t.now) {
		return m, fault.Newf(fault.Invalid, CodeFuture, "%s is in the future", at.Format(time.RFC3339)).
			WithHint("give a time up to now, which is " + t.now.Format(time.RFC3339))
	}
	m.Time = at.UTC()
	err = t.Get(ctx, []any{&m.Tick}, selectTickAt, stream, at.UnixNano())
	if errors.Is(err, sql.ErrNoRows) {
		m.Note, err = BeforeFirst, nil
	}
	return m, err
}

func (t *Tx) momentOfTick(ctx context.Context, stream string, tick int64) (m Moment, err error) {
	head, err := t.Head(ctx)
	if err == nil && tick > head {
		err = fault.Newf(fault.Invalid, CodeFuture, "#%d is in the future: the newest change in the log is #%d", tick, head).
			WithHint("give a number up to that of the newest change")
	}
	if err != nil {
		return m, err
	}
	var at int64
	switch err := t.Get(ctx, []any{&at}, selectTimeOfTick, tick); {
	case err == nil:
		m.Time = time.Unix(0, at).UTC()
	case !errors.Is(err, sql.ErrNoRows):
		return m, err
	}
	var known bool
	m.Tick = tick
	if err := t.Get(ctx, []any{&known}, existsUntil, stream, tick); err != nil || known {
		return m, err
	}
	m.Note = BeforeFirst
	return m, nil
}

// Skew returns by how much times and positions in the log disagree around a moment. A change
// disagrees if its time and its position are on different sides of the moment. The result is
// the largest distance of such a change, 0 if no clock was ever set back. Times in rows that
// are further from the moment are on the same side as their changes.
func (t *Tx) Skew(ctx context.Context, m Moment, stream string) (time.Duration, error) {
	var skew int64
	err := t.Get(ctx, []any{&skew}, selectSkew, stream, m.Tick, m.Time.UnixNano())
	return time.Duration(skew), err
}

// DocumentsAt calls fn with the documents that entities of a stream and kind had at a
// moment, in the order of the ids. It omits entities without a document then, and those
// whose documents were blanked since.
func (t *Tx) DocumentsAt(ctx context.Context, m Moment, stream, kind string, ids []string, fn func(doc json.RawMessage) error) error {
	list, err := json.Marshal(ids)
	if err != nil || len(ids) == 0 {
		return err
	}
	return t.Each(ctx, func(rows *sql.Rows) error {
		var doc []byte
		if err := rows.Scan(&doc); err != nil {
			return err
		}
		return fn(doc)
	}, selectDocsUntil, stream, kind, m.Tick, string(list))
}

// ChangesUntil calls fn with the changes of a stream up to a seq that have documents,
// oldest first.
func (t *Tx) ChangesUntil(ctx context.Context, stream string, until int64, fn func(c Change) error) error {
	return t.Each(ctx, func(rows *sql.Rows) error {
		var c Change
		if err := scanChange(rows, &c); err != nil {
			return err
		}
		return fn(c)
	}, selectStreamUntil, stream, until)
}
