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

// SalvageConfig says what to salvage.
type SalvageConfig struct {
	Path  string           // the database file
	Key   []byte           // of an encrypted store, KeySize bytes; it does not count for a plain one
	Wait  time.Duration    // how long to wait for other processes; default 5 s
	Clock func() time.Time // default time.Now

	// Check and Mend are the parts' share, for what SQL alone cannot know; both may
	// be nil. Check reports what is wrong with a store that opens, as Store.Check
	// does. Mend makes the rows that were kept whole again: what stands nowhere but
	// in other rows, and indexes that only a part can build. It calls altered for a row
	// that is kept though its text is not what was written.
	Check  func(ctx context.Context, s *Store) ([]string, error)
	Repair func(ctx context.Context, s *Store, altered func(table string, id int64)) error

	Progress func(what string) // if set, is told what is being done
}

// What follows the database's name in the names of files that a salvage makes.
const (
	damagedSuffix  = backupSuffix + "-damaged-" // what it kept
	buildingSuffix = "-salvage-"                // the new store, until it is complete
)

// Salvaged is what a salvage did.
type Salvaged struct {
	Damage   []string        `json:"damage"`   // what was wrong, none for a sound or missing store
	Kept     string          `json:"kept"`     // where the damaged file lies now, "" if nothing was done
	Unread   int             `json:"unread"`   // pages that could not be read
	Gaps     int             `json:"gaps"`     // places at which the change log's chain is broken
	Tables   []SalvagedTable `json:"tables"`   // by name
	Restored int64           `json:"restored"` // rows rebuilt, of all tables
	Lost     int64           `json:"lost"`     // rows lost, of all tables
}

// SalvagedTable is what became of one table's rows.
type SalvagedTable struct {
	Name     string `json:"name"`
	Kept     int64  `json:"kept"`
	Restored int64  `json:"restored"` // rebuilt from indexes, from the change log and from rows that refer to them
	Lost     int64  `json:"lost"`     // known to have been there; of tables without a second index, at least so many

	// LostRows and AlteredRows name rows by their numbers ("7", "12-15"), or by the
	// columns of the primary key with slashes between them. A lost row may be without
	// a name. An altered row is kept, and its text is not what was written.
	LostRows    []string `json:"lost_rows,omitempty"`
	AlteredRows []string `json:"altered_rows,omitempty"`

	// Incomplete says that parts of the table and of its indexes cannot be read, so that
	// more rows may be lost than Lost counts. UnknownRows are the numbers of such rows,
	// if the store shows which numbers it had given out: a row with such a number is
	// lost, or it was deleted before.
	Incomplete  bool     `json:"incomplete,omitempty"`
	UnknownRows []string `json:"unknown_rows,omitempty"`
}

// Salvage replaces a damaged store by a new one with everything that can still
// be read, under the same ids and numbers, and keeps the damaged files next to it
// as PATH.bak-damaged-TIME (with -wal, -shm and key check), byte for byte: it is
// one of the Copies, which a purge takes with it. A sound or missing
// store is left as it is, without Damage in the result. Nothing is deleted. An
// encrypted store stays so, and nothing of it is ever written in plain. What
// the change log has lost is noted in the store, so that its check knows, and a
// change of kind "salvage" tells followers.
//
// All other processes are kept out meanwhile. Whenever it is interrupted, the
// path holds either what it held or the complete new store; repeating it is safe.
//
// Errors, on which everything is as it was: CodeEncrypted without a key and CodeKey with
// another store's, CodeBusy if another process has
// the store open, CodeNewer, CodeForeign, CodeFull, CodeReadOnly, CodeIO.
// Contract: observations §11.4, §13.
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
	if _, err := Encrypted(ctx, c.Path, c.Wait); err != nil { // whose interruption is ended by that
		return out, err
	}
	line := newLine(c.Path)
	if c.Path = resolved(c.Path); isEmpty(c.Path) && isEmpty(c.Path+"-wal") {
		return out, nil
	}
	if out.Damage, err = damageOf(ctx, c); err != nil || len(out.Damage) == 0 {
		return out, classify(err)
	}
	until := time.Now().Add(c.Wait)
	switch err := line.enter(ctx, until); {
	case errors.Is(err, errLine):
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

// otherWays is what is left to a user whose store a salvage cannot repair.
const otherWays = "the store is as it was; `cairn restore` puts a backup in its place; without a backup, move cairn.db and the files beside it away, " +
	"then `cairn import` and `cairn reconcile --reindex` rebuild what transcripts and the archive contain"

// removeAbandoned removes what an interrupted salvage was making.
func removeAbandoned(path string) error {
	files, err := Files(path)
	for _, f := range files {
		if f.Role == Abandoned {
			err = errors.Join(err, removeAll(f.Path))
		}
	}
	return err
}

// damageOf reports what is wrong with a store; none for a sound one.
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
	// Whatever else reading stumbles over that is nobody's fault outside is damage
	// too: a length, say, that cannot be.
	if f := fault.As(classify(err)); f.Kind == fault.Internal && ctx.Err() == nil {
		return []string{f.Message}, nil
	}
	return nil, err
}

func openElsewhere(err error) error {
	return fault.Wrap(err, fault.Unavailable, CodeBusy, "another process has the store open").
		WithHint("end the agents' sessions and try again")
}

// oldStore is the damaged one, locked against everybody else.
type oldStore struct {
	path    string
	key     []byte   // nil of a plain one
	db, wal *os.File // nil if missing
	locked  []*os.File
}

// openOld opens the damaged files and waits until nobody else has them open.
func openOld(ctx context.Context, c SalvageConfig, until time.Time) (o *oldStore, err error) {
	o = &oldStore{path: c.Path, key: c.Key}
	if o.db, err = openIfThere(c.Path, os.O_RDWR); err != nil { // a lock wants that
		return nil, err
	}
	if o.wal, err = openIfThere(c.Path+"-wal", os.O_RDWR); err != nil {
		return nil, errors.Join(err, o.close())
	}
	for o.db != nil {
		alone, err := lockAlone(o.db)
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

// openIfThere opens a file; nil for a missing one.
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

// read takes in what the files hold.
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

// head reads no more than the header.
func (o *oldStore) head() (sqlitefile.Head, error) {
	db, err := o.fileOf(o.db)
	if err != nil {
		return sqlitefile.Head{}, err
	}
	wal, err := o.fileOf(o.wal)
	return sqlitefile.ReadHead(db, wal), err
}

// fileOf is what a file holds as sqlitefile wants it; nil is a missing one.
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

// salvageInto builds the new store beside the old one and swaps the two. After an
// error what it made is gone again.
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
	if err := old.mendCheck(); err != nil {
		return errors.Join(err, removeAll(made...))
	}
	if err := swap(old, image, fresh, kept, c.tell); err != nil {
		return errors.Join(err, removeAll(made...))
	}
	out.Kept = kept
	return removeAll(made...)
}

func (c *SalvageConfig) tell(what string) {
	if c.Progress != nil {
		c.Progress(what)
	}
}

// build makes the new store, complete and on disk in one file. The rows are copied into
// the schema that they have, which is then brought to the newest as any older store.
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
		c.tell("mending")
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
		return fmt.Errorf("%s: its log was not folded in", filepath.Base(path))
	}
	return syncFile(path)
}

// verify refuses a result that is not sound.
func (c *SalvageConfig) verify(ctx context.Context, s *Store) error {
	c.tell("checking the new store")
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
