package ledger

import (
	"context"
	"database/sql"
	"time"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// DayStats counts the context that sessions received on one day, in the server's time zone.
type DayStats struct {
	Day    string `json:"day"` // such as 2026-03-01
	Tokens int    `json:"tokens"`
	Used   int    `json:"used_tokens"` // of items that the sessions used
}

const selectLedgerDays = `SELECT (i.timestamp + ?3) / 86400, sum(i.tokens), sum(iif(i.used_at IS NULL, 0, i.tokens))
FROM injection_rows i JOIN sessions s ON s.key = i.session_key
WHERE i.timestamp >= ?1 AND (?2 = '' OR s.project_id = ?2) GROUP BY 1`

// Days sums up the context that the sessions of a project, or of all (""), received on each of
// the last days, and how much of it they used. The oldest day comes first. Days without items
// are zero. An unknown project is NotFound.
func Days(ctx context.Context, svc *observation.Service, projectName string, days int) (list []DayStats, err error) {
	list = make([]DayStats, max(days, 0))
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		id, err := observation.ProjectID(ctx, tx, projectName)
		if err != nil {
			return err
		}
		now := tx.Now().In(time.Local)
		_, offset := now.Zone()
		today := (now.Unix() + int64(offset)) / 86400
		first := today - int64(days) + 1
		for i := range list {
			list[i].Day = time.Unix((first+int64(i))*86400, 0).UTC().Format(time.DateOnly)
		}
		return tx.Each(ctx, func(r *sql.Rows) error {
			var day int64
			var d DayStats
			err := r.Scan(&day, &d.Tokens, &d.Used)
			if i := day - first; i >= 0 && i < int64(len(list)) {
				list[i].Tokens, list[i].Used = d.Tokens, d.Used
			}
			return err
		}, selectLedgerDays, first*86400-int64(offset), id, offset)
	})
	return list, err
}
