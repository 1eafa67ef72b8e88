package cairn

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"cairn/internal/copies"
	"cairn/internal/fault"
	"cairn/internal/repair"
	"cairn/internal/store"
)

// serverState is the state of this process as a server.
type serverState struct {
	host *string // where it listens, nil if it does not
	port *int

	checked time.Time // when the store was last looked through, zero before
	damage  error     // what was found then
	damages int64     // how often damage was met by stores that are closed, or could not be opened

	waits   [2]store.Distribution // for connections, until five to ten minutes ago, and until five ago at most
	rotated time.Time             // when the second was taken
}

// recentFor is for how long at least a wait for a connection is a recent one; for
// twice as long at most.
const recentFor = 5 * time.Minute

// rotate forgets waits that are no longer recent.
func (c *Cairn) rotate(s *store.Store) {
	now, all := time.Now(), s.Pool().Acquired
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := &c.serverState; now.Sub(a.rotated) >= recentFor {
		a.waits[0], a.waits[1], a.rotated = a.waits[1], all, now
	}
}

func (c *Cairn) stateOfServer() serverState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serverState
}

// Listening notes where this process answers over HTTP, for HealthCheck.
func (c *Cairn) Listening(host string, port int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serverState.host, c.serverState.port = &host, &port
}

// How servers look after the soundness of the store (mail §10.6).
const (
	checkEvery = 24 * time.Hour
	startLimit = 2 * time.Second // for which a start waits for the check of a large store
)

// CheckIntegrity looks through the pages of the store (PRAGMA quick_check) and notes
// what it found. Without a store there is nothing to find; one that cannot be opened
// for another reason than damage was not looked through, which is no error here.
//
// Errors: store.CodeCorrupt (Internal), whose hint names what repairs.
func (c *Cairn) CheckIntegrity(ctx context.Context) error {
	s, err := c.opened(ctx, false)
	if err == nil && s == nil {
		return nil
	}
	var found []string
	if err == nil {
		found, err = s.QuickCheck(ctx)
	}
	switch {
	case len(found) > 0:
		err = damaged("the store is damaged: "+repair.Summary(found), err)
	case fault.HasCode(err, store.CodeCorrupt):
		if s == nil {
			c.addDamage(1)
		}
		err = damaged(errorText(err), err)
	case err != nil:
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serverState.checked, c.serverState.damage = time.Now(), err
	return err
}

// addDamage counts damage that no open store counts itself.
func (c *Cairn) addDamage(damages int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serverState.damages += damages
}

// IntegrityErrors is how often this process has met damage of the store: whoever read
// or wrote, and each finding of CheckIntegrity (memories §14). It opens nothing.
func (c *Cairn) IntegrityErrors() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.serverState.damages
	if c.store != nil {
		n += c.store.Damages()
	}
	return n
}

func damaged(what string, err error) error {
	return fault.Wrap(err, fault.Internal, store.CodeCorrupt, fmt.Sprintf("%.120s", what)).
		WithHint("`cairn doctor --salvage`, `cairn restore` or `cairn reconcile --reindex` repairs it; serve --auto-restore restores the newest intact backup")
}

// IntegrityMonitor looks after the soundness of the store while a server runs.
type IntegrityMonitor struct {
	cairn *Cairn
	first chan error // how the check at the start ended
}

// StartIntegrityMonitor checks the store as a server starts, and waits for the result for two seconds
// at most: the check of a large store goes on while it serves already. Attend must
// follow.
//
// Errors: those of CheckIntegrity.
func (c *Cairn) Begin(ctx context.Context) (*IntegrityMonitor, error) {
	w := &IntegrityMonitor{cairn: c, first: make(chan error, 1)}
	go func() { w.first <- c.CheckIntegrity(ctx) }()
	t := time.NewTimer(startLimit)
	defer t.Stop()
	select {
	case err := <-w.first:
		w.first <- nil
		return w, err
	case <-t.C:
	}
	return w, nil
}

// Attend goes on with the check that StartIntegrityMonitor began, and repeats it every 24 hours until
// ctx ends; then it returns nil.
//
// Errors: those of CheckIntegrity, on which a server ends.
func (w *IntegrityMonitor) Attend(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	err := <-w.first
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			err = w.cairn.CheckIntegrity(ctx)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// RestoreNewest puts the newest sound backup of the folder of backups in the place of
// the store (see RestoreBackup); what was there is moved away, whatever changes it had
// after the backup. Backups that are not sound are told to log and passed over.
//
// Errors: store.CodeCorrupt (Internal) without a sound backup; those of RestoreBackup.
func (c *Cairn) RestoreNewest(ctx context.Context, log *slog.Logger, progress func(what string)) (copies.Restored, error) {
	if err := c.reopen(); err != nil {
		return copies.Restored{}, err
	}
	backups, err := c.Backups().List(ctx)
	if err != nil {
		return copies.Restored{}, err
	}
	for _, b := range backups {
		progress("verifying " + b.File)
		v, err := c.Backups().Verify(ctx, b.File)
		switch {
		case ctx.Err() != nil:
			return copies.Restored{}, ctx.Err()
		case err != nil:
			log.Warn("a backup could not be verified", "file", b.File, "error", err)
		case !v.OK:
			log.Warn("a backup is not sound", "file", b.File, "problem", v.Problem)
		case !v.Content:
			log.Warn("a backup is encrypted, and there is no key that fits", "file", b.File)
		default:
			return c.Backups().Restore(ctx, copies.RestoreArgs{File: b.File, Force: true, Progress: progress})
		}
	}
	return copies.Restored{}, fault.New(fault.Internal, store.CodeCorrupt, "the store is damaged, and there is no intact backup in "+c.Backups().Folder()).
		WithHint("`cairn doctor --salvage` or `cairn reconcile --reindex` may repair it")
}

// reopen closes the store, which the next use opens again.
func (c *Cairn) reopen() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.store
	c.store = nil
	if s == nil {
		return nil
	}
	c.serverState.damages += s.Damages()
	return s.Close()
}
