package cairn

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/store"
)

// livePoll is how soon a live view sees what other processes wrote.
const livePoll = 250 * time.Millisecond

// Live calls seen with the changes of this and all other processes, from now on
// and in order, until ctx ends; then it returns nil. It waits for a store that
// is not there yet and then begins with its first change. An error of seen ends
// it. Failures to read are reported under the name.
func (c *Cairn) Live(ctx context.Context, name string, seen func([]store.Change) error) error {
	s, waited, err := c.awaitStore(ctx)
	if ctx.Err() != nil { // whatever its end has made fail
		return nil
	}
	if err != nil {
		return err
	}
	following, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var failed error
	err = s.Follow(following, store.Follower{
		Name: name, Live: true, Poll: livePoll, FromStart: waited,
		Batch: func(_ context.Context, changes []store.Change) ([]store.Refusal, error) {
			if failed = seen(changes); failed != nil {
				cancel(failed)
			}
			return nil, nil
		},
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case failed != nil:
		return failed
	}
	return err
}

// awaitStore waits until there is a store and reports whether it had to; the store
// is nil if ctx ends first.
func (c *Cairn) awaitStore(ctx context.Context) (s *store.Store, waited bool, err error) {
	for ; ; waited = true {
		s, err = c.opened(ctx, false)
		if s != nil || err != nil {
			return s, waited, err
		}
		t := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, waited, nil
		case <-t.C:
		}
	}
}

// Watch calls seen with every observation that is added from now on, of one
// project or of all (""), until ctx ends; then it returns nil.
func (c *Cairn) Watch(ctx context.Context, project string, seen func(observation.Observation) error) error {
	return c.Live(ctx, "watch", func(changes []store.Change) error {
		j, err := c.Observations(ctx)
		if err != nil {
			return err
		}
		for _, change := range changes {
			id, err := strconv.ParseInt(change.ID, 10, 64)
			if err != nil || change.Kind != "observation" || project != "" && change.Project != project {
				continue
			}
			rows, err := browse.Get(ctx, j, []int64{id})
			if err != nil {
				return err
			}
			for _, o := range rows {
				if err := seen(o); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// tendEvery is how often a server looks after the store's files.
const tendEvery = 30 * time.Second

// Tend keeps the write-ahead log short and the store within its bound, which hooks
// never do, and closes connections that nobody needs, until ctx ends; then it
// returns nil. A failed attempt is repeated at the next turn.
func (c *Cairn) Tend(ctx context.Context) error {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s, err := c.opened(ctx, false)
		if err == nil && s != nil {
			c.rotate(s)
			err = errors.Join(s.Checkpoint(ctx), s.CloseIdle(ctx), c.makeRoom(ctx, s), c.fillChecksums(ctx, s), c.indexTurns(ctx, s))
		}
		if err != nil && ctx.Err() == nil {
			slog.Warn("the store's files could not be tended", "error", err)
		}
	}
}
