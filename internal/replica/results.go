package replica

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/replication"
	"cairn/internal/store/follow"
)

// counter is a number that never falls.
type counter struct{ atomic.Int64 }

// Metrics counts the work of a replicator (memories §14). It is safe for concurrent use.
type Metrics struct {
	Sent, Refused, Retried, Failed counter // items: 2xx, refused permanently, to be sent again; requests without a usable response
	Batches                        counter // requests
	Pulled                         counter // items applied
	CurrentAt                      counter // Unix nanoseconds of the last pull that left nothing, 0 for none
}

// retryable reports whether a status is temporary.
func retryable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// settle stores the hub's results: the accepted changes in one transaction, then each
// refused one.
func (r *Replicator) settle(ctx context.Context, leases []follow.Lease, batch []replication.Outgoing, results []Result) error {
	r.meter.Batches.Add(1)
	for i, o := range batch { // results of a restored hub do not count: it receives all changes again
		if older, err := r.isOlder(ctx, o, results[i]); older || err != nil {
			return err
		}
	}
	var taken []replication.Outcome
	for i, o := range batch {
		if res := results[i]; res.Status >= 200 && res.Status < 300 {
			taken = append(taken, outcome(o, res))
		}
	}
	if len(taken) > 0 {
		crashpoint.Pass("after_hub_201")
		if err := r.Book.Confirm(ctx, r.member(), leases, taken); err != nil {
			return err
		}
		if err := r.pushesAccepted(ctx); err != nil {
			return err
		}
		r.meter.Sent.Add(int64(len(taken)))
		r.clearSingle(taken)
	}
	for i, o := range batch {
		if err := r.refused(ctx, leases, o, results[i]); err != nil {
			return err
		}
	}
	return nil
}

func outcome(o replication.Outgoing, res Result) replication.Outcome {
	out := replication.Outcome{Stream: o.Stream, Seq: o.Seq, Status: res.Status, EntryID: res.EntryID, HubSeq: res.HubSeq}
	out.CreationTime, _ = time.Parse(time.RFC3339Nano, res.CreationTime) // other kinds have none
	if res.Error != nil {
		out.Code, out.Message = res.Error.Code, res.Error.Message
	}
	return out
}

// refused stores the result of a change that the hub has not accepted.
func (r *Replicator) refused(ctx context.Context, leases []follow.Lease, o replication.Outgoing, res Result) error {
	switch {
	case res.Status >= 200 && res.Status < 300, res.Status == http.StatusFailedDependency:
		return nil
	case res.Status == http.StatusInsufficientStorage:
		r.meter.Retried.Add(1)
		r.stopPushes(ctx, StateDiskFull, "the hub cannot store anything: "+reason(res), fullEvery)
		return nil
	case retryable(res.Status):
		r.meter.Retried.Add(1)
		return r.Book.Delay(ctx, r.member(), leases, []string{o.Stream}, 0, reason(res))
	}
	if existing := existingID(o, res); existing != "" {
		return r.Book.SetRemote(ctx, r.member(), leases, o.Stream, o.Seq, existing)
	}
	r.meter.Refused.Add(1)
	out := outcome(o, res)
	if out.Code == "" {
		out.Code, out.Message = "refused", http.StatusText(res.Status)
	}
	level := r.Log.Warn
	if out.Code == memory.CodeMismatch {
		level = r.Log.Error // the key was used for another operation: a defect
	}
	level("the hub has refused a change permanently", "kind", o.Kind, "op", o.Op, "seq", o.Seq, "status", out.Status, "code", out.Code)
	return r.Book.Fail(ctx, r.member(), leases, out, r.Halt)
}

// existingID returns the hub's id of a vault or memory with the same title, "" for any other
// refusal.
func existingID(o replication.Outgoing, res Result) string {
	if res.Status != http.StatusConflict || o.Op != OpPut || o.Kind != KindVault && o.Kind != KindMemory || res.Error == nil {
		return ""
	}
	id, _ := res.Error.Details["existing_id"].(string)
	return id
}

func reason(res Result) string {
	if res.Error == nil {
		return http.StatusText(res.Status)
	}
	return res.Error.Code + ": " + res.Error.Message
}

// clearSingle lets streams be sent in batches again.
func (r *Replicator) clearSingle(taken []replication.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range taken {
		delete(r.single, o.Stream)
	}
}

// pushFailed handles a push that failed as a whole.
func (r *Replicator) pushFailed(ctx context.Context, leases []follow.Lease, batch []replication.Outgoing, err error) error {
	if ctx.Err() != nil {
		return nil // the replicator stops
	}
	r.meter.Failed.Add(1)
	if r.hubFailed(ctx, err, causePush) {
		return nil
	}
	no, _ := errors.AsType[*Refused](err)
	if retryable(no.Status) {
		return r.Book.Delay(ctx, r.member(), leases, streamsOf(batch), no.RetryAfter, err.Error())
	}
	if len(batch) > 1 {
		return r.sendSingly(batch, err)
	}
	return r.refused(ctx, leases, batch[0], Result{Status: no.Status, Error: &no.Reason})
}

// hubFailed handles an error of the hub or the token, as opposed to one of the changes sent:
// it stops requests for a while. It reports whether err is such an error.
func (r *Replicator) hubFailed(ctx context.Context, err error, by cause) bool {
	no, ok := errors.AsType[*Refused](err)
	switch {
	case !ok:
		r.unreachable(ctx, err, causeSilent, 0)
	case no.Status == http.StatusForbidden && by == causePush:
		r.stopPushes(ctx, StateReadOnly, "the token of this device does not permit writing: "+no.Reason.Message, askEvery)
	case no.Status == http.StatusInsufficientStorage && by == causePush:
		r.stopPushes(ctx, StateDiskFull, "the hub cannot store anything: "+no.Reason.Message, fullEvery)
	case no.Status == http.StatusUnauthorized || no.Status == http.StatusForbidden:
		r.hold(ctx, StateUnauthorized, no.Reason.Message, by, askEvery)
	case no.Reason.Code == CodeTooOld || no.Status == http.StatusNotFound || no.Status == http.StatusMethodNotAllowed:
		r.hold(ctx, StateTooOld, no.Reason.Message, by, askEvery)
	case no.Reason.Code == CodeUnavailable && no.Status != http.StatusRequestEntityTooLarge: // its database is unavailable, or the server is not a hub
		r.unreachable(ctx, err, by, no.RetryAfter)
	default:
		return false
	}
	return true
}

// sendSingly has the changes of a refused batch sent one by one, to find the one that the
// hub refuses.
func (r *Replicator) sendSingly(batch []replication.Outgoing, err error) error {
	r.mu.Lock()
	for _, id := range streamsOf(batch) {
		r.single[id] = true
	}
	r.mu.Unlock()
	r.Log.Warn("the hub has refused a batch as a whole; its changes are sent one by one", "error", err)
	return nil
}

// streamsOf lists the streams of a batch, each once.
func streamsOf(batch []replication.Outgoing) (out []string) {
	for _, o := range batch {
		if !slices.Contains(out, o.Stream) {
			out = append(out, o.Stream)
		}
	}
	return out
}

// unreachable notes that the hub does not answer. The next try is soon at first, later every
// five seconds, or after wait if that is longer.
func (r *Replicator) unreachable(ctx context.Context, err error, by cause, wait time.Duration) {
	r.mu.Lock()
	r.silent++
	wait = max(wait, probeBackoff.Delay(r.silent))
	r.mu.Unlock()
	why := err.Error()
	if f, ok := errors.AsType[*fault.Error](err); ok {
		why = f.Message
	}
	r.hold(ctx, StateUnreachable, why, by, wait)
}

// hold stops all requests of the credential for a while. The hub is verified again before
// anything is sent. States in which a person must act are stored.
func (r *Replicator) hold(ctx context.Context, state, why string, by cause, wait time.Duration) {
	r.mu.Lock()
	if r.state != state {
		r.Log.Warn("nothing can be sent to the hub", "state", state, "why", why)
	}
	r.state, r.why, r.cause, r.resume = state, why, by, time.Now().Add(wait)
	r.verified = false
	r.mu.Unlock()
	r.Subscribed() // ends a waiting pull, which would delay the verification
	if state != StateUnreachable {
		r.storeStop(ctx, state, why)
	}
}

// hubAnswered notes that the hub answers, and makes the streams due that waited for it. A
// successful pull does not end a state that a refused push has caused.
func (r *Replicator) hubAnswered(ctx context.Context, by cause) {
	r.mu.Lock()
	if !r.verified || by == causePull && r.cause == causePush && r.resume.After(time.Now()) {
		r.mu.Unlock()
		return
	}
	was := r.state
	if by == causePush || r.cause != causePush {
		r.silent = 0
	}
	r.state, r.why, r.cause, r.resume = StateRunning, "", causeNone, time.Time{}
	r.mu.Unlock()
	if was == StateRunning || was == StatePaused {
		return
	}
	r.Log.Info("the hub answers again")
	if err := r.Book.ClearDelays(ctx, r.member()); err != nil {
		r.storeFailed(nil, err)
	}
	r.nudge()
}

// Renewed ends the wait for a valid token. It is called after the client has received one.
func (r *Replicator) Renewed(ctx context.Context) {
	if err := r.Book.ClearStop(ctx, r.member(), StateUnauthorized, StateReadOnly); err != nil {
		r.storeFailed(nil, err)
	}
	r.mu.Lock()
	if r.state == StateUnauthorized {
		r.resume = time.Time{}
	}
	r.verified, r.stopUntil = false, time.Time{}
	r.mu.Unlock()
	r.Subscribed()
	r.nudge()
}
