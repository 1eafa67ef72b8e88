package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/shell"
	"cairn/internal/store"
)

// KeptDays is the retention of the ledger in days.
const KeptDays = 90

const (
	ledgerWait  = 500 * time.Millisecond // maximum wait for the lock, so that the context is not delayed
	ledgerSweep = 1000                   // maximum number of rows deleted at the end of a session
)

const (
	// One statement for all items, because a session's start has dozens.
	insertInjections = `INSERT INTO injection_rows (timestamp, session_key, trigger, section, observation_id, tokens)
SELECT ?, ?, ?, value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)`

	updateFetched = `UPDATE injection_rows SET used_at = ?, used_how = 'fetched'
WHERE session_key = ? AND used_at IS NULL AND observation_id IN (SELECT value FROM json_each(?))`

	// An item shown before a tool call is used from the second access on, because the first one
	// is that call itself.
	updateFileUsed = `WITH used AS MATERIALIZED (
SELECT i.id, CASE i.trigger WHEN 'tool' THEN (
    SELECT o.timestamp FROM observation_rows o
    WHERE o.project_key = t.project_key AND o.path_key = t.path_key AND o.timestamp >= i.timestamp
      AND o.session_key = i.session_key AND o.id > t.id
      AND o.obs_type IN ('file_read', 'file_write', 'file_edit') AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.interrupted' IS NULL
    ORDER BY o.timestamp, o.id LIMIT 1 OFFSET 1)
  ELSE (
    SELECT o.timestamp FROM observation_rows o
    WHERE o.project_key = t.project_key AND o.path_key = t.path_key AND o.timestamp >= i.timestamp
      AND o.session_key = i.session_key AND o.id > t.id
      AND o.obs_type IN ('file_read', 'file_write', 'file_edit') AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.interrupted' IS NULL
    ORDER BY o.timestamp, o.id LIMIT 1)
  END AS at
FROM injection_rows i CROSS JOIN observation_rows t ON t.id = i.observation_id
WHERE i.session_key = ? AND i.used_at IS NULL AND t.path_key IS NOT NULL)
UPDATE injection_rows SET used_at = used.at, used_how = 'file'
FROM used WHERE injection_rows.id = used.id AND used.at IS NOT NULL`

	selectOpenCommands = `SELECT i.id, i.timestamp, i.trigger = 'tool' AND o.obs_type = 'command_error', o.id,
    CASE o.obs_type WHEN 'command_error' THEN ifnull(o.metadata ->> '$.command', '') ELSE o.content END
FROM injection_rows i CROSS JOIN observation_rows o ON o.id = i.observation_id
WHERE i.session_key = ? AND i.used_at IS NULL
  AND o.obs_type IN ('command', 'command_error', 'git_commit', 'git_push', 'github')`

	selectRuns = `SELECT id, timestamp, CASE obs_type WHEN 'command_error' THEN ifnull(metadata ->> '$.command', '') ELSE content END
FROM observation_rows WHERE session_key = ? AND timestamp >= ?
  AND obs_type IN ('command', 'command_error', 'git_commit', 'git_push', 'github') ORDER BY timestamp, id`

	updateCommandUsed = `UPDATE injection_rows SET used_at = ?, used_how = 'command' WHERE id = ?`

	DeleteOld = `DELETE FROM injection_rows WHERE id IN
(SELECT id FROM injection_rows WHERE timestamp < ? ORDER BY timestamp LIMIT +?)`

	selectLedger = `SELECT i.trigger, i.section, count(*), sum(i.tokens), count(i.used_at)
FROM injection_rows i JOIN sessions s ON s.key = i.session_key
WHERE i.timestamp >= ? AND (?2 IS NULL OR s.project_id = ?2)
GROUP BY i.trigger, i.section ORDER BY i.trigger = 'tool', i.trigger = 'prompt', count(*) DESC, i.section`
)

// Inject adds the items to the ledger that a session, given by its key, received on an event.
// Without a session (0) it adds nothing. It waits at most half a second for the lock. It is not
// idempotent: each call adds its items again. Errors are those of store.Write; no item is added
// then.
func Inject(ctx context.Context, svc *observation.Service, e observation.Event, session int64, items []Item) error {
	if len(items) == 0 || session == 0 {
		return nil
	}
	rows := make([][3]any, len(items))
	for k, i := range items {
		rows[k] = [3]any{i.Section, i.Observation, i.Tokens}
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, ledgerWait)
	defer stop()
	return svc.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, insertInjections, tx.Now().Unix(), session, e.Trigger(), string(list))
		return err
	})
}

// NoteUse updates the ledger with an event of a session. A finished call of cairn's own tools
// marks the items that it requested by id: the ids of get_observations, the anchor of timeline.
//
// The end of a turn or session marks items whose file was read or changed since, or whose
// command ran again. The call before which an item was shown does not count. The end of a
// session also deletes some rows older than KeptDays. It is idempotent (observations §9.3).
func NoteUse(ctx context.Context, tx *store.Tx, e *observation.Event, session int64) error {
	if e.Kind == observation.Touch && !e.Announces() {
		var ids []int64
		for i := range e.Calls {
			ids = append(ids, fetched(&e.Calls[i])...)
		}
		if len(ids) > 0 {
			list, err := json.Marshal(ids)
			if err == nil {
				_, err = tx.Exec(ctx, updateFetched, tx.Now().Unix(), session, string(list))
			}
			return err
		}
	}
	if !e.TurnEnds && e.Kind != observation.SessionEnd {
		return nil
	}
	if _, err := tx.Exec(ctx, updateFileUsed, session); err != nil {
		return err
	}
	if err := markUsedCommands(ctx, tx, session); err != nil || e.Kind != observation.SessionEnd {
		return err
	}
	_, err := tx.Exec(ctx, DeleteOld, tx.Now().Add(-KeptDays*24*time.Hour).Unix(), ledgerSweep)
	return err
}

func fetched(c *observation.Call) (ids []int64) {
	if !observation.OwnTool(c) {
		return nil
	}
	for _, arg := range c.Args {
		switch {
		case c.Method == "get_observations" && arg.Name == "ids":
			if json.Unmarshal([]byte(arg.Value), &ids) != nil || len(ids) > observation.MaxIDs {
				return nil
			}
		case c.Method == "timeline" && arg.Name == "anchor":
			if id, err := strconv.ParseInt(arg.Value, 10, 64); err == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// openCommand is an item about a command that was not used so far.
type openCommand struct {
	item, at, row int64
	form          shell.Form
	skip          int   // number of further runs that do not count; below 0 once used
	used          int64 // time of the run
}

// markUsedCommands marks the items of a session whose command ran again.
func markUsedCommands(ctx context.Context, tx *store.Tx, session int64) error {
	var open []openCommand
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var c openCommand
		var command string
		err := r.Scan(&c.item, &c.at, &c.skip, &c.row, &command)
		if c.form = shell.NewForm(command); c.form.Text != "" {
			open = append(open, c)
		}
		return err
	}, selectOpenCommands, session)
	if err != nil || len(open) == 0 {
		return err
	}
	first := slices.MinFunc(open, func(a, b openCommand) int { return cmp.Compare(a.at, b.at) })
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var id, at int64
		var command string
		err := r.Scan(&id, &at, &command)
		form := "" // computed when an item may have the same form
		for i := range open {
			c := &open[i]
			if c.skip < 0 || at < c.at || id <= c.row || !c.form.MayBe(command) {
				continue
			}
			if form == "" {
				form = shell.Normal(command)
			}
			if form == c.form.Text {
				c.skip--
				c.used = at
			}
		}
		return err
	}, selectRuns, session, first.at)
	for _, c := range open {
		if err == nil && c.skip < 0 {
			_, err = tx.Exec(ctx, updateCommandUsed, c.used, c.item)
		}
	}
	return err
}

// Stats summarizes the context that sessions received.
type Stats struct {
	Items         int      `json:"items"`
	Tokens        int      `json:"tokens"`
	Used          int      `json:"used"`                 // items
	UseRate       float64  `json:"use_rate"`             // of the items, 0 without items
	TokensPerUsed *float64 `json:"tokens_per_used_item"` // null if none was used
}

// SectionStats summarizes one section of the context for one trigger.
type SectionStats struct {
	Trigger string `json:"trigger"` // session_start, prompt or tool
	Section string `json:"section"`
	Stats
}

// Report summarizes the ledger of the last days.
type Report struct {
	Days     int            `json:"days"`
	Sections []SectionStats `json:"sections"` // by trigger, then by number of items, largest first
	Total    Stats          `json:"total"`
}

// Summarize sums up the context that the sessions of a project, or of all, received in the last
// days, and how much of it they used. Sections is empty if they received none. An unknown
// project is NotFound (observations §9.3).
func Summarize(ctx context.Context, svc *observation.Service, s observation.Scope, days int) (Report, error) {
	l := Report{Days: days, Sections: []SectionStats{}}
	err := svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var of any
		if s.Project != "" {
			p, ok, err := project.Find(ctx, tx, s.Project)
			if err != nil {
				return err
			}
			if !ok {
				return observation.NoProject(s.Project)
			}
			of = p.ID
		}
		since := tx.Now().Add(-time.Duration(days) * 24 * time.Hour).Unix()
		return tx.Each(ctx, func(r *sql.Rows) error {
			var t SectionStats
			err := r.Scan(&t.Trigger, &t.Section, &t.Items, &t.Tokens, &t.Used)
			l.Total.Items, l.Total.Tokens, l.Total.Used = l.Total.Items+t.Items, l.Total.Tokens+t.Tokens, l.Total.Used+t.Used
			t.rate()
			l.Sections = append(l.Sections, t)
			return err
		}, selectLedger, since, of)
	})
	l.Total.rate()
	return l, err
}

func (t *Stats) rate() {
	if t.Items > 0 {
		t.UseRate = float64(t.Used) / float64(t.Items)
	}
	if t.Used > 0 {
		each := float64(t.Tokens) / float64(t.Used)
		t.TokensPerUsed = &each
	}
}
