package project

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/project/gitdir"
	"cairn/internal/store"
)

// Error codes of this package.
const (
	CodeNotFound = "project_not_found" // no project has that id or alias
	CodeTaken    = "project_exists"    // the name is already a project's id
)

// Project is a row of the store. People see ID; other devices use UID; Key is only for
// joins inside this store.
type Project struct {
	Key       int64  `json:"-"`
	ID        string `json:"id"`         // ^[a-z0-9][a-z0-9._-]{0,63}$, never changed
	Name      string `json:"name"`       // for display
	UID       string `json:"uid"`        // 20 hexadecimal digits, a hash of its strongest key; "" in a store that is not migrated yet
	Identity  string `json:"identity"`   // git directory of the checkout at Root, "" for a folder or a created project; informational
	Root      string `json:"root"`       // root of the first checkout's main worktree, or the folder; "" for a created project
	OriginURL string `json:"origin_url"` // without credentials, "" if there is none
}

// Resolve returns the project of a place and creates it if necessary. A known checkout
// has its stored project. A new one has the project with the key of its remote, or of its
// path (amendments §C.1). So all clones of a remote are one project, and names do not
// matter. A checkout without a remote that was moved is recognised by its reflog. A
// changed remote adds a key to the project, unless another project has that key; then the
// checkout is marked as undecided. A place that no longer exists belongs to the project
// with the longest stored root around it (observations §12). A slug that is taken gets a
// suffix.
//
// It writes only changed data. Errors are those of the store.
func Resolve(ctx context.Context, tx *store.Tx, p Location) (Project, error) {
	return resolve(ctx, tx, p, nil)
}

// Current returns the project of a place as Resolve would find it, without creating or
// changing anything; ok is false if the project does not exist, and for the root of a
// file system, which belongs to no project (observations §8).
func Current(ctx context.Context, tx *store.Tx, p Location) (q Project, ok bool, err error) {
	if p.kind == atTop && p.Identity == "" {
		return Project{}, false, nil
	}
	m, ok, err := match(ctx, tx, p, nil)
	return m.project, ok, err
}

// CurrentWithIDs is Current with all ids of the place's project: its own first, then the
// id of the place's project before a merge. There are none without a project.
func CurrentWithIDs(ctx context.Context, tx *store.Tx, p Location) (q Project, ids []string, err error) {
	if p.kind == atTop && p.Identity == "" {
		return q, nil, nil
	}
	m, ok, err := match(ctx, tx, p, nil)
	if err != nil || !ok {
		return q, nil, err
	}
	ids, err = tx.Texts(ctx, selectFormerIDs, m.project.ID, p.recordedRoot())
	return m.project, append([]string{m.project.ID}, ids...), err
}

// Find returns the project of an id or alias. Else it tries a key, a uid, a remote's URL
// in any form, and the path of a checkout. ok is false if there is none. The id of a
// merged project means the project that it was merged into.
func Find(ctx context.Context, tx *store.Tx, name string) (q Project, ok bool, err error) {
	err = tx.Get(ctx, scanProject(&q), selectByName, name)
	if err == nil || ignoreNone(err) != nil {
		return q, err == nil, err
	}
	if len(name) != uidDigits && !strings.ContainsAny(name, `/\:`) {
		return q, false, nil
	}
	if IsAbsolute(name) {
		clean := gitdir.Canonical(filepath.Clean(name))
		err = tx.Get(ctx, scanProject(&q), selectByCheckoutPath, clean, filepath.Join(clean, ".git"))
		return q, err == nil, ignoreNone(err)
	}
	return FindKey(ctx, tx, name)
}

// Ensure returns the project of an id or alias. If there is none, it creates one with
// that id and without a place. It is idempotent. An invalid id is Invalid.
func Ensure(ctx context.Context, tx *store.Tx, id string) (Project, error) {
	q, ok, err := Find(ctx, tx, id)
	if err != nil || ok {
		return q, err
	}
	return insert(ctx, tx, Project{ID: id, Name: id})
}

func resolve(ctx context.Context, tx *store.Tx, p Location, inherited *Project) (Project, error) {
	m, ok, err := match(ctx, tx, p, inherited)
	switch {
	case err != nil:
		return Project{}, err
	case ok:
		err = m.update(ctx, tx, p) // may change the project
		return m.project, err
	}
	id, err := freeID(ctx, tx, p)
	if err != nil {
		return Project{}, err
	}
	q, err := insert(ctx, tx, Project{ID: id, Name: p.Name, Identity: p.Identity, Root: p.recordedRoot(), OriginURL: p.OriginURL}, p.newKeys()...)
	if err != nil || p.Identity == "" {
		return q, err
	}
	c := p.checkout(q)
	return q, c.put(ctx, tx)
}

// newKeys returns the keys of a new project at this place.
func (p Location) newKeys() []string {
	if p.Identity == "" && p.kind == atTop {
		return nil
	}
	return []string{p.key()}
}

// checkout returns the place's checkout as a new checkout of a project.
func (p Location) checkout(q Project) Checkout {
	return Checkout{Identity: p.Identity, Root: p.recordedRoot(), Remote: p.Remote, project: q.Key, birth: birthOf(p.Identity)}
}

// matched is the project of a place, with the changes that must be written for the place.
type matched struct {
	project  Project
	checkout *Checkout // to store; nil if nothing changes
	moved    string    // the git directory under which the checkout was stored before
	newKey   string    // the project gets this key
	adopts   bool      // a repository takes over the project of its folder
}

// match finds a place's project among the rows; ok is false if there is none.
func match(ctx context.Context, tx *store.Tx, p Location, inherited *Project) (m matched, ok bool, err error) {
	if p.Gone {
		if m.project, ok, err = byRoot(ctx, tx, p); ok || err != nil {
			return m, ok, err
		}
	}
	if p.Identity == "" {
		if inherited != nil {
			return matched{project: *inherited}, true, nil
		}
		m.project, ok, err = byFolder(ctx, tx, p)
		return m, ok, err
	}
	c, q, ok, err := checkoutAt(ctx, tx, p.Identity)
	switch {
	case err != nil:
		return m, false, err
	case ok && (p.Remote == c.Remote || p.Remote == "" || p.Remote == c.Undecided):
		return matched{project: q}, true, nil
	case ok && !p.isReplaced(c):
		m, err = changedRemote(ctx, tx, p, c, q)
		return m, err == nil, err
	}
	return newCheckout(ctx, tx, p)
}

// isReplaced reports whether another repository, a clone of its present remote, replaces
// the checkout.
func (p Location) isReplaced(c Checkout) bool {
	return c.birth != "" && c.birth != birthOf(p.Identity) && p.clonedFrom() == p.Remote
}

// changedRemote returns the project of a checkout whose remote has changed. A pinned
// checkout adds no key to its project.
func changedRemote(ctx context.Context, tx *store.Tx, p Location, c Checkout, q Project) (matched, error) {
	m := matched{project: q, checkout: &c}
	has, taken, err := owner(ctx, tx, p.Remote)
	switch {
	case err != nil:
		return m, err
	case taken && has.Key != q.Key && !c.Pinned:
		c.Undecided = p.Remote
		return m, nil
	case !taken && !c.Pinned:
		m.newKey = p.Remote
	}
	c.Remote, c.Undecided = p.Remote, ""
	if c.birth == "" {
		c.birth = birthOf(p.Identity)
	}
	return m, nil
}

// newCheckout finds the project of a new checkout. In this order: the project of a
// checkout that was moved here, the one with its remote's key, that of the checkout it
// was cloned from on this machine, that of its path.
func newCheckout(ctx context.Context, tx *store.Tx, p Location) (m matched, ok bool, err error) {
	if m, ok, err = movedCheckout(ctx, tx, p); ok || err != nil {
		return m, ok, err
	}
	m.project, ok, err = owner(ctx, tx, p.key())
	if path, local := strings.CutPrefix(p.Remote, pathKind); !ok && err == nil && local {
		m.project, ok, err = byLocalRemote(ctx, tx, path)
	}
	if !ok && err == nil && p.Remote != "" {
		m.project, ok, err = owner(ctx, tx, repositoryKey(p.Identity))
		if ok { // project of the folder, or of a repository without a remote
			m.newKey = p.Remote
		}
	}
	if !ok || err != nil {
		return m, false, err
	}
	c := p.checkout(m.project)
	m.checkout = &c
	m.adopts = m.project.Root == c.Root || gitdir.PathIsGone(m.project.Root)
	return m, true, nil
}

// movedCheckout finds the checkout that was moved to a place: its git directory no longer
// exists, and its reflog begins like the place's.
func movedCheckout(ctx context.Context, tx *store.Tx, p Location) (m matched, ok bool, err error) {
	birth := birthOf(p.Identity)
	if birth == "" {
		return m, false, nil
	}
	var c Checkout
	err = eachCheckout(ctx, tx, func(old Checkout, q Project) error {
		if !ok && gitdir.PathIsGone(old.Identity) {
			m.project, c, ok = q, old, true
		}
		return nil
	}, selectCheckoutsBorn, birth)
	if !ok || err != nil {
		return m, false, err
	}
	gone := c.Identity
	c.Identity, c.Root = p.Identity, p.recordedRoot()
	if p.Remote != c.Remote && p.Remote != "" {
		m, err = changedRemote(ctx, tx, p, c, m.project)
	} else {
		m.checkout = &c
	}
	m.moved = gone
	m.adopts = m.project.Identity == gone
	return m, err == nil, err
}

// byLocalRemote finds the project of the checkout that is the remote of a clone on this
// machine.
func byLocalRemote(ctx context.Context, tx *store.Tx, path string) (q Project, ok bool, err error) {
	for _, identity := range [...]string{filepath.Join(path, ".git"), path + ".git", path} {
		if _, q, ok, err = checkoutAt(ctx, tx, identity); ok || err != nil {
			return q, ok, err
		}
	}
	return q, false, nil
}

// byFolder finds the project of a place outside a repository.
func byFolder(ctx context.Context, tx *store.Tx, p Location) (Project, bool, error) {
	if p.kind != inFolder {
		return Find(ctx, tx, p.Slug)
	}
	return owner(ctx, tx, p.folderKey())
}

// byRoot finds the project whose stored root is the nearest one above a missing place,
// and nearer than any existing repository. It ignores the home directory and existing
// plain folders, because they say nothing about missing folders below them.
func byRoot(ctx context.Context, tx *store.Tx, p Location) (q Project, ok bool, err error) {
	roots, err := json.Marshal(p.foldersAbove())
	if err != nil {
		return q, false, err
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var c Project
		var root, identity string
		if err := r.Scan(append(scanProject(&c), &root, &identity)...); err != nil {
			return err
		}
		if !ok && len(root) > len(p.Root) && (identity != "" || gitdir.PathIsGone(root)) {
			c.Root, c.Identity = root, identity
			q, ok = c, true
		}
		return nil
	}, selectByRoot, string(roots))
	return q, ok, err
}

// foldersAbove returns a place's folder and its ancestors, in both spellings, without
// roots of file systems and the home directory.
func (p Location) foldersAbove() []string {
	dirs := []string{}
	if len(p.Cwd) > gitdir.MaxPath {
		return dirs
	}
	realHome := gitdir.Canonical(p.Home)
	for _, dir := range [...]string{p.Cwd, p.real} {
		for range gitdir.MaxLevels {
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

// update writes the changes that a place causes in its project.
func (m *matched) update(ctx context.Context, tx *store.Tx, p Location) error {
	if m.checkout == nil {
		return nil
	}
	if m.moved != "" {
		if _, err := tx.Exec(ctx, deleteCheckout, m.moved); err != nil {
			return err
		}
	}
	if err := m.checkout.put(ctx, tx); err != nil {
		return err
	}
	if m.newKey != "" {
		if err := addKey(ctx, tx, m.project.Key, m.newKey); err != nil {
			return err
		}
	}
	switch {
	case m.adopts:
		q := Project{Key: m.project.Key, Name: p.Name, Identity: p.Identity, Root: p.recordedRoot(), OriginURL: p.OriginURL}
		if err := q.setPlace(ctx, tx); err != nil {
			return err
		}
	case m.newKey != "":
		if _, err := tx.Exec(ctx, updateOrigin, p.OriginURL, m.project.Key); err != nil {
			return err
		}
	default:
		return nil
	}
	row, err := logProject(ctx, tx, m.project.Key)
	m.project = row
	return err
}

// setPlace stores a project's name and first checkout. It removes that checkout from
// other projects.
func (q *Project) setPlace(ctx context.Context, tx *store.Tx) error {
	if _, err := tx.Exec(ctx, clearIdentity, q.Identity); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, updatePlace, q.Name, null(q.Identity), null(q.Root), null(q.OriginURL), q.Key)
	return err
}

// freeID returns the id for a new project at a place: its slug, with a suffix if another
// project has the slug.
func freeID(ctx context.Context, tx *store.Tx, p Location) (string, error) {
	if p.Identity == "" && p.kind != inFolder {
		return p.Slug, nil // match would have found it
	}
	for n := -1; n < maxSuffixes; n++ {
		id := p.Slug
		if n >= 0 {
			id = suffixed(p.Slug, p.suffixes(), n)
		} else if isReserved(id) {
			continue
		}
		if _, taken, err := Find(ctx, tx, id); err != nil || !taken {
			return id, err
		}
	}
	return "", fault.Newf(fault.Conflict, CodeTaken, "every id for a repository called %s is taken", p.Slug)
}

// suffixes returns the path whose hash becomes a suffix.
func (p Location) suffixes() string {
	if p.Identity == "" {
		return p.subject
	}
	return p.Identity
}

// insert creates a project with keys that no project has.
func insert(ctx context.Context, tx *store.Tx, q Project, keys ...string) (Project, error) {
	if err := checkID(q.ID); err != nil { // from Ensure, or from a Location that Locate did not create
		return Project{}, err
	}
	if _, err := tx.Exec(ctx, clearIdentity, q.Identity); err != nil {
		return Project{}, err
	}
	res, err := tx.Exec(ctx, insertProject, q.ID, q.Name, null(q.Identity), null(q.Root), null(q.OriginURL), tx.Now().Unix(), tx.Now().UnixNano())
	if err != nil {
		return Project{}, err
	}
	if q.Key, err = res.LastInsertId(); err != nil {
		return Project{}, err
	}
	if err := addKeys(ctx, tx, q.Key, keys); err != nil {
		return Project{}, err
	}
	return logProject(ctx, tx, q.Key)
}

// document is a project in the change log.
type document struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	About      string   `json:"description,omitempty"`
	UID        string   `json:"uid,omitempty"`
	Keys       []string `json:"keys,omitempty"`
	Root       string   `json:"root,omitempty"`
	OriginURL  string   `json:"origin_url,omitempty"`
	CreatedAt  int64    `json:"created_at"` // Unix seconds
	CreatedNS  int64    `json:"created_ns,omitempty"`
	Aliases    []string `json:"aliases"`
	MergedInto string   `json:"merged_into,omitempty"` // id of the project that got all its data, including sessions
}

// logProject appends a project's present row to the change log and returns it.
func logProject(ctx context.Context, tx *store.Tx, key int64) (Project, error) {
	return logProjectAt(ctx, tx, key, 0)
}

// logProjectAt is logProject with a time in Unix nanoseconds; 0 means the time of the
// transaction.
func logProjectAt(ctx context.Context, tx *store.Tx, key, at int64) (Project, error) {
	var q Project
	d := document{}
	if err := tx.Get(ctx, append(scanProject(&q), &d.CreatedAt, &d.CreatedNS, &d.About, &d.MergedInto), selectOwnRow, key); err != nil {
		return q, err
	}
	d.ID, d.Name, d.UID, d.Root, d.OriginURL = q.ID, q.Name, q.UID, q.Root, q.OriginURL
	var err error
	if d.Keys, err = tx.Texts(ctx, selectKeys, key); err != nil {
		return q, err
	}
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
	return []any{&q.Key, &q.ID, &q.Name, &q.UID, &q.Identity, &q.Root, &q.OriginURL}
}

// ignoreNone returns nil for a missing row.
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
