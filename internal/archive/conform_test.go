package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cairn/internal/archive/repository"
	"cairn/internal/store"
	"cairn/internal/store/follow"
	"cairn/internal/store/storetest"
)

// moody returns a part whose change "odd" cannot be rendered before a folder has a file
// "repaired".
func moody(dir string) Part {
	p := plainPart()
	p.Projects = func(context.Context, *store.Tx) ([]string, error) { return []string{"p1"}, nil }
	render := p.Render
	p.Render = func(ctx context.Context, tx *store.Tx, changes []store.Change) (pages RenderedFiles, err error) {
		if _, err := os.Stat(filepath.Join(dir, "mended")); err == nil {
			return render(ctx, tx, changes)
		}
		var good []store.Change
		var refused []follow.Refusal
		for _, c := range changes {
			if c.ID == "odd" {
				refused = append(refused, follow.Refusal{Seq: c.Seq, Err: errors.New("an odd change")})
				continue
			}
			good = append(good, c)
		}
		pages, err = render(ctx, tx, good)
		pages.Refused = refused
		return pages, err
	}
	p.RenderAll = func(ctx context.Context, tx *store.Tx, project string, put func(Entity, []repository.File) error) error {
		all, err := tx.Changes(ctx, 0, 1000)
		for _, c := range all {
			if err == nil && c.Stream == "plain/p1" {
				err = put(Entity{Kind: "plain", ID: c.ID}, []repository.File{{Path: c.ID, Content: c.Doc}})
			}
		}
		return err
	}
	p.Source = func(path string) (Entity, bool) { return Entity{Kind: "plain", ID: path}, path != ".gitattributes" }
	return p
}

func plainRow(t testing.TB, s *store.Store, id string) {
	t.Helper()
	err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Append(ctx, store.Change{Project: "p1", Stream: "plain/p1", Kind: "plain", ID: id, Op: store.OpPut, Doc: []byte(`"` + id + `"`)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheArchiveIsAFollower runs the tests that every follower must pass.
func TestTheArchiveIsAFollower(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	archivist := func(s *store.Store, dir string) *Archiver {
		return New(Config{Store: s, Dir: filepath.Join(dir, "archive"), Shards: 1, Window: -1, Parts: []Part{moody(dir)}})
	}
	storetest.RunFollower(t, storetest.Subject{
		New: func(_ testing.TB, s *store.Store, dir string) (follow.Follower, func() error) {
			a := archivist(s, dir)
			return a.follower(), a.Close
		},
		Prepare: func(t testing.TB, s *store.Store) {
			err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `INSERT INTO projects (id, name, created_at) VALUES ('p1', 'p1', 0)`)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		},
		Write: func(t testing.TB, s *store.Store, n int) { plainRow(t, s, fmt.Sprintf("row%02d", n)) },
		Waits: func(t testing.TB, s *store.Store, dir string) (lag int64) {
			a := archivist(s, dir)
			all, err := a.Status(t.Context(), "")
			if err := errors.Join(err, a.Close()); err != nil {
				t.Fatal(err)
			}
			for _, status := range all {
				lag += status.Lag
			}
			return lag
		},
		State: func(t testing.TB, _ *store.Store, dir string) string {
			out, err := exec.Command("git", "-C", filepath.Join(dir, "archive", "p1"), "ls-tree", "-r", "main").CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			return string(out)
		},
		Refused: func(t testing.TB, s *store.Store) { plainRow(t, s, "odd") },
		Repair: func(t testing.TB, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "mended"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	})
}
