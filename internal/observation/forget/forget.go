package forget

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// Transactions that delete or rewrite rows end after this many rows or this much time, so that a
// live hook hardly waits.
const (
	maxForgetRows = 500
	maxForgetTime = 50 * time.Millisecond
	forgetStep    = 25 // rows between two checks of the time
)

// opRedact is the op of the change that lists the rows a rescan has rewritten.
const opRedact = "redact"

const (
	selectDoomed = `SELECT o.id, o.timestamp, o.session_key, s.id, p.id, ifnull(s.harness, '') IN (SELECT value FROM json_each(?2)) AND o.metadata ->> '$.imported' IS NULL, o.obs_type, o.content,
ifnull(o.path_key, ''), ifnull(o.metadata ->> '$.command', o.content), o.metadata ->> '$.failed' IS NOT NULL,
ifnull(o.metadata ->> '$.kind', ''), ifnull(o.tool_use_id, ''), o.part,
CASE WHEN o.obs_type IN ('user_prompt', 'agent_message') THEN o.prompt_id END,
ifnull(r.harness_prompt_id, ''), ifnull(r.source_uuid, '')
FROM json_each(?1) d
JOIN observation_rows o ON o.id = d.value
JOIN sessions s ON s.key = o.session_key
JOIN projects p ON p.key = o.project_key
LEFT JOIN prompt_rows r ON r.id = o.prompt_id AND o.obs_type IN ('user_prompt', 'agent_message')`

	deleteRow = `DELETE FROM observation_rows WHERE id = ?`

	deletePrompt = `DELETE FROM prompt_rows WHERE id = ?`
	deleteLedger = `DELETE FROM injection_rows WHERE observation_id IN (SELECT value FROM json_each(?))`

	// FTS5 keeps the words of deleted rows. It records the deleted rows in pages whose ids begin
	// at 1 << 53: a segment's number plus 2^16, times 2^37.
	selectStaleWords = `SELECT EXISTS (SELECT 1 FROM observations_fts_data WHERE id >= 1 << 53)`
	mergeWords       = `INSERT INTO observations_fts (observations_fts, rank) VALUES ('merge', ?)`
	optimizeWords    = `INSERT INTO observations_fts (observations_fts) VALUES ('optimize')`
	selectStaleLines = `SELECT EXISTS (SELECT 1 FROM output_lines_data WHERE id >= 1 << 53)`
	mergeLines       = `INSERT INTO output_lines (output_lines, rank) VALUES ('merge', ?)`
	optimizeLines    = `INSERT INTO output_lines (output_lines) VALUES ('optimize')`
	selectWritten    = `SELECT total_changes()`

	selectStaleTurnWords = `SELECT EXISTS (SELECT 1 FROM turn_words_data WHERE id >= 1 << 53)`
	mergeTurnWords       = `INSERT INTO turn_words (turn_words, rank) VALUES ('merge', ?)`
	optimizeTurnWords    = `INSERT INTO turn_words (turn_words) VALUES ('optimize')`
)

// fullTextIndex contains the statements that maintain one full-text index.
type fullTextIndex struct{ stale, merge, optimize string }

// fullTextIndexes returns the full-text indexes of observations, outputs and turns.
func fullTextIndexes() []fullTextIndex {
	return []fullTextIndex{
		{selectStaleWords, mergeWords, optimizeWords},
		{selectStaleLines, mergeLines, optimizeLines},
		{selectStaleTurnWords, mergeTurnWords, optimizeTurnWords},
	}
}

// readDoomed returns those of the given rows that exist. unnamed is Config.Unnamed.
func readDoomed(ctx context.Context, tx *store.Tx, ids []int64, unnamed []string) (rows []observation.RowToDelete, err error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	names, err := json.Marshal(append([]string{}, unnamed...))
	if err != nil {
		return nil, err
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var d observation.RowToDelete
		err := r.Scan(&d.Id, &d.At, &d.SessionKey, &d.Session, &d.Project, &d.UnknownIDs, &d.ObsType, &d.Content,
			&d.PathKey, &d.Command, &d.Failed, &d.Role, &d.Call, &d.Part, &d.Prompt, &d.PromptID, &d.Line)
		rows = append(rows, d)
		return err
	}, selectDoomed, string(list), string(names))
	return rows, err
}

// removeRow deletes a row, its searchable words and, for a prompt or message, its prompt row.
// Rows that the prompt caused stay, without a prompt.
func removeRow(ctx context.Context, tx *store.Tx, d *observation.RowToDelete) error {
	if err := observation.ForgetTurn(ctx, tx, d.SessionKey, d.At, d.Id); err != nil {
		return err
	}
	if err := observation.DropWords(ctx, tx, d.Id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteRow, d.Id); err != nil || !d.Prompt.Valid {
		return err
	}
	_, err := tx.Exec(ctx, deletePrompt, d.Prompt.Int64)
	return err
}

// idRanges returns the ids as ascending [first, last] pairs, never nil.
func idRanges(ids []int64) [][2]int64 {
	ids = slices.Sorted(slices.Values(ids))
	out := [][2]int64{}
	for _, id := range ids {
		if n := len(out); n > 0 && out[n-1][1]+1 >= id {
			out[n-1][1] = id
			continue
		}
		out = append(out, [2]int64{id, id})
	}
	return out
}

// forgotten is the document of a change. It lists the rows and sessions that copies of the log
// must blank or read again. It contains no text.
type forgotten struct {
	Observations [][2]int64 `json:"observations"`       // ids, [first, last]
	Sessions     []string   `json:"sessions,omitempty"` // deleted as a whole

	ids []int64 // ids of the observations
}

// log appends one change for a project's rows and returns its seq.
func (f *forgotten) log(ctx context.Context, tx *store.Tx, project, op string) (int64, error) {
	f.Observations = idRanges(f.ids)
	doc, err := json.Marshal(f)
	if err != nil {
		return 0, err
	}
	return tx.Append(ctx, store.Change{
		Project: project, Stream: "forgetting", Kind: "observation", ID: store.NewID(), Op: op, Doc: doc,
	})
}

// MarkUnfinished records that Finish has work to do. Other parts call it in the transaction in
// which they delete rows.
func MarkUnfinished(ctx context.Context, tx *store.Tx) error { return setPending(ctx, tx) }

// metaForgetting is the name of the meta value that is set while bytes of deleted rows may remain
// in the files.
const metaForgetting = "forgetting"

// setPending records that bytes of deleted rows may remain in the files. Each call stores a new
// value, so that Finish does not delete the value of a later call.
func setPending(ctx context.Context, tx *store.Tx) error {
	return tx.SetMeta(ctx, metaForgetting, store.NewID())
}

// IsUnfinished reports whether a purge or rescan has not cleaned up the files yet: its rows are
// gone, but their bytes remain until Finish runs.
func IsUnfinished(ctx context.Context, svc *observation.Service) (bool, error) {
	value, err := pending(ctx, svc)
	return value != "", err
}

func pending(ctx context.Context, svc *observation.Service) (value string, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		value, _, err = tx.Meta(ctx, metaForgetting)
		return err
	})
	return value, err
}

// Finish removes the bytes of purged and rescanned rows from the disk (observations §11.3). It
// removes stale words from the search index, and free pages and old bytes from the database file.
// It also clears the write-ahead log and deletes the automatic backups; it returns their number.
// Without pending work it does nothing. It is safe to retry, also after a kill.
//
// Errors are those of store.Rewrite. The rows are gone even if it fails.
func Finish(ctx context.Context, svc *observation.Service) (backups int, err error) {
	value, err := pending(ctx, svc)
	if err != nil || value == "" {
		return 0, err
	}
	if err := dropAllStaleWords(ctx, svc); err != nil {
		return 0, err
	}
	if err := svc.Store.Rewrite(ctx); err != nil {
		return 0, err
	}
	if backups, err = svc.Store.RemoveBackups(); err != nil {
		return backups, err
	}
	return backups, svc.Store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		now, _, err := tx.Meta(ctx, metaForgetting)
		if err != nil || now != value {
			return err
		}
		return tx.DeleteMeta(ctx, metaForgetting)
	})
}

// mergePages is how many pages of the search index one transaction rewrites, about 2 MB.
const mergePages = 500

// dropAllStaleWords calls dropStaleWords for every index.
func dropAllStaleWords(ctx context.Context, svc *observation.Service) error {
	for _, index := range fullTextIndexes() {
		if err := dropStaleWords(ctx, svc, index); err != nil {
			return err
		}
	}
	return nil
}

// dropStaleWords rewrites a search index, a part in each transaction, until it contains no word
// of a deleted row. If rows are deleted meanwhile, it may have to start again. The third round
// does all the work in one transaction.
func dropStaleWords(ctx context.Context, svc *observation.Service, index fullTextIndex) error {
	for round := 0; ; round++ {
		stale, pages := false, -mergePages // a negative number in the first call selects all segments
		for more := true; more; pages = mergePages {
			err := svc.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) (err error) {
				if err := tx.Get(ctx, []any{&stale}, index.stale); err != nil || !stale {
					more = false
					return err
				}
				if round == 2 {
					more, stale = false, false
					_, err = tx.Exec(ctx, index.optimize)
					return err
				}
				more, err = mergeSome(ctx, tx, index.merge, pages)
				return err
			})
			if err != nil {
				return err
			}
		}
		if !stale {
			return nil
		}
	}
}

// mergeSome merges segments of a search index with the given statement. more reports whether the
// statement had anything to do.
func mergeSome(ctx context.Context, tx *store.Tx, merge string, pages int) (more bool, err error) {
	var before, after int64
	if err := tx.Get(ctx, []any{&before}, selectWritten); err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, merge, pages); err != nil {
		return false, err
	}
	err = tx.Get(ctx, []any{&after}, selectWritten)
	return after-before >= 2, err
}
