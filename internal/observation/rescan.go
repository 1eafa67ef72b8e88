package observation

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
	"cairn/internal/words"
)

// Rescanned is what a rescan rewrote, or would rewrite.
type Rescanned struct {
	Rows     int            `json:"rows"`
	ByType   map[string]int `json:"by_type"`  // of the rows
	Sessions int            `json:"sessions"` // whose digest, model or branch held something
	Outputs  int            `json:"outputs"`  // digests of what commands and tools printed
	Rules    map[string]int `json:"rules"`    // replacements by rule
}

// RescanArgs say how to rescan.
type RescanArgs struct {
	DryRun bool // only count

	// Progress, if set, is told how many of all rows were looked at.
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

// Rescan applies the present rules of redaction to everything that is stored:
// content, paths, metadata at any depth, prompts, models, branches and digests
// (observations §7), and digests of outputs. Of an output that held something only the
// lines of its digest are found afterwards. What it rewrites is as gone as after a purge. A second run
// finds nothing; killed in between, the next one does the rest.
//
// Errors are those of store.Write and FinishForgetting; Rescanned then reports what
// was rewritten until then.
func (j *Service) Rescan(ctx context.Context, a RescanArgs) (Rescanned, error) {
	done := Rescanned{ByType: map[string]int{}, Rules: map[string]int{}}
	if j.store == nil {
		return done, nil
	}
	r := rescanning{RescanArgs: a, journal: j, done: &done}
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
	if err := r.sessions(ctx, map[string]int{}); err != nil { // digests that were made anew
		return done, err
	}
	done.Sessions = found
	_, err = j.FinishForgetting(ctx)
	return done, err
}

// rescanning is one rescan under way.
type rescanning struct {
	RescanArgs
	journal *Service
	done    *Rescanned
}

// storedRow is what a row holds that may have to be redacted.
type storedRow struct {
	id, sessionKey            int64
	project, session, obsType string
	content                   string
	tool, path, key, meta     sql.NullString
	at                        int64
	source                    string
}

// checksum returns the checksum of the row as it is to be stored.
func (s *storedRow) checksum() int64 {
	return (&said{s.at, s.obsType, s.source, s.tool.String, s.content, s.path.String, s.meta.String}).checksum()
}

// readStored reads the next rows after an id.
func readStored(ctx context.Context, tx *store.Tx, after int64) (batch []storedRow, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var s storedRow
		err := rows.Scan(&s.id, &s.project, &s.sessionKey, &s.session, &s.obsType, &s.tool, &s.content,
			&s.path, &s.key, &s.meta, &s.at, &s.source)
		batch = append(batch, s)
		return err
	}, selectToRescan, after, maxForgetRows)
	return batch, err
}

func (r *rescanning) rows(ctx context.Context) error {
	var last int64
	var seen, total int
	for {
		var batch, changed []storedRow
		err := r.journal.read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			if err := tx.Get(ctx, []any{&total}, countRows); err != nil {
				return err
			}
			batch, err = readStored(ctx, tx, last)
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1].id
		rules := counted{filter: r.journal.config.Filter, rules: r.done.Rules}
		for _, s := range batch {
			found, err := rules.row(&s)
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

// rewrite stores redacted rows, in as many transactions as their limits make.
func (r *rescanning) rewrite(ctx context.Context, rows []storedRow) error {
	for _, s := range rows {
		r.done.Rows++
		r.done.ByType[s.obsType]++
	}
	for !r.DryRun && len(rows) > 0 {
		var taken int
		err := r.journal.store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) (err error) {
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

// rewriteSome stores rows until it is enough for one transaction, and returns
// how many.
func rewriteSome(ctx context.Context, tx *store.Tx, rows []storedRow) (taken int, err error) {
	began := time.Now()
	sessions, changes := map[int64]string{}, map[string]*forgotten{}
	for taken < len(rows) && (taken%forgetStep != 0 || time.Since(began) < maxForgetTime) {
		s := &rows[taken]
		taken++
		if err := s.store(ctx, tx); err != nil {
			return 0, err
		}
		sessions[s.sessionKey] = s.session
		if changes[s.project] == nil {
			changes[s.project] = &forgotten{}
		}
		changes[s.project].ids = append(changes[s.project].ids, s.id)
	}
	for key, id := range sessions {
		if err := refreshDigest(ctx, tx, key, id); err != nil {
			return 0, err
		}
	}
	for _, p := range slices.Sorted(maps.Keys(changes)) {
		if _, err := changes[p].tell(ctx, tx, p, opRedact); err != nil {
			return 0, err
		}
	}
	return taken, setPending(ctx, tx)
}

// store writes a row and its words again. A row that is gone stays so.
func (s *storedRow) store(ctx context.Context, tx *store.Tx) error {
	res, err := tx.Exec(ctx, updateRescanned, s.tool, s.content, s.path, s.key, s.meta, s.checksum(), s.id)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	d, err := s.draft()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteWords, s.id); err != nil {
		return err
	}
	if err := forgetTurn(ctx, tx, s.sessionKey, s.at, s.id); err != nil {
		return err
	}
	parts, wholes := words.Index(d.searchable())
	_, err = tx.Exec(ctx, insertWords, s.id, parts, wholes)
	return err
}

// draft is the row as it was before it was stored, as far as searchable asks.
func (s *storedRow) draft() (draft, error) {
	d := draft{Type: s.obsType, Content: s.content, Path: s.givenPath()}
	if !s.meta.Valid {
		return d, nil
	}
	if err := json.Unmarshal([]byte(s.meta.String), &d.Meta); err != nil {
		return d, err
	}
	if params, ok := d.Meta["params"].(map[string]any); ok {
		texts := map[string]string{}
		for name, v := range params {
			texts[name], _ = v.(string)
		}
		d.Meta["params"] = texts
	}
	return d, nil
}

// givenPath is the path as the call gave it: rows about files and searches say it
// in their content, others keep it as an absolute one only.
func (s *storedRow) givenPath() string {
	said := s.content
	switch s.obsType {
	case typeRead, typeWrite, typeEdit:
	case typeSearch:
		if i := strings.LastIndex(said, " in "); i >= 0 {
			said = said[i+len(" in "):]
		}
	default:
		return s.path.String
	}
	tail := strings.TrimLeft(filepath.ToSlash(filepath.Clean(said)), "./")
	if strings.HasSuffix(filepath.ToSlash(s.path.String), tail) {
		return said
	}
	return s.path.String
}

// storedSession is what a session holds that may have to be redacted.
type storedSession struct {
	key                int64
	id, model, summary string
	newModel           bool
	newSummary         bool
	branches           [][2]string // to be renamed: from and to
}

// readSessions reads the next sessions after a key, with all their branches.
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

// session redacts a session in place; found is false if nothing was to be.
func (c *counted) session(s *storedSession) (found bool, err error) {
	s.model, s.newModel = c.text(s.model)
	if s.summary, s.newSummary, err = c.document(s.summary); err != nil {
		return false, err
	}
	for i := range s.branches {
		s.branches[i][1], _ = c.text(s.branches[i][0])
	}
	s.branches = slices.DeleteFunc(s.branches, func(b [2]string) bool { return b[0] == b[1] })
	return s.newModel || s.newSummary || len(s.branches) > 0, nil
}

// sessions redacts models, branches and digests.
func (r *rescanning) sessions(ctx context.Context, counts map[string]int) error {
	rules := counted{filter: r.journal.config.Filter, rules: counts}
	for last := int64(0); ; {
		var batch []storedSession
		err := r.journal.read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			batch, err = readSessions(ctx, tx, last)
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1].key
		for _, s := range batch {
			found, err := rules.session(&s)
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
			if err := r.journal.store.Write(ctx, store.Full, s.store); err != nil {
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
		if _, err := tx.Exec(ctx, insertBranch, b[1], s.key); err != nil {
			return err
		}
	}
	return setPending(ctx, tx)
}

// counted redacts what is stored and counts replacements by rule.
type counted struct {
	filter *redact.Filter
	rules  map[string]int
}

func (c *counted) text(s string) (string, bool) {
	out, found := c.filter.Text(s)
	if found {
		for rule, n := range c.filter.Counts(s) {
			c.rules[rule] += n
		}
	}
	return out, found
}

// row redacts a row in place and marks it as redacted.
func (c *counted) row(s *storedRow) (found bool, err error) {
	before := s.path.String
	for _, field := range []*string{&s.content, &s.tool.String, &s.path.String} {
		text, changed := c.text(*field)
		*field, found = text, found || changed
	}
	if s.path.String != before {
		s.key.String = c.keyOf(before, s.path.String, s.key.String)
	}
	meta, changed, err := c.document(s.meta.String)
	if err != nil || !found && !changed {
		return false, err
	}
	s.meta.Valid = true
	s.meta.String, err = withRedacted(meta)
	return true, err
}

// withRedacted sets redacted in a row's metadata, "" for none.
func withRedacted(meta string) (string, error) {
	m := map[string]json.RawMessage{}
	if meta != "" {
		if err := json.Unmarshal([]byte(meta), &m); err != nil {
			return "", err
		}
	}
	m["redacted"] = json.RawMessage("true")
	return compactJSON(m)
}

// keyOf is the key of a file whose path was redacted: the same part of the path
// as before, or the redacted key where the part before it is no longer the same.
func (c *counted) keyOf(before, after, key string) string {
	before, after = filepath.ToSlash(before), filepath.ToSlash(after)
	if root, ok := strings.CutSuffix(before, key); ok && strings.HasPrefix(after, root) {
		return after[len(root):]
	}
	key, _ = c.filter.Text(key)
	return key
}

// document redacts a JSON object with its structure, for a name may be what tells
// a secret; "" stays.
func (c *counted) document(s string) (string, bool, error) {
	if s == "" {
		return "", false, nil
	}
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return "", false, err
	}
	params, _ := m["params"].(map[string]any) // an MCP call's, which were redacted as what they are
	for name, v := range params {
		if text, ok := v.(string); ok {
			params[name] = structure(text)
		}
	}
	v, found := c.filter.Value(m)
	if !found {
		return s, false, nil
	}
	if c.count(m) == 0 {
		c.rules["named_value"]++
	}
	out, _ := v.(map[string]any)
	params, _ = out["params"].(map[string]any)
	for name, v := range params {
		if _, ok := v.(string); ok {
			continue
		}
		text, err := compactJSON(v)
		if err != nil {
			return "", false, err
		}
		params[name] = text
	}
	text, err := compactJSON(out)
	return text, true, err
}

// count counts what is found in the texts of a JSON value taken by themselves.
func (c *counted) count(v any) (n int) {
	switch v := v.(type) {
	case string:
		for rule, times := range c.filter.Counts(v) {
			c.rules[rule] += times
			n += times
		}
	case []any:
		for _, e := range v {
			n += c.count(e)
		}
	case map[string]any:
		for name, e := range v {
			n += c.count(name) + c.count(e)
		}
	}
	return n
}
