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

// Files that are about to become part of the history: by a commit, or of a remote
// by a push (mail §8).

// named makes git name what has changed, the way that ParseChanges reads, whatever
// the repository's settings say about diffs.
var named = [...]string{
	"--name-status", "-M", "-z", "--diff-filter=ACMRDTU", "--no-ext-diff", "--no-relative", "--ignore-submodules=dirty", "-O/dev/null",
}

// StagedArgs are the arguments with which git prints what is staged, for
// ParseChanges. None needs quoting in a shell.
func StagedArgs() []string {
	return slices.Concat([]string{"--no-pager", "-c", "core.fsmonitor=false", "diff", "--cached"}, named[:])
}

// ParseChanges reads the names that git diff --name-status -z printed: each once,
// in order, of a rename both. ok is false for anything else.
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
		if fields[0][0] == 'C' { // whose first is as it was
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

// namesAfter is how many names follow a status; 0 for what is none.
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

// Staged lists the files that the next commit would change, from the root of the
// worktree. During a merge only those count that differ from every parent: the
// others were decided there.
func (r Repository) Staged(ctx context.Context) ([]string, error) {
	names, err := r.stagedAgainst(ctx)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return r.NotMerged(ctx, names)
}

// NotMerged drops, while a merge is going on, those staged files that are as one of
// the commits to be merged has them.
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

// stagedAgainst lists what is staged and differs from a commit, or from HEAD.
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
		return nil, fault.New(fault.Unavailable, CodeFailed, "git printed what cannot be read as names of files")
	}
	return names, nil
}

// mergeHeads are the commits that are being merged; none without a merge.
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
		return nil, fault.Wrap(err, fault.Unavailable, CodeFailed, "the merge's commits cannot be read")
	}
	var heads []string
	for line := range strings.FieldsSeq(string(text)) {
		if isHash(line) {
			heads = append(heads, line)
		}
	}
	return heads, nil
}

// path is one path that git rev-parse prints, absolute.
func (r Repository) path(ctx context.Context, args ...string) (string, error) {
	out, err := r.run(ctx, append([]string{"rev-parse"}, args...)...)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(strings.TrimSuffix(string(out), "\n"), "\r")
	if path == "" {
		return "", fault.New(fault.Unavailable, CodeFailed, "git names no path")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.root, path)
	}
	return filepath.FromSlash(path), nil
}

// CommonDir is the git directory that all worktrees of the repository share.
func (r Repository) CommonDir(ctx context.Context) (string, error) {
	return r.path(ctx, "--git-common-dir")
}

// RootCommit returns the first commit of the history of HEAD, along first parents; ""
// without a commit.
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
		return "", fault.New(fault.Unavailable, CodeFailed, "git names no root commit")
	}
	return hash, nil
}

// HooksDir is the folder whose hooks git runs: core.hooksPath, or the repository's
// own. It need not exist. A relative core.hooksPath counts from the root, as for git.
func (r Repository) HooksDir(ctx context.Context) (string, error) {
	return r.path(ctx, "--git-path", "hooks")
}

// Push is a line that git gives a pre-push hook: a reference to be moved.
type Push struct {
	Local  string // the hash to push; zeros to delete
	Remote string // the hash on the remote now; zeros for none
}

// ParsePush reads the standard input of a pre-push hook. A line that is none is
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

// Pushed lists the files that commits change which a push would bring to a remote:
// those that neither the remote's references there nor those known here of the
// remote of that name hold. Merges do not count, and deleting a reference brings
// nothing. A commit that only the remote has is no obstacle: then what is known
// here decides.
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

// known are those of the remote's commits that are here as well.
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
