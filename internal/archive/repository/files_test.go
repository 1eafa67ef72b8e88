package repository

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/fault"
)

func TestPathsThatNotEverySystemCanKeepAreRefused(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	before := a.person("rev-parse", "main")
	for _, p := range []string{
		"", "/", "/etc/passwd", "a/", "a//b", ".", "..", "../x", "a/../../x", ".git/config", "a/.GIT/hooks/x", ".gitmodules", ".gitattributes",
		".git \u200c/x", "a\u200cb", "git~1/config", "GIT~2", ".archive.lock", tempName, "con", "a/NUL.md", "Com1", "lpt9.txt", "com¹", "aux .x",
		"a.", "a ", "a\\b", "c:x", "a\nb", "a\x00b", "a\x7f", "a?b", `"a"`, "a|b", "\xff", strings.Repeat("a", 256), strings.Repeat("a/", 512) + "b",
	} {
		f := File{Path: p, Content: []byte("x")}
		if _, err := a.WriteFiles(t.Context(), append(files("good", "x"), f)); !fault.HasCode(err, CodePath) || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q is written: %v", p, err)
		}
		if _, err := a.Commit(t.Context(), append(files("good", "x"), f), "no", noon); !fault.HasCode(err, CodePath) {
			t.Errorf("%q is committed: %v", p, err)
		}
	}
	if Exists(filepath.Join(a.Dir(), "good")) || a.person("rev-parse", "main") != before {
		t.Error("something was written or committed beside a refused path")
	}
	for _, p := range []string{"a", "console", "com", "com10", "nul-p", "a.b.c", "t~1a2b3c4d", "ü/é", "a b", "-rf", "x'y", "#", strings.Repeat("a", 255), "it~1"} {
		if err := CheckPath(p); err != nil {
			t.Errorf("%q is refused: %v", p, err)
		}
	}
}

func TestFilesAndFoldersAreForTheirOwnerAloneAndEmptyFoldersGo(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	if n, err := a.WriteFiles(t.Context(), files("x/y/z", "1", "x/w", "2")); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	for name, mode := range map[string]fs.FileMode{"x": fs.ModeDir | 0o700, "x/y": fs.ModeDir | 0o700, "x/y/z": 0o600, "x/w": 0o600} {
		if info, err := os.Stat(filepath.Join(a.Dir(), name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if n, err := a.WriteFiles(t.Context(), []File{{Path: "x/y/z", Deleted: true}, {Path: "no/such", Deleted: true}}); n != 1 || err != nil {
		t.Error(n, err)
	}
	if Exists(filepath.Join(a.Dir(), "x", "y")) || !Exists(filepath.Join(a.Dir(), "x", "w")) {
		t.Error("an empty folder stays, or one that is not empty went")
	}
	a.commit("files", files("x/w", "2")...)
	a.write("x/"+tempName, "what a kill left")
	a.clean()
	if n, err := a.WriteFiles(t.Context(), files("x/w", "3")); n != 1 || err != nil || Exists(filepath.Join(a.Dir(), "x", tempName)) {
		t.Error(n, err)
	}
}

func TestLinksLeadNobodyOutOfTheFolder(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "file")
	if err := os.WriteFile(secret, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"dir": outside, "link": secret} {
		if err := os.Symlink(to, filepath.Join(a.Dir(), name)); err != nil {
			t.Skip(err)
		}
	}
	for _, f := range []File{{Path: "dir/file", Content: []byte("x")}, {Path: "dir/new/file", Content: []byte("x")}, {Path: "dir/file", Deleted: true}} {
		if _, err := a.WriteFiles(t.Context(), []File{f}); !fault.HasCode(err, CodeFiles) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if n, err := a.WriteFiles(t.Context(), files("link", "mine")); n != 1 || err != nil {
		t.Error(n, err)
	}
	if b, err := os.ReadFile(secret); string(b) != "keep" {
		t.Error(string(b), err)
	}
	if info, err := os.Lstat(filepath.Join(a.Dir(), "link")); err != nil || !info.Mode().IsRegular() {
		t.Error("the link was not replaced by the file", err)
	}
	if entries, err := os.ReadDir(outside); len(entries) != 1 {
		t.Error(entries, err)
	}
}

// Every accepted path is in the folder, and git stores it under its name.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"a/b", "../x", ".git/x", "a\\b", "é\u0301", "con", "a\u200cb", "x ", "git~1", "a\tb", "a\"b"} {
		f.Add(s)
	}
	if _, err := exec.LookPath("git"); err != nil {
		f.Skip("needs git")
	}
	dir := f.TempDir()
	r, err := Open(f.Context(), filepath.Join(dir, "in", "repository"), "", 0)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = r.Close() })
	f.Fuzz(func(t *testing.T, p string) {
		if CheckPath(p) != nil {
			return
		}
		if !filepath.IsLocal(filepath.FromSlash(p)) || strings.Contains(strings.ToLower(p), ".git/") {
			t.Fatalf("%q is accepted", p)
		}
		one := []File{{Path: p, Content: []byte("x")}}
		if _, err := r.WriteFiles(t.Context(), one); err != nil {
			t.Fatalf("%q: %v", p, err)
		}
		if _, err := r.Commit(t.Context(), one, "fuzz", noon); err != nil {
			t.Fatalf("%q: %v", p, err)
		}
		if tree, err := r.Tree(t.Context()); err != nil || len(tree) != 2 || tree[p] != BlobHash([]byte("x")) {
			t.Fatalf("%q: %q, %v", p, tree, err)
		}
		one[0].Deleted = true
		if _, err := r.WriteFiles(t.Context(), one); err != nil {
			t.Fatalf("%q: %v", p, err)
		}
		if _, err := r.Commit(t.Context(), one, "fuzz", noon); err != nil {
			t.Fatalf("%q: %v", p, err)
		}
	})
}
