package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cairn/internal/fault"
	"cairn/internal/sqlitefile"
	"cairn/internal/store/gosqlite"
)

// SalvageConfig configures Salvage.
type SalvageConfig struct {
	Path  string           // the database file
	Key   []byte           // of an encrypted store, KeySize bytes; ignored for a plain one
	Wait  time.Duration    // how long to wait for other processes; default 5 s
	Clock func() time.Time // default time.Now

	// Check and Repair are the parts' functions for work that SQL alone cannot do; both may be
	// nil. Check reports damage in a store that opens, like Store.Check. Repair repairs the
	// kept rows: values that must be derived from other rows, and indexes that only a part can
	// build. It calls altered for a row that it keeps with an altered text.
	Check  func(ctx context.Context, s *Store) ([]string, error)
	Repair func(ctx context.Context, s *Store, altered func(table string, id int64)) error

	Progress func(what string) // if set, is called with the present step
}

// Suffixes of the files of a salvage, after the database's name.
const (
	damagedSuffix  = backupSuffix + "-damaged-" // the damaged files
	buildingSuffix = "-salvage-"                // the new store, until it is complete
)

// Salvaged is the result of a salvage.
type Salvaged struct {
	Damage   []string        `json:"damage"`   // findings, none for an intact or missing store
	Kept     string          `json:"kept"`     // new path of the damaged file, "" if nothing was done
	Unread   int             `json:"unread"`   // number of unreadable pages
	Gaps     int             `json:"gaps"`     // number of breaks in the change log's chain
	Tables   []SalvagedTable `json:"tables"`   // by name
	Restored int64           `json:"restored"` // rows rebuilt, of all tables
	Lost     int64           `json:"lost"`     // rows lost, of all tables
}

// SalvagedTable is the result of a salvage for one table.
type SalvagedTable struct {
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

// Salvage replaces a damaged store with a new one that contains everything that can still
// be read, with the same ids. It keeps the damaged files byte for byte next to it as
// PATH.bak-damaged-TIME (with -wal, -shm and key check). They are part of Copies, which a
// purge deletes. An intact or missing store stays unchanged, and Damage is empty. Nothing
// is deleted. An encrypted store stays encrypted and is never written in plain. Gaps in
// the change log are noted in the store, so that Check accepts them, and a change of kind
// "salvage" notifies followers.
//
// Other processes are blocked meanwhile. Salvage is atomic: after an interruption the path
// holds either the old store or the complete new one. It is safe to retry.
//
// After an error nothing has changed. Errors: CodeEncrypted without a key, CodeKey with a
// wrong key, CodeBusy if another process has the store open, CodeNewer, CodeForeign,
// CodeFull, CodeReadOnly, CodeIO. Contract: observations §11.4, §13.
func Salvage(ctx context.Context, c SalvageConfig) (out Salvaged, err error) {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Wait == 0 {
		c.Wait = 5 * time.Second
	}
	if c.Key, err = keyFor(c.Path, c.Key); err != nil {
		return out, err
	}
	if _, err := Encrypted(ctx, c.Path, c.Wait); err != nil { // finishes an interrupted Encrypt
		return out, err
	}
	line := newFairLock(c.Path)
	if c.Path = resolved(c.Path); isEmpty(c.Path) && isEmpty(c.Path+"-wal") {
		return out, nil
	}
	if out.Damage, err = damageOf(ctx, c); err != nil || len(out.Damage) == 0 {
		return out, classify(err)
	}
	until := time.Now().Add(c.Wait)
	switch err := line.enter(ctx, until); {
	case errors.Is(err, errNotGranted):
		return out, openElsewhere(err)
	case err != nil:
		return out, classify(err)
	}
	defer line.leave()
	old, err := openOld(ctx, c, until)
	if err != nil {
		return out, classify(err)
	}
	defer func() { err = classify(errors.Join(err, old.close())) }()
	if err := removeAbandoned(c.Path); err != nil {
		return out, err
	}
	if err := salvageInto(ctx, c, old, &out); err != nil {
		if f := fault.As(classify(err)); f.Kind == fault.Internal && ctx.Err() == nil {
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
	files, err := Files(path)
	for _, f := range files {
		if f.Role == Abandoned {
			err = errors.Join(err, removeAll(f.Path))
		}
	}
	return err
}

// damageOf returns the damage of a store, none for an intact one.
func damageOf(ctx context.Context, c SalvageConfig) ([]string, error) {
	if found, err := LogDamage(c.Path, c.Key); err != nil || len(found) > 0 {
		return found, err
	}
	s, err := Examine(ctx, Config{Path: c.Path, Key: c.Key, Wait: c.Wait, Clock: c.Clock})
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
	if f := fault.As(classify(err)); f.Kind == fault.Internal && ctx.Err() == nil {
		return []string{f.Message}, nil
	}
	return nil, err
}

func openElsewhere(err error) error {
	return fault.Wrap(err, fault.Unavailable, CodeBusy, "another process has the store open").
		WithHint("end the agents' sessions and try again")
}

// oldStore is the damaged store, locked against other processes.
type oldStore struct {
	path    string
	key     []byte   // nil for a plain store
	db, wal *os.File // nil if missing
	locked  []*os.File
}

// openOld opens the damaged files and waits until no other process has them open.
func openOld(ctx context.Context, c SalvageConfig, until time.Time) (o *oldStore, err error) {
	o = &oldStore{path: c.Path, key: c.Key}
	if o.db, err = openIfThere(c.Path, os.O_RDWR); err != nil { // required for a lock
		return nil, err
	}
	if o.wal, err = openIfThere(c.Path+"-wal", os.O_RDWR); err != nil {
		return nil, errors.Join(err, o.close())
	}
	for o.db != nil {
		alone, err := lockExclusive(o.db)
		if alone {
			return o, nil
		}
		if err == nil && !pause(ctx, until) {
			err = openElsewhere(nil)
		}
		if err != nil {
			return nil, errors.Join(err, o.close())
		}
	}
	return o, nil
}

// openIfThere opens a file, or returns nil for a missing one.
func openIfThere(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, how, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

func (o *oldStore) close() (err error) {
	for _, f := range append(o.locked, o.db, o.wal) {
		if f == nil {
			continue
		}
		if cerr := f.Close(); !errors.Is(cerr, os.ErrClosed) {
			err = errors.Join(err, cerr)
		}
	}
	return err
}

// read reads the files.
func (o *oldStore) read() (*sqlitefile.Image, error) {
	db, err := o.fileOf(o.db)
	if err != nil {
		return nil, err
	}
	wal, err := o.fileOf(o.wal)
	if err != nil {
		return nil, err
	}
	return sqlitefile.Read(db, wal), nil
}

// head reads only the header.
func (o *oldStore) head() (sqlitefile.Head, error) {
	db, err := o.fileOf(o.db)
	if err != nil {
		return sqlitefile.Head{}, err
	}
	wal, err := o.fileOf(o.wal)
	return sqlitefile.ReadHead(db, wal), err
}

// fileOf returns a file for sqlitefile, decrypted if necessary; nil means a missing file.
func (o *oldStore) fileOf(f *os.File) (sqlitefile.File, error) {
	if f == nil {
		return sqlitefile.File{}, nil
	}
	info, err := f.Stat()
	if err != nil {
		return sqlitefile.File{}, err
	}
	if o.key != nil {
		return sqlitefile.File{ReaderAt: gosqlite.NewReader(f, o.key), Size: gosqlite.Whole(info.Size())}, nil
	}
	return sqlitefile.File{ReaderAt: f, Size: info.Size()}, nil
}

// salvageInto builds the new store next to the old one and swaps the two. After an error
// it has removed its files.
func salvageInto(ctx context.Context, c SalvageConfig, old *oldStore, out *Salvaged) error {
	image, err := old.read()
	if err != nil {
		return err
	}
	version, err := imageVersion(image)
	if err != nil {
		return err
	}
	out.Unread = image.Damaged
	stamp := c.Clock().UTC().Format("20060102T150405.000000000Z")
	fresh := c.Path + buildingSuffix + stamp
	made := []string{fresh, fresh + "-wal", fresh + "-shm", fresh + "-lock", fresh + cipherSuffix, fresh + "-merged"}
	if err := build(ctx, c, image, version, fresh, out); err != nil {
		return errors.Join(err, removeAll(made...))
	}
	kept := c.Path + damagedSuffix + stamp
	if err := old.repairCheck(); err != nil {
		return errors.Join(err, removeAll(made...))
	}
	if err := swap(old, image, fresh, kept, c.report); err != nil {
		return errors.Join(err, removeAll(made...))
	}
	out.Kept = kept
	return removeAll(made...)
}

func (c *SalvageConfig) report(what string) {
	if c.Progress != nil {
		c.Progress(what)
	}
}

// build creates the new store, complete and on disk in one file. It copies the rows into
// a store of their schema, which is then migrated like any older store.
func build(ctx context.Context, c SalvageConfig, image *sqlitefile.Image, version int, path string, out *Salvaged) error {
	config := Config{Path: path, Key: c.Key, Clock: c.Clock, Temporary: true}
	old := newStore(config, encrypted)
	err := old.prepareTo(ctx, version)
	var inventory *inventory
	if err == nil {
		inventory, err = fillFrom(ctx, c, old, image, out)
	}
	if err := errors.Join(err, old.closeDBs()); err != nil {
		return err
	}
	s, err := Open(ctx, config)
	if err != nil {
		return err
	}
	if err == nil {
		err = s.blankAltered(ctx)
	}
	if err == nil && c.Repair != nil {
		c.report("repairing")
		err = c.Repair(ctx, s, inventory.alter)
	}
	if err == nil {
		err = s.noteSalvage(ctx, inventory, out)
	}
	if err == nil {
		err = c.verify(ctx, s)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	if !isEmpty(path + "-wal") {
		return fmt.Errorf("%s: its log was not checkpointed", filepath.Base(path))
	}
	return syncFile(path)
}

// verify returns an error if the new store is not intact.
func (c *SalvageConfig) verify(ctx context.Context, s *Store) error {
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

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
