package record

import (
	"bytes"
	"context"
	"database/sql"
	"errors"

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

	maxRestoredRelated = 1000
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
// their order, all before the first is applied, and by what they say, not by how
// they spell it. A project that does not exist has none. why tells what is wrong
// with a change that cannot stand at its place, nil for none; one of a newer cairn's
// is Unavailable, CodeNewerDocument.
//
// Errors (Conflict): CodeOtherHistory for another history, CodeBothHaveRecords for
// two projects of the export that are one here.
func (r *Restorer) Compare(ctx context.Context, tx *store.Tx, e Exported) (why, err error) {
	c, why := e.read()
	if why != nil {
		return why, nil
	}
	p, err := r.project(ctx, tx, e.Project)
	if err != nil {
		return nil, err
	}
	if why := p.past.follow(&c); why != nil || p.over {
		return why, nil
	}
	here, seq, err := p.next(ctx, tx)
	if err != nil {
		return nil, err
	}
	if seq == 0 {
		p.over = true
		return nil, nil
	}
	same, err := r.isSame(&c, here)
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, fault.Newf(fault.Conflict, CodeOtherHistory,
			"the project %s has records of another history here: they part at change %d (%s)", e.Project, p.have+1, e.ID).
			WithHint("import it into a store of its own with --db")
	}
	p.have, p.end = p.have+1, seq
	return nil, nil
}

// next is the store's change after those that both have, with its seq; 0 if there
// is none.
func (p *restoring) next(ctx context.Context, tx *store.Tx) (here Exported, seq int64, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) (err error) {
		seq, here, err = scanExported(rows)
		return err
	}, selectNextChange, p.stream, p.end)
	return here, seq, err
}

// isSame reports whether two changes say the same under the present rules.
func (r *Restorer) isSame(c *change, here Exported) (bool, error) {
	_, err := c.redact(r.filter)
	h, why := here.read()
	if why == nil {
		_, herr := h.redact(r.filter)
		err = errors.Join(err, herr)
	}
	return bytes.Equal(c.Doc, h.Doc) && c.Kind == h.Kind && c.ID == h.ID && c.Op == h.Op && c.Session == h.Session &&
		c.Agent == h.Agent && c.At == h.At, err
}

// project is what is known of a project of the export.
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
	for other, o := range r.projects {
		if o.stream == p.stream {
			return nil, fault.Newf(fault.Conflict, CodeBothHaveRecords,
				"%s and %s are one project here, and the file has records of both, whose ids and ticks would collide", other, id).
				WithHint("import it into a store of its own with --db")
		}
	}
	r.projects[id] = p
	return p, nil
}

// Change applies a change that Compare has seen, unless it is here: its place in
// the history tells, for two changes may say the same. A history that somebody else
// went on with meanwhile is Conflict, CodeConflict; repeating the import then judges
// it anew.
func (r *Restorer) Change(ctx context.Context, tx *store.Tx, e Exported) error {
	p, err := r.project(ctx, tx, e.Project)
	if err != nil {
		return err
	}
	if p.met++; p.met <= p.have {
		r.counts.Known++
		return nil
	}
	s, err := restoredScope(ctx, tx, e.Project)
	if err != nil {
		return err
	}
	var end int64
	if err := tx.Get(ctx, []any{&end}, selectStreamEnd, p.stream); err != nil {
		return err
	}
	if end != p.end || s.stream != p.stream {
		return fault.Newf(fault.Conflict, CodeConflict, "the records of %s were changed while they were imported", e.Project).
			WithHint("import the file again")
	}
	c, why := e.read()
	if why != nil {
		return badDocument(why)
	}
	found, err := c.redact(r.filter)
	if err != nil {
		return err
	}
	if err := s.apply(ctx, store.Change{Kind: c.Kind, ID: c.ID, Doc: c.Doc, Session: c.Session, Agent: c.Agent, At: c.At}); err != nil {
		return err
	}
	r.counts.Added++
	if found {
		r.counts.Redacted++
	}
	if c.entry != nil && c.entry.Version == 1 {
		r.counts.Records++
	}
	return tx.Get(ctx, []any{&p.end}, selectStreamEnd, p.stream)
}
