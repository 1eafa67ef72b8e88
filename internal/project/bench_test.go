package project_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/project"
	"cairn/internal/store"
)

// benchPlaces returns a repository's subfolder and a worktree, as Git lays them out.
func benchPlaces(b *testing.B) (home, sub, worktree string) {
	b.Helper()
	base, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{
		"ann/code/app/.git/HEAD":                   "ref: refs/heads/main\n",
		"ann/code/app/.git/config":                 "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.org/a/app.git\n",
		"ann/code/app/.git/worktrees/wt/commondir": "../..\n",
		"ann/code/app/src/pkg/a.go":                "",
		"ann/code/wt/.git":                         "gitdir: " + base + "/ann/code/app/.git/worktrees/wt\n",
	} {
		file := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	home = filepath.Join(base, "ann")
	return home, filepath.Join(home, "code", "app", "src", "pkg"), filepath.Join(home, "code", "wt")
}

func BenchmarkLocate(b *testing.B) {
	home, sub, worktree := benchPlaces(b)
	for name, cwd := range map[string]string{
		"subfolder": sub, "worktree": worktree, "none": filepath.Join(home, "code"), "gone": filepath.Join(home, "x", "y"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := project.Locate(cwd, home); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPathKey(b *testing.B) {
	home, sub, worktree := benchPlaces(b)
	p, err := project.Locate(sub, home)
	if err != nil {
		b.Fatal(err)
	}
	for name, file := range map[string]string{
		"same tree": filepath.Join(sub, "a.go"), "other worktree": filepath.Join(worktree, "a.go"), "outside": "/etc/hosts",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.PathKey(file)
			}
		})
	}
}

// BenchmarkRecordSession measures one event of a known session in a known repository, in
// an open transaction.
func BenchmarkRecordSession(b *testing.B) {
	home, sub, _ := benchPlaces(b)
	s, err := store.Open(b.Context(), store.Config{Path: filepath.Join(b.TempDir(), "cairn.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	p, err := project.Locate(sub, home)
	if err != nil {
		b.Fatal(err)
	}
	err = s.Write(b.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		at := int64(1)
		for b.Loop() {
			at++
			if _, _, err := project.RecordSession(ctx, tx, project.SessionEvent{ID: "s", Place: p, Harness: "claude", At: at, PID: 5, PIDStart: 6}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
