package shards

import (
	"context"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/fault"
	"cairn/internal/measure"
	"cairn/internal/memory/rules"
)

// Shards runs the jobs of one memory in order, and those of different memories concurrently
// (memories §8). A shard's worker is a goroutine that lives while there are jobs.
type Shards struct {
	all      []shard // the last is the priority lane
	capacity int
	patience time.Duration
	stopping chan struct{} // closed by stop
	once     sync.Once
	workers  sync.WaitGroup
}

// shard is a queue with its worker. A job is accepted when it is appended under mu while
// stopped is false.
type shard struct {
	hooks   shardHooks
	mu      sync.Mutex
	places  chan struct{} // one value for each job that waits; created at first use
	queue   []*job
	running bool
	stopped bool

	submissions, full, skipped, panics atomic.Int64
	runs                               *measure.Histogram // created with places
}

// job is a queued function. Either its worker takes it, or its caller cancels it.
type job struct {
	ctx   context.Context
	fn    func(ctx context.Context) error
	taken atomic.Bool
	done  chan struct{}
	err   error // once done is closed
}

// ShardStats counts the work of one shard since the start.
type Stats struct {
	Shard       int   // the priority lane is the one after the last
	Submissions int64 // jobs accepted
	Full        int64 // jobs refused with CodeQueueFull
	Skipped     int64 // jobs that their caller had cancelled
	Panics      int64
	Runs        measure.Distribution // of jobs that were started
	Depth       int                  // jobs that wait now
}

// New returns n shards and the priority lane. Each holds at most capacity waiting jobs; a job that
// finds no place waits at most patience.
func New(n, capacity int, patience time.Duration) *Shards {
	return &Shards{all: make([]shard, n+1), capacity: capacity, patience: patience, stopping: make(chan struct{})}
}

// shardOf returns the shard of a memory among n: FNV-1a-32 of its id's text, unsigned.
func shardOf(memory string, n int) int { return int(fnv32(memory) % uint32(n)) }

// LaneOf returns the lane of a stream (memories §10.3). It does not depend on settings.
func LaneOf(stream string) int { return int(fnv32(stream) % 256) }

func fnv32(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // never fails (hash.Hash)
	return h.Sum32()
}

// Run submits fn to the shard of a memory and returns its error.
//
// If ctx ends before fn has started, fn does not run, and run returns the error of ctx. The
// end of ctx does not stop a running fn. Errors besides fn's: CodeQueueFull after the
// enqueue timeout, CodeStopping, CodeInternal if fn panicked.
func (s *Shards) Run(ctx context.Context, memory string, fn func(ctx context.Context) error) error {
	return s.runOn(ctx, shardOf(memory, len(s.all)-1), fn)
}

// RunFirst is run in the priority lane, for jobs that create memories and users.
func (s *Shards) RunFirst(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.runOn(ctx, len(s.all)-1, fn)
}

func (s *Shards) runOn(ctx context.Context, number int, fn func(ctx context.Context) error) error {
	j := &job{ctx: ctx, fn: fn, done: make(chan struct{})}
	if err := s.submit(ctx, number, j); err != nil {
		return err
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		if j.taken.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		<-j.done
		return j.err
	}
}

// submit waits for a place in a queue, appends the job and starts a worker if none runs.
func (s *Shards) submit(ctx context.Context, number int, j *job) error {
	sh := &s.all[number]
	places := sh.open(s.capacity)
	select {
	case places <- struct{}{}:
	default:
		if err := s.wait(ctx, number, places); err != nil {
			return err
		}
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.stopped {
		<-places
		return stopping()
	}
	sh.submissions.Add(1)
	sh.queue = append(sh.queue, j)
	if !sh.running {
		sh.running = true
		s.workers.Add(1)
		go s.work(sh)
	}
	return nil
}

func (s *Shards) wait(ctx context.Context, number int, places chan struct{}) error {
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
		return nil
	case <-s.stopping:
		return stopping()
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		s.all[number].full.Add(1)
		return rules.Failure(fault.Unavailable, CodeQueueFull, "wait a second and call again with the same idempotency key",
			"too many writes of this memory are waiting", "shard", number, "length", len(places), "capacity", s.capacity)
	}
}

func (sh *shard) open(capacity int) chan struct{} {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.places == nil {
		sh.places, sh.runs = make(chan struct{}, capacity), Timings()
	}
	return sh.places
}

// work runs a shard's jobs until the queue is empty.
func (s *Shards) work(sh *shard) {
	defer s.workers.Done()
	for {
		j := sh.next()
		if j == nil {
			return
		}
		if !j.taken.CompareAndSwap(false, true) {
			sh.skipped.Add(1)
			close(j.done)
			continue
		}
		begun := time.Now()
		j.err = sh.guarded(j)
		sh.runs.Add(time.Since(begun))
		close(j.done)
	}
}

// next removes and returns the oldest job; nil ends the worker.
func (sh *shard) next() *job {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.queue) == 0 {
		sh.running, sh.queue = false, nil
		return nil
	}
	j := sh.queue[0]
	sh.queue[0] = nil
	sh.queue = sh.queue[1:]
	<-sh.places
	return j
}

// guarded runs a job and returns a panic as an error.
func (sh *shard) guarded(j *job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			sh.panics.Add(1)
			err = panicked(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	sh.hooks.enter()
	return j.fn(context.WithoutCancel(j.ctx))
}

// Stop refuses new jobs and waits until the accepted ones have run.
func (s *Shards) Stop(ctx context.Context) error {
	s.once.Do(func() { close(s.stopping) })
	for i := range s.all {
		sh := &s.all[i]
		sh.mu.Lock()
		sh.stopped = true
		sh.mu.Unlock()
	}
	done := make(chan struct{})
	go func() {
		s.workers.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats reports the work of each shard so far, without shards that were never used.
func (s *Shards) Stats() (out []Stats) {
	for i := range s.all {
		sh := &s.all[i]
		sh.mu.Lock()
		used, depth := sh.places != nil, len(sh.queue)
		sh.mu.Unlock()
		if used {
			out = append(out, Stats{i, sh.submissions.Load(), sh.full.Load(), sh.skipped.Load(), sh.panics.Load(), sh.runs.Read(), depth})
		}
	}
	return out
}
