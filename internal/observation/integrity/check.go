package integrity

import (
	"context"
	"database/sql"
	"fmt"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// invariants returns pairs of a finding and a query. The query returns the ids of rows that
// violate the invariant.
func invariants() [][2]string {
	return [][2]string{
		{"observation %d has no searchable words", `SELECT o.id FROM observation_rows o
			LEFT JOIN observations_fts_docsize d ON d.id = o.id WHERE d.id IS NULL LIMIT 20`},
		{"observation %d is searchable, yet gone", `SELECT d.id FROM observations_fts_docsize d
			LEFT JOIN observation_rows o ON o.id = d.id WHERE o.id IS NULL LIMIT 20`},
		{"the output of observation %d is left, yet the observation is gone", `SELECT observation_id FROM output_rows
			WHERE observation_id NOT IN (SELECT id FROM observation_rows) LIMIT 20`},
		{"the output of observation %d has no line hashes", `SELECT o.observation_id FROM output_rows o
			LEFT JOIN output_lines_docsize d ON d.id = o.observation_id WHERE d.id IS NULL LIMIT 20`},
		{"lines of the edit of observation %d are kept, but the observation is gone", `SELECT l.observation_id FROM observation_lines l
			LEFT JOIN observation_rows o ON o.id = l.observation_id WHERE o.id IS NULL LIMIT 20`},
		{"lines of observation %d can be found, but its output is missing", `SELECT d.id FROM output_lines_docsize d
			LEFT JOIN output_rows o ON o.observation_id = d.id WHERE o.observation_id IS NULL LIMIT 20`},
		{"turn %d is in the index of turns without its words, or its words without the turn", `SELECT ifnull(t.id, d.id)
			FROM turns t FULL JOIN turn_words_docsize d ON d.id = t.id WHERE t.id IS NULL OR d.id IS NULL LIMIT 20`},
		{"turn %d begins with a row that is gone or of another session", `SELECT t.id FROM turns t
			LEFT JOIN observation_rows o ON o.id = t.id AND o.session_key = t.session_key WHERE o.id IS NULL LIMIT 20`},
		{"prompt %d is in no turn of the index and is not noted as missing there", `SELECT o.id FROM observation_rows o
			WHERE o.obs_type = 'user_prompt' AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = o.id)
			AND NOT EXISTS (SELECT 1 FROM stale_turns s WHERE s.session_key = o.session_key AND s.since <= o.timestamp) LIMIT 20`},
		{"observation %d has no change in the log", `SELECT id FROM observation_rows EXCEPT
			SELECT CAST(c.id AS INTEGER) FROM changes c JOIN symbols k ON k.id = c.kind
			WHERE k.text = 'observation' LIMIT 20`},
		{"observation %d is a prompt or message without its text", `SELECT id FROM observation_rows
			WHERE obs_type IN ('user_prompt', 'agent_message') AND prompt_id IS NULL LIMIT 20`},
		{"injection %d is used and does not say when and how", `SELECT id FROM injection_rows
			WHERE (used_at IS NULL) <> (used_how IS NULL) LIMIT 20`},
	}
}

// Check reports rows that violate an invariant of this part, none in an intact store. It changes
// nothing.
func Check(ctx context.Context, svc *observation.Service) (findings []string, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, rule := range invariants() {
			err := tx.Each(ctx, func(r *sql.Rows) error {
				var id int64
				err := r.Scan(&id)
				findings = append(findings, fmt.Sprintf(rule[0], id))
				return err
			}, rule[1])
			if err != nil {
				return err
			}
		}
		lost, err := countUnsalted(ctx, tx)
		if err == nil && lost > 0 {
			findings = append(findings, fmt.Sprintf("of %d tombstones the salt is lost: what was purged may come back", lost))
		}
		if err != nil {
			return err
		}
		err = eachSummed(ctx, tx, func(r *summed) error {
			if r.isAltered() {
				findings = append(findings, fmt.Sprintf("observation %d is not what was written: its checksum differs", r.id))
			}
			return nil
		})
		if err != nil {
			return err
		}
		return observation.EachOutput(ctx, tx, func(r *observation.OutputRow) error {
			if r.IsAltered() {
				findings = append(findings, fmt.Sprintf("the output of observation %d is not what was written: its checksum differs", r.Id))
			}
			return nil
		})
	})
	return findings, err
}

// countUnsalted returns the number of tombstones if their salt is lost, else 0.
func countUnsalted(ctx context.Context, tx *store.Tx) (n int64, err error) {
	_, salted, err := tx.Meta(ctx, observation.OwnSalt)
	if err == nil && !salted {
		err = tx.Get(ctx, []any{&n}, `SELECT count(*) FROM tombstones`)
	}
	return n, err
}
