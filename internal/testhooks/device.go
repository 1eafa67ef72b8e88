//go:build testhooks

package testhooks

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"cairn"
	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/replication"
	"cairn/internal/settings"
)

// Device controls one `cairn serve --http`.
type Device struct {
	config cairn.Config
	kept   *savedState
	turn   chan struct{} // a semaphore: one verb at a time can restart the server

	mu      sync.Mutex
	running *cairn.Cairn       // while it is served
	cancel  context.CancelFunc // ends the run
	next    func() error       // runs between this run and the next; nil if there is no next run
	change  chan struct{}      // closed when running changes
	over    bool               // there are no more runs
	holds   map[string]func()  // by memory, the function that releases its worker
	jobs    map[string]*addRun
}

// NewDevice returns a device with the saved state of an earlier process of the store.
func NewDevice(c cairn.Config) (*Device, error) {
	k, err := open(c.DB)
	return &Device{
		config: c, kept: k, turn: make(chan struct{}, 1), change: make(chan struct{}), holds: map[string]func(){}, jobs: map[string]*addRun{},
	}, err
}

// Now returns the time of the test's clock.
func (d *Device) Now() time.Time { return d.kept.Now() }

// Setting returns the test's value of an environment variable.
func (d *Device) Setting(variable string) (text string, ok bool) {
	for key, text := range d.kept.settings() {
		if settings.EnvName(key) == variable {
			return text, true
		}
	}
	return "", false
}

// Listen opens the control listener on addr until ctx ends, and prints its URL on w.
func (d *Device) Listen(ctx context.Context, addr string, w io.Writer) error {
	return serve(ctx, addr, w, d.verbs())
}

// Run runs a server and restarts it when a verb has ended it. If the server ends for another
// reason, Run returns the error of run.
func (d *Device) Run(ctx context.Context, run func(context.Context) error) error {
	for {
		one, cancel := context.WithCancel(ctx)
		d.set(func() { d.cancel = cancel })
		err := run(one)
		cancel()
		var between func() error
		d.set(func() { between, d.next, d.running = d.next, nil, nil })
		if err == nil && between != nil && ctx.Err() == nil {
			if err = between(); err == nil {
				continue
			}
		}
		d.set(func() { d.over = true })
		return err
	}
}

// Serving notifies the device that the server accepts requests.
func (d *Device) Serving(c *cairn.Cairn) { d.set(func() { d.running = c }) }

func (d *Device) set(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
	close(d.change)
	d.change = make(chan struct{})
}

// restart ends the run, calls between and returns when the next run serves. It first
// releases blocked workers.
func (d *Device) restart(ctx context.Context, between func() error) error {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c, err := d.cairn()
	if err != nil {
		return err
	}
	for _, memory := range d.heldMemories() {
		d.release(memory)
	}
	var failed error
	d.set(func() {
		d.next = func() error { failed = between(); return failed }
		d.cancel()
	})
	for {
		d.mu.Lock()
		now, over, change := d.running, d.over, d.change
		d.mu.Unlock()
		switch {
		case over:
			return errors.Join(failed, notServing())
		case now != nil && now != c:
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// cairn returns the running server's cairn.
func (d *Device) cairn() (*cairn.Cairn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == nil {
		return nil, notServing()
	}
	return d.running, nil
}

// withService calls do with the memory service of the running server.
func (d *Device) withService(ctx context.Context, do func(b *memories.Service) error) error {
	c, err := d.cairn()
	if err != nil {
		return err
	}
	return c.Memories().Read(ctx, memory.Caller{}, func(_ context.Context, b *memories.Service, _ memory.Caller) error { return do(b) })
}

// withMemory calls do with the memory service and the local id of an existing memory.
func (d *Device) withMemory(ctx context.Context, named string, do func(b *memories.Service, id string) error) error {
	return d.withService(ctx, func(b *memories.Service) error {
		id, _, err := b.Here(ctx, named)
		if err != nil {
			return err
		}
		return do(b, id)
	})
}

// Arguments of verbs for one memory.
type (
	memoryArgs struct {
		Memory string `json:"memory"`
	}
	holdArgs struct {
		memoryArgs
		MS *int64 `json:"ms"` // nil: until it is released
	}
	waitArgs struct {
		memoryArgs
		TimeoutMS *int64 `json:"timeout_ms"` // timeout of the await
	}
)

func (d *Device) verbs() http.Handler {
	names, _ := crashpoint.Names()
	mux := newMux(d.kept, names, d.heldMemories)
	post(mux, "/test/reset", d.reset)
	post(mux, "/test/config", d.configure)
	post(mux, "/test/replication", d.replication)
	post(mux, "/test/shard/hold", func(ctx context.Context, a holdArgs) (any, error) { return nil, d.hold(ctx, a) })
	post(mux, "/test/shard/release", func(ctx context.Context, a memoryArgs) (any, error) {
		return nil, d.withMemory(ctx, a.Memory, func(_ *memories.Service, id string) error { d.release(id); return nil })
	})
	post(mux, "/test/shard/panic", func(ctx context.Context, a memoryArgs) (any, error) {
		return nil, d.withMemory(ctx, a.Memory, func(b *memories.Service, id string) error { b.Jobs.PanicNext(id); return nil })
	})
	post(mux, "/test/wait-synced", func(ctx context.Context, a waitArgs) (any, error) {
		if a.TimeoutMS != nil && *a.TimeoutMS < 0 {
			return nil, invalid("timeout_ms", "timeout_ms must not be negative")
		}
		return nil, d.withMemory(ctx, a.Memory, func(b *memories.Service, id string) error {
			return b.WaitSynced(ctx, id, replication.AwaitFor(a.TimeoutMS))
		})
	})
	post(mux, "/test/purge", func(ctx context.Context, a struct {
		IgnoreAge bool `json:"ignore_age"`
	},
	) (purged any, err error) {
		err = d.withService(ctx, func(b *memories.Service) error { purged, err = b.Purge(ctx, a.IgnoreAge); return err })
		return purged, err
	})
	get(mux, "/test/counts", func(ctx context.Context, q url.Values) (counts any, err error) {
		err = d.withMemory(ctx, q.Get("memory"), func(b *memories.Service, id string) error { counts, err = b.Counts(ctx, id); return err })
		return counts, err
	})
	get(mux, "/test/context-rows", func(ctx context.Context, q url.Values) (any, error) {
		out := map[string]int{}
		return out, d.withMemory(ctx, q.Get("memory"), func(b *memories.Service, id string) (err error) {
			out["count"], err = b.ContextRows(ctx, id)
			return err
		})
	})
	post(mux, "/test/add-many", d.addMany)
	get(mux, "/test/job", d.job)
	post(mux, "/test/ack-latency", d.ackLatency)
	return mux
}

// replication pauses and resumes the replication, as `cairn replication` does.
func (d *Device) replication(ctx context.Context, a struct {
	State string `json:"state"`
},
) (any, error) {
	if a.State != "paused" && a.State != "running" {
		return nil, invalid("state", "state must be paused or running")
	}
	return a, d.withService(ctx, func(b *memories.Service) error { return b.SetPaused(ctx, a.State == "paused") })
}

// heldMemories lists the memories whose worker is blocked.
func (d *Device) heldMemories() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := []string{}
	for id := range d.holds {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// hold blocks a memory's worker, permanently or for some time. It returns when the worker is
// blocked.
func (d *Device) hold(ctx context.Context, a holdArgs) error {
	return d.withMemory(ctx, a.Memory, func(b *memories.Service, id string) error {
		until := make(chan struct{})
		d.mu.Lock()
		taken := d.holds[id] != nil
		if !taken {
			d.holds[id] = sync.OnceFunc(func() { close(until) })
		}
		d.mu.Unlock()
		if taken {
			return fault.New(fault.Conflict, memory.CodeExists, "the worker is already blocked").WithHint("release it first")
		}
		if err := b.Jobs.Hold(ctx, id, until); err != nil {
			d.release(id)
			return err
		}
		if a.MS != nil {
			time.AfterFunc(time.Duration(*a.MS)*time.Millisecond, func() { d.release(id) })
		}
		return nil
	})
}

// release releases a memory's worker. It is idempotent.
func (d *Device) release(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if let := d.holds[id]; let != nil {
		let()
		delete(d.holds, id)
	}
}
