package mail

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	selectDirectoryProject = projectColumns + `WHERE m.human_key = ? AND m.identity_mode = '` + modeDir + `' ORDER BY m.id LIMIT 1`
	selectSlugTaken        = `SELECT EXISTS (SELECT 1 FROM mail_projects WHERE slug = ?)`
	selectProductTaken     = `SELECT EXISTS (SELECT 1 FROM mail_projects m JOIN projects p ON p.key = m.project_key WHERE p.id = ?)`
)

// EnsureArgs are the arguments of ensure_project.
type EnsureArgs struct {
	HumanKey     string
	IdentityMode string // "" for the repository, or else the directory
}

// ProjectInfo is what ensure_project answers. What files do not tell is null.
type ProjectInfo struct {
	ID            int64   `json:"id"`
	Slug          string  `json:"slug"`
	HumanKey      string  `json:"human_key"`
	Created       Time    `json:"created_at"`
	IdentityMode  string  `json:"identity_mode_used"`
	CanonicalPath string  `json:"canonical_path"`
	RepoRoot      *string `json:"repo_root"` // of the worktree
	GitCommonDir  *string `json:"git_common_dir"`
	Branch        *string `json:"branch"`
	WorktreeName  *string `json:"worktree_name"` // of a linked worktree
	FoldsCase     *bool   `json:"core_ignorecase"`
	Remote        *string `json:"normalized_remote"`
	UID           string  `json:"project_uid"`
	Discovery     *string `json:"discovery"` // always null
}

// EnsureProject makes a directory, or the repository that it is in, a project, or
// finds it (mail §4). Repeating it changes nothing. The directory need not exist.
//
// Errors: INVALID_ARGUMENT for a path that is not absolute and for an unknown mode,
// CONFIGURATION_ERROR for a placeholder.
func (o *Office) EnsureProject(ctx context.Context, c Caller, a EnsureArgs) (out ProjectInfo, err error) {
	t, err := ensuring(c, a)
	if err != nil {
		return out, mapped(err)
	}
	err = o.writeTo(ctx, c, t, func(_ context.Context, s *scope) error {
		out = s.projectInfo()
		return nil
	})
	return out, err
}

func ensuring(c Caller, a EnsureArgs) (*target, error) {
	if err := checkText("human_key", a.HumanKey); err != nil {
		return nil, err
	}
	key := strings.TrimSpace(a.HumanKey)
	if isPlaceholder(key) {
		return nil, placeholder("human_key", key, "the absolute path of the project's directory")
	}
	i, err := identify(key, c.Place.Home, a.IdentityMode)
	return &target{key: key, path: i}, err
}

// projectInfo is the project of a scope whose project_key is a path.
func (s *scope) projectInfo() ProjectInfo {
	i, p := s.path, s.p
	out := ProjectInfo{
		ID: p.ID, Slug: p.Slug, HumanKey: p.HumanKey, Created: p.Created, IdentityMode: i.mode, CanonicalPath: i.canonical,
		RepoRoot: orNil(i.git.Toplevel), GitCommonDir: orNil(i.git.Common), Branch: orNil(i.git.Branch), WorktreeName: orNil(i.git.Worktree),
		Remote: i.remote, UID: p.UID,
	}
	if i.git.Common != "" {
		out.FoldsCase = &i.git.FoldsCase
	}
	return out
}

// target is a project_key before it is looked up. What it takes to read files is
// done here, before a transaction holds anybody up.
type target struct {
	key  string
	path *identity // of an absolute path
}

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

// find looks a project up; nil if there is none.
func (t *target) find(ctx context.Context, tx *store.Tx) (*Project, error) {
	if t.path != nil {
		return t.path.find(ctx, tx)
	}
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
	if id, err := strconv.ParseInt(t.key, 10, 64); err == nil && id > 0 {
		return findProject(ctx, tx, selectProjectByID, id)
	}
	return nil, nil
}

// known is the path of the project that other parts know by the key, nil if none is.
func (t *target) known(ctx context.Context, tx *store.Tx, c Caller) (*identity, error) {
	row, ok, err := project.Find(ctx, tx, t.key)
	if err != nil || !ok || !project.IsAbsolute(row.Root) {
		return nil, err
	}
	return identify(row.Root, c.Place.Home, "")
}

// find looks for the project of a path: its repository's; but a directory that was
// made a project by itself stays one, also inside a repository and when it becomes
// one.
func (i *identity) find(ctx context.Context, tx *store.Tx) (*Project, error) {
	own := func() (*Project, error) { return projectByUID(ctx, tx, i.uid) }
	directory := func() (*Project, error) {
		return findProject(ctx, tx, selectDirectoryProject, i.place.Canonical())
	}
	switch {
	case i.asked:
		return own()
	case i.isRepository() && i.humanKey != i.place.Canonical():
		p, err := directory()
		if p != nil {
			i.asDirectory()
		}
		if p != nil || err != nil {
			return p, err
		}
		return own()
	}
	p, err := own()
	if p != nil || err != nil || i.committed {
		return p, err
	}
	return directory()
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
	switch row, ok, err := project.Find(ctx, tx, t.key); {
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

// ensure finds or makes the project of a path and brings what files tell of it up
// to date.
func (i *identity) ensure(ctx context.Context, tx *store.Tx, by Actor) (*Project, error) {
	p, err := i.find(ctx, tx)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return i.make(ctx, tx, by)
	}
	if p.HumanKey != i.humanKey || same(p.Remote, i.remote) && p.FoldsCase == i.git.FoldsCase {
		return p, nil // from elsewhere, a clone say, one may see it otherwise
	}
	p.Remote, p.FoldsCase = i.remote, i.git.FoldsCase
	return p, put(ctx, tx, by, p.ProductID, p)
}

func (i *identity) make(ctx context.Context, tx *store.Tx, by Actor) (p *Project, err error) {
	p = &Project{
		UID: i.uid, HumanKey: i.humanKey, Created: now(tx), IdentityMode: i.mode, Remote: i.remote, FoldsCase: i.git.FoldsCase, Format: 1,
	}
	if p.ID, err = nextID(ctx, tx, "mail_projects"); err != nil {
		return nil, err
	}
	if p.Slug, err = i.freeSlug(ctx, tx); err != nil {
		return nil, err
	}
	if p.ProductID, err = i.productID(ctx, tx); err != nil {
		return nil, err
	}
	if err := put(ctx, tx, by, p.ProductID, p); err != nil {
		return nil, err
	}
	return projectByUID(ctx, tx, p.UID)
}

// freeSlug is the identity's slug, with a suffix if another project has it.
func (i *identity) freeSlug(ctx context.Context, tx *store.Tx) (string, error) {
	for _, slug := range [...]string{i.slug, i.slug + "-" + hexOf(i.humanKey, 6), i.slug + "-" + i.uid[:6]} {
		var taken bool
		if err := tx.Get(ctx, []any{&taken}, selectSlugTaken, slug); err != nil || !taken {
			return slug, err
		}
	}
	return i.slug + "-" + i.uid, nil
}

// productID is the id under which all parts know the project: that of the place,
// unless another project of mail has it, as a directory inside a repository or one
// of the same name elsewhere.
func (i *identity) productID(ctx context.Context, tx *store.Tx) (string, error) {
	if i.isRepository() || i.place.Identity == "" {
		row, err := project.Resolve(ctx, tx, i.place)
		if err != nil {
			return "", err
		}
		var taken bool
		if err := tx.Get(ctx, []any{&taken}, selectProductTaken, row.ID); err != nil || !taken {
			return row.ID, err
		}
	}
	word := slugWord(lastPart(i.humanKey))
	if word == "" {
		word = "project"
	}
	id := strings.TrimRight(clip(word, 48), "-") + "-" + i.uid[:6]
	if _, taken, err := project.Find(ctx, tx, id); err != nil || !taken {
		return id, err
	}
	return "mail-" + i.uid, nil
}

// lastPart is the last part of a path that is not empty.
func lastPart(path string) string {
	path = strings.TrimRight(strings.ReplaceAll(path, `\`, "/"), "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

func same(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
