package transfer

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

// Importer stores the rows of an export in the order of its lines. It is used by
// one goroutine; its methods are called in one transaction after the other, and
// after an error or a transaction that was not committed no more.
type Importer struct {
	service       *observation.Service
	includePurged bool
	floor         HighestIDs // that the store had given before: those below are not given again
	note          string     // the name of the floor in store.Meta, while the import goes on
	tombstones    observation.Tombstones
	counts        ImportedRows

	given   project.ExportedSession // the session that the next rows belong to
	session project.Session         // its row; Key 0 before it is needed
	known   bool                    // it was here before
	prompts map[int64]int64         // of the session: ids in the export → here, 0 for what was left out
	moment  int64                   // to which equals belongs
	equals  map[rowKey]int          // how many equal rows of that second were met
	rows    int                     // of the session in the export
	added   int
	left    int
	keys    map[string]project.Project
}

// rowKey is what rows without an id of their own are known by.
type rowKey struct{ obsType, content, path, call string }

// ImportedRows counts what became of an export's rows.
type ImportedRows struct {
	Sessions int `json:"sessions"`  // made
	Added    int `json:"added"`     // rows
	Known    int `json:"known"`     // rows that were here
	Purged   int `json:"purged"`    // rows that were purged here and do not come back
	NewIDs   int `json:"new_ids"`   // of the rows added, those whose id was taken
	Redacted int `json:"redacted"`  // rows in which the present rules found a secret
	Hashes   int `json:"forgotten"` // of what must not come back
}

// HighestIDs are the highest ids of rows and of prompts.
type HighestIDs struct {
	Observation int64 `json:"observation"`
	Prompt      int64 `json:"prompt"`
}

// See raises the ids to those of a row.
func (h *HighestIDs) See(e *Exported) {
	h.Observation = max(h.Observation, e.ID)
	if e.Prompt != nil {
		h.Prompt = max(h.Prompt, e.Prompt.ID)
	}
}

const (
	selectFloor = `SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'observation_rows'), 0),
ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'prompt_rows'), 0)`

	raiseNumbers = `UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?`

	insertExportedPrompt = `INSERT INTO prompt_rows (id, session_key, timestamp, source, harness_prompt_id, agent_id, source_uuid)
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

	insertExportedRow = `INSERT INTO observation_rows
(id, timestamp, session_key, project_key, prompt_id, obs_type, source_event, tool_name, content,
 file_path, path_key, metadata, is_pinned, tool_use_id, part, agent_id, harness_prompt_id, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

	selectEqualRow = `SELECT id, ifnull(prompt_id, 0) FROM observation_rows
WHERE session_key = ? AND timestamp = ? AND obs_type = ? AND content = ? AND path_key IS ? AND tool_use_id IS ?
ORDER BY id LIMIT 1 OFFSET ?`

	countSessionRows = `SELECT count(*) FROM observation_rows WHERE session_key = ?`
)

// NewImporter returns what stores the rows of the export that is known by id, its
// hash. Rows that were purged here stay out, unless includePurged. If an import of
// the same export was killed, its rows get the ids that they would have got then;
// Done ends that. Rows whose id was given here before get one above highest, which
// is the export's, so that the others can keep theirs.
func NewImporter(ctx context.Context, svc *observation.Service, id string, highest HighestIDs, includePurged bool) (*Importer, error) {
	r := &Importer{service: svc, note: "restoring/" + id, includePurged: includePurged, keys: map[string]project.Project{}}
	err := svc.Store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		text, found, err := tx.Meta(ctx, r.note)
		if err != nil {
			return err
		}
		if found {
			return json.Unmarshal([]byte(text), &r.floor)
		}
		if err := tx.Get(ctx, []any{&r.floor.Observation, &r.floor.Prompt}, selectFloor); err != nil {
			return err
		}
		value, err := json.Marshal(r.floor)
		if err != nil {
			return err
		}
		for table, id := range map[string]int64{"observation_rows": highest.Observation, "prompt_rows": highest.Prompt} {
			if _, err := tx.Exec(ctx, raiseNumbers, id, table); err != nil {
				return err
			}
		}
		return tx.SetMeta(ctx, r.note, string(value))
	})
	return r, err
}

// Done ends the import of an export, all of which is stored.
func (r *Importer) Done(ctx context.Context, tx *store.Tx) error {
	if err := r.End(ctx, tx); err != nil {
		return err
	}
	return tx.DeleteMeta(ctx, r.note)
}

// Counts is what became of the rows so far.
func (r *Importer) Counts() ImportedRows { return r.counts }

// Session ends the rows of the session before and begins those of the next. The
// session is made when it has a row that is wanted, or none at all. Project ids in
// it must exist.
func (r *Importer) Session(ctx context.Context, tx *store.Tx, e project.ExportedSession) (err error) {
	if err := r.End(ctx, tx); err != nil {
		return err
	}
	*r = Importer{
		service: r.service, floor: r.floor, note: r.note, includePurged: r.includePurged, counts: r.counts, keys: r.keys,
		given: e, prompts: map[int64]int64{}, equals: map[rowKey]int{},
	}
	if !r.includePurged {
		r.tombstones, err = observation.OpenTombstones(ctx, tx)
	}
	return err
}

// End ends the rows of the last session: its digest is the export's if it has the
// export's rows and no others, else it is made again.
func (r *Importer) End(ctx context.Context, tx *store.Tx) error {
	if r.given.ID == "" {
		return nil
	}
	if r.session.Key == 0 && r.rows == 0 {
		buried, err := r.isBuried(ctx, tx, r.given.LastSeen, r.given.Project)
		if err != nil || buried {
			return err
		}
		if err := r.open(ctx, tx); err != nil {
			return err
		}
	}
	r.given.ID = ""
	if r.session.Key == 0 || r.session.Summary != "" && r.added == 0 {
		return nil
	}
	return r.digest(ctx, tx)
}

// digest gives the session its digest.
func (r *Importer) digest(ctx context.Context, tx *store.Tx) error {
	given, s := r.given.Digest, r.session
	var n int
	if err := tx.Get(ctx, []any{&n}, countSessionRows, s.Key); err != nil {
		return err
	}
	others := r.left > 0 || n != r.rows
	switch {
	case len(given) == 0 && (!others || s.Summary == ""):
		return nil
	case others:
		return observation.WriteDigest(ctx, tx, s)
	}
	rules := observation.Redaction{Filter: r.service.Config.Filter, Rules: map[string]int{}}
	digest, _, err := rules.Document(string(given))
	if err == nil && digest != s.Summary {
		err = project.SetSummary(ctx, tx, s.Key, digest)
	}
	return err
}

// open finds or makes the session's row.
func (r *Importer) open(ctx context.Context, tx *store.Tx) error {
	e := r.given
	e.Model, _ = r.service.Config.Filter.Text(e.Model)
	s, added, err := project.ImportSession(ctx, tx, e)
	if err != nil {
		return err
	}
	if r.session, r.known = s, !added; added {
		r.counts.Sessions++
	}
	for _, b := range e.Branches {
		b, _ = r.service.Config.Filter.Text(b)
		if err := observation.AddBranch(ctx, tx, b, s.Key); err != nil {
			return err
		}
	}
	return nil
}

// isBuried reports whether the session or a project was purged here with all that
// happened up to a time.
func (r *Importer) isBuried(ctx context.Context, tx *store.Tx, at int64, own string) (bool, error) {
	id := r.given.ID
	return r.tombstones.Holds(ctx, tx, at, observation.SessionKey(id), observation.ProjectKey(own), observation.SessionInProjectKey(id, own))
}

// Row stores one row of the session, under its own id if that is free. A row that
// is here already is left as it is; one that was purged here is left out.
func (r *Importer) Row(ctx context.Context, tx *store.Tx, e Exported) error {
	r.rows++
	row, err := r.redact(&e)
	if err != nil {
		return err
	}
	if r.session.Key == 0 {
		// Without a session of that name no row can be here.
		if _, known, err := project.FindSession(ctx, tx, e.Session); err != nil || known {
			if err == nil {
				err = r.open(ctx, tx)
			}
			if err != nil {
				return err
			}
		}
	}
	if known, err := r.find(ctx, tx, &e); known || err != nil {
		return err
	}
	if gone, err := r.isGone(ctx, tx, &e); gone || err != nil {
		r.left++
		r.counts.Purged++
		r.knows(&e, 0)
		return err
	}
	if r.session.Key == 0 {
		if err := r.open(ctx, tx); err != nil {
			return err
		}
	}
	return r.insert(ctx, tx, &e, row)
}

// knows notes which prompt here a row of the export stands for.
func (r *Importer) knows(e *Exported, prompt int64) {
	if e.Prompt != nil {
		r.prompts[e.Prompt.ID] = prompt
	}
}

// redact applies the present rules to a row; an export may be older than they are.
func (r *Importer) redact(e *Exported) (observation.StoredRow, error) {
	row := observation.StoredRow{
		At: e.Timestamp, Source: e.SourceEvent, ObsType: e.ObsType, Content: e.Content, Tool: maybe(e.ToolName), Path: maybe(e.FilePath), Key: maybe(e.PathKey),
		Meta: maybe(string(e.Metadata)),
	}
	rules := observation.Redaction{Filter: r.service.Config.Filter, Rules: map[string]int{}}
	found, err := rules.Row(&row)
	if found {
		r.counts.Redacted++
		e.Content = row.Content
	}
	return row, err
}

func maybe(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

// find looks for a row that is here: of a call by its id, else the nth of the rows
// of that second that say the same.
func (r *Importer) find(ctx context.Context, tx *store.Tx, e *Exported) (bool, error) {
	if !r.known {
		return false, nil
	}
	var id, prompt int64
	var err error
	if e.ToolUseID != "" {
		id, err = observation.CallRow(ctx, tx, e.ToolUseID, r.session.Key, e.Part)
	} else {
		if e.Timestamp != r.moment {
			clear(r.equals)
			r.moment = e.Timestamp
		}
		k := rowKey{e.ObsType, e.Content, e.PathKey, e.ToolUseID}
		err = tx.Get(ctx, []any{&id, &prompt}, selectEqualRow, r.session.Key, e.Timestamp, e.ObsType, e.Content,
			observation.NullText(e.PathKey), nil, r.equals[k])
		r.equals[k]++
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err != nil || id == 0 {
		return false, err
	}
	r.counts.Known++
	r.knows(e, prompt)
	return true, nil
}

// isGone reports whether a row was purged here.
func (r *Importer) isGone(ctx context.Context, tx *store.Tx, e *Exported) (bool, error) {
	if !r.tombstones.Any() {
		return false, nil
	}
	if gone, err := r.isBuried(ctx, tx, e.Timestamp, e.Project); gone || err != nil {
		return gone, err
	}
	d := observation.RowToDelete{
		At: e.Timestamp, Session: e.Session, ObsType: e.ObsType, Content: e.Content, Call: e.ToolUseID, Part: e.Part,
	}
	d.Role, _ = observation.StoredMetadata(string(e.Metadata))["kind"].(string)
	if e.Prompt != nil {
		d.PromptID, d.Line = e.Prompt.HarnessPromptID, e.Prompt.SourceUUID
	}
	return r.tombstones.Holds(ctx, tx, e.Timestamp, d.Keys()...)
}

// insert stores a row, its prompt, its words and its change.
func (r *Importer) insert(ctx context.Context, tx *store.Tx, e *Exported, row observation.StoredRow) error {
	q, err := r.project(ctx, tx, e.Project)
	if err != nil {
		return err
	}
	var prompt any
	if e.Prompt != nil {
		id, err := r.insertPrompt(ctx, tx, e.Prompt)
		if err != nil {
			return err
		}
		r.knows(e, id)
		prompt = id
	} else if id := r.prompts[e.PromptID]; id != 0 {
		prompt = id
	}
	id, err := numbered(ctx, tx, insertExportedRow, e.ID, r.floor.Observation, e.Timestamp, r.session.Key, q.Key, prompt, e.ObsType,
		e.SourceEvent, row.Tool, row.Content, row.Path, row.Key, row.Meta, e.Pinned, observation.NullText(e.ToolUseID), e.Part,
		observation.NullText(e.AgentID), observation.NullText(e.HarnessPromptID), row.Checksum())
	if err != nil {
		return err
	}
	if id == 0 { // the same call twice in one file
		r.counts.Known++
		return nil
	}
	if id != e.ID {
		r.counts.NewIDs++
	}
	r.added++
	r.counts.Added++
	text, err := row.SearchableText()
	if err == nil {
		err = observation.IndexText(ctx, tx, id, text)
	}
	if err != nil {
		return err
	}
	if config := &r.service.Config; config.Output != observation.OutputOff {
		if err := observation.StoredOutput(e.Output, e.OutputSize, config.Filter).Insert(ctx, tx, id); err != nil {
			return err
		}
	}
	if err := observation.NoteTurn(ctx, tx, r.session.Key, e.Timestamp, id, e.ObsType == observation.TypePrompt); err != nil {
		return err
	}
	_, err = tx.Append(ctx, store.Change{
		Project: q.ID, Stream: "session/" + r.session.ID, Kind: "observation", ID: fmt.Sprint(id), Op: store.OpPut,
	})
	return err
}

func (r *Importer) insertPrompt(ctx context.Context, tx *store.Tx, q *ExportedPrompt) (int64, error) {
	return numbered(ctx, tx, insertExportedPrompt, q.ID, r.floor.Prompt, r.session.Key, q.Timestamp, q.Source,
		observation.NullText(q.HarnessPromptID), observation.NullText(q.AgentID), observation.NullText(q.SourceUUID))
}

// numbered runs an insertion whose first argument is the id: the given one if the
// store has never given it, else a new one. It returns the id, 0 if something else
// than the id stood in the way.
func numbered(ctx context.Context, tx *store.Tx, query string, id, floor int64, args ...any) (int64, error) {
	var wanted any
	if id > floor {
		wanted = id
	}
	for {
		res, err := tx.Exec(ctx, query, append([]any{wanted}, args...)...)
		if err != nil {
			return 0, err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			id, lerr := res.LastInsertId()
			return id, errors.Join(err, lerr)
		}
		if wanted == nil {
			return 0, nil
		}
		wanted = nil
	}
}

// project finds the project that an id of the export names.
func (r *Importer) project(ctx context.Context, tx *store.Tx, id string) (project.Project, error) {
	if q, ok := r.keys[id]; ok {
		return q, nil
	}
	q, ok, err := project.Find(ctx, tx, id)
	if err == nil && !ok {
		err = project.NotFound(id)
	}
	if err == nil {
		r.keys[id] = q
	}
	return q, err
}

// Forgotten keeps what was purged in the other store from coming back here. What
// is here stays.
func (r *Importer) Forgotten(ctx context.Context, tx *store.Tx, e ExportedForgotten) error {
	g, err := observation.OpenTombstones(ctx, tx)
	if err != nil {
		return err
	}
	for _, s := range e.Salts {
		salt, err := hex.DecodeString(s)
		if err != nil {
			return err
		}
		if err := g.AddSalt(ctx, tx, salt); err != nil {
			return err
		}
	}
	for _, t := range e.Hashes {
		hash, err := hex.DecodeString(t.Hash)
		if err != nil {
			return err
		}
		if err := observation.AddTombstone(ctx, tx, hash, t.Until); err != nil {
			return err
		}
		r.counts.Hashes++
	}
	return nil
}
