package service

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/mailtest"
)

// slugOf returns the slug of a path, if no other project has it.
func slugOf(path string) string {
	slug := strings.Trim(regexp.MustCompile("[^a-z0-9]+").ReplaceAllString(strings.ToLower(path), "-"), "-")
	if len(slug) > 120 {
		slug = strings.TrimRight(slug[:109], "-") + "-" + mail.HashHex(path, 10)
	}
	return slug
}

func TestEnsureProjectOutsideARepositoryMakesTheDirectoryAProjectOnce(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	dir := y.mkdir(y.path("app"))
	p := y.ensure(dir)
	mailtest.WantFields(t, "ensure_project", p, "id", "slug", "human_key", "created_at", "identity_mode_used", "canonical_path", "repo_root", "git_common_dir",
		"branch", "worktree_name", "core_ignorecase", "normalized_remote", "project_uid", "discovery")
	mailtest.Want(t, "id", p.ID, 1)
	mailtest.Want(t, "human_key", p.HumanKey, dir)
	mailtest.Want(t, "canonical_path", p.CanonicalPath, dir)
	mailtest.Want(t, "mode", p.IdentityMode, "dir")
	mailtest.Want(t, "uid", p.UID, y.sharedUID(p.ID))
	mailtest.Want(t, "slug", p.Slug, slugOf(dir))
	if p.RepoRoot != nil || p.GitCommonDir != nil || p.Branch != nil || p.WorktreeName != nil || p.FoldsCase != nil || p.Remote != nil || p.Discovery != nil {
		t.Errorf("something is known of no repository: %+v", p)
	}
	before := y.changes()
	if again := y.ensure(dir + "/./"); again != p {
		t.Errorf("again: %+v, want %+v", again, p)
	}
	mailtest.Want(t, "changes by repeating", y.changes(), before)

	link := y.path("link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	mailtest.Want(t, "project behind a link", y.ensure(link).ID, p.ID)
	missing := y.ensure(y.path("not", "there"))
	mailtest.Want(t, "mode of a folder that is not there", missing.IdentityMode, "dir")
	mailtest.Want(t, "its id", missing.ID, 2)
	windows := y.ensure(`C:\Users\Ann\p1`)
	mailtest.Want(t, "slug of a path of Windows", windows.Slug, "c-users-ann-p1")
	y.rebuilt()
}

func TestEnsureProjectRefusesWhatIsNoAbsolutePath(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	try := func(human, mode string) error {
		_, err := y.EnsureProject(t.Context(), mail.Caller{}, agents.EnsureArgs{HumanKey: human, IdentityMode: mode})
		return err
	}
	for _, path := range []string{"app", "./app", "~/app", "", "  "} {
		wantError(t, path, try(path, ""), mail.CodeInvalid, "absolute directory path", `"field":"human_key"`)
	}
	wantError(t, "mode", try(y.dir, "git"), mail.CodeInvalid, `"field":"identity_mode"`)
	wantError(t, "NUL", try("/a\x00b", ""), mail.CodeInvalid)
	wantError(t, "broken text", try("/a\xff", ""), mail.CodeInvalid)
	for _, path := range []string{"YOUR_PROJECT", "/home/ann/YOUR_PROJECT", "/w/<PROJECT>/x", "{PROJECT}", "$PROJECT", "PLACEHOLDER", "YOUR_PROJECT_PATH"} {
		wantError(t, path, try(path, ""), mail.CodeConfiguration)
	}
	mailtest.Want(t, "changes", y.changes(), 0)
}

func TestAllWorktreesOfARepositoryAreOneProject(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	main := y.repo("app")
	y.git(main, "worktree", "add", "-q", "-b", "side", y.path("trees", "side"))
	y.mkdir(filepath.Join(main, "internal", "x"))
	side := y.ensure(y.path("trees", "side"))
	mailtest.Want(t, "human_key", side.HumanKey, main)
	mailtest.Want(t, "mode", side.IdentityMode, "git-common-dir")
	mailtest.Want(t, "repo_root", *side.RepoRoot, y.path("trees", "side"))
	mailtest.Want(t, "git_common_dir", *side.GitCommonDir, filepath.Join(main, ".git"))
	mailtest.Want(t, "branch", *side.Branch, "side")
	mailtest.Want(t, "worktree_name", *side.WorktreeName, "side")
	mailtest.Want(t, "core_ignorecase", *side.FoldsCase, false)
	mailtest.Want(t, "uid", side.UID, y.sharedUID(side.ID))
	for _, path := range []string{main, filepath.Join(main, "internal", "x"), filepath.Join(main, "not", "there")} {
		p := y.ensure(path)
		mailtest.Want(t, "project of "+path, p.ID, side.ID)
		if p.WorktreeName != nil {
			t.Errorf("the main worktree is called %q", *p.WorktreeName)
		}
	}
	y.git(main, "config", "core.ignoreCase", "true")
	mailtest.Want(t, "core_ignorecase after it was set", *y.ensure(main).FoldsCase, true)
	y.rebuilt()
}

func TestAProjectKeepsItsUIDWhenItsRepositoryIsMovedOrGetsAnOrigin(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	main := y.repo("app")
	p := y.ensure(main)
	y.git(main, "remote", "add", "origin", "git@github.com:acme/app.git")
	got := y.ensure(main)
	mailtest.Want(t, "uid with an origin", got.UID, p.UID)
	mailtest.Want(t, "remote", *got.Remote, "github.com/acme/app")
	if err := os.Rename(main, y.path("moved")); err != nil {
		t.Fatal(err)
	}
	moved := y.ensure(y.path("moved"))
	mailtest.Want(t, "id after moving", moved.ID, p.ID)
	mailtest.Want(t, "human_key after moving", moved.HumanKey, y.path("moved"))
	mailtest.Want(t, "canonical_path after moving", moved.CanonicalPath, y.path("moved"))
	y.rebuilt()
}

func TestNothingInAWorkingTreeClaimsAnIdentity(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
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
	y := newYard(t, mail.Config{})
	one, two := y.repo("one"), y.repo("two")
	y.git(one, "remote", "add", "origin", "https://github.com/acme/App.git")
	y.git(two, "remote", "add", "origin", "git@GitHub.com:acme/App")
	y.git(two, "config", "core.ignorecase", "true")
	p := y.ensure(one)
	mailtest.Want(t, "uid", p.UID, y.sharedUID(p.ID))
	before := y.changes()
	mailtest.Want(t, "the other clone", y.ensure(two).ID, p.ID)
	mailtest.Want(t, "changes by the other clone", y.changes(), before)
	y.rebuilt()
}

func TestASubmoduleIsAProjectOfItsOwn(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	lib, app := y.repo("lib"), y.repo("app")
	y.git(app, "submodule", "--quiet", "add", lib, "deps/lib")
	outer, inner := y.ensure(app), y.ensure(filepath.Join(app, "deps", "lib"))
	if outer.ID == inner.ID || outer.UID == inner.UID {
		t.Errorf("one project: %+v", inner)
	}
	mailtest.Want(t, "human_key", inner.HumanKey, filepath.Join(app, "deps", "lib"))
	mailtest.Want(t, "git_common_dir", *inner.GitCommonDir, filepath.Join(app, ".git", "modules", "deps", "lib"))
	y.git(filepath.Join(app, "deps", "lib"), "worktree", "add", "-q", "-b", "side", y.path("libside"))
	side := y.ensure(y.path("libside"))
	mailtest.Want(t, "a worktree of the submodule", side.ID, inner.ID)
	mailtest.Want(t, "its name", *side.WorktreeName, "libside")
}

func TestABareRepositoryWithWorktreesIsOneProject(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	y.git(y.dir, "clone", "-q", "--bare", y.repo("app"), "app.git")
	y.git(y.path("app.git"), "worktree", "add", "-q", y.path("one"))
	bare := y.ensure(y.path("app.git"))
	mailtest.Want(t, "human_key", bare.HumanKey, y.path("app.git"))
	if bare.RepoRoot != nil {
		t.Errorf("a bare repository has the root %q", *bare.RepoRoot)
	}
	mailtest.Want(t, "the worktree", y.ensure(y.path("one")).ID, bare.ID)
}

func TestIdentityModesNameTheProject(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	for mode, wanted := range map[string]struct{ slug, canonical string }{
		"git-remote":     {"app-git-remote-" + mail.HashHex("github.com/acme/app-git-remote", 10), y.path("git-remote")},
		"git-toplevel":   {"git-toplevel" + "-" + mail.HashHex(y.path("git-toplevel"), 10), y.path("git-toplevel")},
		"git-common-dir": {"repo-" + mail.HashHex(y.path("git-common-dir", ".git"), 10), y.path("git-common-dir", ".git")},
		mail.ModeDir:     {slugOf(y.path(mail.ModeDir)), y.path(mail.ModeDir)},
	} {
		root := y.repo(mode)
		y.git(root, "remote", "add", "origin", "https://github.com/acme/app-"+mode)
		p := y.ensureAs(root, mode)
		mailtest.Want(t, "mode", p.IdentityMode, mode)
		mailtest.Want(t, "canonical_path of "+mode, p.CanonicalPath, wanted.canonical)
		mailtest.Want(t, "slug of "+mode, p.Slug, wanted.slug)
		mailtest.Want(t, "repo_root of "+mode, *p.RepoRoot, root)
		if mode != mail.ModeDir {
			mailtest.Want(t, "project without the mode", y.ensure(root).ID, p.ID)
		}
	}
	plain := y.mkdir(y.path("plain"))
	for _, mode := range []string{"git-remote", "git-toplevel", "git-common-dir"} {
		p := y.ensureAs(plain, mode)
		mailtest.Want(t, mode+" outside a repository", p.IdentityMode, mail.ModeDir)
		mailtest.Want(t, "its slug", p.Slug, slugOf(plain))
	}
	mailtest.Want(t, "git-remote without a remote", y.ensureAs(y.repo("alone"), "git-remote").IdentityMode, mail.ModeDir)
	y.rebuilt()
}

func TestADirectoryInsideARepositoryCanBeAProjectByItself(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	root := y.repo("app")
	part := y.mkdir(filepath.Join(root, "service"))
	d := y.ensureAs(part, mail.ModeDir)
	r := y.ensure(root)
	if d.ID == r.ID || d.UID == r.UID {
		t.Fatalf("one project: %+v %+v", d, r)
	}
	got := y.ensure(part)
	mailtest.Want(t, "the directory's path", got.ID, d.ID)
	mailtest.Want(t, "its mode", got.IdentityMode, mail.ModeDir)
	mailtest.Want(t, "its canonical_path", got.CanonicalPath, part)
	mailtest.Want(t, "a path below it", y.ensure(filepath.Join(part, "x")).ID, r.ID)
	whole := y.ensureAs(root, mail.ModeDir)
	if whole.ID == r.ID {
		t.Errorf("the root as a directory is the repository's project")
	}
	mailtest.Want(t, "slug of the third project of the path", whole.Slug, slugOf(root)+"-"+mail.HashHex(root, 6))
	mailtest.Want(t, "the root's path", y.ensure(root).ID, r.ID)
	y.rebuilt()
}

func TestADirectoryThatBecomesARepositoryStaysTheSameProject(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	dir := y.mkdir(y.path("app"))
	p := y.ensure(dir)
	y.git(dir, "init", "-q")
	mailtest.Want(t, "project", y.ensure(dir).ID, p.ID)
	mailtest.Want(t, "project by a path inside", y.ensure(filepath.Join(dir, "x")).ID, p.ID)
	mailtest.Want(t, "uid", y.ensure(dir).UID, p.UID)
	y.rebuilt()
}

func TestTwoProjectsNeverShareASlugOrAProductID(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	one, two, three := y.ensure(y.mkdir(y.path("a-b", "app"))), y.ensure(y.mkdir(y.path("a b", "app"))), y.ensure(y.mkdir(y.path("a.b", "app")))
	mailtest.Want(t, "first slug", one.Slug, slugOf(one.HumanKey))
	mailtest.Want(t, "second slug", two.Slug, slugOf(two.HumanKey)+"-"+mail.HashHex(two.HumanKey, 6))
	mailtest.Want(t, "third slug", three.Slug, slugOf(three.HumanKey)+"-"+mail.HashHex(three.HumanKey, 6))
	var products int
	y.query(&products, "SELECT count(DISTINCT project_key) FROM mail_projects")
	mailtest.Want(t, "product projects", products, 3)
	y.rebuilt()
}

func TestAProjectKeyIsAPathASlugAProductIDAUIDOrANumberInThisOrder(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	root := y.repo("app")
	p := y.ensure(root)
	y.clock.Move(time.Second)
	other := y.ensure("/1")
	mailtest.Want(t, "slug of the other", other.Slug, "1")
	for _, key := range []string{root, filepath.Join(root, "x"), p.Slug, "app", p.UID, strings.ToUpper(p.UID), " " + p.Slug + " "} {
		list := mailtest.Must(y.ListAgents(t.Context(), mail.Caller{}, agents.ListAgentsArgs{ProjectKey: key}))(t)
		mailtest.Want(t, "agents", len(list), 0)
		mailtest.Want(t, "project of "+key, y.register(key, "BlueLake").ProjectID, p.ID)
		mailtest.Must(y.RetireAgent(t.Context(), mail.Caller{}, agents.RetireArgs{ProjectKey: key, AgentName: "BlueLake"}))(t)
	}
	mailtest.Want(t, "a slug comes before a number", y.register("1", "").ProjectID, other.ID)
	mailtest.Want(t, "a number", y.register("2", "").ProjectID, other.ID)
}

func TestReadsCreateNothingAndSayWhatIsLikeIt(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	root := y.repo("app")
	read := func(c mail.Caller, key string) error {
		_, err := y.ListAgents(t.Context(), c, agents.ListAgentsArgs{ProjectKey: key})
		return err
	}
	wantError(t, "an unknown path", read(mail.Caller{}, root), mail.CodeNotFound, "not found", `"tool":"ensure_project","arguments":{"human_key":"`+root+`"}`, `"suggestions":[]`)
	mailtest.Want(t, "changes", y.changes(), 0)
	p := y.ensure(root)
	before := y.changes()
	wantError(t, "a misspelt slug", read(mail.Caller{}, p.Slug[:len(p.Slug)-1]+"q"), mail.CodeNotFound, `"suggestions":[{"name":"`+p.Slug+`"`)
	wantError(t, "nothing like it", read(mail.Caller{}, "zzzzzzzzzzzzzzzzzzzzzz"), mail.CodeNotFound, `"suggestions":[]`)
	for _, key := range []string{"0", "-1", "99999999999999999999", "3"} {
		wantError(t, key, read(mail.Caller{}, key), mail.CodeNotFound, `"project":"`+key+`"`)
	}
	wantError(t, "blank", read(mail.Caller{}, " "), mail.CodeMissing, `"field":"project_key"`)
	wantError(t, "placeholder", read(mail.Caller{}, "YOUR_PROJECT"), mail.CodeConfiguration)
	wantError(t, "NUL", read(mail.Caller{}, "a\x00"), mail.CodeInvalid)
	_, err := y.RegisterAgent(t.Context(), mail.Caller{}, agents.RegisterArgs{ProjectKey: "nowhere", Program: "p", Model: "m"})
	wantError(t, "a write to an unknown slug", err, mail.CodeNotFound)
	mailtest.Want(t, "changes", y.changes(), before)
	if err := New(nil, mail.Config{}).ReadIn(t.Context(), mail.Caller{}, root, nil); err == nil {
		t.Error("no store, but a project")
	} else {
		wantError(t, "without a store", err, mail.CodeNotFound)
	}
}
