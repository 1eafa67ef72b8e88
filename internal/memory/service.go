package memory

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory/embedding"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// Config configures a Service.
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

// Service provides the memories of all users of a store. Its methods are the operations of the
// contract (memories §3). Goroutines and processes may call them concurrently.
//
// Errors are fault.Error with the codes of this package, a hint and details; Status returns
// their HTTP status. A failed call stores nothing.
type Service struct {
	store    *store.Store
	config   Config
	shards   *shards
	progress progress
	embedder *embedding.Client // nil for none
	measures *measures
}

// New returns the service of a store. With a nil store, reads find nothing, and writes run in an
// empty scratch store that is discarded. Settings must have passed their Check. Stop ends the
// workers of the service.
func New(s *store.Store, c Config) *Service {
	if c.Settings == (Settings{}) {
		c.Settings = Defaults()
	}
	return &Service{
		store: s, config: c, measures: newMeasures(), shards: newShards(c.Settings.Shards, c.Settings.QueueLen, c.Settings.EnqueueTimeout),
		embedder: embedding.New(c.Settings.EmbedURL, c.Settings.EmbedModel),
	}
}

// Exists reports whether the service has a store.
func (b *Service) Exists() bool { return b.store != nil }

// Stop refuses new jobs with CodeStopping and releases the callers that wait for a place in a
// queue. It returns when all accepted jobs have run, or with ctx's error if ctx ends first. It
// may be called repeatedly and concurrently.
func (b *Service) Stop(ctx context.Context) error { return b.shards.stop(ctx) }

// Shards reports the work of each shard so far, without shards that were never used (metrics,
// memories §14).
func (b *Service) Shards() []ShardStats { return b.shards.stats() }

// write runs fn in one transaction, which is rolled back if fn fails. Without a store it always
// is.
func (b *Service) write(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if b.store == nil {
		return toFault(store.Scratch(ctx, time.Now(), fn))
	}
	return toFault(b.store.Write(ctx, store.Full, fn))
}

// read runs fn in a read transaction, without a store over an empty one.
func (b *Service) read(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if b.store == nil {
		return toFault(store.Scratch(ctx, time.Now(), fn))
	}
	return toFault(b.store.Read(ctx, fn))
}

// ordered runs fn in a read transaction, after every job that was submitted for a memory
// earlier. It does not occupy the memory's shard (memories §8).
func (b *Service) ordered(ctx context.Context, memory string, fn func(ctx context.Context, tx *store.Tx) error) error {
	if err := b.barrier(ctx, memory); err != nil {
		return err
	}
	return b.read(ctx, fn)
}

// barrier waits for every job that was submitted for a memory earlier.
func (b *Service) barrier(ctx context.Context, memory string) error {
	return b.shards.run(ctx, memory, func(context.Context) error { return nil })
}

// job runs a transaction as a job on the shard of a memory.
func (b *Service) job(ctx context.Context, memory string, fn func(ctx context.Context, tx *store.Tx) error) error {
	return b.shards.run(ctx, memory, func(ctx context.Context) error { return b.write(ctx, fn) })
}

// progress wakes the goroutines that wait for a hub's response.
type progress struct {
	mu   sync.Mutex
	next chan struct{}
}

// changed returns a channel that the next notify closes.
func (p *progress) changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.next
}

func (p *progress) notify() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}

// panicked returns the error of a job that panicked. Its cause contains the stack.
func panicked(cause error) error {
	return fault.Wrap(cause, fault.Internal, CodeInternal, "a defect in cairn stopped this operation").
		WithHint("nothing of it was stored; please report it")
}
