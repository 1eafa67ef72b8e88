package doctor

import (
	"context"
	"fmt"
	"time"

	"cairn/internal/followers"
	"cairn/internal/repair"
	"cairn/internal/store"
)

// maxLag is the maximum time that a change may wait for a follower.
const maxLag = 24 * time.Hour

// maxFailures is the number of failures in a row that is not reported. A short outage is
// not a problem.
const maxFailures = 3

// followers checks all followers of the change log except the replication, which
// replication checks.
func (d *doctorRun) followers(ctx context.Context, s *store.Store) {
	if d.older {
		return // an older schema stores this differently
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
		case f.Error != "" && f.Attempts >= maxFailures:
			wrong = append(wrong, fmt.Sprintf("%s fails since %s, %d times: %s", f.Name(), f.Since.Format(time.RFC3339), f.Attempts, f.Error))
		case f.Behind > 0 && d.subject.Clock().Sub(f.Oldest) > maxLag:
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
		d.add("followers", Problem, repair.Summary(wrong), "an archive, an index or another device lacks data of this store",
			"keep `cairn serve` running, or run `cairn archive sync`; `cairn status` shows the reason; remove it and run `cairn retry`")
		return
	}
	d.add("followers", OK, fmt.Sprintf("%d followers, none stalled", sound), "", "")
}
