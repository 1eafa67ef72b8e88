package browse

import (
	"context"
	"database/sql"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// The metadata of imported rows has the key "imported". Its JSON has sorted keys and no white
// space.
const (
	selectLive = `SELECT s.harness, max(o.timestamp)
FROM observation_rows o JOIN sessions s ON s.key = o.session_key
WHERE s.harness IS NOT NULL AND instr(ifnull(o.metadata, ''), '"imported":true') = 0
GROUP BY s.harness ORDER BY s.harness`

	selectSessions = `SELECT id FROM sessions`
)

// LastLive returns, for each harness, when its hooks last reported an event, in Unix seconds. A
// harness whose hooks never reported is absent. LastLive reads every row, which takes about a
// second for a million rows.
func LastLive(ctx context.Context, svc *observation.Service) (map[string]int64, error) {
	out := map[string]int64{}
	err := svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var harness string
			var at int64
			err := r.Scan(&harness, &at)
			out[harness] = at
			return err
		}, selectLive)
	})
	return out, err
}

// SessionIDs returns the ids of all sessions as a set.
func SessionIDs(ctx context.Context, svc *observation.Service) (map[string]bool, error) {
	out := map[string]bool{}
	err := svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		ids, err := tx.Texts(ctx, selectSessions)
		for _, id := range ids {
			out[id] = true
		}
		return err
	})
	return out, err
}
