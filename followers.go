package cairn

import (
	"context"

	"cairn/internal/fault"
	"cairn/internal/followers"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/store"
)

// Followers returns the state of the change log's followers; see
// followers.Service.Account. It is empty without a store.
func (c *Cairn) Followers(ctx context.Context) (followers.Account, error) {
	s, err := c.Opened(ctx, false)
	if err != nil || s == nil {
		return followers.Account{Followers: []followers.Status{}, SetAside: []followers.Aside{}}, err
	}
	return c.followers(s, memories.New(s, memory.Config{})).Account(ctx)
}

// SetAside lists the changes that followers set aside; see followers.Service.Aside.
func (c *Cairn) SetAside(ctx context.Context) ([]followers.Aside, error) {
	s, err := c.Opened(ctx, false)
	if err != nil || s == nil {
		return []followers.Aside{}, err
	}
	return c.followers(s, memories.New(s, memory.Config{})).Aside(ctx)
}

// Retry makes followers try again; see followers.Service.Retry. Errors: those of
// Service.Retry, and NotFound with store.CodeMissing without a store.
func (c *Cairn) Retry(ctx context.Context, follower string) (out followers.Retried, err error) {
	s, err := c.Opened(ctx, false)
	if err == nil && s == nil {
		err = fault.New(fault.NotFound, store.CodeMissing, "there is no store yet, so it has no followers")
	}
	if err != nil {
		return out, err
	}
	err = c.Memories().Read(ctx, memory.Caller{}, func(ctx context.Context, b *memories.Service, _ memory.Caller) error {
		out, err = c.followers(s, b).Retry(ctx, follower)
		return err
	})
	return out, err
}

func (c *Cairn) followers(s *store.Store, b *memories.Service) followers.Service {
	out := followers.Service{Store: s, Memories: b}
	if !c.skipsArchive(s) {
		out.Archive = c.archiver(s, nil)
	}
	return out
}
