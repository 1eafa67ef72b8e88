package cairn

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/project"
	"cairn/internal/store"
)

// Memories provides the memories (memories §1) for callers in this process.
type Memories struct{ cairn *Cairn }

// Memories returns the memories of the store.
func (c *Cairn) Memories() Memories { return Memories{c} }

// Read calls ask with the service and the completed caller. A Caller needs only the
// caller's own arguments; Read adds the working directory. Without a store the service
// finds nothing. Read does not create a store.
//
// Errors: those of ask, and those of opening the store.
func (m Memories) Read(ctx context.Context, c memory.Caller, ask func(context.Context, *memories.Service, memory.Caller) error) error {
	b, _, err := m.service(ctx, false)
	if err != nil {
		return err
	}
	return ask(ctx, b, m.completeCaller(c))
}

// Write calls do with the service. If there is no store, do first runs without one, and
// the store is created if that succeeds. So do may be called twice, and a rejected call
// does not create a store. Errors: those of Read.
func (m Memories) Write(ctx context.Context, c memory.Caller, do func(context.Context, *memories.Service, memory.Caller) error) error {
	return tryThenCreate(func(make bool) (*memories.Service, bool, error) { return m.service(ctx, make) },
		func(b *memories.Service) error { return do(ctx, b, m.completeCaller(c)) })
}

// service opens the memories; its result there is false if there is no store.
func (m Memories) service(ctx context.Context, make bool) (b *memories.Service, there bool, err error) {
	c := m.cairn
	s, err := c.Opened(ctx, make)
	if err != nil {
		return nil, false, memoryStoreFault(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memories == nil || s == nil {
		config := memoryConfig(&c.Settings.Work, c.ObservationConfig.Filter)
		if s != nil {
			config.OnFirstRead = func(ctx context.Context, user, stream string) { c.Replication().pullFirstRead(ctx, s, user, stream) }
			config.ReadThrough = func(ctx context.Context, user string, q memory.HubQuery) ([]json.RawMessage, error) {
				return c.Replication().readThrough(ctx, user, q)
			}
			config.PollHub = func(ctx context.Context, user string) { c.Replication().sendPending(ctx, s, user) }
		}
		b = memories.New(s, config)
		if s == nil {
			return b, false, nil
		}
		c.memories = b
	}
	return c.memories, true, nil
}

// memoryStoreFault returns the error of a store that cannot be opened, with a code of
// memories §9.
func memoryStoreFault(err error) error {
	f := fault.As(err)
	code := store.CodeReadOnly
	switch f.Code {
	case store.CodeBusy, store.CodeFull, store.CodeReadOnly:
		return err
	case store.CodeCorrupt:
		return fault.Wrap(err, fault.Internal, memory.CodeInternal, "the store is damaged").WithHint(f.Hint)
	}
	if f.Kind != fault.Unavailable {
		return err
	}
	return fault.Wrap(err, fault.Unavailable, code, "the store cannot be opened: "+f.Message).WithHint(f.Hint)
}

func (m Memories) completeCaller(c memory.Caller) memory.Caller {
	if c.Place == (project.Location{}) {
		c.Place = m.cairn.Location
	}
	return c
}

// Intervals of the maintenance of memories (memories §10.7, §13.3).
const (
	purgeEvery    = time.Hour
	optimizeEvery = 24 * time.Hour
)

// Maintain runs the maintenance of memories until ctx ends; then it returns nil. It purges
// expired data that the hub has, merges the search index, and computes vectors if there is
// an embedder. It waits for a store that does not exist yet. After a failure it tries again
// at the next interval.
func (m Memories) Maintain(ctx context.Context, log *slog.Logger) error {
	if _, _, err := m.cairn.awaitStore(ctx); err != nil || ctx.Err() != nil {
		return nil
	}
	b, there, err := m.service(ctx, false)
	if err != nil || !there {
		return nil
	}
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		if err := b.Embed(ctx); err != nil && ctx.Err() == nil {
			log.Warn("the embedding of entries has stopped", "error", err)
		}
	})
	purge, optimize := time.NewTicker(purgeEvery), time.NewTicker(optimizeEvery)
	defer purge.Stop()
	defer optimize.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-purge.C:
			_, err = b.Purge(ctx, false)
		case <-optimize.C:
			err = b.OptimizeIndex(ctx)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("the maintenance of memories failed; trying again", "error", err)
		}
	}
}
