package project_test

import (
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/project"
)

func TestGitDescribesARepositoryFromItsFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	main := w.repo(w.path("app"))
	w.git(main, "worktree", "add", "-q", "-b", "feature/x", w.path("side"))
	common := filepath.Join(main, ".git")
	want := func(dir string, g project.Git) {
		t.Helper()
		if got := w.locate(dir).Git(); got != g {
			t.Errorf("%s:\n%+v, want\n%+v", dir, got, g)
		}
	}
	want(main, project.Git{Common: common, Toplevel: main, Main: main, Branch: "main"})
	want(w.path("side"), project.Git{Common: common, Toplevel: w.path("side"), Main: main, Worktree: "side", Branch: "feature/x"})
	want(w.dir, project.Git{FoldsCase: w.locate(w.dir).Git().FoldsCase}) // of the file system

	w.write(filepath.Join(common, "refs/remotes/origin/HEAD"), "ref: refs/remotes/origin/release/1\n")
	w.git(main, "config", "core.ignorecase", "yes")
	w.git(main, "checkout", "-q", "--detach")
	want(main, project.Git{Common: common, Toplevel: main, Main: main, DefaultBranch: "release/1", FoldsCase: true})
	w.write(filepath.Join(common, "refs/remotes/origin/HEAD"), "ref: refs/heads/main\n")
	w.git(main, "config", "core.ignorecase", "false")
	want(main, project.Git{Common: common, Toplevel: main, Main: main})

	lib := w.repo(w.path("lib"))
	w.git(main, "submodule", "--quiet", "add", lib, "deps/lib")
	module, deps := filepath.Join(common, "modules/deps/lib"), filepath.Join(main, "deps/lib")
	w.git(deps, "worktree", "add", "-q", "-b", "side", w.path("libside"))
	inner := project.Git{Common: module, Toplevel: deps, Main: deps, Branch: "main", DefaultBranch: "main"}
	want(deps, inner)
	inner.Toplevel, inner.Branch, inner.Worktree = w.path("libside"), "side", "libside"
	want(w.path("libside"), inner)

	w.git(w.dir, "clone", "-q", "--bare", lib, "lib.git")
	bare := w.path("lib.git")
	want(bare, project.Git{Common: bare, Main: bare, Branch: ""})
	w.git(w.dir, "init", "-q", "--separate-git-dir", w.path("apart.git"), w.path("apart"))
	want(w.path("apart"), project.Git{Common: w.path("apart.git"), Toplevel: w.path("apart"), Main: w.path("apart"), Branch: "main"})
}

// A second link to a file simulates a file system that finds the file under both names.
func TestCaseFollowsTheFileSystemWhereTheSettingIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.repo(w.path("r"))
	config, head, other := filepath.Join(dir, ".git", "config"), filepath.Join(dir, ".git", "HEAD"), filepath.Join(dir, ".git", "head")
	w.write(config, "[core]\n\tbare = false\n")
	if err := os.Link(head, other); err != nil {
		t.Skip("no second link, or no case: ", err)
	}
	if !w.locate(dir).Git().FoldsCase {
		t.Error("the file system ignores case, and the repository does not")
	}
	w.write(config, "[core]\n\tignorecase = false\n")
	if w.locate(dir).Git().FoldsCase {
		t.Error("the setting does not count")
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	w.write(config, "")
	if w.locate(dir).Git().FoldsCase {
		t.Error("case counts on this file system, and not in the repository")
	}
	w.write(other, "ref: refs/heads/main\n") // another file: case counts
	if w.locate(dir).Git().FoldsCase {
		t.Error("two files whose names differ in case count as one")
	}
}

func TestTheLastEntryOfASectionCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for text, want := range map[string]bool{
		"[core]\n\tignorecase = true\n":                   true,
		"[Core]\nIgnoreCase\n":                            true,
		"[core]\nignorecase = 1 ; yes\n":                  true,
		"[core]\nignorecase = true\nignorecase = no\n":    false,
		"[core]\nignorecase =\n":                          false,
		"[core \"x\"]\nignorecase = true\n":               false,
		"[other]\nignorecase = true\n":                    false,
		"[core]\n#ignorecase = true\n":                    false,
		"[core\nignorecase = true\n":                      false,
		"[core]\nx = a\\\nignorecase = true\n":            false,
		"[core]\nignorecase = on\n[core]\nbare = false\n": true,
	} {
		dir := w.repo(filepath.Join(t.TempDir(), "r"))
		w.write(filepath.Join(dir, ".git/config"), text)
		if got := w.locate(dir).Git().FoldsCase; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestMarkersAreSmallFilesOfOneLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if line, ok := project.ReadMarker(w.write(w.path("m"), " word \r\n")); !ok || line != "word" {
		t.Errorf("%q %v", line, ok)
	}
	for _, path := range []string{w.path("none"), w.dir, w.write(w.path("big"), string(make([]byte, 9000)))} {
		if line, ok := project.ReadMarker(path); ok {
			t.Errorf("%s: %q", path, line)
		}
	}
	for path, want := range map[string]bool{"/a": true, `C:\a`: true, "c:/a": true, `\\host\share`: true, "a": false, "./a": false, "~/a": false, "C:a": false, "": false} {
		if project.IsAbsolute(path) != want {
			t.Errorf("%q", path)
		}
	}
	w.symlink(w.mkdir(w.path("real")), w.path("link"))
	if got := w.locate(w.path("link", "new")).Canonical(); got != w.path("real", "new") {
		t.Errorf("canonical: %s", got)
	}
}
