package integrity

import (
	"context"

	"cairn/internal/observation"
	"cairn/internal/store"
	"cairn/internal/tooloutput"
)

// repairOutputs deletes outputs whose row is lost or that a salvage did not preserve intact. It
// recreates missing line hashes from the digests. Lines of edits are deleted with their rows.
func repairOutputs(ctx context.Context, tx *store.Tx) error {
	for _, query := range []string{deleteLostOutputs, deleteLostEdits} {
		if _, err := tx.Exec(ctx, query); err != nil {
			return err
		}
	}
	salt, err := observation.LineSalt(ctx, tx)
	if err != nil {
		return err
	}
	return observation.EachOutput(ctx, tx, func(r *observation.OutputRow) error {
		digest, err := tooloutput.Unpack(r.Stored)
		if err != nil || r.IsAltered() {
			_, err = tx.Exec(ctx, observation.DeleteOutput, r.Id)
			return err
		}
		var has bool
		if err := tx.Get(ctx, []any{&has}, selectHasLines, r.Id); err != nil || has {
			return err
		}
		_, err = tx.Exec(ctx, observation.InsertLines, r.Id, salt.Words(tooloutput.Hashes(tooloutput.DigestedLines(digest))))
		return err
	})
}

const (
	deleteLostOutputs = `DELETE FROM output_rows WHERE observation_id NOT IN (SELECT id FROM observation_rows)`
	deleteLostEdits   = `DELETE FROM observation_lines WHERE observation_id NOT IN (SELECT id FROM observation_rows)`
	selectHasLines    = `SELECT EXISTS (SELECT 1 FROM output_lines_docsize WHERE id = ?)`
)
