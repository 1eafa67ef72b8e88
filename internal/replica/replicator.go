package replica

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/store"
)

// What memories §10.3 and §10.4 fix.
const (
	requestsAtOnce = 4               // pushes underway for one credential
	maxBatchBytes  = 1 << 20         // documents of a push
	probeEvery     = 5 * time.Second // an unreachable hub
	askEvery       = time.Minute     // a hub that refuses the token
	stopTime       = 10 * time.Second
	pollEvery      = time.Second // for what other processes write
	gatherTime     = 5 * time.Millisecond
)

// probeBackoff is how long requests wait for a hub that cannot be reached: with its jitter
// five seconds at most.
var probeBackoff = store.Backoff{First: 100 * time.Millisecond, Max: probeEvery * 2 / 3, Jitter: .5}

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
	Book   *memory.Service // over the store
	User   string          // the local user, who has joined the hub
	Client *Client         // with the user's token

	Generation int64 // the user's, of this membership: when it has ended nothing is sent or stored any more

	Leases *store.Leases // of this process, see NewLeases; nil for leases of the run's own
	Batch  int           // changes of a push, at most MaxPushItems; 0 for 500
	Halt   bool          // a refused change halts its stream (hub.on_permanent = halt)
	Log    *slog.Logger  // receives no text of entries; nil discards it
}

// Replicator takes one user's changes to the hub and brings back those of other
// devices. Any number of processes may run one on a store: lanes are leased. Whatever
// kills it, what it had sent is sent again under the same keys.
type Replicator struct {
	Config
	leases *store.Leases // while it runs
	wake   chan struct{} // there may be something to send
	asked  chan struct{} // a stream was subscribed
	meter  Metrics

	mu     sync.Mutex
	inAir  map[string]bool // streams in a request
	single map[string]bool // streams of which one change at a time is sent: a batch of theirs was refused as a whole
	state  string
	why    string
	silent int       // failed attempts in a row to reach the hub
	cause  cause     // of the state
	resume time.Time // nothing is sent before

	epoch     int64 // that the hub told last
	restoring bool  // there may be streams to restore
	verified  bool  // see verify; until then nothing is sent
	catalog   int64 // version of the hub's catalogue that was read last, 0 for a hub without
	stale     bool  // there is a newer one

	stopCode, stopWhy string    // why nothing is sent although the hub answers, "" if it is
	stopUntil         time.Time // when sending is tried again

	end context.CancelCauseFunc // of the run
}

// cause says which request brought the replicator into its state, if that is not well.
type cause int

const (
	causeNone   cause = iota
	causeSilent       // nobody answered
	causePush         // a push was refused
	causePull         // a pull was refused
)

// New returns a replicator that does nothing yet.
func New(c Config) *Replicator {
	if c.Batch <= 0 || c.Batch > MaxPushItems {
		c.Batch = 500
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Replicator{
		Config: c, wake: make(chan struct{}, 1), asked: make(chan struct{}, 1), inAir: map[string]bool{}, single: map[string]bool{}, state: StateRunning,
	}
}

// State is the state of the replication, and the reason for any but running.
func (r *Replicator) State() (state, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == StateRunning && r.stopCode != "" {
		return r.stopCode, r.stopWhy
	}
	return r.state, r.why
}

// Metrics are the counters of this replicator.
func (r *Replicator) Meter() *Metrics { return &r.meter }

// Run replicates until ctx ends; then requests that are underway get 10 s to end. It
// returns nil then. Errors: memory.CodeLeft when the membership has ended, and the
// store's when it fails permanently.
func (r *Replicator) Run(ctx context.Context) error {
	running, end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	var group sync.WaitGroup
	failed := make(chan error, 1)
	group.Go(func() {
		if err := r.follow(running); err != nil && running.Err() == nil {
			failed <- err
			end()
		}
	})
	group.Go(func() { r.pull(running) })
	group.Go(func() { r.push(running) })
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return left(running)
	}
}

// left is the error of a run that ended because the user has left the hub, else nil.
func left(running context.Context) error {
	if err := context.Cause(running); fault.HasCode(err, memory.CodeLeft) {
		return err
	}
	return nil
}

// Send is Run without pulling.
func (r *Replicator) Send(ctx context.Context) error {
	running, end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	var verifying sync.WaitGroup
	verifying.Go(func() { r.keepVerified(running) })
	r.push(running)
	verifying.Wait()
	return left(running)
}

// begin prepares a run and its leases; end ends it.
func (r *Replicator) begin(ctx context.Context) (running context.Context, end func(), err error) {
	running, stop := context.WithCancelCause(ctx)
	cancel := func() { stop(nil) }
	r.mu.Lock()
	r.end, r.verified = stop, false
	r.mu.Unlock()
	if r.leases = r.Leases; r.leases != nil {
		return running, func() { cancel(); r.Client.Close() }, nil
	}
	if r.leases, err = NewLeases(r.Store, 0, r.Log); err != nil {
		cancel()
		return nil, nil, err
	}
	var keeping sync.WaitGroup
	keeping.Go(func() { r.leases.Keep(running) })
	return running, sync.OnceFunc(func() {
		cancel()
		keeping.Wait()
		r.leases.Close()
		r.Client.Close()
	}), nil
}

// Drain sends what there is until nothing is left that could be sent, and pulls what
// there is. Where another process sends it waits for that one, as long as it gets on.
// It returns the hub's error as soon as the hub cannot be reached or refuses the
// token, and the store's if it cannot be read; what waits for its time, or stands
// still, is left.
func (r *Replicator) Drain(ctx context.Context) error {
	ctx, end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := r.verify(ctx); err != nil {
		r.handle(ctx, err)
		return firstOf(left(ctx), r.takesNothing(), err)
	}
	if err := r.restore(ctx); err != nil {
		return firstOf(left(ctx), err)
	}
	sent := r.sendAll(ctx)
	if r.isPushStop() { // what other devices wrote still comes
		if log, err := r.Book.Backlog(ctx, r.User); err == nil && log.Pending == 0 {
			sent = nil
		}
		return firstOf(r.pullAll(ctx), sent)
	}
	if sent != nil {
		return firstOf(left(ctx), sent)
	}
	return firstOf(left(ctx), r.pullAll(ctx))
}

// firstOf is the first error that there is.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// isPushStop reports whether the hub answers and nothing can be sent to it.
func (r *Replicator) isPushStop() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == StateRunning && r.stopCode != ""
}

// sendAll sends until nothing is left that could be sent now.
func (r *Replicator) sendAll(ctx context.Context) error {
	for left, patience := -1, 0; ; {
		sent, err := r.round(ctx)
		if err == nil && !sent {
			err = r.takesNothing()
		}
		if err != nil {
			return err
		}
		if sent {
			continue
		}
		due, err := r.Book.ReadyStreams(ctx, r.User, time.Now(), r.Batch)
		if err != nil {
			return err
		}
		if len(due) == 0 {
			return nil
		}
		log, err := r.Book.Backlog(ctx, r.User)
		if err != nil {
			return err
		}
		if patience++; patience > drainPatience {
			return nil
		}
		if log.Pending != left {
			left, patience = log.Pending, 0
		}
		store.Pause(ctx, drainLook, nil)
	}
}

// Drain looks so often, and so many times, whether another process gets on.
const (
	drainLook     = 50 * time.Millisecond
	drainPatience = 100
)

// follow wakes the replicator when something was written, here or elsewhere.
func (r *Replicator) follow(ctx context.Context) error {
	return r.Store.Follow(ctx, store.Follower{Name: memory.PushFollower, Live: true, Poll: pollEvery, Batch: func(_ context.Context, changes []store.Change) ([]store.Refusal, error) {
		for _, c := range changes {
			if c.Kind == KindMemory && c.Op == OpPut {
				r.Subscribed()
				break
			}
		}
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
func (r *Replicator) push(ctx context.Context) {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var underway sync.WaitGroup
	defer func() { // requests get some time to end
		defer time.AfterFunc(stopTime, cancel).Stop()
		underway.Wait()
	}()
	done := make(chan struct{}, requestsAtOnce)
	free := requestsAtOnce
	for {
		batches, err := r.ready(ctx, free)
		if err != nil && ctx.Err() == nil {
			r.Log.Warn("what is to be sent cannot be read; trying again", "error", err)
		}
		for _, p := range batches {
			free--
			underway.Go(func() {
				defer func() { done <- struct{}{} }()
				r.deliver(sending, p)
			})
		}
		timer := time.NewTimer(r.until(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-done:
			free++
		case <-r.wake:
			if free < requestsAtOnce { // more may come to go with the next request
				store.Pause(ctx, gatherTime, nil)
			}
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

// round is one turn of Drain: it sends what is ready, one request at a time, and tells
// whether there was anything.
func (r *Replicator) round(ctx context.Context) (sent bool, err error) {
	batches, err := r.ready(ctx, 1)
	if err != nil || len(batches) == 0 {
		return false, err
	}
	for _, p := range batches {
		r.deliver(ctx, p)
	}
	if state, _ := r.State(); state != StateRunning {
		return true, r.takesNothing()
	}
	return true, ctx.Err()
}

// takesNothing is the error of a hub that takes nothing now, nil if it does.
func (r *Replicator) takesNothing() error {
	switch state, why := r.State(); state {
	case StatePaused:
		return fault.New(fault.Unavailable, CodeUnavailable, "replication is paused").WithHint("cairn replication resume")
	case StateUnreachable:
		return fault.New(fault.Unavailable, CodeUnavailable, "the hub is not accepting changes: "+why).WithHint("cairn replication status shows what waits")
	case StateUnauthorized, StateTooOld, StateRestored, StateReadOnly, StateDiskFull:
		return fault.New(fault.Unavailable, state, "the hub is not accepting changes: "+why).WithHint(memory.StopHint(state))
	}
	return nil
}

// deliver sends the next changes of some streams and settles them.
func (r *Replicator) deliver(ctx context.Context, p parcel) {
	defer func() {
		r.mu.Lock()
		for _, id := range p.streams {
			delete(r.inAir, id)
		}
		r.mu.Unlock()
	}()
	crashpoint.Pass("after_lease")
	limit := r.Batch
	if len(p.streams) == 1 && r.isSingle(p.streams[0]) {
		limit = 1
	}
	batch, err := r.Book.NextBatch(ctx, r.member(), p.leases, p.streams, limit, maxBatchBytes)
	if err != nil {
		r.lost(p.leases, err)
		return
	}
	if len(batch) == 0 {
		return
	}
	device, head, err := r.origin(ctx)
	if err != nil {
		r.lost(p.leases, err)
		return
	}
	ask := PushRequest{DeviceID: device, Head: head, Items: make([]Item, len(batch))}
	for i, o := range batch {
		ask.Items[i] = item(o)
	}
	crashpoint.Pass("before_hub_send")
	answer, err := r.Client.Push(ctx, ask)
	if err != nil {
		err = r.undelivered(ctx, p.leases, batch, err)
	} else {
		r.answered(ctx, causePush)
		err = r.settle(ctx, p.leases, batch, answer.Results)
		if err == nil {
			err = r.continueFrom(ctx, device, answer.DeviceHead)
		}
	}
	if err != nil {
		r.lost(p.leases, err)
	}
}

// item is a change as the wire has it. A memory or vault that the hub knows under
// another id is named so in its own put, too.
func item(o memory.Outgoing) Item {
	out := Item{Stream: o.Stream, Seq: o.Seq, Kind: o.Kind, ID: o.ID, Op: o.Op, Key: o.Key, Doc: o.Doc}
	if o.Remote == "" {
		return out
	}
	out.Stream = o.Remote
	name := map[string]string{KindVault: "vaultId", KindMemory: "memoryId"}[o.Kind]
	var doc map[string]json.RawMessage
	if name == "" || o.Op != OpPut || json.Unmarshal(o.Doc, &doc) != nil {
		return out
	}
	doc[name] = json.RawMessage(`"` + o.Remote + `"`)
	if text, err := json.Marshal(doc); err == nil {
		out.Doc = text
	}
	return out
}

func (r *Replicator) isSingle(stream string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.single[stream]
}

// lost deals with an error of the store: a lease that another process has taken is
// dropped, a membership that has ended ends the run, anything else is tried again a
// second later.
func (r *Replicator) lost(leases []store.Lease, err error) {
	if fault.HasCode(err, store.CodeLeaseLost) {
		r.leases.Forget(leases...)
		return
	}
	if fault.HasCode(err, memory.CodeLeft) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.end != nil {
			r.end(err)
		}
		return
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errHeld) {
		return
	}
	r.Log.Warn("what the hub answered cannot be stored; trying again", "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resume = time.Now().Add(pollEvery)
}
