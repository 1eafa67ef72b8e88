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
	"cairn/internal/memory/memories"
	"cairn/internal/memory/replication"
	"cairn/internal/regular"
	"cairn/internal/replica"
	"cairn/internal/settings"
	"cairn/internal/store"
	"cairn/internal/store/follow"
	"cairn/internal/wholefile"
)

// Replication exchanges memories with the hub (memories §10.3), for callers in this
// process.
type Replication struct{ cairn *Cairn }

// Replication returns the replication of the store's memories.
func (c *Cairn) Replication() Replication { return Replication{c} }

// CodeNotJoined is the code of the error (Conflict) for a user without a hub.
const CodeNotJoined = "not_joined"

// CodeTokenNotKept is the code of the error (Unavailable) for a user who has joined a hub,
// but whose token file could not be written.
const CodeTokenNotKept = "hub_token_not_kept"

// JoinArgs are the options of Join.
type JoinArgs struct {
	URL      string
	Token    string
	User     string // the local user; "" for the device's own
	Upload   bool   // also send existing memories
	Insecure bool   // allow plain HTTP to another machine
}

// Join connects a local user to a hub. The token identifies the user there. It is stored in
// a file that only its owner can read. From then on entries are inflight until the hub has
// confirmed them. Joining the same hub again only replaces the token, so Join is safe to
// retry.
//
// Errors: Invalid, code usage, for an invalid address; those of the hub; those of
// memories.Service.Join, after which the old hub's token still exists; CodeTokenNotKept
// (Unavailable) if the hub was joined and the token's file could not be written.
func (r Replication) Join(ctx context.Context, a JoinArgs) (user memory.User, who replica.Whoami, err error) {
	client, err := replica.NewClient(a.URL, a.Token, r.timeout(), a.Insecure)
	if err != nil {
		return user, who, err
	}
	defer client.Close()
	if who, err = client.Whoami(ctx, ""); err != nil {
		return user, who, joinError(err)
	}
	err = r.cairn.Memories().Write(ctx, memory.Caller{User: a.User}, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		if user, err = b.Whoami(ctx, c); err != nil || !b.Exists() {
			return err
		}
		if err := b.Join(ctx, user.UserID, strings.TrimSuffix(a.URL, "/"), who.UserID, a.Upload); err != nil {
			return err
		}
		user, err = b.Whoami(ctx, c)
		return err
	})
	if err != nil { // also if the user has joined another hub, whose token stays
		return user, who, err
	}
	if err = wholefile.WritePrivate(r.tokenFile(user.UserID), []byte(a.Token+"\n")); err != nil {
		err = fault.Wrap(err, fault.Unavailable, CodeTokenNotKept, "the hub was joined, but its token cannot be stored: "+err.Error()).
			WithHint("check the rights of the data directory and run the same `cairn hub join` again; it only replaces the token")
		return user, who, err
	}
	err = r.cairn.Memories().Write(ctx, memory.Caller{User: a.User}, func(ctx context.Context, b *memories.Service, _ memory.Caller) error {
		return b.ClearStop(ctx, user.Membership(), replication.StopUnauthorized, replication.StopReadOnly) // these stops were caused by the old token
	})
	return user, who, err
}

// joinError returns the error for a hub that rejects a user.
func joinError(err error) error {
	no, ok := errors.AsType[*replica.Refused](err)
	if !ok {
		return err
	}
	if no.Status == http.StatusUnauthorized {
		return fault.Wrap(err, fault.Denied, "unauthorized", "the hub does not know the token").WithHint("`cairn hub token create` at the hub creates one")
	}
	return fault.Wrap(err, fault.Unavailable, replica.CodeUnavailable, no.Error())
}

// Leave ends the replication of the caller and deletes the token's file. From then on the
// store commits entries itself. Errors: CodeNotJoined; memory.CodeInflight (Conflict) while
// entries are inflight, unless force commits them here.
func (r Replication) Leave(ctx context.Context, c memory.Caller, force bool) (left memory.User, err error) {
	err = r.cairn.Memories().Read(ctx, c, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
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

// tokenFile returns the path of a local user's hub token.
func (r Replication) tokenFile(user string) string {
	return filepath.Join(r.cairn.Config.Dir, "hub-token-"+user)
}

func (r Replication) timeout() time.Duration { return hubTimeout(&r.cairn.Settings.Work) }

// client returns a client for the hub of a user. Errors: CodeNotJoined (Conflict);
// Unavailable, code unauthorized, if the token is missing.
func (r Replication) client(u memory.User) (*replica.Client, error) {
	if u.HubURL == "" {
		return nil, fault.New(fault.Conflict, CodeNotJoined, "no hub was joined").WithHint("`cairn hub join URL` joins one")
	}
	token, err := r.token(u)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unavailable, "unauthorized", "the token of the hub is missing").WithHint("`cairn hub join " + u.HubURL + "` takes a new one")
	}
	if err != nil {
		return nil, err
	}
	hub := u.HubURL
	if s := settings.Value(r.cairn.Settings.Work.Hub.URL); s != "" {
		hub = s
	}
	return replica.NewClient(hub, token, r.timeout(), true) // plain HTTP was allowed or rejected when joining
}

func (r Replication) token(u memory.User) (string, error) {
	text, err := regular.Read(r.tokenFile(u.UserID), regular.MaxSettings)
	return strings.TrimSpace(string(text)), err
}

// replicator returns a user's replicator for one run.
func (r Replication) replicator(ctx context.Context, s *store.Store, b *memories.Service, u memory.User, leases *follow.Leases, log *slog.Logger) (*replica.Replicator, error) {
	client, err := r.client(u)
	if err != nil {
		return nil, err
	}
	h := r.cairn.Settings.Work.Hub
	return replica.New(replica.Config{
		Store: s, Book: b, User: u.UserID, Generation: u.Generation, Client: client, Log: log,
		Leases: leases, Batch: settings.Value(h.Batch), Halt: settings.Value(h.OnPermanent) == "halt",
	}), nil
}

// Drain sends all waiting changes and pulls all new ones, once. Errors: CodeNotJoined;
// hub_unavailable if the hub is not accepting changes.
func (r Replication) Drain(ctx context.Context, c memory.Caller, log *slog.Logger) error {
	return r.cairn.Memories().Read(ctx, c, func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		s, err := r.cairn.Opened(ctx, false)
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
