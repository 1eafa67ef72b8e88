package browse

import (
	"context"
	"database/sql"
	"errors"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// Stats counts the rows of this part in the store.
type Stats struct {
	Observations int64            `json:"observations"`
	Prompts      int64            `json:"prompts"`
	Sessions     int64            `json:"sessions"`
	Projects     int64            `json:"projects"`
	ByType       map[string]int64 `json:"by_type"`
	LastEvent    *LastEvent       `json:"last_event"` // null if there are no rows
}

// LastEvent is the newest row.
type LastEvent struct {
	ID        int64  `json:"id"`
	Timestamp int64  `json:"timestamp"`
	Project   string `json:"project"`
	ObsType   string `json:"obs_type"`
}

const (
	selectCounts = `SELECT (SELECT count(*) FROM prompt_rows), (SELECT count(*) FROM sessions), (SELECT count(*) FROM projects)`
	countSession = `SELECT count(*) FROM observation_rows WHERE session_key = (SELECT key FROM sessions WHERE id = ?)`
	selectTypes  = `SELECT obs_type, count(*) FROM observation_rows GROUP BY obs_type`
	selectLast   = `SELECT o.id, o.timestamp, p.id, o.obs_type
FROM observation_rows o JOIN projects p ON p.key = o.project_key ORDER BY o.id DESC LIMIT 1`
)

// CountOf counts the rows of a session; 0 for an unknown session.
func CountOf(ctx context.Context, svc *observation.Service, session string) (n int64, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.Get(ctx, []any{&n}, countSession, session) })
	return n, err
}

// CountStored counts all rows. It scans an index, which takes tens of milliseconds for a
// million rows.
func CountStored(ctx context.Context, svc *observation.Service) (Stats, error) {
	s := Stats{ByType: map[string]int64{}}
	err := svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Get(ctx, []any{&s.Prompts, &s.Sessions, &s.Projects}, selectCounts); err != nil {
			return err
		}
		err := tx.Each(ctx, func(r *sql.Rows) error {
			var t string
			var n int64
			err := r.Scan(&t, &n)
			s.ByType[t] = n
			s.Observations += n
			return err
		}, selectTypes)
		if err != nil {
			return err
		}
		var last LastEvent
		err = tx.Get(ctx, []any{&last.ID, &last.Timestamp, &last.Project, &last.ObsType}, selectLast)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		s.LastEvent = &last
		return err
	})
	return s, err
}
