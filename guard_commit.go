package cairn

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/githook"
	"cairn/internal/gitread"
	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

// The guards of a repository at commit and push (mail §8).

// GuardArgs say which guard is meant.
type GuardArgs struct {
	Project    string // a project_key; "" for the repository's own
	Repository string // the absolute path of the repository, or of anything in it
	PrePush    bool   // also, or when uninstalling only, at push
	Program    string // cairn's own, absolute, for the hooks to call; "" for the one that runs
}

// InstalledGuard is what install_precommit_guard answers.
type InstalledGuard struct {
	Hook string `json:"hook"` // the file that git runs before a commit

	Shared bool `json:"-"` // the folder of hooks serves other repositories too
}

// InstallPrecommitGuard puts the guard into the hooks that git runs in a
// repository, before a commit and, if that is asked for, a push. Other hooks are
// kept and run too. Repeating it changes nothing. It touches nothing but the
// folder of hooks.
//
// Where the project is another one than the repository's own, the guard asks for
// that one's reservations, with paths from the repository's root.
//
// Errors: INVALID_ARGUMENT where there is no repository, and for a project that is
// not the repository's own where the folder of hooks serves others too; NOT_FOUND
// for the project; git_missing (Unavailable); those of githook.Guard.Install.
func (c *Cairn) InstallPrecommitGuard(ctx context.Context, a GuardArgs) (out InstalledGuard, err error) {
	g, err := c.guardedRepository(ctx, a.Repository)
	if err != nil {
		return out, err
	}
	other, err := c.otherProject(ctx, a.Project, g.place)
	if err != nil {
		return out, err
	}
	if other != "" && g.shared {
		return out, invalidArgument("project_key", a.Project, "the hooks in "+g.hooks+" serve other repositories too (core.hooksPath); they can only ask for each repository's own project").
			WithHint("leave the project out, or set core.hooksPath for this repository alone")
	}
	if a.Program == "" {
		if a.Program, err = os.Executable(); err != nil {
			return out, fault.Wrap(err, fault.Unavailable, "no_program", "the system does not say where cairn's program is")
		}
	}
	for _, hook := range githook.Hooks() {
		if hook == githook.PrePush && !a.PrePush {
			continue
		}
		at := githook.Guard{Dir: g.hooks, Hook: hook, Program: filepath.ToSlash(a.Program), Project: other, Staged: gitread.StagedArgs()}
		if err := at.Install(); err != nil {
			return out, err
		}
	}
	return InstalledGuard{Hook: filepath.Join(g.hooks, githook.PreCommit), Shared: g.shared}, nil
}

// RemovedGuard is what uninstall_precommit_guard answers.
type RemovedGuard struct {
	Removed bool `json:"removed"` // false: there was no guard

	Kept []string `json:"-"` // what stays and why, a line each
}

// UninstallPrecommitGuard takes the guard out of the hooks of a repository, at
// commit and push, or with PrePush at push only, and puts what stood there back
// byte for byte. Hooks that were changed since are left alone.
//
// Errors: INVALID_ARGUMENT where there is no repository; git_missing (Unavailable);
// those of githook.Guard.Uninstall.
func (c *Cairn) UninstallPrecommitGuard(ctx context.Context, a GuardArgs) (out RemovedGuard, err error) {
	g, err := c.guardedRepository(ctx, a.Repository)
	if err != nil {
		return out, err
	}
	for _, hook := range githook.Hooks() {
		if hook == githook.PreCommit && a.PrePush {
			continue
		}
		removed, kept, err := githook.Guard{Dir: g.hooks, Hook: hook}.Uninstall()
		out.Removed, out.Kept = out.Removed || removed, append(out.Kept, kept...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// guarded is a repository and its hooks.
type guarded struct {
	place  project.Place
	git    gitread.Repository
	hooks  string
	shared bool // the hooks serve others too
}

func (c *Cairn) guardedRepository(ctx context.Context, path string) (g guarded, err error) {
	if !filepath.IsAbs(path) {
		return g, invalidArgument("code_repo_path", path, "code_repo_path must be the absolute path of a Git repository")
	}
	if g.place, err = project.Locate(path, c.config.Home); err != nil {
		return g, err
	}
	if g.place.Identity == "" || g.place.Gone {
		return g, invalidArgument("code_repo_path", path, "there is no Git repository at "+path)
	}
	root := g.place.Root
	if root == "" { // bare
		root = g.place.Identity
	}
	if g.git, err = gitread.Open(root); err != nil {
		return g, err
	}
	if g.hooks, err = g.git.HooksDir(ctx); err != nil {
		return g, err
	}
	real := g.hooks
	if resolved, err := filepath.EvalSymlinks(real); err == nil {
		real = resolved
	}
	g.shared = !isBelow(real, g.place.Identity) && !isBelow(real, root) && !isBelow(g.hooks, root) && !isBelow(g.hooks, g.place.Git().Main)
	return g, nil
}

func isBelow(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

func invalidArgument(field, provided, why string) *fault.Error {
	e := fault.New(fault.Invalid, mail.CodeInvalid, why).WithHint("change the argument " + field + " and call again")
	e.Details = map[string]any{"recoverable": true, "field": field, "provided": provided}
	return e
}

// otherProject is the slug of the project that a key names, "" for that of the
// repository itself.
func (c *Cairn) otherProject(ctx context.Context, key string, place project.Place) (string, error) {
	if key == "" {
		return "", nil
	}
	s, err := c.opened(ctx, false)
	if err != nil {
		return "", err
	}
	office, caller := c.office(s), mail.Caller{Place: place}
	asked, err := office.ProjectOf(ctx, caller, key)
	if fault.HasCode(err, mail.CodeNotFound) && project.IsAbsolute(key) {
		if at, lerr := project.Locate(key, c.config.Home); lerr == nil && (at.Identity == place.Identity || at.Remote != "" && at.Remote == place.Remote) {
			return "", nil
		}
	}
	if err != nil {
		return "", err
	}
	main := place.Git().Main
	if isBelow(asked.HumanKey, main) { // itself, or a folder in it: found by the files
		return "", nil
	}
	own, err := office.ProjectOf(ctx, caller, main)
	if err != nil && !fault.HasCode(err, mail.CodeNotFound) {
		return "", err
	}
	if err == nil && own.ID == asked.ID {
		return "", nil
	}
	return asked.Slug, nil
}

// GuardCheckArgs are what a guard is asked.
type GuardCheckArgs struct {
	Agent   string // who asks; "" for the session that this process belongs to, or a person
	Project string // a project_key; "" for those that the files are in

	Names  []byte // of files, each ended by NUL: as git diff --name-status -z prints them, or bare
	Given  bool   // Names counts; else what is staged
	Push   []byte // the standard input of a pre-push hook
	AtPush bool   // Push counts
	Remote string // its name
}

// GuardCheck is what a guard finds.
type GuardCheck struct {
	Managed   bool            `json:"managed"` // at least one file is in a project of mail
	Agent     string          `json:"agent"`   // the name that was given; "" for none
	Session   string          `json:"session"` // that was found for lack of a name, the latest of several; "" for none
	Files     int             `json:"files"`   // that were looked at
	Conflicts []GuardConflict `json:"conflicts"`

	Names []string `json:"-"` // of the agents as which the session acts, if there are conflicts
}

// IsPerson reports whether nobody but a person can be asking.
func (g GuardCheck) IsPerson() bool { return g.Agent == "" && g.Session == "" }

// GuardConflict is a file that somebody else has reserved.
type GuardConflict struct {
	Path    string    `json:"path"`
	Pattern string    `json:"path_pattern"`
	Holder  string    `json:"holder"`
	Reason  string    `json:"reason"`
	Since   mail.Time `json:"created_ts"`
	Until   mail.Time `json:"expires_ts"`
}

// CheckGuard finds what is staged, would be pushed, or is named, and reserved
// exclusively by other agents (mail §8). It changes nothing.
//
// Errors: those of git and of the store; store_missing (Unavailable) where there
// is none, unless there is nothing to check; NOT_FOUND for a Project that is none.
func (c *Cairn) CheckGuard(ctx context.Context, a GuardCheckArgs) (out GuardCheck, err error) {
	out = GuardCheck{Agent: a.Agent, Conflicts: []GuardConflict{}}
	asked := mail.GuardArgs{Agent: a.Agent, Place: c.place, Project: a.Project}
	if err := c.findChanges(ctx, a, &asked); err != nil {
		return out, err
	}
	out.Files = len(asked.Names) + len(asked.Paths)
	if out.Files == 0 {
		return out, nil
	}
	s, err := c.opened(ctx, false)
	if err != nil {
		return out, err
	}
	if s == nil {
		return out, fault.New(fault.Unavailable, store.CodeMissing, "there is no store yet").WithHint("the first call of a tool or hook makes it")
	}
	found, err := c.guardSessions(ctx, c.office(s), asked, &out)
	if err != nil {
		return out, err
	}
	out.Managed, out.Names = found.Managed, found.Names
	for _, o := range found.Obstacles {
		out.Conflicts = append(out.Conflicts, GuardConflict{o.Path, o.Pattern, o.Holder, o.Reason, o.Since, o.Until})
	}
	slices.SortStableFunc(out.Conflicts, func(a, b GuardConflict) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// guardSessions asks for the session that this process belongs to, if no agent is named.
// Of several sessions of one process it is unknown which one asks: what stands in the way
// of all of them is a conflict, and the reservations of one of them only warn, as they do
// for a person.
func (c *Cairn) guardSessions(ctx context.Context, o *mail.Office, asked mail.GuardArgs, out *GuardCheck) (mail.Guarded, error) {
	if asked.Agent != "" {
		return o.Guard(ctx, asked)
	}
	ids, err := c.processSessions(ctx)
	if err != nil {
		return mail.Guarded{}, err
	}
	if len(ids) > 0 {
		asked.Session, asked.Further = ids[0], ids[1:]
	}
	out.Session = asked.Session
	found, err := o.Guard(ctx, asked)
	if err != nil || len(ids) < 2 || len(found.Obstacles) > 0 {
		return found, err
	}
	asked.Session, asked.Further, out.Session = "", nil, ""
	return o.Guard(ctx, asked)
}

// findChanges finds the files, and the repository that git's hook works in.
func (c *Cairn) findChanges(ctx context.Context, a GuardCheckArgs, asked *mail.GuardArgs) error {
	changed, named := gitread.ParseChanges(a.Names)
	if a.Given && !named { // bare names
		for name := range strings.SplitSeq(strings.TrimSuffix(string(a.Names), "\x00"), "\x00") {
			if filepath.IsAbs(name) {
				asked.Paths = append(asked.Paths, name)
			} else {
				asked.Names = append(asked.Names, name)
			}
		}
		return nil
	}
	if a.Given && len(changed) == 0 {
		return nil
	}
	git, err := gitread.OpenHook(c.config.Cwd)
	if err != nil {
		return err
	}
	common, err := git.CommonDir(ctx)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(common); err == nil && real != c.place.Identity { // by GIT_DIR
		if asked.Place, err = project.Locate(common, c.config.Home); err != nil {
			return err
		}
	}
	switch {
	case a.AtPush:
		refs, err := gitread.ParsePush(string(a.Push))
		if err != nil {
			return err
		}
		asked.Names, err = git.Pushed(ctx, a.Remote, refs)
		return err
	case a.Given:
		asked.Names, err = git.NotMerged(ctx, changed)
	default:
		asked.Names, err = git.Staged(ctx)
	}
	return err
}

// GuardStatus is what cairn guard status tells of a repository.
type GuardStatus struct {
	Repository string         `json:"repository"` // root of the worktree, or the bare repository
	Hooks      string         `json:"hooks_path"` // the folder that git runs hooks from
	Shared     bool           `json:"shared"`     // it serves other repositories too
	Project    *string        `json:"project"`    // human_key of its project; null if it is not managed
	Guards     []githook.Look `json:"guards"`     // at commit, at push
	Staged     []string       `json:"staged"`     // what a commit would be checked for now
	Problem    string         `json:"problem"`    // why the project cannot be told; "" if it can
}

// GuardStatus tells which hooks a repository has, whose they are, and what would be
// checked. A store that cannot be read is told as a problem. It changes nothing.
//
// Errors: INVALID_ARGUMENT where there is no repository; git_missing (Unavailable);
// those of githook.Guard.Look.
func (c *Cairn) GuardStatus(ctx context.Context, path string) (out GuardStatus, err error) {
	g, err := c.guardedRepository(ctx, path)
	if err != nil {
		return out, err
	}
	out = GuardStatus{Repository: g.place.Root, Hooks: g.hooks, Shared: g.shared, Staged: []string{}}
	for _, hook := range githook.Hooks() {
		l, err := githook.Guard{Dir: g.hooks, Hook: hook}.Look()
		if err != nil {
			return out, err
		}
		out.Guards = append(out.Guards, l)
	}
	if out.Repository == "" {
		out.Repository = g.place.Identity
	} else if names, err := g.git.Staged(ctx); err == nil {
		out.Staged = append(out.Staged, names...)
	}
	s, err := c.opened(ctx, false)
	if err == nil {
		var p mail.ProjectResource
		if p, err = c.office(s).ProjectOf(ctx, mail.Caller{Place: g.place}, path); err == nil {
			out.Project = &p.HumanKey
		}
	}
	if err != nil && !fault.HasCode(err, mail.CodeNotFound) {
		out.Problem = fault.As(err).Message
	}
	return out, nil
}

// GuardSettings are guard.mode, "" if it is not set, and guard.strict.
func (c *Cairn) GuardSettings() (mode string, strict bool) {
	return value(c.settings.work.Guard.Mode), value(c.settings.work.Guard.Strict)
}
