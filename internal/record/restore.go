package record

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// CodeOtherHistory (Conflict) marks records of an export that are not those of the
// store's project of that name, neither earlier nor later.
const CodeOtherHistory = "records_differ"

const (
	selectStreamOf   = `SELECT ifnull(records_stream, 'records/' || id) FROM projects WHERE key = ?`
	selectNextChange = exportedChange + `AND c.seq > ? ORDER BY c.seq LIMIT 1`

	selectStreamEnd = `SELECT ifnull(max(seq), 0) FROM changes
WHERE stream = (SELECT id FROM symbols WHERE text = ?) AND doc IS NOT NULL`
)

// Bounds of what an export may hold; they are beyond those of the commands, which
// settings and redaction may move.
const (
	maxRestoredDepth = 1000
	maxRestoredLine  = 16 << 10 // bytes of a title, summary or reason
	maxRestoredBody  = 4 << 20
)

// Check says what is wrong with a change that was read from an export, taken by
// itself, for people; nil for a sound one.
func (e *Exported) Check() error {
	switch {
	case e.Project == "" || e.ID == "" || e.Session == "":
		return errors.New("it has no project, id or session")
	case len(e.ID)+len(e.Session)+len(e.Agent) > maxRestoredLine:
		return errors.New("one of its texts is too long")
	case e.Op != store.OpPut:
		return errors.New("its op is not put")
	case e.At <= 0:
		return errors.New("its time is out of range")
	case len(e.Doc) == 0 || e.Doc[0] != '{':
		return errors.New("its doc is no JSON object")
	}
	return nil
}

// past is what the changes of a project so far come to, as far as the next ones
// have to follow it.
type past struct {
	tick    int64
	records map[int64]standing
}

type standing struct{ version, depth int }

// follow says what is wrong with a change at its place, for people, and takes it
// into account; nil for one that a history can go on with.
func (h *past) follow(e *Exported) error {
	if e.Kind == KindEvent {
		return h.followEvent(e)
	}
	d := Entry{}
	if json.Unmarshal(e.Doc, &d) != nil {
		return errors.New("its doc is no version of a record")
	}
	number, ok := parseID(d.ID)
	old, known := h.records[number]
	depth := 1
	switch {
	case !ok || formatID(number) != d.ID || e.ID != d.ID || number == 0:
		return errors.New("its id is no record's, or not its doc's")
	case d.Tick != h.tick+1:
		return errors.New("its tick does not follow the one before it")
	case known && d.Version != old.version+1 || !known && d.Version != 1:
		return errors.New("its version does not follow the one before it")
	case !slices.Contains(states(), d.State) || d.Base < 0 || d.SyncTick < 0 || d.SyncTick > d.Tick || d.CreatedNS <= 0 || d.ModifiedNS <= 0:
		return errors.New("its state, time or one of its numbers is out of range")
	case max(len(d.Type), len(d.Title), len(d.Summary), len(d.Reason)) > maxRestoredLine || len(d.Body) > maxRestoredBody ||
		len(d.Metadata) > maxRestoredBody || len(d.Related) > 1000:
		return errors.New("one of its texts is too long")
	case len(d.Metadata) > 0 && d.Metadata[0] != '{':
		return errors.New("its metadata are no JSON object")
	}
	if d.ParentID != nil {
		p, ok := h.find(*d.ParentID)
		if !ok {
			return errors.New("its parent is no earlier record")
		}
		depth = p.depth + 1
	}
	for _, id := range append(slices.Clone(d.Related), d.ResolvedBy) {
		if _, ok := h.find(id); !ok && id != "" {
			return errors.New("it refers to a record that is no earlier one")
		}
	}
	if depth > maxRestoredDepth {
		return errors.New("its tree is too deep")
	}
	h.tick, h.records[number] = d.Tick, standing{d.Version, depth}
	return nil
}

func (h *past) find(id string) (standing, bool) {
	number, _ := parseID(id)
	s, ok := h.records[number]
	return s, ok
}

func (h *past) followEvent(e *Exported) error {
	d := Event{}
	if json.Unmarshal(e.Doc, &d) != nil {
		return errors.New("its doc is no event")
	}
	_, known := h.find(d.RecordID)
	switch {
	case !slices.Contains([]string{
		SessionStarted, SessionSaved, SessionClosed, SessionBranched, RecordActivation, ConflictDetected, ConflictResolved,
		sessionSynced, recordReloaded,
	}, d.Type):
		return errors.New("its event is of an unknown type")
	case d.Tick != 0 && (d.Type != SessionSaved || d.Tick != h.tick+1) || d.Tick == 0 && d.Type == SessionSaved:
		return errors.New("its tick does not follow the one before it")
	case d.RecordID != "" && !known || d.RecordID == "" && d.Base > 0:
		return errors.New("it refers to a record that is no earlier one")
	case d.Base < 0 || d.SyncTick < 0 || d.SyncTick > h.tick+1:
		return errors.New("one of its numbers is out of range")
	case d.Type == SessionBranched && d.Parent == "":
		return errors.New("it branches off no session")
	case len(d.Summary)+len(d.Parent) > maxRestoredLine:
		return errors.New("one of its texts is too long")
	}
	h.tick = max(h.tick, d.Tick)
	return nil
}

// Restorer takes the changes of an export over: first it compares all of them with
// what the store has, then it applies those that are new. It is used by one
// goroutine.
type Restorer struct {
	filter   *redact.Filter
	projects map[string]*restoring
	counts   RestoredChanges
}

// restoring is one project's history.
type restoring struct {
	past   past
	stream string
	end    int64 // the seq of the last change that both have
	have   int   // how many both have
	met    int   // while applying
	over   bool  // the store has no more to compare
}

// RestoredChanges counts what became of an export's changes of records.
type RestoredChanges struct {
	Records  int `json:"records"`  // made
	Added    int `json:"added"`    // changes
	Known    int `json:"known"`    // changes that were here
	Redacted int `json:"redacted"` // changes in which the present rules found a secret
}

// NewRestorer returns a restorer for one export.
func NewRestorer(filter *redact.Filter) *Restorer {
	return &Restorer{filter: filter, projects: map[string]*restoring{}}
}

// Counts is what became of the changes so far.
func (r *Restorer) Counts() RestoredChanges { return r.counts }

// Compare looks whether a change of the export is the one that the store's project
// has at that place of its history, if it has come that far. Changes are compared in
// their order, all before the first is applied. A project that does not exist has
// none. why tells what is wrong with a change that cannot stand at its place, nil
// for none.
//
// Another history is Conflict, CodeOtherHistory.
func (r *Restorer) Compare(ctx context.Context, tx *store.Tx, e Exported) (why, err error) {
	p, err := r.project(ctx, tx, e.Project)
	if err != nil {
		return nil, err
	}
	if why := p.past.follow(&e); why != nil || p.over {
		return why, nil
	}
	if _, err := r.redact(&e); err != nil {
		return nil, err
	}
	var here Exported
	var seq int64
	err = tx.Each(ctx, func(rows *sql.Rows) (err error) {
		seq, here, err = scanExported(rows)
		return err
	}, selectNextChange, p.stream, p.end)
	switch {
	case err != nil:
		return nil, err
	case seq == 0:
		p.over = true
		return nil, nil
	case !e.equal(here):
		return nil, fault.Newf(fault.Conflict, CodeOtherHistory,
			"the project %s has records of another history here: they part at change %d (%s)", e.Project, p.have+1, e.ID).
			WithHint("import it into a store of its own with --db")
	}
	p.have, p.end = p.have+1, seq
	return nil, nil
}

func (e *Exported) equal(o Exported) bool {
	return bytes.Equal(e.Doc, o.Doc) && e.Kind == o.Kind && e.ID == o.ID && e.Op == o.Op && e.Session == o.Session &&
		e.Agent == o.Agent && e.At == o.At
}

// redact applies the present rules to a change; an export may be older than they
// are. What holds no secret stays byte for byte.
func (r *Restorer) redact(e *Exported) (found bool, err error) {
	take := func(texts ...*string) {
		for _, s := range texts {
			text, changed := r.filter.Text(*s)
			*s, found = text, found || changed
		}
	}
	var doc any
	if e.Kind == KindEvent {
		d := Event{}
		if err := json.Unmarshal(e.Doc, &d); err != nil {
			return false, err
		}
		take(&d.Summary)
		doc = d
	} else {
		d := Entry{}
		if err := json.Unmarshal(e.Doc, &d); err != nil {
			return false, err
		}
		take(&d.Title, &d.Summary, &d.Body, &d.Reason, &d.Type)
		object, err := decodeObject(d.Metadata)
		if err != nil {
			return false, err
		}
		if object != nil {
			v, changed := r.filter.Value(object)
			if clean, ok := v.(map[string]any); ok && changed {
				found = true
				if d.Metadata, err = json.Marshal(clean); err != nil {
					return false, err
				}
			}
		}
		doc = d
	}
	if !found {
		return false, nil
	}
	e.Doc, err = json.Marshal(doc)
	return true, err
}

func (r *Restorer) project(ctx context.Context, tx *store.Tx, id string) (*restoring, error) {
	if p := r.projects[id]; p != nil {
		return p, nil
	}
	q, ok, err := project.Find(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	p := &restoring{stream: "records/" + id, over: !ok, past: past{records: map[int64]standing{}}}
	if ok {
		if err := tx.Get(ctx, []any{&p.stream}, selectStreamOf, q.Key); err != nil {
			return nil, err
		}
	}
	r.projects[id] = p
	return p, nil
}

// Change applies a change that Compare has seen, unless it is here. A history
// that somebody else went on with meanwhile is Conflict, CodeConflict; repeating
// the import then judges it anew.
func (r *Restorer) Change(ctx context.Context, tx *store.Tx, e Exported) error {
	p, err := r.project(ctx, tx, e.Project)
	if err != nil {
		return err
	}
	if p.met++; p.met <= p.have {
		r.counts.Known++
		return nil
	}
	var end int64
	if err := tx.Get(ctx, []any{&end}, selectStreamEnd, p.stream); err != nil {
		return err
	}
	if end != p.end {
		return fault.Newf(fault.Conflict, CodeConflict, "the records of %s were changed while they were imported", e.Project).
			WithHint("import the file again")
	}
	found, err := r.redact(&e)
	if err != nil {
		return err
	}
	err = Apply(ctx, tx, store.Change{
		Project: e.Project, Stream: p.stream, Kind: e.Kind, ID: e.ID, Op: e.Op, Doc: e.Doc, Session: e.Session, Agent: e.Agent, At: e.At,
	})
	if err != nil {
		return err
	}
	if found {
		r.counts.Redacted++
	}
	if r.counts.Added++; e.Kind == KindRecord && isFirst(e.Doc) {
		r.counts.Records++
	}
	return tx.Get(ctx, []any{&p.end}, selectStreamEnd, p.stream)
}

// isFirst reports whether a record's document is that of its first version.
func isFirst(doc json.RawMessage) bool {
	var v struct {
		Version int `json:"version"`
	}
	return json.Unmarshal(doc, &v) == nil && v.Version == 1
}
