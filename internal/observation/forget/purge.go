package forget

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// PurgeArgs select the rows to purge: those that match every filter that is set. Pinned rows are
// purged, too.
type PurgeArgs struct {
	IDs       []int64
	Session   string
	Project   string // id or alias
	File      string // in any form that History accepts
	Type      string
	Before    time.Time // rows older than this; zero for no limit
	OlderThan int       // days; 0 for no limit
	Search    string    // a query in the syntax of Search, without its limit on results
	Cwd       string    // the directory to which File is relative

	Confirm bool // false: Purge only counts

	// Progress, if set, is called with the numbers of rows deleted and of all matching rows.
	Progress func(done, total int)
}

// PurgeResult reports what a purge deleted, or would delete.
type PurgeResult struct {
	Rows     int                      `json:"rows"`
	Counts   []PurgeCount             `json:"counts"`   // by project and type
	Prompts  int                      `json:"prompts"`  // rows that were prompts or messages
	Sessions int                      `json:"sessions"` // sessions that became empty
	Ledger   int                      `json:"ledger"`   // ledger entries of injected context
	Backups  int                      `json:"backups"`  // automatic backups of the store
	Behind   []follow.LaggingFollower `json:"behind"`   // followers that have not read the change yet
}

// PurgeCount is the number of matching rows of one project and type.
type PurgeCount struct {
	Project string `json:"project"`
	ObsType string `json:"obs_type"`
	Rows    int    `json:"rows"`
}

const (
	selectMatching = `SELECT o.id, p.id, o.obs_type FROM observation_rows o JOIN projects p ON p.key = o.project_key WHERE `
	orderMatching  = ` ORDER BY o.session_key, o.id`

	matchIDs     = `o.id IN (SELECT value FROM json_each(?))`
	matchSession = `o.session_key = (SELECT key FROM sessions WHERE id = ?)`
	matchProject = `o.project_key = ?`
	matchFile    = `(o.project_key = ? AND o.path_key = ? OR o.file_path = ?)`
	matchType    = `o.obs_type = ?`
	matchBefore  = `o.timestamp < ?`
	matchWords   = `o.id IN (SELECT rowid FROM observations_fts WHERE observations_fts MATCH ?)`

	selectHasFile = `SELECT EXISTS (SELECT 1 FROM observation_rows WHERE project_key = ? AND path_key = ?)`

	selectIsEmpty        = `SELECT NOT EXISTS (SELECT 1 FROM observation_rows WHERE session_key = ?)`
	deleteSessionLedger  = `DELETE FROM injection_rows WHERE session_key = ?`
	deleteSessionPrompts = `DELETE FROM prompt_rows WHERE session_key = ?`

	selectEmptySessions = `SELECT s.key, s.id, s.project_id FROM sessions s
WHERE (?1 IS NULL OR s.id = ?1) AND (?2 IS NULL OR s.project_id = ?2) AND s.last_seen <= ?3
  AND NOT EXISTS (SELECT 1 FROM observation_rows o WHERE o.session_key = s.key)`
)

// Purge permanently deletes the rows that match every filter (observations §11.3). It also
// deletes their prompts, their ledger entries and the sessions that become empty, and rebuilds
// the digests of the remaining sessions. Then it removes the bytes from the disk, see Finish.
// Tombstones prevent an import or a late hook from storing the rows again. A change lists for
// archive and replicas what to blank.
//
// It returns Invalid without any filter, for an unknown type and for a malformed query. An unknown
// project is NotFound. An unknown id, session or file matches nothing. A killed purge has deleted
// some of the rows; it is safe to retry and idempotent. After CodeHeld and other errors,
// PurgeResult still reports what was deleted.
func Purge(ctx context.Context, svc *observation.Service, a PurgeArgs) (PurgeResult, error) {
	done := PurgeResult{Counts: []PurgeCount{}, Behind: []follow.LaggingFollower{}}
	p := purging{PurgeArgs: a, service: svc, done: &done}
	if err := p.check(); err != nil {
		return done, err
	}
	err := svc.Read(ctx, p.find)
	done.Rows = len(p.ids)
	if err != nil || !a.Confirm || svc.Store == nil {
		return done, err
	}
	done.Rows = 0
	if err := p.run(ctx); err != nil {
		return done, err
	}
	done.Backups, err = Finish(ctx, svc)
	if err != nil {
		return done, err
	}
	behind, err := follow.LaggingFollowers(ctx, svc.Store, p.seq)
	done.Behind = append(done.Behind, behind...)
	return done, err
}

// purging is the state of one purge.
type purging struct {
	PurgeArgs
	service *observation.Service
	done    *PurgeResult

	query      string // Search as an FTS5 query
	before     *int64 // the earlier of the two limits
	project    project.Project
	ids        []int64 // the matching rows
	seq        int64   // seq of the last change
	tombstones observation.Tombstones
}

func (p *purging) check() (err error) {
	a := &p.PurgeArgs
	switch {
	case len(a.IDs) == 0 && a.Session == "" && a.Project == "" && a.File == "" && a.Type == "" &&
		a.Before.IsZero() && a.OlderThan == 0 && a.Search == "":
		return fault.New(fault.Invalid, "invalid_argument", "name what to purge, with at least one filter").
			WithHint("see `cairn purge --help`")
	case observation.CheckType(a.Type) != nil:
		return observation.CheckType(a.Type)
	case a.OlderThan < 0:
		return fault.New(fault.Invalid, "invalid_argument", "an age in days must be 1 or more")
	}
	if a.Search != "" {
		p.query, err = observation.ParseQuery(a.Search)
	}
	return err
}

// find collects the rows that match and counts them.
func (p *purging) find(ctx context.Context, tx *store.Tx) error {
	where, args, err := p.filter(ctx, tx)
	if err != nil {
		return err
	}
	type group struct{ project, obsType string }
	counts := map[group]int{}
	p.ids, p.done.Counts = nil, []PurgeCount{}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var id int64
		var g group
		err := r.Scan(&id, &g.project, &g.obsType)
		p.ids = append(p.ids, id)
		counts[g]++
		return err
	}, selectMatching+strings.Join(where, " AND ")+orderMatching, args...)
	for _, g := range slices.SortedFunc(maps.Keys(counts), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.obsType, b.obsType))
	}) {
		p.done.Counts = append(p.done.Counts, PurgeCount{g.project, g.obsType, counts[g]})
	}
	return err
}

// filter returns the SQL conditions of the filters that are set, with their arguments.
func (p *purging) filter(ctx context.Context, tx *store.Tx) (where []string, args []any, err error) {
	add := func(condition string, values ...any) {
		where, args = append(where, condition), append(args, values...)
	}
	if len(p.IDs) > 0 {
		list, err := json.Marshal(p.IDs)
		if err != nil {
			return nil, nil, err
		}
		add(matchIDs, string(list))
	}
	if p.Session != "" {
		add(matchSession, p.Session)
	}
	if p.Project != "" {
		var ok bool
		if p.project, ok, err = project.Find(ctx, tx, p.Project); err == nil && !ok {
			err = project.NotFound(p.Project)
		}
		add(matchProject, p.project.Key)
	}
	if err == nil && p.File != "" {
		var f observation.FileKey
		var path string
		f, path, err = p.file(ctx, tx)
		add(matchFile, f.Project, f.Path, path)
	}
	if p.Type != "" {
		add(matchType, p.Type)
	}
	if p.setBefore(tx.Now().Unix()); p.before != nil {
		add(matchBefore, *p.before)
	}
	if p.query != "" {
		add(matchWords, p.query)
	}
	return where, args, err
}

func (p *purging) setBefore(now int64) {
	if !p.Before.IsZero() {
		at := p.Before.Unix()
		p.before = &at
	}
	if p.OlderThan > 0 {
		at := now - int64(p.OlderThan)*observation.SecondsPerDay
		if p.before != nil {
			at = min(at, *p.before)
		}
		p.before = &at
	}
}

// file resolves File to the first possible key that has rows. Rows recorded in a folder that no
// longer exists are found only by their absolute path.
func (p *purging) file(ctx context.Context, tx *store.Tx) (f observation.FileKey, path string, err error) {
	place, err := project.Locate(p.Cwd, p.service.Config.Home)
	if err != nil {
		return f, "", err
	}
	keys, err := observation.FileReadings(ctx, tx, place, p.File, p.service.Config.Home)
	for _, k := range keys {
		var has bool
		if err == nil {
			err = tx.Get(ctx, []any{&has}, selectHasFile, k.Project, k.Path)
		}
		if has {
			f = k
			break
		}
	}
	return f, place.Absolute(p.File), err
}

// run adds tombstones, deletes the rows that find collected, and deletes empty sessions.
func (p *purging) run(ctx context.Context) error {
	if len(p.ids) == 0 && !p.wholeNames() {
		return nil
	}
	err := p.service.Store.Write(ctx, store.Full, p.addNameTombstones)
	if err == nil && p.wholeNames() { // find again: an import may have added rows before the tombstone
		err = p.service.Read(ctx, p.find)
	}
	for rest := p.ids; err == nil && len(rest) > 0; {
		var batch purgeBatch
		err = p.service.Store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
			batch = purgeBatch{purging: p, touched: map[int64]string{}, byProject: map[string]*forgotten{}}
			return batch.run(ctx, tx, rest)
		})
		if err != nil {
			break
		}
		rest = rest[batch.taken:]
		p.done.Rows += batch.taken
		p.done.Prompts += batch.prompts
		p.done.Sessions += batch.sessions
		p.done.Ledger += batch.ledger
		p.seq = max(p.seq, batch.seq)
		if p.Progress != nil {
			p.Progress(len(p.ids)-len(rest), len(p.ids))
		}
	}
	if err != nil || !p.wholeNames() {
		return err
	}
	return p.service.Store.Write(ctx, store.Full, p.dropEmpty)
}

// wholeNames reports whether the purge covers a whole session or project, possibly up to a time,
// and not only some of its rows.
func (p *purging) wholeNames() bool {
	return (p.Session != "" || p.Project != "") &&
		len(p.IDs) == 0 && p.File == "" && p.Type == "" && p.Search == ""
}

// addNameTombstones records that Finish has work to do. For a whole session or project it adds a
// tombstone, which also blocks rows that were never imported.
func (p *purging) addNameTombstones(ctx context.Context, tx *store.Tx) (err error) {
	if err := setPending(ctx, tx); err != nil {
		return err
	}
	if p.tombstones, err = observation.MakeTombstones(ctx, tx); err != nil || !p.wholeNames() {
		return err
	}
	until := tx.Now().Unix()
	if p.before != nil {
		until = min(until, *p.before-1)
	}
	key := observation.SessionInProjectKey(p.Session, p.project.ID)
	switch {
	case p.Project == "":
		key = observation.SessionKey(p.Session)
	case p.Session == "":
		key = observation.ProjectKey(p.project.ID)
	}
	return p.tombstones.Add(ctx, tx, until, key)
}

// dropEmpty deletes the purged sessions that have no rows, including those that never had any.
func (p *purging) dropEmpty(ctx context.Context, tx *store.Tx) error {
	before := tx.Now().Unix()
	if p.before != nil {
		before = *p.before - 1
	}
	var empty []project.Session
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var s project.Session
		err := r.Scan(&s.Key, &s.ID, &s.ProjectID)
		empty = append(empty, s)
		return err
	}, selectEmptySessions, observation.NullText(p.Session), observation.NullText(p.project.ID), before)
	if err != nil {
		return err
	}
	keys := make([]int64, len(empty))
	for i, s := range empty {
		keys[i] = s.Key
	}
	kept, err := neededSessions(ctx, p.service, tx, keys)
	if err != nil {
		return err
	}
	batch := purgeBatch{purging: p, byProject: map[string]*forgotten{}}
	for _, s := range empty {
		if kept[s.Key] {
			continue
		}
		if err := batch.dropSession(ctx, tx, s.Key, s.ID, s.ProjectID); err != nil {
			return err
		}
	}
	p.done.Sessions += batch.sessions
	p.done.Ledger += batch.ledger
	return batch.log(ctx, tx)
}

// purgeBatch is one transaction of a purge. Its counts are valid only after the commit.
type purgeBatch struct {
	*purging
	taken, prompts, sessions, ledger int
	seq                              int64
	touched                          map[int64]string      // sessions, by key
	byProject                        map[string]*forgotten // documents of the changes, by project
}

// run deletes rows of ids, from the first on, until the limit of one transaction is reached.
func (b *purgeBatch) run(ctx context.Context, tx *store.Tx, ids []int64) error {
	began := time.Now()
	for b.taken < min(len(ids), maxForgetRows) && time.Since(began) < maxForgetTime {
		step := ids[b.taken:min(b.taken+forgetStep, len(ids))]
		b.taken += len(step)
		rows, err := readDoomed(ctx, tx, step, b.service.Config.Unnamed)
		if err != nil {
			return err
		}
		for i := range rows {
			if err := b.forget(ctx, tx, &rows[i]); err != nil {
				return err
			}
		}
	}
	list, err := json.Marshal(ids[:b.taken])
	if err != nil {
		return err
	}
	res, err := tx.Exec(ctx, deleteLedger, string(list))
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err != nil {
		return err
	}
	b.ledger = int(n)
	for key, id := range b.touched {
		if err := b.updateSession(ctx, tx, key, id); err != nil {
			return err
		}
	}
	if err := b.log(ctx, tx); err != nil {
		return err
	}
	return setPending(ctx, tx)
}

func (b *purgeBatch) forget(ctx context.Context, tx *store.Tx, d *observation.RowToDelete) error {
	if err := b.tombstones.Add(ctx, tx, nil, d.Keys()...); err != nil {
		return err
	}
	b.touched[d.SessionKey] = d.Session
	f := b.of(d.Project)
	f.ids = append(f.ids, d.Id)
	if d.Prompt.Valid {
		b.prompts++
	}
	return removeRow(ctx, tx, d)
}

// of returns the document of a project's change and creates it if necessary.
func (b *purgeBatch) of(project string) *forgotten {
	f := b.byProject[project]
	if f == nil {
		f = &forgotten{}
		b.byProject[project] = f
	}
	return f
}

// updateSession updates a session from which rows were deleted. It rebuilds the digest from the
// remaining rows. An empty session is deleted, unless another part needs it.
func (b *purgeBatch) updateSession(ctx context.Context, tx *store.Tx, key int64, id string) error {
	var empty bool
	if err := tx.Get(ctx, []any{&empty}, selectIsEmpty, key); err != nil {
		return err
	}
	kept := map[int64]bool{}
	if empty {
		var err error
		if kept, err = neededSessions(ctx, b.service, tx, []int64{key}); err != nil {
			return err
		}
	}
	if !empty || kept[key] {
		return observation.RefreshDigest(ctx, tx, key, id)
	}
	s, ok, err := project.FindSession(ctx, tx, id)
	if err != nil || !ok {
		return err
	}
	return b.dropSession(ctx, tx, key, id, s.ProjectID)
}

func (b *purgeBatch) dropSession(ctx context.Context, tx *store.Tx, key int64, id, own string) error {
	res, err := tx.Exec(ctx, deleteSessionLedger, key)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err != nil {
		return err
	}
	if err := observation.ForgetTurns(ctx, tx, key); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteSessionPrompts, key); err != nil { // prompts without a row, left by a salvage
		return err
	}
	if err := project.DeleteSession(ctx, tx, key); err != nil {
		return err
	}
	b.sessions++
	b.ledger += int(n)
	f := b.of(own)
	f.Sessions = append(f.Sessions, id)
	_, err = tx.Blank(ctx, "session/"+id, "session", id)
	return err
}

// neededSessions returns the sessions that other parts still need.
func neededSessions(ctx context.Context, svc *observation.Service, tx *store.Tx, sessions []int64) (map[int64]bool, error) {
	kept := map[int64]bool{}
	for _, part := range svc.Config.Kept {
		keys, err := part(ctx, tx, sessions)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			kept[key] = true
		}
	}
	return kept, nil
}

// log appends the changes of the batch: one for each project.
func (b *purgeBatch) log(ctx context.Context, tx *store.Tx) (err error) {
	for _, project := range slices.Sorted(maps.Keys(b.byProject)) {
		if b.seq, err = b.byProject[project].log(ctx, tx, project, store.OpPurge); err != nil {
			return err
		}
	}
	return nil
}
