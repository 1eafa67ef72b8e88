package cairn

import (
	"context"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/replication"
	"cairn/internal/replica"
)

// ReplicationStatus is the state of the replication with one user's hub.
type ReplicationStatus struct {
	UserID  string `json:"userId"`
	HubURL  string `json:"hub"`            // "" without one
	State   string `json:"state"`          // none, paused, running, unreachable, unauthorized, hub_too_old, hub_restored, read_only, disk_full
	Why     string `json:"why,omitempty"`  // the reason for any state except none, paused and running
	Hint    string `json:"hint,omitempty"` // what the user can do about it
	HubUser string `json:"hubUserId,omitempty"`
	replication.Backlog
	Failures []replication.Failed  `json:"failures"` // never nil
	Waiting  []replication.Waiting `json:"waiting"`  // streams that wait after a failed attempt, or have stopped; never nil

	Device DeviceStatus `json:"device"` // the device incarnation under which this store sends

	Conflicts []entries.ContextConflict `json:"conflicts,omitempty"` // contexts that lost a conflict with another device and are not merged
}

// StateNone is the state of a user without a hub.
const StateNone = "none"

// Status returns the state of the replication with the caller's hub. With probe it asks the
// hub, for three seconds at most. Otherwise it uses what this process and the store know.
// It does not create a store.
func (r Replication) Status(ctx context.Context, c memory.Caller, probe bool) (out ReplicationStatus, err error) {
	out = ReplicationStatus{State: StateNone, Failures: []replication.Failed{}, Waiting: []replication.Waiting{}}
	if out.Device, err = r.cairn.Device(ctx); err != nil {
		return out, err
	}
	err = r.cairn.Memories().Read(ctx, c, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		if !b.Exists() {
			return nil
		}
		u, err := b.Whoami(ctx, c)
		if err != nil {
			return err
		}
		out.UserID, out.HubURL, out.HubUser = u.UserID, u.HubURL, u.HubUser
		if out.Backlog, err = b.Backlog(ctx, u.UserID); err != nil || u.HubURL == "" {
			return err
		}
		failures, err := b.Failures(ctx, u.UserID)
		if err != nil {
			return err
		}
		out.Failures = append(out.Failures, failures...)
		if out.Waiting, err = b.Waiting(ctx, u.UserID); err != nil {
			return err
		}
		if out.Conflicts, err = b.Conflicts(ctx, u.UserID); err != nil {
			return err
		}
		return r.state(ctx, b, u, probe, &out)
	})
	return out, err
}

// ReplicationHealth is the public part of the replication's state.
type ReplicationHealth struct {
	State   string `json:"state"` // as in ReplicationStatus; with several users the first that is not running
	Pending int    `json:"pending"`
	Failed  int    `json:"failed"`
}

// Health returns the first hub and a summary of the replication of all users. With probe it
// asks the hubs, for three seconds each at most. It creates neither a store nor a user.
func (r Replication) Health(ctx context.Context, probe bool) (hub string, out ReplicationHealth, err error) {
	out.State = StateNone
	err = r.cairn.Memories().Read(ctx, memory.Caller{}, func(ctx context.Context, b *memories.Service, _ memory.Caller) error {
		if !b.Exists() {
			return nil
		}
		users, err := b.Users(ctx)
		for _, u := range users {
			if err != nil {
				return err
			}
			var one ReplicationStatus
			if one.Backlog, err = b.Backlog(ctx, u.UserID); err != nil {
				return err
			}
			out.Pending, out.Failed = out.Pending+one.Pending, out.Failed+one.Failed
			if u.HubURL == "" {
				continue
			}
			err = r.state(ctx, b, u, probe, &one)
			if hub == "" {
				hub = u.HubURL
			}
			if out.State == StateNone || out.State == replica.StateRunning {
				out.State = one.State
			}
		}
		return err
	})
	return hub, out, err
}

// state determines whether a user's hub accepts changes.
func (r Replication) state(ctx context.Context, b *memories.Service, u memory.User, probe bool, out *ReplicationStatus) error {
	paused, err := b.Paused(ctx)
	if err != nil {
		return err
	}
	if out.State = replica.StateRunning; paused {
		out.State = replica.StatePaused
		return nil
	}
	asked := true // the hub was asked, just now or by a running replicator
	if one := r.Running()[u.UserID]; one != nil {
		out.State, out.Why = one.State()
	} else if client, err := r.client(u); err != nil {
		out.State, out.Why = replica.StateUnauthorized, fault.As(err).Message
	} else if asked = probe; probe {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		out.State, out.Why = replica.New(replica.Config{Book: b, User: u.UserID, Generation: u.Generation, Client: client}).Probe(ctx)
		client.Close()
	}
	if s := u.Stop; stopPersists(s.Code, out.State, asked) {
		out.State, out.Why = s.Code, s.Why
	}
	if out.State != replica.StateRunning && out.State != replica.StateUnreachable {
		out.Hint = replication.StopHint(out.State)
	}
	return nil
}

// stopPersists reports whether a stop in the store still applies, given the determined
// state. A request to the hub does not show whether the hub can store data. If the hub was
// not reached, the request shows nothing.
func stopPersists(stop, state string, asked bool) bool {
	switch {
	case stop == "" || state != replica.StateRunning && state != replica.StateUnreachable:
		return false
	case stop == replication.StopDiskFull || !asked:
		return true
	}
	return state == replica.StateUnreachable && stop == replication.StopRestored
}
