package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store/disk"
	"cairn/internal/store/gosqlite"
)

// Role is the kind of process that opens the store. It determines how long a connection
// waits and who checkpoints the write-ahead log (design §2 and §7).
type Role uint8

// The roles.
const (
	Command Role = iota // a short command: waits 5 s for the write lock
	Hook                // one hook call: like Command, but never starts a checkpoint
	Server              // a long process: waits 60 s
)

// Config configures Open. The zero value of every field except Path is valid.
type Config struct {
	Path       string           // the database file; its folder is created (0700) with the store
	Role       Role             // default Command
	Wait       time.Duration    // how long to wait for a lock; default by Role
	Clock      func() time.Time // default time.Now
	MaxReaders int              // maximum number of concurrent readers; default 4
	MinReaders int              // readers that start immediately and whose connections CloseIdle keeps; further readers wait a second; default all
	ReadOnly   bool             // a missing store is an error, and nothing is created or migrated
	Key        []byte           // of an encrypted store, KeySize bytes; nil for a plain one

	Temporary bool // the file is not at its final path, so its place does not cause a new device incarnation
}

// Store is an open database file. Its methods are safe for concurrent use.
type Store struct {
	path      string
	file      os.FileInfo // the file at path before it was opened
	key       []byte      // nil for a plain store
	encrypted dialer
	clock     func() time.Time
	wait      time.Duration
	db        *sql.DB       // the writer's connection
	readDB    *sql.DB       // the readers' connections, query-only
	idle      idleSessions  // idle reading connections
	limit     chan struct{} // slots of readers, MinReaders
	extra     chan struct{} // further slots, up to MaxReaders
	writer    *writer
	gauges    gauges
	symbols   symbols
	listeners listeners
	reading   bool

	temporary string // a folder with a copy that Close removes; see Examine

	temporaryPath bool      // see Config.Temporary
	placing       sync.Once // see here
	place         place

	damage  atomic.Pointer[fault.Error] // why writes are refused after damage was found
	damages atomic.Int64                // how often damage was found
	single  bool                        // reads use the writing connection too
	closing sync.Once
	quit    chan struct{} // closed by Close
}

// Open opens the store at c.Path. It creates or migrates the store if necessary, except
// with c.ReadOnly. Any number of processes may call it concurrently.
//
// Errors: CodeMissing (NotFound) for a missing store with ReadOnly; CodeNewer (Unavailable)
// for a store of a newer cairn; CodeForeign (Unavailable) for another program's database;
// CodeCorrupt (Internal) for a damaged store; CodeReadOnly, CodeFull and CodeBusy
// (Unavailable); Invalid without a path; CodeEncrypted (Unavailable) for an encrypted store
// without a key; CodeKey (Unavailable) for a wrong key, and (Conflict) for a key of a plain
// store. After an error the file is unchanged.
func Open(ctx context.Context, c Config) (*Store, error) { return open(ctx, c, encrypted) }

// open is Open with the connector of encrypted stores, which is nil in a program that
// does not link it.
func open(ctx context.Context, c Config, encrypted dialer) (*Store, error) {
	if err := CheckKey(c.Key); err != nil {
		return nil, err
	}
	s := newStore(c, encrypted)
	if err := s.admit(); err != nil {
		return nil, errors.Join(s.classify(err), s.closeDBs())
	}
	found, err := s.inspect(ctx)
	if c.ReadOnly && cannotShare(err) && disk.IsEmpty(c.Path+"-wal") {
		// SQLite cannot create its shared memory file here. It is not needed, because no
		// process has the store open.
		err = s.readDB.Close()
		s.readDB = sql.OpenDB(s.connector("mode=ro&immutable=1", s.readPragmas()))
		if err == nil {
			found, err = s.inspect(ctx)
		}
	}
	switch {
	case err != nil:
	case found.version > newest(), found.version < 0:
		err = checkVersion(ctx, s.readDB, found.version)
	case found.version < newest() && c.ReadOnly:
		if found.file {
			err = checkVersion(ctx, s.readDB, found.version)
		}
		if err == nil {
			err = outdated(found.version)
		}
	case found.version < newest() || !found.wal && !c.ReadOnly:
		err = s.prepare(ctx)
	}
	if err != nil {
		return nil, errors.Join(s.classify(err), s.closeDBs())
	}
	return s, nil
}

func newStore(c Config, encrypted dialer) *Store {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.MaxReaders < 1 {
		c.MaxReaders = 4
	}
	if c.MinReaders < 1 || c.MinReaders > c.MaxReaders {
		c.MinReaders = c.MaxReaders
	}
	if c.Wait == 0 {
		c.Wait = 5 * time.Second
		if c.Role == Server {
			c.Wait = 60 * time.Second
		}
	}
	checkpoint := 1000
	if c.Role == Hook {
		checkpoint = 0
	}
	writing := []string{
		pragmaBusy(c.Wait),
		"PRAGMA synchronous=FULL",
		"PRAGMA foreign_keys=ON",
		fmt.Sprintf("PRAGMA wal_autocheckpoint=%d", checkpoint),
		"PRAGMA journal_size_limit=67108864",
	}
	s := &Store{
		path:    c.Path,
		clock:   c.Clock,
		wait:    c.Wait,
		reading: c.ReadOnly,
		single:  c.Role == Hook && !c.ReadOnly,
		quit:    make(chan struct{}),
		key:     c.Key,

		encrypted:     encrypted,
		temporaryPath: c.Temporary,

		limit:   make(chan struct{}, c.MinReaders),
		extra:   make(chan struct{}, c.MaxReaders-c.MinReaders),
		writer:  newWriter(c.Path),
		symbols: symbols{ids: map[string]int64{}},
	}
	s.gauges.load.Capacity = int64(c.MaxReaders) + 1
	s.db = sql.OpenDB(s.connector("mode=rw", writing))
	s.readDB = sql.OpenDB(s.connector("mode=rw", s.readPragmas()))
	return s
}

// connector opens the store's file in a mode, with the driver for its key.
func (s *Store) connector(mode string, pragmas []string) driver.Connector {
	if s.key == nil {
		return plain(s.path, mode, false, pragmas...)
	}
	return s.encrypted(s.path, mode, s.key, pragmas)
}

// dialer returns the connector of an encrypted file. Functions receive [encrypted] as a
// value, so that the linker leaves SQLite in Go out of a program that only calls
// OpenWithDriver.
type dialer func(path, mode string, key []byte, pragmas []string) driver.Connector

func encrypted(path, mode string, key []byte, pragmas []string) driver.Connector {
	return gosqlite.Driver{First: pragmas}.Connector(disk.URI(path, mode+"&"+gosqlite.URIQuery(key)))
}

// readersCache is the total page cache in KiB of the kept reading connections. Each has
// at most 2,000, SQLite's default, and at least 256. Each commit invalidates the caches.
const readersCache = 12 << 10

func (s *Store) readPragmas() []string {
	cache := min(2000, max(256, readersCache/cap(s.limit)))
	return []string{pragmaBusy(s.wait), "PRAGMA query_only=ON", "PRAGMA wal_autocheckpoint=0", fmt.Sprintf("PRAGMA cache_size=-%d", cache)}
}

// cannotShare reports whether a store could not be opened because no file can be created
// next to it, for lack of permissions or space.
func cannotShare(err error) bool {
	err = classify(err)
	return fault.HasCode(err, CodeReadOnly) || fault.HasCode(err, CodeFull)
}

// Path returns the database file.
func (s *Store) Path() string { return s.path }

// Encrypted reports whether the store is encrypted.
func (s *Store) Encrypted() bool { return s.key != nil }

// Now returns the time of the store's clock.
func (s *Store) Now() time.Time { return s.clock() }

// Close waits for the reads and writes in progress, refuses later ones with CodeClosed
// and closes the file. It is idempotent.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		close(s.quit)
		err = s.writer.stop()
		for _, places := range []chan struct{}{s.limit, s.extra} {
			for range cap(places) { // not released again: all readers have ended
				places <- struct{}{}
			}
		}
		for ses := s.idle.take(); ses != nil; ses = s.idle.take() {
			err = errors.Join(err, ses.close())
		}
		err = errors.Join(err, s.closeDBs())
	})
	return err
}

func (s *Store) closeDBs() error {
	err := errors.Join(s.readDB.Close(), s.db.Close())
	if s.temporary != "" {
		err = errors.Join(err, os.RemoveAll(s.temporary))
	}
	return err
}

// classify is the function classify for errors of this store. After damage all writes are
// refused (design §7). A plain store that was encrypted since it was opened is not
// damaged, whatever SQLite reports.
func (s *Store) classify(err error) error {
	err = classify(err)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != CodeCorrupt {
		return err
	}
	if s.key == nil && disk.Exists(s.path+disk.CipherSuffix) {
		return becameEncrypted()
	}
	if s.damage.Load() != f { // otherwise it is the error of a refused write
		s.damages.Add(1)
	}
	s.damage.CompareAndSwap(nil, f)
	return err
}

// NoStore returns the error for a store that does not exist (CodeMissing).
func NoStore() error {
	return fault.New(fault.NotFound, CodeMissing, "there is no store yet").
		WithHint("the first recorded event or `cairn import` creates it")
}

func outdated(version int) error {
	if version == 0 {
		return NoStore()
	}
	return fault.Newf(fault.Unavailable, "store_older",
		"the store has schema %d, this cairn needs %d", version, newest()).
		WithHint("run any writing command once, for instance `cairn import`")
}

// state describes the file that Open finds at its path.
type state struct {
	version int  // the schema number, 0 if the file is missing or empty
	file    bool // the file exists and is not empty
	wal     bool // the file uses a write-ahead log; a restored copy may not
}

func (s *Store) inspect(ctx context.Context) (found state, err error) {
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	if !info.Mode().IsRegular() {
		return state{}, fault.New(fault.Unavailable, CodeReadOnly, "the store's path is a folder or another special file").
			WithHint("name a file with --db or CAIRN_DB")
	}
	s.file = info
	if info.Size() == 0 {
		return state{}, nil
	}
	found.file = true
	db := s.db
	if s.reading {
		db = s.readDB
	}
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found.version); err != nil {
		return state{}, err
	}
	err = db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
	found.wal = mode == "wal"
	return found, err
}
