package cairn

import (
	"context"
	"fmt"
	"time"

	"cairn/internal/archive"
	"cairn/internal/store"
)

// stalled is how long a follower may be behind without a step.
const stalled = 24 * time.Hour

func (d *diagnosing) followers(ctx context.Context, s *store.Store) {
	all, err := s.Followers(ctx)
	if err != nil {
		d.unknown("followers", err)
		return
	}
	aside, err := s.SetAside(ctx)
	if err != nil {
		d.unknown("followers", err)
		return
	}
	var archives []archive.Status
	if !d.cairn.isUnarchived(s) {
		if archives, err = d.cairn.archivist(s, nil).Status(ctx, ""); err != nil {
			d.unknown("followers", err)
			return
		}
	}
	var late []string
	for _, a := range archives {
		if a.Lag > 0 && d.config.Clock().Sub(time.Unix(0, a.Since)) > stalled {
			late = append(late, fmt.Sprintf("the archive of %s is %d changes behind", a.Project, a.Lag))
		}
		for _, aside := range a.Aside {
			late = append(late, fmt.Sprintf("the archive of %s has set change %d aside: %s", a.Project, aside.Seq, aside.Error))
		}
	}
	for _, f := range all {
		if f.Behind > 0 && d.config.Clock().Sub(time.Unix(0, f.Updated)) > stalled {
			late = append(late, fmt.Sprintf("%s is %d changes behind", f.Follower, f.Behind))
		}
	}
	for _, a := range aside {
		late = append(late, fmt.Sprintf("%s has set change %d aside: %s", a.Follower, a.Seq, a.Error))
	}
	if len(late) > 0 {
		d.add("followers", CheckProblem, summary(late), "an archive or another device does not have what this store has", "keep `cairn serve` running, or run `cairn archive sync`; look at `cairn status` and `cairn archive status`")
		return
	}
	d.add("followers", CheckOK, fmt.Sprintf("%d followers, none stalled", len(all)), "", "")
}
