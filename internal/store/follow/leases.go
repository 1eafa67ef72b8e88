package follow

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/backoff"
	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/locks"
)

// CodeLeaseLost (Conflict) is the code for a transaction whose process has lost the lease of a
// lane to another process.
const CodeLeaseLost = "lease_lost"

// Lease is the right to work on one lane of a follower. Its epoch increases each time that it
// passes to another process. Then late work of the old holder is rejected.
type Lease struct {
	Lane  int
	Epoch int64
}

// Leases are the lanes of one follower that this process may work on. Several processes can
// run such a follower concurrently. A lease lasts for a limited time, by the real clock. Its
// holder also keeps a file locked while it is alive. If the kernel has released that lock,
// another process can take the lease immediately. Leases is safe for concurrent use.
type Leases struct {
	store    *store.Store
	follower string
	life     time.Duration
	failed   func(error)
	holder   string // name of this process
	path     string // its file
	unlock   func() error

	mu     sync.Mutex
	held   map[int]Lease
	losses atomic.Int64
}

const (
	selectLease   = `SELECT holder, epoch, until_ns FROM follower_leases WHERE follower = ? AND lane = ?`
	existsLease   = `SELECT EXISTS (SELECT 1 FROM follower_leases WHERE follower = ?)`
	selectHolders = `SELECT DISTINCT holder FROM follower_leases WHERE follower = ? AND until_ns > ?`
	upsertLease   = `INSERT INTO follower_leases (follower, lane, holder, epoch, until_ns) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (follower, lane) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch, until_ns = excluded.until_ns`
	renewLease   = `UPDATE follower_leases SET until_ns = ?5 WHERE follower = ?1 AND lane = ?2 AND epoch = ?3 AND holder = ?4`
	releaseLease = `UPDATE follower_leases SET until_ns = 0 WHERE follower = ?1 AND lane = ?2 AND epoch = ?3 AND holder = ?4`
)

// NewLeases returns the leases of a follower, initially none. A lease lasts for life; 0 means
// 60 s. Keep renews the leases and Close returns them. failed is called with errors that Keep
// and Close cannot return; it may be nil.
func NewLeases(s *store.Store, follower string, life time.Duration, failed func(error)) (*Leases, error) {
	if life <= 0 {
		life = time.Minute
	}
	if failed == nil {
		failed = func(error) {}
	}
	l := &Leases{store: s, follower: follower, life: life, failed: failed, holder: store.NewID(), held: map[int]Lease{}}
	l.path = holderFile(s, l.holder)
	var err error
	l.unlock, err = locks.LockFile(context.Background(), l.path)
	return l, err
}

// holderFile is the file that a holder of leases keeps locked.
func holderFile(s *store.Store, holder string) string { return s.Path() + "-replicator-" + holder }

// Close returns the leases, so that other processes can take them immediately.
func (l *Leases) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	if err := l.change(ctx, l.Held(), releaseLease, nil); err != nil {
		l.failed(err)
	}
	_ = os.Remove(l.path) // while it is locked; RemoveStaleLocks removes a file that stays
	_ = l.unlock()
}

// Held lists the leases of this process, in any order.
func (l *Leases) Held() []Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Lease, 0, len(l.held))
	for _, one := range l.held {
		out = append(out, one)
	}
	return out
}

// Of returns the lease of a lane; ok is false if this process does not hold it.
func (l *Leases) Of(lane int) (lease Lease, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lease, ok = l.held[lane]
	return lease, ok
}

// Losses returns the number of leases that other processes have taken.
func (l *Leases) Losses() int64 { return l.losses.Load() }

// Take takes the given lanes, except lanes that a live process holds. It is idempotent.
func (l *Leases) Take(ctx context.Context, lanes ...int) error {
	wanted := map[int]bool{}
	l.mu.Lock()
	for _, lane := range lanes {
		if _, ours := l.held[lane]; !ours {
			wanted[lane] = true
		}
	}
	l.mu.Unlock()
	if len(wanted) == 0 {
		return nil
	}
	now := time.Now()
	var holders []string
	err := l.store.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		holders, err = tx.Texts(ctx, selectHolders, l.follower, now.UnixNano())
		return err
	})
	if err != nil {
		return err
	}
	gone := map[string]bool{}
	for _, holder := range holders {
		gone[holder] = holder != l.holder && isGone(l.store, holder)
	}
	var taken []Lease
	err = l.store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		taken = nil
		for lane := range wanted {
			one, ok, err := l.takeOne(ctx, tx, lane, now, gone)
			if err != nil {
				return err
			}
			if ok {
				taken = append(taken, one)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range taken {
		l.held[one.Lane] = one
	}
	return nil
}

// takeOne takes a lane; ok is false if a holder that is not in gone has it.
func (l *Leases) takeOne(ctx context.Context, tx *store.Tx, lane int, now time.Time, gone map[string]bool) (one Lease, ok bool, err error) {
	var by string
	var until int64
	one.Lane = lane
	if err := tx.Get(ctx, []any{&by, &one.Epoch, &until}, selectLease, l.follower, lane); ignoreNoRows(err) != nil {
		return one, false, err
	}
	lasts := until > now.UnixNano() && !gone[by]
	if lasts && by != l.holder {
		return one, false, nil
	}
	if !lasts {
		one.Epoch++
	}
	_, err = tx.Exec(ctx, upsertLease, l.follower, lane, l.holder, one.Epoch, now.Add(l.life).UnixNano())
	return one, err == nil, err
}

// Keep renews the leases three times per lifetime, until ctx ends.
func (l *Leases) Keep(ctx context.Context) {
	for backoff.Pause(ctx, l.life/3, nil) {
		mine := l.Held()
		if len(mine) == 0 {
			continue
		}
		lost := map[Lease]bool{}
		err := l.change(ctx, mine, renewLease, lost, time.Now().Add(l.life).UnixNano())
		if err != nil {
			l.failed(err)
			continue
		}
		for one := range lost {
			l.Forget(one)
		}
	}
}

// change runs a statement for each of the given leases. It adds to missed the leases that this
// process no longer holds.
func (l *Leases) change(ctx context.Context, leases []Lease, query string, missed map[Lease]bool, more ...any) error {
	return l.store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		clear(missed)
		for _, one := range leases {
			done, err := tx.Exec(ctx, query, append([]any{l.follower, one.Lane, one.Epoch, l.holder}, more...)...)
			if err != nil {
				return err
			}
			if n, err := done.RowsAffected(); err != nil {
				return err
			} else if n == 0 && missed != nil {
				missed[one] = true
			}
		}
		return nil
	})
}

// Forget drops leases after one of them was lost to another process. The next Take takes those
// again that this process still holds.
func (l *Leases) Forget(leases ...Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range leases {
		if l.held[one.Lane] == one {
			delete(l.held, one.Lane)
			l.losses.Add(1)
		}
	}
}

// CheckLeases returns CodeLeaseLost (Conflict) if another process has taken one of the given
// leases. So a late holder cannot store anything.
func CheckLeases(ctx context.Context, tx *store.Tx, follower string, leases []Lease) error {
	for _, one := range leases {
		var by string
		var epoch, until int64
		err := tx.Get(ctx, []any{&by, &epoch, &until}, selectLease, follower, one.Lane)
		if ignoreNoRows(err) != nil {
			return err
		}
		if err != nil || epoch != one.Epoch {
			lost := fault.New(fault.Conflict, CodeLeaseLost, "the lease of a lane was lost").WithHint("another process sends this lane now")
			lost.Details = map[string]any{"lane": one.Lane}
			return lost
		}
	}
	return nil
}

func ignoreNoRows(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// isGone reports whether a holder of leases has ended: its file is missing or unlocked.
// An unlocked file is removed.
func isGone(s *store.Store, holder string) bool {
	if holder == "" || strings.ContainsAny(holder, `/\.`) {
		return false
	}
	path := holderFile(s, holder)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	unlock, err := locks.LockFile(ctx, path)
	if err != nil {
		return false
	}
	_ = os.Remove(path)
	_ = unlock()
	return true
}

// hasLeases reports whether the lanes of a follower were ever leased and a holder of leases is
// alive.
func hasLeases(ctx context.Context, s *store.Store, follower string) bool {
	leased := false
	err := s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&leased}, existsLease, follower)
	})
	return err == nil && leased && liveHolders(s) > 0
}

// RemoveStaleLocks removes the files of dead holders of leases, as a server does at its start.
// Files that cannot be removed stay.
func RemoveStaleLocks(s *store.Store) { liveHolders(s) }

// liveHolders counts the live holders of leases and removes the files of dead ones.
func liveHolders(s *store.Store) (n int) {
	files, err := os.ReadDir(filepath.Dir(s.Path()))
	if err != nil {
		return 0
	}
	prefix := filepath.Base(holderFile(s, ""))
	for _, f := range files {
		if holder, ok := strings.CutPrefix(f.Name(), prefix); ok && !isGone(s, holder) {
			n++
		}
	}
	return n
}
