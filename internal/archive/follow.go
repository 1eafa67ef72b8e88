package archive

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// FollowerName is the name of the archive's follower, whose lanes are the projects.
const FollowerName = "archive"

const (
	pollEvery  = 500 * time.Millisecond // what other processes wrote is seen so soon
	drainLimit = 30 * time.Second       // at a stop; the rest is done at the next start
	probeAgain = 15 * time.Second       // while the last probe found something missing

	// A project that is written to all the time is archived in larger pieces, since
	// a turn costs much the same for any: after one it rests this many times as long
	// for each project that is at it, longestRest at most.
	restFactor  = 4
	longestRest = 2 * time.Second
)

// Follow archives whatever is written to the store, by this and all other
// processes, until ctx ends; then it archives the rest, for 30 s at most, and
// returns nil. One process at a time does it per store, the others wait for that
// one's end. First it makes the numbers that the store gives next larger than
// those in ids.json and looks the newest entities up in their archives (see Probe);
// none of it keeps anybody waiting.
//
// What goes wrong with one project is counted, logged and tried again after up to
// a minute, and holds up no other project; Store.Followers shows it. Errors: those of
// store.Follow.
func (a *Archiver) Follow(ctx context.Context) error {
	return errors.Join(a.Store.Follow(ctx, a.follower()), a.Close())
}

// follower is how the archive follows the change log: a lane for each project.
func (a *Archiver) follower() store.Follower {
	return store.Follower{
		Name: FollowerName, Poll: pollEvery, Limit: maxChanges,
		Lanes: &store.Lanes{
			Of: a.projectsOf, Behind: a.behind, Begin: a.begin, Failed: a.complain, Rest: restAfter,
			QuietAfter: IdleAfter, Drain: drainLimit,
			Turn: func(ctx context.Context, project string, woken <-chan struct{}) (store.Turned, error) {
				return a.line(project).catchUp(ctx, woken)
			},
			Retry: func(ctx context.Context, project string, seqs []int64) error {
				return a.line(project).retryAsides(ctx, seqs)
			},
			Quiet: func(ctx context.Context, project string) { a.line(project).rest(ctx) },
		},
	}
}

// complain logs what could not be done, in a project or at all. A full disk is told by
// whoever measures it.
func (a *Archiver) complain(project string, err error, next time.Duration) {
	switch {
	case errors.Is(err, errFull):
	case project == "":
		a.Log.Warn("what is to be archived could not be read", "error", err)
	default:
		a.Log.Warn("a project could not be archived; it is tried again", "project", project, "after", next, "error", err, "do", fault.As(err).Hint)
	}
}

// begin does what is due when a process becomes the follower, and probes again while
// something is known to be missing.
func (a *Archiver) begin(ctx context.Context) {
	if err := a.raiseNumbers(ctx); err != nil && ctx.Err() == nil {
		a.Log.Warn("the numbers of the archive could not be read", "error", err)
	}
	for {
		missing, err := a.ProbeNewest(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			a.Log.Warn("the archive could not be probed", "error", err)
		case missing > 0:
			a.Log.Warn("archived files are missing; run `cairn reconcile --rebuild`", "missing", missing)
		default:
			return
		}
		if sleep(ctx, probeAgain) != nil {
			return
		}
	}
}

// projectsOf are the projects that a change concerns: its own, and the one that has
// taken another one over and with it what was written long ago.
func (a *Archiver) projectsOf(c store.Change) (projects []string) {
	var p struct {
		MergedInto string `json:"merged_into"`
	}
	if c.Kind == "project" && len(c.Doc) > 0 && json.Unmarshal(c.Doc, &p) == nil && p.MergedInto != "" {
		projects = append(projects, p.MergedInto)
	}
	ours := slices.ContainsFunc(a.Parts, func(p Part) bool { return strings.HasPrefix(c.Stream, p.Prefix) })
	if c.Project != "" && ours {
		projects = append(projects, c.Project)
	}
	return projects
}

// restAfter is how long a project rests after a turn when so many are at work.
func restAfter(turn time.Duration, busy int64) time.Duration {
	return min(restFactor*turn*time.Duration(busy), longestRest)
}
