package project

import (
	"context"

	"cairn/internal/store"
)

// The logical clock of a project: its tick, the highest record number ever assigned, and
// the stream of the change log with its records. Package record sets the clock; the row
// of the project stores it.
const (
	advanceClock = `UPDATE projects SET tick = ?2, last_record = max(last_record, ?3) WHERE key = ?1`

	// The changes stay in their stream.
	moveClock = `UPDATE projects SET (tick, last_record, records_stream) =
(SELECT f.tick, f.last_record, ifnull(f.records_stream, 'records/' || f.id) FROM projects f WHERE f.key = ?1) WHERE key = ?2`
	resetClock = `UPDATE projects SET tick = 0, last_record = 0, records_stream = NULL WHERE key = ?`

	insertCopy = `INSERT INTO projects (key, id, name, description, created_at, created_ns) VALUES (?, ?, ?, ?, 0, ?)`
)

// AdvanceClock sets the tick of the project with a key, and raises its highest record
// number to number.
func AdvanceClock(ctx context.Context, tx *store.Tx, key, tick, number int64) error {
	_, err := tx.Exec(ctx, advanceClock, key, tick, number)
	return err
}

// MoveClock moves the clock of one project to another and resets its own.
func MoveClock(ctx context.Context, tx *store.Tx, from, into int64) error {
	if _, err := tx.Exec(ctx, moveClock, from, into); err != nil {
		return err
	}
	return ResetClock(ctx, tx, from)
}

// ResetClock resets the clock to that of a project without records. It is idempotent.
func ResetClock(ctx context.Context, tx *store.Tx, key int64) error {
	_, err := tx.Exec(ctx, resetClock, key)
	return err
}

// PutCopy stores a project of another store in an empty store, with its key and a new
// clock. created is in Unix nanoseconds. Nothing is logged.
func PutCopy(ctx context.Context, tx *store.Tx, q Project, description string, created int64) error {
	_, err := tx.Exec(ctx, insertCopy, q.Key, q.ID, q.Name, description, created)
	return err
}
