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

// ReplaceConfig says which store is replaced.
type ReplaceConfig struct {
	Path     string           // the database file
	Key      []byte           // of an encrypted store, nil for a plain one
	Wait     time.Duration    // how long to wait for other processes; default 5 s
	Clock    func() time.Time // default time.Now
	Progress func(what string)
}

// What follows the database's name in the names of files that a Replace makes.
const (
	asideSuffix   = ".backup-"  // what it moved away
	incomerSuffix = "-restore-" // the new store, until it is complete
)

// Replace puts another store in the place of the one at c.Path, which it moves away
// to aside, PATH.backup-STAMP (with -wal, -shm and key check); "" if there was none.
// build makes the new store as one file at the path that it is given, under the same
// key. All other processes are kept out meanwhile. Whenever it is interrupted, the
// path holds either what it held or the complete new store; repeating it is safe.
//
// Errors, on which everything is as it was: those of build, CodeBusy if another
// process has the store open, CodeEncrypted, CodeKey, CodeFull, CodeReadOnly, CodeIO.
// Contract: mail §10.6.
func Replace(ctx context.Context, c ReplaceConfig, stamp string, build func(ctx context.Context, path string) error) (aside string, err error) {
	if c.Wait == 0 {
		c.Wait = 5 * time.Second
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	line := newLine(c.Path)
	c.Path = resolved(c.Path)
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return "", classify(err)
	}
	until := time.Now().Add(c.Wait)
	switch err := line.enter(ctx, until); {
	case errors.Is(err, errLine):
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

// keyOfOld is the key of the store that is moved away; one that is plain has none.
func keyOfOld(c ReplaceConfig) []byte {
	if exists(c.Path + cipherSuffix) {
		return c.Key
	}
	return nil
}

func removeIncomer(fresh string) error {
	return removeAll(fresh, fresh+"-wal", fresh+"-shm", fresh+"-lock", fresh+cipherSuffix, fresh+"-merged")
}

// bring swaps the two. The key check of an encrypted store must stand before its
// database does; alone it harms nothing.
func (c ReplaceConfig) bring(old *oldStore, fresh, aside string) error {
	if !isEmpty(fresh + "-wal") {
		return fmt.Errorf("%s: its log was not folded in", filepath.Base(fresh))
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
		} else if err := old.mendCheck(); err != nil {
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

// Counts is how many rows each table has.
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

// Numbers is, for each table that gives its rows numbers once, the highest that it
// ever gave; 0 if it gave none.
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

// Renumbered is how far a restored store's numbers lie above those of its backup, so
// that none is given again that the store gave after the backup (mail §10.6).
const Renumbered = 100_000

// GoOnAnew prepares a store that was copied earlier to go on in place of the one it
// was copied from: every number that it gives next lies Renumbered above those that
// it gave, and above the given ones; its changes are those of a new device, since
// others may have seen later ones of the former; and a change of kind "restore" in
// the stream "store" tells followers. note is kept in the store under "restored".
func (t *Tx) GoOnAnew(ctx context.Context, above map[string]int64, note string) error {
	numbers, err := t.Numbers(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		n := max(numbers[name]+Renumbered, above[name]+1)
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
	if _, err := t.Exec(ctx, deletePlaces); err != nil { // the backup may be another machine's
		return err
	}
	if _, err := t.Exec(ctx, insertGap, "restored", note); err != nil {
		return err
	}
	doc, err := json.Marshal(map[string]any{"above": Renumbered})
	if err != nil {
		return err
	}
	_, err = t.Append(ctx, Change{Stream: "store", Kind: "restore", ID: NewID(), Op: OpPut, Doc: doc})
	return err
}

// Restored is the note of the last GoOnAnew, "" if there was none.
func (t *Tx) Restored(ctx context.Context) (note string, err error) {
	err = t.Get(ctx, []any{&note}, `SELECT value FROM store_meta WHERE name = 'restored'`)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return note, err
}
