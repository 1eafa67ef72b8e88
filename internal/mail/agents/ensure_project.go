package agents

import (
	"context"
	"strings"

	"cairn/internal/mail"
)

// EnsureArgs are the arguments of ensure_project.
type EnsureArgs struct {
	HumanKey     string `arg:"human_key,required" about:"Absolute path of the repository, or of any folder."`
	IdentityMode string `arg:"identity_mode,enum=dir|git-remote|git-toplevel|git-common-dir" about:"What identifies the project. Omitted: the repository if the path is inside one, else the folder."`
}

// ProjectInfo is the result of ensure_project. A field that no file determines is null.
type ProjectInfo struct {
	ID            int64     `json:"id"`
	Slug          string    `json:"slug"`
	HumanKey      string    `json:"human_key"`
	Created       mail.Time `json:"created_at"`
	IdentityMode  string    `json:"identity_mode_used"`
	CanonicalPath string    `json:"canonical_path"`
	RepoRoot      *string   `json:"repo_root"` // of the worktree
	GitCommonDir  *string   `json:"git_common_dir"`
	Branch        *string   `json:"branch"`
	WorktreeName  *string   `json:"worktree_name"` // of a linked worktree
	FoldsCase     *bool     `json:"core_ignorecase"`
	Remote        *string   `json:"normalized_remote"`
	UID           string    `json:"project_uid"`
	Discovery     *string   `json:"discovery"` // always null
}

// EnsureProject finds the project of a directory, or of the repository that contains it, and
// creates it if it does not exist (mail §4). It is idempotent. The directory does not have to
// exist.
//
// Errors: INVALID_ARGUMENT for a path that is not absolute and for an unknown mode,
// CONFIGURATION_ERROR for a placeholder.
func (o *Agents) EnsureProject(ctx context.Context, c mail.Caller, a EnsureArgs) (out ProjectInfo, err error) {
	t, err := ensuring(c, a)
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.WriteTo(ctx, c, t, func(_ context.Context, s *mail.CallTx) error {
		out = projectInfo(s)
		return nil
	})
	return out, err
}

func ensuring(c mail.Caller, a EnsureArgs) (*mail.Target, error) {
	if err := mail.CheckText("human_key", a.HumanKey); err != nil {
		return nil, err
	}
	key := strings.TrimSpace(a.HumanKey)
	if mail.IsPlaceholder(key) {
		return nil, mail.PlaceholderGiven("human_key", key, "the absolute path of the project's directory")
	}
	i, err := mail.Identify(key, c.Place.Home, a.IdentityMode)
	return &mail.Target{Key: key, Path: i}, err
}

// projectInfo describes the project of a call whose project_key is a path.
func projectInfo(s *mail.CallTx) ProjectInfo {
	i, p := s.Path, s.Project
	out := ProjectInfo{
		ID: p.ID, Slug: p.Slug, HumanKey: p.HumanKey, Created: p.Created, IdentityMode: i.Mode, CanonicalPath: i.Canonical,
		RepoRoot: mail.OrNil(i.Git.Toplevel), GitCommonDir: mail.OrNil(i.Git.Common), Branch: mail.OrNil(i.Git.Branch), WorktreeName: mail.OrNil(i.Git.Worktree),
		Remote: i.Remote, UID: p.UID,
	}
	if i.Git.Common != "" {
		out.FoldsCase = &i.Git.FoldsCase
	}
	return out
}
