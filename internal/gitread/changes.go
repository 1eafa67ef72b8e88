package gitread

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/regular"
)

// The files below are about to enter the history by a commit, or a remote's history by a
// push (mail §8).

// named makes git print changed names in the form that ParseChanges expects, independent
// of the repository's diff settings.
var named = [...]string{
	"--name-status", "-M", "-z", "--diff-filter=ACMRDTU", "--no-ext-diff", "--no-relative", "--ignore-submodules=dirty", "-O/dev/null",
}

// StagedArgs returns the git arguments that print the staged files for ParseChanges. None
// needs quoting in a shell.
func StagedArgs() []string {
	return slices.Concat([]string{"--no-pager", "-c", "core.fsmonitor=false", "diff", "--cached"}, named[:])
}

// ParseChanges parses the output of git diff --name-status -z. It returns each name once,
// in order, and both names of a rename. ok is false for other text.
func ParseChanges(text []byte) (names []string, ok bool) {
	seen := map[string]bool{}
	fields := strings.Split(string(text), "\x00")
	if last := len(fields) - 1; fields[last] == "" {
		fields = fields[:last]
	}
	for len(fields) > 0 {
		n := namesAfter(fields[0])
		if n == 0 || len(fields) <= n {
			return nil, false
		}
		changed := fields[1 : n+1]
		if fields[0][0] == 'C' { // the first name of a copy is unchanged
			changed = changed[1:]
		}
		for _, name := range changed {
			if name == "" {
				return nil, false
			}
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
		fields = fields[n+1:]
	}
	return names, true
}

// namesAfter returns how many names follow a status, or 0 if the status is invalid.
func namesAfter(status string) int {
	if status == "" || len(status) > 4 || strings.Trim(status[1:], "0123456789") != "" {
		return 0
	}
	switch status[0] {
	case 'C', 'R':
		return 2
	case 'A', 'M', 'D', 'T', 'U', 'X', 'B':
		return 1
	}
	return 0
}

// Staged returns the files that the next commit would change, relative to the root of the
// worktree. During a merge it returns only files that differ from every parent, because
// the parents' commits already contain the others.
func (r Repository) Staged(ctx context.Context) ([]string, error) {
	names, err := r.stagedAgainst(ctx)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return r.NotMerged(ctx, names)
}

// NotMerged returns, during a merge, the staged files that differ from every commit to be
// merged. Otherwise it returns all names.
func (r Repository) NotMerged(ctx context.Context, names []string) ([]string, error) {
	others, err := r.mergeHeads(ctx)
	if err != nil {
		return nil, err
	}
	for _, hash := range others {
		differ, err := r.stagedAgainst(ctx, hash)
		if err != nil {
			return nil, err
		}
		kept := make(map[string]bool, len(differ))
		for _, name := range differ {
			kept[name] = true
		}
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !kept[name] })
	}
	return names, nil
}

// stagedAgainst returns the staged files that differ from a commit, or from HEAD.
func (r Repository) stagedAgainst(ctx context.Context, commit ...string) ([]string, error) {
	out, err := r.run(ctx, slices.Concat(StagedArgs(), commit, []string{"--"})...)
	if err != nil {
		return nil, err
	}
	return changes(out)
}

func changes(out []byte) ([]string, error) {
	names, ok := ParseChanges(out)
	if !ok {
		return nil, fault.New(fault.Unavailable, CodeFailed, "cannot parse the file names that git printed")
	}
	return names, nil
}

// mergeHeads returns the commits that are being merged, or nil without a merge.
func (r Repository) mergeHeads(ctx context.Context) ([]string, error) {
	path, err := r.path(ctx, "--git-path", "MERGE_HEAD")
	if err != nil {
		return nil, err
	}
	text, err := regular.Read(path, regular.MaxForeign)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, CodeFailed, "cannot read the commits of the merge")
	}
	var heads []string
	for line := range strings.FieldsSeq(string(text)) {
		if isHash(line) {
			heads = append(heads, line)
		}
	}
	return heads, nil
}

// path returns the absolute form of a path that git rev-parse prints.
func (r Repository) path(ctx context.Context, args ...string) (string, error) {
	out, err := r.run(ctx, append([]string{"rev-parse"}, args...)...)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(strings.TrimSuffix(string(out), "\n"), "\r")
	if path == "" {
		return "", fault.New(fault.Unavailable, CodeFailed, "git did not print a path")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.root, path)
	}
	return filepath.FromSlash(path), nil
}

// CommonDir returns the git directory that all worktrees of the repository share.
func (r Repository) CommonDir(ctx context.Context) (string, error) {
	return r.path(ctx, "--git-common-dir")
}

// RootCommit returns the first commit in the history of HEAD, along first parents. It
// returns "" without a commit.
func (r Repository) RootCommit(ctx context.Context) (string, error) {
	if _, err := r.run(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		return "", nil
	}
	out, err := r.run(ctx, "rev-list", "--first-parent", "--max-parents=0", "HEAD", "--")
	if err != nil {
		return "", err
	}
	hash := strings.TrimSpace(string(out))
	if !isHash(hash) {
		return "", fault.New(fault.Unavailable, CodeFailed, "git did not print a root commit")
	}
	return hash, nil
}

// HooksDir returns the folder of the hooks that git runs: core.hooksPath, or the
// repository's hooks folder. It may not exist. A relative core.hooksPath is relative to
// the root, as for git.
func (r Repository) HooksDir(ctx context.Context) (string, error) {
	return r.path(ctx, "--git-path", "hooks")
}

// Push is one line of a pre-push hook's input: a reference update.
type Push struct {
	Local  string // hash to push; zeros to delete the reference
	Remote string // current hash on the remote; zeros if the reference is new
}

// ParsePush parses the standard input of a pre-push hook. An invalid line returns
// CodeFailed (Invalid).
func ParsePush(text string) ([]Push, error) {
	var all []Push
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 4 || !isHash(fields[1]) || !isHash(fields[3]) {
			return nil, fault.Newf(fault.Invalid, CodeFailed, "%.80q is not a line of a pre-push hook", line)
		}
		all = append(all, Push{fields[1], fields[3]})
	}
	return all, nil
}

func isZero(hash string) bool { return strings.Trim(hash, "0") == "" }

// Pushed returns the files changed by the commits that a push would add to a remote. It
// excludes commits that the remote's references contain, there or in the local
// remote-tracking references. Merges do not count, and deleting a reference adds nothing.
// If the remote's commits do not exist locally, only the remote-tracking references
// count.
func (r Repository) Pushed(ctx context.Context, remote string, refs []Push) ([]string, error) {
	var in strings.Builder
	for _, p := range refs {
		if !isZero(p.Local) {
			in.WriteString(p.Local + "\n")
		}
	}
	if in.Len() == 0 {
		return nil, nil
	}
	known, err := r.known(ctx, refs)
	if err != nil {
		return nil, err
	}
	for _, hash := range known {
		in.WriteString("^" + hash + "\n")
	}
	args := []string{"rev-list", "--no-merges", "--stdin"}
	if remote != "" && !strings.ContainsAny(remote, `*?[\`) {
		args = append(args, "--not", "--remotes="+remote)
	}
	commits, err := r.runOn(ctx, strings.NewReader(in.String()), args...)
	if err != nil || len(commits) == 0 {
		return nil, err
	}
	out, err := r.runOn(ctx, bytes.NewReader(commits),
		slices.Concat([]string{"diff-tree", "--stdin", "--root", "-r", "--no-commit-id"}, named[:])...)
	if err != nil {
		return nil, err
	}
	return changes(out)
}

// known returns the remote's commits that exist locally.
func (r Repository) known(ctx context.Context, refs []Push) ([]string, error) {
	var in strings.Builder
	for _, p := range refs {
		if !isZero(p.Remote) {
			in.WriteString(p.Remote + "\n")
		}
	}
	if in.Len() == 0 {
		return nil, nil
	}
	out, err := r.runOn(ctx, strings.NewReader(in.String()), "cat-file", "--batch-check=%(objectname) %(objecttype)")
	if err != nil {
		return nil, err
	}
	var known []string
	for line := range strings.Lines(string(out)) {
		hash, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "commit" || kind == "tag" {
			known = append(known, hash)
		}
	}
	return known, nil
}
