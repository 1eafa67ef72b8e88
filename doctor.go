package cairn

import (
	"context"
	"time"

	"cairn/internal/doctor"
	"cairn/internal/fault"
	"cairn/internal/followers"
	"cairn/internal/githook"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/settings"
	"cairn/internal/store"
	"cairn/internal/tomlfile"
)

// Diagnose checks the store and the harnesses; see doctor.Diagnose. It also works with
// invalid settings and with a damaged store.
func Diagnose(ctx context.Context, config Config, a doctor.Args) (doctor.Diagnosis, error) {
	config = config.WithDB()
	c, err := openDespiteSettings(config)
	of := doctor.Subject{
		DB: config.DB, Dir: config.Dir, Wait: config.Wait, Clock: config.Clock,
		Settings: err,
		Unknown: func() ([]tomlfile.UnknownKey, error) {
			return settings.Unknown(config.Dir)
		},
		Key:      c.keyForDoctor,
		Restores: c.Backups().RestoresUnderWay,
		Hooks: func(ctx context.Context, root string) (string, []githook.HookStatus, error) {
			return c.Guard().Hooks(ctx, root)
		},
		Followers: func(ctx context.Context, s *store.Store) (followers.Account, error) {
			return c.followers(s, memories.New(s, memory.Config{})).Account(ctx)
		},
		Device: func(ctx context.Context, s *store.Store) (string, error) {
			status, err := deviceOf(ctx, s)
			return status.Note, err
		},
		Hub: func(ctx context.Context, b *memories.Service, u memory.User) (doctor.Hub, error) {
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

// keyForDoctor returns the state of the key for doctor.
func (c *Cairn) keyForDoctor() (doctor.Key, error) {
	k, key, err := c.KeyState()
	return doctor.Key{Bytes: key, Why: k.Why, Place: k.Place, Wide: k.Wide}, err
}

func errorText(err error) string { return fault.As(err).Message }
