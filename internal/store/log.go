package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Ops of a change. Parts may use other ops (memories §10.1).
const (
	OpPut    = "put"    // the document is the complete entity
	OpDelete = "delete" // the entity was deleted
	OpPurge  = "purge"  // the entity was deleted, and its earlier documents must be blanked
)

// Change is one entry of the change log (design §1).
type Change struct {
	Seq       int64           // position in this store's log; set by Append
	Device    string          // device that made it; "" in Append means this store's device
	DeviceSeq int64           // 1, 2, 3 … per device; set by Append for this store's device
	Project   string          // project id, "" if it belongs to none
	Stream    string          // the ordering key: session, memory, mailbox, record project
	Kind      string          // kind of entity: observation, session, project …
	ID        string          // id of the entity, unique within the kind and the stream
	Op        string          // OpPut, OpDelete …
	Doc       json.RawMessage // the complete entity, or nil if the row is the document
	Session   string          // session that caused it, "" if unknown or in the row
	Agent     string          // agent that caused it, "" if unknown or in the row
	At        int64           // Unix nanoseconds; 0 in Append means the transaction's time
	DocHash   []byte          // SHA-256 of Doc, kept when a purge blanks it; nil without a document
	PrevHash  []byte          // hash of the same device's previous change; 32 zero bytes for the first
}

// Hash returns the PrevHash of the device's next change. It is SHA-256 over a version byte,
// PrevHash, DocHash and all other fields except Seq and Doc. Texts and byte strings are
// preceded by their length as an unsigned varint; numbers are signed varints. So blanking a
// document does not break the chain.
func (c *Change) Hash() []byte {
	b := make([]byte, 0, 256)
	text := func(parts ...string) {
		for _, p := range parts {
			b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
		}
	}
	b = append(b, 1)
	text(string(c.PrevHash), c.Device)
	b = binary.AppendVarint(b, c.DeviceSeq)
	text(c.Project, c.Stream, c.Kind, c.ID, c.Op, string(c.DocHash), c.Session, c.Agent)
	b = binary.AppendVarint(b, c.At)
	sum := sha256.Sum256(b)
	return sum[:]
}

// logHead is the newest change of this device within one batch of writes.
type logHead struct {
	own   string // this device, "" until it is read; another process may renew it between batches
	known bool
	seq   int64 // its device_seq
	hash  []byte
}

const (
	insertChange = `INSERT INTO changes
(device, device_seq, project, stream, kind, id, op, doc, doc_hash, session, agent, at, prev_hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	changeColumns = `SELECT c.seq, d.text, c.device_seq, ifnull(p.text, ''), st.text, k.text, c.id, o.text,
c.doc, c.doc_hash, ifnull(s.text, ''), ifnull(a.text, ''), c.at, c.prev_hash
FROM changes c
JOIN symbols d ON d.id = c.device
JOIN symbols st ON st.id = c.stream
JOIN symbols k ON k.id = c.kind
JOIN symbols o ON o.id = c.op
LEFT JOIN symbols p ON p.id = c.project
LEFT JOIN symbols s ON s.id = c.session
LEFT JOIN symbols a ON a.id = c.agent `

	selectChangesAfter = changeColumns + `WHERE c.seq > ? ORDER BY c.seq LIMIT +?`
	selectNewestOwn    = changeColumns + `WHERE c.device = ? ORDER BY c.device_seq DESC LIMIT 1`
	selectHead         = `SELECT ifnull(max(seq), 0) FROM changes`
)

// Append appends one change to the log, in the transaction of the rows that it describes,
// and returns its seq. A change with the Device of another store continues that device's
// chain in this log.
func (t *Tx) Append(ctx context.Context, c Change) (int64, error) {
	if t.log == nil {
		return 0, errors.New("a change was appended outside a write")
	}
	head := t.log
	if own, err := t.device(ctx); err != nil { // may append a change itself
		return 0, err
	} else if c.Device == "" {
		c.Device = own
	} else if c.Device != own {
		head = &logHead{}
	}
	if err := t.complete(ctx, &c, head); err != nil {
		return 0, err
	}
	nums := make([]any, 0, 7)
	for _, word := range []string{c.Device, c.Project, c.Stream, c.Kind, c.Op, c.Session, c.Agent} {
		id, err := t.symbol(ctx, word)
		if err != nil {
			return 0, err
		}
		nums = append(nums, id)
	}
	var doc any
	if c.Doc != nil {
		doc = string(c.Doc)
	}
	res, err := t.Exec(ctx, insertChange, nums[0], c.DeviceSeq, nums[1], nums[2], nums[3], c.ID, nums[4],
		doc, c.DocHash, nums[5], nums[6], c.At, c.PrevHash)
	if err != nil {
		return 0, err
	}
	head.seq, head.hash, t.wrote = c.DeviceSeq, c.Hash(), true
	return res.LastInsertId()
}

// complete sets the fields that Append determines: number, time and hashes. head is the
// newest change of the same device; it is read if unknown.
func (t *Tx) complete(ctx context.Context, c *Change, head *logHead) error {
	if !head.known {
		if err := t.readHead(ctx, c.Device, head); err != nil {
			return err
		}
	}
	if c.At == 0 {
		c.At = t.now.UnixNano()
	}
	if c.Doc != nil {
		sum := sha256.Sum256(c.Doc)
		c.DocHash = sum[:]
	}
	c.DeviceSeq, c.PrevHash = head.seq+1, head.hash
	return nil
}

func (t *Tx) readHead(ctx context.Context, device string, head *logHead) error {
	id, err := t.symbol(ctx, device)
	if err != nil {
		return err
	}
	last := Change{}
	err = t.Each(ctx, func(r *sql.Rows) error { return scanChange(r, &last) }, selectNewestOwn, id)
	if err != nil {
		return err
	}
	*head = logHead{own: head.own, known: true, seq: last.DeviceSeq, hash: make([]byte, sha256.Size)}
	if last.DeviceSeq > 0 {
		head.hash = last.Hash()
	}
	return nil
}

// Changes returns up to limit changes after a position, oldest first. It is empty at the
// end of the log.
func (t *Tx) Changes(ctx context.Context, after int64, limit int) ([]Change, error) {
	var out []Change
	err := t.Each(ctx, func(r *sql.Rows) error {
		var c Change
		err := scanChange(r, &c)
		out = append(out, c)
		return err
	}, selectChangesAfter, after, limit)
	return out, err
}

// Head returns the seq of the newest change, 0 in an empty log.
func (t *Tx) Head(ctx context.Context) (int64, error) {
	var seq int64
	err := t.Get(ctx, []any{&seq}, selectHead)
	return seq, err
}

func scanChange(r *sql.Rows, c *Change) error {
	var doc sql.NullString
	err := r.Scan(&c.Seq, &c.Device, &c.DeviceSeq, &c.Project, &c.Stream, &c.Kind, &c.ID, &c.Op,
		&doc, &c.DocHash, &c.Session, &c.Agent, &c.At, &c.PrevHash)
	if doc.Valid {
		c.Doc = json.RawMessage(doc.String)
	}
	return err
}

// symbols caches the numbers of committed words, which never change.
type symbols struct {
	mu  sync.RWMutex
	ids map[string]int64
}

func (s *symbols) get(word string) (int64, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	id, ok := s.ids[word]
	return id, ok
}

// add adds newly committed words. If the map grows too large, it is cleared; lost entries
// are read again.
func (s *symbols) add(fresh map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids) > 100_000 {
		clear(s.ids)
	}
	for word, id := range fresh {
		s.ids[word] = id
	}
}

const (
	selectSymbol = `SELECT id FROM symbols WHERE text = ?`
	insertSymbol = `INSERT INTO symbols (text) VALUES (?)`
)

// symbol returns the number of a word, which is assigned at its first use. It returns nil
// for "".
func (t *Tx) symbol(ctx context.Context, word string) (any, error) {
	if word == "" {
		return nil, nil
	}
	if id, ok := t.store.symbols.get(word); ok {
		return id, nil
	}
	if id, ok := t.fresh[word]; ok {
		return id, nil
	}
	var id int64
	err := t.Get(ctx, []any{&id}, selectSymbol, word)
	if errors.Is(err, sql.ErrNoRows) {
		var res sql.Result
		if res, err = t.Exec(ctx, insertSymbol, word); err == nil {
			id, err = res.LastInsertId()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("symbol: %w", err)
	}
	t.fresh[word] = id
	return id, nil
}

// Device returns the id of this store's device, which made the store's own changes in the
// log. It is "" before the first change.
func (s *Store) Device(ctx context.Context) (id string, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *Tx) error {
		id, err = tx.device(ctx)
		return err
	})
	return id, err
}
