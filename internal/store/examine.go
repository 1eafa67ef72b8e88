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
// Errors are those of Open with Reading, and CodeFull where there is no room for
// the copy.
func Examine(ctx context.Context, c Config) (*Store, error) {
	c.Reading = true
	if isEmpty(c.Path) {
		if !isEmpty(c.Path + "-wal") {
			return nil, (&Store{path: c.Path}).refuseRemains()
		}
		return nil, (&Store{}).outdated(0)
	}
	s, err := examined(ctx, c)
	if err != nil {
		return nil, classify(err)
	}
	found, err := s.inspect(ctx)
	if err == nil && found.version == 0 {
		err = fault.New(fault.Unavailable, CodeForeign, "the file is another program's database").
			WithHint("name another file with --db or CAIRN_DB")
	}
	if err == nil {
		err = checkVersion(found.version)
	}
	if err != nil {
		return nil, errors.Join(classify(err), s.closeDBs())
	}
	return s, nil
}

// examined is a store that is not opened yet, in the way that leaves it alone.
func examined(ctx context.Context, c Config) (*Store, error) {
	_, err := os.Stat(c.Path + "-shm")
	if isEmpty(c.Path+"-wal") && errors.Is(err, os.ErrNotExist) {
		s := newStore(c)
		err := s.readDB.Close()
		s.readDB = sql.OpenDB(connector{uri: fileURI(c.Path, "mode=ro&immutable=1"), pragmas: s.readPragmas()})
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
		return newStore(c), nil
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
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := newStore(copied)
	s.temporary = dir
	return s, nil
}

// Schema is the number of the store's schema and the newest that this cairn
// knows, read past SQLite: also of a damaged store. found is 0 where there is
// none, or where it cannot be read.
func Schema(path string) (found, known int, err error) {
	db, err := os.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return 0, newest(), err
	}
	defer db.Close()
	wal, err := os.Open(path + "-wal")
	if errors.Is(err, os.ErrNotExist) {
		wal, err = nil, nil
	}
	if err != nil {
		return 0, newest(), err
	}
	if wal != nil {
		defer wal.Close()
	}
	a, err := fileOf(db)
	if err != nil {
		return 0, newest(), err
	}
	b, err := fileOf(wal)
	if err != nil {
		return 0, newest(), err
	}
	return sqlitefile.Version(a, b), newest(), nil
}
