package archive

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/archive/repository"
	"cairn/internal/store"
	"cairn/internal/store/locks"
	"cairn/internal/store/storetest"
)

// linesOf returns the workers of projects p1, p2 … of an archiver with one shard and a
// part that renders each change as a file named after its id.
func linesOf(t *testing.T, c Config, n int) (*Archiver, []*projectWorker) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("without git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.Store, c.Dir, c.Shards, c.Parts = storetest.Open(t, store.Config{}), filepath.Join(dir, "archive"), 1, []Part{plainPart()}
	a := New(c)
	t.Cleanup(func() { _ = a.Close() })
	var lines []*projectWorker
	for i := range n {
		project := fmt.Sprintf("p%d", i+1)
		err := a.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO projects (id, name, created_at) VALUES (?, ?, 0)`, project, project)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, a.worker(project))
	}
	return a, lines
}

// subjects returns the subjects of the commits of main, newest first.
func subjects(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", dir, "log", "--format=%s", "main").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// caughtUp catches up with a project once.
func (l *projectWorker) caughtUp(t *testing.T) error {
	_, err := l.catchUp(t.Context(), nil)
	return err
}

func plainPart() Part {
	return Part{
		Prefix: "plain/", Root: ".gitattributes",
		Projects: func(ctx context.Context, tx *store.Tx) ([]string, error) {
			return []string{"p1", "p2"}, nil
		},
		Stream: func(_ context.Context, _ *store.Tx, project string) (string, error) { return "plain/" + project, nil },
		Render: func(_ context.Context, _ *store.Tx, changes []store.Change) (pages RenderedFiles, err error) {
			for _, c := range changes {
				if c.ID == "panic" {
					panic("a defect")
				}
				pages.Files = append(pages.Files, repository.File{Path: c.ID, Content: c.Doc})
				pages.Ops = append(pages.Ops, "plain: "+c.ID)
			}
			return pages, nil
		},
		RenderAll: func(context.Context, *store.Tx, string, func(Entity, []repository.File) error) error { return nil },
		Source: func(path string) (Entity, bool) {
			return Entity{}, false
		},
	}
}

func (l *projectWorker) write1(t *testing.T, ids ...string) {
	t.Helper()
	err := l.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		for _, id := range ids {
			if _, err := tx.Append(ctx, store.Change{Project: l.project, Stream: "plain/" + l.project, Kind: "plain", ID: id, Op: store.OpPut, Doc: []byte(`"` + id + `"`)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The worker waits for a lock on one repository.
func TestASilentWorkerDoesNotHoldUpOtherProjects(t *testing.T) {
	t.Parallel()
	a, lines := linesOf(t, Config{}, 2)
	stuck, other := lines[0], lines[1]
	stuck.write1(t, "a")
	if err := stuck.caughtUp(t); err != nil {
		t.Fatal(err)
	}
	a.shards[0].silence = 50 * time.Millisecond
	unlock, err := locks.LockFile(t.Context(), filepath.Join(stuck.dir, ".commit.lock"))
	if err != nil {
		t.Fatal(err)
	}
	stuck.write1(t, "b")
	caught := make(chan error, 1)
	go func() { caught <- stuck.caughtUp(t) }()
	for busy := false; !busy; { // the worker has begun with it
		a.shards[0].mu.Lock()
		busy = len(a.shards[0].busy) > 0
		a.shards[0].mu.Unlock()
	}
	other.write1(t, "c")
	if err := other.caughtUp(t); err != nil {
		t.Error(err)
	}
	if n := a.counts.fallbacks.Load(); n == 0 {
		t.Error("no commit was made without the worker")
	}
	if tree, err := other.repo.Tree(t.Context()); err != nil || tree["c"] == "" {
		t.Error(tree, err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-caught; err != nil {
		t.Error(err)
	}
	if tree, err := stuck.repo.Tree(t.Context()); err != nil || tree["b"] == "" {
		t.Error(tree, err)
	}
	other.write1(t, "d")
	if err := other.caughtUp(t); err != nil {
		t.Errorf("the new worker: %v", err)
	}
}

// One commit has up to 4,096 paths.
func TestWhatComesWithinTheWindowIsOneCommit(t *testing.T) {
	t.Parallel()
	_, lines := linesOf(t, Config{Window: time.Hour}, 1)
	l := lines[0]
	var ids []string
	for i := range maxPaths + 100 {
		ids = append(ids, fmt.Sprintf("d%d/f%d", i/1000, i))
	}
	l.write1(t, ids...)
	r := &run{line: l, ctx: t.Context()}
	if err := r.place(); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if more, err := r.step(); !more || err != nil {
			t.Fatal(more, err)
		}
	}
	for len(r.waiting) > 0 {
		if err := r.finishOldest(); err != nil {
			t.Fatal(err)
		}
	}
	if log := subjects(t, l.repo.Dir()); len(log) != 2 || !strings.HasSuffix(log[0], " (+4095)") {
		t.Errorf("%q", log)
	}
	if r.committed != l.written.Load() || r.committed == 0 {
		t.Errorf("committed to %d, written to %d", r.committed, l.written.Load())
	}
}

func TestACommitThatFailedLetsNothingBehindItThrough(t *testing.T) {
	t.Parallel()
	_, lines := linesOf(t, Config{}, 1)
	l := lines[0]
	l.write1(t, "a")
	r := &run{line: l, ctx: t.Context()}
	if err := r.place(); err != nil {
		t.Fatal(err)
	}
	if err := l.open(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	bad := &request{run: r, first: 1, last: 1, files: []repository.File{{Path: "../x", Content: []byte("1")}}, done: make(chan error, 1)}
	good := &request{run: r, first: 2, last: 2, files: []repository.File{{Path: "b", Content: []byte("1")}}, done: make(chan error, 1)}
	if err := commitAll([]*request{bad}); err == nil {
		t.Error("a bad path was committed")
	}
	if err := commitAll([]*request{good}); err != errBefore || r.committed != 0 {
		t.Errorf("what came behind: %v, committed to %d", err, r.committed)
	}
	if err := l.caughtUp(t); err != nil {
		t.Error(err)
	}
	if tree, err := l.repo.Tree(t.Context()); err != nil || tree["a"] == "" || tree["b"] != "" {
		t.Error(tree, err)
	}
}

func TestADefectInRenderingSetsOneChangeAside(t *testing.T) {
	t.Parallel()
	a, lines := linesOf(t, Config{}, 1)
	l := lines[0]
	l.write1(t, "a", "panic", "con", "b")
	if err := l.caughtUp(t); err != nil {
		t.Fatal(err)
	}
	tree, err := l.repo.Tree(t.Context())
	if err != nil || tree["a"] == "" || tree["b"] == "" || tree["con"] != "" {
		t.Error(tree, err)
	}
	s, err := a.Status(t.Context(), "p1")
	if err != nil || len(s) != 1 || len(s[0].Aside) != 2 || s[0].Lag != 0 || !strings.Contains(s[0].Aside[0].Error, "a defect") {
		t.Errorf("%+v, %v", s, err)
	}
	if log := subjects(t, l.repo.Dir()); len(log) != 2 || !strings.HasSuffix(log[0], " (+1)") {
		t.Errorf("%q", log)
	}
}

func TestACommitNamesAtMostFiftyThings(t *testing.T) {
	t.Parallel()
	var ops []string
	for i := range 60 {
		ops = append(ops, fmt.Sprint("op ", i))
	}
	if got := commitMessage(ops[:1]); got != "op 0" {
		t.Error(got)
	}
	lines := strings.Split(commitMessage(ops), "\n")
	if lines[0] != "op 0 (+59)" || lines[1] != "" || !slices.Equal(lines[2:], ops[1:51]) {
		t.Errorf("%q", lines)
	}
	if got := commitMessage(nil); got == "" {
		t.Error("a commit says nothing")
	}
}

func TestACommitIsNamedAfterTheOperationThatPeopleLookFor(t *testing.T) {
	t.Parallel()
	long := "mail: BlueLake -> GreenCastle | " + strings.Repeat("ü", 168)
	for want, ops := range map[string][]string{
		"mail: BlueLake -> GreenCastle | post.go (+6)\n\nproject: shop\nagent: profile BlueLake\ncontact: BlueLake -> GreenCastle approved\n" +
			"mail: BlueLake -> GreenCastle | later\nfile_reservation: BlueLake src/**\nstate: 2 deliveries": {
			"project: shop", "agent: profile BlueLake", "contact: BlueLake -> GreenCastle approved", "mail: BlueLake -> GreenCastle | post.go",
			"mail: BlueLake -> GreenCastle | later", "file_reservation: BlueLake src/**", "state: 2 deliveries",
		},
		"record: R001 created | Refunds (+1)\n\nrecords: 1 events of sessions": {"records: 1 events of sessions", "record: R001 created | Refunds"},
		"file_reservation: BlueLake src/** (+1)\n\nstate: 1 deliveries":        {"state: 1 deliveries", "file_reservation: BlueLake src/**"},
		"agent: profile BlueLake (+1)\n\nstate: 1 deliveries":                  {"agent: profile BlueLake", "state: 1 deliveries"},
		string([]rune(long)[:maxSubject-6]) + "… (+1)\n\nstate: 1 deliveries":  {"state: 1 deliveries", long},
	} {
		if got := commitMessage(ops); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestNoTwoProjectsShareAFolderAndNoneIsADevice(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, id := range []string{"shop", "con", "con-p", "con-p-p", "CON", "nul.txt", "nul-p.txt", "com1", "com1-p", "com10", "console", "shop-p", "lpt¹"} {
		name := folderName(id)
		if other, twice := seen[name]; twice {
			t.Errorf("%s and %s are both %s", id, other, name)
		}
		seen[name] = id
		if got := ProjectOf(name); got != id {
			t.Errorf("%s is the folder of %s, not of %s", name, id, got)
		}
		if stem, _, _ := strings.Cut(name, "."); repository.IsDevice(strings.ToLower(stem)) {
			t.Errorf("%s is %s", id, name)
		}
	}
	if folderName("shop") != "shop" || folderName("con") != "con-p" {
		t.Error(seen)
	}
}

func TestLevelsOfSpace(t *testing.T) {
	t.Parallel()
	s := Space{}
	s.defaults()
	for mib, want := range map[int64]Level{501: LevelOK, 500: LevelOK, 499: LevelWarning, 100: LevelWarning, 99: LevelCritical, 10: LevelCritical, 9: LevelFatal, 0: LevelFatal} {
		if got := s.level(mib << 20); got != want {
			t.Errorf("%d MiB: %s, want %s", mib, got, want)
		}
	}
	if got := (Space{-1, -1, -1}).level(0); got != LevelOK {
		t.Errorf("without limits a full volume is %s", got)
	}
	if level, free := (Space{}).Level(filepath.Join(t.TempDir(), "not", "there")); free < 0 || level == "" {
		t.Errorf("of a folder to come: %s, %d", level, free)
	}
}
