package replica

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/backoff"
	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/replication"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// Limits and intervals of memories §10.3 and §10.4.
const (
	requestsAtOnce = 4               // concurrent pushes of one credential
	maxBatchBytes  = 1 << 20         // size of the documents of a push
	probeEvery     = 5 * time.Second // for an unreachable hub
	askEvery       = time.Minute     // for a hub that refuses the token
	stopTime       = 10 * time.Second
	pollEvery      = time.Second // for changes of other processes
	gatherTime     = 5 * time.Millisecond
)

// probeBackoff is how long requests wait for a hub that cannot be reached: with its jitter
// five seconds at most.
var probeBackoff = backoff.Policy{First: 100 * time.Millisecond, Max: probeEvery * 2 / 3, Jitter: .5}

// The states of a replicator.
const (
	StateRunning      = "running"
	StatePaused       = "paused"       // by hand
	StateUnreachable  = "unreachable"  // there is no answer, or it is not a hub's
	StateUnauthorized = "unauthorized" // the hub refuses the token
	StateTooOld       = CodeTooOld     // the hub does not know a request
)

// Config configures a Replicator.
type Config struct {
	Store  *store.Store
	Book   *memories.Service // over the store
	User   string            // the local user, who has joined the hub
	Client *Client           // with the user's token

	Generation int64 // of the user's membership; when that has ended, nothing is sent or stored

	Leases *follow.Leases // of this process, see NewLeases; nil for leases of the run's own
	Batch  int            // changes of a push, at most MaxPushItems; 0 for 500
	Halt   bool           // a refused change halts its stream (hub.on_permanent = halt)
	Log    *slog.Logger   // receives no text of entries; nil discards it
}

// Replicator sends one user's changes to the hub and fetches those of other devices. Any
// number of processes may run one on a store, because lanes are leased. After a crash it
// sends unconfirmed changes again, under the same keys.
type Replicator struct {
	Config
	leases *follow.Leases // while it runs
	wake   chan struct{}  // signals that there may be changes to send
	asked  chan struct{}  // signals a new subscription
	meter  Metrics

	mu      sync.Mutex
	sending map[string]bool // streams of pushes that are not answered yet
	single  map[string]bool // streams whose changes are sent one at a time, because a batch was refused as a whole
	state   string
	why     string
	silent  int       // attempts in a row to reach the hub that failed
	cause   cause     // of the state
	resume  time.Time // the earliest time of the next request

	epoch     int64 // the last one that the hub reported
	restoring bool  // there may be streams to restore
	verified  bool  // see verify; nothing is sent before
	catalog   int64 // version of the hub's catalogue that was read last, 0 if the hub has no versions
	stale     bool  // there is a newer version

	stopCode, stopWhy string    // why nothing is sent although the hub answers; "" while changes are sent
	stopUntil         time.Time // when sending is tried again

	end context.CancelCauseFunc // of the run
}

// cause is the kind of request that led to a state in which nothing is sent.
type cause int

const (
	causeNone   cause = iota
	causeSilent       // there was no answer
	causePush         // a push was refused
	causePull         // a pull was refused
)

// New returns a replicator, which does nothing before Run, Send, Drain or PullStream.
func New(c Config) *Replicator {
	if c.Batch <= 0 || c.Batch > MaxPushItems {
		c.Batch = 500
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Replicator{
		Config: c, wake: make(chan struct{}, 1), asked: make(chan struct{}, 1), sending: map[string]bool{}, single: map[string]bool{}, state: StateRunning,
	}
}

// State returns the state of the replication, and the reason for any but running.
func (r *Replicator) State() (state, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == StateRunning && r.stopCode != "" {
		return r.stopCode, r.stopWhy
	}
	return r.state, r.why
}

// Meter returns the counters of this replicator.
func (r *Replicator) Meter() *Metrics { return &r.meter }

// Run replicates until ctx ends. Pending requests then have 10 s to finish, and Run returns
// nil. Errors: memory.CodeLeft when the membership has ended, and those of the store when
// it fails permanently.
func (r *Replicator) Run(ctx context.Context) error {
	running, end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	var pulling sync.WaitGroup
	pulling.Go(func() { r.pull(running) })
	err = r.push(running)
	pulling.Wait()
	return firstOf(err, leftError(running))
}

// leftError returns the error of a run that ended because the user has left the hub, else
// nil.
func leftError(running context.Context) error {
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
	err = r.push(running)
	verifying.Wait()
	return firstOf(err, leftError(running))
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

// Drain sends all changes that can be sent now and pulls all new ones. If another process
// sends, Drain waits as long as that process makes progress. Changes of streams that wait
// after a failure, or that are halted, remain. Errors: those of the hub as soon as it cannot
// be reached or refuses the token, and those of reading the store.
func (r *Replicator) Drain(ctx context.Context) error {
	ctx, end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := r.verify(ctx); err != nil {
		r.handle(ctx, err)
		return firstOf(leftError(ctx), r.notAcceptingError(), err)
	}
	if err := r.restore(ctx); err != nil {
		return firstOf(leftError(ctx), err)
	}
	sent := r.sendAll(ctx)
	if r.isPushStop() { // changes of other devices still arrive
		if log, err := r.Book.Backlog(ctx, r.User); err == nil && log.Pending == 0 {
			sent = nil
		}
		return firstOf(r.pullAll(ctx), sent)
	}
	if sent != nil {
		return firstOf(leftError(ctx), sent)
	}
	return firstOf(leftError(ctx), r.pullAll(ctx))
}

// firstOf returns the first error that is not nil.
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
			err = r.notAcceptingError()
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
		backoff.Pause(ctx, drainLook, nil)
	}
}

// How often, and how many times in a row, Drain checks the progress of another process.
const (
	drainLook     = 50 * time.Millisecond
	drainPatience = 100
)

// nudge wakes the follower that sends.
func (r *Replicator) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// push sends the streams that are ready, with up to four concurrent requests. It is a live
// follower, so every write wakes it, of this process or another.
func (r *Replicator) push(ctx context.Context) error {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var underway sync.WaitGroup
	defer func() { // pending requests have some time to finish
		defer time.AfterFunc(stopTime, cancel).Stop()
		underway.Wait()
	}()
	var busy atomic.Int64
	wrote := false
	return follow.Run(ctx, r.Store, follow.Follower{
		Name: memory.PushFollower, Live: true, Poll: pollEvery, Wake: r.wake,
		Batch: func(_ context.Context, changes []store.Change) ([]follow.Refusal, error) {
			wrote = true
			if slices.ContainsFunc(changes, func(c store.Change) bool { return c.Kind == KindMemory && c.Op == OpPut }) {
				r.Subscribed()
			}
			return nil, nil
		},
		Idle: func(ctx context.Context) (time.Duration, error) {
			if wrote && busy.Load() > 0 { // more changes may join the next request
				backoff.Pause(ctx, gatherTime, nil)
			}
			wrote = false
			batches, err := r.ready(ctx, requestsAtOnce-int(busy.Load()))
			for _, p := range batches {
				busy.Add(1)
				underway.Go(func() {
					r.deliver(sending, p)
					busy.Add(-1)
					r.nudge()
				})
			}
			return r.nextWait(ctx), err
		},
	})
}

// round is one turn of Drain: it sends the streams that are ready, one request at a time,
// and reports whether there were any.
func (r *Replicator) round(ctx context.Context) (sent bool, err error) {
	batches, err := r.ready(ctx, 1)
	if err != nil || len(batches) == 0 {
		return false, err
	}
	for _, p := range batches {
		r.deliver(ctx, p)
	}
	if state, _ := r.State(); state != StateRunning {
		return true, r.notAcceptingError()
	}
	return true, ctx.Err()
}

// notAcceptingError returns an error if replication is paused or the hub does not accept
// changes, else nil.
func (r *Replicator) notAcceptingError() error {
	switch state, why := r.State(); state {
	case StatePaused:
		return fault.New(fault.Unavailable, CodeUnavailable, "replication is paused").WithHint("cairn replication resume")
	case StateUnreachable:
		return fault.New(fault.Unavailable, CodeUnavailable, "the hub is not accepting changes: "+why).WithHint("`cairn replication status` shows the changes that wait")
	case StateUnauthorized, StateTooOld, StateRestored, StateReadOnly, StateDiskFull:
		return fault.New(fault.Unavailable, state, "the hub is not accepting changes: "+why).WithHint(replication.StopHint(state))
	}
	return nil
}

// deliver sends the next changes of some streams and stores the results.
func (r *Replicator) deliver(ctx context.Context, p sendBatch) {
	defer func() {
		r.mu.Lock()
		for _, id := range p.streams {
			delete(r.sending, id)
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
		r.storeFailed(p.leases, err)
		return
	}
	if len(batch) == 0 {
		return
	}
	device, head, err := r.origin(ctx)
	if err != nil {
		r.storeFailed(p.leases, err)
		return
	}
	ask := PushRequest{DeviceID: device, Head: head, Items: make([]Item, len(batch))}
	for i, o := range batch {
		ask.Items[i] = item(o)
	}
	crashpoint.Pass("before_hub_send")
	answer, err := r.Client.Push(ctx, ask)
	if err != nil {
		err = r.pushFailed(ctx, p.leases, batch, err)
	} else {
		r.hubAnswered(ctx, causePush)
		err = r.settle(ctx, p.leases, batch, answer.Results)
		if err == nil {
			err = r.continueFrom(ctx, device, answer.DeviceHead)
		}
	}
	if err != nil {
		r.storeFailed(p.leases, err)
	}
}

// item returns a change in its wire form. If the hub knows the memory or vault under another
// id, the document of its put has that id, too.
func item(o replication.Outgoing) Item {
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

// storeFailed handles an error of the store. It drops leases that another process has
// taken, and ends the run if the membership has ended. After any other error sending pauses
// for a second.
func (r *Replicator) storeFailed(leases []follow.Lease, err error) {
	if fault.HasCode(err, follow.CodeLeaseLost) {
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
	r.Log.Warn("the hub's response cannot be stored; trying again", "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resume = time.Now().Add(pollEvery)
}
