package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/replica"
	"cairn/internal/store"
)

// replication checks the exchange with the hubs of this device's users. It asks each hub
// for at most three seconds.
func (d *doctorRun) replication(ctx context.Context, s *store.Store) {
	if d.older {
		return // an older schema has no memories
	}
	b := memories.New(s, memory.Config{})
	users, err := b.Users(ctx)
	if err != nil {
		d.unknown("replication", err)
		return
	}
	joined := false
	for _, u := range users {
		if u.HubURL == "" {
			continue
		}
		joined = true
		d.args.Progress("asking " + u.HubURL)
		if err := d.replicationOf(ctx, b, u); err != nil {
			d.unknown("replication", err)
		}
	}
	if !joined {
		d.add("replication", OK, "no hub was joined: memories are committed here", "", "")
	}
	d.unlinked(ctx, b)
}

// unlinked reports the memories that repositories with the same name shared.
func (d *doctorRun) unlinked(ctx context.Context, b *memories.Service) {
	list, err := b.Unlinked(ctx)
	if err != nil {
		d.unknown("memories", err)
	}
	for _, u := range list {
		d.add("memories", OK, fmt.Sprintf("memory %s (vault %s) was shared by name; project %s now has its own default memory, %d entries stay there",
			u.MemoryID, u.Vault, u.Project, u.Entries), "", "")
	}
}

func (d *doctorRun) replicationOf(ctx context.Context, b *memories.Service, u memory.User) error {
	backlog, err := b.Backlog(ctx, u.UserID)
	if err != nil {
		return err
	}
	failures, err := b.Failures(ctx, u.UserID)
	if err != nil {
		return err
	}
	now, err := d.subject.Hub(ctx, b, u)
	if err != nil {
		return err
	}
	conflicts, err := b.Conflicts(ctx, u.UserID)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s: %s, %d pending", u.HubURL, now.State, backlog.Pending)
	if now.Why != "" {
		what += "; " + now.Why
	}
	switch {
	case backlog.Failed > 0:
		f := failures[0]
		what += fmt.Sprintf("; %d refused permanently, the first %s: %d %s", backlog.Failed, f.LocalID, f.Status, f.Code)
		d.add("replication", Problem, what, "other devices never get refused changes", "see `cairn replication status`, then run `cairn replication retry` or `discard`")
	case d.replicationStopped(u, now, backlog.Pending, what):
	case backlog.Pending > 0 && d.subject.Clock().Sub(time.Unix(0, int64(backlog.OldestPending))) > maxLag:
		what += ", the oldest since " + backlog.OldestPending.String()
		d.add("replication", Problem, what, "other devices lack data of this store", "keep `cairn serve` running, or run `cairn replication drain`")
	case now.State == replica.StatePaused:
		d.add("replication", Warning, what, "no data is exchanged with other devices", "run `cairn replication resume`")
	case now.State != replica.StateRunning && now.State != replica.StateReadOnly:
		d.add("replication", Warning, what, "until the hub responds, memories stay on this device", "make sure that the hub runs and can be reached")
	case len(conflicts) > 0:
		what += fmt.Sprintf("; %d contexts lost a conflict with another device, the first of memory %s", len(conflicts), conflicts[0].MemoryID)
		d.add("replication", Warning, what, "the current context lacks the content of these versions",
			"read them with `cairn memory get-context --memory "+conflicts[0].MemoryID+" --history`, then write the merged context with `cairn memory update-context`")
	default:
		d.add("replication", OK, what, "", "")
	}
	return nil
}

// replicationStopped reports a state in which the user must act, and returns true for such
// a state. A read-only token is a problem only if changes wait.
func (d *doctorRun) replicationStopped(u memory.User, now Hub, pending int, what string) bool {
	const nothing = "no data is exchanged with other devices"
	switch now.State {
	case replica.StateUnauthorized:
		d.add("replication", Problem, what, nothing, "create a token with `cairn hub token create` at the hub and run `cairn hub join "+strings.TrimSpace(u.HubURL)+"`")
	case replica.StateRestored:
		d.add("replication", Problem, what, "the hub has lost changes; "+nothing, now.Hint)
	case replica.StateTooOld:
		d.add("replication", Problem, what, nothing, now.Hint)
	case replica.StateDiskFull, replica.StateReadOnly:
		if now.State == replica.StateReadOnly && pending == 0 {
			return false
		}
		d.add("replication", Problem, what, "nothing is sent to other devices; their changes still arrive", now.Hint)
	default:
		return false
	}
	return true
}

// device reports a new device incarnation of the store.
func (d *doctorRun) device(ctx context.Context, s *store.Store) {
	note, err := d.subject.Device(ctx, s)
	switch {
	case err != nil:
		d.unknown("device", err)
	case note != "":
		d.add("device", OK, note, "", "")
	}
}
