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
	selectDirectoryProject = ProjectColumns + `WHERE m.human_key = ? AND m.identity_mode = '` + ModeDir + `' ORDER BY m.id LIMIT 1`
	selectSlugTaken        = `SELECT EXISTS (SELECT 1 FROM mail_projects WHERE slug = ?)`
	SelectHasMail          = `SELECT EXISTS (SELECT 1 FROM mail_projects WHERE project_key = ?)`

	// Older versions, and a reindex of a project without a remote, store a repository's mail
	// with a shared row that has no location.
	selectPlaceless = ProjectColumns + `WHERE m.human_key = ?1 AND m.identity_mode <> '` + ModeDir + `'
AND lower(ifnull(m.normalized_remote, '')) = lower(?2) AND p.root IS NULL AND p.identity IS NULL AND p.origin_url IS NULL`
)

// Target is a project_key before it is looked up. It is created before a transaction begins,
// so that no other call waits while files are read.
type Target struct {
	Key  string
	Path *Identity        // of an absolute path
	row  *project.Project // the shared row, if the caller has it; Key is then its id
}

// TargetOf returns the target for a project that the caller has found.
func TargetOf(q project.Project) *Target { return &Target{Key: q.ID, row: &q} }

// Target parses a project_key (mail §2).
//
// Errors: MISSING_FIELD for a blank key, CONFIGURATION_ERROR for a placeholder,
// INVALID_ARGUMENT for invalid text.
func (c *Caller) Target(key string) (*Target, error) {
	if err := CheckText("project_key", key); err != nil {
		return nil, err
	}
	t := &Target{Key: strings.TrimSpace(key)}
	switch {
	case t.Key == "":
		return nil, MissingField("project_key", "name the project by its absolute path, slug or id")
	case IsPlaceholder(t.Key):
		return nil, PlaceholderGiven("project_key", t.Key, "the absolute path of the project's directory")
	case !project.IsAbsolute(t.Key):
		return t, nil
	}
	var err error
	t.Path, err = Identify(t.Key, c.Place.Home, "")
	return t, err
}

// Find returns the project that the key refers to, nil if there is none. Its human_key is the
// project's current path.
func (t *Target) Find(ctx context.Context, tx *store.Tx) (p *Project, err error) {
	switch {
	case t.Path != nil:
		p, err = t.Path.find(ctx, tx)
	case t.row != nil:
		p, err = QueryProject(ctx, tx, SelectProjectByKey, t.row.Key)
	default:
		p, err = t.findNamed(ctx, tx)
	}
	if p != nil && p.IsRepository() && PathIsGone(p.HumanKey) {
		switch {
		case t.Path != nil && t.Path.IsRepository():
			p.HumanKey = t.Path.HumanKey
		case p.root != "" && !PathIsGone(p.root):
			p.HumanKey = p.root
		}
	}
	return p, err
}

// findNamed returns the project with a given slug, id or alias, project_uid, key, remote URL
// or number, tried in this order; nil if there is none.
func (t *Target) findNamed(ctx context.Context, tx *store.Tx) (*Project, error) {
	if p, err := QueryProject(ctx, tx, selectProjectBySlug, t.Key); p != nil || err != nil {
		return p, err
	}
	row, ok, err := project.Find(ctx, tx, t.Key)
	if err != nil {
		return nil, err
	}
	if ok {
		if p, err := QueryProject(ctx, tx, SelectProjectByKey, row.Key); p != nil || err != nil {
			return p, err
		}
	}
	if p, err := ProjectByUID(ctx, tx, strings.ToLower(t.Key)); p != nil || err != nil {
		return p, err
	}
	row, ok, err = project.FindKey(ctx, tx, t.Key)
	if err != nil {
		return nil, err
	}
	if ok {
		if p, err := QueryProject(ctx, tx, SelectProjectByKey, row.Key); p != nil || err != nil {
			return p, err
		}
	}
	if id, err := strconv.ParseInt(t.Key, 10, 64); err == nil && id > 0 {
		return QueryProject(ctx, tx, SelectProjectByID, id)
	}
	return nil, nil
}

// known returns the location of a project without mail that the key refers to, nil if there is
// none. A location that belongs to another project now does not count.
func (t *Target) known(ctx context.Context, tx *store.Tx, c Caller) (*Identity, error) {
	row, ok, err := t.sharedRow(ctx, tx)
	if err != nil || !ok || !project.IsAbsolute(row.Root) {
		return nil, err
	}
	i, err := Identify(row.Root, c.Place.Home, "")
	if err != nil {
		return nil, err
	}
	there, ok, err := project.Current(ctx, tx, i.Place)
	if err != nil || !ok || there.Key != row.Key {
		return nil, err
	}
	return i, nil
}

// sharedRow returns the row that all parts share for an id, an alias, a key, a uid or a
// remote's URL; ok is false if there is none.
func (t *Target) sharedRow(ctx context.Context, tx *store.Tx) (project.Project, bool, error) {
	if t.row != nil {
		return *t.row, true, nil
	}
	row, ok, err := project.Find(ctx, tx, t.Key)
	if ok || err != nil {
		return row, ok, err
	}
	return project.FindKey(ctx, tx, t.Key)
}

// find returns the project of a path, which is the project of its location. A directory that
// was made a separate project stays separate, inside a repository and after it becomes one.
func (i *Identity) find(ctx context.Context, tx *store.Tx) (*Project, error) {
	inRepository := i.Place.Identity != ""
	if inRepository && !i.asked && i.HumanKey != i.Place.Canonical() {
		p, err := i.findDirectory(ctx, tx)
		if p != nil {
			i.asDirectory()
		}
		if p != nil || err != nil {
			return p, err
		}
	}
	if i.IsRepository() || !inRepository {
		p, err := ProjectAt(ctx, tx, i.Place)
		if p != nil || err != nil || i.IsRepository() && i.asked {
			return p, err
		}
	}
	return i.findDirectory(ctx, tx)
}

// findDirectory returns the project whose directory is the path itself, nil if there is none.
func (i *Identity) findDirectory(ctx context.Context, tx *store.Tx) (*Project, error) {
	return QueryProject(ctx, tx, selectDirectoryProject, i.Place.Canonical())
}

// ProjectAt returns the mail project of the project that a location belongs to, nil if there
// is none.
func ProjectAt(ctx context.Context, tx *store.Tx, place project.Location) (*Project, error) {
	row, ok, err := project.Current(ctx, tx, place)
	if err != nil {
		return nil, err
	}
	if ok {
		if p, err := QueryProject(ctx, tx, SelectProjectByKey, row.Key); p != nil || err != nil {
			return p, err
		}
	}
	if place.Identity == "" {
		return nil, nil
	}
	remote := place.Remote
	if strings.HasPrefix(remote, LocalRemote) {
		remote = ""
	}
	return QueryProject(ctx, tx, selectPlaceless, place.Git().Main, remote)
}

func PathIsGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// NotFound returns the error for an unknown project_key, with similar projects as suggestions.
func (t *Target) NotFound(ctx context.Context, tx *store.Tx) error {
	all, err := Projects(ctx, tx)
	if err != nil {
		return err
	}
	near := make([]Suggestion, 0, len(all))
	for _, p := range all {
		s := Suggestion{Name: p.Slug}
		for _, name := range [...]string{p.Slug, p.ProductID, p.HumanKey, LastPart(p.HumanKey)} {
			s.Score = max(s.Score, likeness(t.Key, name))
		}
		near = append(near, s)
	}
	call := Call{Tool: "ensure_project", Arguments: map[string]any{"human_key": "/absolute/path/of/the/project"}}
	switch row, ok, err := t.sharedRow(ctx, tx); {
	case err != nil:
		return err
	case t.Path != nil:
		call.Arguments["human_key"] = t.Path.HumanKey
	case ok && row.Root != "":
		call.Arguments["human_key"] = row.Root
	}
	return NotFound("project", Clip(t.Key, MaxShown)).With("suggestions", BestSuggestions(near)).Suggest(call).
		Hint("name the project by its absolute path, slug or id; ensure_project makes one")
}

func Projects(ctx context.Context, tx *store.Tx) ([]*Project, error) {
	all := []*Project{}
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		p := &Project{Format: 1}
		all = append(all, p)
		return rows.Scan(p.Columns()...)
	}, selectProjects)
	return all, err
}

// ensure finds or creates the project of a path and updates the fields derived from files. The
// location becomes a checkout of the project.
func (i *Identity) ensure(ctx context.Context, tx *store.Tx, by Actor, archive Archive) (*Project, error) {
	p, err := i.find(ctx, tx)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return i.make(ctx, tx, by)
	}
	if i.IsRepository() {
		if p, err = i.adopt(ctx, tx, archive, p); err != nil {
			return nil, err
		}
	}
	moved := p.HumanKey != i.HumanKey
	if moved && !(p.IsRepository() && i.IsRepository() && PathIsGone(p.HumanKey)) || !moved && SameText(p.Remote, i.Remote) && p.FoldsCase == i.Git.FoldsCase {
		return p, nil // another checkout may have other settings
	}
	p.HumanKey, p.Remote, p.FoldsCase = i.HumanKey, i.Remote, i.Git.FoldsCase
	return p, Put(ctx, tx, by, p.ProductID, p)
}

// adopt stores the repository's location. It moves mail that was stored with a row without a
// location to the row of the repository.
func (i *Identity) adopt(ctx context.Context, tx *store.Tx, archive Archive, p *Project) (*Project, error) {
	row, err := project.Resolve(ctx, tx, i.Place)
	if err != nil || row.Key == p.RowKey || !p.IsRepository() {
		return p, err
	}
	if err := MoveRows(ctx, tx, archive, project.Project{Key: p.RowKey, ID: p.ProductID}, row); err != nil {
		return nil, err
	}
	return ProjectByUID(ctx, tx, p.UID)
}

func (i *Identity) make(ctx context.Context, tx *store.Tx, by Actor) (p *Project, err error) {
	p = &Project{HumanKey: i.HumanKey, Created: Now(tx), IdentityMode: i.Mode, Remote: i.Remote, FoldsCase: i.Git.FoldsCase, Format: 1}
	if p.ID, err = NextID(ctx, tx, "mail_projects"); err != nil {
		return nil, err
	}
	if p.UID, p.ProductID, err = i.names(ctx, tx); err != nil {
		return nil, err
	}
	if p.Slug, err = FreeSlug(ctx, tx, i.slug, p.HumanKey, p.UID); err != nil {
		return nil, err
	}
	if err := Put(ctx, tx, by, p.ProductID, p); err != nil {
		return nil, err
	}
	return ProjectByUID(ctx, tx, p.UID)
}

// FreeSlug returns the slug, with a suffix if another project has it.
func FreeSlug(ctx context.Context, tx *store.Tx, slug, humanKey, uid string) (string, error) {
	for _, slug := range [...]string{slug, slug + "-" + HashHex(humanKey, 6), slug + "-" + uid[:6]} {
		var taken bool
		if err := tx.Get(ctx, []any{&taken}, selectSlugTaken, slug); err != nil || !taken {
			return slug, err
		}
	}
	return slug + "-" + uid, nil
}

// names returns the project_uid of a new project and the id that all parts share. They are
// those of the location's project, unless it has mail already. A directory inside a repository
// gets its own.
func (i *Identity) names(ctx context.Context, tx *store.Tx) (uid, productID string, err error) {
	var row project.Project
	if i.IsRepository() || i.Place.Identity == "" {
		if row, err = project.Resolve(ctx, tx, i.Place); err != nil {
			return "", "", err
		}
		var taken bool
		if err := tx.Get(ctx, []any{&taken}, SelectHasMail, row.Key); err != nil {
			return "", "", err
		}
		if !taken {
			uid, err = i.freeUID(ctx, tx, row.UID, row.UID)
			return uid, row.ID, err
		}
	} else if row, _, err = project.Current(ctx, tx, i.Place); err != nil {
		return "", "", err
	}
	if uid, err = i.freeUID(ctx, tx, "", row.UID); err != nil {
		return "", "", err
	}
	productID, err = FreeProductID(ctx, tx, LastPart(i.HumanKey), uid)
	return uid, productID, err
}

// freeUID returns a uid that no project of mail has: wanted, or one derived from the path and
// from the uid of the enclosing project.
func (i *Identity) freeUID(ctx context.Context, tx *store.Tx, wanted, around string) (string, error) {
	for _, uid := range [...]string{wanted, HashHex(around+"\n"+i.HumanKey, uidDigits)} {
		if uid == "" {
			continue
		}
		if p, err := ProjectByUID(ctx, tx, uid); err != nil || p == nil {
			return uid, err
		}
	}
	id, err := NextID(ctx, tx, "mail_projects")
	return HashHex(around+"\n"+i.HumanKey+"\n"+strconv.FormatInt(id, 10), uidDigits), err
}

// FreeProductID returns an id that no project has: a word with the beginning of a uid as a
// suffix.
func FreeProductID(ctx context.Context, tx *store.Tx, word, uid string) (string, error) {
	if word = slugWord(word); word == "" {
		word = "project"
	}
	id := strings.TrimRight(Clip(word, 48), "-") + "-" + uid[:6]
	if _, taken, err := project.Find(ctx, tx, id); err != nil || !taken {
		return id, err
	}
	return "mail-" + uid, nil
}

// LastPart returns the last non-empty part of a path.
func LastPart(path string) string {
	path = strings.TrimRight(strings.ReplaceAll(path, `\`, "/"), "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

func SameText(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
