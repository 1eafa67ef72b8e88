package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cairn/internal/memory"
	"cairn/internal/replica"
	"cairn/internal/store"
)

// replication looks at how memories get to the hubs of this device's users, which are
// asked for at most three seconds each.
func (d *diagnosing) replication(ctx context.Context, s *store.Store) {
	if d.older {
		return // memories were not known
	}
	b := memory.New(s, memory.Config{})
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

// unlinked reports the memories that repositories of one name shared.
func (d *diagnosing) unlinked(ctx context.Context, b *memory.Service) {
	list, err := b.Unlinked(ctx)
	if err != nil {
		d.unknown("memories", err)
	}
	for _, u := range list {
		d.add("memories", OK, fmt.Sprintf("memory %s (vault %s) was shared by name; project %s has its own default memory now, %d entries stay there",
			u.MemoryID, u.Vault, u.Project, u.Entries), "", "")
	}
}

func (d *diagnosing) replicationOf(ctx context.Context, b *memory.Service, u memory.User) error {
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
		what += fmt.Sprintf("; %d refused for good, the first %s: %d %s", backlog.Failed, f.LocalID, f.Status, f.Code)
		d.add("replication", Problem, what, "other devices never get what was refused", "look at `cairn replication status`, then run `cairn replication retry` or `discard`")
	case d.replicationStopped(u, now, backlog.Pending, what):
	case backlog.Pending > 0 && d.subject.Clock().Sub(time.Unix(0, int64(backlog.OldestPending))) > stalled:
		what += ", the oldest since " + backlog.OldestPending.String()
		d.add("replication", Problem, what, "other devices do not have what this store has", "keep `cairn serve` running, or run `cairn replication drain`")
	case now.State == replica.StatePaused:
		d.add("replication", Warning, what, "nothing is sent to other devices or comes from them", "run `cairn replication resume`")
	case now.State != replica.StateRunning && now.State != replica.StateReadOnly:
		d.add("replication", Warning, what, "until the hub answers, memories stay on this device", "see that the hub runs and can be reached")
	case len(conflicts) > 0:
		what += fmt.Sprintf("; %d contexts lost against another device's, the first of memory %s", len(conflicts), conflicts[0].MemoryID)
		d.add("replication", Warning, what, "the current context lacks what the lost versions say",
			"read them with `cairn memory get-context --memory "+conflicts[0].MemoryID+" --history`, then write the merged context with `cairn memory update-context`")
	default:
		d.add("replication", OK, what, "", "")
	}
	return nil
}

// replicationStopped adds the finding of a state in which a person must act, and reports
// whether it is one. A token that permits reading only is a problem if something waits.
func (d *diagnosing) replicationStopped(u memory.User, now Hub, pending int, what string) bool {
	const nothing = "nothing is sent to other devices or comes from them"
	switch now.State {
	case replica.StateUnauthorized:
		d.add("replication", Problem, what, nothing, "make a token with `cairn hub token create` at the hub and run `cairn hub join "+strings.TrimSpace(u.HubURL)+"`")
	case replica.StateRestored:
		d.add("replication", Problem, what, "the hub has lost changes; "+nothing, now.Hint)
	case replica.StateTooOld:
		d.add("replication", Problem, what, nothing, now.Hint)
	case replica.StateDiskFull, replica.StateReadOnly:
		if now.State == replica.StateReadOnly && pending == 0 {
			return false
		}
		d.add("replication", Problem, what, "nothing is sent to other devices; what they write still arrives", now.Hint)
	default:
		return false
	}
	return true
}

// device says under which name the store sends, if that is worth a word.
func (d *diagnosing) device(ctx context.Context, s *store.Store) {
	note, err := d.subject.Device(ctx, s)
	switch {
	case err != nil:
		d.unknown("device", err)
	case note != "":
		d.add("device", OK, note, "", "")
	}
}
