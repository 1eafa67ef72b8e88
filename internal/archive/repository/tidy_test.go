package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestPacksAreConsolidatedWhileCommitsGoOn(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	var pairs []string
	add := func(n int) {
		for range n {
			i := strconv.Itoa(len(pairs) / 2)
			pairs = append(pairs, "f"+i, i)
			a.commit("one more", files("f"+i, i)...)
		}
	}
	add(manyPacks)
	if packs, _ := a.count(); packs < manyPacks {
		t.Fatalf("%d packs", packs)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 5 {
			if err := a.Repack(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	add(manyPacks)
	wg.Wait()
	add(1)
	if err := a.Repack(t.Context()); err != nil {
		t.Error(err)
	}
	packs, loose := a.count()
	if packs > manyPacks || loose != 0 {
		t.Errorf("%d packs, %d loose objects", packs, loose)
	}
	a.holds(pairs...)
	add(1)
	a.holds(pairs...)
}

// visit starts a git process in the folder that runs until leave is called.
func (a *archive) visit() (leave func()) {
	a.t.Helper()
	if !Exists("/proc/self/cwd") {
		a.t.Skip("needs /proc")
	}
	reader := exec.Command("git", "cat-file", "--batch")
	reader.Dir = a.Dir()
	input, err := reader.StdinPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := reader.Start(); err != nil {
		a.t.Fatal(err)
	}
	return func() {
		_ = input.Close()
		if err := reader.Wait(); err != nil {
			a.t.Error(err)
		}
	}
}

func TestAPackStaysWhileAGitOfSomebodyElseIsAtWork(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	for i := range manyPacks {
		a.commit("one more", files("f", strconv.Itoa(i))...)
	}
	leave := a.visit()
	for range 2 {
		if err := a.Repack(t.Context()); err != nil {
			t.Error(err)
		}
		if packs, _ := a.count(); packs != manyPacks+2 {
			t.Errorf("%d packs, want the old ones and one new", packs)
		}
	}
	a.isIntact()
	leave()
	if err := a.Repack(t.Context()); err != nil {
		t.Error(err)
	}
	if packs, _ := a.count(); packs != 1 {
		t.Errorf("%d packs, want 1", packs)
	}
	a.holds("f", strconv.Itoa(manyPacks-1))
}

func TestFsckFindsNothingWrongWhileCommitsAndConsolidationsGoOn(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	for round := range 3 {
		leave := a.visit() // as one fsck after the other would be, if there were no gap between
		var wg sync.WaitGroup
		var done atomic.Bool
		wg.Go(func() {
			defer done.Store(true)
			for n := range manyPacks + 5 {
				if _, err := a.Commit(t.Context(), childFiles(round*100+n), "one more", noon); err != nil {
					t.Error(err)
				}
				if err := a.Repack(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		for !done.Load() {
			a.isIntact()
		}
		wg.Wait()
		leave()
		if err := a.Repack(t.Context()); err != nil {
			t.Error(err)
		}
		if packs, _ := a.count(); packs > manyPacks {
			t.Errorf("%d packs", packs)
		}
		a.isIntact()
	}
}

func TestLooseObjectsOfPeopleAreConsolidatedToo(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.clean()
	for i := range manyLoose + 200 {
		a.write("d"+strconv.Itoa(i%40)+"/f"+strconv.Itoa(i), strconv.Itoa(i))
	}
	a.person("-c", "core.fsync=none", "add", "-A")
	a.person("-c", "gc.auto=0", "commit", "-q", "-m", "Many by hand")
	if _, loose := a.count(); loose < manyLoose {
		t.Fatal(loose)
	}
	if err := a.Repack(t.Context()); err != nil {
		t.Error(err)
	}
	if packs, loose := a.count(); packs > 2 || loose != 0 {
		t.Errorf("%d packs, %d loose objects", packs, loose)
	}
	a.commit("ours", files("d1/ours", "x")...)
	a.isIntact()
}

func TestWhatKilledImportsLeftIsClearedAway(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.archive("first", "a", "1")
	pack := a.inGit("objects", "pack")
	_ = a.build.cmd.Process.Kill()
	_ = a.Close()
	kept := matches(pack, "*.keep")
	if len(kept) == 0 || len(matches(pack, "tmp_pack_*")) == 0 {
		t.Fatal("the killed import left nothing")
	}
	debris := append(matches(pack, "tmp_*"), a.inGit("fast_import_crash_1"))
	for _, path := range append(kept, debris...) {
		if err := os.WriteFile(path, []byte("fast-import"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	theirs := filepath.Join(pack, "pack-0000000000000000000000000000000000000000.keep")
	if err := os.WriteFile(theirs, []byte("I want to keep it"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := a.again("")
	for _, path := range append(kept, debris...) {
		if Exists(path) {
			t.Errorf("%s stays", filepath.Base(path))
		}
	}
	if !Exists(theirs) {
		t.Error("a mark of somebody else was removed")
	}
	b.archive("second", "b", "2")
	b.holds("a", "1", "b", "2")
}
