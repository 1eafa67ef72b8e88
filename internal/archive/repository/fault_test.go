package repository

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/fault"
)

func TestWithoutTheGitProgramACommitFailsAndThenCatchesUp(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.archive("first", "a", "1")
	_ = a.Close()
	a.git.program = "no-such-git"
	a.fails(CodeNoGit, "not installed", files("b", "2")...)
	without := &Repository{git: git{program: "no-such-git", dir: filepath.Join(t.TempDir(), "x")}, pause: sleep}
	if err := without.open(t.Context(), ""); !fault.HasCode(err, CodeNoGit) {
		t.Error(err)
	}
	a.git.program = "git"
	a.archive("second", "b", "2")
	a.holds("a", "1", "b", "2")
}

func TestAFolderThatIsGoneOrReplacedIsReportedAndTakenUpAgain(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(t *testing.T, dir string){
		"deleted": func(*testing.T, string) {},
		"replaced by a file": func(t *testing.T, dir string) {
			if err := os.WriteFile(dir, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"replaced by an empty folder": func(t *testing.T, dir string) {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArchive(t)
			last := a.archive("first", "a", "1")
			aside := a.Dir() + "-aside"
			if err := os.Rename(a.Dir(), aside); err != nil {
				t.Fatal(err)
			}
			breakIt(t, a.Dir())
			a.fails(CodeGone, "is gone", files("b", "2")...)
			if _, err := a.WriteFiles(t.Context(), files("b", "2")); !fault.HasCode(err, CodeGone) {
				t.Error(err)
			}
			if err := a.RefreshIndex(t.Context()); !fault.HasCode(err, CodeGone) {
				t.Error(err)
			}
			if name == "replaced by a file" {
				if _, err := Open(t.Context(), a.Dir(), last, 0); !fault.HasCode(err, CodeGone) {
					t.Error(err)
				}
			}
			if err := os.RemoveAll(a.Dir()); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(aside, a.Dir()); err != nil {
				t.Fatal(err)
			}
			a.archive("second", "b", "2")
			a.holds("a", "1", "b", "2")
			a.clean()
		})
	}
}

func TestADeletedArchiveIsMadeAnewByOpenAndKnowsNothingOfTheOld(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	last := a.archive("first", "a", "1")
	if err := os.RemoveAll(a.Dir()); err != nil {
		t.Fatal(err)
	}
	b := a.again(last)
	if ok, err := b.Contains(t.Context(), last); ok || err != nil {
		t.Error(ok, err)
	}
	b.holds()
	if tree, err := b.Tree(t.Context()); err != nil || len(tree) != 1 {
		t.Error(tree, err)
	}
	if head, err := b.Head(t.Context()); err != nil || b.archive("again", "a", "1") == head {
		t.Error(err)
	}
	b.holds("a", "1")
}

func TestAMissingObjectIsReportedAndTakenUpAgain(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"main", "main^{tree}", "main:dir"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := newArchive(t)
			last := a.archive("first", "dir/a", "1")
			_ = a.Close()
			hash := a.person("rev-parse", what)
			pack := filepath.Join(a.Dir(), ".git", "objects", "pack")
			for _, p := range matches(pack, "*.pack") { // loose, so that one can go
				if err := os.Rename(p, p+"-unpack"); err != nil {
					t.Fatal(err)
				}
				_ = os.Remove(strings.TrimSuffix(p, ".pack") + ".idx")
				cmd := exec.Command("git", "-C", a.Dir(), "unpack-objects", "-q")
				f, err := os.Open(p + "-unpack")
				if err != nil {
					t.Fatal(err)
				}
				cmd.Stdin = f
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				_ = f.Close()
				_ = os.Remove(p + "-unpack")
			}
			object := filepath.Join(a.Dir(), ".git", "objects", hash[:2], hash[2:])
			if err := os.Rename(object, object+"-aside"); err != nil {
				t.Fatal(err)
			}
			a.fails(CodeGit, hash, files("dir/b", "2")...)
			if what == "main" {
				if _, err := Open(t.Context(), a.Dir(), last, 0); !fault.HasCode(err, CodeGit) || !strings.Contains(err.Error(), hash) {
					t.Error(err)
				}
				if _, err := a.Tree(t.Context()); err == nil {
					t.Error("there is a tree without a commit")
				}
			}
			if err := os.Rename(object+"-aside", object); err != nil {
				t.Fatal(err)
			}
			a.archive("second", "dir/b", "2")
			a.holds("dir/a", "1", "dir/b", "2")
		})
	}
}

func TestOldLocksOfGitGoIfNobodyHoldsThem(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"refs/heads/main.lock", "HEAD.lock", "index.lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArchive(t)
			a.archive("first", "a", "1")
			lock := a.inGit(filepath.FromSlash(name))
			put := func(age time.Duration) {
				t.Helper()
				if err := os.WriteFile(lock, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(lock, time.Now(), time.Now().Add(-age)); err != nil {
					t.Fatal(err)
				}
			}
			put(10 * time.Second)
			if name == "index.lock" { // in nobody's way but the index's
				a.archive("second", "b", "2")
				if err := a.RefreshIndex(t.Context()); !fault.HasCode(err, CodeGit) || !strings.Contains(err.Error(), "index.lock") {
					t.Error(err)
				}
			} else {
				a.fails(CodeGit, ".lock", files("b", "2")...)
				if !Exists(lock) {
					t.Error("a young lock was removed")
				}
			}
			put(61 * time.Second)
			holder, err := os.Open(lock)
			if err != nil {
				t.Fatal(err)
			}
			if Exists("/proc/self/fd") {
				a.clear()
				if !Exists(lock) {
					t.Error("a lock that is held was removed")
				}
			}
			_ = holder.Close()
			var tries []int
			a.pause = func(context.Context, time.Duration) error { tries = append(tries, len(tries)+1); return nil }
			a.archive("third", "b", "3")
			a.clean()
			a.holds("a", "1", "b", "3")
			if name != "index.lock" && len(tries) != 2 {
				t.Errorf("it went after %d failures, want 2", len(tries))
			}
			put(61 * time.Second)
			if b := a.again(""); Exists(lock) {
				t.Error("start leaves an old lock")
			} else {
				b.archive("fourth", "b", "4")
			}
		})
	}
}

func TestALockOfAGitThatWorksInTheFolderStays(t *testing.T) {
	t.Parallel()
	if !Exists("/proc/self/cwd") {
		t.Skip("needs /proc")
	}
	a := newArchive(t)
	a.clean()
	a.write("a", "by hand")
	// The editor stays open until its input ends. git closes its lock before that.
	ready, done := filepath.Join(t.TempDir(), "ready"), filepath.Join(t.TempDir(), "done")
	for _, fifo := range []string{ready, done} {
		if err := exec.Command("mkfifo", fifo).Run(); err != nil {
			t.Skip("needs mkfifo")
		}
	}
	a.person("add", "a")
	cmd := exec.Command("git", "commit", "-a")
	cmd.Dir = a.Dir()
	cmd.Env = append(environment(os.Environ()), "GIT_EDITOR=f() { echo By hand > \"$1\"; echo > '"+ready+"'; cat '"+done+"'; }; f")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(ready); err != nil {
		t.Fatal(err)
	}
	lock := a.inGit("index.lock")
	if err := os.Chtimes(lock, time.Now(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !a.owned(lock) {
		t.Error("git holds the lock while its editor is open")
	}
	a.archive("ours", "b", "2") // does not want the index
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // git may refuse, since main was moved below it
	if a.owned(lock) {
		t.Error("nobody holds the lock any more")
	}
	a.archive("again", "c", "3")
	a.isIntact()
}

func TestAnImportThatIsKilledCostsOneAttempt(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.archive("first", "a", "1")
	for i, kill := range []func(){
		func() { _ = a.build.cmd.Process.Kill() },
		func() { _ = a.look.cmd.Process.Kill() },
		func() { _ = a.swap.cmd.Process.Kill() },
	} {
		kill()
		a.archive("next", "b", string(rune('1'+i)))
	}
	a.holds("a", "1", "b", "3")
}

func TestAnImportThatDiesInAPackLeavesNothingInTheWay(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.archive("first", "a", "1")
	a.commit("second", files("b", "2")...)
	pack := a.inGit("objects", "pack")
	packs := matches(pack, "*.pack")
	if len(matches(pack, "*.keep")) != len(packs) {
		t.Fatal("a live import does not keep its packs")
	}
	// This is the state after a kill between the pack and its index, before main was
	// moved.
	a.person("update-ref", mainRef, "main^")
	_ = a.build.cmd.Process.Kill()
	for _, p := range packs {
		if out := a.person("verify-pack", "-v", p); strings.Contains(out, BlobHash([]byte("2"))) {
			if err := os.Remove(strings.TrimSuffix(p, ".pack") + ".idx"); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := openArchive(t, a.Dir(), "")
	b.commit("second", files("b", "2")...)
	b.holds("a", "1", "b", "2")
}

func TestACommitEndsWithItsContextAndTheNextOneWorks(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Commit(ctx, files("a", "1"), "never", noon); err != context.Canceled {
		t.Error(err)
	}
	a.archive("second", "b", "2")
	a.holds("b", "2")
}

func TestASlowlyDoublingPausePartsSevenAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failure := fault.New(fault.Unavailable, CodeGit, "no")
		var at []time.Duration
		start := time.Now()
		err := retry(t.Context(), sleep, func(attempt int) error {
			if at = append(at, time.Since(start)); attempt != len(at) {
				t.Errorf("attempt %d is called %d", len(at), attempt)
			}
			return failure
		})
		if err != failure || len(at) != 7 {
			t.Fatalf("%d attempts, %v", len(at), err)
		}
		for i, want := 1, 50*time.Millisecond; i < len(at); i, want = i+1, 2*want {
			if got := at[i] - at[i-1]; got < want*3/4 || got > want*5/4 {
				t.Errorf("pause %d is %s, want %s ± 25 %%", i, got, want)
			}
		}
		calls := 0
		if err := retry(t.Context(), sleep, func(int) error { calls++; return fault.New(fault.Invalid, CodePath, "no") }); err == nil || calls != 1 {
			t.Error("what is invalid was repeated", calls, err)
		}
		calls = 0
		if err := retry(t.Context(), sleep, func(n int) error {
			if calls++; n < 3 {
				return failure
			}
			return nil
		}); err != nil || calls != 3 {
			t.Error(calls, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer cancel()
		if err := retry(ctx, sleep, func(int) error { return failure }); err != failure || time.Since(start) == 0 {
			t.Error(err)
		}
	})
}
