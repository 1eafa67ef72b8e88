package gitread

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestTouchedListsWhatCommitsOfAllBranchesChangedSince(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	git := func(at string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=t", "-c", "user.email=t@t.example"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v, %s", args, err, out)
		}
	}
	commit := func(at, file string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, file), []byte(at), 0o600); err != nil {
			t.Fatal(err)
		}
		git(at, "add", "-A")
		git(at, "commit", "-q", "-m", "m\n\n"+file+" and more")
	}
	git("", "init", "-q")
	r, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if none, err := r.Touched(t.Context(), time.Unix(0, 0)); err != nil || none != nil {
		t.Errorf("without a commit: %v, %v", none, err)
	}
	commit("2026-01-01T10:00:00Z", "old.go")
	commit("2026-01-02T10:00:00Z", "été \"q\".go")
	git("", "checkout", "-q", "-b", "other")
	commit("2026-01-02T11:00:00Z", "a b.go")
	git("", "checkout", "-q", "-")
	got, err := r.Touched(t.Context(), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	want := []Touched{{"a b.go", time.Date(2026, 1, 2, 11, 0, 0, 0, time.UTC)}, {"été \"q\".go", time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, want %+v", got, want)
	}
}
