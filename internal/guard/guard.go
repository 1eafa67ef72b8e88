// Package guard blocks commits and pushes of files that other agents have reserved. It installs
// Git hooks and performs the checks that they request (mail §8).
package guard

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
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/project"
	"cairn/internal/store"
)

// The modes of a guard (mail §8).
const (
	Off   = "off"
	Warn  = "warn"
	Block = "block"
)

// Service installs guards in repositories and performs their checks.
type Service struct {
	// Mail returns the mail service. there is false if the store does not exist.
	Mail func(ctx context.Context) (o *service.Mail, there bool, err error)

	// Sessions returns the ids of the sessions of the agent that started this process.
	Sessions func(ctx context.Context) ([]string, error)

	Place project.Location // location of the working directory
	Cwd   string           // the working directory
	Home  string           // the user's home directory, "" if unknown
}

// Args selects a guard.
type Args struct {
	Project    string `arg:"project_key,required"`    // "" for the repository's own
	Repository string `arg:"code_repo_path,required"` // or the absolute path of a file or folder in it
	PrePush    bool   // install: guard pushes too; uninstall: guard of pushes only
	Program    string // absolute path of cairn for the hooks to call; "" for this program
}

// Installed is the result of install_precommit_guard.
type Installed struct {
	Hook string `json:"hook"` // the file that git runs before a commit

	Shared bool `json:"-"` // the folder of hooks serves other repositories too
}

// Install installs the guard in a repository's pre-commit hook and, with PrePush, in its
// pre-push hook. Existing hooks are kept and run too. It is idempotent and changes only
// the hooks folder.
//
// If Project is not the repository's own, the guard checks that project's reservations,
// with paths relative to the root of the repository.
//
// Errors: INVALID_ARGUMENT if there is no repository, or if the hooks folder is shared
// and Project is not the repository's own; NOT_FOUND for the project; git_missing
// (Unavailable); those of githook.Guard.Install.
func (s *Service) Install(ctx context.Context, a Args) (out Installed, err error) {
	g, err := s.repository(ctx, a.Repository)
	if err != nil {
		return out, err
	}
	other, err := s.otherProject(ctx, a.Project, g.place)
	if err != nil {
		return out, err
	}
	if other != "" && g.shared {
		return out, invalidArgument("project_key", a.Project, "other repositories use the hooks in "+g.hooks+" too (core.hooksPath); they can only check each repository's own project").
			WithHint("omit the project, or set core.hooksPath for this repository only")
	}
	if a.Program == "" {
		if a.Program, err = os.Executable(); err != nil {
			return out, fault.Wrap(err, fault.Unavailable, "no_program", "the system does not report the path of cairn")
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
	return Installed{Hook: filepath.Join(g.hooks, githook.PreCommit), Shared: g.shared}, nil
}

// Removed is the result of uninstall_precommit_guard.
type Removed struct {
	Removed bool `json:"removed"` // false: there was no guard

	Kept []string `json:"-"` // what stays and why, one line each
}

// Uninstall removes the guard from a repository's hooks and restores the original hooks
// byte for byte. With PrePush it does so only for the pre-push hook. It leaves hooks that
// were edited since.
//
// Errors: INVALID_ARGUMENT if there is no repository; git_missing (Unavailable); those of
// githook.Guard.Uninstall.
func (s *Service) Uninstall(ctx context.Context, a Args) (out Removed, err error) {
	g, err := s.repository(ctx, a.Repository)
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

// repository is a repository and its hooks.
type repository struct {
	place  project.Location
	git    gitread.Repository
	hooks  string
	shared bool // other repositories use the hooks too
}

func (s *Service) repository(ctx context.Context, path string) (g repository, err error) {
	if !filepath.IsAbs(path) {
		return g, invalidArgument("code_repo_path", path, "code_repo_path must be the absolute path of a Git repository")
	}
	if g.place, err = project.Locate(path, s.Home); err != nil {
		return g, err
	}
	if g.place.Identity == "" || g.place.Gone {
		return g, invalidArgument("code_repo_path", path, "there is no Git repository at "+path)
	}
	root := g.place.Root
	if root == "" { // a bare repository
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

// otherProject returns the slug of the project that a key names, or "" for the
// repository's own.
func (s *Service) otherProject(ctx context.Context, key string, place project.Location) (string, error) {
	if key == "" {
		return "", nil
	}
	office, _, err := s.Mail(ctx)
	if err != nil {
		return "", err
	}
	caller := mail.Caller{Place: place}
	asked, err := office.ProjectOf(ctx, caller, key)
	if fault.HasCode(err, mail.CodeNotFound) && project.IsAbsolute(key) {
		if at, lerr := project.Locate(key, s.Home); lerr == nil && (at.Identity == place.Identity || at.Remote != "" && at.Remote == place.Remote) {
			return "", nil
		}
	}
	if err != nil {
		return "", err
	}
	main := place.Git().Main
	if isBelow(asked.HumanKey, main) { // the repository or a folder in it: found by the files
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

// CheckArgs describes what a guard checks.
type CheckArgs struct {
	Agent   string // the agent; "" for this process's session, or a person
	Project string // a project_key; "" for the projects of the files

	Names  []byte // file names, each ended by NUL: output of git diff --name-status -z, or names only
	Given  bool   // check Names instead of the staged files
	Push   []byte // the standard input of a pre-push hook
	AtPush bool   // check Push
	Remote string // name of the remote
}

// Checked is the result of a check.
type Checked struct {
	Managed   bool       `json:"managed"` // at least one file is in a project with mail
	Agent     string     `json:"agent"`   // the given name; "" for none
	Session   string     `json:"session"` // the session found if no name was given, the latest of several; "" for none
	Files     int        `json:"files"`   // number of checked files
	Conflicts []Conflict `json:"conflicts"`

	Names []string `json:"-"` // agents of the session, if there are conflicts
}

// IsPerson reports whether only a person can be running the check.
func (g Checked) IsPerson() bool { return g.Agent == "" && g.Session == "" }

// Conflict is a file that another agent has reserved.
type Conflict struct {
	Path    string    `json:"path"`
	Pattern string    `json:"path_pattern"`
	Holder  string    `json:"holder"`
	Reason  string    `json:"reason"`
	Since   mail.Time `json:"created_ts"`
	Until   mail.Time `json:"expires_ts"`
}

// Check returns the staged, pushed or named files that other agents have reserved
// exclusively (mail §8). It changes nothing.
//
// Errors: those of git and of the store; store_missing (Unavailable) if there are files
// to check but no store; NOT_FOUND for an unknown Project.
func (s *Service) Check(ctx context.Context, a CheckArgs) (out Checked, err error) {
	out = Checked{Agent: a.Agent, Conflicts: []Conflict{}}
	asked := reservations.GuardArgs{Agent: a.Agent, Place: s.Place, Project: a.Project}
	if err := s.findChanges(ctx, a, &asked); err != nil {
		return out, err
	}
	out.Files = len(asked.Names) + len(asked.Paths)
	if out.Files == 0 {
		return out, nil
	}
	office, there, err := s.Mail(ctx)
	if err != nil {
		return out, err
	}
	if !there {
		return out, fault.New(fault.Unavailable, store.CodeMissing, "there is no store yet").WithHint("the first call of a tool or hook creates it")
	}
	found, err := s.bySession(ctx, office, asked, &out)
	if err != nil {
		return out, err
	}
	out.Managed, out.Names = found.Managed, found.Names
	for _, o := range found.Obstacles {
		out.Conflicts = append(out.Conflicts, Conflict{o.Path, o.Pattern, o.Holder, o.Reason, o.Since, o.Until})
	}
	slices.SortStableFunc(out.Conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// bySession identifies the caller by this process's session, if no agent is named. If the
// process has several sessions, the calling one is unknown. Then a file is a conflict if
// it is one for all of them. Reservations of one of them only warn, as for a person.
func (s *Service) bySession(ctx context.Context, o *service.Mail, asked reservations.GuardArgs, out *Checked) (reservations.Guarded, error) {
	if asked.Agent != "" {
		return o.Guard(ctx, asked)
	}
	ids, err := s.Sessions(ctx)
	if err != nil {
		return reservations.Guarded{}, err
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

// findChanges finds the files to check, and the repository in which git's hook runs.
func (s *Service) findChanges(ctx context.Context, a CheckArgs, asked *reservations.GuardArgs) error {
	changed, named := gitread.ParseChanges(a.Names)
	if a.Given && !named { // names without status
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
	git, err := gitread.OpenHook(s.Cwd)
	if err != nil {
		return err
	}
	common, err := git.CommonDir(ctx)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(common); err == nil && real != s.Place.Identity { // a different repository, set by GIT_DIR
		if asked.Place, err = project.Locate(common, s.Home); err != nil {
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

// Status is the result of cairn guard status.
type Status struct {
	Repository string               `json:"repository"` // root of the worktree, or the bare repository
	Hooks      string               `json:"hooks_path"` // the folder that git runs hooks from
	Shared     bool                 `json:"shared"`     // other repositories use it too
	Project    *string              `json:"project"`    // human_key of its project; null if it is not managed
	Guards     []githook.HookStatus `json:"guards"`     // at commit, at push
	Staged     []string             `json:"staged"`     // files that a commit would check now
	Problem    string               `json:"problem"`    // the reason why the project is unknown; "" if it is known
}

// Status returns the hooks of a repository, their owners and the files that would be
// checked. A store that cannot be read is reported as a problem. It changes nothing.
//
// Errors: INVALID_ARGUMENT if there is no repository; git_missing (Unavailable); those of
// githook.Inspect.
func (s *Service) Status(ctx context.Context, path string) (out Status, err error) {
	g, err := s.repository(ctx, path)
	if err != nil {
		return out, err
	}
	out = Status{Repository: g.place.Root, Hooks: g.hooks, Shared: g.shared, Staged: []string{}}
	if out.Guards, err = g.inspect(); err != nil {
		return out, err
	}
	if out.Repository == "" {
		out.Repository = g.place.Identity
	} else if names, err := g.git.Staged(ctx); err == nil {
		out.Staged = append(out.Staged, names...)
	}
	office, _, err := s.Mail(ctx)
	if err == nil {
		var p service.ProjectResource
		if p, err = office.ProjectOf(ctx, mail.Caller{Place: g.place}, path); err == nil {
			out.Project = &p.HumanKey
		}
	}
	if err != nil && !fault.HasCode(err, mail.CodeNotFound) {
		out.Problem = fault.As(err).Message
	}
	return out, nil
}

// Hooks returns the state of a repository's pre-commit and pre-push hooks, and the folder
// that git runs them from. It returns the errors of Status.
func (s *Service) Hooks(ctx context.Context, path string) (dir string, hooks []githook.HookStatus, err error) {
	g, err := s.repository(ctx, path)
	if err != nil {
		return "", nil, err
	}
	hooks, err = g.inspect()
	return g.hooks, hooks, err
}

// inspect returns the states of the hooks.
func (g *repository) inspect() (all []githook.HookStatus, err error) {
	for _, hook := range githook.Hooks() {
		l, err := githook.Guard{Dir: g.hooks, Hook: hook}.Inspect()
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}
