package replica

import (
	"context"
	"math/rand/v2"
	"time"

	"cairn/internal/store/follow"
)

// sendBatch is the content of one push: streams and the leases of their lanes.
type sendBatch struct {
	streams []string
	leases  []follow.Lease
}

// ready chooses the streams of the next requests: streams that are due, whose lanes this
// process holds, and that are in no other request. A stream whose last try failed has a
// request of its own.
func (r *Replicator) ready(ctx context.Context, free int) (requests []sendBatch, err error) {
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
	if free = r.freeRequests(free); free == 0 {
		return nil, nil
	}
	var batches [][]string
	var together []string
	for _, s := range due {
		if _, ours := r.leaseOf(s.ID); !ours || r.sending[s.ID] {
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
	rand.Shuffle(len(together), func(i, j int) { together[i], together[j] = together[j], together[i] }) // so that no stream is always last
	batches = append(batches, spread(together, free-len(batches), r.Batch)...)
	for _, streams := range batches {
		if p := r.newBatch(streams); len(p.streams) > 0 {
			requests = append(requests, p)
		}
	}
	if len(requests) > 0 {
		r.noteProbe()
	}
	return requests, nil
}

// maySend reports whether the hub was verified and is not known to refuse all changes.
func (r *Replicator) maySend() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verified && !(r.stopCode != "" && r.stopUntil.After(time.Now()))
}

// waits reports whether no request may be made now.
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

// freeRequests returns how many of the free requests may be made now. While the hub accepts
// nothing that is one at a time, as a probe. The caller holds the lock.
func (r *Replicator) freeRequests(free int) int {
	if r.state == StateRunning {
		return free
	}
	if r.resume.After(time.Now()) || len(r.sending) > 0 {
		return 0
	}
	return 1
}

// noteProbe delays further requests while one probes a hub that accepts nothing. The
// caller holds the lock.
func (r *Replicator) noteProbe() {
	switch r.state {
	case StateUnreachable:
		r.resume = time.Now().Add(probeEvery)
	case StateUnauthorized, StateTooOld:
		r.resume = time.Now().Add(askEvery)
	}
}

// spread distributes streams over requests, most at most in each. Even a few streams are
// spread, because one with thousands of changes fills a request alone.
func spread(streams []string, requests, most int) (out [][]string) {
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

// newBatch returns a batch of the given streams, without those whose lanes this process has
// lost. The caller holds the lock.
func (r *Replicator) newBatch(streams []string) (p sendBatch) {
	seen := map[int]bool{}
	for _, id := range streams {
		lease, ours := r.leaseOf(id)
		if !ours {
			continue
		}
		r.sending[id] = true
		p.streams = append(p.streams, id)
		if !seen[lease.Lane] {
			p.leases, seen[lease.Lane] = append(p.leases, lease), true
		}
	}
	return p
}

// nextWait returns how long there is nothing to do unless a signal comes.
func (r *Replicator) nextWait(ctx context.Context) time.Duration {
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
