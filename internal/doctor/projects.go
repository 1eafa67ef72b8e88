package doctor

import (
	"context"

	"cairn/internal/project"
	"cairn/internal/store"
)

// undecidedProjects reports the checkouts whose project the user must decide.
func (d *doctorRun) undecidedProjects(ctx context.Context, s *store.Store) {
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
			"clones of one repository are still several projects", "run `cairn project list`, which updates them")
	}
	for _, u := range list {
		where := u.Root
		if where == "" {
			where = u.Identity
		}
		d.add("projects", Warning, where+" is in the project "+u.Project+", but "+u.Undecided+" belongs to "+u.Other,
			"the other checkouts of that repository do not see what agents do there",
			"run `cairn project link "+where+" "+u.Other+"` to join it, or `cairn project split "+where+"` to keep it separate")
	}
	if len(list) == 0 && !waiting {
		d.add("projects", OK, "every checkout belongs to the project of its repository", "", "")
	}
}
