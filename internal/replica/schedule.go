package replica

import (
	"context"
	"math/rand/v2"
	"time"

	"cairn/internal/store"
)

// What is chosen to be sent, and when.

// parcel is what goes into one request: streams and the leases of their lanes.
type parcel struct {
	streams []string
	leases  []store.Lease
}

// ready chooses the streams of the next requests: those that are due, whose lanes are
// ours, that are in no request; one that has failed goes alone.
func (r *Replicator) ready(ctx context.Context, free int) (parcels []parcel, err error) {
	if free == 0 || r.waits(ctx) || !r.maySend() {
		return nil, nil
	}
	due, err := r.Book.ReadyStreams(ctx, r.User, time.Now(), r.Batch*(free+1))
	if err != nil || len(due) == 0 {
		return nil, err
	}
	if err := r.takeLanes(ctx, due); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if free = r.places(free); free == 0 {
		return nil, nil
	}
	var batches [][]string
	var together []string
	for _, s := range due {
		if _, ours := r.leaseOf(s.ID); !ours || r.inAir[s.ID] {
			continue
		}
		if s.Attempts > 0 || r.single[s.ID] {
			if len(batches) < free {
				batches = append(batches, []string{s.ID})
			}
			continue
		}
		together = append(together, s.ID)
	}
	rand.Shuffle(len(together), func(i, j int) { together[i], together[j] = together[j], together[i] }) // none is always last
	batches = append(batches, shared(together, free-len(batches), r.Batch)...)
	for _, streams := range batches {
		if p := r.parcel(streams); len(p.streams) > 0 {
			parcels = append(parcels, p)
		}
	}
	if len(parcels) > 0 {
		r.probing()
	}
	return parcels, nil
}

// maySend reports whether the hub was verified and is not known to refuse all changes.
func (r *Replicator) maySend() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verified && !(r.stopCode != "" && r.stopUntil.After(time.Now()))
}

// waits reports whether nothing may be sent now.
func (r *Replicator) waits(ctx context.Context) bool {
	paused, err := r.Book.Paused(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		return true
	case paused:
		r.state, r.why = StatePaused, "paused by hand"
		return true
	case r.state == StatePaused:
		r.state, r.why = StateRunning, ""
	}
	return r.resume.After(time.Now())
}

// places is how many requests may be made: one, if that is to find out whether the
// hub takes something again. The caller holds the lock.
func (r *Replicator) places(free int) int {
	if r.state == StateRunning {
		return free
	}
	if r.resume.After(time.Now()) || len(r.inAir) > 0 {
		return 0
	}
	return 1
}

// probing notes that a request finds out how the hub is: until it is answered, or for
// so long, there is no other. The caller holds the lock.
func (r *Replicator) probing() {
	switch r.state {
	case StateUnreachable:
		r.resume = time.Now().Add(probeEvery)
	case StateUnauthorized, StateTooOld:
		r.resume = time.Now().Add(askEvery)
	}
}

// shared spreads streams over requests, few of them over one: a stream of thousands
// of changes fills one by itself.
func shared(streams []string, requests, most int) (out [][]string) {
	if requests <= 0 || len(streams) == 0 {
		return nil
	}
	requests = min(requests, len(streams))
	out = make([][]string, requests)
	for i, id := range streams[:min(len(streams), requests*most)] {
		out[i%requests] = append(out[i%requests], id)
	}
	return out
}

// parcel is a parcel of those streams whose lanes are ours still.
func (r *Replicator) parcel(streams []string) (p parcel) {
	seen := map[int]bool{}
	for _, id := range streams {
		lease, ours := r.leaseOf(id)
		if !ours {
			continue
		}
		r.inAir[id] = true
		p.streams = append(p.streams, id)
		if !seen[lease.Lane] {
			p.leases, seen[lease.Lane] = append(p.leases, lease), true
		}
	}
	return p
}

// until is how long there is nothing to do unless something happens.
func (r *Replicator) until(ctx context.Context) time.Duration {
	wait := pollEvery
	r.mu.Lock()
	resume := r.resume
	r.mu.Unlock()
	now := time.Now()
	if resume.After(now) {
		return min(wait, resume.Sub(now))
	}
	if due, err := r.Book.NextDue(ctx, r.User, now); err == nil && due.After(now) {
		wait = min(wait, due.Sub(now))
	}
	return max(wait, time.Millisecond)
}
