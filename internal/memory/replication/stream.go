package replication

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// The states of a stream.
const (
	StreamReady  = "ready"
	StreamHalted = "halted" // a change was refused permanently, and later ones are not sent
)

// Stream is the replication state of one memory or vault.
type Stream struct {
	ID          string // of the memory or the vault, here
	UserID      string
	Lane        int
	Head        int64 // newest own change
	Sent        int64 // newest own change that was ever in a request
	Acked       int64 // all own changes up to here are confirmed or set aside
	Attempts    int   // failed tries in a row to send
	NextAttempt time.Time
	NextPull    time.Time
	State       string
	LastError   string // of sending, else of pulling
	RemoteID    string // its id at the hub; "" for the same
	PullCursor  int64  // hub sequence
	Seen        int64  // the highest hub sequence that the hub has shown, by pulls and confirmations
	Subscribed  bool
}

// Outgoing is a change to send. Stream is the local id, Remote the one at the hub.
type Outgoing struct {
	Stream, Remote string
	Seq            int64
	Kind, ID, Op   string
	Key            string // hub key
	Doc            json.RawMessage
	Seen           int64 // Stream.Seen when the change was taken: what the hub stores from then on has a higher number
}

const (
	streamColumns = `SELECT s.stream, s.user_id, s.lane, s.head_seq, s.sent_seq, s.acked_seq, ifnull(f.attempts, 0), ifnull(f.next_try, 0), ifnull(p.next_try, 0),
s.state, coalesce(f.error, p.error, ''), ifnull(s.remote_id, ''), s.pull_cursor, max(s.seen_seq, s.pull_cursor), s.subscribed `
	streamsOf = streamColumns + `FROM memory_streams s LEFT JOIN followers f ON f.name = 'replication' AND f.lane = s.stream
LEFT JOIN followers p ON p.name = 'replication-pull' AND p.lane = s.stream `
	selectStream  = streamsOf + `WHERE s.stream = ?`
	selectStreams = streamsOf + `WHERE s.user_id = ? AND s.stream > ? ORDER BY s.stream LIMIT +?`

	// Streams with something to send: those whose last try has not failed, and those that
	// fail and whose time has come.
	unsettledStream = `s.user_id = ?1 AND s.head_seq > s.acked_seq AND s.state = 'ready' `
	selectReady     = streamsOf + `WHERE ` + unsettledStream + `AND f.error IS NULL LIMIT +?2`
	failingStreams  = `FROM followers f JOIN memory_streams s ON s.stream = f.lane `
	selectFailing   = streamColumns + failingStreams + `LEFT JOIN followers p ON p.name = 'replication-pull' AND p.lane = s.stream
WHERE f.name = 'replication' AND f.error IS NOT NULL AND f.next_try <= ?3 AND ` + unsettledStream + `ORDER BY f.next_try LIMIT +?2`
	selectNextDue = `SELECT f.next_try ` + failingStreams + `WHERE f.name = 'replication' AND f.error IS NOT NULL AND f.next_try > ?2 AND ` + unsettledStream + `ORDER BY f.next_try LIMIT 1`
	selectDelayed = `SELECT s.stream ` + failingStreams + `WHERE f.name = 'replication' AND f.error IS NOT NULL AND f.next_try > 0 AND s.user_id = ? AND s.state = 'ready'`

	// Own changes of a stream that are not sent yet: all except the hub's, because a restored
	// store has another device name than the one in its older changes.
	selectToSend = `SELECT c.seq, k.text, c.id, o.text, c.doc FROM changes c JOIN symbols k ON k.id = c.kind JOIN symbols o ON o.id = c.op
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?1) AND c.seq > ?2 AND c.doc IS NOT NULL AND o.text <> 'confirm'
AND c.device <> ifnull((SELECT id FROM symbols WHERE text = '` + memory.HubDevice + `'), 0) ORDER BY c.seq LIMIT +?3`

	updateSent   = `UPDATE memory_streams SET sent_seq = max(sent_seq, ?2) WHERE stream = ?1`
	updateAcked  = `UPDATE memory_streams SET acked_seq = max(acked_seq, ?2) WHERE stream = ?1`
	updateSeen   = `UPDATE memory_streams SET seen_seq = max(seen_seq, ?2) WHERE stream = ?1`
	updateState  = `UPDATE memory_streams SET state = ?2 WHERE stream = ?1`
	updateCursor = `UPDATE memory_streams SET pull_cursor = max(pull_cursor, ?2) WHERE stream = ?1`
)

func (m *Stream) scan(scan func(...any) error) error {
	var next, pull int64
	err := scan(&m.ID, &m.UserID, &m.Lane, &m.Head, &m.Sent, &m.Acked, &m.Attempts, &next, &pull, &m.State, &m.LastError, &m.RemoteID, &m.PullCursor, &m.Seen, &m.Subscribed)
	m.NextAttempt, m.NextPull = time.Unix(0, next), time.Unix(0, pull)
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

// ReadyStreams lists the streams of a user with something to send, at most limit: first
// those that do not fail, then those that do and whose time has come by the real clock,
// the longest due first.
func (b *Replication) ReadyStreams(ctx context.Context, user string, now time.Time, limit int) (out []Stream, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if out, err = streams(ctx, tx, selectReady, user, limit); err != nil {
			return err
		}
		failing, err := streams(ctx, tx, selectFailing, user, limit-len(out), now.UnixNano())
		out = append(out, failing...)
		return err
	})
	return out, err
}

// NextDue returns when the next failing stream of a user becomes due: the Unix epoch if there
// is none.
func (b *Replication) NextDue(ctx context.Context, user string, now time.Time) (at time.Time, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var ns int64
		err := memory.IgnoreNone(tx.Get(ctx, []any{&ns}, selectNextDue, user, now.UnixNano()))
		at = time.Unix(0, ns)
		return err
	})
	return at, err
}

// Streams lists a user's streams after one, by id.
func (b *Replication) Streams(ctx context.Context, user, after string, limit int) (out []Stream, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out, err = streams(ctx, tx, selectStreams, user, after, limit)
		return err
	})
	return out, err
}

// Stream reads one stream; ok is false if it is unknown.
func (b *Replication) Stream(ctx context.Context, id string) (m Stream, ok bool, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		err := m.scan(func(dest ...any) error { return tx.Get(ctx, dest, selectStream, id) })
		ok = err == nil
		return memory.IgnoreNone(err)
	})
	return m, ok, err
}

// NextBatch returns the next changes to send of some streams: own changes after their
// positions, ascending per stream, at most limit changes and about size bytes of documents.
// A long stream leaves each other one its share. The changes are noted as sent, so that
// deletes ask the hub from then on. A change that needs an earlier confirmation ends the part
// of its stream. A stream without changes is noted as confirmed.
//
// It is safe to repeat and then returns the same. Errors besides the store's: CodeLeaseLost,
// CodeLeft.
func (b *Replication) NextBatch(ctx context.Context, m memory.Membership, leases []follow.Lease, ids []string, limit, size int) (out []Outgoing, err error) {
	err = b.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = nil
		if err := cmp.Or(checkMember(ctx, tx, m), follow.CheckLeases(ctx, tx, memory.PushFollower, leases)); err != nil {
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

// takeFrom returns the part of one stream in a batch, after its position and a given one.
func (b *Replication) takeFrom(ctx context.Context, tx *store.Tx, id string, after int64, limit int, left *int) (out []Outgoing, err error) {
	var m Stream
	err = m.scan(func(dest ...any) error { return tx.Get(ctx, dest, selectStream, id) })
	if err != nil || m.State != StreamReady {
		return nil, memory.IgnoreNone(err)
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
		return nil, acked(ctx, (&memory.CallTx{Kernel: b.Kernel, Tx: tx}), id, m.Head)
	}
	if len(out) > 0 {
		_, err = tx.Exec(ctx, updateSent, id, out[len(out)-1].Seq)
		return out, err
	}
	return nil, nil
}

// complete reads the key from a document and adds the entryId to a document that has only a
// localId. ready is false for a delete whose entry has no entryId yet; a put that is sent
// again proposes the known one.
func (b *Replication) complete(ctx context.Context, tx *store.Tx, o *Outgoing) (ready bool, err error) {
	var d contents.EntryDeleteDoc
	if err := json.Unmarshal(o.Doc, &d); err != nil {
		return false, err
	}
	o.Key = d.Key
	if o.Kind != memory.KindEntry || d.EntryID != "" || o.Op != store.OpDelete && o.Op != store.OpPut {
		return true, nil
	}
	key, err := contents.ParseLocalID(d.LocalID)
	if err != nil {
		return false, err
	}
	s := &memory.CallTx{Kernel: b.Kernel, Tx: tx}
	e, found, err := contents.EntryByRow(ctx, s, key)
	switch {
	case err != nil:
		return false, err
	case !found || !e.Synced:
		return o.Op == store.OpPut, nil
	case o.Op == store.OpPut:
		var put contents.EntryDoc
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

// acked notes that all changes of a stream up to one are settled, and that it does not
// fail any more.
func acked(ctx context.Context, s *memory.CallTx, stream string, seq int64) error {
	err := s.Exec(ctx, updateAcked, stream, seq)
	return cmp.Or(err, follow.Recover(ctx, s.Tx, memory.PushFollower, stream))
}

// haltStream stops a stream until a person acts.
func haltStream(ctx context.Context, s *memory.CallTx, stream, why string) error {
	err := s.Exec(ctx, updateState, stream, StreamHalted)
	return cmp.Or(err, follow.Fail(ctx, s.Tx, memory.PushFollower, stream, errors.New(why), time.Time{}))
}

// ready lets a stream go on.
func ready(ctx context.Context, s *memory.CallTx, stream string) error {
	err := s.Exec(ctx, updateState, stream, StreamReady)
	return cmp.Or(err, follow.Recover(ctx, s.Tx, memory.PushFollower, stream))
}

// Delay notes failed tries to send streams, which are tried again after wait, or by the
// back-off of followers if wait is 0.
func (b *Replication) Delay(ctx context.Context, m memory.Membership, leases []follow.Lease, streams []string, wait time.Duration, why string) error {
	return b.replicatorTx(ctx, m, leases, func(ctx context.Context, s *memory.CallTx) error {
		for _, stream := range streams {
			if err := follow.Postpone(ctx, s.Tx, memory.PushFollower, stream, errors.New(why), wait); err != nil {
				return err
			}
		}
		return nil
	})
}

// ClearDelays makes all of a user's streams due: its hub answers again.
func (b *Replication) ClearDelays(ctx context.Context, m memory.Membership) error {
	return b.replicatorTx(ctx, m, nil, func(ctx context.Context, s *memory.CallTx) error {
		delayed, err := s.Tx.Texts(ctx, selectDelayed, m.User)
		for _, stream := range delayed {
			if err == nil {
				err = follow.Recover(ctx, s.Tx, memory.PushFollower, stream)
			}
		}
		return err
	})
}

// DelayPulls notes that what the hub sends of a stream cannot be stored here, and why. It
// is pulled again by the back-off of followers; a page that can be stored ends that. stream
// is the hub's id or the local one; an unknown stream has no account.
func (b *Replication) DelayPulls(ctx context.Context, m memory.Membership, stream, why string) error {
	return b.replicatorTx(ctx, m, nil, func(ctx context.Context, s *memory.CallTx) error {
		s.User = memory.User{UserID: m.User}
		local, err := s.LocalStream(ctx, stream)
		known := false
		if err == nil {
			known, err = s.KnowsStream(ctx, local)
		}
		if err == nil && known {
			err = follow.Postpone(ctx, s.Tx, memory.PullFollower, local, errors.New(why), 0)
		}
		return err
	})
}

// Subscribe notes that a stream must be pulled. It creates the stream if that is unknown.
func (b *Replication) Subscribe(ctx context.Context, user, stream string) error {
	return b.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		s := &memory.CallTx{Kernel: b.Kernel, Tx: tx}
		s.User.UserID = user
		return cmp.Or(s.Advance(ctx, stream, 0), s.Subscribe(ctx, stream))
	})
}
