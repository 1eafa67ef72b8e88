package cairn

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/project"
	"cairn/internal/store"
)

// Memories are what agents decided to keep (memories §1), for callers of this process.
type Memories struct{ cairn *Cairn }

// Memories are the memories over the store.
func (c *Cairn) Memories() Memories { return Memories{c} }

// Read calls ask with the service, which is one over nothing while there is no store, and
// with who calls: of a Caller only what the caller said need be set, the working
// directory is added here. It makes no store.
//
// Errors: those of ask, and those of opening the store.
func (m Memories) Read(ctx context.Context, c memory.Caller, ask func(context.Context, *memory.Service, memory.Caller) error) error {
	b, _, err := m.book(ctx, false)
	if err != nil {
		return err
	}
	return ask(ctx, b, m.completed(c))
}

// Write calls do with the service over the store. While there is no store do is first
// tried over nothing, and the store is made if that succeeds: so do may be called
// twice, and what is refused makes no store. Errors: those of Read.
func (m Memories) Write(ctx context.Context, c memory.Caller, do func(context.Context, *memory.Service, memory.Caller) error) error {
	return tried(func(make bool) (*memory.Service, bool, error) { return m.book(ctx, make) },
		func(b *memory.Service) error { return do(ctx, b, m.completed(c)) })
}

// book opens the memories; there is false where they are over nothing.
func (m Memories) book(ctx context.Context, make bool) (b *memory.Service, there bool, err error) {
	c := m.cairn
	s, err := c.opened(ctx, make)
	if err != nil {
		return nil, false, unopened(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.book == nil || s == nil {
		config := c.settings.work.bookConfig(c.journal.Filter)
		if s != nil {
			config.OnFirstRead = func(ctx context.Context, user, stream string) { c.Replication().wanted(ctx, s, user, stream) }
			config.ReadThrough = func(ctx context.Context, user string, q memory.HubQuery) ([]json.RawMessage, error) {
				return c.Replication().through(ctx, user, q)
			}
			config.PollHub = func(ctx context.Context, user string) { c.Replication().ask(ctx, s, user) }
		}
		b = memory.New(s, config)
		if s == nil {
			return b, false, nil
		}
		c.book = b
	}
	return c.book, true, nil
}

// unopened is the error of a store that cannot be opened, with a code of memories §9.
func unopened(err error) error {
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

func (m Memories) completed(c memory.Caller) memory.Caller {
	if c.Place == (project.Location{}) {
		c.Place = m.cairn.place
	}
	return c
}

// How servers look after memories (memories §10.7, §13.3).
const (
	purgeEvery    = time.Hour
	optimizeEvery = 24 * time.Hour
)

// Tend purges what the hub holds too and retention no longer keeps here, merges the
// search index now and then, and keeps vectors where there is an embedder, until ctx
// ends; then it returns nil. It waits for a store that is not there yet; a failed
// attempt is repeated at the next turn.
func (m Memories) Tend(ctx context.Context, log *slog.Logger) error {
	if _, _, err := m.cairn.awaitStore(ctx); err != nil || ctx.Err() != nil {
		return nil
	}
	b, there, err := m.book(ctx, false)
	if err != nil || !there {
		return nil
	}
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		if err := b.Embed(ctx); err != nil && ctx.Err() == nil {
			log.Warn("entries are not embedded any more", "error", err)
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
			log.Warn("memories could not be tended; trying again", "error", err)
		}
	}
}
