package hub

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"cairn/internal/hub/database"
	"cairn/internal/replica"
)

// Config configures a hub.
type Config struct {
	Database     string           // sqlite:PATH or postgres://…
	ReadDatabase string           // a replica for read-only requests, "" for none; PostgreSQL only
	Pool         int              // number of connections; 0 means 4 × CPU, at most 32
	MaxContext   int              // maximum number of characters of a context, 0 means 5000 (memory.max_context_chars)
	Clock        func() time.Time // nil for the system's clock
	Log          *slog.Logger     // required
}

// Hub serves one database. It is safe for concurrent use. Any number of hubs in any number of
// processes may serve the same database.
type Hub struct {
	db         *database.Database
	clock      func() time.Time
	log        *slog.Logger
	maxContext int

	memoryLimit time.Duration
	hooks       hooks

	signals  signals
	known    known
	metrics  metrics
	workers  chan struct{} // limits the number of streams that are written at the same time
	gate     gate
	stopping chan struct{} // closed when waiting pulls must end
	stop     sync.Once
	sweeping sync.WaitGroup
	sweeps   chan struct{} // limits concurrent sweeps
	life     context.Context
	end      context.CancelFunc
}

// Open opens a hub and migrates its database's schema. If another process migrates it, Open
// waits up to a minute. Errors: Unavailable with code hub_too_new if a newer cairn has created
// the schema, else with hub_unavailable; Invalid with code usage for an invalid address.
func Open(ctx context.Context, c Config) (*Hub, error) {
	if c.Pool <= 0 {
		c.Pool = database.StandardPool()
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.MaxContext == 0 {
		c.MaxContext = standardContext
	}
	db, err := database.Open(c.Database, c.ReadDatabase, c.Pool)
	if err != nil {
		return nil, err
	}
	h := &Hub{
		db: db, clock: c.Clock, log: c.Log, maxContext: c.MaxContext, memoryLimit: memoryLimit,
		workers: make(chan struct{}, max(1, c.Pool*3/4)), gate: newGate(), stopping: make(chan struct{}), sweeps: make(chan struct{}, 1),
	}
	h.life, h.end = context.WithCancel(context.WithoutCancel(ctx))
	db.Retried = h.metrics.retried
	if _, err := db.Migrate(ctx, 1); err != nil {
		h.end()
		return nil, errors.Join(database.OpenFault(err), db.Close())
	}
	return h, nil
}

// Stop ends waiting pulls, which return their current results. It is idempotent.
func (h *Hub) Stop() { h.stop.Do(func() { close(h.stopping) }) }

// Close ends all work and closes the database.
func (h *Hub) Close() error {
	h.Stop()
	h.end()
	h.sweeping.Wait()
	return h.db.Close()
}

// Whoami returns the bearer of a token and the id of this hub.
func (h *Hub) Whoami(ctx context.Context, who Identity) (replica.Whoami, error) {
	s := h.db.Writing() // a replica may not have an epoch that was raised just now
	w := replica.Whoami{UserID: who.UserID, Device: who.Device, Level: string(who.Level)}
	if _, err := s.One(ctx, database.SelectMeta, []any{database.MetaHub}, &w.HubID); err != nil {
		return w, err
	}
	epoch, err := s.Number(ctx, database.MetaEpoch)
	w.HubEpoch = epoch
	return w, err
}

// Restored raises the epoch of a hub whose database was restored from an older backup, and
// returns the new epoch. Devices that see it resend the changes that they have beyond the
// heads (memories §13.2).
func (h *Hub) Restored(ctx context.Context) (epoch int64, err error) {
	err = h.db.Write(ctx, func(s database.Statements) error {
		was, err := s.Number(ctx, database.MetaEpoch)
		if err != nil {
			return err
		}
		// Also higher than every epoch that the database had after the backup.
		epoch = max(was+1, h.clock().Unix())
		n, err := s.Exec(ctx, database.SwapMeta, database.MetaEpoch, strconv.FormatInt(was, 10), strconv.FormatInt(epoch, 10))
		if err == nil && n == 0 {
			err = database.ErrMeanwhile
		}
		return err
	})
	return epoch, err
}
