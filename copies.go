package cairn

import (
	"context"
	"io"
	"time"

	"cairn/internal/copies"
	"cairn/internal/fault"
	"cairn/internal/store"
)

// Export writes projects to w; see copies.Export. Errors: those of copies.Export, and
// NotFound with store.CodeMissing without a store.
func (c *Cairn) Export(ctx context.Context, w io.Writer, a copies.ExportArgs) (copies.ExportReport, error) {
	s, err := c.existingStore(ctx)
	if err != nil {
		return copies.ExportReport{}, err
	}
	return copies.Export(ctx, s, c.Location, w, a)
}

// ExportTo writes projects to a file; see copies.ExportTo. Errors: those of
// copies.ExportTo, and NotFound with store.CodeMissing without a store.
func (c *Cairn) ExportTo(ctx context.Context, path string, a copies.ExportArgs) (copies.ExportReport, error) {
	s, err := c.existingStore(ctx)
	if err != nil {
		return copies.ExportReport{}, err
	}
	return copies.ExportTo(ctx, s, c.Location, path, a)
}

// existingStore returns the store. Errors: NotFound with store.CodeMissing if it does not
// exist.
func (c *Cairn) existingStore(ctx context.Context) (*store.Store, error) {
	s, err := c.Opened(ctx, false)
	if err == nil && s == nil {
		err = fault.New(fault.NotFound, store.CodeMissing, "there is no store yet")
	}
	return s, err
}

// Backup creates a backup; see copies.Keeper.Backup. Errors: those of Keeper.Backup, and
// NotFound with store.CodeMissing without a store.
func (c *Cairn) Backup(ctx context.Context, a copies.BackupArgs) (copies.BackupReport, error) {
	s, err := c.existingStore(ctx)
	if err != nil {
		return copies.BackupReport{}, err
	}
	return c.Backups().Backup(ctx, s, c.Key(), a)
}

// Backups returns the backups of this store.
func (c *Cairn) Backups() copies.Keeper {
	k := copies.Keeper{DB: c.Config.DB, Dir: c.Config.Dir, Wait: c.Config.Wait, Clock: c.Config.Clock, Key: func() ([]byte, error) {
		key, err := c.LoadKey()
		return key.Bytes, err
	}}
	if k.Clock == nil {
		k.Clock = time.Now
	}
	return k
}

// RestoreBackup replaces the present data by a backup; see copies.Keeper.Restore. It works
// with invalid settings, as a salvage does.
func RestoreBackup(ctx context.Context, config Config, a copies.RestoreArgs) (copies.Restored, error) {
	c, _ := openDespiteSettings(config.WithDB())
	return c.Backups().Restore(ctx, a)
}

// FinishRestore completes an interrupted restore; see copies.Keeper.FinishRestore. It opens
// the store only if there is a restore to complete.
func (c *Cairn) FinishRestore(ctx context.Context) error {
	coming, err := c.Backups().RestoresUnderWay()
	if err != nil || len(coming) == 0 {
		return err
	}
	s, err := c.Opened(ctx, false)
	if err != nil {
		return err
	}
	return c.Backups().FinishRestore(ctx, s)
}
