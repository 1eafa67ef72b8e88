package project

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Codes of the errors that this room makes.
const (
	CodeNotFound = "project_not_found" // no project has that id or alias
	CodeTaken    = "project_exists"    // a name is a project's id already
)

// Project is a row of the store. The product-wide name is its ID; Key is for
// joins inside this store alone.
type Project struct {
	Key       int64  `json:"-"`
	ID        string `json:"id"`         // ^[a-z0-9][a-z0-9._-]{0,63}$, never changed
	Name      string `json:"name"`       // for display
	Identity  string `json:"identity"`   // canonical common git directory, "" for a folder or a created project
	Root      string `json:"root"`       // root of the main worktree, or the folder; "" for a created project
	OriginURL string `json:"origin_url"` // without credentials, "" if there is none
}

// Resolve returns the project of a place and creates its row when it is new:
// a slug that is reserved or owned by another repository gets a suffix, a
// repository whose recorded path is gone and whose origin is equal was moved and
// keeps its row (observations §2, rules 3 to 5). A place without a repository
// has the project of that name, whoever owns it; a repository takes over the
// row that a folder of its name made, so that the order of the two does not
// matter. A gone place belongs to the project with the longest recorded root
// around it (observations §12). Merged projects lead to the one that took them.
//
// It writes only what is new. Errors are those of the store.
func Resolve(ctx context.Context, tx *store.Tx, p Place) (Project, error) {
	return resolve(ctx, tx, p, nil)
}

// Current is the project of a place as Resolve would find it, without creating
// or changing anything; ok is false if it has no row yet, and for the root of a
// file system, which stands for no project in particular (observations §8).
func Current(ctx context.Context, tx *store.Tx, p Place) (q Project, ok bool, err error) {
	if p.kind == atTop && p.Identity == "" {
		return Project{}, false, nil
	}
	m, ok, err := match(ctx, tx, p, nil)
	return m.project, ok, err
}

// CurrentWithIDs is Current with the ids under which the project has gone for this
// place: its own and, if the place's was merged into it, that one's; none without a
// project.
func CurrentWithIDs(ctx context.Context, tx *store.Tx, p Place) (q Project, ids []string, err error) {
	if p.kind == atTop && p.Identity == "" {
		return q, nil, nil
	}
	m, ok, err := match(ctx, tx, p, nil)
	if err != nil || !ok {
		return q, nil, err
	}
	ids = []string{m.project.ID}
	former := ""
	switch {
	case m.row != 0 && m.row != m.project.Key:
		err = tx.Get(ctx, []any{&former}, selectIDOfRow, m.row)
	case p.Identity == "" && !p.Gone:
		former = p.folderID()
	}
	if former != "" && former != m.project.ID {
		ids = append(ids, former)
	}
	return m.project, ids, err
}

// Find returns the project that an id or an alias names; ok is false if there is
// none. The id of a project that was merged names the one that took it over.
func Find(ctx context.Context, tx *store.Tx, name string) (q Project, ok bool, err error) {
	err = tx.Get(ctx, scanProject(&q), selectByName, name)
	return q, err == nil, ignoreNone(err)
}

// Ensure returns the project that an id or alias names and creates one of that
// id, without a place, if there is none. Repeating it is safe. An unfit id is
// Invalid.
func Ensure(ctx context.Context, tx *store.Tx, id string) (Project, error) {
	q, ok, err := Find(ctx, tx, id)
	if err != nil || ok {
		return q, err
	}
	return insert(ctx, tx, Project{ID: id, Name: id})
}

func resolve(ctx context.Context, tx *store.Tx, p Place, inherited *Project) (Project, error) {
	m, ok, err := match(ctx, tx, p, inherited)
	switch {
	case err != nil:
		return Project{}, err
	case ok:
		return m.project, m.update(ctx, tx, p)
	}
	id, err := freeID(ctx, tx, p)
	if err != nil {
		return Project{}, err
	}
	return insert(ctx, tx, Project{
		ID: id, Name: p.Name, Identity: p.Identity, Root: p.recordedRoot(), OriginURL: p.OriginURL,
	})
}

// matched is the project that a place belongs to, and what the place has to tell
// about the row through which it was found.
type matched struct {
	project Project
	row     int64 // the row through which it was found: project's own or one merged into it
	news    news
}

type news uint8

const (
	nothingNew news = iota
	newOrigin       // another origin URL
	newPlace        // it was moved, or became a repository
)

// match finds a place's project among the rows; ok is false if there is none.
func match(ctx context.Context, tx *store.Tx, p Place, inherited *Project) (m matched, ok bool, err error) {
	if p.Gone {
		if m.project, ok, err = byRoot(ctx, tx, p); ok || err != nil {
			return m, ok, err
		}
	}
	if p.Identity == "" {
		if inherited != nil {
			return matched{project: *inherited}, true, nil
		}
		m.project, ok, err = Find(ctx, tx, p.folderID())
		return m, ok, err
	}
	var origin string
	err = tx.Get(ctx, append(scanProject(&m.project), &m.row, &origin), selectByIdentity, p.Identity)
	if err == nil {
		if p.OriginURL != "" && p.OriginURL != origin {
			m.news = newOrigin
		}
		return m, true, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return m, false, err
	}
	if m, ok, err = byOrigin(ctx, tx, p); ok || err != nil {
		return m, ok, err
	}
	return byFolder(ctx, tx, p)
}

// byRoot finds the recorded root that is nearest above a gone place and nearer
// than the repository that still stands there. The home directory and plain
// folders that still exist say nothing about what is missing below them.
func byRoot(ctx context.Context, tx *store.Tx, p Place) (q Project, ok bool, err error) {
	roots, err := json.Marshal(p.foldersAbove())
	if err != nil {
		return q, false, err
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var c Project
		var root string
		var isRepository bool
		if err := r.Scan(append(scanProject(&c), &root, &isRepository)...); err != nil {
			return err
		}
		if !ok && len(root) > len(p.Root) && (isRepository || pathIsGone(root)) {
			q, ok = c, true
		}
		return nil
	}, selectByRoot, string(roots))
	return q, ok, err
}

// foldersAbove lists a place's folder and those above it, in both spellings,
// without the tops of file systems and the home directory.
func (p Place) foldersAbove() []string {
	dirs := []string{}
	if len(p.Cwd) > maxPath {
		return dirs
	}
	realHome := canonical(p.Home)
	for _, dir := range [...]string{p.Cwd, p.real} {
		for range maxLevels {
			if isTop(dir) || dir == "." {
				break
			}
			if dir != p.Home && dir != realHome || dir == p.Cwd {
				dirs = append(dirs, dir)
			}
			dir = filepath.Dir(dir)
		}
	}
	return dirs
}

// byOrigin finds the repository that was moved to a place (rule 4).
func byOrigin(ctx context.Context, tx *store.Tx, p Place) (m matched, ok bool, err error) {
	if p.OriginURL == "" {
		return m, false, nil
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		c := matched{news: newPlace}
		var identity string
		if err := r.Scan(append(scanProject(&c.project), &c.row, &identity)...); err != nil {
			return err
		}
		if !ok && pathIsGone(identity) {
			m, ok = c, true
		}
		return nil
	}, selectByOrigin, p.OriginURL, p.Slug)
	return m, ok, err
}

// byFolder finds the row that a folder of the repository's name made.
func byFolder(ctx context.Context, tx *store.Tx, p Place) (m matched, ok bool, err error) {
	if isReserved(p.Slug) {
		return m, false, nil
	}
	q, ok, err := Find(ctx, tx, p.Slug)
	if err != nil || !ok || q.ID != p.Slug || q.Identity != "" || q.Root == "" {
		return m, false, err
	}
	return matched{project: q, row: q.Key, news: newPlace}, true, nil
}

// update writes what a place has to tell about its row.
func (m *matched) update(ctx context.Context, tx *store.Tx, p Place) error {
	var err error
	switch m.news {
	case nothingNew:
		return nil
	case newOrigin:
		_, err = tx.Exec(ctx, updateOrigin, p.OriginURL, m.row)
	case newPlace:
		_, err = tx.Exec(ctx, updatePlace, p.Name, p.Identity, null(p.recordedRoot()), null(p.OriginURL), m.row)
	}
	if err != nil {
		return err
	}
	row, err := logProject(ctx, tx, m.row)
	if m.project.Key == m.row {
		m.project = row
	}
	return err
}

// folderID is the id of a place without a repository: its slug, with a suffix
// where the folder is merely called like a reserved word.
func (p Place) folderID() string {
	if p.kind == inFolder && isReserved(p.Slug) {
		return suffixed(p.Slug, p.subject, 0)
	}
	return p.Slug
}

// freeID is the id of a new row for a place that matched none.
func freeID(ctx context.Context, tx *store.Tx, p Place) (string, error) {
	if p.Identity == "" {
		return p.folderID(), nil // match would have found it
	}
	for n := -1; n < maxSuffixes; n++ {
		id := p.Slug
		if n >= 0 {
			id = suffixed(p.Slug, p.Identity, n)
		} else if isReserved(id) {
			continue
		}
		if _, taken, err := Find(ctx, tx, id); err != nil || !taken {
			return id, err
		}
	}
	return "", fault.Newf(fault.Conflict, CodeTaken, "every id for a repository called %s is taken", p.Slug)
}

func insert(ctx context.Context, tx *store.Tx, q Project) (Project, error) {
	if err := checkID(q.ID); err != nil { // of Ensure, or of a Place that Locate did not make
		return Project{}, err
	}
	res, err := tx.Exec(ctx, insertProject, q.ID, q.Name, null(q.Identity), null(q.Root), null(q.OriginURL), tx.Now().Unix(), tx.Now().UnixNano())
	if err != nil {
		return Project{}, err
	}
	if q.Key, err = res.LastInsertId(); err != nil {
		return Project{}, err
	}
	return logProject(ctx, tx, q.Key)
}

// document is a project as the change log carries it.
type document struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	About      string   `json:"description,omitempty"`
	Identity   string   `json:"identity,omitempty"`
	Root       string   `json:"root,omitempty"`
	OriginURL  string   `json:"origin_url,omitempty"`
	CreatedAt  int64    `json:"created_at"` // Unix seconds
	CreatedNS  int64    `json:"created_ns,omitempty"`
	Aliases    []string `json:"aliases"`
	MergedInto string   `json:"merged_into,omitempty"` // the id to which everything of it went, its sessions included
}

// logProject appends a project's row, as it now stands, to the change log and
// returns it.
func logProject(ctx context.Context, tx *store.Tx, key int64) (Project, error) {
	return logProjectAt(ctx, tx, key, 0)
}

// logProjectAt is logProject for what happened at another time, in Unix
// nanoseconds; 0 is the transaction's.
func logProjectAt(ctx context.Context, tx *store.Tx, key, at int64) (Project, error) {
	var q Project
	d := document{}
	if err := tx.Get(ctx, append(scanProject(&q), &d.CreatedAt, &d.CreatedNS, &d.About, &d.MergedInto), selectOwnRow, key); err != nil {
		return q, err
	}
	d.ID, d.Name, d.Identity, d.Root, d.OriginURL = q.ID, q.Name, q.Identity, q.Root, q.OriginURL
	var err error
	if d.Aliases, err = aliasesOf(ctx, tx, q.ID); err != nil {
		return q, err
	}
	doc, err := json.Marshal(d)
	if err != nil {
		return q, err
	}
	_, err = tx.Append(ctx, store.Change{
		Project: q.ID, Stream: "project/" + q.ID, Kind: "project", ID: q.ID, Op: store.OpPut, Doc: doc, At: at,
	})
	return q, err
}

func scanProject(q *Project) []any {
	return []any{&q.Key, &q.ID, &q.Name, &q.Identity, &q.Root, &q.OriginURL}
}

// ignoreNone turns the absence of a row into no error.
func ignoreNone(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
