package memory

import (
	"context"
	"database/sql"

	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// User is a user of this device.
type User struct {
	UserID  string `json:"userId"`
	HubUser string `json:"hubUserId,omitempty"` // its id at its hub
	HubURL  string `json:"hubUrl,omitempty"`    // "" for a user who has not joined a hub

	Generation int64 `json:"-"` // counts the user's joins and leaves
	Stop       Stop  `json:"-"` // why replication has stopped; the zero Stop if it has not
}

// IsJoined reports whether the user has joined a hub.
func (u User) IsJoined() bool { return u.HubURL != "" }

// Membership returns the user's present membership.
func (u User) Membership() Membership { return Membership{u.UserID, u.Generation} }

// Membership is one join of a user to a hub. Each batch, confirmation and pull belongs to a
// membership. After the membership has ended they are refused with CodeLeft, so that nothing is
// sent to, or accepted from, a hub that the user has left.
type Membership struct {
	User       string // local id
	Generation int64  // counts the user's joins and leaves
}

// Stop is the reason why a user's replication has stopped until a person acts.
type Stop struct {
	Code  string // a Stop code; "" if replication has not stopped
	Why   string // one human-readable sentence
	Since Time
}

// metaUser is the name of the store's note of the device's own user.
const metaUser = "memory.user"

const (
	userColumns = `SELECT user_id, ifnull(hub_url, ''), ifnull(hub_user, ''), generation, ifnull(stop_code, ''), ifnull(stop_why, ''), stop_ns FROM memory_users `
	selectUser  = userColumns + `WHERE user_id = ?`
	insertUser  = `INSERT INTO memory_users (user_id, created_ns) VALUES (?, ?)`
	selectUsers = userColumns + `ORDER BY user_id`
)

// actor returns the acting user. If the device's own user is missing, actor creates it with make,
// and returns the zero user, who owns nothing, without.
func actor(ctx context.Context, tx *store.Tx, c Caller, make bool) (u User, err error) {
	id := c.User
	if id == "" {
		if id, err = OwnUser(ctx, tx, make); err != nil {
			return u, err
		}
	}
	if u, err = FindUser(ctx, tx, id); err != nil {
		return u, err
	}
	if c.UserID == "" {
		return u, nil
	}
	given, _ := rules.ParseID(c.UserID)
	if given != u.UserID && given != u.HubUser {
		return u, NotFound("user")
	}
	return u, nil
}

func (u *User) scan() []any {
	return []any{&u.UserID, &u.HubURL, &u.HubUser, &u.Generation, &u.Stop.Code, &u.Stop.Why, &u.Stop.Since}
}

// FindUser returns a user, the zero User if it is missing.
func FindUser(ctx context.Context, tx *store.Tx, id string) (u User, err error) {
	err = tx.Get(ctx, u.scan(), selectUser, id)
	return u, IgnoreNone(err)
}

// OwnUser returns the id of the device's own user; "" if it is missing and make is false.
func OwnUser(ctx context.Context, tx *store.Tx, make bool) (id string, err error) {
	id, found, err := tx.Meta(ctx, metaUser)
	if err != nil || found || !make {
		return id, err
	}
	if id, err = addUser(ctx, tx); err != nil {
		return "", err
	}
	return id, SetOwnUser(ctx, tx, id)
}

func addUser(ctx context.Context, tx *store.Tx) (string, error) {
	id := rules.NewID()
	return id, PutUser(ctx, tx, id)
}

// PutUser stores a new user.
func PutUser(ctx context.Context, tx *store.Tx, id string) error {
	_, err := tx.Exec(ctx, insertUser, id, tx.Now().UnixNano())
	return err
}

// SetOwnUser makes a user the device's own.
func SetOwnUser(ctx context.Context, tx *store.Tx, id string) error {
	return tx.SetMeta(ctx, metaUser, id)
}

// Whoami returns the acting user. It creates the device's own user, a UUIDv4, at first use, and is
// idempotent. NotFound for a user that this device does not have.
func (b *Kernel) Whoami(ctx context.Context, c Caller) (out User, err error) {
	if err := c.CheckArgs(); err != nil {
		return out, err
	}
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = actor(ctx, tx, c, false)
		return err
	})
	if err != nil || out.UserID != "" {
		return out, err
	}
	err = b.Jobs.RunFirst(ctx, func(ctx context.Context) error {
		return b.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			if out, err = actor(ctx, tx, c, true); err == nil && out.UserID == "" {
				err = NotFound("user")
			}
			return err
		})
	})
	return out, err
}

// AddUser creates a local user, who owns nothing yet.
func (b *Kernel) AddUser(ctx context.Context) (out User, err error) {
	err = b.Jobs.RunFirst(ctx, func(ctx context.Context) error {
		return b.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			out.UserID, err = addUser(ctx, tx)
			return err
		})
	})
	return out, err
}

// Users lists the users of this device by id. The list is empty before the first use.
func (b *Kernel) Users(ctx context.Context) (out []User, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var u User
			err := rows.Scan(u.scan()...)
			out = append(out, u)
			return err
		}, selectUsers)
	})
	return out, err
}
