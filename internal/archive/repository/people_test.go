package repository

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

func TestACommitByHandBetweenTwoOfOursSurvives(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.archive("first", "a", "1")
	a.clean()
	a.write("notes.txt", "mine")
	a.person("add", "notes.txt")
	a.person("commit", "-q", "-m", "By hand")
	by := a.person("rev-parse", "main")
	second := a.archive("second", "b", "2")
	a.holds("a", "1", "b", "2", "notes.txt", "mine")
	if got := a.person("rev-parse", second+"^"); got != by {
		t.Errorf("the parent is %s, want %s", got, by)
	}
	a.clean()
}

func TestACommitByHandFromAnOldIndexTakesNothingBack(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run("restart="+strconv.FormatBool(restart), func(t *testing.T) {
			t.Parallel()
			a := newArchive(t)
			a.archive("first", "old", "1", "gone", "1", "theirs", "1")
			a.clean()
			a.archive("second", "old", "2", "new/file", "2")
			last := a.commit("third", File{Path: "gone", Deleted: true})
			if _, err := a.WriteFiles(t.Context(), []File{{Path: "gone", Deleted: true}}); err != nil {
				t.Fatal(err)
			}
			a.write("notes.txt", "mine")
			a.write("theirs", "changed by hand")
			a.person("add", "notes.txt", "theirs")
			a.person("commit", "-q", "-m", "By hand, without new/file")
			if _, err := a.try("cat-file", "-e", "main:new/file"); err == nil {
				t.Fatal("the index was not old")
			}
			if restart {
				a = a.again(last)
			}
			a.archive("fourth", "more", "4")
			a.holds("old", "2", "new/file", "2", "notes.txt", "mine", "theirs", "changed by hand", "more", "4")
			a.clean()
		})
	}
}

func TestIdleTimeRepairsWhatACommitByHandTookBack(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.archive("first", "file", "1")
	a.write("notes.txt", "mine")
	a.person("add", "notes.txt")
	a.person("commit", "-q", "-m", "By hand, without file")
	a.clean()
	a.holds("file", "1", "notes.txt", "mine")
}

func TestWhatIsStagedByHandStaysStaged(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.archive("first", "a", "1")
	a.clean()
	a.write("notes.txt", "mine")
	a.person("add", "notes.txt")
	a.archive("second", "b", "2")
	if err := a.RefreshIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := a.person("status", "--porcelain"); got != "A  notes.txt" {
		t.Errorf("status %q", got)
	}
	a.write("b", "by hand") // and something that we change as well
	a.person("add", "b")
	a.commit("third", files("b", "3")...)
	if err := a.RefreshIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := a.person("show", ":b"); got != "by hand" {
		t.Errorf("staged is %q", got)
	}
	a.person("commit", "-q", "-m", "By hand")
	a.holds("a", "1", "b", "by hand", "notes.txt", "mine")
	a.commit("fourth", files("c", "4")...)
	a.holds("a", "1", "b", "by hand", "notes.txt", "mine", "c", "4")
}

func TestPeopleMayDoWithTheirHeadWhatTheyLike(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	first := a.archive("first", "a", "1")
	a.clean()
	a.person("checkout", "-q", "--detach", "main")
	a.archive("detached", "b", "2")
	a.holds("a", "1", "b", "2")
	if err := a.RefreshIndex(t.Context()); err != nil {
		t.Error(err)
	}
	if got := a.person("rev-parse", "HEAD"); got != first {
		t.Errorf("HEAD was moved to %s", got)
	}
	if got := a.person("ls-files"); got != AttributesFile+"\na" {
		t.Errorf("the index of a detached HEAD was changed: %q", got)
	}
	a.person("checkout", "-q", "-f", "-b", "topic", first)
	a.write("own", "x")
	a.person("add", "own")
	a.person("commit", "-q", "-m", "On a branch")
	a.archive("beside a branch", "c", "3")
	a.holds("a", "1", "b", "2", "c", "3")
	if got := a.person("cat-file", "blob", "topic:own"); got != "x" {
		t.Error(got)
	}
	a.person("checkout", "-q", "-f", "main")
	a.clean()
}

func TestAMainThatWasDeletedComesBack(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run("restart="+strconv.FormatBool(restart), func(t *testing.T) {
			t.Parallel()
			a := newArchive(t)
			last := a.archive("first", "a", "1")
			a.clean()
			a.person("branch", "-m", "main", "old")
			if restart {
				a = a.again(last)
			}
			a.archive("second", "b", "2")
			a.holds("a", "1", "b", "2")
			if ok, err := a.Contains(t.Context(), last); !ok || err != nil {
				t.Error(ok, err)
			}
		})
	}
}

func TestPackedReferencesAndACloneWork(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.archive("first", "a", "1")
	a.person("gc", "-q", "--prune=now")
	a.person("pack-refs", "--all")
	a.archive("second", "b", "2")
	a.person("gc", "-q", "--prune=now")
	last := a.archive("third", "c", "3")
	a.holds("a", "1", "b", "2", "c", "3")
	clone := filepath.Join(t.TempDir(), "clone")
	a.person("clone", "-q", a.Dir(), clone)
	b := openArchive(t, clone, last) // a clone is as good an archive
	b.archive("in the clone", "d", "4")
	b.holds("a", "1", "b", "2", "c", "3", "d", "4")
	b.clean()
}

func TestTwoRepositoriesAndAPersonCommitAtTheSameTimeAndNothingIsLost(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	b := openArchive(t, a.Dir(), "")
	const each = 15
	var wg sync.WaitGroup
	var want []string
	for w, r := range []*archive{a, b} {
		for i := range each {
			want = append(want, "w"+strconv.Itoa(w)+"/"+strconv.Itoa(i), strconv.Itoa(i))
		}
		wg.Go(func() {
			for i := range each {
				if _, err := r.Commit(t.Context(), files("w"+strconv.Itoa(w)+"/"+strconv.Itoa(i), strconv.Itoa(i)), "ours", noon); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() { // commits by hand, with its own index, so that it reverts nothing
		for i := range each {
			for done := false; !done; {
				out, err := a.try("commit-tree", "-p", "main", "-m", "theirs "+strconv.Itoa(i), "main^{tree}")
				if err != nil {
					t.Error(out)
					return
				}
				commit := out[:40]
				parent, _ := a.try("rev-parse", commit+"^", commit+"^{tree}")
				// move main only from the commit whose tree this is
				if tree, _ := a.try("rev-parse", parent[:40]+"^{tree}"); tree != parent[41:] {
					continue
				}
				_, err = a.try("update-ref", mainRef, commit, parent[:40])
				done = err == nil
			}
		}
	})
	wg.Wait()
	a.holds(want...)
	for i := range each {
		if got := a.person("log", "--format=%s", "--grep=^theirs "+strconv.Itoa(i)+"$", "main"); got == "" {
			t.Errorf("commit %d by hand is lost", i)
		}
	}
	if out, err := os.ReadDir(filepath.Join(a.Dir(), ".git", "refs", "cairn")); err == nil {
		t.Errorf("a scratch branch was left: %v", out)
	}
}
