//go:build unix

package project_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestPipesAreNotOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outer := w.repo(w.path("outer"))
	pipe := func(path string) {
		w.mkdir(filepath.Dir(path))
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pipe(filepath.Join(outer, "a", ".git"))
	w.want("a .git", w.locate(filepath.Join(outer, "a")).Slug, "outer")
	w.write(filepath.Join(outer, "b", ".git"), "gitdir: ../b-git")
	pipe(filepath.Join(outer, "b-git", "commondir"))
	w.want("a commondir", w.locate(filepath.Join(outer, "b")).Slug, "outer")
	pipe(filepath.Join(outer, "c", ".git", "config"))
	w.want("a config", w.locate(filepath.Join(outer, "c")).Slug, "c")
}
