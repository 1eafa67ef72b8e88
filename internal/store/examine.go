package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	"cairn/internal/fault"
	"cairn/internal/sqlitefile"
)

// Examine opens a store to look at it and changes no byte of it, which Open with
// Reading cannot promise: SQLite folds in a log that a killed process left. Such
// a store is looked at in a temporary copy. One of an older schema can be
// examined too; a part's tables may be missing then.
//
// The key counts for an encrypted store only. What an interrupted Encrypt left
// stays as it is; what is looked at is the complete store among it.
//
// Errors are those of Open with Reading, CodeForeign, and CodeFull where there is
// no room for the copy. A key for a plain store is none.
func Examine(ctx context.Context, c Config) (*Store, error) {
	key, err := keyFor(c.Path, c.Key)
	if err != nil {
		return nil, err
	}
	given := c.Path
	c.ReadOnly, c.Key, c.Path = true, key, standing(c.Path, key)
	if isEmpty(c.Path) {
		if !isEmpty(c.Path + "-wal") {
			return nil, remains()
		}
		return nil, (&Store{}).outdated(0)
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
			return nil, becameEncrypted() // meanwhile
		}
		return nil, err
	}
	return s, nil
}

// standing is the file that holds the store of a path and a key, which keyFor has
// found: where an Encrypt was interrupted while it wrote over that of the path, its
// complete copy.
func standing(path string, key []byte) string {
	if key != nil && exists(path+readySuffix) {
		return path + readySuffix
	}
	return resolved(path)
}

// resolved is the file that a path leads to: SQLite keeps the log next to it, not
// beside a link to it.
func resolved(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	return path
}

// unnumbered says what a file is that SQLite can open and that has no schema
// number: the beginning of a store, another program's database, or something
// that SQLite takes for an empty database.
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
	return s.outdated(0)
}

// examined is a store that is not opened yet, in the way that leaves it alone.
func examined(ctx context.Context, c Config) (*Store, error) {
	_, err := os.Stat(c.Path + "-shm")
	if isEmpty(c.Path+"-wal") && errors.Is(err, os.ErrNotExist) {
		s := newStore(c, encrypted)
		err := s.readDB.Close()
		s.readDB = sql.OpenDB(s.connector("mode=ro&immutable=1", s.readPragmas()))
		return s, err
	}
	f, err := os.Open(c.Path)
	if err != nil {
		return nil, err
	}
	busy, err := held(f)
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
	err = copyFile(c.Path, copied.Path)
	if err == nil && !isEmpty(c.Path+"-wal") {
		err = copyFile(c.Path+"-wal", copied.Path+"-wal")
		if errors.Is(err, os.ErrNotExist) {
			err = nil // another process has closed the store since
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := newStore(copied, encrypted)
	s.temporary = dir
	return s, nil
}

// Schema is the number of the store's schema and the newest that this cairn
// knows, read past SQLite: also of a damaged store. found is 0 where there is
// none, or where it cannot be read. The key, and the errors about it, are those of
// Examine.
func Schema(path string, key []byte) (found, known int, err error) {
	if key, err = keyFor(path, key); err != nil {
		return 0, newest(), err
	}
	head, err := headOf(standing(path, key), key)
	return head.Version, newest(), classify(err)
}

// headOf reads a database's header, from its log if it is there.
func headOf(path string, key []byte) (head sqlitefile.Head, err error) {
	o := oldStore{path: path, key: key}
	for suffix, into := range map[string]**os.File{"": &o.db, "-wal": &o.wal} {
		f, ferr := os.Open(path + suffix)
		if ferr == nil {
			*into = f
		} else if !errors.Is(ferr, os.ErrNotExist) {
			err = errors.Join(err, ferr)
		}
	}
	if err == nil {
		head, err = o.head()
	}
	return head, errors.Join(err, o.close())
}
