package memory

import (
	"context"
	"database/sql"
	"errors"

	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/project"
	"cairn/internal/store"
)

// Level is the permission of a token (memories §3).
type Level uint8

// The levels, from the highest, which the local user has.
const (
	Admin Level = iota // may also delete, import, and command the replication
	Write              // may also create and change
	Read
)

// Caller identifies who acts, from where, and under which key. The zero value is the device's own
// user outside any project.
type Caller struct {
	User   string // the acting user's local id; "" for the device's own
	UserID string // the argument user_id as given: the acting user's local or hub id; "" for none
	Level  Level

	Key       string // Idempotency-Key of a writing call; "" for a generated key
	Trace     string // traceparent of the operation, stored with the row; "" for none
	ProjectID string // --project, ?project= or the argument project: the project of `default`; "" for Place's
	Place     project.Location
	Remote    bool   // Place is not where the caller works: its connection's project counts, without one it cannot write to default (amendments §B.5)
	Transport string // the session of the connection; "" if there is none
	Session   string // the product session that causes a change; "" if unknown
	Agent     string // likewise
}

// WriteInfo describes how a writing call was executed. It is also valid with an error.
type WriteInfo struct {
	Key      string // the idempotency key, the caller's or a generated one
	Replayed bool   // an earlier call's result was returned again, and nothing was done
}

// user is a row of the users.
type user struct {
	ID         string
	HubURL     string // "" for a user who has not joined a hub
	HubUser    string
	generation int64
	stop       Stop
}

func (u user) hub() bool { return u.HubURL != "" }

// metaUser is the name of the store's note of the device's own user.
const metaUser = "memory.user"

const (
	userColumns = `SELECT user_id, ifnull(hub_url, ''), ifnull(hub_user, ''), generation, ifnull(stop_code, ''), ifnull(stop_why, ''), stop_ns FROM memory_users `
	selectUser  = userColumns + `WHERE user_id = ?`
	insertUser  = `INSERT INTO memory_users (user_id, created_ns) VALUES (?, ?)`
	selectUsers = userColumns + `ORDER BY user_id`
)

// isNowhere reports whether a caller named no project and Place is not where it works.
func (c Caller) isNowhere() bool { return c.Remote && c.ProjectID == "" }

// checkArgs checks what does not need the store.
func (c Caller) checkArgs() error {
	if c.UserID != "" {
		if _, err := rules.UUIDArg("user_id", c.UserID); err != nil {
			return err
		}
	}
	return rules.CheckKey(c.Key)
}

// may refuses a caller whose level is too low. It is called after the object was found to be the
// caller's own (memories §9).
func (c Caller) may(needed Level) error {
	if c.Level <= needed {
		return nil
	}
	return failure(fault.Denied, CodeForbidden, "use a token of a higher level", "the token's level is too low for this")
}

// actor returns the acting user. If the device's own user is missing, actor creates it with make,
// and returns the zero user, who owns nothing, without.
func actor(ctx context.Context, tx *store.Tx, c Caller, make bool) (u user, err error) {
	id := c.User
	if id == "" {
		if id, err = ownUser(ctx, tx, make); err != nil {
			return u, err
		}
	}
	if u, err = findUser(ctx, tx, id); err != nil {
		return u, err
	}
	if c.UserID == "" {
		return u, nil
	}
	given, _ := rules.ParseID(c.UserID)
	if given != u.ID && given != u.HubUser {
		return u, notFound("user")
	}
	return u, nil
}

func (u *user) scan() []any {
	return []any{&u.ID, &u.HubURL, &u.HubUser, &u.generation, &u.stop.Code, &u.stop.Why, &u.stop.Since}
}

func (u user) exported() User { return User{u.ID, u.HubUser, u.HubURL, u.generation, u.stop} }

func findUser(ctx context.Context, tx *store.Tx, id string) (u user, err error) {
	err = tx.Get(ctx, u.scan(), selectUser, id)
	if errors.Is(err, sql.ErrNoRows) {
		return user{}, nil
	}
	return u, err
}

// ownUser returns the id of the device's own user; "" if it is missing and make is false.
func ownUser(ctx context.Context, tx *store.Tx, make bool) (id string, err error) {
	id, found, err := tx.Meta(ctx, metaUser)
	if err != nil || found || !make {
		return id, err
	}
	if id, err = addUser(ctx, tx); err != nil {
		return "", err
	}
	return id, tx.SetMeta(ctx, metaUser, id)
}

func addUser(ctx context.Context, tx *store.Tx) (string, error) {
	id := rules.NewID()
	_, err := tx.Exec(ctx, insertUser, id, tx.Now().UnixNano())
	return id, err
}

func ignoreNone(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// User is a user of this device.
type User struct {
	UserID  string `json:"userId"`
	HubUser string `json:"hubUserId,omitempty"` // its id at its hub
	HubURL  string `json:"hubUrl,omitempty"`    // "" for a user who has not joined a hub

	Generation int64 `json:"-"` // counts the user's joins and leaves
	Stop       Stop  `json:"-"` // why replication has stopped; the zero Stop if it has not
}

// Membership returns the user's present membership.
func (u User) Membership() Membership { return Membership{u.UserID, u.Generation} }

// Whoami returns the acting user. It creates the device's own user, a UUIDv4, at first use, and is
// idempotent. NotFound for a user that this device does not have.
func (b *Service) Whoami(ctx context.Context, c Caller) (out User, err error) {
	if err := c.checkArgs(); err != nil {
		return out, err
	}
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		u, err := actor(ctx, tx, c, false)
		out = u.exported()
		return err
	})
	if err != nil || out.UserID != "" {
		return out, err
	}
	err = b.shards.runFirst(ctx, func(ctx context.Context) error {
		return b.write(ctx, func(ctx context.Context, tx *store.Tx) error {
			u, err := actor(ctx, tx, c, true)
			out = u.exported()
			if err == nil && u.ID == "" {
				return notFound("user")
			}
			return err
		})
	})
	return out, err
}

// AddUser creates a local user, who owns nothing yet.
func (b *Service) AddUser(ctx context.Context) (out User, err error) {
	err = b.shards.runFirst(ctx, func(ctx context.Context) error {
		return b.write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			out.UserID, err = addUser(ctx, tx)
			return err
		})
	})
	return out, err
}

// Users lists the users of this device by id. The list is empty before the first use.
func (b *Service) Users(ctx context.Context) (out []User, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var u user
			err := rows.Scan(u.scan()...)
			out = append(out, u.exported())
			return err
		}, selectUsers)
	})
	return out, err
}
