package doctor

import (
	"context"

	"cairn/internal/project"
	"cairn/internal/store"
)

// undecidedProjects reports the checkouts about which a person has to decide.
func (d *diagnosing) undecidedProjects(ctx context.Context, s *store.Store) {
	var list []project.UndecidedCheckout
	waiting := false
	err := s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = project.Undecided(ctx, tx)
		if err == nil {
			waiting, err = project.NeedsRekey(ctx, tx)
		}
		return err
	})
	if err != nil {
		d.unknown("projects", err)
		return
	}
	if waiting {
		d.add("projects", Warning, "the projects come from an older cairn and have no keys yet",
			"clones of one repository are still several projects", "run `cairn project list`, which brings them up to date")
	}
	for _, u := range list {
		where := u.Root
		if where == "" {
			where = u.Identity
		}
		d.add("projects", Warning, where+" is in the project "+u.Project+", but "+u.Undecided+" belongs to "+u.Other,
			"what agents do there does not reach the other checkouts of that repository",
			"run `cairn project link "+where+" "+u.Other+"` to join it, or `cairn project split "+where+"` to keep it apart")
	}
	if len(list) == 0 && !waiting {
		d.add("projects", OK, "every checkout belongs to the project of its repository", "", "")
	}
}
