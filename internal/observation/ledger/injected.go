package ledger

import (
	"context"
	"database/sql"
	"strings"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// selectInjected reads the newest rows of the ledger, oldest first.
const selectInjected = `SELECT * FROM (
SELECT i.id, i.timestamp, i.trigger, i.section, i.tokens, ifnull(i.used_how, ''), o.id, ifnull(o.obs_type, ''), ifnull(o.file_path, ''), ifnull(o.content, '')
FROM injection_rows i JOIN sessions s ON s.key = i.session_key
LEFT JOIN observation_rows o ON o.id = i.observation_id
WHERE s.id = ? ORDER BY i.id DESC LIMIT +?) ORDER BY 1`

// Injected is an item that cairn put into the context of a session.
type Injected struct {
	At      int64  `json:"at"`      // Unix seconds
	Trigger string `json:"trigger"` // session_start, prompt or tool
	Section string `json:"section"`
	Tokens  int    `json:"tokens"`
	Used    string `json:"used,omitempty"` // fetched, file or command; "" if not used so far
	Row     int64  `json:"observation_id"` // 0 if the observation no longer exists
	ObsType string `json:"obs_type,omitempty"`
	Text    string `json:"text,omitempty"` // path, or first line of the observation; "" if it no longer exists
}

// InjectedInto returns the items that a session received, oldest first. If there are more than
// n, it returns the last n; n is limited to 1–1000. The list is empty if the session is unknown,
// received nothing or began more than KeptDays ago.
//
// Errors are those of reading.
func InjectedInto(ctx context.Context, svc *observation.Service, session string, n int) ([]Injected, error) {
	list := []Injected{}
	if svc.Store == nil {
		return list, nil
	}
	err := svc.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var id int64
			var row sql.NullInt64
			var path, text string
			var i Injected
			err := r.Scan(&id, &i.At, &i.Trigger, &i.Section, &i.Tokens, &i.Used, &row, &i.ObsType, &path, &text)
			if i.Row, i.Text = row.Int64, path; path == "" {
				i.Text, _, _ = strings.Cut(text, "\n")
			}
			list = append(list, i)
			return err
		}, selectInjected, session, max(1, min(n, 1000)))
	})
	return list, err
}
