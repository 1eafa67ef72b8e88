package project_test

import (
	"context"
	"testing"

	"cairn/internal/project"
	"cairn/internal/store"
)

func TestLostKeysComeBackFromTheLogAndCheckoutsWhenTheyAreSeen(t *testing.T) {
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
