package commands_test

import (
	"context"
	"slices"
	"testing"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/record/histories"
	"cairn/internal/record/lookup"
	"cairn/internal/store"
)

func TestASessionsRecordsAreKnownAfterItsEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	create := func(session, title string) string {
		t.Helper()
		return must(d.Create(t.Context(), record.CreateArgs{Caller: as(session), Type: "note", Title: title}))(t).Record.ID
	}
	first, second, third := create("s1", "one"), create("s2", "two"), create("s1", "three")
	for _, id := range []string{third, first, first} {
		must(d.Activate(t.Context(), record.ActivateArgs{Caller: as("s2"), ID: id}))(t)
	}
	must(d.Update(t.Context(), record.UpdateArgs{Caller: as("s2"), ID: third, Body: ptr("more")}))(t)
	must(d.Close(t.Context(), record.SaveArgs{Caller: as("s2")}))(t)
	look := func(projectID, session string, want ...lookup.Touched) {
		t.Helper()
		got := must(d.Touched(t.Context(), project.Project{ID: projectID}, session))(t)
		if !slices.Equal(got, want) {
			t.Errorf("%s in %s: %v, want %v", session, projectID, got, want)
		}
	}
	look("p", "s1", lookup.Touched{ID: first, Changed: true}, lookup.Touched{ID: third, Changed: true})
	look("p", "s2", lookup.Touched{ID: second, Changed: true}, lookup.Touched{ID: third, Changed: true}, lookup.Touched{ID: first})
	look("p", "nobody")
	look("nothing", "s1")

	// After a merge they are found under the new name.
	err := d.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		if _, err := project.Ensure(ctx, tx, "q"); err != nil {
			return err
		}
		return project.Merge(ctx, tx, "p", "q", histories.MoveRows)
	})
	if err != nil {
		t.Fatal(err)
	}
	look("q", "s2", lookup.Touched{ID: second, Changed: true}, lookup.Touched{ID: third, Changed: true}, lookup.Touched{ID: first})

	none, err := commands.New(nil, record.Config{}).Touched(t.Context(), project.Project{ID: "p"}, "s1")
	if err != nil || len(none) != 0 {
		t.Errorf("without a store: %v, %v", none, err)
	}
}
