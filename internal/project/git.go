package project

import (
	"os"
	"path/filepath"
	"strings"
)

// Git is what a repository's files say about it and about one of its worktrees
// (mail §4). The zero Git stands for no repository.
type Git struct {
	Common        string // the git directory that all worktrees share, links resolved
	Toplevel      string // root of the worktree, links resolved; "" inside a bare repository
	Main          string // root of the main worktree, or what comes nearest to it; Common for a bare repository
	Worktree      string // the name of a linked worktree; "" for the main one
	Branch        string // that is checked out; "" with a detached HEAD
	DefaultBranch string // origin's HEAD; "" if it is not known here
	FoldsCase     bool   // core.ignorecase; where that is not set, whether the file system ignores case
}

// Git reports what the files of the place's repository say about it, a handful of
// small ones, of which Locate has read the config; whatever is missing or broken counts as absent. Outside a repository
// it is the zero Git, with FoldsCase of the folder.
func (p Location) Git() Git {
	if p.Identity == "" {
		return Git{FoldsCase: ignoresCase(p.real)}
	}
	g := Git{Common: p.Identity, Toplevel: p.Root, Main: p.mainRoot(), Branch: p.Branch(), DefaultBranch: defaultBranch(p.Identity)}
	g.FoldsCase = p.foldsCase || !p.caseIsSet && ignoresCase(filepath.Join(p.Identity, "HEAD"))
	if p.mainTree != "" && filepath.Base(p.Identity) != ".git" {
		if tree := absoluteIn(p.Identity, p.mainTree); isDir(tree) {
			g.Main = canonical(tree)
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
	b, err := os.Lstat(filepath.Join(filepath.Dir(path), other)) // which is missing where case counts
	if err != nil {
		return false
	}
	a, err := os.Lstat(path)
	return err == nil && os.SameFile(a, b)
}

// linkedWorktree is the name under which the repository knows the place's
// worktree, "" for the main one.
func (p Location) linkedWorktree() string {
	if p.Root == "" {
		return ""
	}
	git, ok := gitDirectory(p.Root)
	if !ok || git == p.Identity { // which is canonical
		return ""
	}
	if git = canonical(git); git == p.Identity || filepath.Base(filepath.Dir(git)) != "worktrees" {
		return ""
	}
	return filepath.Base(git)
}

// defaultBranch is the branch that origin's HEAD names.
func defaultBranch(common string) string {
	head, ok := readPointer(filepath.Join(common, "refs", "remotes", "origin", "HEAD"))
	if !ok {
		return ""
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(head), "ref: refs/remotes/origin/")
	if !ok {
		return ""
	}
	return strings.ToValidUTF8(branch, "\uFFFD")
}

// configEntry is the last value of a name in the sections [section] of a Git
// configuration; ok is false without one. A name that stands alone means true.
func configEntry(text, section, name string) (value string, ok bool) {
	for header, entry := range configEntries(text) {
		if strings.EqualFold(strings.TrimSpace(header), section) && strings.EqualFold(entry.name, name) {
			value, ok = entry.value, true
			if entry.alone {
				value = "true"
			}
		}
	}
	return value, ok
}

// isTrue reads a truth value as Git does.
func isTrue(value string, ok bool) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "on", "1":
		return ok
	}
	return false
}

// IsAbsolute reports whether a path is absolute, here or, as it stands in
// transcripts, on Windows.
func IsAbsolute(path string) bool { return filepath.IsAbs(path) || isForeign(path) }

// Canonical is the place's folder with its symbolic links resolved, the one
// spelling under which folders are compared. Of one that does not exist the part
// that does is resolved.
func (p Location) Canonical() string { return p.real }

// ReadMarker reads a small regular file that holds one line, at most 8 KiB; ok is
// false for anything else and for none.
func ReadMarker(file string) (line string, ok bool) {
	text, ok := readPointer(file)
	return strings.TrimSpace(text), ok
}
