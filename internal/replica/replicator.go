package replica

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/store"
)

// What memories §10.3 and §10.4 fix.
const (
	requestsAtOnce = 4       // pushes underway for one credential
	maxBatchBytes  = 1 << 20 // documents of a push
	firstDelay     = 100 * time.Millisecond
	maxDelay       = 20 * time.Second
	probeEvery     = 5 * time.Second // an unreachable hub
	askEvery       = time.Minute     // a hub that refuses the token
	stopTime       = 10 * time.Second
	pollEvery      = time.Second // for what other processes write
	gatherTime     = 5 * time.Millisecond
)

// The states of a replicator.
const (
	StateRunning      = "running"
	StatePaused       = "paused"       // by hand
	StateUnreachable  = "unreachable"  // nobody answers as a hub
	StateUnauthorized = "unauthorized" // the hub refuses the token
	StateTooOld       = CodeTooOld     // the hub does not know what it is asked
)

// Config is what a Replicator is made of.
type Config struct {
	Store  *store.Store
	Book   *memory.Book // over the store
	User   string       // the local user, who has joined the hub
	Client *Client      // with the user's token
	Device string       // the store's device id

	Batch int           // changes of a push, at most MaxPushItems; 0 for 500
	Lease time.Duration // of a lane; 0 for 60 s
	Halt  bool          // a refused change halts its stream (hub.on_permanent = halt)
	Log   *slog.Logger  // never told what entries say; nil discards it

	// Passing is called at the crash points of memories §15, with their names; nil
	// for nobody.
	Passing func(point string)
}

// Replicator takes one user's changes to the hub and brings back those of other
// devices. Any number of processes may run one on a store: lanes are leased. Whatever
// kills it, what it had sent is sent again under the same keys.
type Replicator struct {
	Config
	holder *holder
	wake   chan struct{}
	pulled *puller
	meter  Meter

	mu       sync.Mutex
	leases   map[int]memory.Lease // by lane
	inAir    map[string]bool      // streams in a request
	single   map[string]bool      // streams of which one change at a time is sent: a batch of theirs was refused as a whole
	state    string
	why      string
	silent   int       // failed attempts in a row to reach the hub
	resume   time.Time // nothing is sent before
	received bool      // a request of this process has succeeded
}

// New returns a replicator that does nothing yet.
func New(c Config) *Replicator {
	if c.Batch <= 0 || c.Batch > MaxPushItems {
		c.Batch = 500
	}
	if c.Lease <= 0 {
		c.Lease = time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Passing == nil {
		c.Passing = func(string) {}
	}
	return &Replicator{
		Config: c, wake: make(chan struct{}, 1), leases: map[int]memory.Lease{}, inAir: map[string]bool{}, single: map[string]bool{}, state: StateRunning,
	}
}

// State says how it stands with the hub, and why if it is not well.
func (r *Replicator) State() (state, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.why
}

// Meter are the counters of this replicator.
func (r *Replicator) Meter() *Meter { return &r.meter }

// Run replicates until ctx ends; then requests that are underway get 10 s to end. It
// returns nil then, and an error only when the store fails for good.
func (r *Replicator) Run(ctx context.Context) error {
	if err := r.begin(); err != nil {
		return err
	}
	defer r.end()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	failed := make(chan error, 4)
	for _, part := range []func(context.Context) error{r.follow, r.keepLeases, r.pull, r.push} {
		group.Go(func() {
			if err := part(running); err != nil && running.Err() == nil {
				failed <- err
				cancel()
			}
		})
	}
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// Drain sends what there is until nothing is left that could be sent, and pulls what
// there is. It returns the hub's error as soon as the hub cannot be reached or refuses
// the token; what waits for its time, or stands still, is left.
func (r *Replicator) Drain(ctx context.Context) error {
	if err := r.begin(); err != nil {
		return err
	}
	defer r.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() { _ = r.keepLeases(ctx) }) // its errors show in the flips
	defer group.Wait()
	defer cancel()
	for {
		sent, err := r.round(ctx)
		if err != nil {
			return err
		}
		if !sent {
			break
		}
	}
	return r.pullAll(ctx)
}

func (r *Replicator) begin() (err error) {
	r.holder, err = newHolder(r.Store.Path())
	r.pulled = newPuller()
	return err
}

// end gives the leases back, so that another process need not wait for their end.
func (r *Replicator) end() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := r.Book.ReleaseLanes(ctx, r.holder.name, r.held()); err != nil {
		r.Log.Debug("leases were not released", "error", err)
	}
	r.holder.end()
	r.Client.Close()
}

// follow wakes the replicator when something was written, here or elsewhere.
func (r *Replicator) follow(ctx context.Context) error {
	return r.Store.Follow(ctx, store.Follower{Poll: pollEvery, Batch: func(context.Context, []store.Change) ([]store.Refusal, error) {
		r.nudge()
		return nil, nil
	}})
}

func (r *Replicator) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// push sends what is ready, up to four requests at once.
func (r *Replicator) push(ctx context.Context) error {
	// Requests outlive ctx by so much that they can end.
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var underway sync.WaitGroup
	defer underway.Wait()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stopTime, cancel) })()
	done := make(chan struct{}, requestsAtOnce)
	free := requestsAtOnce
	for {
		batches, err := r.ready(ctx, free)
		if err != nil && ctx.Err() == nil {
			r.Log.Warn("what is to be sent cannot be read; trying again", "error", err)
		}
		for _, streams := range batches {
			free--
			underway.Go(func() {
				defer func() { done <- struct{}{} }()
				r.deliver(sending, streams)
			})
		}
		timer := time.NewTimer(r.until(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-done:
			free++
		case <-r.wake:
			r.gather(ctx, free)
		case <-timer.C:
		}
		timer.Stop()
		for more := true; more; {
			select {
			case <-done:
				free++
			default:
				more = false
			}
		}
	}
}

// gather waits a moment for more to send with the next request, unless nothing is
// underway.
func (r *Replicator) gather(ctx context.Context, free int) {
	if free == requestsAtOnce {
		return
	}
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
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
	if due, err := r.Book.NextDue(ctx, r.User); err == nil && due.After(now) {
		wait = min(wait, due.Sub(now))
	}
	return max(wait, time.Millisecond)
}

// round is one turn of Drain: it sends what is ready, one request at a time, and tells
// whether there was anything.
func (r *Replicator) round(ctx context.Context) (sent bool, err error) {
	batches, err := r.ready(ctx, 1)
	if err != nil || len(batches) == 0 {
		return false, err
	}
	for _, streams := range batches {
		r.deliver(ctx, streams)
	}
	switch state, why := r.State(); state {
	case StateUnreachable, StateUnauthorized, StateTooOld:
		return true, fault.New(fault.Unavailable, CodeUnavailable, "the hub takes nothing now: "+why).WithHint("cairn replication status shows what waits")
	}
	return true, ctx.Err()
}

// ready chooses the streams of the next requests: those that are due, whose lanes are
// ours, that are in no request; one that has failed goes alone.
func (r *Replicator) ready(ctx context.Context, free int) (batches [][]string, err error) {
	if free == 0 || r.waits(ctx) {
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
	var together []string
	for _, s := range due {
		if _, ours := r.leases[s.Lane]; !ours || r.inAir[s.ID] {
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
	batches = append(batches, shared(together, free-len(batches), r.Batch)...)
	for _, streams := range batches {
		for _, id := range streams {
			r.inAir[id] = true
		}
	}
	return batches, nil
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

// waits tells whether nothing may be sent now.
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

// deliver sends the next changes of some streams and settles them.
func (r *Replicator) deliver(ctx context.Context, streams []string) {
	defer func() {
		r.mu.Lock()
		for _, id := range streams {
			delete(r.inAir, id)
		}
		r.mu.Unlock()
	}()
	r.Passing("after_lease")
	limit := r.Batch
	if len(streams) == 1 && r.isSingle(streams[0]) {
		limit = 1
	}
	leases := r.leasesOf(streams)
	batch, err := r.Book.NextBatch(ctx, leases, streams, limit, maxBatchBytes)
	if err != nil {
		r.lost(err)
		return
	}
	if len(batch) == 0 {
		return
	}
	ask := PushRequest{DeviceID: r.Device, Items: make([]Item, len(batch))}
	for i, o := range batch {
		ask.Items[i] = Item{Stream: o.Stream, Seq: o.Seq, Kind: o.Kind, ID: o.ID, Op: o.Op, Key: o.Key, Doc: o.Doc}
		if o.Remote != "" {
			ask.Items[i].Stream = o.Remote
		}
	}
	r.Passing("before_hub_send")
	answer, err := r.Client.Push(ctx, ask)
	if err != nil {
		err = r.undelivered(ctx, leases, batch, err)
	} else {
		r.Passing("after_hub_201")
		r.answered(ctx)
		err = r.settle(ctx, leases, batch, answer.Results)
	}
	if err != nil {
		r.lost(err)
	}
}

func (r *Replicator) isSingle(stream string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.single[stream]
}

// lost deals with an error of the store: a lease that another has taken is given up,
// anything else is tried again a second later.
func (r *Replicator) lost(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fault.HasCode(err, memory.CodeLeaseLost) {
		r.meter.LeaseLosses.Add(1)
		clear(r.leases)
		return
	}
	if !errors.Is(err, context.Canceled) {
		r.Log.Warn("what the hub answered cannot be stored; trying again", "error", err)
	}
	r.resume = time.Now().Add(pollEvery)
}

// delay is how long the nth failure in a row makes wait: 100 ms, doubled each time up
// to a limit, give or take a half.
func delay(n int, limit time.Duration) time.Duration {
	d := limit
	if n = max(n, 1); n < 20 {
		d = min(limit, firstDelay<<(n-1))
	}
	return time.Duration(float64(d) * (0.5 + rand.Float64()))
}
