//go:build unix

package repository

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWhateverIsKilledEveryAcknowledgedCommitStays(t *testing.T) {
	t.Parallel()
	kills := 12
	if soak, err := strconv.Atoi(os.Getenv("CAIRN_SOAK_KILLS")); err == nil {
		kills = soak
	} else if testing.Short() {
		kills = 4
	}
	a := newArchive(t)
	acknowledged := map[string]int{}
	last := ""
	for range kills {
		for hash, n := range killOne(t, a.Dir(), last) {
			if acknowledged[hash] = n; last == "" || n > acknowledged[last] {
				last = hash
			}
		}
		a.isIntact()                        // whatever still ends
		for _, lock := range a.gitLocks() { // a minute later, if git itself was killed
			if !a.owned(lock) {
				_ = os.Chtimes(lock, time.Time{}, time.Now().Add(-staleAfter))
			}
		}
		kept := map[string]bool{}
		for hash := range strings.Lines(a.person("rev-list", "main")) {
			kept[strings.TrimSpace(hash)] = true
		}
		for hash, n := range acknowledged {
			if !kept[hash] {
				t.Fatalf("commit %d, %s, was acknowledged and is lost", n, hash)
			}
		}
	}
	b := a.again(last)
	tree, err := b.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range acknowledged {
		if f := childFiles(n)[0]; tree[f.Path] != BlobHash(f.Content) {
			t.Errorf("%s of commit %d is %q", f.Path, n, tree[f.Path])
		}
	}
	if len(acknowledged) < kills {
		t.Errorf("%d commits in %d rounds", len(acknowledged), kills)
	}
	b.archive("at last", "state/last.json", "end")
	for n := range len(tree) { // what a killed process wrote and did not commit is rendered again
		if f := childFiles(n)[0]; tree[f.Path] == "" && Exists(b.Dir()+"/"+f.Path) {
			b.archive("rendered again", f.Path, string(f.Content))
		}
	}
	if err := b.RefreshIndex(t.Context()); err != nil {
		t.Error(err)
	}
	if out := b.person("status", "--porcelain", "--untracked-files=no"); out != "" {
		t.Errorf("git status:\n%s", out)
	}
	b.isIntact()
	t.Logf("%d commits in %d rounds", len(acknowledged), kills)
}

// killOne starts a process that archives and kills it at a random moment, sometimes with
// its git processes. It returns the commits that the process had acknowledged.
func killOne(t *testing.T, dir, last string) map[string]int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+dir, childVar+"_LAST="+last)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, done := bufio.NewScanner(out), map[string]int{}
	kill := func() {
		if rand.N(2) == 0 {
			_ = cmd.Process.Kill()
		} else {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
	first := rand.N(12)
	for i := 0; lines.Scan(); i++ {
		number, hash, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil || len(hash) != 40 {
			t.Fatalf("the process printed %q", lines.Text())
		}
		done[hash] = n
		if i == first {
			time.AfterFunc(rand.N(40*time.Millisecond), kill)
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.Exited() {
		t.Fatalf("it ended by itself: %v\n%s", err, told.Bytes())
	}
	return done
}
