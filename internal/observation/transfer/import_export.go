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

// Importer stores the rows of an export in the order of its lines. It is not safe for concurrent
// use. Each method runs in a transaction, one after the other. After an error or a rollback the
// Importer must not be used any more.
type Importer struct {
	service       *observation.Service
	includePurged bool
	floor         HighestIDs // highest ids before the import; ids up to these are not used
	note          string     // name of the floor in store.Meta during the import
	tombstones    observation.Tombstones
	counts        ImportedRows

	given   project.ExportedSession // the session of the next rows
	session project.Session         // the session in this store; Key is 0 until it is needed
	known   bool                    // whether the session existed before
	prompts map[int64]int64         // prompts of the session: id in the export → id in this store, 0 if left out
	moment  int64                   // the second that equals counts
	equals  map[rowKey]int          // number of equal rows found in that second
	rows    int                     // rows of the session in the export
	added   int
	left    int
	keys    map[string]project.Project
}

// rowKey identifies rows without a tool_use_id.
type rowKey struct{ obsType, content, path, call string }

// ImportedRows counts the results of importing an export's rows.
type ImportedRows struct {
	Sessions int `json:"sessions"`  // created
	Added    int `json:"added"`     // rows
	Known    int `json:"known"`     // rows that already existed
	Purged   int `json:"purged"`    // rows that were purged in this store and are left out
	NewIDs   int `json:"new_ids"`   // added rows whose id was already taken
	Redacted int `json:"redacted"`  // rows in which the current rules found a secret
	Hashes   int `json:"forgotten"` // hashes of purged rows
}

// HighestIDs contains the highest ids of rows and of prompts.
type HighestIDs struct {
	Observation int64 `json:"observation"`
	Prompt      int64 `json:"prompt"`
}

// See raises the ids to those of a row, if they are lower.
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

// NewImporter returns an Importer for the export with the given id, its hash. Rows that were
// purged in this store are left out, unless includePurged is set. If an import of the same export
// was killed, its rows get the same ids as then. This lasts until Done. Rows whose id is already
// used in this store get ids above highest, the highest ids of the export. So the other rows can
// keep their ids.
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

// Done finishes the import of an export after all of it is stored.
func (r *Importer) Done(ctx context.Context, tx *store.Tx) error {
	if err := r.End(ctx, tx); err != nil {
		return err
	}
	return tx.DeleteMeta(ctx, r.note)
}

// Counts returns the counts of the rows imported so far.
func (r *Importer) Counts() ImportedRows { return r.counts }

// Session finishes the previous session and starts e. The session is created with its first
// imported row, or at its end if it has no rows. Its project ids must exist.
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

// End finishes the last session. The session gets the export's digest if it contains exactly the
// export's rows; otherwise its digest is rebuilt. Without a started session it does nothing.
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

// digest stores the digest of the session.
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

// open finds or creates the session's row.
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

// isBuried reports whether a purge of the whole session or project in this store covers the time
// at.
func (r *Importer) isBuried(ctx context.Context, tx *store.Tx, at int64, own string) (bool, error) {
	id := r.given.ID
	return r.tombstones.Holds(ctx, tx, at, observation.SessionKey(id), observation.ProjectKey(own), observation.SessionInProjectKey(id, own))
}

// Row stores one row of the session, under its own id if that id is free. A row that already
// exists is not changed. A row that was purged in this store is left out.
func (r *Importer) Row(ctx context.Context, tx *store.Tx, e Exported) error {
	r.rows++
	row, err := r.redact(&e)
	if err != nil {
		return err
	}
	if r.session.Key == 0 {
		// If the session does not exist, none of its rows can exist.
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

// knows stores which prompt in this store corresponds to the row's prompt in the export.
func (r *Importer) knows(e *Exported, prompt int64) {
	if e.Prompt != nil {
		r.prompts[e.Prompt.ID] = prompt
	}
}

// redact applies the current rules to a row, because an export may be older than the rules.
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

// find reports whether a row already exists. Rows of calls are compared by id. Other rows are
// compared by their text, and by their ordinal among the equal rows of the same second.
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

// isGone reports whether a row was purged in this store.
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

// insert stores a row, its prompt, its searchable words and its change.
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
	if id == 0 { // the export contains the same call twice
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

// numbered runs an INSERT whose first argument is the id. It uses the given id if the store has
// never used it, otherwise a new one. It returns the id of the row, or 0 if another constraint
// prevented the insertion.
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

// project returns the project with an id of the export.
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

// Forgotten stores the tombstones of the other store, so that rows purged there are not imported
// here. Existing rows stay.
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
