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
	"cairn/internal/replica"
	"cairn/internal/store"
)

// member is the service and a local user in it. Errors: CodeNotJoined for one that is not
// there, and those of opening the store.
func (r Replication) member(ctx context.Context, user string) (b *memory.Service, u memory.User, err error) {
	if b, _, err = r.cairn.Memories().book(ctx, false); err != nil {
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

// wantedTime is how long the first read of a memory may wait for its rows.
const wantedTime = 2 * time.Second

// wanted subscribes a memory that is read for the first time, and pulls it as far as
// that goes quickly. What fails is left to the replicator.
func (r Replication) wanted(ctx context.Context, s *store.Store, user, stream string) {
	ctx, cancel := context.WithTimeout(ctx, wantedTime)
	defer cancel()
	if err := r.subscribe(ctx, s, user, stream); err != nil {
		slog.Debug("a memory could not be pulled at its first read", "error", err)
	}
}

// subscribe subscribes a memory and pulls it once.
func (r Replication) subscribe(ctx context.Context, s *store.Store, user, stream string) error {
	b, u, err := r.member(ctx, user)
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

// ask sends what a user has to send until ctx ends, in a process that does not
// replicate; if another one does, nothing is left to do here.
func (r Replication) ask(ctx context.Context, s *store.Store, user string) {
	if r.Running()[user] != nil {
		return
	}
	b, u, err := r.member(ctx, user)
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

// throughTime is how long a list may wait for what was purged here.
const throughTime = 5 * time.Second

// through reads entries at a user's hub that were purged here. Errors:
// memory.CodeNotFound, memory.CodeHubUnavailable.
func (r Replication) through(ctx context.Context, user string, q memory.HubQuery) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, throughTime)
	defer cancel()
	entries, err := r.entries(ctx, user, q)
	if no, ok := errors.AsType[*replica.Refused](err); ok && no.Status == http.StatusNotFound && no.Reason.Code == memory.CodeNotFound {
		return nil, fault.New(fault.NotFound, memory.CodeNotFound, "entry not found").WithHint("list_entries shows what there is")
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, memory.CodeHubUnavailable, "the entry may be at the hub, which cannot be asked").WithHint("try again when the hub is reachable")
	}
	return entries, nil
}

// entries asks a user's hub for entries. Errors: those of the hub, and CodeNotJoined.
func (r Replication) entries(ctx context.Context, user string, q memory.HubQuery) ([]json.RawMessage, error) {
	_, u, err := r.member(ctx, user)
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
