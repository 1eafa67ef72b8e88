package cairn

import (
	"context"
	"path/filepath"
	"time"

	"cairn/internal/doctor"
	"cairn/internal/fault"
	"cairn/internal/followers"
	"cairn/internal/githook"
	"cairn/internal/memory"
	"cairn/internal/store"
	"cairn/internal/tomlfile"
)

// Diagnose looks at the store and at the harnesses; see doctor.Diagnose. It works where
// the settings are broken or the store is damaged.
func Diagnose(ctx context.Context, config Config, a doctor.Args) (doctor.Diagnosis, error) {
	config = withDB(config)
	c, err := openAnyway(config)
	of := doctor.Subject{
		DB: config.DB, Dir: config.Dir, Wait: config.Wait, Clock: config.Clock,
		Settings: err,
		Unknown: func() ([]tomlfile.UnknownKey, error) {
			return tomlfile.Unknown(filepath.Join(config.Dir, "config.toml"), &userFile{})
		},
		Key:      c.examinedKey,
		Restores: c.Backups().RestoresUnderWay,
		Hooks: func(ctx context.Context, root string) (string, []githook.HookStatus, error) {
			return c.Guard().Hooks(ctx, root)
		},
		Followers: func(ctx context.Context, s *store.Store) (followers.Account, error) {
			return c.followers(s, memory.New(s, memory.Config{})).Account(ctx)
		},
		Device: func(ctx context.Context, s *store.Store) (string, error) {
			status, err := deviceOf(ctx, s)
			return status.Note, err
		},
		Hub: func(ctx context.Context, b *memory.Service, u memory.User) (doctor.Hub, error) {
			var now ReplicationStatus
			err := c.Replication().state(ctx, b, u, true, &now)
			return doctor.Hub{State: now.State, Why: now.Why, Hint: now.Hint}, err
		},
	}
	if of.Clock == nil {
		of.Clock = time.Now
	}
	return doctor.Diagnose(ctx, of, a)
}

// examinedKey is the key as doctor looks at it.
func (c *Cairn) examinedKey() (doctor.Key, error) {
	k, key, err := c.keyState()
	return doctor.Key{Bytes: key, Why: k.Why, Place: k.Place, Wide: k.Wide}, err
}

func errorText(err error) string { return fault.As(err).Message }

// openAnyway is Open, with the settings that could be read after an error.
func openAnyway(config Config) (*Cairn, error) {
	c, err := Open(config)
	if c == nil {
		c = &Cairn{config: config}
	}
	return c, err
}
