package cursor

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCursorFolderIsFoundFromItsName(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(dir, "some.work", "my-kiln_2")
	if err := os.MkdirAll(real, 0o700); err != nil {
		t.Fatal(err)
	}
	projects := filepath.Join(dir, ".cursor", "projects")
	file := func(name string) string {
		return filepath.Join(projects, name, "agent-transcripts", "c-1", "c-1.jsonl")
	}
	if got := folder(file(hyphened(real)), nil); got != real {
		t.Errorf("by looking: %q, want %q", got, real)
	}
	if got := folder(file("no-such-place"), nil); got != filepath.Join(projects, "no-such-place") {
		t.Errorf("nowhere: %q", got)
	}
	gone := filepath.Join(dir, "gone", "kiln")
	if got := folder(file(hyphened(gone)), []string{"/x", gone}); got != gone {
		t.Errorf("by a known project: %q", got)
	}
	twin := filepath.Join(dir, "some-work", "my-kiln_2")
	if err := os.MkdirAll(twin, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := folder(file(hyphened(real)), nil); got != filepath.Join(projects, hyphened(real)) {
		t.Errorf("of two it takes none: %q", got)
	}
	if err := os.MkdirAll(filepath.Join(projects, "p"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"worker.log":         "[info] starting\n[info] workspacePath=/srv/kiln one\n",
		".workspace-trusted": `{"trustedAt":"2026-01-01","workspacePath":"/srv/kiln two"}`,
	} {
		if err := os.WriteFile(filepath.Join(projects, "p", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		want := "/srv/kiln " + map[string]string{"worker.log": "one", ".workspace-trusted": "two"}[name]
		if got := folder(file("p"), nil); got != want {
			t.Errorf("by %s: %q", name, got)
		}
		if err := os.Remove(filepath.Join(projects, "p", name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := folder("/elsewhere/c-1.jsonl", nil); got != "" {
		t.Errorf("elsewhere: %q", got)
	}
}
