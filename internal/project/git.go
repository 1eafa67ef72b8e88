package project

import (
	"os"
	"path/filepath"
	"strings"

	"cairn/internal/project/gitdir"
)

// Git describes a repository and one of its worktrees, as read from its files (mail §4).
// The zero Git means no repository.
type Git struct {
	Common        string // the git directory that all worktrees share, links resolved
	Toplevel      string // root of the worktree, links resolved; "" inside a bare repository
	Main          string // root of the main worktree, or the best approximation; Common for a bare repository
	Worktree      string // the name of a linked worktree; "" for the main one
	Branch        string // the branch that is checked out; "" with a detached HEAD
	DefaultBranch string // origin's HEAD; "" if it is not known here
	FoldsCase     bool   // core.ignorecase; if unset, whether the file system ignores case
}

// Git reads a few small files of the place's repository; Locate has already read the
// config. Broken files count as missing. Outside a repository it returns the zero Git,
// with FoldsCase of the folder.
func (p Location) Git() Git {
	if p.Identity == "" {
		return Git{FoldsCase: ignoresCase(p.real)}
	}
	g := Git{Common: p.Identity, Toplevel: p.Root, Main: p.mainRoot(), Branch: p.Branch(), DefaultBranch: defaultBranch(p.Identity)}
	g.FoldsCase = p.foldsCase || !p.caseIsSet && ignoresCase(filepath.Join(p.Identity, "HEAD"))
	if p.mainTree != "" && filepath.Base(p.Identity) != ".git" {
		if tree := gitdir.AbsoluteIn(p.Identity, p.mainTree); gitdir.IsDir(tree) {
			g.Main = gitdir.Canonical(tree)
		}
	}
	g.Worktree = p.linkedWorktree()
	return g
}

// ignoresCase reports whether the file system finds an existing file under its name in
// the other case, too. It is false for a missing file and for a name without letters.
func ignoresCase(path string) bool {
	name := filepath.Base(path)
	other := strings.ToLower(name)
	if other == name {
		other = strings.ToUpper(name)
	}
	if other == name {
		return false
	}
	b, err := os.Lstat(filepath.Join(filepath.Dir(path), other)) // missing if case matters
	if err != nil {
		return false
	}
	a, err := os.Lstat(path)
	return err == nil && os.SameFile(a, b)
}

// linkedWorktree returns the name under which the repository knows the place's worktree,
// "" for the main one.
func (p Location) linkedWorktree() string {
	if p.Root == "" {
		return ""
	}
	git, ok := gitdir.Directory(p.Root)
	if !ok || git == p.Identity { // Identity is canonical
		return ""
	}
	if git = gitdir.Canonical(git); git == p.Identity || filepath.Base(filepath.Dir(git)) != "worktrees" {
		return ""
	}
	return filepath.Base(git)
}

// defaultBranch returns the branch that origin's HEAD names.
func defaultBranch(common string) string {
	head, ok := gitdir.ReadPointer(filepath.Join(common, "refs", "remotes", "origin", "HEAD"))
	if !ok {
		return ""
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(head), "ref: refs/remotes/origin/")
	if !ok {
		return ""
	}
	return strings.ToValidUTF8(branch, "\uFFFD")
}

// IsAbsolute reports whether a path is absolute here or on Windows, because transcripts
// contain Windows paths.
func IsAbsolute(path string) bool { return filepath.IsAbs(path) || isForeign(path) }

// Canonical returns the place's folder with its symbolic links resolved, the spelling in
// which folders are compared. If the folder does not exist, the existing part of the path
// is resolved.
func (p Location) Canonical() string { return p.real }

// ReadMarker reads a small regular file of one line, at most 8 KiB. ok is false for a
// missing or other file.
func ReadMarker(file string) (line string, ok bool) {
	text, ok := gitdir.ReadPointer(file)
	return strings.TrimSpace(text), ok
}
