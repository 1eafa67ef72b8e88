package cairn

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/replica"
	"cairn/internal/store"
)

// joinedUser returns the service and a local user. Errors: CodeNotJoined for an unknown
// user, and those of opening the store.
func (r Replication) joinedUser(ctx context.Context, user string) (b *memories.Service, u memory.User, err error) {
	if b, _, err = r.cairn.Memories().service(ctx, false); err != nil {
		return nil, u, err
	}
	users, err := b.Users(ctx)
	if err != nil {
		return nil, u, err
	}
	for _, u := range users {
		if u.UserID == user {
			return b, u, nil
		}
	}
	return nil, u, fault.New(fault.Conflict, CodeNotJoined, "no hub was joined")
}

// firstReadTimeout limits how long the first read of a memory waits for its rows.
const firstReadTimeout = 2 * time.Second

// pullFirstRead subscribes to a memory at its first read, and pulls its rows within
// firstReadTimeout. After a failure the replicator does the rest.
func (r Replication) pullFirstRead(ctx context.Context, s *store.Store, user, stream string) {
	ctx, cancel := context.WithTimeout(ctx, firstReadTimeout)
	defer cancel()
	if err := r.subscribe(ctx, s, user, stream); err != nil {
		slog.Debug("a memory could not be pulled at its first read", "error", err)
	}
}

// subscribe subscribes to a memory and pulls it once.
func (r Replication) subscribe(ctx context.Context, s *store.Store, user, stream string) error {
	b, u, err := r.joinedUser(ctx, user)
	if err != nil {
		return err
	}
	if err := b.Subscribe(ctx, user, stream); err != nil {
		return err
	}
	if running := r.Running()[user]; running != nil {
		running.Subscribed()
	}
	one, err := r.replicator(ctx, s, b, u, nil, nil)
	if err != nil {
		return err
	}
	return one.PullStream(ctx, stream)
}

// sendPending sends the waiting changes of a user until ctx ends, in a process without a
// replicator. If another process replicates, it does nothing.
func (r Replication) sendPending(ctx context.Context, s *store.Store, user string) {
	if r.Running()[user] != nil {
		return
	}
	b, u, err := r.joinedUser(ctx, user)
	var one *replica.Replicator
	if err == nil {
		one, err = r.replicator(ctx, s, b, u, nil, nil)
	}
	if err == nil {
		err = one.Send(ctx)
	}
	if err != nil {
		slog.Debug("the hub could not be asked", "error", err)
	}
}

// readThroughTimeout limits how long a list waits for entries that were purged here.
const readThroughTimeout = 5 * time.Second

// readThrough reads entries that were purged here from the user's hub. Errors:
// memory.CodeNotFound, memory.CodeHubUnavailable.
func (r Replication) readThrough(ctx context.Context, user string, q memory.HubQuery) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, readThroughTimeout)
	defer cancel()
	entries, err := r.entries(ctx, user, q)
	if no, ok := errors.AsType[*replica.Refused](err); ok && no.Status == http.StatusNotFound && no.Reason.Code == memory.CodeNotFound {
		return nil, fault.New(fault.NotFound, memory.CodeNotFound, "entry not found").WithHint("list_entries shows the existing entries")
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, memory.CodeHubUnavailable, "the entry may be at the hub, which cannot be reached").WithHint("try again when the hub is reachable")
	}
	return entries, nil
}

// entries reads entries from a user's hub. Errors: those of the hub, and CodeNotJoined.
func (r Replication) entries(ctx context.Context, user string, q memory.HubQuery) ([]json.RawMessage, error) {
	_, u, err := r.joinedUser(ctx, user)
	if err != nil {
		return nil, err
	}
	client, err := r.client(u)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	answer, err := client.Entries(ctx, entriesQuery(q))
	return answer.Entries, err
}

func entriesQuery(q memory.HubQuery) url.Values {
	v := url.Values{"memory": {q.Memory}, "tag": q.Tags}
	for name, text := range map[string]string{"entry": q.Entry, "session_id": q.SessionID} {
		if text != "" {
			v.Set(name, text)
		}
	}
	for name, at := range map[string]memory.Time{"before": q.Before, "after": q.After} {
		if at != 0 {
			v.Set(name, at.String())
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}
