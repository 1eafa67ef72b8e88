//go:build testhooks

package testhooks

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
)

// maxAdded is the maximum number of entries that one call can add.
const maxAdded = 1_000_000

type addManyArgs struct {
	Memory     string `json:"memory"`
	Prefix     string `json:"prefix"`
	N          int    `json:"n"`
	Concurrent any    `json:"concurrent"` // true: all concurrently; a number: that many at a time
	Async      bool   `json:"async"`
}

// addRun is a running add-many.
type addRun struct {
	mu   sync.Mutex
	done bool
	addResult
}

// addResult is the result of an add-many, in the order of the responses.
type addResult struct {
	Statuses []int     `json:"statuses"`  // HTTP statuses
	LocalIDs []*string `json:"local_ids"` // null if the entry was not added
}

func (a *addRun) note(e entries.Added, err error) {
	status, local := memory.Status(err), &e.LocalID
	switch {
	case err != nil:
		local = nil
	case e.Status == entries.Enqueued:
		status = http.StatusAccepted
	default:
		status = http.StatusCreated
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Statuses, a.LocalIDs = append(a.Statuses, status), append(a.LocalIDs, local)
}

// writer returns a function that adds entries to a memory as its owner.
func (d *Device) writer(ctx context.Context, named string) (add func(ctx context.Context, raw string) (entries.Added, error), err error) {
	c, err := d.cairn()
	if err != nil {
		return nil, err
	}
	var id string
	var owner memory.User
	if err := d.withService(ctx, func(b *memories.Service) error { id, owner, err = b.Here(ctx, named); return err }); err != nil {
		return nil, err
	}
	return func(ctx context.Context, raw string) (out entries.Added, err error) {
		return out, c.Memories().Write(ctx, memory.Caller{User: owner.UserID}, func(ctx context.Context, b *memories.Service, who memory.Caller) error {
			out, _, err = b.AddEntry(ctx, who, contents.NewEntry{MemoryID: id, RawEntry: raw})
			return err
		})
	}, nil
}

// addMany adds the entries prefix1 to prefixN.
func (d *Device) addMany(ctx context.Context, a addManyArgs) (any, error) {
	workers := 1
	switch c := a.Concurrent.(type) {
	case nil:
	case bool:
		if c {
			workers = a.N
		}
	case float64:
		workers = int(c)
	default:
		return nil, invalid("concurrent", "concurrent must be true, false or a number")
	}
	if a.N < 0 || a.N > maxAdded {
		return nil, invalid("n", "n must be between 0 and 1000000")
	}
	add, err := d.writer(ctx, a.Memory)
	if err != nil {
		return nil, err
	}
	j := &addRun{addResult: addResult{[]int{}, []*string{}}}
	run := func(ctx context.Context) {
		left := make(chan int, a.N)
		for i := range a.N {
			left <- i + 1
		}
		close(left)
		var all sync.WaitGroup
		for range max(1, min(workers, a.N)) {
			all.Go(func() {
				for i := range left {
					j.note(add(ctx, fmt.Sprint(a.Prefix, i)))
				}
			})
		}
		all.Wait()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.done = true
	}
	if !a.Async {
		run(ctx)
		return j.addResult, nil
	}
	d.mu.Lock()
	id := fmt.Sprintf("job-%d", len(d.jobs)+1)
	d.jobs[id] = j
	d.mu.Unlock()
	go run(context.WithoutCancel(ctx))
	return map[string]string{"job": id}, nil
}

// job returns the progress of an asynchronous add-many.
func (d *Device) job(_ context.Context, q url.Values) (any, error) {
	d.mu.Lock()
	j := d.jobs[q.Get("id")]
	d.mu.Unlock()
	if j == nil {
		return nil, fault.New(fault.NotFound, memory.CodeNotFound, "job not found")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return struct {
		Done bool `json:"done"`
		addResult
	}{j.done, addResult{slices.Clone(j.Statuses), slices.Clone(j.LocalIDs)}}, nil
}

// ackLatency adds n entries one after the other and returns their latencies in
// milliseconds.
func (d *Device) ackLatency(ctx context.Context, a struct {
	Memory string `json:"memory"`
	N      int    `json:"n"`
},
) (any, error) {
	if a.N < 1 || a.N > maxAdded {
		return nil, invalid("n", "n must be between 1 and 1000000")
	}
	add, err := d.writer(ctx, a.Memory)
	if err != nil {
		return nil, err
	}
	took := make([]float64, a.N)
	for i := range took {
		began := time.Now()
		if _, err := add(ctx, fmt.Sprint("latency", i+1)); err != nil {
			return nil, err
		}
		took[i] = float64(time.Since(began)) / 1e6
	}
	slices.Sort(took)
	at := func(percent int) float64 { return took[(a.N*percent+99)/100-1] }
	return map[string]float64{"p50": at(50), "p95": at(95), "p99": at(99), "max": took[a.N-1]}, nil
}
