package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"cairn/internal/store"
)

// The states of a stream.
const (
	StreamReady  = "ready"
	StreamHalted = "halted" // a change was refused for good, and nothing behind it is sent
)

// Stream is where the replication of one memory, or vault, stands.
type Stream struct {
	ID          string // of the memory or the vault, here
	UserID      string
	Lane        int
	Head        int64 // its newest own change
	Sent        int64 // the newest own change that was ever put into a request
	Acked       int64 // all own changes up to here are settled
	Attempts    int   // failed ones in a row
	NextAttempt time.Time
	State       string
	LastError   string
	RemoteID    string // its id at the hub; "" for the same
	PullCursor  int64  // hub sequence
	Seen        int64  // the highest hub sequence that the hub has shown, by pulls and confirmations
	Subscribed  bool
}

// Outgoing is a change to be sent; Stream is the id here, Remote the one at the hub.
type Outgoing struct {
	Stream, Remote string
	Seq            int64
	Kind, ID, Op   string
	Key            string // hub key
	Doc            json.RawMessage
	Seen           int64 // Stream.Seen when the change was taken: what the hub stores from then on has a higher number
}

// Lease is the right to send a lane's streams while its epoch lasts (memories §10.3).
type Lease struct {
	Lane  int
	Epoch int64
}

const (
	streamColumns = `SELECT stream, user_id, lane, head_seq, sent_seq, acked_seq, attempts, next_attempt_ns, state, ifnull(last_error, ''),
ifnull(remote_id, ''), pull_cursor, max(seen_seq, pull_cursor), subscribed FROM memory_streams `
	selectReady   = streamColumns + `WHERE user_id = ? AND next_attempt_ns <= ? AND head_seq > acked_seq AND state = 'ready' ORDER BY next_attempt_ns LIMIT +?`
	selectNextDue = `SELECT ifnull(min(next_attempt_ns), 0) FROM memory_streams WHERE user_id = ? AND next_attempt_ns > ? AND head_seq > acked_seq AND state = 'ready'`
	selectStream  = streamColumns + `WHERE stream = ?`
	selectStreams = streamColumns + `WHERE user_id = ? AND stream > ? ORDER BY stream LIMIT +?`
	selectRemote  = streamColumns + `WHERE user_id = ? AND remote_id = ?`

	// Own changes of a stream that are still to be sent: all but the hub's, since a
	// store that was restored has another device's name than when it made them.
	selectToSend = `SELECT c.seq, k.text, c.id, o.text, c.doc FROM changes c JOIN symbols k ON k.id = c.kind JOIN symbols o ON o.id = c.op
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?1) AND c.seq > ?2 AND c.doc IS NOT NULL AND o.text <> 'confirm'
AND c.device <> ifnull((SELECT id FROM symbols WHERE text = '` + hubDevice + `'), 0) ORDER BY c.seq LIMIT +?3`

	updateSent    = `UPDATE memory_streams SET sent_seq = max(sent_seq, ?2) WHERE stream = ?1`
	updateAcked   = `UPDATE memory_streams SET acked_seq = max(acked_seq, ?2), attempts = 0, next_attempt_ns = 0, last_error = NULL WHERE stream = ?1`
	updateSeen    = `UPDATE memory_streams SET seen_seq = max(seen_seq, ?2) WHERE stream = ?1`
	updateDelay   = `UPDATE memory_streams SET attempts = ?2, next_attempt_ns = ?3, last_error = ?4 WHERE stream = ?1`
	updateState   = `UPDATE memory_streams SET state = ?2, last_error = ?3 WHERE stream = ?1`
	updateRemote  = `UPDATE memory_streams SET remote_id = ?2 WHERE stream = ?1`
	clearDelays   = `UPDATE memory_streams SET attempts = 0, next_attempt_ns = 0 WHERE user_id = ? AND head_seq > acked_seq AND next_attempt_ns > 0`
	updateSubscr  = `UPDATE memory_streams SET subscribed = 1 WHERE stream = ?`
	updateCursor  = `UPDATE memory_streams SET pull_cursor = max(pull_cursor, ?2), last_error = CASE WHEN attempts = 0 AND state = 'ready' THEN NULL ELSE last_error END WHERE stream = ?1`
	updateTrouble = `UPDATE memory_streams SET last_error = ?2 WHERE stream = ?1 AND state = 'ready'`
	selectLane    = `SELECT holder, epoch, until_ns FROM memory_lanes WHERE lane = ?`
	selectHolders = `SELECT DISTINCT holder FROM memory_lanes WHERE until_ns > ?`
	upsertLane    = `INSERT INTO memory_lanes (lane, holder, epoch, until_ns) VALUES (?, ?, ?, ?)
ON CONFLICT (lane) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch, until_ns = excluded.until_ns`
	renewLane   = `UPDATE memory_lanes SET until_ns = ?3 WHERE lane = ?1 AND epoch = ?2 AND holder = ?4`
	releaseLane = `UPDATE memory_lanes SET until_ns = 0 WHERE lane = ?1 AND epoch = ?2 AND holder = ?3`
)

func (m *Stream) scan(scan func(...any) error) error {
	var next int64
	err := scan(&m.ID, &m.UserID, &m.Lane, &m.Head, &m.Sent, &m.Acked, &m.Attempts, &next, &m.State, &m.LastError, &m.RemoteID, &m.PullCursor, &m.Seen, &m.Subscribed)
	m.NextAttempt = time.Unix(0, next)
	return err
}

func streams(ctx context.Context, tx *store.Tx, query string, args ...any) (out []Stream, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var m Stream
		err := m.scan(rows.Scan)
		out = append(out, m)
		return err
	}, query, args...)
	return out, err
}

// ReadyStreams lists the streams of a user with something to send whose time has come
// by the real clock, those that wait longest first.
func (b *Service) ReadyStreams(ctx context.Context, user string, now time.Time, limit int) (out []Stream, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out, err = streams(ctx, tx, selectReady, user, now.UnixNano(), limit)
		return err
	})
	return out, err
}

// NextDue is when the next stream of a user is due that is not yet: the Unix epoch if
// there is none.
func (b *Service) NextDue(ctx context.Context, user string, now time.Time) (at time.Time, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var ns int64
		err := tx.Get(ctx, []any{&ns}, selectNextDue, user, now.UnixNano())
		at = time.Unix(0, ns)
		return err
	})
	return at, err
}

// Streams lists a user's streams by id, after one.
func (b *Service) Streams(ctx context.Context, user, after string, limit int) (out []Stream, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out, err = streams(ctx, tx, selectStreams, user, after, limit)
		return err
	})
	return out, err
}

// Stream is one stream; ok is false if it is unknown.
func (b *Service) Stream(ctx context.Context, id string) (m Stream, ok bool, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		err := m.scan(func(dest ...any) error { return tx.Get(ctx, dest, selectStream, id) })
		ok = err == nil
		return ignoreNone(err)
	})
	return m, ok, err
}

// TakeLanes takes the lanes among some that are free, run out, or held by this
// holder or by one of dead, whose file lock was found free. Those taken again have a
// new epoch. Times are the real clock's.
func (b *Service) TakeLanes(ctx context.Context, holder string, lanes []int, dead []string, now, until time.Time) (out []Lease, err error) {
	gone := map[string]bool{}
	for _, d := range dead {
		gone[d] = true
	}
	err = b.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = nil
		for _, lane := range lanes {
			var by string
			var epoch, ends int64
			err := ignoreNone(tx.Get(ctx, []any{&by, &epoch, &ends}, selectLane, lane))
			if err != nil {
				return err
			}
			held := ends > now.UnixNano() && !gone[by]
			if held && by != holder {
				continue
			}
			if !held {
				epoch++
			}
			if _, err := tx.Exec(ctx, upsertLane, lane, holder, epoch, until.UnixNano()); err != nil {
				return err
			}
			out = append(out, Lease{lane, epoch})
		}
		return nil
	})
	return out, err
}

// Holders lists who holds lanes now, by the real clock.
func (b *Service) Holders(ctx context.Context, now time.Time) (out []string, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = tx.Texts(ctx, selectHolders, now.UnixNano())
		return err
	})
	return out, err
}

// RenewLanes prolongs leases and returns those that still hold; ReleaseLanes ends them.
func (b *Service) RenewLanes(ctx context.Context, holder string, leases []Lease, until time.Time) (out []Lease, err error) {
	err = b.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = nil
		for _, l := range leases {
			res, err := tx.Exec(ctx, renewLane, l.Lane, l.Epoch, until.UnixNano(), holder)
			if err != nil {
				return err
			}
			if n, err := res.RowsAffected(); err != nil {
				return err
			} else if n > 0 {
				out = append(out, l)
			}
		}
		return nil
	})
	return out, err
}

// ReleaseLanes ends leases, those that another has taken aside. Repeating it is safe.
func (b *Service) ReleaseLanes(ctx context.Context, holder string, leases []Lease) error {
	return b.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, l := range leases {
			if _, err := tx.Exec(ctx, releaseLane, l.Lane, l.Epoch, holder); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkLeases refuses a late holder.
func checkLeases(ctx context.Context, tx *store.Tx, leases []Lease) error {
	for _, l := range leases {
		var by string
		var epoch, ends int64
		err := tx.Get(ctx, []any{&by, &epoch, &ends}, selectLane, l.Lane)
		if ignoreNone(err) != nil {
			return err
		}
		if err != nil || epoch != l.Epoch {
			return conflict(CodeLeaseLost, "another process sends this lane now", "the lease of a lane was lost", "lane", l.Lane)
		}
	}
	return nil
}

// NextBatch takes what is to be sent of some streams: own changes behind their
// positions, ascending per stream, at most limit changes and about size bytes of
// documents; a long one leaves each of the others its share. It notes them as sent, so that from then on a delete asks the hub. A
// change that needs a confirmation which is not there yet ends its stream's part. A
// stream with nothing left to send is settled.
//
// Errors besides the store's: CodeLeaseLost, CodeLeft. Repeating it gives the same again.
func (b *Service) NextBatch(ctx context.Context, m Membership, leases []Lease, ids []string, limit, size int) (out []Outgoing, err error) {
	err = b.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = nil
		if err := firstError(checkMember(ctx, tx, m), checkLeases(ctx, tx, leases)); err != nil {
			return err
		}
		left, share := size, max(1, limit/max(1, len(ids)))
		var long []Outgoing // the last change of each that has more
		for _, id := range ids {
			if len(out) >= limit || left <= 0 {
				return nil
			}
			part, err := b.takeFrom(ctx, tx, id, 0, min(share, limit-len(out)), &left)
			if err != nil {
				return err
			}
			if out = append(out, part...); len(part) == share {
				long = append(long, part[share-1])
			}
		}
		for _, last := range long {
			if len(out) >= limit || left <= 0 {
				return nil
			}
			part, err := b.takeFrom(ctx, tx, last.Stream, last.Seq, limit-len(out), &left)
			if err != nil {
				return err
			}
			out = append(out, part...)
		}
		return nil
	})
	return out, err
}

// errStop ends the reading of a stream's changes.
var errStop = errors.New("enough")

// takeFrom is one stream's part of a batch, behind its position and another one.
func (b *Service) takeFrom(ctx context.Context, tx *store.Tx, id string, after int64, limit int, left *int) (out []Outgoing, err error) {
	var m Stream
	err = m.scan(func(dest ...any) error { return tx.Get(ctx, dest, selectStream, id) })
	if err != nil || m.State != StreamReady {
		return nil, ignoreNone(err)
	}
	none := true
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		o := Outgoing{Stream: id, Remote: m.RemoteID, Seen: m.Seen}
		var doc string
		if err := rows.Scan(&o.Seq, &o.Kind, &o.ID, &o.Op, &doc); err != nil {
			return err
		}
		none = false
		o.Doc = json.RawMessage(doc)
		ready, err := b.complete(ctx, tx, &o)
		if err != nil {
			return err
		}
		if !ready || len(out) > 0 && *left < len(o.Doc) {
			return errStop
		}
		*left -= len(o.Doc)
		out = append(out, o)
		return nil
	}, selectToSend, id, max(m.Acked, after), limit)
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	if none && after == 0 {
		_, err = tx.Exec(ctx, updateAcked, id, m.Head)
		return nil, err
	}
	if len(out) > 0 {
		_, err = tx.Exec(ctx, updateSent, id, out[len(out)-1].Seq)
		return out, err
	}
	return nil, nil
}

// complete reads the key out of a document and puts the entryId into those that knew a
// localId alone: a delete waits for it, for which ready is false, and a put that is
// sent again proposes it.
func (b *Service) complete(ctx context.Context, tx *store.Tx, o *Outgoing) (ready bool, err error) {
	var d entryDeleteDoc
	if err := json.Unmarshal(o.Doc, &d); err != nil {
		return false, err
	}
	o.Key = d.Key
	if o.Kind != KindEntry || d.EntryID != "" || o.Op != store.OpDelete && o.Op != store.OpPut {
		return true, nil
	}
	key, err := parseLocalID(d.LocalID)
	if err != nil {
		return false, err
	}
	s := &callTx{Service: b, tx: tx}
	e, found, err := s.entry(ctx, selectByRow, key)
	switch {
	case err != nil:
		return false, err
	case !found || !e.synced:
		return o.Op == store.OpPut, nil
	case o.Op == store.OpPut:
		var put entryDoc
		if err := json.Unmarshal(o.Doc, &put); err != nil {
			return false, err
		}
		put.EntryID = e.EntryID
		o.Doc, err = json.Marshal(put)
		return true, err
	}
	d.EntryID = e.EntryID
	o.Doc, err = json.Marshal(d)
	return true, err
}

// Delay puts off a stream after a failed attempt, until a time of the real clock.
func (b *Service) Delay(ctx context.Context, m Membership, leases []Lease, stream string, attempts int, until time.Time, why string) error {
	return b.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := firstError(checkMember(ctx, tx, m), checkLeases(ctx, tx, leases)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, updateDelay, stream, attempts, until.UnixNano(), nullable(why))
		return err
	})
}

// ClearDelays makes all of a user's streams due: its hub answers again.
func (b *Service) ClearDelays(ctx context.Context, m Membership) error {
	return b.settling(ctx, m, nil, func(ctx context.Context, s *callTx) error {
		_, err := s.tx.Exec(ctx, clearDelays, m.User)
		return err
	})
}

// NotePulls stores why what the hub sends of a stream cannot be stored here, for people.
// The next page that can be stored removes it. stream is the hub's id or the local one.
func (b *Service) NotePulls(ctx context.Context, m Membership, stream, why string) error {
	return b.settling(ctx, m, nil, func(ctx context.Context, s *callTx) error {
		s.u = user{ID: m.User}
		local, err := s.localStream(ctx, stream)
		if err == nil {
			_, err = s.tx.Exec(ctx, updateTrouble, local, why)
		}
		return err
	})
}

// Subscribe notes that a stream is to be pulled; it is made when it is new here.
func (b *Service) Subscribe(ctx context.Context, user, stream string) error {
	return b.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, upsertStream, stream, user, LaneOf(stream), 0)
		if err == nil {
			_, err = tx.Exec(ctx, updateSubscr, stream)
		}
		return err
	})
}
