package archive

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"cairn/internal/archive/repository"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// Finding is a file that differs from its wanted state.
type Finding struct {
	Project string `json:"project"`
	Kind    string `json:"kind"` // kind of the entity, "" for a file made from several
	ID      string `json:"id"`
	Path    string `json:"path"`
}

// Counted contains the numbers of entities in the store and in the archive.
type Counted struct {
	DB      int `json:"db"`
	Archive int `json:"archive"`
}

// Checked is the result of Check. Consistent means that nothing is missing, mismatched,
// orphaned, duplicated, uncommitted or set aside.
type Checked struct {
	Consistent  bool
	Missing     []Finding          // missing files
	Mismatched  []Finding          // files with other content
	Orphans     []Finding          // files without an entity
	Duplicates  []Finding          // files that claim to be the same entity as another
	Uncommitted int                // correct files that are not in main
	Pending     int                // entities changed after the last commit, which were not compared
	SetAside    []FailedChange     // changes that cannot be archived
	Entities    map[string]Counted // by kind
	Projects    []Status           // the compared projects
}

// Check compares every entity, as of the last commit, with its files and with main (mail
// §10.6). It changes nothing. Errors: those of the store, Unavailable with CodeNoGit or
// CodeGit for an archive that cannot be read.
func (a *Archiver) Check(ctx context.Context, project string, progress func(project string)) (Checked, error) {
	out := Checked{
		Missing: []Finding{}, Mismatched: []Finding{}, Orphans: []Finding{}, Duplicates: []Finding{}, SetAside: []FailedChange{},
		Entities: map[string]Counted{}, Projects: []Status{},
	}
	var ids []string
	err := a.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		ids, err = a.projects(ctx, tx, project)
		return err
	})
	for _, id := range ids {
		if err == nil {
			progress(id)
			err = a.checkOne(ctx, id, &out)
		}
	}
	out.Consistent = len(out.Missing)+len(out.Mismatched)+len(out.Orphans)+len(out.Duplicates)+len(out.SetAside)+out.Uncommitted == 0
	return out, err
}

// checker compares one project.
type checker struct {
	*Archiver
	*folder
	project string
	out     *Checked
	pending map[Entity]bool
	states  map[string]finding // by path, the last state of each
}

type finding struct {
	Entity
	file, committed state
}

func (a *Archiver) checkOne(ctx context.Context, project string, out *Checked) error {
	f, err := peek(ctx, a.folder(project))
	if err != nil {
		return err
	}
	defer f.close()
	c := &checker{Archiver: a, folder: f, project: project, out: out, pending: map[Entity]bool{}, states: map[string]finding{}}
	var s Status
	err = a.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if s, err = a.statusOf(ctx, tx, project); err != nil {
			return err
		}
		return c.compare(ctx, tx, s.Committed)
	})
	if err != nil {
		return err
	}
	out.Projects, out.SetAside, out.Pending = append(out.Projects, s), append(out.SetAside, s.Aside...), out.Pending+len(c.pending)
	missing := len(out.Missing) + len(out.Mismatched)
	for path, f := range c.states {
		c.classify(path, f)
	}
	a.setMissing(project, len(out.Missing)+len(out.Mismatched)-missing)
	err = c.orphans()
	for _, list := range [][]Finding{out.Missing, out.Mismatched, out.Orphans, out.Duplicates} {
		slices.SortFunc(list, func(x, y Finding) int { return cmp.Or(cmp.Compare(x.Project, y.Project), cmp.Compare(x.Path, y.Path)) })
	}
	return err
}

// compare compares the files of every entity.
func (c *checker) compare(ctx context.Context, tx *store.Tx, committed int64) error {
	err := c.streamsOf(ctx, tx, c.project, func(_ *Part, stream string) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var e Entity
			err := r.Scan(&e.Kind, &e.ID)
			c.pending[e] = true
			return err
		}, selectKeysAfter, stream, committed)
	})
	for i := range c.Parts {
		if err == nil {
			err = c.Parts[i].RenderAll(ctx, tx, c.project, func(e Entity, files []repository.File) error {
				for _, f := range files {
					c.states[f.Path] = finding{e, c.file(f), c.committed(f)}
				}
				return ctx.Err()
			})
		}
	}
	return err
}

// classify adds a file to the findings it belongs to, and counts its entity.
func (c *checker) classify(path string, f finding) {
	source, _ := c.source(path)
	if source.ID != "" {
		n := c.out.Entities[source.Kind]
		n.DB++
		c.out.Entities[source.Kind] = n
	}
	if c.pending[f.Entity] || f.Entity == (Entity{}) && len(c.pending) > 0 {
		return
	}
	found := Finding{c.project, f.Kind, f.ID, path}
	switch {
	case f.file == absent:
		c.out.Missing = append(c.out.Missing, found)
	case f.file == differs:
		c.out.Mismatched = append(c.out.Mismatched, found)
	case f.committed != same:
		c.out.Uncommitted++
	}
}

// source returns the entity of a file.
func (c *checker) source(path string) (e Entity, ours bool) {
	for _, p := range c.Parts {
		if e, ours = p.Source(path); ours {
			return e, true
		}
	}
	return Entity{}, false
}

// orphans finds files of parts without an entity, and files that claim to be the same
// entity.
func (c *checker) orphans() error {
	paths, err := c.paths()
	if err != nil {
		return err
	}
	claims := map[Entity][]string{}
	for path := range paths {
		e, ours := c.source(path)
		if !ours {
			continue
		}
		if e.ID != "" {
			claims[e] = append(claims[e], path)
		}
		if _, known := c.states[path]; !known && len(c.pending) == 0 {
			c.out.Orphans = append(c.out.Orphans, Finding{c.project, e.Kind, e.ID, path})
		}
	}
	for e, paths := range claims {
		n := c.out.Entities[e.Kind]
		n.Archive++
		c.out.Entities[e.Kind] = n
		for _, path := range paths {
			if len(paths) > 1 {
				c.out.Duplicates = append(c.out.Duplicates, Finding{c.project, e.Kind, e.ID, path})
			}
		}
	}
	return nil
}

// Rebuilt is the result of Rebuild.
type Rebuilt struct {
	Written int   `json:"written"` // missing or different files, in the work tree or in main
	Commits int   `json:"commits"`
	Skipped int   `json:"skipped"` // correct files
	Elapsed int64 `json:"elapsed_ms"`
}

// Rebuild archives pending changes and retries changes that were set aside. Then it
// compares every file with its wanted state and writes missing and different files (mail
// §10.6). It leaves other files alone. With dryRun it only counts files. It is
// idempotent. Errors: those of the store and of the first archive that fails.
func (a *Archiver) Rebuild(ctx context.Context, project string, dryRun bool, progress func(project string)) (out Rebuilt, err error) {
	began := time.Now()
	defer func() { out.Elapsed = time.Since(began).Milliseconds() }()
	statuses, err := a.Status(ctx, project)
	if err != nil {
		return out, err
	}
	for _, s := range statuses {
		progress(s.Project)
		l := a.worker(s.Project)
		if !dryRun {
			if _, err := l.catchUp(ctx, nil); err != nil {
				return out, err
			}
			seqs := make([]int64, 0, len(s.Aside))
			for _, aside := range s.Aside {
				seqs = append(seqs, aside.Seq)
			}
			if err := l.retryFailed(ctx, seqs); err != nil {
				return out, err
			}
		}
		did, err := l.rebuildAlone(ctx, dryRun)
		if out.add(did); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (r *Rebuilt) add(did Rebuilt) {
	r.Written, r.Commits, r.Skipped = r.Written+did.Written, r.Commits+did.Commits, r.Skipped+did.Skipped
}

func (l *projectWorker) rebuildAlone(ctx context.Context, dryRun bool) (out Rebuilt, err error) {
	if dryRun {
		return l.rebuild(ctx, true)
	}
	err = l.locked(ctx, func() error {
		r := run{line: l, ctx: ctx}
		if err := r.place(); err != nil {
			return err
		}
		if err := l.open(ctx, r.head); err != nil {
			return err
		}
		if out, l.healed = l.healed, out; out.Written > 0 {
			return nil // it was compared just now
		}
		out, err = l.rebuild(ctx, false)
		return err
	})
	if err != nil {
		l.drop()
		return out, err
	}
	l.rest(ctx)
	return out, nil
}

// rebuild compares every file with its wanted state and, unless dryRun, writes the
// different ones.
func (l *projectWorker) rebuild(ctx context.Context, dryRun bool) (Rebuilt, error) {
	f, err := peek(ctx, l.dir)
	if err != nil {
		return Rebuilt{}, err
	}
	defer f.close()
	b := rebuilder{line: l, folder: f}
	if !dryRun {
		if b.head, err = l.repo.Head(ctx); err != nil {
			return b.Rebuilt, err
		}
	}
	var ids map[string]int64
	err = l.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		ids = map[string]int64{}
		if err := l.numbers(ctx, tx, ids); err != nil {
			return err
		}
		for i := range l.Parts {
			err := l.Parts[i].RenderAll(ctx, tx, l.project, func(_ Entity, files []repository.File) error { return b.put(ctx, files, dryRun) })
			if err != nil {
				return err
			}
		}
		return b.flush(ctx, dryRun)
	})
	if err != nil || dryRun {
		return b.Rebuilt, err
	}
	if err := l.keepNumbers(ctx, ids); err != nil {
		return b.Rebuilt, err
	}
	l.setMissing(l.project, 0)
	return b.Rebuilt, l.keepHead(ctx, b.head)
}

// keepHead stores the commit of main.
func (l *projectWorker) keepHead(ctx context.Context, head string) error {
	return l.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		at, ran, err := follow.CursorOf(ctx, tx, FollowerName, l.project)
		if err != nil || !ran {
			return err
		}
		at.Mark = head
		return follow.Advance(ctx, tx, FollowerName, l.project, at)
	})
}

// rebuilder collects wrong files.
type rebuilder struct {
	Rebuilt
	line   *projectWorker
	folder *folder
	head   string
	files  []repository.File
	size   int
}

func (b *rebuilder) put(ctx context.Context, files []repository.File, dryRun bool) error {
	for _, f := range files {
		if b.folder.file(f) == same && b.folder.committed(f) == same {
			b.Skipped++
			continue
		}
		b.files, b.size = append(b.files, f), b.size+len(f.Content)
	}
	if len(b.files) >= maxPaths || b.size >= 4*maxBytes {
		return b.flush(ctx, dryRun)
	}
	return ctx.Err()
}

func (b *rebuilder) flush(ctx context.Context, dryRun bool) error {
	files := newest(b.files)
	b.files, b.size = nil, 0
	b.Written += len(files)
	if dryRun || len(files) == 0 {
		return nil
	}
	if err := b.line.write(ctx, files); err != nil {
		return err
	}
	hashes, err := b.line.commit(ctx, files, "chore: rebuild what was missing from the store", b.line.Store.Now())
	for _, hash := range hashes {
		if hash != b.head {
			b.head, b.Commits = hash, b.Commits+1
		}
	}
	return err
}
