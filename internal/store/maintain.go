package store

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"cairn/internal/fault"
	"cairn/internal/store/gosqlite"
)

// bigLog is the size of the write-ahead log from which a checkpoint pays.
const bigLog = 4 << 20

// Checkpoint moves the write-ahead log into the database file if it has grown
// large; readers and writers go on meanwhile. What they still need stays in the
// log. Repeating it is harmless.
func (s *Store) Checkpoint(ctx context.Context) error {
	info, err := os.Stat(s.path + "-wal")
	if err != nil || info.Size() < bigLog || s.reading {
		return nil
	}
	release, err := s.reserve(ctx)
	if err != nil {
		return err
	}
	defer release()
	_, err = s.db.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return s.classify(err)
}

// CopyTo writes a consistent copy of the store to a file that must not exist
// yet, readable by its owner alone. It does not hold up writers. The copy of an
// encrypted store is encrypted with its key and has a key check next to it. After
// an error there is no file.
//
// Errors: Conflict if the file exists, else those of Read and CodeFull.
func (s *Store) CopyTo(ctx context.Context, path string) (err error) {
	release, err := s.reserve(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := createFile(path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fault.Wrap(err, fault.Conflict, "file_exists", "the copy's file exists already")
		}
		return classify(err)
	}
	defer func() {
		if err != nil {
			err = s.classify(errors.Join(err, os.Remove(path)))
		}
	}()
	ses, err := newSession(ctx, s.readDB)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ses.discard()) }()
	// SQLite counts the copy, too, as something that a query must not write.
	if err := ses.exec(ctx, "PRAGMA query_only=OFF"); err != nil {
		return err
	}
	if s.key == nil {
		_, err = ses.conn.ExecContext(ctx, "VACUUM INTO ?", path)
		return err
	}
	if err := writeCheck(path, s.key); err != nil {
		return err
	}
	_, err = ses.conn.ExecContext(ctx, "VACUUM INTO ?", fileURI(path, gosqlite.URIQuery(s.key)))
	if err != nil {
		err = errors.Join(err, os.Remove(path+cipherSuffix))
	}
	return err
}
