package cairn

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/replica"
	"cairn/internal/store"
)

// Replication is how memories get to the hub and back (memories §10.3), for callers of
// this process.
type Replication struct{ cairn *Cairn }

// Replication is the replication of the store's memories.
func (c *Cairn) Replication() Replication { return Replication{c} }

// CodeNotJoined is the code of the error (Conflict) for a user without a hub.
const CodeNotJoined = "not_joined"

// CodeTokenNotKept is the code of the error (Unavailable) for a user whose hub was
// joined while the file of its token could not be written.
const CodeTokenNotKept = "hub_token_not_kept"

// JoinArgs say which hub to join and how.
type JoinArgs struct {
	URL      string
	Token    string
	User     string // the local user; "" for the device's own
	Upload   bool   // what is here already is sent, too
	Insecure bool   // plain HTTP to another machine is meant
}

// Join connects a local user to a hub, whose token says who the user is there. The
// token goes to a file that is its owner's alone. From then on entries are inflight
// until the hub has confirmed them.
//
// Errors: Invalid, code usage, for an address that is none; the hub's own; those of
// memory.Book.Join, after which the token of the hub that was joined before is still
// there; CodeTokenNotKept (Unavailable) if the hub was joined and the token's file could
// not be written. Joining again as before only replaces the token, so repeating is safe.
func (r Replication) Join(ctx context.Context, a JoinArgs) (user memory.User, who replica.Whoami, err error) {
	client, err := replica.NewClient(a.URL, a.Token, r.timeout(), a.Insecure)
	if err != nil {
		return user, who, err
	}
	defer client.Close()
	if who, err = client.Whoami(ctx); err != nil {
		return user, who, refusedJoin(err)
	}
	err = r.cairn.Memories().Write(ctx, memory.Caller{User: a.User}, func(ctx context.Context, b *memory.Book, c memory.Caller) error {
		if user, err = b.Whoami(ctx, c); err != nil || !b.Exists() {
			return err
		}
		if err := b.Join(ctx, user.UserID, strings.TrimSuffix(a.URL, "/"), who.UserID, a.Upload); err != nil {
			return err
		}
		user, err = b.Whoami(ctx, c)
		return err
	})
	if err != nil { // also that of a user who has joined another hub, whose token stays
		return user, who, err
	}
	if err = writeSecret(r.tokenFile(user.UserID), a.Token); err != nil {
		err = fault.Wrap(err, fault.Unavailable, CodeTokenNotKept, "the hub was joined, but its token cannot be kept: "+err.Error()).
			WithHint("check the rights of the data directory and run the same `cairn hub join` again; it only replaces the token")
	}
	return user, who, err
}

// refusedJoin is the error of a hub that does not let a user in.
func refusedJoin(err error) error {
	no, ok := errors.AsType[*replica.Refused](err)
	if !ok {
		return err
	}
	if no.Status == http.StatusUnauthorized {
		return fault.Wrap(err, fault.Denied, "unauthorized", "the hub does not know the token").WithHint("`cairn hub token create` at the hub makes one")
	}
	return fault.Wrap(err, fault.Unavailable, replica.CodeUnavailable, no.Error())
}

// writeSecret writes a file that is its owner's alone, whole or not at all.
func writeSecret(path, text string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".hub-token-")
	if err != nil {
		return err
	}
	_, err = file.WriteString(text + "\n")
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// tokenFile is where a local user's token of its hub is kept.
func (r Replication) tokenFile(user string) string {
	return filepath.Join(r.cairn.config.Dir, "hub-token-"+user)
}

func (r Replication) timeout() time.Duration { return r.cairn.settings.work.hubTimeout() }

// client calls the hub of a user. Errors: CodeNotJoined (Conflict), and Unavailable,
// code unauthorized, if the token is not there.
func (r Replication) client(u memory.User) (*replica.Client, error) {
	if u.HubURL == "" {
		return nil, fault.New(fault.Conflict, CodeNotJoined, "no hub was joined").WithHint("`cairn hub join URL` joins one")
	}
	token, err := r.token(u)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unavailable, "unauthorized", "the token of the hub is gone").WithHint("`cairn hub join " + u.HubURL + "` takes a new one")
	}
	if err != nil {
		return nil, err
	}
	hub := u.HubURL
	if s := value(r.cairn.settings.work.Hub.URL); s != "" {
		hub = s
	}
	return replica.NewClient(hub, token, r.timeout(), true) // what is in the clear was decided when joining
}

func (r Replication) token(u memory.User) (string, error) {
	text, err := os.ReadFile(r.tokenFile(u.UserID))
	return strings.TrimSpace(string(text)), err
}

// replicator makes a user's replicator, for one run.
func (r Replication) replicator(ctx context.Context, s *store.Store, b *memory.Book, u memory.User, lanes *replica.Lanes, log *slog.Logger) (*replica.Replicator, error) {
	client, err := r.client(u)
	if err != nil {
		return nil, err
	}
	device, err := s.Device(ctx)
	if err != nil {
		return nil, err
	}
	h := r.cairn.settings.work.Hub
	return replica.New(replica.Config{
		Store: s, Book: b, User: u.UserID, Client: client, Device: device, Log: log,
		Lanes: lanes, Batch: value(h.Batch), Halt: value(h.OnPermanent) == "halt",
	}), nil
}

// lookEvery is how soon a server sees that a hub was joined or left.
const lookEvery = time.Second

// Run replicates the memories of all users that have joined a hub, also of those that
// join meanwhile, until ctx ends; then it returns nil. It waits for a store that is
// not there yet.
func (r Replication) Run(ctx context.Context, log *slog.Logger) error {
	s, _, err := r.cairn.awaitStore(ctx)
	if err != nil || ctx.Err() != nil {
		return nil
	}
	replica.Leftovers(s.Path())
	b, _, err := r.cairn.Memories().book(ctx, false)
	if err != nil {
		log.Warn("memories are not replicated", "error", err)
		return nil
	}
	lanes, err := replica.NewLanes(s, b, lasting(r.cairn.settings.work.Hub.LeaseS), log)
	if err != nil {
		log.Warn("memories are not replicated", "error", err)
		return nil
	}
	defer lanes.Close()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { lanes.Keep(ctx) })
	running := map[memory.User]context.CancelFunc{}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		users, err := b.Users(ctx)
		if err != nil && ctx.Err() == nil {
			log.Warn("the users of memories cannot be read; trying again", "error", err)
			users = nil
		}
		if err == nil {
			r.match(ctx, users, running, &group, func(ctx context.Context, u memory.User) { r.runOne(ctx, s, b, u, lanes, log) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// match starts what is to run and stops what is not.
func (r Replication) match(ctx context.Context, users []memory.User, running map[memory.User]context.CancelFunc, group *sync.WaitGroup,
	run func(context.Context, memory.User),
) {
	wanted := map[memory.User]bool{}
	for _, u := range users {
		if u.HubURL == "" {
			continue
		}
		if wanted[u] = true; running[u] != nil {
			r.renew(u)
			continue
		}
		one, cancel := context.WithCancel(ctx)
		running[u] = cancel
		group.Go(func() {
			defer cancel()
			run(one, u)
		})
	}
	for u, cancel := range running {
		if !wanted[u] {
			cancel()
			delete(running, u)
		}
	}
}

// renew gives a replicator whose token the hub refuses the one of now.
func (r Replication) renew(u memory.User) {
	one := r.Running()[u.UserID]
	if one == nil {
		return
	}
	if state, _ := one.State(); state != replica.StateUnauthorized {
		return
	}
	if token, err := r.token(u); err == nil && one.Client.SetToken(token) {
		one.Renewed()
	}
}

// runOne runs a user's replicator, again after a failure.
func (r Replication) runOne(ctx context.Context, s *store.Store, b *memory.Book, u memory.User, lanes *replica.Lanes, log *slog.Logger) {
	for ctx.Err() == nil {
		one, err := r.replicator(ctx, s, b, u, lanes, log)
		if err == nil {
			r.note(u.UserID, one)
			err = one.Run(ctx)
			r.note(u.UserID, nil)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("memories are not replicated; trying again", "error", err)
		}
		timer := time.NewTimer(10 * lookEvery)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// note remembers which replicator runs for a user in this process.
func (r Replication) note(user string, one *replica.Replicator) {
	c := r.cairn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replicators == nil {
		c.replicators = map[string]*replica.Replicator{}
	}
	if c.replicators[user] = one; one == nil {
		delete(c.replicators, user)
	}
}

// Running are the replicators of this process, by local user.
func (r Replication) Running() map[string]*replica.Replicator {
	c := r.cairn
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]*replica.Replicator, len(c.replicators))
	for user, one := range c.replicators {
		out[user] = one
	}
	return out
}

// ReplicationStatus is how it stands with one user's hub.
type ReplicationStatus struct {
	UserID  string `json:"userId"`
	HubURL  string `json:"hub"`           // "" without one
	State   string `json:"state"`         // none, paused, running, unreachable, unauthorized, hub_too_old
	Why     string `json:"why,omitempty"` // of a state that is not well
	HubUser string `json:"hubUserId,omitempty"`
	memory.Backlog
	Failures []memory.Failed `json:"failures"` // never nil
	Waiting  []WaitingStream `json:"waiting"`  // never nil: streams that wait after a failed attempt, or stand still
}

// WaitingStream is a memory, or vault, of which something waits.
type WaitingStream struct {
	MemoryID    string    `json:"memory_id"`
	State       string    `json:"state"`
	Attempts    int       `json:"attempts"`
	NextAttempt time.Time `json:"next_attempt,omitzero"`
	Error       string    `json:"error,omitempty"`
}

// StateNone is the state of a user without a hub.
const StateNone = "none"

// Status says how it stands with the hub of the caller. With probe the hub is asked,
// for three seconds at most, else the answer is what this process knows and the store
// says. It makes no store.
func (r Replication) Status(ctx context.Context, c memory.Caller, probe bool) (out ReplicationStatus, err error) {
	out = ReplicationStatus{State: StateNone, Failures: []memory.Failed{}, Waiting: []WaitingStream{}}
	err = r.cairn.Memories().Read(ctx, c, func(ctx context.Context, b *memory.Book, c memory.Caller) error {
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
		if out.Waiting, err = waiting(ctx, b, u.UserID); err != nil {
			return err
		}
		return r.state(ctx, b, u, probe, &out)
	})
	return out, err
}

// ReplicationHealth is what anyone may know of the replication.
type ReplicationHealth struct {
	State   string `json:"state"` // as of ReplicationStatus; with several users the first that is not running
	Pending int    `json:"pending"`
	Failed  int    `json:"failed"`
}

// Health says in short how it stands with the hubs of all users, and which the first of
// them is. With probe it asks the hubs, for three seconds each at most. It makes neither
// a store nor a user.
func (r Replication) Health(ctx context.Context, probe bool) (hub string, out ReplicationHealth, err error) {
	out.State = StateNone
	err = r.cairn.Memories().Read(ctx, memory.Caller{}, func(ctx context.Context, b *memory.Book, _ memory.Caller) error {
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

func waiting(ctx context.Context, b *memory.Book, user string) ([]WaitingStream, error) {
	out, after := []WaitingStream{}, ""
	for {
		page, err := b.Streams(ctx, user, after, 1000)
		if err != nil || len(page) == 0 {
			return out, err
		}
		for _, s := range page {
			if after = s.ID; s.Attempts > 0 || s.State != memory.StreamReady {
				w := WaitingStream{MemoryID: s.ID, State: s.State, Attempts: s.Attempts, Error: s.LastError}
				if s.NextAttempt.Unix() > 0 {
					w.NextAttempt = s.NextAttempt.UTC()
				}
				out = append(out, w)
			}
		}
	}
}

// state finds out whether a user's hub takes what is sent.
func (r Replication) state(ctx context.Context, b *memory.Book, u memory.User, probe bool, out *ReplicationStatus) error {
	paused, err := b.Paused(ctx)
	if err != nil {
		return err
	}
	if out.State = replica.StateRunning; paused {
		out.State = replica.StatePaused
		return nil
	}
	if one := r.Running()[u.UserID]; one != nil {
		out.State, out.Why = one.State()
		return nil
	}
	client, err := r.client(u)
	if err != nil {
		out.State, out.Why = replica.StateUnauthorized, fault.As(err).Message
		return nil
	}
	defer client.Close()
	if !probe {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err = client.Whoami(ctx)
	no, refused := errors.AsType[*replica.Refused](err)
	switch {
	case err == nil:
	case refused && no.Status == http.StatusUnauthorized:
		out.State, out.Why = replica.StateUnauthorized, no.Reason.Message
	default:
		out.State, out.Why = replica.StateUnreachable, err.Error()
	}
	return nil
}

// Drain sends what there is to send and pulls what there is, here and now. Errors:
// CodeNotJoined, hub_unavailable if the hub takes nothing now.
func (r Replication) Drain(ctx context.Context, c memory.Caller, log *slog.Logger) error {
	return r.cairn.Memories().Read(ctx, c, func(ctx context.Context, b *memory.Book, c memory.Caller) error {
		s, err := r.cairn.opened(ctx, false)
		if err != nil || s == nil {
			return err
		}
		u, err := b.Whoami(ctx, c)
		if err != nil {
			return err
		}
		one, err := r.replicator(ctx, s, b, u, nil, log)
		if err != nil {
			return err
		}
		return one.Drain(ctx)
	})
}

// Leave ends the replication of the caller: from then on the store is the authority
// again, and the token's file is gone. Errors: CodeNotJoined; memory.CodeInflight
// (Conflict) while entries are inflight, unless force commits them here.
func (r Replication) Leave(ctx context.Context, c memory.Caller, force bool) (left memory.User, err error) {
	err = r.cairn.Memories().Read(ctx, c, func(ctx context.Context, b *memory.Book, c memory.Caller) error {
		if left, err = b.Whoami(ctx, c); err != nil {
			return err
		}
		if left.HubURL == "" {
			return fault.New(fault.Conflict, CodeNotJoined, "no hub was joined")
		}
		if err := b.Leave(ctx, left.UserID, force); err != nil {
			return err
		}
		if err := os.Remove(r.tokenFile(left.UserID)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	return left, err
}

// wantedTime is how long the first read of a memory may wait for its rows.
const wantedTime = 2 * time.Second

// wanted subscribes a memory that is read for the first time, and pulls it as far as
// that goes quickly. What fails is left to the replicator.
func (r Replication) wanted(ctx context.Context, s *store.Store, user, stream string) {
	ctx, cancel := context.WithTimeout(ctx, wantedTime)
	defer cancel()
	b, _, err := r.cairn.Memories().book(ctx, false)
	if err == nil {
		err = b.Subscribe(ctx, user, stream)
	}
	if one := r.Running()[user]; err == nil && one != nil {
		one.Subscribed()
	}
	var u memory.User
	if err == nil {
		u, err = joined(ctx, b, user)
	}
	var once *replica.Replicator
	if err == nil {
		once, err = r.replicator(ctx, s, b, u, nil, nil)
	}
	if err == nil {
		err = once.PullStream(ctx, stream)
	}
	if err != nil {
		slog.Debug("a memory could not be pulled at its first read", "error", err)
	}
}

// joined is a local user. Errors: CodeNotJoined for one that is not there.
func joined(ctx context.Context, b *memory.Book, user string) (memory.User, error) {
	users, err := b.Users(ctx)
	for _, u := range users {
		if u.UserID == user {
			return u, err
		}
	}
	if err == nil {
		err = fault.New(fault.Conflict, CodeNotJoined, "no hub was joined")
	}
	return memory.User{}, err
}

// ask sends what a user has to send until ctx ends, in a process that does not
// replicate; if another one does, nothing is left to do here.
func (r Replication) ask(ctx context.Context, s *store.Store, user string) {
	if r.Running()[user] != nil {
		return
	}
	b, _, err := r.cairn.Memories().book(ctx, false)
	var u memory.User
	if err == nil {
		u, err = joined(ctx, b, user)
	}
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
func (r Replication) through(ctx context.Context, user string, q memory.Beyond) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, throughTime)
	defer cancel()
	b, _, err := r.cairn.Memories().book(ctx, false)
	var u memory.User
	if err == nil {
		u, err = joined(ctx, b, user)
	}
	var client *replica.Client
	if err == nil {
		client, err = r.client(u)
	}
	var answer replica.EntriesAnswer
	if err == nil {
		defer client.Close()
		answer, err = client.Entries(ctx, entriesQuery(q))
	}
	if no, ok := errors.AsType[*replica.Refused](err); ok && no.Status == http.StatusNotFound && no.Reason.Code == memory.CodeNotFound {
		return nil, fault.New(fault.NotFound, memory.CodeNotFound, "entry not found").WithHint("list_entries shows what there is")
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, memory.CodeHubUnavailable, "the entry may be at the hub, which cannot be asked").WithHint("try again when the hub is reachable")
	}
	return answer.Entries, nil
}

func entriesQuery(q memory.Beyond) url.Values {
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
