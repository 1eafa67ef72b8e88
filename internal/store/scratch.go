package store

import (
	"context"
	"errors"
	"time"
)

// Scratch runs fn on an empty in-memory store of the newest schema, which is discarded
// afterwards. Its time is now. fn may write rows and append changes. It may be called
// inside a closure of another store, whose rows fn can copy.
func Scratch(ctx context.Context, now time.Time, fn func(ctx context.Context, tx *Tx) error) (err error) {
	s := &Store{clock: func() time.Time { return now }, symbols: symbols{ids: map[string]int64{}}, temporaryPath: true}
	s.db = OpenMemory()
	defer func() { err = errors.Join(err, s.db.Close()) }()
	ses, err := newSession(ctx, s.db)
	if err != nil {
		return classify(err)
	}
	defer func() { err = errors.Join(err, ses.close()) }()
	if err := ses.exec(ctx, "BEGIN"); err != nil {
		return classify(err)
	}
	if err := applyMigrations(ctx, ses, 0, newest()); err != nil {
		return classify(err)
	}
	tx := &Tx{ses: ses, store: s, now: now, log: &logHead{}, fresh: map[string]int64{}}
	return classify(tx.run(ctx, fn))
}
