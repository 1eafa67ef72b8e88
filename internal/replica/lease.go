package replica

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/memory"
	"cairn/internal/store"
)

// counter is a number that only rises.
type counter struct{ atomic.Int64 }

// holder is this replicator as others see it: a name, and a file that the kernel
// keeps locked while the process lives. A lease whose holder's file is free can be
// taken at once (memories §10.3).
type holder struct {
	name   string
	path   string
	unlock func() error
}

// lockOf is the file of a holder, beside the store.
func lockOf(db, name string) string { return db + "-replicator-" + name }

func newHolder(db string) (*holder, error) {
	h := &holder{name: store.NewID()}
	h.path = lockOf(db, h.name)
	var err error
	h.unlock, err = store.LockFile(context.Background(), h.path)
	return h, err
}

// end removes the file while it is still locked.
func (h *holder) end() {
	_ = os.Remove(h.path) // a file that is left behind is removed by who finds it free
	_ = h.unlock()
}

// dead are those of some holders whose file nobody locks; the file goes, too.
func dead(db string, names []string, own string) (out []string) {
	for _, name := range names {
		if name == own || name == "" || strings.ContainsAny(name, `/\.`) {
			continue
		}
		path := lockOf(db, name)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			out = append(out, name)
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		unlock, err := store.LockFile(ctx, path)
		cancel()
		if err == nil {
			_ = os.Remove(path)
			_ = unlock()
			out = append(out, name)
		}
	}
	return out
}

// Lanes are the leases of one process on one store (memories §10.3). A lane is leased
// whoever's streams are in it, so all replicators of a process share one of these.
type Lanes struct {
	book *memory.Service
	db   string
	life time.Duration
	log  *slog.Logger
	*holder

	mu     sync.Mutex
	leases map[int]memory.Lease
	losses atomic.Int64
}

// NewLanes holds no lane yet. life is that of a lease, 0 for 60 s. Keep prolongs what
// is taken; Close gives it back.
func NewLanes(s *store.Store, b *memory.Service, life time.Duration, log *slog.Logger) (*Lanes, error) {
	if life <= 0 {
		life = time.Minute
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h, err := newHolder(s.Path())
	return &Lanes{book: b, db: s.Path(), life: life, log: log, holder: h, leases: map[int]memory.Lease{}}, err
}

// Close gives the leases back, so that another process need not wait for their end.
func (l *Lanes) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := l.book.ReleaseLanes(ctx, l.name, l.held()); err != nil {
		l.log.Debug("leases were not released", "error", err)
	}
	l.end()
}

// held are the leases of this process.
func (l *Lanes) held() []memory.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]memory.Lease, 0, len(l.leases))
	for _, one := range l.leases {
		out = append(out, one)
	}
	return out
}

// take takes the lanes of some streams as far as no live process holds them.
func (l *Lanes) take(ctx context.Context, streams []memory.Stream) error {
	wanted := map[int]bool{}
	l.mu.Lock()
	for _, s := range streams {
		if _, ours := l.leases[s.Lane]; !ours {
			wanted[s.Lane] = true
		}
	}
	l.mu.Unlock()
	if len(wanted) == 0 {
		return nil
	}
	now := time.Now()
	holders, err := l.book.Holders(ctx, now)
	if err != nil {
		return err
	}
	lanes := make([]int, 0, len(wanted))
	for lane := range wanted {
		lanes = append(lanes, lane)
	}
	taken, err := l.book.TakeLanes(ctx, l.name, lanes, dead(l.db, holders, l.name), now, now.Add(l.life))
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range taken {
		l.leases[one.Lane] = one
	}
	return nil
}

// of is the lease of a stream's lane.
func (l *Lanes) of(stream string) (lease memory.Lease, ours bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lease, ours = l.leases[memory.LaneOf(stream)]
	return lease, ours
}

// Keep prolongs the leases three times in their life, until ctx ends.
func (l *Lanes) Keep(ctx context.Context) {
	tick := time.NewTicker(l.life / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		mine := l.held()
		if len(mine) == 0 {
			continue
		}
		still, err := l.book.RenewLanes(ctx, l.name, mine, time.Now().Add(l.life))
		if err != nil {
			l.log.Warn("leases were not renewed; trying again", "error", err)
			continue
		}
		l.forget(mine, still)
	}
}

// forget drops the leases that were not renewed.
func (l *Lanes) forget(mine, still []memory.Lease) {
	kept := map[memory.Lease]bool{}
	for _, one := range still {
		kept[one] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range mine {
		if !kept[one] && l.leases[one.Lane] == one {
			delete(l.leases, one.Lane)
			l.losses.Add(1)
		}
	}
}

// lost forgets leases of which one turned out to be another's; those that are still
// ours are taken again, as they were.
func (l *Lanes) lost(leases []memory.Lease) { l.forget(leases, nil) }

// RemoveStaleLocks removes the lock files of replicators that are gone, as a server does at
// its start. What cannot be removed stays.
func RemoveStaleLocks(db string) {
	files, err := os.ReadDir(filepath.Dir(db))
	if err != nil {
		return
	}
	var names []string
	for _, f := range files {
		if name, ok := strings.CutPrefix(f.Name(), lockOf(filepath.Base(db), "")); ok {
			names = append(names, name)
		}
	}
	dead(db, names, "")
}

// LeaseLosses is how many leases the lanes that it was given have lost to others; 0 if
// it was given none.
func (r *Replicator) LeaseLosses() int64 {
	if r.Lanes == nil {
		return 0
	}
	return r.Lanes.losses.Load()
}
