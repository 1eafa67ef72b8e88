package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cairn/internal/regular"
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

// Suffixes of the files of a Replace, after the database's name.
const (
	asideSuffix   = ".backup-"  // the old files
	incomerSuffix = "-restore-" // the new store, until it is complete
)

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
	line := newFairLock(c.Path)
	c.Path = resolved(c.Path)
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return "", classify(err)
	}
	until := time.Now().Add(c.Wait)
	switch err := line.enter(ctx, until); {
	case errors.Is(err, errNotGranted):
		return "", openElsewhere(err)
	case err != nil:
		return "", classify(err)
	}
	defer line.leave()
	old, err := openOld(ctx, SalvageConfig{Path: c.Path, Key: keyOfOld(c)}, until)
	if err != nil {
		return "", classify(err)
	}
	defer func() { err = classify(errors.Join(err, old.close())) }()
	if err := removeAbandoned(c.Path); err != nil {
		return "", err
	}
	fresh := c.Path + incomerSuffix + stamp
	if err := build(ctx, fresh); err != nil {
		return "", errors.Join(err, removeIncomer(fresh))
	}
	aside = c.Path + asideSuffix + stamp
	if err := c.bring(old, fresh, aside); err != nil {
		return "", errors.Join(err, removeIncomer(fresh))
	}
	if old.db == nil {
		aside = ""
	}
	return aside, removeIncomer(fresh)
}

// keyOfOld returns the key of the old store, nil for a plain one.
func keyOfOld(c ReplaceConfig) []byte {
	if exists(c.Path + cipherSuffix) {
		return c.Key
	}
	return nil
}

func removeIncomer(fresh string) error {
	return removeAll(fresh, fresh+"-wal", fresh+"-shm", fresh+"-lock", fresh+cipherSuffix, fresh+"-merged")
}

// bring swaps the two stores. The key check of an encrypted store must exist before its
// database; without a database it is harmless.
func (c ReplaceConfig) bring(old *oldStore, fresh, aside string) error {
	if !isEmpty(fresh + "-wal") {
		return fmt.Errorf("%s: its log was not checkpointed", filepath.Base(fresh))
	}
	if err := syncFile(fresh); err != nil {
		return err
	}
	if c.Key != nil {
		check, err := regular.Read(fresh+cipherSuffix, regular.MaxSettings)
		if err != nil {
			return err
		}
		if old.db == nil {
			if err := errors.Join(removeAll(c.Path+cipherSuffix), wholefile.Write(c.Path+cipherSuffix, check, 0o600)); err != nil {
				return err
			}
		} else if err := old.repairCheck(); err != nil {
			return err
		}
	}
	image, err := old.read()
	if err != nil {
		return err
	}
	return swap(old, image, fresh, aside, c.Progress)
}

const (
	listCounted  = `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`
	listNumbered = `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%' ORDER BY name`
)

// Counts returns the number of rows of each table.
func (t *Tx) Counts(ctx context.Context) (map[string]int64, error) {
	names, err := t.names(ctx, listCounted)
	out := map[string]int64{}
	for _, name := range names {
		var n int64
		if err := t.Get(ctx, []any{&n}, `SELECT count(*) FROM `+quoted(name)); err != nil {
			return nil, err
		}
		out[name] = n
	}
	return out, err
}

// Numbers returns, for each table with unique row numbers (AUTOINCREMENT), the highest
// one ever assigned, or 0.
func (t *Tx) Numbers(ctx context.Context) (map[string]int64, error) {
	names, err := t.names(ctx, listNumbered)
	out := map[string]int64{}
	for _, name := range names {
		out[name] = 0
	}
	if err != nil {
		return nil, err
	}
	return out, t.Each(ctx, func(r *sql.Rows) error {
		var name string
		var n int64
		err := r.Scan(&name, &n)
		out[name] = n
		return err
	}, selectNumbered)
}

func (t *Tx) names(ctx context.Context, query string) (list []string, err error) {
	err = t.Each(ctx, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		list = append(list, name)
		return err
	}, query)
	return list, err
}

// RestoreIDOffset is the offset between the highest ids of a backup and the next ids of the
// restored store. So the store does not reuse ids that it assigned after the backup (mail
// §10.6).
const RestoreIDOffset = 100_000

// StartAfterRestore prepares an older copy of a store to replace the original. Its next ids
// are RestoreIDOffset above those that it assigned and above the given ones. Its changes get a
// new device, because other devices may have received later changes of the former one. A
// change of kind "restore" in the stream "store" notifies followers. note is stored under
// "restored".
func (t *Tx) StartAfterRestore(ctx context.Context, above map[string]int64, note string) error {
	numbers, err := t.Numbers(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		n := max(numbers[name]+RestoreIDOffset, above[name]+1)
		for _, query := range []string{updateNumber, insertNumber} {
			if _, err := t.Exec(ctx, query, n, name); err != nil {
				return err
			}
		}
	}
	if _, err := t.device(ctx); err != nil {
		return err
	}
	if _, err := t.renew(ctx, Incarnation{Reason: ReasonRestored}, 0); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, deletePlaces); err != nil { // the backup may be from another machine
		return err
	}
	if _, err := t.Exec(ctx, insertGap, "restored", note); err != nil {
		return err
	}
	doc, err := json.Marshal(map[string]any{"above": RestoreIDOffset})
	if err != nil {
		return err
	}
	_, err = t.Append(ctx, Change{Stream: "store", Kind: "restore", ID: NewID(), Op: OpPut, Doc: doc})
	return err
}

// Restored returns the note of the last StartAfterRestore, "" if there was none.
func (t *Tx) Restored(ctx context.Context) (note string, err error) {
	err = t.Get(ctx, []any{&note}, `SELECT value FROM store_meta WHERE name = 'restored'`)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return note, err
}
