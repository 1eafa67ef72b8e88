package salvage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cairn/internal/fault"
	"cairn/internal/sqlitefile"
	"cairn/internal/store"
	"cairn/internal/store/disk"
	"cairn/internal/store/encryption"
	"cairn/internal/store/locks"
)

// Config configures Run.
type Config struct {
	Path  string           // the database file
	Key   []byte           // of an encrypted store, KeySize bytes; ignored for a plain one
	Wait  time.Duration    // how long to wait for other processes; default 5 s
	Clock func() time.Time // default time.Now

	// Check and Repair are the parts' functions for work that SQL alone cannot do; both may be
	// nil. Check reports damage in a store that opens, like Store.Check. Repair repairs the
	// kept rows: values that must be derived from other rows, and indexes that only a part can
	// build. It calls altered for a row that it keeps with an altered text.
	Check  func(ctx context.Context, s *store.Store) ([]string, error)
	Repair func(ctx context.Context, s *store.Store, altered func(table string, id int64)) error

	Progress func(what string) // if set, is called with the present step
}

// Report is the result of a salvage.
type Report struct {
	Damage   []string `json:"damage"`   // findings, none for an intact or missing store
	Kept     string   `json:"kept"`     // new path of the damaged file, "" if nothing was done
	Unread   int      `json:"unread"`   // number of unreadable pages
	Gaps     int      `json:"gaps"`     // number of breaks in the change log's chain
	Tables   []Table  `json:"tables"`   // by name
	Restored int64    `json:"restored"` // rows rebuilt, of all tables
	Lost     int64    `json:"lost"`     // rows lost, of all tables
}

// Table is the result of a salvage for one table.
type Table struct {
	Name     string `json:"name"`
	Kept     int64  `json:"kept"`
	Restored int64  `json:"restored"` // rows rebuilt from indexes, from the change log and from rows that refer to them
	Lost     int64  `json:"lost"`     // rows known to have existed; for tables without a second index the minimum

	// LostRows and AlteredRows identify rows by their numbers ("7", "12-15"), or by the
	// columns of the primary key, separated by slashes. A lost row may be unidentified.
	// An altered row is kept, with an altered text.
	LostRows    []string `json:"lost_rows,omitempty"`
	AlteredRows []string `json:"altered_rows,omitempty"`

	// Incomplete means that parts of the table and of its indexes cannot be read, so more
	// rows may be lost than Lost counts. UnknownRows are the possible numbers of such
	// rows, if the store shows which numbers were assigned: these rows are lost, or were
	// deleted before.
	Incomplete  bool     `json:"incomplete,omitempty"`
	UnknownRows []string `json:"unknown_rows,omitempty"`
}

// Run replaces a damaged store with a new one that contains everything that can still
// be read, with the same ids. It keeps the damaged files byte for byte next to it as
// PATH.bak-damaged-TIME (with -wal, -shm and key check). They are part of Copies, which a
// purge deletes. An intact or missing store stays unchanged, and Damage is empty. Nothing
// is deleted. An encrypted store stays encrypted and is never written in plain. Gaps in
// the change log are noted in the store, so that Check accepts them, and a change of kind
// "salvage" notifies followers.
//
// Other processes are blocked meanwhile. Run is atomic: after an interruption the path
// holds either the old store or the complete new one. It is safe to retry.
//
// After an error nothing has changed. Errors: CodeEncrypted without a key, CodeKey with a
// wrong key, CodeBusy if another process has the store open, CodeNewer, CodeForeign,
// CodeFull, CodeReadOnly, CodeIO. Contract: observations §11.4, §13.
func Run(ctx context.Context, c Config) (out Report, err error) {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Wait == 0 {
		c.Wait = 5 * time.Second
	}
	if c.Key, err = store.KeyFor(c.Path, c.Key); err != nil {
		return out, err
	}
	if _, err := encryption.Finish(ctx, c.Path, c.Wait); err != nil { // finishes an interrupted Encrypt
		return out, err
	}
	line := locks.NewFair(c.Path)
	if c.Path = disk.Resolve(c.Path); disk.IsEmpty(c.Path) && disk.IsEmpty(c.Path+"-wal") {
		return out, nil
	}
	if out.Damage, err = damageOf(ctx, c); err != nil || len(out.Damage) == 0 {
		return out, store.Explain(err)
	}
	until := time.Now().Add(c.Wait)
	switch err := line.Enter(ctx, until); {
	case errors.Is(err, locks.ErrNotGranted):
		return out, openElsewhere(err)
	case err != nil:
		return out, store.Explain(err)
	}
	defer line.Leave()
	old, err := openOld(ctx, c.Path, c.Key, until)
	if err != nil {
		return out, store.Explain(err)
	}
	defer func() { err = store.Explain(errors.Join(err, old.close())) }()
	if err := removeAbandoned(c.Path); err != nil {
		return out, err
	}
	if err := salvageInto(ctx, c, old, &out); err != nil {
		if f := fault.As(store.Explain(err)); f.Kind == fault.Internal && ctx.Err() == nil {
			return out, fault.Wrap(err, fault.Internal, f.Code, f.Message).WithHint(otherWays)
		}
		return out, err
	}
	return out, nil
}

// otherWays is the hint for a user whose store a salvage cannot repair.
const otherWays = "the store is unchanged; `cairn restore` replaces it with a backup; without a backup, move cairn.db and the files next to it away, " +
	"then `cairn import` and `cairn reconcile --reindex` rebuild what transcripts and the archive contain"

// removeAbandoned removes the unfinished files of an interrupted salvage.
func removeAbandoned(path string) error {
	files, err := disk.Files(path)
	for _, f := range files {
		if f.Role == disk.Abandoned {
			err = errors.Join(err, disk.RemoveAll(f.Path))
		}
	}
	return err
}

// damageOf returns the damage of a store, none for an intact one.
func damageOf(ctx context.Context, c Config) ([]string, error) {
	if found, err := store.LogDamage(c.Path, c.Key); err != nil || len(found) > 0 {
		return found, err
	}
	s, err := store.Examine(ctx, store.Config{Path: c.Path, Key: c.Key, Wait: c.Wait, Clock: c.Clock})
	if err == nil {
		var found []string
		found, err = s.Check(ctx)
		if err == nil && len(found) == 0 && c.Check != nil {
			found, err = c.Check(ctx, s)
		}
		if cerr := s.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			return found, nil
		}
	}
	// Any other internal error of reading is damage too, such as an impossible length.
	if f := fault.As(store.Explain(err)); f.Kind == fault.Internal && ctx.Err() == nil {
		return []string{f.Message}, nil
	}
	return nil, err
}

func openElsewhere(err error) error {
	return fault.Wrap(err, fault.Unavailable, store.CodeBusy, "another process has the store open").
		WithHint("end the agents' sessions and try again")
}

// oldStore is the store to replace, locked against other processes.
type oldStore struct {
	*disk.Raw
	locked []*os.File
}

func (o *oldStore) close() error { return disk.CloseAll(append(o.locked, o.DB, o.Log)...) }

// repairCheck writes the key check of an encrypted store again unless it fits the key.
func (o *oldStore) repairCheck() error {
	if o.Key == nil {
		return nil
	}
	if fits, _ := disk.KeyCheckFits(o.Path, o.Key); fits { // any error means that it must be written again
		return nil
	}
	return disk.WriteKeyCheck(o.Path, o.Key)
}

// openOld opens the damaged files and waits until no other process has them open.
func openOld(ctx context.Context, path string, key []byte, until time.Time) (o *oldStore, err error) {
	raw, err := disk.OpenRaw(path, key, os.O_RDWR) // required for a lock
	if err != nil {
		return nil, err
	}
	o = &oldStore{Raw: raw}
	for o.DB != nil {
		alone, err := locks.Exclusive(o.DB)
		if alone {
			return o, nil
		}
		if err == nil && !locks.Pause(ctx, until) {
			err = openElsewhere(nil)
		}
		if err != nil {
			return nil, errors.Join(err, o.close())
		}
	}
	return o, nil
}

// salvageInto builds the new store next to the old one and swaps the two. After an error
// it has removed its files.
func salvageInto(ctx context.Context, c Config, old *oldStore, out *Report) error {
	image, err := old.Image()
	if err != nil {
		return err
	}
	version, err := store.ImageSchema(image)
	if err != nil {
		return err
	}
	out.Unread = image.Damaged
	stamp := c.Clock().UTC().Format("20060102T150405.000000000Z")
	fresh := c.Path + disk.SalvageSuffix + stamp
	made := []string{fresh, fresh + "-wal", fresh + "-shm", fresh + "-lock", fresh + disk.CipherSuffix, fresh + "-merged"}
	if err := build(ctx, c, image, version, fresh, out); err != nil {
		return errors.Join(err, disk.RemoveAll(made...))
	}
	kept := c.Path + disk.DamagedSuffix + stamp
	if err := old.repairCheck(); err != nil {
		return errors.Join(err, disk.RemoveAll(made...))
	}
	if err := swap(old, image, fresh, kept, c.report); err != nil {
		return errors.Join(err, disk.RemoveAll(made...))
	}
	out.Kept = kept
	return disk.RemoveAll(made...)
}

func (c *Config) report(what string) {
	if c.Progress != nil {
		c.Progress(what)
	}
}

// build creates the new store, complete and on disk in one file. It copies the rows into
// a store of their schema, which is then migrated like any older store.
func build(ctx context.Context, c Config, image *sqlitefile.Image, version int, path string, out *Report) error {
	config := store.Config{Path: path, Key: c.Key, Clock: c.Clock, Temporary: true}
	var inventory *inventory
	err := store.CreateOlder(ctx, config, version, func(ctx context.Context, conn *sql.Conn) (err error) {
		inventory, err = fillFrom(ctx, c, conn, image, out)
		return err
	})
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, config)
	if err != nil {
		return err
	}
	if err == nil {
		err = blankAltered(ctx, s)
	}
	if err == nil && c.Repair != nil {
		c.report("repairing")
		err = c.Repair(ctx, s, inventory.alter)
	}
	if err == nil {
		err = noteSalvage(ctx, s, inventory, out)
	}
	if err == nil {
		err = c.verify(ctx, s)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	if !disk.IsEmpty(path + "-wal") {
		return fmt.Errorf("%s: its log was not checkpointed", filepath.Base(path))
	}
	return disk.Sync(path)
}

// verify returns an error if the new store is not intact.
func (c *Config) verify(ctx context.Context, s *store.Store) error {
	c.report("checking the new store")
	found, err := s.Check(ctx)
	if err == nil && len(found) == 0 && c.Check != nil {
		found, err = c.Check(ctx, s)
	}
	if err == nil && len(found) > 0 {
		err = fault.Newf(fault.Internal, "internal", "a defect in cairn: the salvaged store is not intact: %s", found[0])
	}
	return err
}
