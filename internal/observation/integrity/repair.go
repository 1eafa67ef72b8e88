package integrity

import (
	"context"
	"database/sql"
	"strconv"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

// Statements that repair the rows that a salvage recovered.
const (
	// The observation row contains everything about a lost prompt except its transcript line.
	insertLostPrompts = `INSERT OR IGNORE INTO prompt_rows (id, session_key, timestamp, source, harness_prompt_id, agent_id)
SELECT prompt_id, session_key, timestamp, iif(obs_type = 'user_prompt', 'user', 'agent'), harness_prompt_id, agent_id
FROM observation_rows WHERE obs_type IN ('user_prompt', 'agent_message') AND prompt_id IS NOT NULL`

	deleteTombstones = `DELETE FROM tombstones`

	selectPromptless = `SELECT id FROM observation_rows WHERE obs_type IN ('user_prompt', 'agent_message') AND prompt_id IS NULL`

	insertPrompt = `INSERT INTO prompt_rows (session_key, timestamp, source, harness_prompt_id, agent_id)
SELECT session_key, timestamp, iif(obs_type = 'user_prompt', 'user', 'agent'), harness_prompt_id, agent_id
FROM observation_rows WHERE id = ?`
	linkPrompt = `UPDATE observation_rows SET prompt_id = ? WHERE id = ?`

	dropBadMetadata = `UPDATE observation_rows SET metadata = NULL WHERE metadata IS NOT NULL AND NOT json_valid(metadata)`

	dropHalfUsed = `UPDATE injection_rows SET used_at = NULL, used_how = NULL WHERE (used_at IS NULL) <> (used_how IS NULL)`

	// A session of which only an index entry was recovered starts with its first row.
	selectUndated = `SELECT s.key, ifnull(min(o.timestamp), 0), ifnull(max(o.timestamp), 0) FROM sessions s
LEFT JOIN observation_rows o ON o.session_key = s.key WHERE s.started_at = 0 OR s.last_seen = 0 GROUP BY s.key`

	selectUnlogged = `SELECT o.id, p.id, s.id FROM observation_rows o
JOIN projects p ON p.key = o.project_key JOIN sessions s ON s.key = o.session_key
WHERE o.id IN (SELECT id FROM observation_rows EXCEPT
    SELECT CAST(c.id AS INTEGER) FROM changes c JOIN symbols k ON k.id = c.kind WHERE k.text = 'observation')`
)

// Repair repairs the rows that a salvage recovered: it recreates lost prompts of rows, appends
// missing changes of rows, and rebuilds the searchable words. It calls altered for a row whose
// text differs from its checksum. Such a row is kept and marked as damaged in its metadata.
// Repair is this part's step of salvage.Run. It changes no row of an intact store.
func Repair(ctx context.Context, svc *observation.Service, altered func(table string, id int64)) error {
	err := svc.Store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		for _, query := range []string{insertLostPrompts, dropHalfUsed, dropBadMetadata} {
			if _, err := tx.Exec(ctx, query); err != nil {
				return err
			}
		}
		if err := project.DropBadSummaries(ctx, tx); err != nil {
			return err
		}
		if err := dateSessions(ctx, tx); err != nil {
			return err
		}
		if err := repairChecksums(ctx, tx, func(id int64) { altered("observation_rows", id) }); err != nil {
			return err
		}
		if err := repairOutputs(ctx, tx); err != nil {
			return err
		}
		if err := addMissingPrompts(ctx, tx); err != nil {
			return err
		}
		if err := dropUnsaltedTombstones(ctx, tx); err != nil {
			return err
		}
		return addMissingChanges(ctx, tx)
	})
	if err != nil {
		return err
	}
	return Reindex(ctx, svc, nil)
}

// dateSessions sets the times of sessions that a salvage recreated, from their rows.
func dateSessions(ctx context.Context, tx *store.Tx) error {
	var undated [][3]int64
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var s [3]int64
		err := r.Scan(&s[0], &s[1], &s[2])
		undated = append(undated, s)
		return err
	}, selectUndated)
	for _, s := range undated {
		if err == nil {
			err = project.DateSession(ctx, tx, s[0], s[1], s[2])
		}
	}
	return err
}

// dropUnsaltedTombstones deletes the tombstones if their salt is lost, because they match
// nothing.
func dropUnsaltedTombstones(ctx context.Context, tx *store.Tx) error {
	g, err := observation.OpenTombstones(ctx, tx)
	if err == nil && !g.Any() {
		_, err = tx.Exec(ctx, deleteTombstones)
	}
	return err
}

// addMissingPrompts creates a prompt for each prompt or message row that has none.
func addMissingPrompts(ctx context.Context, tx *store.Tx) error {
	var rows []int64
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var row int64
		err := r.Scan(&row)
		rows = append(rows, row)
		return err
	}, selectPromptless)
	for _, row := range rows {
		if err != nil {
			return err
		}
		var made sql.Result
		var id int64
		if made, err = tx.Exec(ctx, insertPrompt, row); err == nil {
			id, err = made.LastInsertId()
		}
		if err == nil {
			_, err = tx.Exec(ctx, linkPrompt, id, row)
		}
	}
	return err
}

// addMissingChanges appends a change for each row without one in the log.
func addMissingChanges(ctx context.Context, tx *store.Tx) error {
	return tx.Each(ctx, func(r *sql.Rows) error {
		var id int64
		var project, session string
		if err := r.Scan(&id, &project, &session); err != nil {
			return err
		}
		_, err := tx.Append(ctx, store.Change{
			Project: project, Stream: "session/" + session, Kind: "observation",
			ID: strconv.FormatInt(id, 10), Op: store.OpPut,
		})
		return err
	}, selectUnlogged)
}
