package record

import (
	"context"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	selectCounts = `SELECT (SELECT last_record FROM projects WHERE key = ?), (SELECT last_record FROM projects WHERE key = ?)`

	// The changes stay in the stream that they are in.
	moveClock = `UPDATE projects SET (tick, last_record, records_stream) =
(SELECT f.tick, f.last_record, ifnull(f.records_stream, 'records/' || f.id) FROM projects f WHERE f.key = ?1) WHERE key = ?2`
	resetClock = `UPDATE projects SET tick = 0, last_record = 0, records_stream = NULL WHERE key = ?`
)

// CodeBothHaveRecords is the code of the error (Conflict) for a merge of two
// projects of which both have records.
const CodeBothHaveRecords = "records_in_both"

// MoveRows gives the records of a project to the one that takes it over, with
// their ids, sessions, clock and history; for project.Merge. A project that had
// records keeps its ids and ticks for ever, so two that both had some cannot
// become one.
//
// Errors: Conflict with CodeBothHaveRecords.
func MoveRows(ctx context.Context, tx *store.Tx, from, into project.Project) error {
	var theirs, ours int64
	if err := tx.Get(ctx, []any{&theirs, &ours}, selectCounts, from.Key, into.Key); err != nil || theirs == 0 {
		return err
	}
	if ours > 0 {
		return fault.Newf(fault.Conflict, CodeBothHaveRecords,
			"%s and %s both have records, whose ids and ticks would collide", from.ID, into.ID).
			WithHint("keep both projects, or copy what is still open from one to the other")
	}
	if _, err := tx.Exec(ctx, moveClock, from.Key, into.Key); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, resetClock, from.Key); err != nil {
		return err
	}
	for _, move := range [...]string{
		`UPDATE records SET project_key = ? WHERE project_key = ?`,
		`UPDATE record_sessions SET project_key = ? WHERE project_key = ?`,
		`UPDATE activations SET project_key = ? WHERE project_key = ?`,
		`UPDATE record_ticks SET project_key = ? WHERE project_key = ?`,
	} {
		if _, err := tx.Exec(ctx, move, into.Key, from.Key); err != nil {
			return err
		}
	}
	return nil
}
