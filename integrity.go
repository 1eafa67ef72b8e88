package cairn

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"cairn/internal/copies"
	"cairn/internal/fault"
	"cairn/internal/measure"
	"cairn/internal/repair"
	"cairn/internal/store"
)

// serverState is the state of this process as a server.
type serverState struct {
	host *string // the address of the listener, nil if there is none
	port *int

	checked time.Time // time of the last check of the store, zero before it
	damage  error     // the result of that check
	damages int64     // damage found in stores that are closed or could not be opened

	waits   [2]measure.Distribution // waits for connections until five to ten minutes ago, and until at most five minutes ago
	rotated time.Time               // time of the second distribution
}

// recentFor is the minimum time for which a wait for a connection counts as recent. The
// maximum is twice as long.
const recentFor = 5 * time.Minute

// rotate removes waits that are no longer recent.
func (c *Cairn) rotate(s *store.Store) {
	now, all := time.Now(), s.Pool().Acquired
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := &c.serverState; now.Sub(a.rotated) >= recentFor {
		a.waits[0], a.waits[1], a.rotated = a.waits[1], all, now
	}
}

func (c *Cairn) readServerState() serverState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serverState
}

// Listening sets the HTTP address of this process for HealthCheck.
func (c *Cairn) Listening(host string, port int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serverState.host, c.serverState.port = &host, &port
}

// Times of the integrity checks of servers (mail §10.6).
const (
	checkEvery = 24 * time.Hour
	startLimit = 2 * time.Second // maximum wait of a start for the check of a large store
)

// CheckIntegrity checks the pages of the store (PRAGMA quick_check) and notes the result.
// A missing store is not an error. A store that cannot be opened for a reason other than
// damage is not checked, which is not an error either.
//
// Errors: store.CodeCorrupt (Internal), whose hint names the repair commands.
func (c *Cairn) CheckIntegrity(ctx context.Context) error {
	s, err := c.Opened(ctx, false)
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

// addDamage counts damage outside an open store, which counts its own.
func (c *Cairn) addDamage(damages int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serverState.damages += damages
}

// IntegrityErrors returns how often this process has found damage of the store: in reads,
// writes and CheckIntegrity (memories §14). It does not open the store.
func (c *Cairn) IntegrityErrors() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.serverState.damages
	if s := c.Current(); s != nil {
		n += s.Damages()
	}
	return n
}

func damaged(what string, err error) error {
	return fault.Wrap(err, fault.Internal, store.CodeCorrupt, fmt.Sprintf("%.120s", what)).
		WithHint("`cairn doctor --salvage`, `cairn restore` or `cairn reconcile --reindex` repairs it; serve --auto-restore restores the newest intact backup")
}

// IntegrityMonitor checks the store while a server runs.
type IntegrityMonitor struct {
	cairn *Cairn
	first chan error // result of the check at the start
}

// StartIntegrityMonitor starts the check of the store at the start of a server. It waits
// for the result for two seconds at most: the check of a large store continues while the
// server already serves. The caller must then call IntegrityMonitor.Run.
//
// Errors: those of CheckIntegrity.
func (c *Cairn) StartIntegrityMonitor(ctx context.Context) (*IntegrityMonitor, error) {
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

// Run waits for the check of StartIntegrityMonitor and repeats it every 24 hours until ctx
// ends; then it returns nil.
//
// Errors: those of CheckIntegrity. The server must then end.
func (w *IntegrityMonitor) Run(ctx context.Context) error {
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

// RestoreNewest replaces the store by the newest intact backup in the folder of backups
// (see RestoreBackup). The present store is renamed, even if it has changes after the
// backup. Damaged backups are logged and skipped.
//
// Errors: store.CodeCorrupt (Internal) without an intact backup; those of RestoreBackup.
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
			log.Warn("a backup is damaged", "file", b.File, "problem", v.Problem)
		case !v.Content:
			log.Warn("a backup is encrypted, and no key matches", "file", b.File)
		default:
			return c.Backups().Restore(ctx, copies.RestoreArgs{File: b.File, Force: true, Progress: progress})
		}
	}
	return copies.Restored{}, fault.New(fault.Internal, store.CodeCorrupt, "the store is damaged, and there is no intact backup in "+c.Backups().Folder()).
		WithHint("`cairn doctor --salvage` or `cairn reconcile --reindex` may repair it")
}

// reopen closes the store. The next use opens it again.
func (c *Cairn) reopen() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.Current(); s != nil {
		c.serverState.damages += s.Damages()
	}
	return c.Workspace.Close()
}
