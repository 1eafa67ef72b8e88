package repository

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// archive is a repository under test, which cairn and a person use.
type archive struct {
	*Repository
	t *testing.T
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return openArchive(t, filepath.Join(dir, "archive", "shop"), "")
}

func openArchive(t *testing.T, dir, last string) *archive {
	t.Helper()
	r, err := Open(t.Context(), dir, last, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.pause = func(context.Context, time.Duration) error { return nil }
	t.Cleanup(func() { _ = r.Close() })
	return &archive{r, t}
}

// again opens the repository like another process after this one was killed.
func (a *archive) again(last string) *archive {
	a.t.Helper()
	_ = a.Close()
	return openArchive(a.t, a.Dir(), last)
}

// person runs a plain git in the folder, like a person without cairn.
func (a *archive) person(args ...string) string {
	a.t.Helper()
	out, err := a.try(args...)
	if err != nil {
		a.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

func (a *archive) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = a.Dir()
	cmd.Env = append(environment(os.Environ()), "GIT_AUTHOR_NAME=Ana", "GIT_AUTHOR_EMAIL=ana@example.org", "GIT_COMMITTER_NAME=Ana", "GIT_COMMITTER_EMAIL=ana@example.org")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (a *archive) write(name, content string) {
	a.t.Helper()
	path := filepath.Join(a.Dir(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// archive writes and commits files, given as name, content, name, content …
func (a *archive) archive(message string, pairs ...string) string {
	a.t.Helper()
	files := files(pairs...)
	if _, err := a.WriteFiles(a.t.Context(), files); err != nil {
		a.t.Fatal(err)
	}
	return a.commit(message, files...)
}

func (a *archive) commit(message string, files ...File) string {
	a.t.Helper()
	hash, err := a.Commit(a.t.Context(), files, message, noon)
	if err != nil {
		a.t.Fatalf("%s: %v", message, err)
	}
	return hash
}

func files(pairs ...string) []File {
	var fs []File
	for p := range slices.Chunk(pairs, 2) {
		fs = append(fs, File{Path: p[0], Content: []byte(p[1])})
	}
	return fs
}

// fails expects a commit to fail with a code and a text.
func (a *archive) fails(code, text string, files ...File) {
	a.t.Helper()
	_, err := a.Commit(a.t.Context(), files, "fails", noon)
	if f := fault.As(err); err == nil || f.Kind != fault.Unavailable || f.Code != code || !strings.Contains(f.Message, text) || f.Hint == "" {
		a.t.Errorf("commit: %v (%s), want %s with %q", err, f.Code, code, text)
	}
}

// holds checks the files in main, besides .gitattributes.
func (a *archive) holds(pairs ...string) {
	a.t.Helper()
	want := map[string]string{AttributesFile: attributes}
	for p := range slices.Chunk(pairs, 2) {
		want[p[0]] = p[1]
	}
	for name, content := range want {
		if out, err := a.try("cat-file", "blob", "main:"+name); err != nil || out != content {
			a.t.Errorf("main holds of %s: %q, %v; want %q", name, out, err, content)
		}
	}
	if names := strings.Split(a.person("-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "main"), "\n"); len(names) != len(want) {
		a.t.Errorf("main holds %q, want %d files", names, len(want))
	}
	a.isIntact()
}

// isIntact checks with git fsck.
func (a *archive) isIntact() {
	a.t.Helper()
	if out, err := a.try("fsck", "--strict", "--no-dangling", "--no-progress"); err != nil || strings.TrimSpace(out) != "" {
		a.t.Errorf("git fsck --strict: %v\n%s", err, out)
	}
}

// clean checks that git status reports nothing.
func (a *archive) clean() {
	a.t.Helper()
	if err := a.RefreshIndex(a.t.Context()); err != nil {
		a.t.Error(err)
	}
	if out := a.person("status", "--porcelain"); out != "" {
		a.t.Errorf("git status:\n%s", out)
	}
}

func TestANewArchiveIsARepositoryWithOneCommitForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.holds()
	a.clean()
	if got := a.person("log", "--format=%s|%an <%ae>|%cn <%ce>", "main"); got != "chore: initialize archive|cairn <cairn@localhost>|cairn <cairn@localhost>" {
		t.Error(got)
	}
	if head := a.person("symbolic-ref", "HEAD"); head != mainRef {
		t.Error(head)
	}
	if info, err := os.Stat(a.Dir()); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
	head := a.person("rev-parse", "main")
	if b := a.again(""); b.person("rev-parse", "main") != head {
		t.Error("opening again made another commit")
	}
}

func TestCommitsHoldWhatWasGivenAndNothingElse(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	first := a.archive("mail: BlueLake -> RedFox | Hello", "messages/2026/03/a.md", "one\r\nno end", "agents/Über/inbox/a b.md", "", "state/ünï.json", "data 3\nM x\n")
	second, err := a.Commit(t.Context(), []File{
		{Path: "messages/2026/03/a.md", Deleted: true}, {Path: "never/there", Deleted: true}, {Path: "twice", Content: []byte("a")}, {Path: "twice", Content: []byte("b")},
	}, "  state: two\x1b[31m\x00 deliveries\n\nbody\tline\n", noon.Add(time.Hour+time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	a.holds("agents/Über/inbox/a b.md", "", "state/ünï.json", "data 3\nM x\n", "twice", "b")
	if got := a.person("cat-file", "blob", first+":messages/2026/03/a.md"); got != "one\r\nno end" {
		t.Errorf("%q", got)
	}
	want := fmt.Sprintf("%s cairn %d state: two [31m  deliveries\n%s", second, noon.Add(time.Hour).Unix(), first)
	if log := a.person("log", "-2", "--format=%H %an %at %s"); !strings.HasPrefix(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
	if ok, err := a.Contains(t.Context(), first); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := a.Contains(t.Context(), strings.Repeat("1", 40)); ok || err != nil {
		t.Error(ok, err)
	}
}

func TestEqualContentIsNeitherWrittenNorCommittedAgain(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	fs := files("a/b", "one", "a/c", "two")
	if n, err := a.WriteFiles(t.Context(), fs); n != 2 || err != nil {
		t.Error(n, err)
	}
	hash := a.commit("first", fs...)
	if n, err := a.WriteFiles(t.Context(), fs); n != 0 || err != nil {
		t.Error(n, err)
	}
	if again := a.commit("again", fs...); again != hash {
		t.Errorf("made %s after %s", again, hash)
	}
	if again := a.again(hash).commit("again", fs...); again != hash {
		t.Errorf("made %s after %s", again, hash)
	}
	if n, err := a.WriteFiles(t.Context(), files("a/b", "ONE")); n != 1 || err != nil {
		t.Error(n, err)
	}
	if b, err := os.ReadFile(filepath.Join(a.Dir(), "a", "b")); string(b) != "ONE" {
		t.Error(string(b), err)
	}
}

func TestACommitMessageIsCutAndCleaned(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"": "update\n", "\n\n": "update\n", "a\nb": "a\nb\n", "a\rb\x7f\u0085c": "a b  c\n", "bad \xff byte": "bad   byte\n",
		strings.Repeat("é", 201) + "\nbody": strings.Repeat("é", 199) + "…\nbody\n", strings.Repeat("é", 200): strings.Repeat("é", 200) + "\n",
	} {
		if got := cleanMessage(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

func TestSettingsAndHooksOfPeopleHaveNoSay(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	ran := filepath.Join(t.TempDir(), "ran")
	hooks := filepath.Join(a.Dir(), ".git", "hooks")
	if err := os.Mkdir(hooks, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"reference-transaction", "post-index-change", "pre-auto-gc", "update"} {
		if err := os.WriteFile(filepath.Join(hooks, hook), []byte("#!/bin/sh\necho "+hook+" >> "+ran+"\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []string{"core.hooksPath=" + hooks, "commit.gpgSign=true", "core.autocrlf=true", "gc.auto=1", "fastimport.unpackLimit=1000", "core.fsmonitor=" + filepath.Join(hooks, "update"), "user.name=Eve"} {
		key, value, _ := strings.Cut(s, "=")
		if out, err := a.try("config", key, value); err != nil {
			t.Fatal(out)
		}
	}
	b := a.again("")
	b.archive("with settings", "a.md", "one\ntwo\r\n")
	if err := b.RefreshIndex(t.Context()); err != nil {
		t.Error(err)
	}
	if out, err := os.ReadFile(ran); err == nil {
		t.Errorf("hooks ran: %s", out)
	}
	if got := b.person("-c", "core.hooksPath=/dev/null", "cat-file", "commit", "main"); !strings.Contains(got, "author cairn <") || strings.Contains(got, "gpgsig") {
		t.Error(got)
	}
	if got, _ := b.try("-c", "core.hooksPath=/dev/null", "cat-file", "blob", "main:a.md"); got != "one\ntwo\r\n" {
		t.Errorf("%q", got)
	}
}

func TestTheTreeAndItsBlobsAreRead(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	large := strings.Repeat("0123456789abcdef\n", 1<<16)
	a.archive("files", "a", "one", "b/ü", "", "b/c", large)
	tree, err := a.Tree(t.Context())
	if err != nil || len(tree) != 4 || tree["a"] != BlobHash([]byte("one")) || tree["b/ü"] != BlobHash(nil) || tree["b/c"] != BlobHash([]byte(large)) {
		t.Fatalf("%v, %v", tree, err)
	}
	for path, want := range map[string]string{"a": "one", "b/ü": "", "b/c": large} {
		if got, found, err := a.Blob(t.Context(), tree[path]); err != nil || !found || string(got) != want {
			t.Errorf("%s: %d bytes, %t, %v", path, len(got), found, err)
		}
	}
	if _, found, err := a.Blob(t.Context(), strings.Repeat("1", 40)); found || err != nil {
		t.Errorf("a missing blob: %t, %v", found, err)
	}
}
