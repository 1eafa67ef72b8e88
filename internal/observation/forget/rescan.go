package forget

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

// Rescanned reports what a rescan rewrote, or would rewrite.
type Rescanned struct {
	Rows     int            `json:"rows"`
	ByType   map[string]int `json:"by_type"`  // of the rows
	Sessions int            `json:"sessions"` // sessions whose digest, model or branch contained a match
	Outputs  int            `json:"outputs"`  // digests of the output of commands and tools
	Rules    map[string]int `json:"rules"`    // replacements by rule
}

// RescanArgs are the options of a rescan.
type RescanArgs struct {
	DryRun bool // only count

	// Progress, if set, is called with the numbers of rows scanned and of all rows.
	Progress func(done, total int)
}

const (
	selectToRescan = `SELECT o.id, p.id, o.session_key, s.id, o.obs_type, o.tool_name, o.content, o.file_path,
o.path_key, o.metadata, o.timestamp, o.source_event
FROM observation_rows o JOIN sessions s ON s.key = o.session_key JOIN projects p ON p.key = o.project_key
WHERE o.id > ? ORDER BY o.id LIMIT +?`

	updateRescanned = `UPDATE observation_rows
SET tool_name = ?, content = ?, file_path = ?, path_key = ?, metadata = ?, checksum = ? WHERE id = ?`

	selectSessionsToRescan = `SELECT key, id, ifnull(model, ''), ifnull(summary, ''),
(SELECT json_group_array(branch) FROM session_branches WHERE session_key = key) FROM sessions
WHERE key > ? ORDER BY key LIMIT +?`

	deleteBranch = `DELETE FROM session_branches WHERE branch = ? AND session_key = ?`
)

// Rescan applies the current redaction rules to everything that is stored (observations §7). This
// includes content, paths, metadata at any depth, prompts, models, branches, and digests of
// sessions and outputs. After an output is redacted, only the lines of its digest can be found.
// Redacted text is removed from the disk as by a purge. Rescan is idempotent: a second run finds
// nothing. After a kill, the next run does the rest.
//
// Errors are those of store.Write and Finish. Rescanned then reports what was rewritten before
// the error.
func Rescan(ctx context.Context, svc *observation.Service, a RescanArgs) (Rescanned, error) {
	done := Rescanned{ByType: map[string]int{}, Rules: map[string]int{}}
	if svc.Store == nil {
		return done, nil
	}
	r := rescanning{RescanArgs: a, service: svc, done: &done}
	if err := r.sessions(ctx, done.Rules); err != nil {
		return done, err
	}
	err := r.rows(ctx)
	if err == nil {
		err = r.outputs(ctx)
	}
	if err != nil || a.DryRun {
		return done, err
	}
	found := done.Sessions
	if err := r.sessions(ctx, map[string]int{}); err != nil { // digests that were rebuilt meanwhile
		return done, err
	}
	done.Sessions = found
	_, err = Finish(ctx, svc)
	return done, err
}

// rescanning is the state of one rescan.
type rescanning struct {
	RescanArgs
	service *observation.Service
	done    *Rescanned
}

// readStored reads the next batch of rows after an id.
func readStored(ctx context.Context, tx *store.Tx, after int64) (batch []observation.StoredRow, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var s observation.StoredRow
		err := rows.Scan(&s.Id, &s.Project, &s.SessionKey, &s.Session, &s.ObsType, &s.Tool, &s.Content,
			&s.Path, &s.Key, &s.Meta, &s.At, &s.Source)
		batch = append(batch, s)
		return err
	}, selectToRescan, after, maxForgetRows)
	return batch, err
}

func (r *rescanning) rows(ctx context.Context) error {
	var last int64
	var seen, total int
	for {
		var batch, changed []observation.StoredRow
		err := r.service.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			if err := tx.Get(ctx, []any{&total}, countRows); err != nil {
				return err
			}
			batch, err = readStored(ctx, tx, last)
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1].Id
		rules := observation.Redaction{Filter: r.service.Config.Filter, Rules: r.done.Rules}
		for _, s := range batch {
			found, err := rules.Row(&s)
			if err != nil {
				return err
			}
			if found {
				changed = append(changed, s)
			}
		}
		if err := r.rewrite(ctx, changed); err != nil {
			return err
		}
		if seen += len(batch); r.Progress != nil {
			r.Progress(seen, max(seen, total))
		}
	}
}

// rewrite stores redacted rows, in several transactions if necessary.
func (r *rescanning) rewrite(ctx context.Context, rows []observation.StoredRow) error {
	for _, s := range rows {
		r.done.Rows++
		r.done.ByType[s.ObsType]++
	}
	for !r.DryRun && len(rows) > 0 {
		var taken int
		err := r.service.Store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) (err error) {
			taken, err = rewriteSome(ctx, tx, rows)
			return err
		})
		if err != nil {
			return err
		}
		rows = rows[taken:]
	}
	return nil
}

// rewriteSome stores rows until the limit of one transaction is reached. It returns how many it
// stored.
func rewriteSome(ctx context.Context, tx *store.Tx, rows []observation.StoredRow) (taken int, err error) {
	began := time.Now()
	sessions, changes := map[int64]string{}, map[string]*forgotten{}
	for taken < len(rows) && (taken%forgetStep != 0 || time.Since(began) < maxForgetTime) {
		s := &rows[taken]
		taken++
		if err := rewriteRow(ctx, tx, s); err != nil {
			return 0, err
		}
		sessions[s.SessionKey] = s.Session
		if changes[s.Project] == nil {
			changes[s.Project] = &forgotten{}
		}
		changes[s.Project].ids = append(changes[s.Project].ids, s.Id)
	}
	for key, id := range sessions {
		if err := observation.RefreshDigest(ctx, tx, key, id); err != nil {
			return 0, err
		}
	}
	for _, p := range slices.Sorted(maps.Keys(changes)) {
		if _, err := changes[p].log(ctx, tx, p, opRedact); err != nil {
			return 0, err
		}
	}
	return taken, setPending(ctx, tx)
}

// rewriteRow updates a row and its searchable words. It does nothing if the row no longer exists.
func rewriteRow(ctx context.Context, tx *store.Tx, s *observation.StoredRow) error {
	res, err := tx.Exec(ctx, updateRescanned, s.Tool, s.Content, s.Path, s.Key, s.Meta, s.Checksum(), s.Id)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	text, err := s.SearchableText()
	if err != nil {
		return err
	}
	if err := observation.DropWords(ctx, tx, s.Id); err != nil {
		return err
	}
	if err := observation.ForgetTurn(ctx, tx, s.SessionKey, s.At, s.Id); err != nil {
		return err
	}
	return observation.IndexText(ctx, tx, s.Id, text)
}

// storedSession contains the texts of a session that may have to be redacted.
type storedSession struct {
	key                int64
	id, model, summary string
	newModel           bool
	newSummary         bool
	branches           [][2]string // branches to rename: from and to
}

// readSessions reads the next batch of sessions after a key, with all their branches.
func readSessions(ctx context.Context, tx *store.Tx, after int64) (batch []storedSession, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var s storedSession
		var branches string
		if err := rows.Scan(&s.key, &s.id, &s.model, &s.summary, &branches); err != nil {
			return err
		}
		var names []string
		err := json.Unmarshal([]byte(branches), &names)
		for _, name := range names {
			s.branches = append(s.branches, [2]string{name, name})
		}
		batch = append(batch, s)
		return err
	}, selectSessionsToRescan, after, maxForgetRows)
	return batch, err
}

// redactSession redacts a session in place. found reports whether anything was redacted.
func redactSession(c *observation.Redaction, s *storedSession) (found bool, err error) {
	s.model, s.newModel = c.Text(s.model)
	if s.summary, s.newSummary, err = c.Document(s.summary); err != nil {
		return false, err
	}
	for i := range s.branches {
		s.branches[i][1], _ = c.Text(s.branches[i][0])
	}
	s.branches = slices.DeleteFunc(s.branches, func(b [2]string) bool { return b[0] == b[1] })
	return s.newModel || s.newSummary || len(s.branches) > 0, nil
}

// sessions redacts the models, branches and digests of sessions.
func (r *rescanning) sessions(ctx context.Context, counts map[string]int) error {
	rules := observation.Redaction{Filter: r.service.Config.Filter, Rules: counts}
	for last := int64(0); ; {
		var batch []storedSession
		err := r.service.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			batch, err = readSessions(ctx, tx, last)
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1].key
		for _, s := range batch {
			found, err := redactSession(&rules, &s)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			r.done.Sessions++
			if r.DryRun {
				continue
			}
			if err := r.service.Store.Write(ctx, store.Full, s.store); err != nil {
				return err
			}
		}
	}
}

func (s *storedSession) store(ctx context.Context, tx *store.Tx) error {
	if s.newModel {
		if err := project.SetModel(ctx, tx, s.id, s.model); err != nil {
			return err
		}
	}
	if s.newSummary {
		if err := project.SetSummary(ctx, tx, s.key, s.summary); err != nil {
			return err
		}
	}
	for _, b := range s.branches {
		if _, err := tx.Exec(ctx, deleteBranch, b[0], s.key); err != nil {
			return err
		}
		if err := observation.AddBranch(ctx, tx, b[1], s.key); err != nil {
			return err
		}
	}
	return setPending(ctx, tx)
}
