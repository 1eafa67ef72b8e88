package gitread

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
)

func (w *work) hook() Repository {
	w.t.Helper()
	r, err := OpenHook(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	r.time = time.Minute // the machine may be busy
	return r
}

func (w *work) staged() []string {
	w.t.Helper()
	names, err := w.hook().Staged(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestStagedNamesEveryFileThatACommitChanges(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	same(t, "nothing", w.staged())
	names := []string{"-rf", "--help", "a b.go", "ñandú/日本.go", ":(top)a", "HEAD", "R100"}
	if runtime.GOOS != "windows" {
		names = append(names, "tab\tand\nline.go", `quo"te\.go`, "bell\a", "M", "broken\xff")
	}
	for _, n := range names {
		w.write(n, "text of "+n+"\n")
	}
	w.git("add", "-A")
	slices.Sort(names)
	same(t, "before the first commit", w.staged(), names...)
	w.commit("All")
	same(t, "after it", w.staged())

	w.write("untracked", "x\n")
	w.write("HEAD", "changed, not staged\n")
	same(t, "not staged", w.staged())
	w.git("mv", "a b.go", "moved.go")
	w.git("rm", "-q", "--cached", "--", "--help")
	same(t, "a rename and a deletion", w.staged(), "--help", "a b.go", "moved.go")
}

func TestDuringAMergeOnlyFilesThatDifferFromAllParentsCount(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("ours", "1\n")
	w.write("theirs", "1\n")
	w.write("both", "1\n")
	w.write("third", "1\n")
	w.write("rest", "1\n")
	w.commit("Start")
	for _, branch := range []string{"theirs", "third"} {
		w.git("checkout", "-q", "-b", branch, "main")
		w.write(branch, "2\n")
		w.write("both", branch+"\n")
		w.commit(branch)
	}
	w.git("checkout", "-q", "main")
	w.write("ours", "2\n")
	w.write("both", "ours\n")
	w.commit("Ours")
	if out, err := w.command("merge", "-q", "theirs").CombinedOutput(); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	w.write("both", "mixed\n")
	w.write("rest", "2\n")
	w.git("add", "-A")
	same(t, "a merge", w.staged(), "both", "rest")
	w.write("both", "theirs\n")
	w.git("add", "-A")
	same(t, "resolved as theirs", w.staged(), "rest")

	heads := w.git("rev-parse", "theirs") + "\n" + w.git("rev-parse", "third") + "\n"
	w.write(".git/MERGE_HEAD", heads)
	w.write("third", "2\n")
	w.git("add", "-A")
	same(t, "an octopus", w.staged(), "rest")
	w.write("third", "3\n")
	w.git("add", "-A")
	same(t, "an octopus with something new", w.staged(), "rest", "third")
	names, err := w.hook().NotMerged(t.Context(), []string{"rest", "theirs", "third", "not staged"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "of given names", names, "rest", "third")
}

func TestPushedListsFilesThatTheRemoteLacks(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("a", "1\n")
	first := w.commit("First")
	w.write("b", "1\n")
	second := w.commit("Second")
	w.git("mv", "b", "c")
	third := w.commit("Third")
	zero, unknown := strings.Repeat("0", 40), strings.Repeat("1", 40)
	for name, c := range map[string]struct {
		remote string
		refs   []Push
		want   []string
	}{
		"nothing":                    {"", nil, nil},
		"a new branch":               {"", []Push{{third, zero}}, []string{"a", "b", "c"}},
		"what is there":              {"", []Push{{third, third}}, nil},
		"an update":                  {"", []Push{{third, second}}, []string{"b", "c"}},
		"back":                       {"", []Push{{first, third}}, nil},
		"over what is not here":      {"", []Push{{second, unknown}}, []string{"a", "b"}},
		"a deletion":                 {"", []Push{{zero, third}}, nil},
		"a deletion and a branch":    {"", []Push{{zero, second}, {third, zero}}, []string{"b", "c"}},
		"known by the remote's name": {"origin", []Push{{third, zero}}, []string{"b", "c"}},
		"by another's":               {"upstream", []Push{{third, zero}}, []string{"a", "b", "c"}},
		"a name that is a pattern":   {"o*", []Push{{third, zero}}, []string{"a", "b", "c"}},
		"a name like an option":      {"--all", []Push{{third, zero}}, []string{"a", "b", "c"}},
		"an address":                 {"https://example.org/x?y", []Push{{third, second}}, []string{"b", "c"}},
	} {
		w.git("update-ref", "refs/remotes/origin/main", second)
		names, err := w.hook().Pushed(t.Context(), c.remote, c.refs)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		slices.Sort(names)
		same(t, name, names, c.want...)
	}
	if _, err := w.hook().Pushed(t.Context(), "", []Push{{unknown, zero}}); !fault.HasCode(err, CodeFailed) {
		t.Errorf("what is not here: %v", err)
	}
}

func TestGitHashesOf256BitsArePushedToo(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.dir = t.TempDir()
	if out, err := exec.Command("git", "init", "-q", "-b", "main", "--object-format=sha256", w.dir).CombinedOutput(); err != nil {
		t.Skipf("this git has none: %s", out)
	}
	w.write("a", "1\n")
	hash := w.commit("First")
	refs, err := ParsePush("refs/heads/main " + hash + " refs/heads/main " + strings.Repeat("0", 64) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	names, err := w.hook().Pushed(t.Context(), "origin", refs)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a new branch", names, "a")
}

// Git passes the index and the repository to a hook's process in the environment.
func TestAHookReadsTheIndexThatGitNames(t *testing.T) {
	w := newWork(t)
	w.write("a", "1\n")
	w.write("b", "1\n")
	w.commit("Start")
	w.write("a", "2\n")
	w.write("b", "2\n")
	other := filepath.Join(w.dir, ".git", "other-index")
	w.git("add", "b")
	data, err := os.ReadFile(filepath.Join(w.dir, ".git", "index"))
	if err == nil {
		err = os.WriteFile(other, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.git("reset", "-q")
	w.git("add", "a")
	same(t, "the usual one", w.staged(), "a")
	t.Setenv("GIT_INDEX_FILE", ".git/other-index")
	same(t, "the one that git names", w.staged(), "b")
	t.Setenv("GIT_DIR", filepath.Join(w.dir, ".git"))
	t.Setenv("GIT_EXTERNAL_DIFF", "false")
	r, err := OpenHook(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	common, err := r.CommonDir(t.Context())
	if err != nil || common != filepath.Join(w.dir, ".git") {
		t.Errorf("%q, %v", common, err)
	}
	plain, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if common, err = plain.CommonDir(t.Context()); err == nil {
		t.Errorf("who is no hook is not led to %q", common)
	}
}

func TestHooksDirIsTheFolderThatGitUses(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("a", "1\n")
	w.commit("Start")
	tree := filepath.Join(t.TempDir(), "new\nline")
	w.git("worktree", "add", "-q", "--detach", tree)
	for value, want := range map[string][2]string{
		"":               {filepath.Join(w.dir, ".git", "hooks"), filepath.Join(w.dir, ".git", "hooks")},
		"my hooks":       {filepath.Join(w.dir, "my hooks"), filepath.Join(tree, "my hooks")},
		"/some\nwhere/x": {"/some\nwhere/x", "/some\nwhere/x"},
	} {
		if value != "" {
			w.git("config", "core.hooksPath", value)
		}
		for i, dir := range []string{w.dir, tree} {
			r, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			r.time = time.Minute
			if got, err := r.HooksDir(t.Context()); err != nil || got != want[i] {
				t.Errorf("%q in %q: %q, %v, want %q", value, dir, got, err, want[i])
			}
		}
		if value != "" {
			w.git("config", "--unset", "core.hooksPath")
		}
	}
}

func FuzzParseChanges(f *testing.F) {
	for _, text := range []string{"", "M\x00a\x00", "R100\x00a\x00b\x00D\x00c\x00", "C75\x00a\x00b\x00", "M\x00", "a\x00b\x00", "M\x00a", "R\x00a\x00", "\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		names, ok := ParseChanges(text)
		if !ok && names != nil {
			t.Error("names of what cannot be read")
		}
		seen := map[string]bool{}
		var again strings.Builder
		for _, n := range names {
			if n == "" || strings.ContainsRune(n, 0) || seen[n] {
				t.Errorf("%q among %q", n, names)
			}
			seen[n] = true
			again.WriteString("M\x00" + n + "\x00")
		}
		if !ok {
			return
		}
		if got, ok := ParseChanges([]byte(again.String())); !ok || !slices.Equal(got, names) {
			t.Errorf("%q, %v, want %q", got, ok, names)
		}
	})
}

func FuzzParsePush(f *testing.F) {
	hash := strings.Repeat("a1", 20)
	f.Add("refs/heads/x " + hash + " refs/heads/x " + hash + "\n")
	f.Add("(delete) " + strings.Repeat("0", 40) + " refs/heads/x " + hash)
	f.Add("\n \n")
	f.Add("x --all y " + hash)
	f.Fuzz(func(t *testing.T, text string) {
		refs, err := ParsePush(text)
		if err != nil {
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != CodeFailed || f.Kind != fault.Invalid {
				t.Errorf("%v", err)
			}
			return
		}
		for _, p := range refs {
			if !isHash(p.Local) || !isHash(p.Remote) {
				t.Errorf("%s of %q", strconv.Quote(p.Local), text)
			}
		}
	})
}
