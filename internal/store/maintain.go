package store

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"cairn/internal/fault"
	"cairn/internal/store/disk"
	"cairn/internal/store/gosqlite"
)

// bigLog is the minimum size of the write-ahead log for a checkpoint.
const bigLog = 4 << 20

// Checkpoint moves a large write-ahead log into the database file. It does not block
// readers or writers; frames that they need stay in the log. It is idempotent.
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

// CopyTo writes a consistent copy of the store to a file that must not exist. Only its
// owner can read the file. It does not block writers. The copy of an encrypted store is
// encrypted with the same key and has a key check next to it. After an error there is no
// file.
//
// Errors: Conflict if the file exists, else those of Read and CodeFull.
func (s *Store) CopyTo(ctx context.Context, path string) (err error) {
	release, err := s.reserve(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := disk.Create(path); err != nil {
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
	// With query_only, SQLite would also refuse to write the copy.
	if err := ses.exec(ctx, "PRAGMA query_only=OFF"); err != nil {
		return err
	}
	if s.key == nil {
		_, err = ses.conn.ExecContext(ctx, "VACUUM INTO ?", path)
		return err
	}
	if err := disk.WriteKeyCheck(path, s.key); err != nil {
		return err
	}
	_, err = ses.conn.ExecContext(ctx, "VACUUM INTO ?", disk.URI(path, gosqlite.URIQuery(s.key)))
	if err != nil {
		err = errors.Join(err, os.Remove(path+disk.CipherSuffix))
	}
	return err
}
