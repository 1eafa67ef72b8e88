package histories

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"cairn/internal/linediff"
	"cairn/internal/record"
	"cairn/internal/redact"
	"cairn/internal/store"
)

const (
	selectNewer     = exportedChange + `AND c.seq > ? ORDER BY c.seq`
	selectForgotten = `SELECT t.tick, c.id, ifnull(nullif(lower(hex(c.doc_hash)), ''), c.id || ' ' || c.at)
FROM record_ticks t CROSS JOIN changes c ON c.seq = t.seq WHERE t.project_key = ? AND c.doc IS NULL`

	// maxMerged is the maximum length of bodies that are merged inside a transaction,
	// while writers wait.
	maxMerged = 64 << 10
)

// moved maps the changes of one origin to this store.
type moved struct {
	shared   int64               // the last common tick
	ids      map[int64]int64     // number there → here
	versions map[int64][]meeting // by number there: one for each version, from 0
	claimed  map[string]int      // number of equal changes here that are already matched
	others   bool                // some record has another number here
}

// meeting describes a version from there in terms of this store.
type meeting struct {
	base  int // base version of a session that has loaded it
	knows int // the newest version here that its author knew
}

// here contains the changes of a project in this store.
type here struct {
	end     int64 // seq of the last change that was read
	same    map[string][]taken
	hashes  map[string]taken // by the hash of a document that has a tick
	content map[int64]int    // by record: its newest version, ignoring kept conflicting versions
}

// taken is a change in this store.
type taken struct {
	tick, number   int64
	version        int
	beside, forgot bool // beside: it keeps a version next to the newest; forgot: its document was forgotten
}

// checkOrigin returns a human-readable error if an origin is invalid.
func checkOrigin(o *record.Origin) error {
	if o == nil {
		return nil
	}
	_, known := record.ParseID(o.ID)
	if sum, err := hex.DecodeString(o.SHA256); err != nil || len(sum) != sha256.Size || o.ID != "" && !known {
		return errors.New("its origin is not valid")
	}
	return nil
}

// origin returns the redacted origin of a change, which serves as its key.
func (c *change) origin() (o record.Origin, err error) {
	switch {
	case c.entry != nil && c.entry.Origin != nil:
		return *c.entry.Origin, nil
	case c.event != nil && c.event.Origin != nil:
		return *c.event.Origin, nil
	case c.entry != nil:
		o.ID = c.ID
	}
	plain := c.Exported
	plain.Project = ""
	text, err := json.Marshal(plain)
	sum := sha256.Sum256(text)
	o.SHA256 = hex.EncodeToString(sum[:])
	return o, err
}

// catchUp reads the changes logged since the last call.
func (b *here) catchUp(ctx context.Context, s *record.CallTx, filter *redact.Filter) error {
	if b.end == 0 {
		err := s.Tx.Each(ctx, func(r *sql.Rows) error {
			t := taken{forgot: true}
			var id, hash string
			err := r.Scan(&t.tick, &id, &hash)
			t.number, _ = record.ParseID(id)
			b.hashes[hash] = t
			return err
		}, selectForgotten, s.Project.Key)
		if err != nil {
			return err
		}
	}
	return s.Tx.Each(ctx, func(r *sql.Rows) error {
		seq, e, err := scanExported(r)
		if err != nil {
			return err
		}
		b.end = seq
		c, why := (&Document{Exported: e}).read()
		if why != nil {
			return nil // its document is unreadable, so no other change equals it
		}
		hash := sumOf(c.Doc)
		if err := c.redact(filter); err != nil {
			return err
		}
		o, err := c.origin()
		t := c.taken()
		b.same[o.SHA256] = append(b.same[o.SHA256], t)
		if t.tick > 0 {
			b.hashes[hash] = t
		}
		if c.entry != nil && !t.beside {
			b.content[t.number] = t.version
		}
		return err
	}, selectNewer, s.Stream, b.end)
}

func sumOf(doc []byte) string {
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:])
}

// taken returns the change as one of this store.
func (c *change) taken() (t taken) {
	switch {
	case c.entry != nil:
		t = taken{tick: c.entry.Tick, version: c.entry.Version, beside: c.entry.Other != nil}
	case c.event != nil:
		return taken{tick: c.event.Tick}
	default:
		t = taken{tick: c.Tick, forgot: true}
	}
	if c.Kind == record.KindRecord {
		t.number, _ = record.ParseID(c.ID)
	}
	return t
}

// merge applies a document of another writer's history, unless it is already stored.
func (d *Documents) merge(ctx context.Context, tx *store.Tx, h *history, c *change) (known bool, err error) {
	s, err := record.ScopeOfDocument(ctx, tx, c.Project)
	if err != nil {
		return false, err
	}
	b := d.here[h.stream]
	if b == nil {
		b = &here{same: map[string][]taken{}, hashes: map[string]taken{}, content: map[int64]int{}}
		d.here[h.stream] = b
	}
	if err := b.catchUp(ctx, s, d.filter); err != nil {
		return false, err
	}
	there := c.taken()
	if c.Doc == nil {
		hash := cmp.Or(c.DocSHA256, fmt.Sprint(c.ID, " ", c.At))
		t, known := b.hashes[hash]
		if !known && c.Tick > 0 {
			if t, err = h.forgotten(ctx, s, c); err == nil {
				b.hashes[hash] = t
			}
		}
		h.meet(there, t, c.Kind)
		return known || c.Tick == 0, err
	}
	if t := b.hashes[sumOf(c.Doc)]; t.forgot { // a purge wins
		h.meet(there, t, c.Kind)
		return true, nil
	}
	if err := c.redact(d.filter); err != nil {
		return false, err
	}
	o, err := c.origin()
	if err != nil {
		return false, err
	}
	n := h.claimed[o.SHA256]
	h.claimed[o.SHA256]++
	if n < len(b.same[o.SHA256]) {
		h.meet(there, b.same[o.SHA256][n], c.Kind)
		return true, nil
	}
	fits, err := h.fit(ctx, s, b, c, o)
	if err != nil || !fits {
		return true, err
	}
	if err = put(ctx, s, c); err == nil {
		h.meet(there, c.taken(), c.Kind)
	}
	return false, err
}

// meet records which change here corresponds to a change there.
func (m *moved) meet(there, t taken, kind string) {
	if there.tick > 0 && there.tick == t.tick && m.shared == t.tick-1 {
		m.shared = t.tick
	}
	if kind != record.KindRecord || there.tick == 0 {
		return
	}
	m.ids[there.number] = t.number
	m.others = m.others || there.number != t.number
	list := m.versions[there.number]
	if len(list) == 0 {
		list = []meeting{{}}
	}
	next := meeting{t.version, t.version}
	if last := list[len(list)-1]; there.beside || t.beside || t.version == 0 {
		next.knows = last.knows
		if there.beside && !t.beside {
			next.knows = max(next.knows, t.version)
		}
		if there.beside != t.beside || t.version == 0 {
			next.base = next.knows
		}
	}
	m.versions[there.number] = append(list, next)
}

// forgotten stores a change without a document.
func (m *moved) forgotten(ctx context.Context, s *record.CallTx, c *change) (taken, error) {
	own := *c
	own.Tick = s.Tick + 1
	if c.Kind == record.KindRecord {
		number, err := m.number(ctx, s, c.ID)
		if err != nil {
			return taken{}, err
		}
		own.ID = record.FormatID(number)
	}
	return own.taken(), putForgotten(ctx, s, &own)
}

// number returns the number here of a record from there: the same, unless another record
// has or had it.
func (m *moved) number(ctx context.Context, s *record.CallTx, id string) (int64, error) {
	there, _ := record.ParseID(id)
	if number, ok := m.ids[there]; ok {
		return number, nil
	}
	used, err := s.IsLogged(ctx, there)
	if err == nil && used {
		there, err = s.LastNumber(ctx)
		there++
	}
	return there, err
}

// id returns the id here of a record from there; any other text stays as it is.
func (m *moved) id(id string) string {
	if number, ok := record.NumberOf(id); ok && m.ids[number] != 0 {
		return record.FormatID(m.ids[number])
	}
	return id
}

// base returns the version here for a session that has loaded a version there.
func (m *moved) base(number int64, version int) int {
	list := m.versions[number]
	if version == 0 || len(list) == 0 {
		return 0
	}
	return max(1, list[min(version, len(list)-1)].base)
}

// syncTick returns the tick here for a session that was at a tick there. now is the tick
// of the change itself if it is the same there and here.
func (m *moved) syncTick(there, now int64) int64 {
	if now == m.shared+1 {
		return min(there, now)
	}
	return min(there, m.shared)
}

// fit rewrites a change so that it can follow this store's history. It is false for a
// change of a record that was purged here. The origin keeps the original values.
func (m *moved) fit(ctx context.Context, s *record.CallTx, b *here, c *change, o record.Origin) (bool, error) {
	before := c.Doc
	tick := s.Tick + 1
	if e := c.event; e != nil {
		number, _ := record.ParseID(e.RecordID)
		e.Base = m.base(number, e.Base)
		now := int64(0)
		if e.Tick > 0 && e.Tick == tick {
			now = tick
		}
		e.SyncTick = m.syncTick(e.SyncTick, now)
		if e.Tick > 0 {
			e.Tick = tick
		}
		if m.others {
			renumber(m.id).event(e)
		}
	} else if fits, err := m.fitEntry(ctx, s, b, c); !fits || err != nil {
		return fits, err
	}
	if err := c.write(); err != nil || string(c.Doc) == string(before) {
		return true, err
	}
	if c.event != nil {
		c.event.Origin = &o
	} else {
		c.entry.Origin = &o
	}
	return true, c.write()
}

// fitEntry is fit for a version.
func (m *moved) fitEntry(ctx context.Context, s *record.CallTx, b *here, c *change) (bool, error) {
	e := c.entry
	there, _ := record.ParseID(e.ID)
	number, err := m.number(ctx, s, e.ID)
	if err != nil {
		return false, err
	}
	newest, err := s.Find(ctx, number)
	if e.Version > 1 && errors.Is(err, sql.ErrNoRows) {
		return false, nil
	} else if err != nil && e.Version > 1 {
		return false, err
	}
	m.ids[there] = number
	m.others = m.others || there != number
	if m.others {
		if number != there {
			if err := setMergedFrom(e, s.Project.ID, e.ID); err != nil {
				return false, err
			}
		}
		renumber(m.id).entry(e)
	}
	now := int64(0)
	if e.Tick == s.Tick+1 {
		now = e.Tick
	}
	e.SyncTick, e.Tick = m.syncTick(e.SyncTick, now), s.Tick+1
	knows := 0
	if e.Version > 1 {
		knows = m.versions[there][e.Version-1].knows
	}
	own := e.Base == e.Version
	if knows < b.content[number] {
		if err := keepBoth(ctx, s, e, &newest, knows); err != nil {
			return false, err
		}
		own = false
	}
	if own {
		e.Base = newest.Version + 1
	} else {
		e.Base = m.base(there, e.Base)
	}
	e.Version, c.ID = newest.Version+1, e.ID
	return true, nil
}

// keepBoth rewrites a version that does not follow the newest one: it becomes the newest
// one again, with the other version next to it.
func keepBoth(ctx context.Context, s *record.CallTx, e *record.Entry, newest *record.Stored, knows int) error {
	if e.Other == nil {
		e.Other = &record.Other{Record: e.Record, Sources: e.Sources, Base: knows}
		if err := propose(ctx, s, e.Other, &newest.Record); err != nil {
			return err
		}
	}
	e.Record, e.Sources = newest.Record, newest.Cited
	e.CreatedNS, e.ModifiedNS = int64(newest.Created), int64(newest.Modified)
	e.Event, e.FromState, e.Reason, e.Forced = record.ConflictDetected, "", "", false
	return nil
}

// propose merges the bodies of two versions, if possible.
func propose(ctx context.Context, s *record.CallTx, o *record.Other, newest *record.Record) error {
	if o.Base == 0 || len(o.Body)+len(newest.Body) > maxMerged {
		return nil
	}
	base, err := s.Version(ctx, newest.ID, o.Base)
	if err != nil || len(base.Body) > maxMerged {
		return err
	}
	if merged, ok := linediff.Merge(base.Body, newest.Body, o.Body); ok {
		o.Merged = &merged
	}
	return nil
}

// setMergedFrom stores the old id and project of a record in its metadata.
func setMergedFrom(e *record.Entry, projectID, id string) error {
	metadata, err := record.DecodeObject(e.Metadata)
	if err != nil {
		return err
	}
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata[metaMergedFrom] = projectID + " " + id
	text, err := json.Marshal(metadata)
	e.Metadata = record.Canonical(text)
	return err
}
