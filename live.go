package cairn

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"cairn/internal/backoff"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// livePoll is the interval at which a live view reads the writes of other processes.
const livePoll = 250 * time.Millisecond

// Live calls seen with the new changes of all processes, in order, until ctx ends; then it
// returns nil. If there is no store, it waits for one and starts with its first change. It
// ends with an error of seen. Failed reads are logged under the name.
func (c *Cairn) Live(ctx context.Context, name string, seen func([]store.Change) error) error {
	s, waited, err := c.awaitStore(ctx)
	if ctx.Err() != nil { // errors after the end of ctx do not matter
		return nil
	}
	if err != nil {
		return err
	}
	following, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var failed error
	err = follow.Run(following, s, follow.Follower{
		Name: name, Live: true, Poll: livePoll, FromStart: waited,
		Batch: func(_ context.Context, changes []store.Change) ([]follow.Refusal, error) {
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

// awaitStore waits until there is a store, and reports whether it had to wait. The store is
// nil if ctx ends first.
func (c *Cairn) awaitStore(ctx context.Context) (s *store.Store, waited bool, err error) {
	for ; ; waited = true {
		s, err = c.Opened(ctx, false)
		if s != nil || err != nil {
			return s, waited, err
		}
		if !backoff.Pause(ctx, time.Second, nil) {
			return nil, waited, nil
		}
	}
}

// Watch calls seen with every new observation of a project, or of all projects (""), until
// ctx ends; then it returns nil.
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

// maintainInterval is the interval of a server's maintenance.
const maintainInterval = 30 * time.Second

// Maintain does the maintenance that hooks never do, until ctx ends; then it returns nil.
// It keeps the write-ahead log short, keeps the store within its size limit and closes
// unused connections. After a failure it tries again at the next interval.
func (c *Cairn) Maintain(ctx context.Context) error {
	tick := time.NewTicker(maintainInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s, err := c.Opened(ctx, false)
		if err == nil && s != nil {
			c.rotate(s)
			err = errors.Join(s.Checkpoint(ctx), s.CloseIdle(ctx), c.enforceSizeLimit(ctx, s), c.fillChecksums(ctx, s), c.indexTurns(ctx, s))
		}
		if err != nil && ctx.Err() == nil {
			slog.Warn("the maintenance of the store failed", "error", err)
		}
	}
}
