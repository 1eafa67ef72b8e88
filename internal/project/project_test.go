package project_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/store"
)

// withSuffix returns a slug as rule 3 makes it unique.
func withSuffix(slug, identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return slug + "-" + hex.EncodeToString(sum[:])[:6]
}

func TestOneRepositoryIsOneProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("App"))
	w.git(repo, "worktree", "add", "-q", w.path("wt"))
	first := w.resolve(w.path("wt"))
	w.want("id", first.ID, "app")
	w.want("name", first.Name, "App")
	w.want("identity", first.Identity, filepath.Join(repo, ".git"))
	w.want("root", first.Root, repo)
	before := w.changes()
	for _, cwd := range []string{repo, filepath.Join(repo, "gone"), w.path("wt")} {
		if q := w.resolve(cwd); q != first {
			t.Errorf("%s: %+v, want %+v", cwd, q, first)
		}
	}
	if n := w.changes() - before; n != 0 {
		t.Errorf("seeing it again logged %d changes", n)
	}
}

func TestSecondRepositoryOfANameGetsASuffix(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.repo(w.path("a", "app")), w.repo(w.path("b", "app"))
	w.want("first", w.resolve(a).ID, "app")
	want := withSuffix("app", filepath.Join(b, ".git"))
	w.want("second", w.resolve(b).ID, want)
	w.want("its name", w.resolve(b).Name, "app")
	w.want("second again", w.resolve(b).ID, want)
	w.want("first again", w.resolve(a).ID, "app")
}

func TestReservedWordsAndCreatedProjectsForceASuffix(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"home", "Unknown", "default"} {
		repo := w.repo(w.path(name))
		w.want(name, w.resolve(repo).ID, withSuffix(strings.ToLower(name), filepath.Join(repo, ".git")))
	}
	folder := w.mkdir(w.path("plain", "home"))
	w.want("folder", w.resolve(folder).ID, withSuffix("home", folder))
	w.want("home", w.resolve(w.home).ID, "home")
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := project.Ensure(ctx, tx, "taken")
		return err
	})
	repo := w.repo(w.path("taken"))
	w.want("created before", w.resolve(repo).ID, withSuffix("taken", filepath.Join(repo, ".git")))
}

func TestLongSlugsKeepTheirSuffixWithinTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("abcdefgh", 12)
	w.want("first", w.resolve(w.repo(w.path("1", long))).ID, long[:64])
	b := w.repo(w.path("2", long))
	w.want("second", w.resolve(b).ID, withSuffix(long[:57], filepath.Join(b, ".git")))
}

func TestTakenSuffixIsReplacedByOtherDigits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resolve(w.repo(w.path("a", "app")))
	b := w.repo(w.path("b", "app"))
	taken := withSuffix("app", filepath.Join(b, ".git"))
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := project.Ensure(ctx, tx, taken)
		return err
	})
	sum := sha256.Sum256([]byte(filepath.Join(b, ".git")))
	w.want("next digits", w.resolve(b).ID, "app-"+hex.EncodeToString(sum[:])[6:12])
}

func TestMovedCloneKeepsItsProjectAsDoesTheOtherClone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	origin := w.repo(w.path("origin"))
	old := w.clone(origin, w.path("old", "app"))
	id := w.resolve(old).ID
	w.want("id", id, "app")

	copied := w.clone(origin, w.path("copy", "app"))
	w.want("copy", w.resolve(copied).ID, "app")

	w.rename(old, w.path("new", "renamed"))
	before := w.changes()
	q := w.resolve(w.path("new", "renamed"))
	w.want("moved", q.ID, "app")
	w.want("its identity", q.Identity, w.path("new", "renamed", ".git"))
	w.want("its root", q.Root, w.path("new", "renamed"))
	w.want("its name", q.Name, "renamed")
	if n := w.changes() - before; n != 1 {
		t.Errorf("the move logged %d changes", n)
	}
	w.want("copy still", w.resolve(copied).ID, "app")
}

func TestMovedRepositoryWithoutOrWithAnotherRemoteKeepsItsProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lone := w.repo(w.path("old", "lone"))
	w.resolve(lone)
	w.rename(lone, w.path("new", "lone"))
	w.want("no remote", w.resolve(w.path("new", "lone")).ID, "lone")

	other := w.clone(w.repo(w.path("o1")), w.path("old", "other"))
	w.resolve(other)
	w.git(other, "remote", "set-url", "origin", w.path("o2"))
	w.rename(other, w.path("new", "other"))
	w.want("another remote", w.resolve(w.path("new", "other")).ID, "other")
	w.want("a clone of that", w.resolve(w.clone(w.repo(w.path("o2")), w.path("third"))).ID, "other")
}

func TestOriginAddedLaterIsRecordedForAMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.repo(w.path("old", "app"))
	w.resolve(repo)
	w.git(repo, "remote", "add", "origin", "https://example.org/app.git")
	w.want("origin", w.resolve(repo).OriginURL, "https://example.org/app.git")
	w.rename(repo, w.path("new", "app"))
	w.want("moved", w.resolve(w.path("new", "app")).ID, "app")
}

func TestFolderAndRepositoriesOfOneNameAreDifferentProjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := w.mkdir(w.path("a", "tool"))
	w.want("folder", w.resolve(folder).ID, "tool")
	repo := w.repo(w.path("b", "tool"))
	w.want("repository", w.resolve(repo).ID, withSuffix("tool", filepath.Join(repo, ".git")))
	second := w.mkdir(w.path("c", "tool"))
	w.want("second folder", w.resolve(second).ID, withSuffix("tool", second))
	w.want("folder again", w.resolve(folder).ID, "tool")

	started := w.mkdir(w.path("later"))
	key := w.resolve(started).Key
	w.repo(started)
	if q := w.resolve(started); q.Key != key || q.Identity == "" {
		t.Errorf("after git init: %+v, want row %d", q, key)
	}
	w.git(started, "remote", "add", "origin", "https://example.org/later")
	if q := w.resolve(started); q.Key != key {
		t.Errorf("after git remote add: %+v, want row %d", q, key)
	}
}

func TestEveryPlaceHasAProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	top := filepath.VolumeName(w.dir) + string(filepath.Separator)
	w.want("top", w.resolve(top).ID, "unknown")
	w.want("home", w.resolve(w.home).ID, "home")
	w.want("no name", w.resolve(w.mkdir(w.path("项目"))).ID, "project")
	repo := w.repo(w.path("日本"))
	w.want("no name, repository", w.resolve(repo).ID, withSuffix("project", filepath.Join(repo, ".git")))
	repo2 := w.repo(w.path("한국"))
	w.want("no name, next", w.resolve(repo2).ID, withSuffix("project", filepath.Join(repo2, ".git")))
	w.want("huge", w.resolve("/"+strings.Repeat("q/", 1<<18)).ID, "q")
}

func TestGoneCwdBelongsToTheNearestKnownRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resolve(w.home) // its row must not match missing folders below it
	outer := w.repo(w.path("outer"))
	inner := w.repo(w.path("outer", "inner"))
	lost := w.repo(filepath.Join(w.home, "lost"))
	w.resolve(outer)
	w.want("inner", w.resolve(inner).ID, "inner")
	w.want("lost", w.resolve(lost).ID, "lost")
	scratch := w.mkdir(w.path("scratch"))
	w.resolve(scratch)
	w.resolve(w.dir)
	w.remove(inner)
	w.remove(lost)
	w.remove(scratch)
	for cwd, id := range map[string]string{
		filepath.Join(inner, "src"):   "inner", // nearer than outer, which exists
		filepath.Join(outer, "src"):   "outer",
		lost:                          "lost",
		filepath.Join(lost, "a", "b"): "lost",
		filepath.Join(lost, ".worktrees", "w", "src"):       "lost",
		filepath.Join(scratch, "sub"):                       "scratch",
		filepath.Join(w.home, "never"):                      "never", // home's row is no root for it
		w.path("never2"):                                    "never2",
		w.path("never3", ".claude", "worktrees", "x", "y"):  "never3",
		filepath.Join(lost+"-not", "sub"):                   "sub",
		`C:\Users\Ann\never4`:                               "never4",
		`C:\Users\Ann\never4\.worktrees\x\src`:              "never4",
		filepath.Join(outer, ".worktrees", "w", "src", "x"): "outer",
	} {
		w.want(cwd, w.resolve(cwd).ID, id)
	}
}

func TestFindFollowsAliases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resolve(w.repo(w.path("app")))
	w.resolve(w.repo(w.path("lib")))
	add := func(alias, id string) error {
		return w.try(func(ctx context.Context, tx *store.Tx) error { return project.AddAlias(ctx, tx, alias, id) })
	}
	if err := errors.Join(add("Old Name", "app"), add("older", "Old Name"), add("older", "app")); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{"app": "app", "Old Name": "app", "older": "app", "lib": "lib"} {
		q, ok := w.find(name)
		if !ok || q.ID != id {
			t.Errorf("%s: %q, %v", name, q.ID, ok)
		}
	}
	if q, ok := w.find("nothing"); ok || q != (project.Project{}) {
		t.Errorf("nothing: %+v", q)
	}
	before := w.changes()
	if err := errors.Join(add("older", "app"), add("Old Name", "older")); err != nil || w.changes() != before {
		t.Errorf("repeating: %v, %d changes", err, w.changes()-before)
	}
	if err := add("older", "lib"); err != nil {
		t.Fatal(err)
	}
	if q, _ := w.find("older"); q.ID != "lib" {
		t.Errorf("pointed elsewhere: %q", q.ID)
	}
	for name, c := range map[string]struct {
		alias, id string
		kind      fault.Kind
	}{
		"unknown id":    {"x", "nobody", fault.NotFound},
		"taken":         {"lib", "app", fault.Conflict},
		"itself":        {"app", "app", fault.Conflict},
		"blank":         {" ", "app", fault.Invalid},
		"all projects":  {"*", "app", fault.Invalid},
		"two lines":     {"a\nb", "app", fault.Invalid},
		"too long":      {strings.Repeat("a", 201), "app", fault.Invalid},
		"invalid UTF-8": {"\xff", "app", fault.Invalid},
	} {
		if err := add(c.alias, c.id); err == nil || fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAliasIsTakenForNewRepositoriesAndFolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resolve(w.repo(w.path("app")))
	w.tx(func(ctx context.Context, tx *store.Tx) error { return project.AddAlias(ctx, tx, "notes", "app") })
	folder := w.mkdir(w.path("x", "notes"))
	w.want("folder", w.resolve(folder).ID, withSuffix("notes", folder))
	repo := w.repo(w.path("notes"))
	w.want("repository", w.resolve(repo).ID, withSuffix("notes", filepath.Join(repo, ".git")))
}

func TestMergedRepositoryBelongsToTheOtherProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c := w.clone(w.repo(w.path("oa")), w.path("a")), w.repo(w.path("b")), w.repo(w.path("c"))
	w.see("s1", a)
	w.see("s2", b)
	w.see("s3", c)
	w.tx(func(ctx context.Context, tx *store.Tx) error { return project.AddAlias(ctx, tx, "a-old", "a") })
	moved := []string{}
	merge := func(from, into string) error {
		return w.try(func(ctx context.Context, tx *store.Tx) error {
			return project.Merge(ctx, tx, from, into, func(_ context.Context, _ *store.Tx, f, t project.Project) error {
				moved = append(moved, f.ID+">"+t.ID)
				return nil
			})
		})
	}
	if err := errors.Join(merge("a-old", "b"), merge("a", "b"), merge("a", "a-old"), merge("b", "c")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(moved, []string{"a>b", "b>c"}) {
		t.Errorf("moved %v", moved)
	}
	for _, name := range []string{"a", "a-old", "b", "c"} {
		if q, ok := w.find(name); !ok || q.ID != "c" {
			t.Errorf("%s leads to %q", name, q.ID)
		}
	}
	for _, session := range []string{"s1", "s2", "s3", "s4"} {
		own, event := w.see(session, a)
		w.want(session, own+" "+event, "c c")
	}
	w.want("another repository called a", w.resolve(w.repo(w.path("x", "a"))).ID, withSuffix("a", w.path("x", "a", ".git")))
	w.rename(a, w.path("y", "a"))
	w.want("moved after the merge", w.resolve(w.path("y", "a")).ID, "c")
	w.remove(w.path("y", "a"))
	w.want("gone after the merge", w.resolve(w.path("y", "a", "src")).ID, "c")
	if err := merge("c", "c"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("itself: %v", err)
	}
	if err := errors.Join(merge("nobody", "c")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("unknown from: %v", err)
	}
	if err := merge("c", "nobody"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("unknown into: %v", err)
	}
}

func TestFailedMergeChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.see("s", w.repo(w.path("a")))
	w.resolve(w.repo(w.path("b")))
	before := w.changes()
	refused := errors.New("refused")
	err := w.try(func(ctx context.Context, tx *store.Tx) error {
		return project.Merge(ctx, tx, "a", "b", func(context.Context, *store.Tx, project.Project, project.Project) error { return refused })
	})
	q, _ := w.find("a")
	if !errors.Is(err, refused) || q.ID != "a" || w.changes() != before {
		t.Errorf("%v, %q, %d changes", err, q.ID, w.changes()-before)
	}
}

func TestCurrentCreatesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.clone(w.repo(w.path("o")), w.path("app"))
	current := func(cwd string) (id string) {
		p := w.locate(cwd)
		err := w.store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			q, ok, err := project.Current(ctx, tx, p)
			if ok != (q.ID != "") {
				t.Errorf("%s: ok is %v for %q", cwd, ok, q.ID)
			}
			id = q.ID
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", cwd, err)
		}
		return id
	}
	w.want("before", current(repo), "")
	w.resolve(repo)
	w.resolve("/")
	w.want("after", current(filepath.Join(repo, "gone")), "app")
	w.want("top", current("/"), "")
	w.want("folder", current(w.mkdir(w.path("plain"))), "")
	w.rename(repo, w.path("moved"))
	w.want("moved, not yet recorded", current(w.path("moved")), "app")
}

func TestListIsSortedByLastSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b", "c"} {
		w.now = w.now.Add(time.Minute)
		w.see("s-"+id, w.repo(w.path(id)))
		w.see("t-"+id, w.path(id))
	}
	w.resolve(w.repo(w.path("silent")))
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(project.Merge(ctx, tx, "c", "a", nil), project.AddAlias(ctx, tx, "zz", "a"))
	})
	var list []project.Summary
	w.tx(func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = project.List(ctx, tx)
		return err
	})
	type line struct {
		id       string
		aliases  string
		sessions int64
		seen     int64
	}
	var got []line
	for _, s := range list {
		got = append(got, line{s.ID, strings.Join(s.Aliases, " "), s.Sessions, s.LastSeen - 1_700_000_000})
	}
	want := []line{{"a", "c zz", 4, 180}, {"b", "", 2, 120}, {"silent", "", 0, -1_700_000_000}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if list[0].CreatedAt != 1_700_000_060 {
		t.Errorf("created at %d", list[0].CreatedAt)
	}
}

func TestChangeLogContainsTheWholeProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := w.clone(w.repo(w.path("o")), w.path("app"))
	w.resolve(repo)
	w.resolve(w.repo(w.path("big")))
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(project.AddAlias(ctx, tx, "nick", "app"), project.Merge(ctx, tx, "app", "big", nil))
	})
	docs := map[string]map[string]any{}
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		list, err := tx.Changes(ctx, 0, 100)
		for _, c := range list {
			if c.Kind != "project" || c.Stream != "project/"+c.ID || c.Project != c.ID || c.Op != store.OpPut {
				t.Errorf("change %+v", c)
			}
			doc := map[string]any{}
			err = errors.Join(err, json.Unmarshal(c.Doc, &doc))
			docs[c.ID] = doc
		}
		return err
	})
	app, big := docs["app"], docs["big"]
	if app["merged_into"] != "big" || len(big["keys"].([]any)) != 2 || app["root"] != repo ||
		app["origin_url"] != w.path("o") || app["name"] != "app" || app["created_at"] != 1.7e9 {
		t.Errorf("app: %v", app)
	}
	if aliases, ok := big["aliases"].([]any); !ok || len(aliases) != 2 || aliases[0] != "app" || aliases[1] != "nick" {
		t.Errorf("big: %v", big)
	}
}

func TestZeroLocationCreatesNoProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	err := w.try(func(ctx context.Context, tx *store.Tx) error {
		_, err := project.Resolve(ctx, tx, project.Location{})
		return err
	})
	if err == nil || fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
}

func TestEnsureChecksIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ensure := func(id string) (q project.Project, err error) {
		err = w.try(func(ctx context.Context, tx *store.Tx) (err error) {
			q, err = project.Ensure(ctx, tx, id)
			return err
		})
		return q, err
	}
	for _, id := range []string{"a", "0.x_y-z", strings.Repeat("a", 64)} {
		q, err := ensure(id)
		again, err2 := ensure(id)
		if err != nil || err2 != nil || q.ID != id || again != q {
			t.Errorf("%q: %+v, %v, %v", id, q, err, err2)
		}
	}
	for _, id := range []string{"", "A", "-a", ".a", "_a", "a b", "ä", "a/b", strings.Repeat("a", 65)} {
		if _, err := ensure(id); fault.KindOf(err) != fault.Invalid || err == nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}
