package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/store"
)

// CodeOtherHistory (Conflict) marks records of an export that are not those of the
// store's project of that name, neither earlier nor later.
const CodeOtherHistory = "RECORDS_DIFFER"

// Exported is one change of a project's records as exports carry it. From all of
// them, in their order, the records with their versions, ticks, sessions and
// history are made again (see Apply).
type Exported struct {
	Kind    string          `json:"kind,omitempty"` // KindRecord or KindEvent
	Project string          `json:"project"`
	ID      string          `json:"id"`
	Op      string          `json:"op"`
	Session string          `json:"session,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	At      int64           `json:"at"`  // Unix nanoseconds
	Doc     json.RawMessage `json:"doc"` // an Entry or an Event
}

const (
	selectStreams = `SELECT r.id, ifnull(r.records_stream, 'records/' || r.id) FROM projects r
WHERE CASE WHEN ?1 <> '' THEN r.id = ?1 ELSE NOT EXISTS (SELECT 1 FROM project_aliases m WHERE m.alias = r.id) END
ORDER BY r.id`

	selectStreamOf = `SELECT ifnull(records_stream, 'records/' || id) FROM projects WHERE key = ?`

	exportedChange = `SELECT c.seq, k.text, c.id, o.text, ifnull(s.text, ''), ifnull(a.text, ''), c.at, c.doc
FROM changes c
JOIN symbols k ON k.id = c.kind
JOIN symbols o ON o.id = c.op
LEFT JOIN symbols s ON s.id = c.session
LEFT JOIN symbols a ON a.id = c.agent
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?) AND c.doc IS NOT NULL `

	selectExportedChanges = exportedChange + `ORDER BY c.seq`
	selectNextChange      = exportedChange + `AND c.seq > ? ORDER BY c.seq LIMIT 1`

	selectStreamEnd = `SELECT ifnull(max(seq), 0) FROM changes
WHERE stream = (SELECT id FROM symbols WHERE text = ?) AND doc IS NOT NULL`

	countStream = `SELECT k.text, count(*) FROM changes c JOIN symbols k ON k.id = c.kind
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?) AND c.doc IS NOT NULL GROUP BY k.text`

	selectRecordSessions = `SELECT session_key FROM record_sessions WHERE project_key = ?`
)

// SessionKeys are the sessions that take part in the records of one project, by key.
func SessionKeys(ctx context.Context, tx *store.Tx, of project.Scope) (keys []int64, err error) {
	if of.ID == "" {
		return nil, nil
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var key int64
		err := r.Scan(&key)
		keys = append(keys, key)
		return err
	}, selectRecordSessions, of.Key)
	return keys, err
}

// Export gives the changes of the records of a scope: project by project, each
// in the order of its log, one at a time.
func Export(ctx context.Context, tx *store.Tx, of project.Scope, put func(kind string, v any) error) error {
	return eachStream(ctx, tx, of, func(id, stream string) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			_, e, err := scanExported(r)
			if err != nil {
				return err
			}
			kind := e.Kind
			e.Kind, e.Project = "", id
			return put(kind, e)
		}, selectExportedChanges, stream)
	})
}

// CountExported is how many changes Export gives, by kind.
func CountExported(ctx context.Context, tx *store.Tx, of project.Scope) (map[string]int, error) {
	out := map[string]int{}
	err := eachStream(ctx, tx, of, func(_, stream string) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var kind string
			var n int
			err := r.Scan(&kind, &n)
			out[kind] += n
			return err
		}, countStream, stream)
	})
	return out, err
}

func eachStream(ctx context.Context, tx *store.Tx, of project.Scope, do func(id, stream string) error) error {
	return tx.Each(ctx, func(r *sql.Rows) error {
		var id, stream string
		if err := r.Scan(&id, &stream); err != nil {
			return err
		}
		return do(id, stream)
	}, selectStreams, of.ID)
}

func scanExported(r *sql.Rows) (seq int64, e Exported, err error) {
	var doc string
	err = r.Scan(&seq, &e.Kind, &e.ID, &e.Op, &e.Session, &e.Agent, &e.At, &doc)
	e.Doc = json.RawMessage(doc)
	return seq, e, err
}

// Check says what is wrong with a change that was read from an export, for people;
// nil for a sound one.
func (e *Exported) Check() error {
	switch {
	case e.Project == "" || e.ID == "" || len(e.ID)+len(e.Session)+len(e.Agent) > 16<<10:
		return errors.New("it has no project or no id, or one that is too long")
	case e.Op != store.OpPut:
		return errors.New("its op is not put")
	case e.At < 0:
		return errors.New("its time is out of range")
	case len(e.Doc) == 0 || e.Doc[0] != '{':
		return errors.New("its doc is no JSON object")
	}
	var err error
	if e.Kind == KindRecord {
		err = json.Unmarshal(e.Doc, &Entry{})
	} else {
		err = json.Unmarshal(e.Doc, &Event{})
	}
	if err != nil {
		return errors.New("its doc is none of its kind")
	}
	return nil
}

// Restorer takes the changes of an export over: first it compares all of them with
// what the store has, then it applies those that are new. It is used by one
// goroutine.
type Restorer struct {
	projects map[string]*restoring
	counts   RestoredChanges
}

// restoring is one project's history.
type restoring struct {
	stream string
	end    int64 // the seq of the last change that both have
	have   int   // how many both have
	met    int   // while comparing, then while applying
	over   bool  // the store has no more to compare
}

// RestoredChanges counts what became of an export's changes of records.
type RestoredChanges struct {
	Records int `json:"records"` // made
	Added   int `json:"added"`   // changes
	Known   int `json:"known"`   // changes that were here
}

// NewRestorer returns a restorer for one export.
func NewRestorer() *Restorer { return &Restorer{projects: map[string]*restoring{}} }

// Counts is what became of the changes so far.
func (r *Restorer) Counts() RestoredChanges { return r.counts }

// Compare looks whether a change of the export is the one that the store's project
// has at that place of its history, if it has come that far. Changes are compared in
// their order before the first is applied. A project that does not exist has none.
//
// Another history is Conflict, CodeOtherHistory.
func (r *Restorer) Compare(ctx context.Context, tx *store.Tx, e Exported) error {
	p, err := r.project(ctx, tx, e.Project)
	if err != nil || p.over {
		return err
	}
	var here Exported
	var seq int64
	err = tx.Each(ctx, func(rows *sql.Rows) (err error) {
		seq, here, err = scanExported(rows)
		return err
	}, selectNextChange, p.stream, p.end)
	switch {
	case err != nil:
		return err
	case seq == 0:
		p.over = true
		return nil
	case !e.equal(here):
		return fault.Newf(fault.Conflict, CodeOtherHistory,
			"the project %s has records of another history here: they part at change %d (%s)", e.Project, p.have+1, e.ID).
			WithHint("import it into a store of its own with --db")
	}
	p.have, p.end = p.have+1, seq
	return nil
}

func (e Exported) equal(o Exported) bool {
	a, b := sha256.Sum256(e.Doc), sha256.Sum256(o.Doc)
	return bytes.Equal(a[:], b[:]) && e.Kind == o.Kind && e.ID == o.ID && e.Op == o.Op && e.Session == o.Session &&
		e.Agent == o.Agent && e.At == o.At
}

func (r *Restorer) project(ctx context.Context, tx *store.Tx, id string) (*restoring, error) {
	if p := r.projects[id]; p != nil {
		return p, nil
	}
	q, ok, err := project.Find(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	p := &restoring{stream: "records/" + id, over: true}
	if ok {
		p.over = false
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
	q, ok, err := project.Find(ctx, tx, e.Project)
	if err == nil && !ok {
		err = project.NotFound(e.Project)
	}
	if err != nil {
		return err
	}
	var end int64
	if err := tx.Get(ctx, []any{&end}, selectStreamEnd, p.stream); err != nil {
		return err
	}
	if end != p.end {
		return fault.Newf(fault.Conflict, CodeConflict, "the records of %s were changed while they were imported", e.Project).
			WithHint("import the file again")
	}
	err = Apply(ctx, tx, store.Change{
		Project: q.ID, Stream: p.stream, Kind: e.Kind, ID: e.ID, Op: e.Op, Doc: e.Doc, Session: e.Session, Agent: e.Agent, At: e.At,
	})
	if err != nil {
		return err
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
