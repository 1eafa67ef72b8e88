package memory

import (
	"context"
	"encoding/json"
	"time"

	"cairn/internal/memory/shards"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// Config configures a Kernel.
type Config struct {
	Settings Settings
	Filter   *redact.Filter // removes secrets before anything is stored; nil with memory.redact off

	// OnFirstRead is called before the first read of a memory that is known from a hub's
	// catalogue alone. It must subscribe the stream, and may wait a moment for its rows
	// (memories §10.3). Nil if the process cannot pull.
	OnFirstRead func(ctx context.Context, user, stream string)

	// PollHub is called while a delete of a user waits for the hub's response. If no
	// replicator runs for the user, it must ask the hub until ctx ends, and return soon
	// after that (memories §10.6). Nil if the process cannot ask.
	PollHub func(ctx context.Context, user string)

	// ReadThrough reads entries from a user's hub that were purged here. It returns
	// documents with their creationTime, newest first. Errors: CodeNotFound,
	// CodeHubUnavailable. Nil disables reading through.
	ReadThrough func(ctx context.Context, user string, q HubQuery) ([]json.RawMessage, error)
}

// HubQuery is a query to a hub for entries of a memory that were purged here (memories §10.7).
type HubQuery struct {
	Memory        string // the hub's id
	Entry         string // the id of a single entry; the other fields are for lists
	Limit         int
	Before, After Time     // 0 for none
	Tags          []string // KEY:VALUE
	SessionID     string
}

// Kernel is what the packages of memory share: the store, the settings, and the jobs of all
// memories. Goroutines and processes may use it concurrently.
//
// Errors are fault.Error with the codes of this package, a hint and details; Status returns
// their HTTP status. A failed call stores nothing.
type Kernel struct {
	Store    *store.Store // nil for none
	Config   Config
	Jobs     *shards.Shards
	Progress Progress
	Measures *Measures
}

// New returns the kernel of a store. With a nil store, reads find nothing, and writes run in an
// empty scratch store that is discarded. Settings must have passed their Check. Stop ends the
// workers of the kernel.
func New(s *store.Store, c Config) *Kernel {
	if c.Settings == (Settings{}) {
		c.Settings = Defaults()
	}
	return &Kernel{
		Store: s, Config: c, Measures: newMeasures(), Jobs: shards.New(c.Settings.Shards, c.Settings.QueueLen, c.Settings.EnqueueTimeout),
	}
}

// Exists reports whether the kernel has a store.
func (b *Kernel) Exists() bool { return b.Store != nil }

// Stop refuses new jobs with CodeStopping and releases the callers that wait for a place in a
// queue. It returns when all accepted jobs have run, or with ctx's error if ctx ends first. It
// may be called repeatedly and concurrently.
func (b *Kernel) Stop(ctx context.Context) error { return b.Jobs.Stop(ctx) }

// Write runs fn in one transaction, which is rolled back if fn fails. Without a store it always
// is.
func (b *Kernel) Write(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if b.Store == nil {
		return ToFault(store.Scratch(ctx, time.Now(), fn))
	}
	return ToFault(b.Store.Write(ctx, store.Full, fn))
}

// Read runs fn in a read transaction, without a store over an empty one.
func (b *Kernel) Read(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if b.Store == nil {
		return ToFault(store.Scratch(ctx, time.Now(), fn))
	}
	return ToFault(b.Store.Read(ctx, fn))
}

// Job runs a transaction as a job on the shard of a memory.
func (b *Kernel) Job(ctx context.Context, memory string, fn func(ctx context.Context, tx *store.Tx) error) error {
	return b.Jobs.Run(ctx, memory, func(ctx context.Context) error { return b.Write(ctx, fn) })
}

// Redact removes secrets from a text.
func (b *Kernel) Redact(text string) string {
	if b.Config.Filter == nil || text == "" {
		return text
	}
	text, _ = b.Config.Filter.Text(text)
	return text
}
