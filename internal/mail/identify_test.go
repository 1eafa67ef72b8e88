package mail

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSlugs(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("abc/", 60)
	for path, wanted := range map[string]string{
		"/w/My App":       "w-my-app",
		"/w//a__b.c/":     "w-a-b-c",
		"/":               "project",
		"/é/ü":            "project",
		"/9":              "9",
		`C:\Users\Ann\p1`: "c-users-ann-p1",
		long:              strings.Repeat("abc-", 27) + "a-" + hexOf(long, 10),
	} {
		if got := slugOf(path); got != wanted {
			t.Errorf("%q: %q, want %q", path, got, wanted)
		}
	}
	want(t, "length of a long slug", len(slugOf(long)), maxSlug)
	want(t, "a short one", slugged("My.App", "x"), "my-app-"+hexOf("x", 10))
	want(t, "a nameless one", slugged("é", "x"), "project-"+hexOf("x", 10))
}

func TestEnsureProjectOutsideARepositoryMakesTheDirectoryAProjectOnce(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	dir := y.mkdir(y.path("app"))
	p := y.ensure(dir)
	wantFields(t, "ensure_project", p, "id", "slug", "human_key", "created_at", "identity_mode_used", "canonical_path", "repo_root", "git_common_dir",
		"branch", "worktree_name", "core_ignorecase", "normalized_remote", "project_uid", "discovery")
	want(t, "id", p.ID, 1)
	want(t, "human_key", p.HumanKey, dir)
	want(t, "canonical_path", p.CanonicalPath, dir)
	want(t, "mode", p.IdentityMode, "dir")
	want(t, "uid", p.UID, y.sharedUID(p.ID))
	want(t, "slug", p.Slug, slugOf(dir))
	if p.RepoRoot != nil || p.GitCommonDir != nil || p.Branch != nil || p.WorktreeName != nil || p.FoldsCase != nil || p.Remote != nil || p.Discovery != nil {
		t.Errorf("something is known of no repository: %+v", p)
	}
	before := y.changes()
	if again := y.ensure(dir + "/./"); again != p {
		t.Errorf("again: %+v, want %+v", again, p)
	}
	want(t, "changes by repeating", y.changes(), before)

	link := y.path("link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	want(t, "project behind a link", y.ensure(link).ID, p.ID)
	missing := y.ensure(y.path("not", "there"))
	want(t, "mode of a folder that is not there", missing.IdentityMode, "dir")
	want(t, "its id", missing.ID, 2)
	windows := y.ensure(`C:\Users\Ann\p1`)
	want(t, "slug of a path of Windows", windows.Slug, "c-users-ann-p1")
	y.rebuilt()
}

func TestEnsureProjectRefusesWhatIsNoAbsolutePath(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	try := func(human, mode string) error {
		_, err := y.EnsureProject(t.Context(), Caller{}, EnsureArgs{human, mode})
		return err
	}
	for _, path := range []string{"app", "./app", "~/app", "", "  "} {
		wantError(t, path, try(path, ""), CodeInvalid, "absolute directory path", `"field":"human_key"`)
	}
	wantError(t, "mode", try(y.dir, "git"), CodeInvalid, `"field":"identity_mode"`)
	wantError(t, "NUL", try("/a\x00b", ""), CodeInvalid)
	wantError(t, "broken text", try("/a\xff", ""), CodeInvalid)
	for _, path := range []string{"YOUR_PROJECT", "/home/ann/YOUR_PROJECT", "/w/<PROJECT>/x", "{PROJECT}", "$PROJECT", "PLACEHOLDER", "YOUR_PROJECT_PATH"} {
		wantError(t, path, try(path, ""), CodeConfiguration)
	}
	want(t, "changes", y.changes(), 0)
}

func TestAllWorktreesOfARepositoryAreOneProject(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	main := y.repo("app")
	y.git(main, "worktree", "add", "-q", "-b", "side", y.path("trees", "side"))
	y.mkdir(filepath.Join(main, "internal", "x"))
	side := y.ensure(y.path("trees", "side"))
	want(t, "human_key", side.HumanKey, main)
	want(t, "mode", side.IdentityMode, "git-common-dir")
	want(t, "repo_root", *side.RepoRoot, y.path("trees", "side"))
	want(t, "git_common_dir", *side.GitCommonDir, filepath.Join(main, ".git"))
	want(t, "branch", *side.Branch, "side")
	want(t, "worktree_name", *side.WorktreeName, "side")
	want(t, "core_ignorecase", *side.FoldsCase, false)
	want(t, "uid", side.UID, y.sharedUID(side.ID))
	for _, path := range []string{main, filepath.Join(main, "internal", "x"), filepath.Join(main, "not", "there")} {
		p := y.ensure(path)
		want(t, "project of "+path, p.ID, side.ID)
		if p.WorktreeName != nil {
			t.Errorf("the main worktree is called %q", *p.WorktreeName)
		}
	}
	y.git(main, "config", "core.ignoreCase", "true")
	want(t, "core_ignorecase after it was set", *y.ensure(main).FoldsCase, true)
	y.rebuilt()
}

func TestAProjectKeepsItsUIDWhenItsRepositoryIsMovedOrGetsAnOrigin(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	main := y.repo("app")
	p := y.ensure(main)
	y.git(main, "remote", "add", "origin", "git@github.com:acme/app.git")
	got := y.ensure(main)
	want(t, "uid with an origin", got.UID, p.UID)
	want(t, "remote", *got.Remote, "github.com/acme/app")
	if err := os.Rename(main, y.path("moved")); err != nil {
		t.Fatal(err)
	}
	moved := y.ensure(y.path("moved"))
	want(t, "id after moving", moved.ID, p.ID)
	want(t, "human_key after moving", moved.HumanKey, y.path("moved"))
	want(t, "canonical_path after moving", moved.CanonicalPath, y.path("moved"))
	y.rebuilt()
}

func TestNothingInAWorkingTreeClaimsAnIdentity(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	victim := y.repo("victim")
	p := y.ensure(victim)
	for _, name := range []string{"one", "two"} {
		other := y.repo(name)
		y.write(filepath.Join(other, ".cairn-project-id"), p.UID+"\n")
		y.write(filepath.Join(other, ".git", "cairn-project-id"), p.UID+"\n")
		got := y.ensure(other)
		if got.ID == p.ID || got.UID == p.UID {
			t.Errorf("%s is the project of %s", other, victim)
		}
	}
	plain := y.mkdir(y.path("plain"))
	y.write(filepath.Join(plain, ".cairn-project-id"), p.UID+"\n")
	if y.ensure(plain).ID == p.ID {
		t.Errorf("a directory is the project of %s", victim)
	}
	names, err := os.ReadDir(filepath.Join(victim, ".git"))
	for _, f := range names {
		if strings.Contains(f.Name(), "cairn") {
			t.Errorf("%s is in the git directory", f.Name())
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestClonesOfOneOriginAreOneProject(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	one, two := y.repo("one"), y.repo("two")
	y.git(one, "remote", "add", "origin", "https://github.com/acme/App.git")
	y.git(two, "remote", "add", "origin", "git@GitHub.com:acme/App")
	y.git(two, "config", "core.ignorecase", "true")
	p := y.ensure(one)
	want(t, "uid", p.UID, y.sharedUID(p.ID))
	before := y.changes()
	want(t, "the other clone", y.ensure(two).ID, p.ID)
	want(t, "changes by the other clone", y.changes(), before)
	y.rebuilt()
}

func TestASubmoduleIsAProjectOfItsOwn(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	lib, app := y.repo("lib"), y.repo("app")
	y.git(app, "submodule", "--quiet", "add", lib, "deps/lib")
	outer, inner := y.ensure(app), y.ensure(filepath.Join(app, "deps", "lib"))
	if outer.ID == inner.ID || outer.UID == inner.UID {
		t.Errorf("one project: %+v", inner)
	}
	want(t, "human_key", inner.HumanKey, filepath.Join(app, "deps", "lib"))
	want(t, "git_common_dir", *inner.GitCommonDir, filepath.Join(app, ".git", "modules", "deps", "lib"))
	y.git(filepath.Join(app, "deps", "lib"), "worktree", "add", "-q", "-b", "side", y.path("libside"))
	side := y.ensure(y.path("libside"))
	want(t, "a worktree of the submodule", side.ID, inner.ID)
	want(t, "its name", *side.WorktreeName, "libside")
}

func TestABareRepositoryWithWorktreesIsOneProject(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	y.git(y.dir, "clone", "-q", "--bare", y.repo("app"), "app.git")
	y.git(y.path("app.git"), "worktree", "add", "-q", y.path("one"))
	bare := y.ensure(y.path("app.git"))
	want(t, "human_key", bare.HumanKey, y.path("app.git"))
	if bare.RepoRoot != nil {
		t.Errorf("a bare repository has the root %q", *bare.RepoRoot)
	}
	want(t, "the worktree", y.ensure(y.path("one")).ID, bare.ID)
}

func TestIdentityModesNameTheProject(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	for mode, wanted := range map[string]struct{ slug, canonical string }{
		modeRemote:   {"app-git-remote-" + hexOf("github.com/acme/app-git-remote", 10), y.path(modeRemote)},
		modeToplevel: {modeToplevel + "-" + hexOf(y.path(modeToplevel), 10), y.path(modeToplevel)},
		modeCommon:   {"repo-" + hexOf(y.path(modeCommon, ".git"), 10), y.path(modeCommon, ".git")},
		modeDir:      {slugOf(y.path(modeDir)), y.path(modeDir)},
	} {
		root := y.repo(mode)
		y.git(root, "remote", "add", "origin", "https://github.com/acme/app-"+mode)
		p := y.ensureAs(root, mode)
		want(t, "mode", p.IdentityMode, mode)
		want(t, "canonical_path of "+mode, p.CanonicalPath, wanted.canonical)
		want(t, "slug of "+mode, p.Slug, wanted.slug)
		want(t, "repo_root of "+mode, *p.RepoRoot, root)
		if mode != modeDir {
			want(t, "project without the mode", y.ensure(root).ID, p.ID)
		}
	}
	plain := y.mkdir(y.path("plain"))
	for _, mode := range []string{modeRemote, modeToplevel, modeCommon} {
		p := y.ensureAs(plain, mode)
		want(t, mode+" outside a repository", p.IdentityMode, modeDir)
		want(t, "its slug", p.Slug, slugOf(plain))
	}
	want(t, "git-remote without a remote", y.ensureAs(y.repo("alone"), modeRemote).IdentityMode, modeDir)
	y.rebuilt()
}

func TestADirectoryInsideARepositoryCanBeAProjectByItself(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	root := y.repo("app")
	part := y.mkdir(filepath.Join(root, "service"))
	d := y.ensureAs(part, modeDir)
	r := y.ensure(root)
	if d.ID == r.ID || d.UID == r.UID {
		t.Fatalf("one project: %+v %+v", d, r)
	}
	got := y.ensure(part)
	want(t, "the directory's path", got.ID, d.ID)
	want(t, "its mode", got.IdentityMode, modeDir)
	want(t, "its canonical_path", got.CanonicalPath, part)
	want(t, "a path below it", y.ensure(filepath.Join(part, "x")).ID, r.ID)
	whole := y.ensureAs(root, modeDir)
	if whole.ID == r.ID {
		t.Errorf("the root as a directory is the repository's project")
	}
	want(t, "slug of the third project of the path", whole.Slug, slugOf(root)+"-"+hexOf(root, 6))
	want(t, "the root's path", y.ensure(root).ID, r.ID)
	y.rebuilt()
}

func TestADirectoryThatBecomesARepositoryStaysTheSameProject(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	dir := y.mkdir(y.path("app"))
	p := y.ensure(dir)
	y.git(dir, "init", "-q")
	want(t, "project", y.ensure(dir).ID, p.ID)
	want(t, "project by a path inside", y.ensure(filepath.Join(dir, "x")).ID, p.ID)
	want(t, "uid", y.ensure(dir).UID, p.UID)
	y.rebuilt()
}

func TestTwoProjectsNeverShareASlugOrAProductID(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	one, two, three := y.ensure(y.mkdir(y.path("a-b", "app"))), y.ensure(y.mkdir(y.path("a b", "app"))), y.ensure(y.mkdir(y.path("a.b", "app")))
	want(t, "first slug", one.Slug, slugOf(one.HumanKey))
	want(t, "second slug", two.Slug, slugOf(two.HumanKey)+"-"+hexOf(two.HumanKey, 6))
	want(t, "third slug", three.Slug, slugOf(three.HumanKey)+"-"+hexOf(three.HumanKey, 6))
	var products int
	y.query(&products, "SELECT count(DISTINCT project_key) FROM mail_projects")
	want(t, "product projects", products, 3)
	y.rebuilt()
}

func TestAProjectKeyIsAPathASlugAProductIDAUIDOrANumberInThisOrder(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	root := y.repo("app")
	p := y.ensure(root)
	y.clock.Move(time.Second)
	other := y.ensure("/1")
	want(t, "slug of the other", other.Slug, "1")
	for _, key := range []string{root, filepath.Join(root, "x"), p.Slug, "app", p.UID, strings.ToUpper(p.UID), " " + p.Slug + " "} {
		list := must(y.ListAgents(t.Context(), Caller{}, ListAgentsArgs{ProjectKey: key}))(t)
		want(t, "agents", len(list), 0)
		want(t, "project of "+key, y.register(key, "BlueLake").ProjectID, p.ID)
		must(y.RetireAgent(t.Context(), Caller{}, RetireArgs{ProjectKey: key, AgentName: "BlueLake"}))(t)
	}
	want(t, "a slug comes before a number", y.register("1", "").ProjectID, other.ID)
	want(t, "a number", y.register("2", "").ProjectID, other.ID)
}

func TestReadsCreateNothingAndSayWhatIsLikeIt(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	root := y.repo("app")
	read := func(c Caller, key string) error {
		_, err := y.ListAgents(t.Context(), c, ListAgentsArgs{ProjectKey: key})
		return err
	}
	wantError(t, "an unknown path", read(Caller{}, root), CodeNotFound, "not found", `"tool":"ensure_project","arguments":{"human_key":"`+root+`"}`, `"suggestions":[]`)
	want(t, "changes", y.changes(), 0)
	p := y.ensure(root)
	before := y.changes()
	wantError(t, "a misspelt slug", read(Caller{}, p.Slug[:len(p.Slug)-1]+"q"), CodeNotFound, `"suggestions":[{"name":"`+p.Slug+`"`)
	wantError(t, "nothing like it", read(Caller{}, "zzzzzzzzzzzzzzzzzzzzzz"), CodeNotFound, `"suggestions":[]`)
	for _, key := range []string{"0", "-1", "99999999999999999999", "3"} {
		wantError(t, key, read(Caller{}, key), CodeNotFound, `"project":"`+key+`"`)
	}
	wantError(t, "blank", read(Caller{}, " "), CodeMissing, `"field":"project_key"`)
	wantError(t, "placeholder", read(Caller{}, "YOUR_PROJECT"), CodeConfiguration)
	wantError(t, "NUL", read(Caller{}, "a\x00"), CodeInvalid)
	_, err := y.RegisterAgent(t.Context(), Caller{}, RegisterArgs{ProjectKey: "nowhere", Program: "p", Model: "m"})
	wantError(t, "a write to an unknown slug", err, CodeNotFound)
	want(t, "changes", y.changes(), before)
	if err := New(nil, Config{}).readIn(t.Context(), Caller{}, root, nil); err == nil {
		t.Error("no store, but a project")
	} else {
		wantError(t, "without a store", err, CodeNotFound)
	}
}
