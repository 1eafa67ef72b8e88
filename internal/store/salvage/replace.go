package salvage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cairn/internal/regular"
	"cairn/internal/store"
	"cairn/internal/store/disk"
	"cairn/internal/store/locks"
	"cairn/internal/wholefile"
)

// ReplaceConfig configures Replace.
type ReplaceConfig struct {
	Path     string           // the database file
	Key      []byte           // of an encrypted store, nil for a plain one
	Wait     time.Duration    // how long to wait for other processes; default 5 s
	Clock    func() time.Time // default time.Now
	Progress func(what string)
}

// Replace replaces the store at c.Path with another one. It moves the old store to
// PATH.backup-STAMP (with -wal, -shm and key check) and returns that path as aside, "" if
// there was no store. build must create the new store as one file at the given path, with the
// same key. Other processes are blocked meanwhile. Replace is atomic: after an interruption
// the path holds either the old store or the complete new one. It is safe to retry.
//
// After an error nothing has changed. Errors: those of build, CodeBusy if another process
// has the store open, CodeEncrypted, CodeKey, CodeFull, CodeReadOnly, CodeIO. Contract:
// mail §10.6.
func Replace(ctx context.Context, c ReplaceConfig, stamp string, build func(ctx context.Context, path string) error) (aside string, err error) {
	if c.Wait == 0 {
		c.Wait = 5 * time.Second
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	line := locks.NewFair(c.Path)
	c.Path = disk.Resolve(c.Path)
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return "", store.Explain(err)
	}
	until := time.Now().Add(c.Wait)
	switch err := line.Enter(ctx, until); {
	case errors.Is(err, locks.ErrNotGranted):
		return "", openElsewhere(err)
	case err != nil:
		return "", store.Explain(err)
	}
	defer line.Leave()
	old, err := openOld(ctx, c.Path, keyOfOld(c), until)
	if err != nil {
		return "", store.Explain(err)
	}
	defer func() { err = store.Explain(errors.Join(err, old.close())) }()
	if err := removeAbandoned(c.Path); err != nil {
		return "", err
	}
	fresh := c.Path + disk.RestoreSuffix + stamp
	if err := build(ctx, fresh); err != nil {
		return "", errors.Join(err, removeIncomer(fresh))
	}
	aside = c.Path + disk.AsideSuffix + stamp
	if err := c.bring(old, fresh, aside); err != nil {
		return "", errors.Join(err, removeIncomer(fresh))
	}
	if old.DB == nil {
		aside = ""
	}
	return aside, removeIncomer(fresh)
}

// keyOfOld returns the key of the old store, nil for a plain one.
func keyOfOld(c ReplaceConfig) []byte {
	if disk.Exists(c.Path + disk.CipherSuffix) {
		return c.Key
	}
	return nil
}

func removeIncomer(fresh string) error {
	return disk.RemoveAll(fresh, fresh+"-wal", fresh+"-shm", fresh+"-lock", fresh+disk.CipherSuffix, fresh+"-merged")
}

// bring swaps the two stores. The key check of an encrypted store must exist before its
// database; without a database it is harmless.
func (c ReplaceConfig) bring(old *oldStore, fresh, aside string) error {
	if !disk.IsEmpty(fresh + "-wal") {
		return fmt.Errorf("%s: its log was not checkpointed", filepath.Base(fresh))
	}
	if err := disk.Sync(fresh); err != nil {
		return err
	}
	if c.Key != nil {
		check, err := regular.Read(fresh+disk.CipherSuffix, regular.MaxSettings)
		if err != nil {
			return err
		}
		if old.DB == nil {
			if err := errors.Join(disk.RemoveAll(c.Path+disk.CipherSuffix), wholefile.Write(c.Path+disk.CipherSuffix, check, 0o600)); err != nil {
				return err
			}
		} else if err := old.repairCheck(); err != nil {
			return err
		}
	}
	image, err := old.Image()
	if err != nil {
		return err
	}
	return swap(old, image, fresh, aside, c.Progress)
}
