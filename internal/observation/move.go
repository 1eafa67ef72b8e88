package observation

import (
	"context"
	"encoding/json"

	"cairn/internal/project"
	"cairn/internal/store"
)

// MoveRows moves all rows of one project to another, as this part's share of merging projects.
// It is idempotent.
func MoveRows(ctx context.Context, tx *store.Tx, from, into project.Project) error {
	_, err := tx.Exec(ctx, moveRows, into.Key, from.Key)
	return err
}

// MoveSessions moves the rows of the given sessions from one project to another, as this part's
// share of linking and splitting checkouts. It is idempotent.
func MoveSessions(ctx context.Context, tx *store.Tx, from, into project.Project, sessions []int64) error {
	list, err := json.Marshal(sessions)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, moveSessionRows, into.Key, from.Key, string(list))
	return err
}

const (
	moveRows        = `UPDATE observation_rows SET project_key = ? WHERE project_key = ?`
	moveSessionRows = `UPDATE observation_rows SET project_key = ? WHERE project_key = ? AND session_key IN (SELECT value FROM json_each(?))`
)
