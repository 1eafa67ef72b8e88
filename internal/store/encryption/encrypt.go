package encryption

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/disk"
	"cairn/internal/store/gosqlite"
	"cairn/internal/store/locks"
	"cairn/internal/wholefile"
)

// busy is SQLite's result code for a lock that another connection holds.
const busy = 5

// Config configures Encrypt.
type Config struct {
	Path string
	Key  []byte        // KeySize bytes
	Wait time.Duration // how long to wait for others to close the store; default 5 s
}

// Report is the result of Encrypt.
type Report struct {
	Tables    int      `json:"tables"`    // number of tables, whose row counts were compared with the plain store
	Rows      int64    `json:"rows"`      // number of rows in all tables
	Bytes     int64    `json:"bytes"`     // size of the encrypted file
	Destroyed []string `json:"destroyed"` // plain files that were overwritten and removed, by name
	Left      []string `json:"left"`      // plain databases next to the store that cairn did not create and did not destroy
}

// Encrypt encrypts a plain store (observations §11.4). It waits until no other process has the
// store open, and blocks other processes. It creates an encrypted copy, checks it and compares
// the numbers of rows. Then it writes the copy over the plain file. Finally it overwrites and
// removes the write-ahead log and every plain copy that cairn created next to the store. If
// the process is killed at any instant, there is one complete store, which the next process
// opens. The calling process must not have the store open, because its own locks would not
// block it.
//
// Errors: CodeMissing without a store; CodeEncrypted (Conflict) for an encrypted one;
// CodeInUse (Conflict) if another process keeps it open; CodeUnsound (Internal) if the store
// is damaged or the copy differs; else those of Open. After an error the store is unchanged
// and plain. After CodeFull and CodeIO in the last step, the next process that opens it
// completes the encryption. It is safe to retry.
func Encrypt(ctx context.Context, c Config) (done Report, err error) {
	if err := store.CheckKey(c.Key); c.Key == nil || err != nil {
		return done, cmp.Or(err, error(fault.New(fault.Invalid, store.CodeKey, "no key was given")))
	}
	if c.Wait == 0 {
		c.Wait = 5 * time.Second
	}
	encrypted, err := Finish(ctx, c.Path, c.Wait)
	if err != nil {
		return done, err
	}
	if encrypted {
		return done, fault.New(fault.Conflict, store.CodeEncrypted, "the store is already encrypted")
	}
	if disk.IsEmpty(c.Path) {
		return done, store.NoStore()
	}
	if err := bringUpToDate(ctx, c); err != nil {
		return done, err
	}
	line := locks.NewFair(c.Path)
	defer line.Leave()
	plain, err := c.exclusively(ctx, &line)
	if err != nil {
		return done, store.Explain(err)
	}
	done, err = c.encrypt(ctx, plain)
	return done, store.Explain(err)
}

// exclusively waits until it holds the writers' lock and is the only connection. Between
// attempts it releases the lock, because a process that has the store open may be waiting
// for it.
func (c Config) exclusively(ctx context.Context, line *locks.Fair) (*exclusive, error) {
	until := time.Now().Add(c.Wait)
	for {
		if err := line.Enter(ctx, until); errors.Is(err, locks.ErrNotGranted) {
			return nil, inUse(err)
		} else if err != nil {
			return nil, err
		}
		plain, err := c.connectExclusively(ctx)
		if code, _ := gosqlite.Code(err); code&0xff != busy {
			return plain, err
		}
		line.Leave()
		if !locks.Pause(ctx, until) {
			return nil, inUse(err)
		}
	}
}

// bringUpToDate migrates the store. It returns an error if the store is damaged, because
// during the copying the damage would look like a copying error.
func bringUpToDate(ctx context.Context, c Config) error {
	s, err := store.Open(ctx, store.Config{Path: c.Path, Wait: c.Wait})
	if err != nil {
		if fault.HasCode(err, store.CodeBusy) {
			return inUse(err)
		}
		return err
	}
	found, err := s.Check(ctx)
	if err == nil && len(found) > 0 {
		err = notIntact("the store is not intact: " + found[0])
	}
	return errors.Join(err, s.Close())
}

func notIntact(message string) error {
	return fault.New(fault.Internal, store.CodeUnsound, message).WithHint("nothing was changed; run `cairn doctor`")
}

func inUse(err error) error {
	return fault.Wrap(err, fault.Conflict, store.CodeInUse, "another process has the store open").
		WithHint("end the agents' sessions and every running `cairn serve`, then try again")
}

// encrypt runs under the writers' lock and closes the exclusive connection.
func (c Config) encrypt(ctx context.Context, plain *exclusive) (done Report, err error) {
	defer func() {
		if plain != nil {
			err = errors.Join(err, plain.close())
		}
	}()
	if err = c.build(ctx, plain, &done); err == nil {
		err = c.makeRoom()
	}
	if err != nil { // the plain file is untouched, so closing it removes its write-ahead log
		return done, errors.Join(err, plain.conn.Raw(gosqlite.ReleaseFiles),
			disk.RemoveAll(c.Path+disk.EncryptingSuffix, c.Path+disk.EncryptedSuffix, c.Path+disk.CipherSuffix), disk.RemoveAll(disk.Resolve(c.Path)+"-shm"))
	}
	if err = takeOver(c.Path); err != nil {
		return done, err
	}
	err = plain.close()
	plain = nil
	if err != nil {
		return done, err
	}
	done.Destroyed, done.Left, err = takenOver(c.Path)
	return done, err
}

// exclusive is a connection that excludes all other connections.
type exclusive struct {
	db   *sql.DB
	conn *sql.Conn
}

func (e *exclusive) close() error { return errors.Join(e.conn.Close(), e.db.Close()) }

// connectExclusively connects to the plain file as the only connection and checkpoints
// the whole write-ahead log. It uses the encrypting driver, because the other driver's
// locks would be lost as soon as the file is opened without SQLite. The driver leaves the
// files alone when it closes. A write-ahead log that it creates is readable only by its
// owner.
func (c Config) connectExclusively(ctx context.Context) (e *exclusive, err error) {
	if disk.Exists(c.Path + disk.CipherSuffix) {
		return nil, fault.New(fault.Conflict, store.CodeEncrypted, "the store was encrypted by another process")
	}
	first := []string{"PRAGMA busy_timeout=0", "PRAGMA locking_mode=EXCLUSIVE", "PRAGMA synchronous=FULL", "BEGIN EXCLUSIVE", "COMMIT"}
	e = &exclusive{db: sql.OpenDB(gosqlite.Driver{First: first}.Connector(disk.URI(c.Path, "mode=rw&"+gosqlite.PlainURIQuery())))}
	if e.conn, err = e.db.Conn(ctx); err != nil {
		return nil, errors.Join(err, e.db.Close())
	}
	if err = e.conn.Raw(gosqlite.KeepFiles); err == nil {
		err = e.moveLog(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *exclusive) moveLog(ctx context.Context) error {
	var blocked, log, moved int
	if err := e.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(FULL)").Scan(&blocked, &log, &moved); err != nil {
		return err
	}
	if blocked != 0 || log != moved {
		return fault.Newf(fault.Internal, "internal", "a defect in cairn: %d of %d pages left the write-ahead log", moved, log)
	}
	return nil
}

// build creates the encrypted copy and compares it with the plain store.
func (c Config) build(ctx context.Context, plain *exclusive, done *Report) (err error) {
	building := c.Path + disk.EncryptingSuffix
	if err := disk.RemoveAll(building, c.Path+disk.EncryptedSuffix); err != nil {
		return err
	}
	if err := disk.WriteKeyCheck(c.Path, c.Key); err != nil {
		return err
	}
	if err := disk.Create(building); err != nil {
		return err
	}
	if _, err := plain.conn.ExecContext(ctx, "VACUUM INTO ?", disk.URI(building, gosqlite.URIQuery(c.Key))); err != nil {
		return err
	}
	want, err := countRows(ctx, plain.conn)
	if err != nil {
		return err
	}
	if err := c.compare(ctx, building, want); err != nil {
		return err
	}
	done.Tables = len(want)
	for _, n := range want {
		done.Rows += n
	}
	info, err := os.Stat(building)
	if err != nil {
		return err
	}
	done.Bytes = info.Size()
	if err := disk.Sync(building); err != nil {
		return err
	}
	if err := os.Rename(building, c.Path+disk.EncryptedSuffix); err != nil {
		return err
	}
	return wholefile.SyncDir(filepath.Dir(c.Path))
}

// compare returns an error if the copy is damaged or has other numbers of rows.
func (c Config) compare(ctx context.Context, path string, want map[string]int64) (err error) {
	s, err := store.Open(ctx, store.Config{Path: path, Key: c.Key, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	found, err := s.Check(ctx)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return notIntact("the encrypted copy is not intact: " + found[0])
	}
	copied := sql.OpenDB(gosqlite.Driver{First: []string{"PRAGMA query_only=ON"}}.Connector(disk.URI(path, "mode=rw&"+gosqlite.URIQuery(c.Key))))
	defer func() { err = errors.Join(err, copied.Close()) }()
	got, err := countRows(ctx, copied)
	if err != nil {
		return err
	}
	for table, n := range want {
		if got[table] != n {
			return notIntact(fmt.Sprintf("the encrypted copy has %d rows in %s, the store %d", got[table], table, n))
		}
	}
	if len(got) != len(want) {
		return notIntact(fmt.Sprintf("the encrypted copy has %d tables, the store %d", len(got), len(want)))
	}
	return nil
}

// queryer is a connection, or a database with any number of them.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// countRows returns the number of rows of each table.
func countRows(ctx context.Context, conn queryer) (counts map[string]int64, err error) {
	const query = `SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0`
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	counts = map[string]int64{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		counts[name] = 0
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for name := range counts {
		var n int64
		quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM "+quoted).Scan(&n); err != nil {
			return nil, err
		}
		counts[name] = n
	}
	return counts, nil
}

// makeRoom extends the store's file to the length of the encrypted copy, so that a full
// volume is detected before anything is overwritten. SQLite ignores bytes after the end
// of a database.
func (c Config) makeRoom() (err error) {
	from, err := os.Stat(c.Path + disk.EncryptedSuffix)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(c.Path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err = zero(f, info.Size(), from.Size()); err != nil {
		err = errors.Join(err, f.Truncate(info.Size()))
	}
	return err
}

// SQLite's locks are on these bytes of a database, which it does not use otherwise.
// Windows prevents writes there while they are held.
const (
	lockedFrom = 0x40000000
	lockedTo   = lockedFrom + gosqlite.BlockSize
)

// takeOver writes the encrypted copy over the store's file and overwrites the write-ahead
// log, so that no plain byte is left. It begins with the header: from then on the file is
// not a plain database. It is idempotent.
func takeOver(path string) (err error) {
	if err := overwrite(disk.Resolve(path) + "-wal"); err != nil {
		return err
	}
	from, err := os.Open(path + disk.EncryptedSuffix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if err := copyPart(to, from, 0, gosqlite.BlockSize); err != nil {
		return err
	}
	if err := to.Sync(); err != nil {
		return err
	}
	info, err := from.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if err := errors.Join(copyPart(to, from, gosqlite.BlockSize, min(size, lockedFrom)), copyPart(to, from, lockedTo, size)); err != nil {
		return err
	}
	old, err := to.Stat()
	if err != nil {
		return err
	}
	if err := errors.Join(zero(to, size, min(old.Size(), lockedFrom)), zero(to, max(size, lockedTo), old.Size())); err != nil {
		return err
	}
	return errors.Join(to.Sync(), to.Truncate(size), to.Sync())
}

// copyPart copies the bytes from one offset to another.
func copyPart(to io.WriterAt, from io.ReaderAt, start, end int64) error {
	if start >= end {
		return nil
	}
	_, err := io.Copy(io.NewOffsetWriter(to, start), io.NewSectionReader(from, start, end-start))
	return err
}

// zero writes zeros from one offset to another.
func zero(f io.WriterAt, start, end int64) error {
	nothing := make([]byte, 1<<20)
	for start < end {
		n := min(end-start, int64(len(nothing)))
		if _, err := f.WriteAt(nothing[:n], start); err != nil {
			return err
		}
		start += n
	}
	return nil
}

// takenOver destroys the plain copies and removes the files of takeOver. It removes the
// encrypted copy last, because its existence means that the work is not done.
func takenOver(path string) (destroyed, left []string, err error) {
	if destroyed, left, err = destroyCopies(path); err != nil {
		return destroyed, left, err
	}
	own := disk.Resolve(path)
	err = disk.RemoveAll(own+"-wal", own+"-shm", own+"-journal", path+disk.EncryptingSuffix, path+disk.EncryptedSuffix)
	if err == nil {
		err = wholefile.SyncDir(filepath.Dir(path))
	}
	return destroyed, left, err
}

// destroyCopies overwrites and removes the store's Copies. left lists other plain
// databases next to the store.
func destroyCopies(path string) (destroyed, left []string, err error) {
	files, err := disk.Copies(path)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		if err := errors.Join(overwrite(f.Path), disk.RemoveAll(f.Path)); err != nil {
			return destroyed, left, err
		}
		destroyed = append(destroyed, filepath.Base(f.Path))
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		file := filepath.Join(filepath.Dir(path), e.Name())
		if !e.Type().IsRegular() || file == path {
			continue
		}
		if plain, err := disk.IsPlain(file); err == nil && plain {
			left = append(left, e.Name())
		}
	}
	return destroyed, left, err
}

// overwrite fills a file with zeros and syncs it. A missing file is not an error.
func overwrite(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return errors.Join(zero(f, 0, info.Size()), f.Sync())
}
