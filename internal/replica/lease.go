package replica

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// held are the leases of this process.
func (r *Replicator) held() []memory.Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]memory.Lease, 0, len(r.leases))
	for _, l := range r.leases {
		out = append(out, l)
	}
	return out
}

// takeLanes takes the lanes of some streams as far as no live process holds them.
func (r *Replicator) takeLanes(ctx context.Context, streams []memory.Stream) error {
	wanted := map[int]bool{}
	r.mu.Lock()
	for _, s := range streams {
		if _, ours := r.leases[s.Lane]; !ours {
			wanted[s.Lane] = true
		}
	}
	r.mu.Unlock()
	if len(wanted) == 0 {
		return nil
	}
	now := time.Now()
	holders, err := r.Book.Holders(ctx, now)
	if err != nil {
		return err
	}
	lanes := make([]int, 0, len(wanted))
	for lane := range wanted {
		lanes = append(lanes, lane)
	}
	taken, err := r.Book.TakeLanes(ctx, r.holder.name, lanes, dead(r.Store.Path(), holders, r.holder.name), now, now.Add(r.Lease))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range taken {
		r.leases[l.Lane] = l
	}
	return nil
}

// keepLeases prolongs the leases three times in their life.
func (r *Replicator) keepLeases(ctx context.Context) error {
	tick := time.NewTicker(r.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		mine := r.held()
		if len(mine) == 0 {
			continue
		}
		still, err := r.Book.RenewLanes(ctx, r.holder.name, mine, time.Now().Add(r.Lease))
		if err != nil {
			r.Log.Warn("leases were not renewed; trying again", "error", err)
			continue
		}
		r.forget(mine, still)
	}
}

// forget drops the leases that were not renewed.
func (r *Replicator) forget(mine, still []memory.Lease) {
	kept := map[memory.Lease]bool{}
	for _, l := range still {
		kept[l] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range mine {
		if !kept[l] && r.leases[l.Lane] == l {
			delete(r.leases, l.Lane)
			r.meter.LeaseLosses.Add(1)
		}
	}
}

// Leftovers removes the lock files of replicators that are gone, as a server does at
// its start. What cannot be removed stays.
func Leftovers(db string) {
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

// leasesOf are the leases of the lanes of some streams.
func (r *Replicator) leasesOf(streams []string) []memory.Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []memory.Lease
	seen := map[int]bool{}
	for _, id := range streams {
		lane := memory.LaneOf(id)
		if l, ours := r.leases[lane]; ours && !seen[lane] {
			out, seen[lane] = append(out, l), true
		}
	}
	return out
}
