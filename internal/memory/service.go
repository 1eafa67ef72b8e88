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

// Config is what a Service is to know.
type Config struct {
	Settings Settings
	Filter   *redact.Filter // takes secrets out before anything is stored; nil with memory.redact off

	// Wanted is called when a memory is read for the first time that is known from a
	// hub's catalogue alone: it is to subscribe the stream and may wait a moment for its
	// rows (memories §10.3). Nil for nobody.
	Wanted func(ctx context.Context, user, stream string)

	// Waiting is called while a delete of a user waits for the hub's word: where no
	// replicator runs for the user, it is to ask the hub until ctx ends, and then return
	// soon (memories §10.6). Nil for nobody.
	Waiting func(ctx context.Context, user string)

	// Through reads entries that were purged here at a user's hub, as documents with
	// their creationTime, newest first. Errors: CodeNotFound, CodeHubUnavailable. Nil for
	// no reading through.
	Through func(ctx context.Context, user string, q HubQuery) ([]json.RawMessage, error)
}

// Service is the memories of every user of a store. Its methods are the operations of
// the contract (memories §3); any number of goroutines and processes may call them.
//
// Errors are fault.Error with the codes of this room, a hint and details; Status
// gives their HTTP number. A call that fails has stored nothing.
type Service struct {
	store    *store.Store
	config   Config
	shards   *shards
	progress progress
	embedder *embedding.Client // nil for none
	measures measures
}

// New returns the service of a store; nil for no store yet: then reading finds nothing,
// and writing is tried over nothing and leaves nothing behind. Settings must have
// passed their Check. Stop ends the workers of the service.
func New(s *store.Store, c Config) *Service {
	if c.Settings == (Settings{}) {
		c.Settings = Defaults()
	}
	return &Service{
		store: s, config: c, shards: newShards(c.Settings.Shards, c.Settings.QueueLen, c.Settings.EnqueueTimeout),
		embedder: embedding.New(c.Settings.EmbedURL, c.Settings.EmbedModel),
	}
}

// Exists reports whether there is a store under the service.
func (b *Service) Exists() bool { return b.store != nil }

// Stop refuses new jobs with CodeStopping, releases the callers that wait for a place
// in a queue and returns when all accepted jobs have run, or with ctx's error when
// that ends before. It may be called again, also at the same time.
func (b *Service) Stop(ctx context.Context) error { return b.shards.stop(ctx) }

// Shards reports what the workers have done so far, by shard; those that were never
// used are left out (metrics, memories §14).
func (b *Service) Shards() []ShardStats { return b.shards.stats() }

// write runs fn in one transaction; a failed fn leaves nothing behind, and where
// there is no store yet any fn.
func (b *Service) write(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if b.store == nil {
		return toFault(store.Scratch(ctx, time.Now(), fn))
	}
	return toFault(b.store.Write(ctx, store.Full, fn))
}

// read runs fn over the store as it is. Where there is none yet it is an empty one.
func (b *Service) read(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if b.store == nil {
		return toFault(store.Scratch(ctx, time.Now(), fn))
	}
	return toFault(b.store.Read(ctx, fn))
}

// ordered runs fn over the store after every job that was submitted for a memory
// before: it passes the memory's shard and works off it (memories §8).
func (b *Service) ordered(ctx context.Context, memory string, fn func(ctx context.Context, tx *store.Tx) error) error {
	if err := b.barrier(ctx, memory); err != nil {
		return err
	}
	return b.read(ctx, fn)
}

// barrier waits for what was submitted for a memory before.
func (b *Service) barrier(ctx context.Context, memory string) error {
	return b.shards.run(ctx, memory, func(context.Context) error { return nil })
}

// job runs a transaction as a job on the shard of a memory.
func (b *Service) job(ctx context.Context, memory string, fn func(ctx context.Context, tx *store.Tx) error) error {
	return b.shards.run(ctx, memory, func(ctx context.Context) error { return b.write(ctx, fn) })
}

// progress wakes those in this process who wait for a hub's answer.
type progress struct {
	mu   sync.Mutex
	next chan struct{}
}

// seen is closed at the next step.
func (p *progress) seen() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.next
}

func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}

// panicked is the error of a job that panicked; its cause holds the stack.
func panicked(cause error) error {
	return fault.Wrap(cause, fault.Internal, CodeInternal, "a defect in cairn stopped this operation").
		WithHint("nothing of it was stored; please report it")
}
