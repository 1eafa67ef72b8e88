package archive

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"

	"cairn/internal/archive/repository"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// cursor is the position of a project's archive in the change log.
type cursor struct {
	key       int64  // of the project
	committed int64  // seq of the last change in main
	head      string // the last acknowledged commit, "" for none
}

const (
	selectKey = `SELECT key FROM projects WHERE id = ?`

	upsertCommit = `INSERT INTO archive_commits (project_key, last_seq, first_seq, hexsha, summary, authored_ts) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (project_key, last_seq) DO UPDATE SET hexsha = excluded.hexsha, summary = excluded.summary`

	selectChanges = `SELECT c.seq, st.text, k.text, c.id, o.text, c.doc, c.at, ifnull(p.text, ''), ifnull(s.text, ''), ifnull(a.text, '') `
	joinWords     = `JOIN symbols st ON st.id = c.stream JOIN symbols k ON k.id = c.kind JOIN symbols o ON o.id = c.op
LEFT JOIN symbols p ON p.id = c.project LEFT JOIN symbols s ON s.id = c.session LEFT JOIN symbols a ON a.id = c.agent`

	// A purged change has no document and no file.
	selectStreamAfter = selectChanges + `FROM changes c INDEXED BY changes_of_stream ` + joinWords + `
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?) AND c.doc IS NOT NULL AND c.seq > ? ORDER BY c.seq LIMIT +?`
	countStreamAfter = `SELECT count(*) FROM changes INDEXED BY changes_of_stream
WHERE stream = (SELECT id FROM symbols WHERE text = ?) AND doc IS NOT NULL AND seq > ?`
	selectTimeAfter = `SELECT at FROM changes INDEXED BY changes_of_stream
WHERE stream = (SELECT id FROM symbols WHERE text = ?) AND doc IS NOT NULL AND seq > ? ORDER BY seq LIMIT 1`
	selectKeysAfter = `SELECT k.text, c.id FROM changes c INDEXED BY changes_of_stream JOIN symbols k ON k.id = c.kind
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?) AND c.doc IS NOT NULL AND c.seq > ?`
	existsStreamAfter = `SELECT EXISTS (SELECT 1 FROM changes INDEXED BY changes_of_stream
WHERE stream = (SELECT id FROM symbols WHERE text = ?) AND doc IS NOT NULL AND seq > ?)`
	existsStreamUntil = `SELECT EXISTS (SELECT 1 FROM changes INDEXED BY changes_of_stream
WHERE stream = (SELECT id FROM symbols WHERE text = ?) AND doc IS NOT NULL AND seq <= ?)`
	selectOneOf = selectChanges + `FROM changes c ` + joinWords + `
WHERE c.seq = ? AND c.doc IS NOT NULL`
	existsLater = `SELECT EXISTS (SELECT 1 FROM changes c INDEXED BY changes_of_stream
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?) AND c.doc IS NOT NULL AND c.seq > ?
AND c.kind = (SELECT id FROM symbols WHERE text = ?) AND c.id = ?)`
)

// cursorOf reads the position of a project's archive. ok is false for an unknown project.
func cursorOf(ctx context.Context, tx *store.Tx, project string) (c cursor, ok bool, err error) {
	if err = tx.Get(ctx, []any{&c.key}, selectKey, project); errors.Is(err, sql.ErrNoRows) {
		return c, false, nil
	} else if err != nil {
		return c, false, err
	}
	at, _, err := follow.CursorOf(ctx, tx, FollowerName, project)
	c.committed, c.head = at.Position, at.Mark
	return c, err == nil, err
}

// streamsOf returns the streams of a project, each with its part.
func (a *Archiver) streamsOf(ctx context.Context, tx *store.Tx, project string, each func(p *Part, stream string) error) error {
	for i := range a.Parts {
		stream, err := a.Parts[i].Stream(ctx, tx, project)
		if err == nil && stream != "" {
			err = each(&a.Parts[i], stream)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// projects returns the ids of the projects with data to archive, in order, or only the
// given one.
func (a *Archiver) projects(ctx context.Context, tx *store.Tx, only string) ([]string, error) {
	var ids []string
	for _, p := range a.Parts {
		some, err := p.Projects(ctx, tx)
		if err != nil {
			return nil, err
		}
		ids = append(ids, some...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if only != "" {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id != only })
	}
	return ids, nil
}

// behind returns the projects with uncommitted changes, or whose archive was deleted.
func (a *Archiver) behind(ctx context.Context) (projects []string, err error) {
	err = a.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		projects = nil
		all, err := a.projects(ctx, tx, "")
		for _, p := range all {
			var c cursor
			if c, _, err = cursorOf(ctx, tx, p); err != nil {
				return err
			}
			some, err := a.isGone(ctx, tx, p, c)
			if err == nil && !some {
				err = a.streamsOf(ctx, tx, p, func(_ *Part, stream string) error {
					if some {
						return nil
					}
					return tx.Get(ctx, []any{&some}, existsStreamAfter, stream, c.committed)
				})
			}
			if err != nil {
				return err
			}
			if some {
				projects = append(projects, p)
			}
		}
		return err
	})
	return projects, err
}

// isGone reports whether a project's archived files are missing: the folder was deleted,
// or the changes come from another project that was merged into it.
func (a *Archiver) isGone(ctx context.Context, tx *store.Tx, project string, c cursor) (gone bool, err error) {
	dir := a.folder(project)
	if c.head == "" || !repository.Exists(filepath.Join(dir, ".git")) {
		return c.head != "", nil
	}
	err = a.streamsOf(ctx, tx, project, func(p *Part, stream string) error {
		if gone || repository.Exists(filepath.Join(dir, p.Root)) {
			return nil
		}
		return tx.Get(ctx, []any{&gone}, existsStreamUntil, stream, c.committed)
	})
	return gone, err
}

// changesAfter counts the changes of a project after a position.
func (a *Archiver) changesAfter(ctx context.Context, tx *store.Tx, project string, after int64) (sum int64, err error) {
	err = a.streamsOf(ctx, tx, project, func(_ *Part, stream string) error {
		var n int64
		err := tx.Get(ctx, []any{&n}, countStreamAfter, stream, after)
		sum += n
		return err
	})
	return sum, err
}

// since returns the time of a project's first change after a position, 0 if there is
// none.
func (a *Archiver) since(ctx context.Context, tx *store.Tx, project string, after int64) (first int64, err error) {
	err = a.streamsOf(ctx, tx, project, func(_ *Part, stream string) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var at int64
			err := r.Scan(&at)
			if first == 0 || at < first {
				first = at
			}
			return err
		}, selectTimeAfter, stream, after)
	})
	return first, err
}

const (
	maxChanges = 1024    // of a batch
	maxBytes   = 8 << 20 // bytes of their documents, or one larger document
)

// partChanges are changes of one part.
type partChanges struct {
	part    *Part
	changes []store.Change
}

// changesOf reads the next changes of a project after a position, at most 1,024 and about
// 8 MiB. last is the seq up to which they are complete.
func (a *Archiver) changesOf(ctx context.Context, tx *store.Tx, project string, after int64) (out []partChanges, last int64, err error) {
	last = after
	full := int64(0) // first seq that did not fit for some part, 0 for none
	err = a.streamsOf(ctx, tx, project, func(p *Part, stream string) error {
		changes, more, err := someOf(ctx, tx, stream, after)
		if len(changes) > 0 {
			out = append(out, partChanges{p, changes})
			if end := changes[len(changes)-1].Seq; more && (full == 0 || end < full) {
				full = end
			}
		}
		return err
	})
	for i := range out {
		if full > 0 {
			out[i].changes = slices.DeleteFunc(out[i].changes, func(c store.Change) bool { return c.Seq > full })
		}
		if n := len(out[i].changes); n > 0 {
			last = max(last, out[i].changes[n-1].Seq)
		}
	}
	out = slices.DeleteFunc(out, func(p partChanges) bool { return len(p.changes) == 0 })
	return out, last, err
}

func columns(c *store.Change, doc *string) []any {
	return []any{&c.Seq, &c.Stream, &c.Kind, &c.ID, &c.Op, doc, &c.At, &c.Project, &c.Session, &c.Agent}
}

// errEnough ends the reading of rows.
var errEnough = errors.New("enough")

func someOf(ctx context.Context, tx *store.Tx, stream string, after int64) (changes []store.Change, more bool, err error) {
	size := 0
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var c store.Change
		var doc string
		if err := r.Scan(columns(&c, &doc)...); err != nil {
			return err
		}
		if size += len(doc); len(changes) > 0 && size > maxBytes {
			return errEnough
		}
		c.Doc = []byte(doc)
		changes = append(changes, c)
		return nil
	}, selectStreamAfter, stream, after, maxChanges)
	if errors.Is(err, errEnough) {
		return changes, true, nil
	}
	return changes, len(changes) == maxChanges, err
}

// failedChanges returns the changes of a project that were set aside.
func failedChanges(ctx context.Context, tx *store.Tx, project string) ([]FailedChange, error) {
	all, err := follow.AsideIn(ctx, tx, FollowerName, project)
	out := make([]FailedChange, 0, len(all))
	for _, a := range all {
		out = append(out, FailedChange{Seq: a.Seq, Error: a.Error, Attempts: a.Attempts})
	}
	return out, err
}

// failedChange reads a change that was set aside. ok is false if it no longer needs
// rendering: it was purged, or the entity has a later document, which is rendered
// instead.
func failedChange(ctx context.Context, tx *store.Tx, seq int64) (c store.Change, ok bool, err error) {
	var doc string
	err = tx.Get(ctx, columns(&c, &doc), selectOneOf, seq)
	if errors.Is(err, sql.ErrNoRows) {
		return c, false, nil
	} else if err != nil {
		return c, false, err
	}
	c.Doc = []byte(doc)
	var later bool
	err = tx.Get(ctx, []any{&later}, existsLater, c.Stream, seq, c.Kind, c.ID)
	return c, !later, err
}

// committedBatch is a committed batch of changes.
type committedBatch struct {
	cursor
	project string
	first   int64 // seq of its first change
	hashes  []string
	summary string
	at      int64 // Unix nanoseconds
	refused []follow.Refusal
}

// store stores it.
func (l *committedBatch) store(ctx context.Context, tx *store.Tx) error {
	if err := follow.Advance(ctx, tx, FollowerName, l.project, follow.Cursor{Position: l.committed, Mark: l.head}); err != nil {
		return err
	}
	for _, r := range l.refused {
		if err := follow.SetAside(ctx, tx, FollowerName, l.project, r); err != nil {
			return err
		}
	}
	if len(l.hashes) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, upsertCommit, l.key, l.committed, l.first, l.hashes[len(l.hashes)-1], l.summary, l.at)
	return err
}
