package mail

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	selectDirectoryProject = projectColumns + `WHERE m.human_key = ? AND m.identity_mode = '` + modeDir + `' ORDER BY m.id LIMIT 1`
	selectSlugTaken        = `SELECT EXISTS (SELECT 1 FROM mail_projects WHERE slug = ?)`
	selectHasMail          = `SELECT EXISTS (SELECT 1 FROM mail_projects WHERE project_key = ?)`

	// Older versions, and a reindex of a project without a remote, store a repository's
	// mail with a shared row that has no place.
	selectPlaceless = projectColumns + `WHERE m.human_key = ?1 AND m.identity_mode <> '` + modeDir + `'
AND lower(ifnull(m.normalized_remote, '')) = lower(?2) AND p.root IS NULL AND p.identity IS NULL AND p.origin_url IS NULL`
)

// target is a project_key before it is looked up. What it takes to read files is
// done here, before a transaction holds anybody up.
type target struct {
	key  string
	path *identity        // of an absolute path
	row  *project.Project // the shared row, where the caller has it; key is its id then
}

// targetOf returns the target for a project that the caller has found.
func targetOf(q project.Project) *target { return &target{key: q.ID, row: &q} }

// target reads a project_key (mail §2).
//
// Errors: MISSING_FIELD for a blank one, CONFIGURATION_ERROR for a placeholder,
// INVALID_ARGUMENT for broken text.
func (c *Caller) target(key string) (*target, error) {
	if err := checkText("project_key", key); err != nil {
		return nil, err
	}
	t := &target{key: strings.TrimSpace(key)}
	switch {
	case t.key == "":
		return nil, missing("project_key", "name the project by its absolute path, slug or id")
	case isPlaceholder(t.key):
		return nil, placeholder("project_key", t.key, "the absolute path of the project's directory")
	case !project.IsAbsolute(t.key):
		return t, nil
	}
	var err error
	t.path, err = identify(t.key, c.Place.Home, "")
	return t, err
}

// find returns the project that the key names, nil without one. Its human_key is where
// the project is now.
func (t *target) find(ctx context.Context, tx *store.Tx) (p *Project, err error) {
	switch {
	case t.path != nil:
		p, err = t.path.find(ctx, tx)
	case t.row != nil:
		p, err = findProject(ctx, tx, selectProjectByKey, t.row.Key)
	default:
		p, err = t.findNamed(ctx, tx)
	}
	if p != nil && p.isRepository() && pathIsGone(p.HumanKey) {
		switch {
		case t.path != nil && t.path.isRepository():
			p.HumanKey = t.path.humanKey
		case p.root != "" && !pathIsGone(p.root):
			p.HumanKey = p.root
		}
	}
	return p, err
}

// findNamed returns the project that a slug, an id or alias, a project_uid, a key, a
// remote's URL or a number names, in this order; nil without one.
func (t *target) findNamed(ctx context.Context, tx *store.Tx) (*Project, error) {
	if p, err := findProject(ctx, tx, selectProjectBySlug, t.key); p != nil || err != nil {
		return p, err
	}
	row, ok, err := project.Find(ctx, tx, t.key)
	if err != nil {
		return nil, err
	}
	if ok {
		if p, err := findProject(ctx, tx, selectProjectByKey, row.Key); p != nil || err != nil {
			return p, err
		}
	}
	if p, err := projectByUID(ctx, tx, strings.ToLower(t.key)); p != nil || err != nil {
		return p, err
	}
	row, ok, err = project.FindKey(ctx, tx, t.key)
	if err != nil {
		return nil, err
	}
	if ok {
		if p, err := findProject(ctx, tx, selectProjectByKey, row.Key); p != nil || err != nil {
			return p, err
		}
	}
	if id, err := strconv.ParseInt(t.key, 10, 64); err == nil && id > 0 {
		return findProject(ctx, tx, selectProjectByID, id)
	}
	return nil, nil
}

// known returns the place of a project without mail that the key names, nil without one.
// A place that belongs to another project by now does not count.
func (t *target) known(ctx context.Context, tx *store.Tx, c Caller) (*identity, error) {
	row, ok, err := t.sharedRow(ctx, tx)
	if err != nil || !ok || !project.IsAbsolute(row.Root) {
		return nil, err
	}
	i, err := identify(row.Root, c.Place.Home, "")
	if err != nil {
		return nil, err
	}
	there, ok, err := project.Current(ctx, tx, i.place)
	if err != nil || !ok || there.Key != row.Key {
		return nil, err
	}
	return i, nil
}

// sharedRow returns the row that all parts share for an id, an alias, a key, a uid or a
// remote's URL; ok is false without one.
func (t *target) sharedRow(ctx context.Context, tx *store.Tx) (project.Project, bool, error) {
	if t.row != nil {
		return *t.row, true, nil
	}
	row, ok, err := project.Find(ctx, tx, t.key)
	if ok || err != nil {
		return row, ok, err
	}
	return project.FindKey(ctx, tx, t.key)
}

// find returns the project of a path: that of its place. A directory that was made a
// separate project stays one, also inside a repository and when it becomes one.
func (i *identity) find(ctx context.Context, tx *store.Tx) (*Project, error) {
	inRepository := i.place.Identity != ""
	if inRepository && !i.asked && i.humanKey != i.place.Canonical() {
		p, err := i.findDirectory(ctx, tx)
		if p != nil {
			i.asDirectory()
		}
		if p != nil || err != nil {
			return p, err
		}
	}
	if i.isRepository() || !inRepository {
		p, err := projectAt(ctx, tx, i.place)
		if p != nil || err != nil || i.isRepository() && i.asked {
			return p, err
		}
	}
	return i.findDirectory(ctx, tx)
}

// findDirectory returns the project that the path's directory itself is, nil if it is
// not one.
func (i *identity) findDirectory(ctx context.Context, tx *store.Tx) (*Project, error) {
	return findProject(ctx, tx, selectDirectoryProject, i.place.Canonical())
}

// projectAt returns the mail project of the project that a place belongs to, nil without
// one.
func projectAt(ctx context.Context, tx *store.Tx, place project.Location) (*Project, error) {
	row, ok, err := project.Current(ctx, tx, place)
	if err != nil {
		return nil, err
	}
	if ok {
		if p, err := findProject(ctx, tx, selectProjectByKey, row.Key); p != nil || err != nil {
			return p, err
		}
	}
	if place.Identity == "" {
		return nil, nil
	}
	remote := place.Remote
	if strings.HasPrefix(remote, localRemote) {
		remote = ""
	}
	return findProject(ctx, tx, selectPlaceless, place.Git().Main, remote)
}

func pathIsGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// notFound is the error for a project_key that names nothing, with what looks like
// it.
func (t *target) notFound(ctx context.Context, tx *store.Tx) error {
	all, err := projects(ctx, tx)
	if err != nil {
		return err
	}
	near := make([]Suggestion, 0, len(all))
	for _, p := range all {
		s := Suggestion{Name: p.Slug}
		for _, name := range [...]string{p.Slug, p.ProductID, p.HumanKey, lastPart(p.HumanKey)} {
			s.Score = max(s.Score, likeness(t.key, name))
		}
		near = append(near, s)
	}
	call := Call{Tool: "ensure_project", Arguments: map[string]any{"human_key": "/absolute/path/of/the/project"}}
	switch row, ok, err := t.sharedRow(ctx, tx); {
	case err != nil:
		return err
	case t.path != nil:
		call.Arguments["human_key"] = t.path.humanKey
	case ok && row.Root != "":
		call.Arguments["human_key"] = row.Root
	}
	return notFound("project", clip(t.key, maxShown)).with("suggestions", best(near)).suggest(call).
		hint("name the project by its absolute path, slug or id; ensure_project makes one")
}

func projects(ctx context.Context, tx *store.Tx) ([]*Project, error) {
	all := []*Project{}
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		p := &Project{Format: 1}
		all = append(all, p)
		return rows.Scan(p.columns()...)
	}, selectProjects)
	return all, err
}

// ensure finds or creates the project of a path and updates what files say about it.
// The place becomes a checkout of its project.
func (i *identity) ensure(ctx context.Context, tx *store.Tx, by Actor, archive Archive) (*Project, error) {
	p, err := i.find(ctx, tx)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return i.make(ctx, tx, by)
	}
	if i.isRepository() {
		if p, err = i.adopt(ctx, tx, archive, p); err != nil {
			return nil, err
		}
	}
	moved := p.HumanKey != i.humanKey
	if moved && !(p.isRepository() && i.isRepository() && pathIsGone(p.HumanKey)) || !moved && same(p.Remote, i.remote) && p.FoldsCase == i.git.FoldsCase {
		return p, nil // another checkout may have other settings
	}
	p.HumanKey, p.Remote, p.FoldsCase = i.humanKey, i.remote, i.git.FoldsCase
	return p, put(ctx, tx, by, p.ProductID, p)
}

// adopt stores the repository's place, and gives its row the mail that was stored with a
// row without a place.
func (i *identity) adopt(ctx context.Context, tx *store.Tx, archive Archive, p *Project) (*Project, error) {
	row, err := project.Resolve(ctx, tx, i.place)
	if err != nil || row.Key == p.key || !p.isRepository() {
		return p, err
	}
	if err := MoveRows(ctx, tx, archive, project.Project{Key: p.key, ID: p.ProductID}, row); err != nil {
		return nil, err
	}
	return projectByUID(ctx, tx, p.UID)
}

func (i *identity) make(ctx context.Context, tx *store.Tx, by Actor) (p *Project, err error) {
	p = &Project{HumanKey: i.humanKey, Created: now(tx), IdentityMode: i.mode, Remote: i.remote, FoldsCase: i.git.FoldsCase, Format: 1}
	if p.ID, err = nextID(ctx, tx, "mail_projects"); err != nil {
		return nil, err
	}
	if p.UID, p.ProductID, err = i.names(ctx, tx); err != nil {
		return nil, err
	}
	if p.Slug, err = freeSlug(ctx, tx, i.slug, p.HumanKey, p.UID); err != nil {
		return nil, err
	}
	if err := put(ctx, tx, by, p.ProductID, p); err != nil {
		return nil, err
	}
	return projectByUID(ctx, tx, p.UID)
}

// freeSlug returns a slug, with a suffix if another project has it.
func freeSlug(ctx context.Context, tx *store.Tx, slug, humanKey, uid string) (string, error) {
	for _, slug := range [...]string{slug, slug + "-" + hexOf(humanKey, 6), slug + "-" + uid[:6]} {
		var taken bool
		if err := tx.Get(ctx, []any{&taken}, selectSlugTaken, slug); err != nil || !taken {
			return slug, err
		}
	}
	return slug + "-" + uid, nil
}

// names returns the project_uid of a new project and the id under which all parts know
// it: those of the place's project, unless that has mail already. A directory inside a
// repository gets its own.
func (i *identity) names(ctx context.Context, tx *store.Tx) (uid, productID string, err error) {
	var row project.Project
	if i.isRepository() || i.place.Identity == "" {
		if row, err = project.Resolve(ctx, tx, i.place); err != nil {
			return "", "", err
		}
		var taken bool
		if err := tx.Get(ctx, []any{&taken}, selectHasMail, row.Key); err != nil {
			return "", "", err
		}
		if !taken {
			uid, err = i.freeUID(ctx, tx, row.UID, row.UID)
			return uid, row.ID, err
		}
	} else if row, _, err = project.Current(ctx, tx, i.place); err != nil {
		return "", "", err
	}
	if uid, err = i.freeUID(ctx, tx, "", row.UID); err != nil {
		return "", "", err
	}
	productID, err = freeProductID(ctx, tx, lastPart(i.humanKey), uid)
	return uid, productID, err
}

// freeUID returns a uid that no project of mail has: the wanted one, or one that is
// derived from the path and from the uid of the project around it.
func (i *identity) freeUID(ctx context.Context, tx *store.Tx, wanted, around string) (string, error) {
	for _, uid := range [...]string{wanted, hexOf(around+"\n"+i.humanKey, uidDigits)} {
		if uid == "" {
			continue
		}
		if p, err := projectByUID(ctx, tx, uid); err != nil || p == nil {
			return uid, err
		}
	}
	id, err := nextID(ctx, tx, "mail_projects")
	return hexOf(around+"\n"+i.humanKey+"\n"+strconv.FormatInt(id, 10), uidDigits), err
}

// freeProductID returns an id that no project has: a word with a suffix of a uid.
func freeProductID(ctx context.Context, tx *store.Tx, word, uid string) (string, error) {
	if word = slugWord(word); word == "" {
		word = "project"
	}
	id := strings.TrimRight(clip(word, 48), "-") + "-" + uid[:6]
	if _, taken, err := project.Find(ctx, tx, id); err != nil || !taken {
		return id, err
	}
	return "mail-" + uid, nil
}

// lastPart is the last part of a path that is not empty.
func lastPart(path string) string {
	path = strings.TrimRight(strings.ReplaceAll(path, `\`, "/"), "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

func same(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
