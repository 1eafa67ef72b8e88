package project_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cairn/internal/project"
)

func TestOneFileHasOneKeyAcrossWorktreesAndSpellings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("app"))
	w.mkdir(filepath.Join(repo, "src", "deep"))
	w.git(repo, "worktree", "add", "-q", w.path("side"))
	w.git(repo, "worktree", "add", "-q", filepath.Join(repo, ".claude", "worktrees", "in"))
	w.git(repo, "worktree", "add", "-q", filepath.Join(repo, "trees", "odd"))
	in, odd := filepath.Join(repo, ".claude", "worktrees", "in"), filepath.Join(repo, "trees", "odd")
	w.symlink(repo, w.path("link"))
	w.symlink(filepath.Join(repo, "src"), w.path("srclink"))
	places := []string{repo, w.path("side"), in, odd, filepath.Join(repo, "src", "deep"), w.path("link"), filepath.Join(repo, "gone")}
	for _, cwd := range places {
		p := w.locate(cwd)
		for _, root := range []string{repo, w.path("side"), in, odd, w.path("link")} {
			for _, file := range []string{
				filepath.Join(root, "src", "é.go"), root + "/src/../src/./e\u0301.go", root + "/src//é.go",
				root + `\src\é.go`, root + "/src/deep/../é.go",
			} {
				w.want(cwd+" "+file, p.PathKey(file), "src/é.go")
			}
			w.want("root "+root, p.PathKey(root), ".")
			w.want("root "+root+"/", p.PathKey(root+"/"), ".")
		}
	}
	for _, c := range []struct{ cwd, file, want string }{
		{repo, "a.go", "a.go"},
		{repo, "./a.go", "a.go"},
		{repo, `src\a.go`, "src/a.go"},
		{repo, `src\..\a.go`, "a.go"},
		{filepath.Join(repo, "src"), "a.go", "src/a.go"},
		{filepath.Join(repo, "src"), "../a.go", "a.go"},
		{filepath.Join(repo, "src"), `..\a.go`, "a.go"},
		{in, "../../../a.go", "a.go"},
		{in, "src/a.go", "src/a.go"},
		{w.path("srclink"), "a.go", "src/a.go"},
		{w.path("srclink"), "deep/a.go", "src/deep/a.go"},
		{repo, w.path("srclink", "a.go"), "src/a.go"},
		{repo, "../app2/a.go", filepath.ToSlash(w.path("app2", "a.go"))},
		{repo, w.path("app-more", "a.go"), filepath.ToSlash(w.path("app-more", "a.go"))},
		{repo, "/", "/"},
		{repo, "", ""},
		{repo, ".worktrees/lost/src/a.go", "src/a.go"},
		{repo, ".claude/worktrees/lost/.worktrees/b/a.go", "a.go"},
		{repo, ".worktrees/x", "."},
		{repo, ".worktrees", ".worktrees"},
		{repo, "..a/b", "..a/b"},
	} {
		if runtime.GOOS == "windows" && c.file == "/" {
			continue
		}
		w.want(c.cwd+" "+c.file, w.locate(c.cwd).PathKey(c.file), c.want)
	}
}

// The worktrees are named like branches and were removed.
func TestLostWorktreesMayBeNamedWithSlashes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("app"))
	w.mkdir(filepath.Join(repo, "cmd", "tool"))
	w.mkdir(filepath.Join(repo, ".worktrees", "kept")) // the rest of kept/one
	lost := filepath.Join(repo, ".worktrees", "alex", "ent-108")
	for _, c := range []struct{ cwd, file, want string }{
		{lost, "cmd/x.go", "cmd/x.go"},
		{lost, "new.go", "new.go"},
		{lost, "new/x.go", "new/x.go"},
		{lost, ".", "."},
		{filepath.Join(lost, "cmd"), "x.go", "cmd/x.go"},
		{filepath.Join(lost, "cmd", "tool"), "../x.go", "cmd/x.go"},
		{repo, ".worktrees/alex/ent-108/cmd/x.go", "cmd/x.go"},
		{repo, ".worktrees/a/b/c/cmd/x.go", "cmd/x.go"},
		{repo, ".worktrees/kept/one/cmd/x.go", "cmd/x.go"},
		{filepath.Join(repo, ".worktrees", "kept", "one"), "new.go", "new.go"},
		{filepath.Join(repo, ".worktrees", "fix", "cmd"), "x.go", "cmd/x.go"},
		{filepath.Join(repo, ".worktrees", "fix"), "new/x.go", "new/x.go"},
		{filepath.Join(repo, ".claude", "worktrees", "fix", "new"), "x.go", "new/x.go"},
		{lost, filepath.Join(repo, "cmd", "x.go"), "cmd/x.go"},
		{w.path("elsewhere"), filepath.Join(lost, "cmd", "x.go"), filepath.ToSlash(filepath.Join(repo, "cmd", "x.go"))},
	} {
		w.want(c.cwd+" "+c.file, w.locate(c.cwd).PathKey(c.file), c.want)
	}

	first := w.locate(lost)
	deeper := w.locate(filepath.Join(lost, "new", "part"))
	w.want("what nobody knows", deeper.PathKey("x.go"), "ent-108/new/part/x.go")
	w.want("what the session knows", deeper.After(first).PathKey("x.go"), "new/part/x.go")
	beside := w.locate(filepath.Join(repo, ".worktrees", "alex", "ent-109", "cmd"))
	w.want("in another worktree", beside.After(first).PathKey("x.go"), "cmd/x.go")
	w.want("back in the repository", w.locate(repo).After(first).PathKey("cmd/x.go"), "cmd/x.go")
}

func TestOrdinaryFolderNamedLikeAWorktreeIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("app"))
	w.mkdir(filepath.Join(repo, ".worktrees", "plain"))
	w.want("key", w.locate(repo).PathKey(".worktrees/plain/a.go"), ".worktrees/plain/a.go")
}

func TestKeysOutsideTheRepositoryAreAbsolute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo, other := w.repo(w.path("app")), w.repo(w.path("other"))
	plain := w.mkdir(w.path("plain"))
	for _, c := range []struct{ cwd, file string }{
		{repo, filepath.Join(other, "README.md")}, {plain, filepath.Join(repo, "README.md")},
		{plain, filepath.Join(plain, "x.txt")}, {repo, filepath.Join(w.home, "e\u0301", "x")},
	} {
		w.want(c.file, w.locate(c.cwd).PathKey(c.file), strings.ReplaceAll(filepath.ToSlash(c.file), "e\u0301", "é"))
	}
	w.want("relative", w.locate(plain).PathKey("a/../b"), filepath.ToSlash(filepath.Join(plain, "b")))
}

func TestSubmoduleFilesHaveAKeyInBothProjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	super := w.repo(w.path("super"))
	w.git(super, "submodule", "add", "-q", w.repo(w.path("lib")), "third/lib")
	file := filepath.Join(super, "third", "lib", "README.md")
	w.want("from above", w.locate(super).PathKey(file), "third/lib/README.md")
	w.want("from inside", w.locate(filepath.Join(super, "third", "lib")).PathKey(file), "README.md")
	w.want("the other way", w.locate(filepath.Join(super, "third", "lib")).PathKey(filepath.Join(super, "README.md")),
		filepath.ToSlash(filepath.Join(super, "README.md")))
}

func TestBareRepositoryKeysFollowItsWorktrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git(w.dir, "clone", "-q", "--bare", w.repo(w.path("seed")), w.path("x.git"))
	w.git(w.path("x.git"), "worktree", "add", "-q", w.path("one"))
	w.git(w.path("x.git"), "worktree", "add", "-q", w.path("two"))
	for _, cwd := range []string{w.path("one"), w.path("two"), w.path("x.git")} {
		w.want(cwd, w.locate(cwd).PathKey(w.path("two", "src", "a.go")), "src/a.go")
	}
}

func TestGonePlacesGiveTheKeysTheyHadWhenAlive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("app"))
	w.git(repo, "worktree", "add", "-q", filepath.Join(repo, ".worktrees", "w"))
	q := w.resolve(repo)
	cases := []struct{ cwd, file string }{
		{repo, "src/a.go"},
		{filepath.Join(repo, "src"), "a.go"},
		{filepath.Join(repo, ".worktrees", "w"), "src/a.go"},
		{filepath.Join(repo, ".worktrees", "w", "src"), filepath.Join(repo, "src", "a.go")},
		{repo, filepath.Join(repo, ".worktrees", "w", "src", "a.go")},
	}
	for _, when := range []string{"alive", "worktree gone", "all gone"} {
		for _, c := range cases {
			w.want(when+" "+c.cwd+" "+c.file, w.locate(c.cwd).Within(q).PathKey(c.file), "src/a.go")
		}
		switch when {
		case "alive":
			w.remove(filepath.Join(repo, ".worktrees", "w"))
		case "worktree gone":
			w.remove(repo)
		}
	}
	never := w.path("never")
	want := filepath.ToSlash(filepath.Join(never, "a.go"))
	w.want("never known", w.locate(never).PathKey("a.go"), want)
	w.want("never known, worktree", w.locate(filepath.Join(never, ".worktrees", "w")).PathKey("a.go"), want)
}

func TestInheritedProjectGivesItsOwnKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo, other := w.repo(w.path("app")), w.repo(w.path("other"))
	q := w.resolve(repo)
	plain := w.mkdir(w.path("plain"))
	p := w.locate(plain).Within(q)
	w.want("in the repository", p.PathKey(filepath.Join(repo, "src", "a.go")), "src/a.go")
	w.want("outside it", p.PathKey("a.go"), filepath.ToSlash(filepath.Join(plain, "a.go")))
	w.want("another repository stays itself", w.locate(other).Within(q).PathKey("a.go"), "a.go")
	folder := w.resolve(plain)
	w.want("a folder's project", w.locate(plain).Within(folder).PathKey("a.go"), filepath.ToSlash(filepath.Join(plain, "a.go")))
}

func TestAbsolute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.locate(w.path("gone"))
	for file, want := range map[string]string{
		"":                       "",
		"a.go":                   w.path("gone", "a.go"),
		"./x/../a.go":            w.path("gone", "a.go"),
		"../a.go":                w.path("a.go"),
		w.path("x", "..", "a.b"): w.path("a.b"),
	} {
		w.want(file, p.Absolute(file), want)
	}
	if runtime.GOOS == "windows" {
		return
	}
	foreign := w.locate(`C:\Users\Ann\app`)
	for file, want := range map[string]string{
		`src\a.go`: "C:/Users/Ann/app/src/a.go", `..\a.go`: "C:/Users/Ann/a.go", `d:\x\.\y`: "d:/x/y",
		`\\host\share\x`: "//host/share/x", "/etc/passwd": "/etc/passwd",
	} {
		w.want(file, foreign.Absolute(file), want)
		w.want("key of "+file, foreign.PathKey(file), want)
	}
	w.want("lost foreign worktree", w.locate(`C:\app\.worktrees\w`).PathKey(`src\a.go`), "C:/app/src/a.go")
	w.want("backslash in a name", p.Absolute(`a\b`), w.path("gone")+`/a\b`)
}

func FuzzPathKey(f *testing.F) {
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	for _, d := range []string{"app/.git", "app/src", "app/.worktrees/w"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	repo := filepath.Join(dir, "app")
	for _, s := range []string{
		"a.go", "../a", `..\..\x`, ".worktrees/w/a", ".worktrees/lost/a", "/etc/x", "C:\\x", `\\s\h`, "e\u0301", "\x00", "\xff/..",
		"./.././..//", "worktrees/", "/.worktrees/", ".claude/worktrees/", repo + "/src/../a.go", strings.Repeat("../", 50) + "a", "~/x",
	} {
		f.Add(s)
	}
	here, err := project.Locate(repo, "")
	if err != nil {
		f.Fatal(err)
	}
	gone, err := project.Locate(filepath.Join(dir, "none", ".worktrees", "w"), "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, file string) {
		for _, p := range []project.Location{here, gone} {
			key := p.PathKey(file)
			if (key == "") != (file == "") || strings.Contains(key, `\`) || strings.HasPrefix(key, "../") || key == ".." {
				t.Errorf("%q has the key %q", file, key)
			}
			if key == "" || strings.HasPrefix(key, "/") || len(key) > 1 && key[1] == ':' {
				continue
			}
			if again := p.PathKey(filepath.Join(repo, key)); again != key {
				t.Errorf("%q has the key %q, which has the key %q", file, key, again)
			}
		}
	})
}
