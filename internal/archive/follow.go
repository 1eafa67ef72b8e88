package archive

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"cairn/internal/archive/repository"
	"cairn/internal/backoff"
	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// FollowerName is the name of the archive's follower, whose lanes are the projects.
const FollowerName = "archive"

const (
	pollEvery  = 500 * time.Millisecond // delay until writes of other processes are seen
	drainLimit = 30 * time.Second       // time limit at a stop; the next start does the rest
	probeAgain = 15 * time.Second       // interval while the last probe found missing files

	// A busy project is archived in larger batches, because each run costs about the
	// same. After a run it pauses this many times as long for each busy project, at most
	// longestRest.
	restFactor  = 4
	longestRest = 2 * time.Second
)

// Follow archives all writes to the store, by this and all other processes, until ctx
// ends. Then it archives the rest, for at most 30 s, and returns nil. One process per
// store does it; the others wait until that one ends. First it raises the store's next
// numbers above those in ids.json, and checks that the newest entities are in their
// archives (see ProbeNewest). It blocks no caller.
//
// An error of one project is counted, logged and retried after up to a minute. It does
// not delay other projects; Store.Followers shows it. Errors: those of store.Follow.
func (a *Archiver) Follow(ctx context.Context) error {
	return errors.Join(follow.Run(ctx, a.Store, a.follower()), a.Close())
}

// follower returns the archive's follower, with a lane for each project.
func (a *Archiver) follower() follow.Follower {
	return follow.Follower{
		Name: FollowerName, Poll: pollEvery, Limit: maxChanges,
		Lanes: &follow.Lanes{
			Of: a.projectsOf, Behind: a.behind, Begin: a.begin, Failed: a.logError, Rest: restAfter,
			QuietAfter: repository.IdleAfter, Drain: drainLimit,
			Turn: func(ctx context.Context, project string, woken <-chan struct{}) (follow.Turned, error) {
				return a.worker(project).catchUp(ctx, woken)
			},
			Retry: func(ctx context.Context, project string, seqs []int64) error {
				return a.worker(project).retryFailed(ctx, seqs)
			},
			Quiet: func(ctx context.Context, project string) { a.worker(project).rest(ctx) },
		},
	}
}

// logError logs an error of a project or of the archive. It skips a full disk, which
// level logs.
func (a *Archiver) logError(project string, err error, next time.Duration) {
	switch {
	case errors.Is(err, errFull):
	case project == "":
		a.Log.Warn("cannot read the changes to archive", "error", err)
	default:
		a.Log.Warn("cannot archive a project; trying again", "project", project, "after", next, "error", err, "do", fault.As(err).Hint)
	}
}

// begin runs when a process becomes the follower. It probes again while files are known
// to be missing.
func (a *Archiver) begin(ctx context.Context) {
	if err := a.raiseNumbers(ctx); err != nil && ctx.Err() == nil {
		a.Log.Warn("cannot read the numbers of the archive", "error", err)
	}
	for {
		missing, err := a.ProbeNewest(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			a.Log.Warn("cannot probe the archive", "error", err)
		case missing > 0:
			a.Log.Warn("archived files are missing; run `cairn reconcile --rebuild`", "missing", missing)
		default:
			return
		}
		if !backoff.Pause(ctx, probeAgain, nil) {
			return
		}
	}
}

// projectsOf returns the projects affected by a change: its own, and after a merge the
// project that got the old changes.
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

// restAfter returns how long a project pauses after a run, for a given number of busy
// projects.
func restAfter(turn time.Duration, busy int64) time.Duration {
	return min(restFactor*turn*time.Duration(busy), longestRest)
}
