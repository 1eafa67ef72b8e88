package project_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/project"
)

func TestWorktreesAndSubfoldersShareOneIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("My App"))
	w.mkdir(filepath.Join(repo, "src", "deep"))
	w.git(repo, "worktree", "add", "-q", w.path("feature"))
	w.git(repo, "worktree", "add", "-q", filepath.Join(repo, ".worktrees", "fix"))
	for cwd, root := range map[string]string{
		repo:                                   repo,
		filepath.Join(repo, "src", "deep"):     repo,
		filepath.Join(repo, "src", "..", "."):  repo,
		w.path("feature"):                      w.path("feature"),
		filepath.Join(repo, ".worktrees/fix"):  filepath.Join(repo, ".worktrees", "fix"),
		filepath.Join(repo, ".git"):            "",
		filepath.Join(repo, ".git", "hooks"):   "",
		filepath.Join(repo, ".git/worktrees/"): "",
	} {
		p := w.locate(cwd)
		w.want(cwd+" identity", p.Identity, filepath.Join(repo, ".git"))
		w.want(cwd+" root", p.Root, root)
		w.want(cwd+" slug", p.Slug, "my-app")
		w.want(cwd+" name", p.Name, "My App")
	}
}

func TestSubmoduleIsASeparateRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lib, super := w.repo(w.path("lib")), w.repo(w.path("super"))
	w.git(super, "submodule", "add", "-q", lib, "third/lib")
	p := w.locate(filepath.Join(super, "third", "lib"))
	w.want("identity", p.Identity, filepath.Join(super, ".git", "modules", "third", "lib"))
	w.want("root", p.Root, filepath.Join(super, "third", "lib"))
	w.want("slug", p.Slug, "lib")
	w.want("origin", p.OriginURL, lib)
	w.want("above", w.locate(filepath.Join(super, "third")).Slug, "super")
}

func TestBareAndSeparateGitDirectories(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("seed"))
	w.git(w.dir, "clone", "-q", "--bare", repo, w.path("Tool.git"))
	w.git(w.path("Tool.git"), "worktree", "add", "-q", w.path("tool-main"))
	w.git(w.dir, "clone", "-q", "--bare", repo, w.path("hidden", ".bare"))
	w.write(w.path("hidden", ".git"), "gitdir: ./.bare\n")
	w.git(w.path("hidden"), "worktree", "add", "-q", w.path("hidden", "main"))
	w.mkdir(w.path("gits"))
	w.git(w.dir, "init", "-q", "--separate-git-dir", w.path("gits", "apart.git"), w.path("checkout"))
	for cwd, want := range map[string][2]string{
		w.path("Tool.git"):             {"tool", w.path("Tool.git")},
		w.path("Tool.git", "refs"):     {"tool", w.path("Tool.git")},
		w.path("tool-main"):            {"tool", w.path("Tool.git")},
		w.path("hidden"):               {"hidden", w.path("hidden", ".bare")},
		w.path("hidden", "main"):       {"hidden", w.path("hidden", ".bare")},
		w.path("checkout"):             {"apart", w.path("gits", "apart.git")},
		w.path("gits", "apart.git"):    {"apart", w.path("gits", "apart.git")},
		w.path("gits"):                 {"gits", ""},
		w.repo(w.path("not-bare.git")): {"not-bare.git", w.path("not-bare.git", ".git")},
	} {
		p := w.locate(cwd)
		w.want(cwd+" slug", p.Slug, want[0])
		w.want(cwd+" identity", p.Identity, want[1])
	}
}

func TestPlacesWithoutRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	top := filepath.VolumeName(w.dir) + string(filepath.Separator)
	for cwd, slug := range map[string]string{
		w.home:                                     "home",
		w.home + string(filepath.Separator):        "home",
		w.mkdir(filepath.Join(w.home, "notes")):    "notes",
		w.mkdir(w.path("Größe & Gewicht")):         "gr-e-gewicht",
		w.mkdir(w.path("项目")):                      "project",
		w.mkdir(w.path("..hidden")):                "hidden",
		w.mkdir(w.path("_a_.-b")):                  "a_.-b",
		w.mkdir(w.path("x--  y")):                  "x---y",
		w.mkdir(w.path(strings.Repeat("Ab", 100))): strings.Repeat("ab", 32),
		top: "unknown",
	} {
		p := w.locate(cwd)
		w.want(cwd, p.Slug, slug)
		w.want(cwd+" identity", p.Identity+p.Root, "")
	}
	w.want("display name", w.locate(w.path("Größe & Gewicht")).Name, "Größe & Gewicht")
}

func TestRepositoryInHomeCountsOnlyForHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo(w.home)
	below := w.mkdir(filepath.Join(w.home, "notes", "2024"))
	w.want("home", w.locate(w.home).Slug, "ann")
	w.want("below", w.locate(below).Slug+w.locate(below).Identity, "2024")
	inner := w.repo(filepath.Join(w.home, "code", "app"))
	w.want("repository below", w.locate(inner).Identity, filepath.Join(inner, ".git"))
	p, err := project.Locate(below, "")
	if err != nil || p.Slug != "ann" {
		t.Errorf("without a home: %q, %v", p.Slug, err)
	}
	w.symlink(w.home, w.path("linked-home"))
	p, err = project.Locate(below, w.path("linked-home"))
	if err != nil || p.Slug != "2024" {
		t.Errorf("home by another name: %q, %v", p.Slug, err)
	}
	p, err = project.Locate(w.path("linked-home"), w.home)
	if err != nil || p.Slug != "ann" {
		t.Errorf("cwd is home by another name: %q, %v", p.Slug, err)
	}
}

func TestSymbolicLinksLeadToTheSameIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("app"))
	w.mkdir(filepath.Join(repo, "sub"))
	w.symlink(repo, w.path("link"))
	w.symlink(filepath.Join(repo, "sub"), w.path("sublink"))
	w.symlink(w.mkdir(w.path("elsewhere")), filepath.Join(repo, "out"))
	w.symlink(w.repo(w.path("other")), filepath.Join(repo, "vendor"))
	w.symlink(filepath.Join(repo, ".git"), filepath.Join(w.mkdir(w.path("second")), ".git"))
	for cwd, want := range map[string]string{
		w.path("link"):              repo,
		w.path("link", "sub"):       repo,
		w.path("sublink"):           repo,
		filepath.Join(repo, "out"):  repo, // the link leads outside, but is inside
		filepath.Join(repo, "out/"): repo,
		w.path("app", "vendor"):     w.path("other"), // as Git sees it
		w.path("second"):            repo,
	} {
		w.want(cwd, w.locate(cwd).Identity, filepath.Join(want, ".git"))
	}
}

func TestBrokenGitEntriesAreSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outer := w.repo(w.path("outer"))
	for name, text := range map[string]string{
		"empty": "", "words": "hello", "nowhere": "gitdir: ../missing\n", "blank": "gitdir:   \n",
		"nul": "gitdir: ../.git\x00\n", "huge": "gitdir: ../.git" + strings.Repeat("/", 1<<20),
		"file": "gitdir: ../README.md\n", "binary": "\xff\xfe\x00\x01", "itself": "gitdir: .git\n",
	} {
		dir := filepath.Join(outer, name)
		w.write(filepath.Join(dir, ".git"), text)
		w.want(name, w.locate(dir).Identity, filepath.Join(outer, ".git"))
	}
	for name, text := range map[string]string{
		"cd-empty": "", "cd-nowhere": "../../../x", "cd-nul": "..\x00", "cd-huge": strings.Repeat("../", 1<<18),
	} {
		dir := filepath.Join(outer, name)
		w.write(filepath.Join(dir, ".git"), "gitdir: ../"+name+"-git")
		w.write(filepath.Join(outer, name+"-git", "commondir"), text)
		w.want(name, w.locate(dir).Identity, filepath.Join(outer, ".git"))
	}
	loop := w.mkdir(filepath.Join(outer, "loop"))
	w.symlink(".git", filepath.Join(loop, ".git"))
	w.want("loop", w.locate(loop).Identity, filepath.Join(outer, ".git"))
	shut := w.mkdir(filepath.Join(outer, "shut"))
	w.write(filepath.Join(shut, ".git"), "gitdir: ../missing")
	if err := os.Chmod(filepath.Join(shut, ".git"), 0); err != nil {
		t.Fatal(err)
	}
	w.want("unreadable", w.locate(shut).Identity, filepath.Join(outer, ".git"))
}

func TestRelativePointersAndCarriageReturns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("app"))
	w.git(repo, "worktree", "add", "-q", w.path("wt"))
	w.write(w.path("wt", ".git"), "gitdir:\t../app/.git/worktrees/wt\r\n")
	w.want("relative", w.locate(w.path("wt")).Identity, filepath.Join(repo, ".git"))
}

func TestGonePlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("app"))
	p := w.locate(filepath.Join(repo, "no", "longer", "there"))
	w.want("below a repository", p.Identity, filepath.Join(repo, ".git"))
	w.want("its root", p.Root, repo)
	if !p.Gone || w.locate(repo).Gone {
		t.Error("gone is wrong")
	}
	p = w.locate(filepath.Join(repo, ".claude", "worktrees", "fix", "src"))
	w.want("lost worktree", p.Identity, filepath.Join(repo, ".git"))
	w.want("its root", p.Root, filepath.Join(repo, ".claude", "worktrees", "fix"))
	for cwd, slug := range map[string]string{
		w.path("old", "Thing"):                                      "thing",
		w.path("old", "tool", ".worktrees", "fix"):                  "tool",
		w.path("old", "tool", ".claude", "worktrees", "fix", "a"):   "tool",
		w.path("old", "tool", "worktrees", "fix"):                   "fix",
		w.path("old", "tool", ".worktrees"):                         ".worktrees"[1:],
		filepath.Join(w.home, ".worktrees", "x"):                    "home",
		w.path("old", "b", ".worktrees", "x", ".worktrees", "y"):    "b",
		`C:\Users\Ann\Code\Big App`:                                 "big-app",
		`C:\Users\Ann\Code\tool\.claude\worktrees\x\src`:            "tool",
		`\\server\share\thing`:                                      "thing",
		w.path(strings.Repeat("x/", 5000), "far"):                   "far",
		w.path("nul\x00here"):                                       "nul-here",
		string(filepath.Separator) + strings.Repeat("a", 1<<20):     strings.Repeat("a", 64),
		string(filepath.Separator) + strings.Repeat("a/", 1<<20):    "a",
		string(filepath.Separator) + strings.Repeat("é", 300) + "z": "z",
	} {
		if runtime.GOOS == "windows" && cwd[0] == '/' {
			continue
		}
		w.want(cwd[:min(len(cwd), 80)], w.locate(cwd).Slug, slug)
	}
	w.want("foreign", w.locate(`C:\Users\Ann\x\..\y`).Cwd, map[bool]string{true: `C:\Users\Ann\y`, false: "C:/Users/Ann/y"}[runtime.GOOS == "windows"])
}

func TestDeepFoldersEndTheClimb(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("app"))
	near := filepath.Join(repo, strings.Repeat("d/", 63))
	far := filepath.Join(repo, strings.Repeat("d/", 64))
	w.mkdir(far)
	w.want("63 below", w.locate(near).Slug, "app")
	w.want("64 below", w.locate(far).Slug, "d")
}

func TestBlankCwdIsInvalid(t *testing.T) {
	t.Parallel()
	for _, cwd := range []string{"", " \t\n"} {
		if _, err := project.Locate(cwd, ""); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", cwd, err)
		}
	}
	p, err := project.Locate(".", "")
	wd, werr := os.Getwd()
	if err != nil || werr != nil || p.Cwd != wd {
		t.Errorf("relative: %q, %v, %v", p.Cwd, err, werr)
	}
}

func TestLocateChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("app"))
	w.git(repo, "worktree", "add", "-q", w.path("wt"))
	before := w.listing()
	for _, cwd := range []string{repo, w.path("wt"), w.path("gone"), w.dir} {
		w.locate(cwd).PathKey("README.md")
	}
	if after := w.listing(); !slices.Equal(before, after) {
		t.Errorf("before %v\nafter %v", before, after)
	}
}

// listing is every file below the working folder with size and time.
func (w *world) listing() (list []string) {
	w.Helper()
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		list = append(list, path+info.ModTime().String())
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return list
}

func TestOriginIsReadFromTheCommonConfigWithoutCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret := "hunter" + "2hunter2"
	for name, c := range map[string]struct{ url, want string }{
		"https":      {"https://github.com/a/b.git", "https://github.com/a/b.git"},
		"user":       {"https://ann:" + secret + "@github.com/a/b.git", "https://github.com/a/b.git"},
		"token":      {"https://" + secret + "@github.com/a/b", "https://github.com/a/b"},
		"at":         {"https://ann:p@" + secret + "@github.com/a/b", "https://github.com/a/b"},
		"query":      {"https://h/a.git?token=" + secret, "https://h/a.git"},
		"scp":        {"git@github.com:a/b.git", "git@github.com:a/b.git"},
		"scp-secret": {"ann:" + secret + "@host:a/b.git", "host:a/b.git"},
		"ssh":        {"ssh://git:" + secret + "@host:22/a", "ssh://git@host:22/a"},
		"host-only":  {"https://" + secret + "@host", "https://host"},
		"folder":     {"/srv/git/it's here; #1", "/srv/git/it's here; #1"},
		"windows":    {`C:\repos\x@y\b.git`, `C:\repos\x@y\b.git`},
	} {
		repo := w.repo(w.path(name))
		w.git(repo, "remote", "add", "upstream", "https://example.org/up.git")
		w.git(repo, "remote", "add", "origin", c.url)
		w.git(repo, "worktree", "add", "-q", w.path(name+"-wt"))
		w.want(name, w.locate(repo).OriginURL, c.want)
		w.want(name+" from a worktree", w.locate(w.path(name+"-wt")).OriginURL, c.want)
	}
}
