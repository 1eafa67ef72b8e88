package mail

import (
	"context"
	"strings"
)

// EnsureArgs are the arguments of ensure_project.
type EnsureArgs struct {
	HumanKey     string `arg:"human_key,required" about:"Absolute path of the repository, or of any folder."`
	IdentityMode string `arg:"identity_mode,enum=dir|git-remote|git-toplevel|git-common-dir" about:"What tells the project from others. Omitted: the repository if the path is inside one, else the folder."`
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
func (o *Service) EnsureProject(ctx context.Context, c Caller, a EnsureArgs) (out ProjectInfo, err error) {
	t, err := ensuring(c, a)
	if err != nil {
		return out, toFault(err)
	}
	err = o.writeTo(ctx, c, t, func(_ context.Context, s *callTx) error {
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
func (s *callTx) projectInfo() ProjectInfo {
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
