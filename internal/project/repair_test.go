package project_test

import (
	"context"
	"strings"
	"testing"

	"cairn/internal/project"
	"cairn/internal/store"
)

func TestLostKeysAreRestoredFromTheLogAndCheckoutsWhenSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clone := w.clone(w.repo(w.path("origin")), w.path("app"))
	w.resolve(clone)
	w.git(clone, "remote", "set-url", "origin", "https://example.org/acme/app")
	before := w.resolve(clone)
	lone := w.resolve(w.repo(w.path("lone")))
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		for _, q := range []string{`DELETE FROM project_keys`, `DELETE FROM project_checkouts`, `UPDATE projects SET uid = NULL`} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		found, err := project.Check(ctx, tx)
		if len(found) != 2 {
			t.Errorf("check: %q", found)
		}
		return err
	})
	w.tx(project.Repair)
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		found, err := project.Check(ctx, tx)
		if len(found) != 0 {
			t.Errorf("check: %q", found)
		}
		return err
	})
	if q := w.resolve(clone); q.Key != before.Key || q.UID != before.UID {
		t.Errorf("%+v, want %+v", q, before)
	}
	if q := w.resolve(w.path("lone")); q.Key != lone.Key {
		t.Errorf("%+v, want %+v", q, lone)
	}
	w.want("another clone", w.resolve(w.clone(w.path("origin"), w.path("again"))).ID, before.ID)
}

func TestAPlaceholderProjectIsDeletedOnceNothingRefersToIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		for _, q := range []string{
			`INSERT INTO projects (key, id, name, created_at) VALUES (-1, 'needed', 'needed', 0), (-2, 'spare', 'spare', 0)`,
			`INSERT INTO sessions (id, project_id, started_at, last_seen) VALUES ('s', 'needed', 0, 0)`,
		} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	w.tx(project.Repair)
	w.tx(project.Repair)
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		ids, err := tx.Texts(ctx, `SELECT id FROM projects WHERE key < 1`)
		w.want("made up", strings.Join(ids, ","), "needed")
		return err
	})
}

func TestAPlaceholderSessionGetsMissingTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ started, seen, first, last, wantStarted, wantSeen int64 }{
		{0, 0, 10, 20, 10, 20}, {0, 30, 0, 0, 30, 30}, {0, 0, 0, 0, 0, 0}, {5, 0, 10, 20, 5, 20}, {5, 30, 10, 20, 5, 30},
	} {
		w := newWorld(t)
		w.tx(func(ctx context.Context, tx *store.Tx) error {
			q, err := project.Ensure(ctx, tx, "p")
			if err != nil {
				return err
			}
			s, err := project.NewSession(ctx, tx, "s", q)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE sessions SET started_at = ?, last_seen = ?, summary = '{' WHERE key = ?`, c.started, c.seen, s.Key); err != nil {
				return err
			}
			if err := project.DropBadSummaries(ctx, tx); err != nil {
				return err
			}
			if err := project.DateSession(ctx, tx, s.Key, c.first, c.last); err != nil {
				return err
			}
			got, _, err := project.FindSession(ctx, tx, "s")
			if got.StartedAt != c.wantStarted || got.LastSeen != c.wantSeen || got.Summary != "" {
				t.Errorf("%+v: %+v", c, got)
			}
			return err
		})
	}
}
