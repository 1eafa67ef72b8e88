package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	"cairn/internal/fault"
	"cairn/internal/sqlitefile"
	"cairn/internal/store/disk"
	"cairn/internal/store/locks"
)

// Examine opens a store for inspection without changing a byte. Open with ReadOnly cannot
// guarantee that, because SQLite checkpoints the log of a killed process. Such a store is
// examined in a temporary copy. A store of an older schema can be examined too; its
// parts' tables may be missing.
//
// The key is used only for an encrypted store. The files of an interrupted Encrypt stay
// unchanged; the complete store among them is examined.
//
// It returns the errors of Open with ReadOnly, CodeForeign, and CodeFull if there is no
// space for the copy. A key for a plain store is not an error.
func Examine(ctx context.Context, c Config) (*Store, error) {
	key, err := KeyFor(c.Path, c.Key)
	if err != nil {
		return nil, err
	}
	given := c.Path
	c.ReadOnly, c.Key, c.Path = true, key, currentFile(c.Path, key)
	if disk.IsEmpty(c.Path) {
		if !disk.IsEmpty(c.Path + "-wal") {
			return nil, remains()
		}
		return nil, NoStore()
	}
	s, err := examined(ctx, c)
	if err != nil {
		return nil, classify(err)
	}
	found, err := s.inspect(ctx)
	if err == nil && found.version == 0 {
		err = s.unnumbered(ctx)
	} else if err == nil {
		err = checkVersion(ctx, s.readDB, found.version)
	}
	if err != nil {
		err = errors.Join(classify(err), s.closeDBs())
		if now, lerr := LooksEncrypted(given); key == nil && lerr == nil && now {
			return nil, becameEncrypted() // since KeyFor
		}
		return nil, err
	}
	return s, nil
}

// currentFile returns the file with the store of a path and a key from KeyFor. If an
// Encrypt was interrupted while it overwrote the file at the path, that is its complete
// copy.
func currentFile(path string, key []byte) string {
	if key != nil && disk.Exists(path+disk.EncryptedSuffix) {
		return path + disk.EncryptedSuffix
	}
	return disk.Resolve(path)
}

// unnumbered classifies a file that SQLite can open and that has no schema number: a
// store being created, another program's database, or a file that SQLite treats as an
// empty database.
func (s *Store) unnumbered(ctx context.Context) error {
	head, err := headOf(s.path, s.key)
	if err != nil {
		return err
	}
	if !head.Found {
		return fault.New(fault.Internal, CodeCorrupt, "the store is damaged: it has no header").
			WithHint("run `cairn doctor --salvage`")
	}
	if err := checkVersion(ctx, s.readDB, 0); err != nil {
		return err
	}
	return NoStore()
}

// examined opens a store that no process has open, without changing it.
func examined(ctx context.Context, c Config) (*Store, error) {
	_, err := os.Stat(c.Path + "-shm")
	if disk.IsEmpty(c.Path+"-wal") && errors.Is(err, os.ErrNotExist) {
		s := newStore(c, encrypted)
		err := s.readDB.Close()
		s.readDB = sql.OpenDB(s.connector("mode=ro&immutable=1", s.readPragmas()))
		return s, err
	}
	f, err := os.Open(c.Path)
	if err != nil {
		return nil, err
	}
	busy, err := locks.IsOpenElsewhere(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if busy {
		return newStore(c, encrypted), nil
	}
	dir, err := os.MkdirTemp("", "cairn-examine-")
	if err != nil {
		return nil, err
	}
	copied := c
	copied.Path = filepath.Join(dir, "cairn.db")
	err = disk.Copy(c.Path, copied.Path)
	if err == nil && !disk.IsEmpty(c.Path+"-wal") {
		err = disk.Copy(c.Path+"-wal", copied.Path+"-wal")
		if errors.Is(err, os.ErrNotExist) {
			err = nil // another process has closed the store meanwhile
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := newStore(copied, encrypted)
	s.temporary = dir
	return s, nil
}

// Schema returns the number of the store's schema and the newest that this cairn knows.
// It reads the file without SQLite, so it works for a damaged store. found is 0 if there
// is no schema or it cannot be read. The key and the errors about it are those of
// Examine.
func Schema(path string, key []byte) (found, known int, err error) {
	if key, err = KeyFor(path, key); err != nil {
		return 0, newest(), err
	}
	head, err := headOf(currentFile(path, key), key)
	return head.Version, newest(), classify(err)
}

// headOf reads a database's header, from the log if the log contains it.
func headOf(path string, key []byte) (head sqlitefile.Head, err error) {
	raw, err := disk.OpenRaw(path, key, os.O_RDONLY)
	if err != nil {
		return head, err
	}
	head, err = raw.Head()
	return head, errors.Join(err, raw.Close())
}
