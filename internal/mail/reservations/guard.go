package reservations

import (
	"context"
	"database/sql"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"

	"cairn/internal/mail"
	"cairn/internal/pathpattern"
	"cairn/internal/project"
	"cairn/internal/store"
)

// GuardArgs are the files that a session is about to change.
type GuardArgs struct {
	Session string           // id of the session; its reservations and those of its agents do not count
	Further []string         // ids of other sessions of the same process, whose reservations do not count either
	Agent   string           // name in CAIRN_AGENT, whose reservations do not count either; "" for none
	Place   project.Location // of the session's working directory
	Paths   []string         // as the harness names them
	Names   []string         // as git names them: relative to the root of Place's worktree, with slashes
	Project string           // project_key that all files belong to; "" to derive the projects from the files
}

// Guarded is the result of Guard.
type Guarded struct {
	Managed   bool           // at least one of the files is in a project with mail
	Obstacles []ReservedFile // the latest expiry time first
	Names     []string       // of the agents that the session acts as; nil without obstacles
}

// ReservedFile is a file that another agent has reserved.
type ReservedFile struct {
	Path     string // relative to its worktree
	Holder   string
	Pattern  string
	Branch   string // of the holder, "" if unknown
	Worktree string // of the holder, "" if unknown or the main one
	Reason   string
	Since    mail.Time
	Until    mail.Time
}

// Guard finds the active, exclusive, non-advisory reservations of other agents that cover files
// (mail §8). It runs one query per project, whatever the number of files. The query selects by
// literal prefix, then each pattern is matched exactly. A file outside all projects of mail is
// never an obstacle. A reservation that yields to the session is no obstacle either (amendments
// §B.7). Guard changes nothing.
//
// Errors: those of reading; NOT_FOUND for an unknown Project. The end of ctx cancels it.
func (o *Reservations) Guard(ctx context.Context, a GuardArgs) (out Guarded, err error) {
	groups := worktreesOf(a.Place, a.Paths)
	for _, name := range a.Names {
		groups[0].files = append(groups[0].files, guardedFile{name, filepath.Join(a.Place.Root, filepath.FromSlash(name))})
	}
	var key *mail.Target
	if a.Project != "" {
		caller := mail.Caller{Place: a.Place}
		if key, err = caller.Target(a.Project); err != nil {
			return out, mail.Fault(err)
		}
	}
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, g := range groups {
			projects, err := g.projectsOr(ctx, tx, key)
			if err != nil {
				return err
			}
			for _, p := range projects {
				out.Managed = true
				s := &mail.CallTx{Kernel: o.Kernel, Tx: tx, Project: p, Now: mail.Now(tx), Caller: mail.Caller{Session: a.Session}}
				if err := obstacles(ctx, s, a, g, &out); err != nil {
					return err
				}
			}
		}
		if len(out.Obstacles) > 0 {
			out.Names, err = actingNames(ctx, tx, a)
		}
		return err
	})
	slices.SortStableFunc(out.Obstacles, func(a, b ReservedFile) int { return int(min(max(b.Until-a.Until, -1), 1)) })
	return out, err
}

// worktree is a set of files in one repository, or in one folder outside all repositories.
type worktree struct {
	place project.Location
	files []guardedFile
}

// guardedFile is a file by its path in its worktree, "" outside one, and by its absolute path.
// Links in the working directory's part of the absolute path are resolved.
type guardedFile struct{ rel, abs string }

// worktreesOf groups files by their worktree: that of the working directory, or another one. It
// locates the worktree once per folder.
func worktreesOf(place project.Location, paths []string) []*worktree {
	here := &worktree{place: place}
	groups := []*worktree{here}
	type seen struct {
		group *worktree
		rel   string
		inner *worktree // a repository inside the group's worktree
		under string    // the folder, relative to inner
	}
	folders := map[string]seen{}
	for _, p := range paths {
		abs := place.Absolute(p)
		if abs == "" {
			continue
		}
		dir, base := filepath.Dir(abs), filepath.Base(abs)
		f, ok := folders[dir]
		if !ok {
			f.group, f.rel = here, place.PathKey(abs)
			if project.IsAbsolute(f.rel) {
				f.group, f.rel = elsewhere(&groups, dir, abs, place.Home)
			}
			f.rel = path.Dir(f.rel)
			if f.group == here && hasRepositoryInside(place, dir) {
				if g, rel := elsewhere(&groups, dir, abs, place.Home); g.place.Identity != "" && g.place.Identity != place.Identity {
					f.inner, f.under = g, path.Dir(rel)
				}
			}
			folders[dir] = f
		}
		rel := ""
		if f.group.place.Identity != "" {
			rel = path.Join(f.rel, base)
		}
		if below, ok := beneath(place.Cwd, abs); ok {
			abs = filepath.Join(place.Canonical(), filepath.FromSlash(below))
		}
		f.group.files = append(f.group.files, guardedFile{rel, abs})
		if f.inner != nil {
			f.inner.files = append(f.inner.files, guardedFile{path.Join(f.under, base), abs})
		}
	}
	return groups
}

// hasRepositoryInside reports whether a folder is in a nested repository or worktree, such as a
// clone or submodule, inside the worktree of a place.
func hasRepositoryInside(place project.Location, dir string) bool {
	for place.Root != "" && isBelow(place.Root, dir) {
		if !mail.PathIsGone(filepath.Join(dir, ".git")) {
			return true
		}
		dir = filepath.Dir(dir)
	}
	return false
}

// isBelow reports whether a path is strictly below a folder. It compares names only.
func isBelow(root, path string) bool {
	rel, ok := beneath(root, path)
	return ok && rel != "."
}

// elsewhere returns the worktree of a file outside the working directory's worktree.
func elsewhere(groups *[]*worktree, dir, abs, home string) (*worktree, string) {
	place, err := project.Locate(dir, home)
	if err != nil || place.Identity == "" {
		place = project.Location{Cwd: dir, Home: home}
	}
	for _, g := range (*groups)[1:] {
		if g.place.Identity == place.Identity {
			return g, place.PathKey(abs)
		}
	}
	g := &worktree{place: place}
	*groups = append(*groups, g)
	return g, place.PathKey(abs)
}

// projectsOr returns the project that a key names or, without a key, all projects that the files
// may be in.
func (g *worktree) projectsOr(ctx context.Context, tx *store.Tx, key *mail.Target) ([]*mail.Project, error) {
	if key == nil {
		return g.projects(ctx, tx)
	}
	p, err := key.Find(ctx, tx)
	if err == nil && p == nil {
		err = key.NotFound(ctx, tx)
	}
	return []*mail.Project{p}, err
}

const selectFolderProjects = mail.ProjectColumns + `WHERE m.human_key IN (SELECT value FROM json_each(?)) AND m.identity_mode = '` + mail.ModeDir + `' ORDER BY m.id`

// projects returns the projects that the files may be in: the repository's project, and directory
// projects of folders above the files.
func (g *worktree) projects(ctx context.Context, tx *store.Tx) (all []*mail.Project, err error) {
	if len(g.files) == 0 {
		return nil, nil
	}
	if g.place.Identity != "" {
		p, err := mail.ProjectAt(ctx, tx, g.place)
		if err != nil {
			return nil, err
		}
		if p != nil && p.IsRepository() {
			all = append(all, p)
		}
	}
	list, err := json.Marshal(g.folders())
	if err != nil {
		return nil, err
	}
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		p := &mail.Project{Format: 1}
		err := rows.Scan(p.Columns()...)
		if len(all) == 0 || all[0].ID != p.ID {
			all = append(all, p)
		}
		return err
	}, selectFolderProjects, string(list))
	return all, err
}

// folders returns the folders above the files, each once.
func (g *worktree) folders() []string {
	known := map[string]bool{}
	var out []string
	for _, f := range g.files {
		for dir := filepath.Dir(f.abs); !known[dir]; dir = filepath.Dir(dir) {
			known[dir] = true
			out = append(out, dir)
		}
	}
	return out
}

// Exclusive, non-advisory reservations, without those of the session (selectForeign) or of several
// sessions (selectForeignToAll).
const (
	foreignWhere  = ` AND r.exclusive = 1 AND r.advisory = 0 AND a.name <> ?5 COLLATE NOCASE `
	selectForeign = selectHeldAt + foreignWhere + `
AND ifnull(r.session_key, 0) <> ifnull((SELECT key FROM sessions WHERE id = ?4), -1)
AND r.agent_id NOT IN (SELECT b.agent_id FROM mail_sessions b JOIN sessions s ON s.key = b.session_key WHERE s.id = ?4 AND b.ended_ts IS NULL)`
	selectForeignToAll = selectHeldAt + foreignWhere + `
AND ifnull(r.session_key, 0) NOT IN (SELECT key FROM sessions WHERE id IN (SELECT value FROM json_each(?4)))
AND r.agent_id NOT IN (SELECT b.agent_id FROM sessions s CROSS JOIN mail_sessions b ON b.session_key = s.key
    WHERE s.id IN (SELECT value FROM json_each(?4)) AND b.ended_ts IS NULL)`
)

// obstacles adds the reservations in one project that block the files.
func obstacles(ctx context.Context, s *mail.CallTx, a GuardArgs, g *worktree, out *Guarded) error {
	if err := AdvanceClock(ctx, s); err != nil {
		return err
	}
	files, prefixes := within(s, a, g)
	list, err := json.Marshal(prefixes)
	if err != nil {
		return err
	}
	query, own := selectForeign, a.Session
	if len(a.Further) > 0 {
		all, err := json.Marshal(append([]string{a.Session}, a.Further...))
		if err != nil {
			return err
		}
		query, own = selectForeignToAll, string(all)
	}
	foreign := map[string][]*activeReservation{}
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		h, err := scanHeld(s, rows)
		if err != nil {
			return err
		}
		h.pattern = StoredPattern(h.PathPattern, s.Project.FoldsCase)
		prefix := h.pattern.LiteralPrefix()
		foreign[prefix] = append(foreign[prefix], h)
		return nil
	}, query, s.Project.ID, s.Now, string(list), own, a.Agent)
	if err != nil || len(foreign) == 0 {
		return err
	}
	for _, f := range files {
		for _, prefix := range f.Prefixes() {
			for _, h := range foreign[prefix] {
				if !h.pattern.Matches(f) {
					continue
				}
				yields, err := yields(ctx, s, h)
				if err != nil {
					return err
				}
				if !yields {
					out.Obstacles = append(out.Obstacles, h.obstacle(f))
				}
			}
		}
	}
	return nil
}

// within returns the files of a worktree that are in the project. prefixes contains, once each,
// the literal prefixes of all patterns that could cover one of the files.
func within(s *mail.CallTx, a GuardArgs, g *worktree) (files []pathpattern.Path, prefixes []string) {
	seen := map[string]bool{}
	prefixes = []string{}
	for _, f := range g.files {
		rel := f.rel
		if s.Project.IdentityMode == mail.ModeDir {
			below, ok := beneath(s.Project.HumanKey, f.abs)
			if ok || a.Project == "" && !s.Project.IsRepository() {
				rel = below
			}
		}
		parsed, err := pathpattern.ParsePath(rel)
		if err != nil {
			continue // not in this project
		}
		files = append(files, parsed)
		for _, prefix := range parsed.Prefixes() {
			if !seen[prefix] {
				seen[prefix] = true
				prefixes = append(prefixes, prefix)
			}
		}
	}
	return files, prefixes
}

func (h *activeReservation) obstacle(f pathpattern.Path) ReservedFile {
	o := ReservedFile{Path: f.String(), Holder: h.Agent, Pattern: h.PathPattern, Reason: h.Reason, Since: h.Created, Until: h.Expires}
	if h.branch != nil {
		o.Branch = *h.branch
	}
	if h.worktree != nil {
		o.Worktree = *h.worktree
	}
	return o
}

const selectActingNames = `SELECT a.name FROM sessions s CROSS JOIN mail_sessions b ON b.session_key = s.key CROSS JOIN mail_agents a ON a.id = b.agent_id
WHERE s.id = ? AND b.ended_ts IS NULL AND a.retired_ts IS NULL ORDER BY b.bound_ts, a.id`

// actingNames returns the names of the agents that the guarded session acts as.
func actingNames(ctx context.Context, tx *store.Tx, a GuardArgs) (names []string, err error) {
	if a.Agent != "" {
		return []string{a.Agent}, nil
	}
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	}, selectActingNames, a.Session)
	return names, err
}
