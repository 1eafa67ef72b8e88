package gitread

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
)

// work is a repository that a test creates with git.
type work struct {
	t   *testing.T
	dir string
	at  int64 // Unix seconds of the next commit
}

func newWork(t *testing.T) *work {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &work{t, dir, 1_767_348_000}
	w.git("init", "-q", "-b", "main")
	return w
}

func (w *work) git(args ...string) string {
	w.t.Helper()
	out, err := w.command(args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// command returns a git command whose environment does not depend on the machine.
func (w *work) command(args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = w.dir
	date := "@" + strconv.FormatInt(w.at, 10) + " +0000"
	cmd.Env = append(environment(os.Environ(), false), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_ALLOW_PROTOCOL=file",
		"GIT_AUTHOR_NAME=Ana", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=Bo", "GIT_COMMITTER_EMAIL=b@example.org",
		"GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	return cmd
}

func (w *work) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// commit commits everything, one minute after the previous commit, and returns the hash.
func (w *work) commit(message string) string {
	w.t.Helper()
	w.at += 60
	w.git("add", "-A")
	w.git("commit", "-q", "-m", message)
	return w.git("rev-parse", "HEAD")
}

func (w *work) open() Repository {
	w.t.Helper()
	r, err := Open(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	r.time = time.Minute // the machine may be busy
	return r
}

func TestBlameFollowsALineThatMoved(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("cart.go", "one\ntwo\nthree\n")
	first := w.commit("Start")
	w.write("cart.go", "zero\none\ntwo\nTHREE\n")
	second := w.commit("Insert")
	w.git("mv", "cart.go", "basket.go")
	w.commit("Rename")
	w.write("basket.go", "new\nzero\none\ntwo\nTHREE\n")
	r := w.open()
	for line, want := range map[int]Blame{
		1: {Hash: "", Path: "basket.go", Line: 1},
		2: {Hash: second, Path: "cart.go", Line: 1},
		4: {Hash: first, Path: "cart.go", Line: 2, Boundary: true},
		5: {Hash: second, Path: "cart.go", Line: 4},
	} {
		got, err := r.Blame(t.Context(), "basket.go", line)
		if err != nil || got != want {
			t.Errorf("line %d: %+v, %v, want %+v", line, got, err, want)
		}
	}
	all, commits, err := r.BlameLines(t.Context(), "basket.go", 1, 5)
	if err != nil || len(all) != 5 || len(commits) != 2 || commits[second].Subject() != "Insert" || commits[first].Authored.IsZero() || commits[first].Author != "Ana" {
		t.Fatalf("all lines: %+v, %+v, %v", all, commits, err)
	}
	for i, b := range all {
		if one, err := r.Blame(t.Context(), "basket.go", i+1); err != nil || one != b {
			t.Errorf("line %d: %+v alone and %+v among all, %v", i+1, one, b, err)
		}
	}
	if _, _, err := r.BlameLines(t.Context(), "basket.go", 3, 9); !fault.HasCode(err, CodeFailed) {
		t.Errorf("lines past the end: %v", err)
	}
	c, err := r.Commit(t.Context(), second)
	want := Commit{second, "Ana", time.Unix(w.at-60, 0).UTC(), time.Unix(w.at-60, 0).UTC(), "Insert\n"}
	if err != nil || c != want {
		t.Errorf("%+v, %v, want %+v", c, err, want)
	}
	log, err := r.Log(t.Context(), "basket.go", "", 10)
	if err != nil || len(log) != 3 || log[0].Subject() != "Rename" || log[2].Hash != first {
		t.Errorf("log %+v, %v", log, err)
	}
	if log, err = r.Log(t.Context(), "cart.go", second, 1); err != nil || len(log) != 1 || log[0].Hash != second {
		t.Errorf("log from a commit %+v, %v", log, err)
	}
}

func TestWorktreesAreReadInPlace(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("src/a.go", "one\n")
	w.commit("Start")
	tree := filepath.Join(t.TempDir(), "feature")
	w.git("worktree", "add", "-q", "-b", "feature", tree)
	other := &work{t, tree, w.at + 60}
	other.write("src/a.go", "one\ntwo\n")
	made := other.commit("Two")
	b, err := other.open().Blame(t.Context(), "src/a.go", 2)
	if err != nil || b.Hash != made {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := w.open().Blame(t.Context(), "src/a.go", 2); !fault.HasCode(err, CodeFailed) {
		t.Errorf("the main worktree has a line 2: %v", err)
	}
}

func TestUnusualFileNamesAreRead(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	names := []string{"-rf", "--help", "a b.go", "ñandú/日本.go", "*.go", ":(top)a", ":!x", "#L1", "a'b`c$(d);e", "HEAD"}
	if runtime.GOOS == "windows" {
		names = []string{"-rf", "--help", "a b.go", "ñandú/日本.go", "HEAD"}
	} else {
		names = append(names, "tab\tand\nline.go", `quo"te\.go`, "bell\a\x7f", "octal\x01\x1f2")
	}
	for _, n := range names {
		w.write(n, "text of "+n+"\n")
	}
	hash := w.commit("All")
	w.write("decoy.go", "x\n")
	w.commit("Decoy")
	r := w.open()
	for _, n := range names {
		b, err := r.Blame(t.Context(), n, 1)
		if err != nil || b.Hash != hash || b.Path != n {
			t.Errorf("blame %q: %+v, %v", n, b, err)
		}
		log, err := r.Log(t.Context(), n, "", 5)
		if err != nil || len(log) != 1 || log[0].Hash != hash {
			t.Errorf("log %q: %+v, %v", n, log, err)
		}
	}
}

func TestFailuresOfGitAreReported(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	empty := w.open()
	if _, err := empty.Log(t.Context(), "a.go", "", 1); !fault.HasCode(err, CodeFailed) {
		t.Errorf("no commit at all: %v", err)
	}
	w.write("a.go", "one\n")
	w.commit("Start")
	w.write("new.go", "one\n")
	r := w.open()
	for name, ask := range map[string]func() error{
		"untracked":    func() error { _, err := r.Blame(t.Context(), "new.go", 1); return err },
		"missing":      func() error { _, err := r.Blame(t.Context(), "none.go", 1); return err },
		"past the end": func() error { _, err := r.Blame(t.Context(), "a.go", 2); return err },
		"line 0":       func() error { _, err := r.Blame(t.Context(), "a.go", 0); return err },
		"no commit":    func() error { _, err := r.Commit(t.Context(), strings.Repeat("1", 40)); return err },
		"an option":    func() error { _, err := r.Commit(t.Context(), "--output=owned"); return err },
		"a log option": func() error { _, err := r.Log(t.Context(), "a.go", "--output=owned", 1); return err },
		"no repository": func() error {
			_, err := Repository{git: r.git, root: t.TempDir(), time: time.Minute, most: maxOutput}.Blame(t.Context(), "a.go", 1)
			return err
		},
		"no folder": func() error {
			_, err := Repository{git: r.git, root: filepath.Join(w.dir, "nowhere"), time: time.Minute, most: maxOutput}.Blame(t.Context(), "a.go", 1)
			return err
		},
		"no program": func() error {
			_, err := Repository{git: filepath.Join(w.dir, "nogit"), root: w.dir, time: time.Minute, most: maxOutput}.Blame(t.Context(), "a.go", 1)
			return err
		},
	} {
		err := ask()
		if !fault.HasCode(err, CodeFailed) || strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "owned")); err == nil {
		t.Error("an argument was taken for an option")
	}
	if log, err := r.Log(t.Context(), "new.go", "", 5); err != nil || len(log) != 0 {
		t.Errorf("untracked: %v, %v", log, err)
	}
}

func TestTimeAndContextEndGit(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("a.go", "one\n")
	w.commit("Start")
	r := w.open()
	r.time = time.Nanosecond
	if _, err := r.Blame(t.Context(), "a.go", 1); !fault.HasCode(err, CodeSlow) {
		t.Errorf("over time: %v", err)
	}
	r.time = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Blame(ctx, "a.go", 1); err == nil || fault.HasCode(err, CodeSlow) {
		t.Errorf("ended: %v", err)
	}
}

func TestLargeOutputIsTruncated(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("a.go", strings.Repeat("x", maxOutput+1))
	w.commit("Start")
	if _, err := w.open().Blame(t.Context(), "a.go", 1); !fault.HasCode(err, CodeFailed) {
		t.Errorf("got %v", err)
	}
}

// Settings of a repository may name programs. None is run to read history.
func TestNoProgramOfTheRepositoryIsRun(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	w := newWork(t)
	w.write("a.go", "one\n")
	w.write(".gitattributes", "*.go diff=evil\n")
	hash := w.commit("Start")
	evil := filepath.Join(w.dir, ".git", "evil")
	ran := filepath.Join(w.dir, ".git", "ran")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\ntouch '"+ran+"'\ncat \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"diff.evil.textconv", "diff.evil.command", "diff.external", "core.fsmonitor", "core.pager", "pager.log", "pager.blame", "gpg.program"} {
		w.git("config", key, evil)
	}
	w.git("config", "log.showSignature", "true")
	r := w.open()
	if b, err := r.Blame(t.Context(), "a.go", 1); err != nil || b.Hash != hash {
		t.Errorf("%+v, %v", b, err)
	}
	if log, err := r.Log(t.Context(), "a.go", "", 3); err != nil || len(log) != 1 {
		t.Errorf("%+v, %v", log, err)
	}
	if _, err := r.Commit(t.Context(), hash); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program was run")
	}
}

// The settings name a missing or endless file, and other formats of dates and commits.
func TestUserSettingsChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("a.go", "one\n")
	hash := w.commit("Größe")
	for key, value := range map[string]string{
		"blame.ignoreRevsFile": ".git-blame-ignore-revs", "diff.orderFile": "missing", "mailmap.file": "missing", "mailmap.blob": "HEAD:missing",
		"log.date": "missing", "format.pretty": "missing", "log.showRoot": "false", "i18n.logOutputEncoding": "ISO-8859-1", "log.follow": "true",
	} {
		w.git("config", key, value)
	}
	r := w.open()
	if b, err := r.Blame(t.Context(), "a.go", 1); err != nil || b.Hash != hash {
		t.Errorf("%+v, %v", b, err)
	}
	if log, err := r.Log(t.Context(), "a.go", "", 3); err != nil || len(log) != 1 || log[0].Message != "Größe\n" {
		t.Errorf("%+v, %v", log, err)
	}
	if touched, err := r.Touched(t.Context(), time.Unix(0, 0)); err != nil || len(touched) != 1 || touched[0].Path != "a.go" {
		t.Errorf("%+v, %v", touched, err)
	}
	w.write("ignored", hash+"\n")
	w.git("config", "blame.ignoreRevsFile", "ignored")
	if b, err := r.Blame(t.Context(), "a.go", 1); err != nil || b.Hash != hash {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestTheEnvironmentSelectsNoOtherRepository(t *testing.T) {
	t.Parallel()
	got := environment([]string{"PATH=/bin", "GIT_DIR=/x", "git_work_tree=/x", "GIT_INDEX_FILE=/x", "GIT_TRACE=1", "GIT_ALLOW_PROTOCOL=ext", "GIT_TRACE2_EVENT=/x", "LC_ALL=de", "GIT_CONFIG_GLOBAL=/g", "HOME=/h"}, false)
	want := "PATH=/bin GIT_CONFIG_GLOBAL=/g HOME=/h LC_ALL=C GIT_TERMINAL_PROMPT=0 GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q", got)
	}
}

func TestTheOldestCommitsOfAShallowCloneAreKnown(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("a.go", "one\n")
	root := w.commit("Start")
	w.write("a.go", "one\ntwo\n")
	top := w.commit("Two")
	clone := filepath.Join(t.TempDir(), "clone")
	w.git("clone", "-q", "--depth", "1", "file://"+filepath.ToSlash(w.dir), clone)
	r := (&work{t, clone, 0}).open()
	b, err := r.Blame(t.Context(), "a.go", 1)
	if err != nil || b.Hash != top || !b.Boundary || !IsCutOff(filepath.Join(clone, ".git"), b.Hash) {
		t.Errorf("%+v, %v", b, err)
	}
	if b, err := w.open().Blame(t.Context(), "a.go", 1); err != nil || b.Hash != root || IsCutOff(filepath.Join(w.dir, ".git"), root) {
		t.Errorf("whole: %+v, %v", b, err)
	}
}

func FuzzReadBlame(f *testing.F) {
	h := strings.Repeat("a", 40)
	f.Add([]byte(h + " 3 4 1\nauthor A\nfilename a b.go\n\tfilename x\n"))
	f.Add([]byte(h + " 3 4 2\nauthor A\nsummary S\nfilename a\n\tone\n" + h + " 4 5\n\ttwo\n"))
	f.Add([]byte(strings.Repeat("0", 64) + " 1 1 1\nboundary\nfilename \"q\\tx\"\n\t"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		list, commits, err := readBlame(out)
		if err == nil && len(list) == 0 {
			t.Fatalf("%q gives nothing and no error", out)
		}
		for _, b := range list {
			if _, known := commits[b.Hash]; b.Line < 1 || b.Hash != "" && (!isHash(b.Hash) || !known) {
				t.Fatalf("%q gives %+v", out, b)
			}
		}
	})
}

func FuzzReadLog(f *testing.F) {
	h := strings.Repeat("a", 40)
	f.Add([]byte(h + "\x00Ana\x001\x002\x00Subject\n\nBody\n\x00"))
	f.Add([]byte(h + "\x00\xff\x00-1\x002\x00\x00" + h + "\x00B\x001\x002\x00x\x00"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, out []byte) {
		list, err := readLog(out)
		for _, c := range list {
			if err != nil || !isHash(c.Hash) || strings.ContainsRune(c.Subject(), '\n') {
				t.Fatalf("%q gives %+v, %v", out, c, err)
			}
		}
	})
}
