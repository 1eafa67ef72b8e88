package doctor

import (
	"context"
	"fmt"
	"time"

	"cairn/internal/followers"
	"cairn/internal/repair"
	"cairn/internal/store"
)

// stalled is how long something may wait for a follower.
const stalled = 24 * time.Hour

// fewTries is how often a follower may fail in a row: what was away for a moment is no
// finding.
const fewTries = 3

// followers judges all followers of the change log but the replication, of which
// replication tells more.
func (d *diagnosing) followers(ctx context.Context, s *store.Store) {
	if d.older {
		return // its account is of another form
	}
	all, err := d.subject.Followers(ctx, s)
	if err != nil {
		d.unknown("followers", err)
		return
	}
	var wrong []string
	sound := 0
	for _, f := range all.Followers {
		switch {
		case f.Follower == followers.Replication:
		case f.Error != "" && f.Attempts >= fewTries:
			wrong = append(wrong, fmt.Sprintf("%s fails since %s, %d times: %s", f.Name(), f.Since.Format(time.RFC3339), f.Attempts, f.Error))
		case f.Behind > 0 && d.subject.Clock().Sub(f.Oldest) > stalled:
			wrong = append(wrong, fmt.Sprintf("%s is %d changes behind", f.Name(), f.Behind))
		default:
			sound++
		}
	}
	for _, a := range all.SetAside {
		if a.Follower != followers.Replication {
			wrong = append(wrong, fmt.Sprintf("%s has set change %d aside since %s: %s", a.Name(), a.Seq, a.Since.Format(time.RFC3339), a.Error))
		}
	}
	if len(wrong) > 0 {
		d.add("followers", Problem, repair.Summary(wrong), "an archive, an index or another device does not have what this store has",
			"keep `cairn serve` running, or run `cairn archive sync`; look at `cairn status`, remove the reason and run `cairn retry`")
		return
	}
	d.add("followers", OK, fmt.Sprintf("%d followers, none stalled", sound), "", "")
}
