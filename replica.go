package cairn

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/regular"
	"cairn/internal/replica"
	"cairn/internal/store"
	"cairn/internal/wholefile"
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
// memory.Service.Join, after which the token of the hub that was joined before is still
// there; CodeTokenNotKept (Unavailable) if the hub was joined and the token's file could
// not be written. Joining again as before only replaces the token, so repeating is safe.
func (r Replication) Join(ctx context.Context, a JoinArgs) (user memory.User, who replica.Whoami, err error) {
	client, err := replica.NewClient(a.URL, a.Token, r.timeout(), a.Insecure)
	if err != nil {
		return user, who, err
	}
	defer client.Close()
	if who, err = client.Whoami(ctx, ""); err != nil {
		return user, who, refusedJoin(err)
	}
	err = r.cairn.Memories().Write(ctx, memory.Caller{User: a.User}, func(ctx context.Context, b *memory.Service, c memory.Caller) error {
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
	if err = wholefile.WritePrivate(r.tokenFile(user.UserID), []byte(a.Token+"\n")); err != nil {
		err = fault.Wrap(err, fault.Unavailable, CodeTokenNotKept, "the hub was joined, but its token cannot be kept: "+err.Error()).
			WithHint("check the rights of the data directory and run the same `cairn hub join` again; it only replaces the token")
		return user, who, err
	}
	err = r.cairn.Memories().Write(ctx, memory.Caller{User: a.User}, func(ctx context.Context, b *memory.Service, _ memory.Caller) error {
		return b.ClearStop(ctx, user.Membership(), memory.StopUnauthorized, memory.StopReadOnly) // those were of the old token
	})
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

// Leave ends the replication of the caller: from then on the store is the authority
// again, and the token's file is gone. Errors: CodeNotJoined; memory.CodeInflight
// (Conflict) while entries are inflight, unless force commits them here.
func (r Replication) Leave(ctx context.Context, c memory.Caller, force bool) (left memory.User, err error) {
	err = r.cairn.Memories().Read(ctx, c, func(ctx context.Context, b *memory.Service, c memory.Caller) error {
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
	text, err := regular.Read(r.tokenFile(u.UserID), regular.MaxSettings)
	return strings.TrimSpace(string(text)), err
}

// replicator makes a user's replicator, for one run.
func (r Replication) replicator(ctx context.Context, s *store.Store, b *memory.Service, u memory.User, leases *store.Leases, log *slog.Logger) (*replica.Replicator, error) {
	client, err := r.client(u)
	if err != nil {
		return nil, err
	}
	h := r.cairn.settings.work.Hub
	return replica.New(replica.Config{
		Store: s, Book: b, User: u.UserID, Generation: u.Generation, Client: client, Log: log,
		Leases: leases, Batch: value(h.Batch), Halt: value(h.OnPermanent) == "halt",
	}), nil
}

// Drain sends what there is to send and pulls what there is, here and now. Errors:
// CodeNotJoined, hub_unavailable if the hub takes nothing now.
func (r Replication) Drain(ctx context.Context, c memory.Caller, log *slog.Logger) error {
	return r.cairn.Memories().Read(ctx, c, func(ctx context.Context, b *memory.Service, c memory.Caller) error {
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
