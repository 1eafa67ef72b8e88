package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"cairn/internal/backoff"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/replication"
)

// Further states in which a person must act. They are stored (memory.Stop), so that each
// process of the device shows them.
const (
	StateRestored = replication.StopRestored // the hub's database is older than what it has confirmed: nothing is sent or pulled
	StateReadOnly = replication.StopReadOnly // the token permits reading only: nothing is sent
	StateDiskFull = replication.StopDiskFull // the hub cannot store anything: sending is tried from time to time
)

// fullEvery is how often sending is tried at a hub whose disk is full.
const fullEvery = probeEvery

// errHeld is the error of a request that was not made, or whose result was dropped, because
// replication has stopped. State returns the reason.
var errHeld = errors.New("replication has stopped")

// verify checks the hub before anything is sent to it, also after each failure: its epoch,
// the level of the token, and whether it still has all changes that this device has seen.
// That reveals a hub that was restored from an older backup. Errors: those of the hub and
// the store, errHeld.
func (r *Replicator) verify(ctx context.Context) error {
	if r.isVerified() {
		return nil
	}
	device, _, err := r.origin(ctx)
	if err != nil {
		return err
	}
	who, err := r.Client.Whoami(ctx, device)
	if err != nil {
		return err
	}
	if err := r.noteEpoch(ctx, who.HubEpoch); err != nil {
		return err
	}
	if err := r.permit(ctx, who); err != nil {
		return err
	}
	if why, err := r.findOlderHead(ctx); err != nil {
		return err
	} else if why != "" {
		return r.hubRestored(ctx, why)
	}
	if err := r.continueFrom(ctx, device, who.DeviceHead); err != nil {
		return err
	}
	if err := r.Book.ClearStop(ctx, r.member(), StateRestored, StateUnauthorized, StateTooOld); err != nil {
		return err
	}
	r.mu.Lock()
	r.verified = true
	if r.state == StateRestored {
		r.state, r.why, r.cause, r.resume = StateRunning, "", causeNone, time.Time{}
	}
	r.mu.Unlock()
	r.hubAnswered(ctx, causePull)
	r.nudge()
	return nil
}

// findOlderHead asks the hub for the heads of all streams. If one is below a number that
// this device has seen, it returns a sentence that names the stream; else "".
func (r *Replicator) findOlderHead(ctx context.Context) (why string, err error) {
	all, _, err := r.cursorsOf(ctx, func(s replication.Stream) int64 { return s.Seen })
	for first := 0; err == nil && first < len(all); first += MaxCursors {
		page := all[first:min(first+MaxCursors, len(all))]
		answer, err := r.Client.Pull(ctx, PullRequest{Cursors: page, Limit: 1})
		if err != nil || len(answer.Behind) > 0 {
			return olderWhy(page, answer.Behind), err
		}
	}
	return "", err
}

// olderWhy returns the sentence about a hub that reports cursors beyond its heads; "" if it
// reports none.
func olderWhy(asked, behind []Cursor) string {
	if len(behind) == 0 {
		return ""
	}
	seen := int64(0)
	for _, c := range asked {
		if c.Stream == behind[0].Stream {
			seen = c.After
		}
	}
	return fmt.Sprintf("the hub's database is older than what the hub has confirmed: its newest change of memory %s is %d, this device has seen %d",
		behind[0].Stream, behind[0].After, seen)
}

// Probe asks the hub for its state and that of the token. It stores nothing. state is one of
// the states of a Replicator, why the reason for any but running.
func (r *Replicator) Probe(ctx context.Context) (state, why string) {
	who, err := r.Client.Whoami(ctx, "")
	no, refused := errors.AsType[*Refused](err)
	switch {
	case refused && no.Status == http.StatusUnauthorized:
		return StateUnauthorized, no.Reason.Message
	case refused && no.Reason.Code == CodeTooOld:
		return StateTooOld, no.Reason.Message
	case err != nil:
		return StateUnreachable, err.Error()
	}
	known, err := r.Book.Epoch(ctx, r.User)
	if err == nil && known == who.HubEpoch {
		if why, err = r.findOlderHead(ctx); why != "" {
			return StateRestored, why
		}
	}
	switch {
	case err != nil:
		return StateUnreachable, err.Error()
	case who.Level == "read":
		return StateReadOnly, whyReadOnly
	}
	return StateRunning, ""
}

const whyReadOnly = "the token of this device permits reading only"

func (r *Replicator) isVerified() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verified
}

// keepVerified verifies the hub whenever that is due, for a replicator that does not pull.
func (r *Replicator) keepVerified(ctx context.Context) {
	for ctx.Err() == nil {
		if !r.isVerified() && !r.waits(ctx) && r.mayPull() {
			r.handle(ctx, r.verify(ctx))
		}
		backoff.Pause(ctx, pollEvery/4, nil)
	}
}

// permit stops pushes if the token permits reading only.
func (r *Replicator) permit(ctx context.Context, who Whoami) error {
	if who.Level == "read" {
		r.stopPushes(ctx, StateReadOnly, whyReadOnly, 24*time.Hour)
		return nil
	}
	r.mu.Lock()
	if r.stopCode == StateReadOnly {
		r.stopCode, r.stopWhy, r.stopUntil = "", "", time.Time{}
	}
	r.mu.Unlock()
	return r.Book.ClearStop(ctx, r.member(), StateReadOnly)
}

// stopPushes stops sending for a while, but not pulling.
func (r *Replicator) stopPushes(ctx context.Context, code, why string, wait time.Duration) {
	r.mu.Lock()
	if r.stopCode != code {
		r.Log.Warn("the hub accepts no changes", "state", code, "why", why)
	}
	r.stopCode, r.stopWhy, r.stopUntil = code, why, time.Now().Add(wait)
	r.mu.Unlock()
	r.storeStop(ctx, code, why)
}

// pushesAccepted ends the stop of stopPushes after the hub has stored a change.
func (r *Replicator) pushesAccepted(ctx context.Context) error {
	r.mu.Lock()
	r.stopCode, r.stopWhy, r.stopUntil = "", "", time.Time{}
	r.mu.Unlock()
	return r.Book.ClearStop(ctx, r.member(), StateDiskFull, StateReadOnly)
}

// storeStop stores a stop.
func (r *Replicator) storeStop(ctx context.Context, code, why string) {
	if err := r.Book.SetStop(ctx, r.member(), code, why); err != nil {
		r.storeFailed(nil, err)
	}
}

// compareHeads stops replication if the hub has less of a stream than this device has
// seen of it.
func (r *Replicator) compareHeads(ctx context.Context, asked, behind []Cursor) error {
	if len(behind) == 0 {
		return nil
	}
	return r.hubRestored(ctx, olderWhy(asked, behind))
}

// hubRestored stops replication because the hub's database is an older one.
func (r *Replicator) hubRestored(ctx context.Context, why string) error {
	r.hold(ctx, StateRestored, why, causePull, probeEvery)
	return errHeld
}

// isOlder reports whether a result shows that the hub was restored: it gave a new change a
// number that this device had seen before, or no longer knows the stream. Then it stops
// replication.
func (r *Replicator) isOlder(ctx context.Context, o replication.Outgoing, res Result) (bool, error) {
	stream := o.Stream
	if o.Remote != "" {
		stream = o.Remote
	}
	switch {
	case o.Seen == 0:
		return false, nil
	case res.Status == http.StatusCreated && res.HubSeq > 0 && res.HubSeq <= o.Seen:
		return true, r.hubRestored(ctx, olderWhy([]Cursor{{stream, o.Seen}}, []Cursor{{stream, res.HubSeq - 1}}))
	case res.Status != http.StatusNotFound:
		return false, nil
	}
	asked := []Cursor{{Stream: stream, After: o.Seen}}
	answer, err := r.Client.Pull(ctx, PullRequest{Cursors: asked, Limit: 1})
	if err != nil {
		return true, err
	}
	err = r.compareHeads(ctx, asked, answer.Behind)
	return err != nil, err
}

// handle handles the error of a request other than a push.
func (r *Replicator) handle(ctx context.Context, err error) {
	no, refused := errors.AsType[*Refused](err)
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, errHeld):
	case !refused && !fault.HasCode(err, CodeUnavailable):
		r.storeFailed(nil, err)
	case !r.hubFailed(ctx, err, causePull):
		r.unreachable(ctx, err, causePull, no.RetryAfter)
	}
}

// member returns the membership for which this replicator acts.
func (r *Replicator) member() memory.Membership {
	return memory.Membership{User: r.User, Generation: r.Generation}
}
