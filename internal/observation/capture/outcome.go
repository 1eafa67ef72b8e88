package capture

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// Some harnesses report to their hooks what a command printed, but not its outcome. Their
// transcripts contain the outcome, which later corrects the row.
const (
	selectOutcome = `SELECT timestamp, source_event, ifnull(tool_name, ''), ifnull(file_path, ''), metadata ->> '$.failed' IS NOT NULL OR metadata ->> '$.interrupted' IS NOT NULL
FROM observation_rows WHERE id = ?`

	// For each call id of an array: whether it has a row, and whether that row shows a failure
	// or an interruption.
	selectOutcomes = `SELECT c.value, EXISTS (SELECT 1 FROM sessions s JOIN observation_rows o ON o.session_key = s.key
    WHERE s.id = ?1 AND o.tool_use_id = c.value),
EXISTS (SELECT 1 FROM sessions s JOIN observation_rows o ON o.session_key = s.key
    WHERE s.id = ?1 AND o.tool_use_id = c.value AND (o.metadata ->> '$.failed' IS NOT NULL OR o.metadata ->> '$.interrupted' IS NOT NULL))
FROM json_each(?2) c`

	updateOutcome = `UPDATE observation_rows SET obs_type = ?, content = ?, metadata = ?, checksum = ? WHERE id = ?`
)

// correctOutcome corrects a row that was stored as a success if the event is certain that its
// call failed or was interrupted. It replaces type, content, metadata, words and output. The row
// keeps its id and time.
func (w *writing) correctOutcome(ctx context.Context, tx *store.Tx, id int64, d draft) error {
	if interrupted, _ := d.Meta["interrupted"].(bool); !w.event.Settled || !d.Failed && !interrupted {
		return nil
	}
	var at int64
	var source, tool, path string
	var settled bool
	if err := tx.Get(ctx, []any{&at, &source, &tool, &path, &settled}, selectOutcome, id); err != nil || settled {
		return err
	}
	meta, err := d.Meta.Text()
	if err != nil {
		return err
	}
	row := observation.Text{At: at, ObsType: d.Type, Source: source, Tool: tool, Content: d.Content, Path: path, Meta: meta}
	if _, err := tx.Exec(ctx, updateOutcome, d.Type, d.Content, observation.NullText(meta), row.Checksum(), id); err != nil {
		return err
	}
	if err := observation.DropWords(ctx, tx, id); err != nil {
		return err
	}
	if err := observation.IndexText(ctx, tx, id, d.searchable()); err != nil {
		return err
	}
	if err := observation.DropOutput(ctx, tx, id); err != nil {
		return err
	}
	if err := d.output.Insert(ctx, tx, id); err != nil {
		return err
	}
	if err := observation.ForgetTurn(ctx, tx, w.session.Key, at, id); err != nil {
		return err
	}
	return w.logRow(ctx, tx, id)
}

// UnstoredOutcomes returns the events, in their order, whose calls are missing from the store,
// or are stored as successes although they failed or were interrupted. Reads and searches are
// returned only in the second case, because equal ones are stored once. Prompts and messages are
// always returned, because an import stores them only once. Other events without a call id are
// left out. Without a store it returns nil. It writes nothing.
func UnstoredOutcomes(ctx context.Context, svc *observation.Service, session string, events []observation.Event) (out []observation.Event, err error) {
	ids := []string{}
	spoken := false
	for _, e := range events {
		if id, _, wanted := callOutcome(&e); wanted {
			ids = append(ids, id)
		}
		spoken = spoken || isSpoken(&e)
	}
	if len(ids) == 0 && !spoken || svc.Store == nil {
		return nil, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	type row struct{ known, bad bool }
	stored := make(map[string]row, len(ids))
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var id string
			var r row
			err := rows.Scan(&id, &r.known, &r.bad)
			stored[id] = r
			return err
		}, selectOutcomes, session, string(list))
	})
	for _, e := range events {
		id, bad, wanted := callOutcome(&e)
		if r := stored[id]; isSpoken(&e) || wanted && (!r.known || bad && !r.bad) {
			out = append(out, e)
		}
	}
	return out, err
}

// isSpoken reports whether an event is a prompt or a message.
func isSpoken(e *observation.Event) bool {
	return e.Kind == observation.Prompt || e.Kind == observation.Message
}

// callOutcome returns the id of an event's calls and whether one of them failed or was
// interrupted. wanted is false if the store need not be queried for them.
func callOutcome(e *observation.Event) (id string, bad, wanted bool) {
	repeatable := true
	for i := range e.Calls {
		c := &e.Calls[i]
		id = c.ID
		bad = bad || c.Failed || c.Interrupted
		repeatable = repeatable && (c.Action == observation.Read || c.Action == observation.Search)
	}
	return id, bad, id != "" && (bad || !repeatable)
}
