package store

import (
	"context"
	"errors"
	"os"
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
	_, err = s.db.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return classify(err)
}

// CopyTo writes a consistent copy of the store to a file that must not exist
// yet, readable by its owner alone.
func (s *Store) CopyTo(ctx context.Context, path string) error {
	if err := createFile(path); err != nil {
		return classify(err)
	}
	ses, err := newSession(ctx, s.readDB)
	if err != nil {
		return classify(err)
	}
	_, err = ses.conn.ExecContext(ctx, "VACUUM INTO ?", path)
	return classify(errors.Join(err, ses.close()))
}
