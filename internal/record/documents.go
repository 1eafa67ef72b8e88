package record

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
	"cairn/internal/redact"
	"cairn/internal/store"
)

// CodeOtherHistory (Conflict) marks records from elsewhere that are not those of the
// store's project of that name, neither earlier nor later.
const CodeOtherHistory = "records_differ"

const (
	selectStreamOf   = `SELECT ifnull(records_stream, 'records/' || id) FROM projects WHERE key = ?`
	selectNextChange = exportedChange + `AND c.seq > ? ORDER BY c.seq LIMIT 1`

	selectStreamEnd = `SELECT ifnull(max(seq), 0) FROM changes
WHERE stream = (SELECT id FROM symbols WHERE text = ?) AND doc IS NOT NULL`
)

// Bounds of what a document may hold; they are beyond those of the commands, which
// settings and redaction may move.
const (
	maxDocumentDepth = 1000
	maxDocumentLine  = 16 << 10 // bytes of a title, summary or reason
	maxDocumentBody  = 4 << 20

	maxDocumentRelated = 1000
)

// Document is a change of records on its way into a store: from an export, the archive
// or the log of another store.
type Document struct {
	Exported
	DocSHA256 string // of a document that was forgotten, in hex; Doc is nil then
	Tick      int64  // that a forgotten one cost, 0 for none

	// Where it was made: a history, by any name, such as the device's incarnation, and its
	// place there, from 1 and without gaps. A change needs all that are before it. Without
	// a place it is the next of what is given.
	Origin string
	Place  int64
}

// Validate says what is wrong with a document, taken by itself, for people; nil for a
// sound one.
func (d *Document) Validate() error {
	sound := d.Exported
	if d.Doc == nil {
		if hash, err := hex.DecodeString(d.DocSHA256); err != nil || len(hash) != 0 && len(hash) != 32 || d.Tick < 0 {
			return errors.New("its hash or its tick is not valid")
		}
		sound.Doc = json.RawMessage("{}")
	}
	return sound.Check()
}

// Check says what is wrong with a change that was read from an export, taken by
// itself, for people; nil for a sound one.
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

// Documents takes the records of elsewhere over; nothing else does. It is used by one
// goroutine. After a transaction that failed, begin with a new one: what is here is
// known again then, whatever came before.
type Documents struct {
	filter    *redact.Filter
	merging   bool
	judged    map[string]*history // by project and origin
	histories map[string]*history
	here      map[string]*here // by project, if merging
	counts    Counts
}

// Counts is what became of documents.
type Counts struct {
	Records  int `json:"records"`  // made
	Added    int `json:"added"`    // changes
	Known    int `json:"known"`    // changes that were here
	Redacted int `json:"redacted"` // changes in which the present rules found a secret

	// Of merged histories:
	Conflicts  int `json:"conflicts"`  // versions that are kept beside the newest here
	Renumbered int `json:"renumbered"` // records whose number another one has here
}

// NewDocuments takes over what is the store's own history, or goes on with it: an
// export, an archive. Documents come in their order. They are applied as they are, or
// not at all. The filter is applied to what is stored.
func NewDocuments(filter *redact.Filter) *Documents {
	return &Documents{filter: filter, judged: map[string]*history{}, histories: map[string]*history{}, here: map[string]*here{}}
}

// NewMerging takes over the histories of other writers, by the rule of the package
// comment. Documents that have a place may come in any order and more than once.
func NewMerging(filter *redact.Filter) *Documents {
	d := NewDocuments(filter)
	d.merging = true
	return d
}

// Counts is what became of the documents so far.
func (d *Documents) Counts() Counts { return d.counts }

// history is one project's records as one origin tells them.
type history struct {
	past   past
	stream string
	tick   int64 // of the store's project at the beginning
	end    int64 // the seq of the last change that both have
	have   int   // how many both have
	over   bool  // the store has no more to compare

	place   int64 // of the last document that was taken
	waiting map[int64]Document
	moved   // if it is merged
}

// Judge says of a document, after those before it, if Apply would add it, without
// storing anything. Documents are compared in their order and by what they say, not by
// how they spell it. A project that does not exist has none. why reports what is wrong
// with one that cannot stand at its place, nil for none; one of a newer cairn's is
// Unavailable, CodeNewerDocument. With NewMerging it does not compare: isNew is true.
//
// Errors (Conflict): CodeOtherHistory for another history, CodeBothHaveRecords for
// two projects of the documents that are one here.
func (d *Documents) Judge(ctx context.Context, tx *store.Tx, doc Document) (isNew bool, why, err error) {
	c, why := doc.read()
	if why != nil {
		return false, why, nil
	}
	h, err := d.history(ctx, tx, d.judged, &doc)
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

// Apply takes a document over: it appends it to this store's log, with its own time and
// session, and brings the rows to it, unless it is here. The project, which may be an
// alias, and the session are made if they are missing; import those first for all that is
// known of them. A session that the documents never began begins with its first. One that
// has a place waits for those before it (see Waiting).
//
// Errors: Invalid, CodeInvalid, for one that Judge refuses with why; those of Judge;
// CodeConflict (Conflict) for a history that others went on with meanwhile: repeating
// the import judges it again.
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

// Waiting are the documents that are not applied, since one before them has not come, in
// the order of their histories.
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
		return badDocument(why)
	}
	known, err := false, error(nil)
	if d.merging {
		known, err = d.merge(ctx, tx, h, &c)
	} else {
		known, err = d.goOn(ctx, tx, h, &c)
	}
	if err != nil {
		delete(d.here, h.stream) // it may tell of what is not stored
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

// goOn applies a document of the store's own history, unless it is here.
func (d *Documents) goOn(ctx context.Context, tx *store.Tx, h *history, c *change) (known bool, err error) {
	if j := d.judged[historyName(&c.Document)]; j != nil && c.Doc != nil && h.have < j.have {
		h.have, h.end, h.over = h.have+1, j.end, j.over
		return true, nil
	}
	if known, err := d.compare(ctx, tx, h, c); known || err != nil {
		return known, err
	}
	s, err := scopeOfDocument(ctx, tx, c.Project)
	if err != nil {
		return false, err
	}
	var end int64
	if err := tx.Get(ctx, []any{&end}, selectStreamEnd, h.stream); err != nil {
		return false, err
	}
	if end != h.end || s.stream != h.stream {
		return false, fault.Newf(fault.Conflict, CodeConflict, "the records of %s were changed while they were imported", c.Project).
			WithHint("import the file again")
	}
	if err := c.redact(d.filter); err != nil {
		return false, err
	}
	if err := s.put(ctx, c); err != nil {
		return false, err
	}
	return false, tx.Get(ctx, []any{&h.end}, selectStreamEnd, h.stream)
}

// put stores a document as it is.
func (s *callTx) put(ctx context.Context, c *change) error {
	if c.Doc == nil {
		return s.putForgotten(ctx, c)
	}
	return s.apply(ctx, store.Change{Kind: c.Kind, ID: c.ID, Doc: c.Doc, Session: c.Session, Agent: c.Agent, At: c.At})
}

// putForgotten stores that there was a change, at its tick.
func (s *callTx) putForgotten(ctx context.Context, c *change) error {
	if err := s.follow(c.Tick); err != nil {
		return err
	}
	m, err := s.memberOf(ctx, c.Session)
	if err != nil {
		return err
	}
	hash, err := hex.DecodeString(c.DocSHA256)
	if err != nil {
		return err
	}
	number := int64(0)
	if c.Kind == KindRecord {
		number, _ = numberOf(c.ID)
	}
	return s.append(ctx, m, store.Change{Kind: c.Kind, ID: c.ID, Agent: c.Agent, At: c.At, DocHash: hash}, func(seq, _ int64) error {
		return s.putTick(ctx, c.Tick, number, seq)
	})
}

// compare reports whether a document is the store's at that place of its history, if the
// store has come that far.
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
			"the project %s has records of another history here: they part at change %d (%s)", c.Project, h.have+1, c.ID).
			WithHint("`cairn import --merge` puts the records of an export behind those that are here; with --db it goes into a store of its own")
	}
	h.have, h.end = h.have+1, seq
	return true, nil
}

// next is the store's change after those that both have, with its seq; 0 if there
// is none.
func (h *history) next(ctx context.Context, tx *store.Tx) (here Exported, seq int64, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) (err error) {
		seq, here, err = scanExported(rows)
		return err
	}, selectNextChange, h.stream, h.end)
	return here, seq, err
}

// isSame reports whether two changes say the same under the present rules.
func (d *Documents) isSame(c *change, here Exported) (bool, error) {
	err := c.redact(d.filter)
	h, why := (&Document{Exported: here}).read()
	if why == nil {
		err = errors.Join(err, h.redact(d.filter))
	}
	return bytes.Equal(c.Doc, h.Doc) && c.Kind == h.Kind && c.ID == h.ID && c.Op == h.Op && c.Session == h.Session &&
		c.Agent == h.Agent && c.At == h.At, err
}

// historyName tells histories apart.
func historyName(doc *Document) string { return doc.Project + "\x00" + doc.Origin }

// history is what is known of the history of a document.
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
		stream: streamPrefix + doc.Project, over: !ok, past: past{records: map[int64]standing{}}, waiting: map[int64]Document{},
		moved: moved{ids: map[int64]int64{}, versions: map[int64][]meeting{}, claimed: map[string]int{}},
	}
	if ok {
		s, err := (&Service{}).scopeOf(ctx, tx, q)
		if err != nil {
			return nil, err
		}
		h.stream, h.tick = s.stream, s.tick
	}
	for other, o := range all {
		if o.stream == h.stream && !d.merging {
			other, _, _ = strings.Cut(other, "\x00")
			return nil, fault.Newf(fault.Conflict, CodeBothHaveRecords,
				"%s and %s are one project here, and the file has records of both, whose ids and ticks would collide", other, doc.Project).
				WithHint("`cairn import --merge` gives those of the second new numbers; with --db the file goes into a store of its own")
		}
	}
	all[name] = h
	return h, nil
}

// judgedPast is what the judged documents of a project come to.
func (d *Documents) judgedPast(projectID string) *past {
	if h := d.judged[projectID+"\x00"]; h != nil {
		return &h.past
	}
	return &past{}
}
