package histories

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// CodeOtherHistory (Conflict) marks records from elsewhere whose history has diverged
// from that of the store's project.
const CodeOtherHistory = "records_differ"

const (
	selectNextChange = exportedChange + `AND c.seq > ? ORDER BY c.seq LIMIT 1`

	selectStreamEnd = `SELECT ifnull(max(seq), 0) FROM changes
WHERE stream = (SELECT id FROM symbols WHERE text = ?) AND doc IS NOT NULL`
)

// Limits of a document. They are higher than those of the commands, because settings and
// redaction can change those.
const (
	maxDocumentLine = 16 << 10 // bytes of a title, summary or reason
	maxDocumentBody = 4 << 20

	maxDocumentRelated = 1000
)

// Document is a change of records from an export, from the archive or from the log of
// another store.
type Document struct {
	Exported
	DocSHA256 string // hash in hex of a forgotten document; Doc is nil then
	Tick      int64  // tick of a forgotten document, 0 for none

	// Origin and Place identify the change where it was made. Origin is the name of a
	// history, such as the device's incarnation. Place is the position there, from 1 and
	// without gaps. A change needs all changes before it. Without a place it is the next
	// change of its history.
	Origin string
	Place  int64
}

// Validate returns a human-readable error if a document is invalid, independent of other
// documents, else nil.
func (d *Document) Validate() error {
	c := d.Exported
	if d.Doc == nil {
		if hash, err := hex.DecodeString(d.DocSHA256); err != nil || len(hash) != 0 && len(hash) != 32 || d.Tick < 0 {
			return errors.New("its hash or its tick is not valid")
		}
		c.Doc = json.RawMessage("{}")
	}
	return c.Check()
}

// Check returns a human-readable error if a change from an export is invalid, independent
// of other changes, else nil.
func (e *Exported) Check() error {
	switch {
	case e.Project == "" || e.ID == "" || e.Session == "":
		return errors.New("it has no project, id or session")
	case len(e.ID)+len(e.Session)+len(e.Agent) > maxDocumentLine:
		return errors.New("one of its texts is too long")
	case e.Op != store.OpPut:
		return errors.New("its op is not put")
	case e.At <= 0:
		return errors.New("its time is out of range")
	case len(e.Doc) == 0 || e.Doc[0] != '{':
		return errors.New("its doc is not a JSON object")
	}
	return nil
}

// Documents stores records from elsewhere; nothing else does. It must be used by one
// goroutine. After a failed transaction, start with a new one, because it caches the
// state of the store.
type Documents struct {
	filter    *redact.Filter
	merging   bool
	checked   map[string]*history // by project and origin
	histories map[string]*history
	here      map[string]*here // by project, if merging
	counts    Counts
}

// Counts counts the results of documents.
type Counts struct {
	Records  int `json:"records"`  // made
	Added    int `json:"added"`    // changes
	Known    int `json:"known"`    // changes that were already stored
	Redacted int `json:"redacted"` // changes in which the current rules found a secret

	// For merged histories:
	Conflicts  int `json:"conflicts"`  // versions kept next to the newest here
	Renumbered int `json:"renumbered"` // records whose number was taken here
}

// NewDocuments returns a Documents for exports and archives, which repeat or continue the
// store's own history. Documents must be in order. They are applied unchanged or not at
// all, except that the filter redacts them.
func NewDocuments(filter *redact.Filter) *Documents {
	return &Documents{filter: filter, checked: map[string]*history{}, histories: map[string]*history{}, here: map[string]*here{}}
}

// NewMerging returns a Documents for histories of other writers, by the rules in the
// package comment. Documents with a place may come in any order and more than once.
func NewMerging(filter *redact.Filter) *Documents {
	d := NewDocuments(filter)
	d.merging = true
	return d
}

// Counts returns the results so far.
func (d *Documents) Counts() Counts { return d.counts }

// history is the state of one project's records in one origin.
type history struct {
	past   historyState
	stream string
	tick   int64 // tick of the store's project at the start
	end    int64 // seq of the last common change
	have   int   // number of common changes
	over   bool  // the store has no further changes to compare

	place   int64 // place of the last document that was stored
	waiting map[int64]Document
	moved   // for merged histories
}

// Check reports whether Apply would store a document, given the documents before it. It
// stores nothing. Documents are compared in order and by meaning, not by spelling. A
// project that does not exist has no documents. why is the reason why a document is
// invalid at its position, else nil; a document of a newer cairn is Unavailable,
// CodeNewerDocument. With NewMerging it does not compare, and isNew is true.
//
// Errors (Conflict): CodeOtherHistory for a diverged history, CodeBothHaveRecords if two
// projects of the documents are one here.
func (d *Documents) Check(ctx context.Context, tx *store.Tx, doc Document) (isNew bool, why, err error) {
	c, why := doc.read()
	if why != nil {
		return false, why, nil
	}
	h, err := d.history(ctx, tx, d.checked, &doc)
	if err != nil {
		return false, nil, err
	}
	if why := h.past.follow(&c); why != nil {
		return false, why, nil
	}
	if d.merging {
		return true, nil, nil
	}
	known, err := d.compare(ctx, tx, h, &c)
	return !known, nil, err
}

// Apply stores a document unless it is already stored. It appends it to this store's log,
// with the document's time and session, and updates the rows. It creates a missing
// session and a missing project, which may be an alias; import those first to keep their
// data. A session without a start begins with its first document. A document with a place
// waits for those before it (see Waiting).
//
// Errors: Invalid, CodeInvalid, for a document that Check refuses with why; those of
// Check; CodeConflict (Conflict) if others changed the records meanwhile: import again.
func (d *Documents) Apply(ctx context.Context, tx *store.Tx, doc Document) error {
	h, err := d.history(ctx, tx, d.histories, &doc)
	if err != nil {
		return err
	}
	if doc.Place == 0 {
		return d.take(ctx, tx, h, doc)
	}
	if _, waits := h.waiting[doc.Place]; waits || doc.Place <= h.place {
		d.counts.Known++
	} else {
		h.waiting[doc.Place] = doc
	}
	for next, ok := h.waiting[h.place+1]; ok; next, ok = h.waiting[h.place+1] {
		if err := d.take(ctx, tx, h, next); err != nil {
			return err
		}
		h.place++
		delete(h.waiting, h.place)
	}
	return nil
}

// Waiting returns the documents that are not applied because an earlier one is missing,
// in the order of their histories.
func (d *Documents) Waiting() (list []Document) {
	for _, name := range slices.Sorted(maps.Keys(d.histories)) {
		waiting := d.histories[name].waiting
		for _, place := range slices.Sorted(maps.Keys(waiting)) {
			list = append(list, waiting[place])
		}
	}
	return list
}

// take applies the next document of a history.
func (d *Documents) take(ctx context.Context, tx *store.Tx, h *history, doc Document) error {
	c, why := doc.read()
	if why == nil {
		why = h.past.follow(&c)
	}
	if why != nil {
		return record.BadDocument(why)
	}
	known, err := false, error(nil)
	if d.merging {
		known, err = d.merge(ctx, tx, h, &c)
	} else {
		known, err = d.applyOwn(ctx, tx, h, &c)
	}
	if err != nil {
		delete(d.here, h.stream) // it may contain changes that are not stored
		return err
	}
	if known {
		d.counts.Known++
		return nil
	}
	d.counts.Added++
	if c.redacted {
		d.counts.Redacted++
	}
	if c.entry == nil {
		return nil
	}
	if c.entry.Version == 1 {
		d.counts.Records++
		if c.ID != doc.ID {
			d.counts.Renumbered++
		}
	}
	if c.entry.Other != nil {
		d.counts.Conflicts++
	}
	return nil
}

// applyOwn applies a document of the store's own history, unless it is already stored.
func (d *Documents) applyOwn(ctx context.Context, tx *store.Tx, h *history, c *change) (known bool, err error) {
	if j := d.checked[historyName(&c.Document)]; j != nil && c.Doc != nil && h.have < j.have {
		h.have, h.end, h.over = h.have+1, j.end, j.over
		return true, nil
	}
	if known, err := d.compare(ctx, tx, h, c); known || err != nil {
		return known, err
	}
	s, err := record.ScopeOfDocument(ctx, tx, c.Project)
	if err != nil {
		return false, err
	}
	var end int64
	if err := tx.Get(ctx, []any{&end}, selectStreamEnd, h.stream); err != nil {
		return false, err
	}
	if end != h.end || s.Stream != h.stream {
		return false, fault.Newf(fault.Conflict, record.CodeConflict, "the records of %s were changed while they were imported", c.Project).
			WithHint("import the file again")
	}
	if err := c.redact(d.filter); err != nil {
		return false, err
	}
	if err := put(ctx, s, c); err != nil {
		return false, err
	}
	return false, tx.Get(ctx, []any{&h.end}, selectStreamEnd, h.stream)
}

// put stores a document unchanged.
func put(ctx context.Context, s *record.CallTx, c *change) error {
	if c.Doc == nil {
		return putForgotten(ctx, s, c)
	}
	return s.Apply(ctx, store.Change{Kind: c.Kind, ID: c.ID, Doc: c.Doc, Session: c.Session, Agent: c.Agent, At: c.At})
}

// putForgotten stores a change without a document, at its tick.
func putForgotten(ctx context.Context, s *record.CallTx, c *change) error {
	if err := s.Follow(c.Tick); err != nil {
		return err
	}
	m, err := s.MemberOf(ctx, c.Session)
	if err != nil {
		return err
	}
	hash, err := hex.DecodeString(c.DocSHA256)
	if err != nil {
		return err
	}
	number := int64(0)
	if c.Kind == record.KindRecord {
		number, _ = record.NumberOf(c.ID)
	}
	return s.Append(ctx, m, store.Change{Kind: c.Kind, ID: c.ID, Agent: c.Agent, At: c.At, DocHash: hash}, func(seq, _ int64) error {
		return s.PutTick(ctx, c.Tick, number, seq)
	})
}

// compare compares a document with the store's change at the same position, if there is
// one. It reports whether they are equal.
func (d *Documents) compare(ctx context.Context, tx *store.Tx, h *history, c *change) (known bool, err error) {
	if c.Doc == nil {
		return c.Tick <= h.tick, nil
	}
	if h.over {
		return false, nil
	}
	here, seq, err := h.next(ctx, tx)
	if err != nil || seq == 0 {
		h.over = true
		return false, err
	}
	same, err := d.isSame(c, here)
	if err != nil {
		return false, err
	}
	if !same {
		return false, fault.Newf(fault.Conflict, CodeOtherHistory,
			"the project %s has records of another history here: they diverge at change %d (%s)", c.Project, h.have+1, c.ID).
			WithHint("`cairn import --merge` adds the records of an export after the existing ones; --db imports it into a separate store")
	}
	h.have, h.end = h.have+1, seq
	return true, nil
}

// next returns the store's change after the common ones, with its seq, or 0 if there is
// none.
func (h *history) next(ctx context.Context, tx *store.Tx) (here Exported, seq int64, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) (err error) {
		seq, here, err = scanExported(rows)
		return err
	}, selectNextChange, h.stream, h.end)
	return here, seq, err
}

// isSame reports whether two changes have the same meaning under the current redaction
// rules.
func (d *Documents) isSame(c *change, here Exported) (bool, error) {
	err := c.redact(d.filter)
	h, why := (&Document{Exported: here}).read()
	if why == nil {
		err = errors.Join(err, h.redact(d.filter))
	}
	return bytes.Equal(c.Doc, h.Doc) && c.Kind == h.Kind && c.ID == h.ID && c.Op == h.Op && c.Session == h.Session &&
		c.Agent == h.Agent && c.At == h.At, err
}

// historyName returns a unique name for a document's history.
func historyName(doc *Document) string { return doc.Project + "\x00" + doc.Origin }

// history returns the state of the history of a document.
func (d *Documents) history(ctx context.Context, tx *store.Tx, all map[string]*history, doc *Document) (*history, error) {
	name := historyName(doc)
	if h := all[name]; h != nil {
		return h, nil
	}
	q, ok, err := project.Find(ctx, tx, doc.Project)
	if err != nil {
		return nil, err
	}
	h := &history{
		stream: record.StreamPrefix + doc.Project, over: !ok, past: historyState{records: map[int64]lastVersion{}}, waiting: map[int64]Document{},
		moved: moved{ids: map[int64]int64{}, versions: map[int64][]meeting{}, claimed: map[string]int{}},
	}
	if ok {
		s, err := record.ScopeOf(ctx, tx, q)
		if err != nil {
			return nil, err
		}
		h.stream, h.tick = s.Stream, s.Tick
	}
	for other, o := range all {
		if o.stream == h.stream && !d.merging {
			other, _, _ = strings.Cut(other, "\x00")
			return nil, fault.Newf(fault.Conflict, CodeBothHaveRecords,
				"%s and %s are one project here, and the file has records of both, whose ids and ticks would collide", other, doc.Project).
				WithHint("`cairn import --merge` gives those of the second new numbers; --db imports the file into a separate store")
		}
	}
	all[name] = h
	return h, nil
}

// CheckedTick returns the tick of the last document of a project that Check found valid.
func (d *Documents) CheckedTick(projectID string) int64 { return d.checkedState(projectID).tick }

// CheckedVersion returns the last version of a record among the documents of a project
// that Check found valid, 0 for none.
func (d *Documents) CheckedVersion(projectID string, number int64) int {
	return d.checkedState(projectID).records[number].version
}

func (d *Documents) checkedState(projectID string) *historyState {
	if h := d.checked[projectID+"\x00"]; h != nil {
		return &h.past
	}
	return &historyState{}
}
