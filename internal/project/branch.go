package project

import (
	"path/filepath"
	"strings"

	"cairn/internal/project/gitdir"
)

// Branch returns the Git branch that is checked out in the place's worktree. It is ""
// outside a repository, with a detached HEAD, or if it cannot be read. It reads one or
// two small files.
func (p Location) Branch() string {
	if p.Root == "" || p.Gone {
		return ""
	}
	git, ok := gitdir.Directory(p.Root)
	if !ok {
		return ""
	}
	head, ok := gitdir.ReadPointer(filepath.Join(git, "HEAD"))
	if !ok {
		return ""
	}
	branch, ok := strings.CutPrefix(head, "ref: refs/heads/")
	if !ok {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(branch), "\uFFFD")
}
