package cairn

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"cairn/internal/archive"
	"cairn/internal/memory/memories"
	"cairn/internal/replica"
	"cairn/internal/store"
	"cairn/internal/workspace"
)

// Config contains the paths of cairn's data and the options of a process.
type Config = workspace.Config

// Cairn is an open cairn. Its methods are safe for concurrent use.
type Cairn struct {
	*workspace.Workspace

	mu       sync.Mutex
	memories *memories.Service // uses the store; nil until it is needed

	following   *archive.Archiver // of this process's FollowArchive
	serverState serverState
	replicators map[string]*replica.Replicator // of this process's Replication.Run, by local user
}

// Open reads the settings. The store is opened when it is first needed, and only a write
// creates it. Invalid settings return settings.Code (Invalid).
func Open(c Config) (*Cairn, error) {
	k, err := openDespiteSettings(c)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// openDespiteSettings opens cairn for a repair, which must work with invalid settings. It
// also returns their error.
func openDespiteSettings(c Config) (*Cairn, error) {
	k := &Cairn{}
	var err error
	k.Workspace, err = workspace.Open(c, workspace.Options{OpenStore: store.Open, Prepare: k.identify, MediaType: http.DetectContentType, Check: checkMemory})
	return k, err
}

// stopTime is how long Close waits for accepted writes of memories.
const stopTime = 10 * time.Second

// Close completes accepted writes of memories and closes the store. It is idempotent.
func (c *Cairn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var stopped error
	if c.memories != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		stopped = c.memories.Stop(ctx)
	}
	return errors.Join(stopped, c.Workspace.Close())
}

// tryThenCreate calls do with a part of cairn. If there is no store, it first calls do with a
// part without a store, and creates the store only if that succeeds. So do may be called
// twice, and a rejected command does not create a store. open opens the part; its result there
// is false if the part has no store. Errors: those of open and do.
func tryThenCreate[P any](open func(make bool) (part P, there bool, err error), do func(P) error) error {
	part, there, err := open(false)
	if err == nil && !there {
		if err = do(part); err == nil {
			part, _, err = open(true)
		}
	}
	if err != nil {
		return err
	}
	return do(part)
}
