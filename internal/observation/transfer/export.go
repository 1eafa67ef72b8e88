package transfer

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/tooloutput"
)

// Kinds of the lines of this part in an export.
const (
	KindSession     = "session"     // project.ExportedSession; the lines up to the next one belong to the session
	KindObservation = "observation" // Exported
	KindForgotten   = "forgotten"   // ExportedForgotten
)

// Exported is a row in an export. Missing texts are "".
type Exported struct {
	Kind            string          `json:"kind,omitempty"`
	ID              int64           `json:"id"`
	Timestamp       int64           `json:"timestamp"` // Unix seconds
	Session         string          `json:"session"`
	Project         string          `json:"project"`
	ObsType         string          `json:"obs_type"`
	SourceEvent     string          `json:"source_event"`
	ToolName        string          `json:"tool_name,omitempty"`
	Content         string          `json:"content"`
	FilePath        string          `json:"file_path,omitempty"`
	PathKey         string          `json:"path_key,omitempty"`
	Metadata        json.RawMessage `json:"metadata,omitempty"` // a JSON object
	Pinned          bool            `json:"pinned,omitempty"`
	ToolUseID       string          `json:"tool_use_id,omitempty"`
	Part            int             `json:"part,omitempty"`
	AgentID         string          `json:"agent_id,omitempty"`
	HarnessPromptID string          `json:"harness_prompt_id,omitempty"`
	PromptID        int64           `json:"prompt_id,omitempty"` // the prompt that caused it; from an earlier line
	Prompt          *ExportedPrompt `json:"prompt,omitempty"`    // for prompts and messages: the row's own prompt

	// Output is the digest of the text that the command or tool printed, redacted, at most 4 KiB.
	// OutputSize is the number of bytes printed. Exports contain them because they are part of
	// the row's text; archives and hubs do not. The hashes of the other lines are salted by the
	// store, so an export leaves them out. For imported outputs, the retention starts on the day
	// of the import.
	Output     string `json:"output,omitempty"`
	OutputSize int    `json:"output_size,omitempty"`
}

// ExportedPrompt is the prompt of a row of type user_prompt or agent_message.
type ExportedPrompt struct {
	ID              int64  `json:"id"`
	Timestamp       int64  `json:"timestamp"`
	Source          string `json:"source"` // user or agent
	HarnessPromptID string `json:"harness_prompt_id,omitempty"`
	AgentID         string `json:"agent_id,omitempty"`
	SourceUUID      string `json:"source_uuid,omitempty"`
}

// ExportedForgotten contains the salted hashes that prevent purged rows from being stored again.
// The hashes alone reveal nothing (observations §11.3).
type ExportedForgotten struct {
	Kind   string         `json:"kind,omitempty"`
	Salts  []string       `json:"salts,omitempty"` // hex; each hash was made with one of the salts of the export
	Hashes []ExportedTomb `json:"hashes,omitempty"`
}

// ExportedTomb is one of the hashes. Until is the time (Unix seconds) up to which it applies;
// without it the hash applies permanently.
type ExportedTomb struct {
	Hash  string `json:"hash"` // hex
	Until *int64 `json:"until,omitempty"`
}

// tombsPerLine is the maximum number of hashes in a line.
const tombsPerLine = 200

const (
	exportedColumns = `SELECT o.id, o.timestamp, p.id, o.obs_type, o.source_event, ifnull(o.tool_name, ''), o.content,
ifnull(o.file_path, ''), ifnull(o.path_key, ''), ifnull(o.metadata, ''), o.is_pinned, ifnull(o.tool_use_id, ''), o.part,
ifnull(o.agent_id, ''), ifnull(o.harness_prompt_id, ''),
(SELECT ifnull(digest, deflated) FROM output_rows WHERE observation_id = o.id), ifnull((SELECT size FROM output_rows WHERE observation_id = o.id), 0)`

	// Prompts and messages come first, so that an import has them before the rows they caused.
	selectExportedPrompts = exportedColumns + `, ifnull(r.id, 0), ifnull(r.timestamp, 0), ifnull(r.source, ''),
ifnull(r.harness_prompt_id, ''), ifnull(r.agent_id, ''), ifnull(r.source_uuid, '')
FROM observation_rows o JOIN projects p ON p.key = o.project_key LEFT JOIN prompt_rows r ON r.id = o.prompt_id
WHERE o.session_key = ?1 AND (?2 = 0 OR o.project_key = ?2) AND o.obs_type IN ('user_prompt', 'agent_message')
ORDER BY o.timestamp, o.id`

	selectExportedRows = exportedColumns + `, ifnull(q.prompt_id, 0)
FROM observation_rows o JOIN projects p ON p.key = o.project_key
LEFT JOIN observation_rows q ON q.prompt_id = o.prompt_id AND q.obs_type IN ('user_prompt', 'agent_message')
  AND q.session_key = o.session_key AND (?2 = 0 OR q.project_key = ?2)
WHERE o.session_key = ?1 AND (?2 = 0 OR o.project_key = ?2) AND o.obs_type NOT IN ('user_prompt', 'agent_message')
ORDER BY o.timestamp, o.id`

	selectSessionsOfRows = `SELECT DISTINCT session_key FROM observation_rows WHERE project_key = ?`
	countExportedRows    = `SELECT count(*) FROM observation_rows o WHERE ?1 = 0 OR o.project_key = ?1`
	selectBranches       = `SELECT branch FROM session_branches WHERE session_key = ? ORDER BY branch`
	selectTombs          = `SELECT lower(hex(hash)), until FROM tombstones ORDER BY hash`
	countTombs           = `SELECT count(*) FROM tombstones`
)

// SessionKeys returns the keys of the sessions that have rows in the project, or nil if the scope
// is all projects.
func SessionKeys(ctx context.Context, tx *store.Tx, of project.Scope) ([]int64, error) {
	if of.ID == "" {
		return nil, nil
	}
	return tx.Keys(ctx, selectSessionsOfRows, of.Key)
}

// Export passes every session of a scope to put, including those with the given keys (see
// project.EachExportedSession), earliest first. Each session is followed by its rows: prompts and
// messages first, then the others, by time. Rows are read one at a time.
func Export(ctx context.Context, tx *store.Tx, of project.Scope, keys []int64, put func(kind string, v any) error) error {
	return project.EachExportedSession(ctx, tx, of, keys, func(key int64, s project.ExportedSession) error {
		err := tx.Each(ctx, func(r *sql.Rows) error {
			var name string
			err := r.Scan(&name)
			s.Branches = append(s.Branches, name)
			return err
		}, selectBranches, key)
		if err != nil {
			return err
		}
		if err := put(KindSession, s); err != nil {
			return err
		}
		return exportRows(ctx, tx, of, key, s.ID, put)
	})
}

func exportRows(ctx context.Context, tx *store.Tx, of project.Scope, key int64, session string, put func(kind string, v any) error) error {
	err := tx.Each(ctx, func(r *sql.Rows) error {
		e := Exported{Session: session, Prompt: &ExportedPrompt{}}
		q := e.Prompt
		if err := e.scan(r, &q.ID, &q.Timestamp, &q.Source, &q.HarnessPromptID, &q.AgentID, &q.SourceUUID); err != nil {
			return err
		}
		if q.ID == 0 {
			return fmt.Errorf("observation %d is a prompt that the store has lost; see `cairn doctor`", e.ID)
		}
		return put(KindObservation, e)
	}, selectExportedPrompts, key, of.Key)
	if err != nil {
		return err
	}
	return tx.Each(ctx, func(r *sql.Rows) error {
		e := Exported{Session: session}
		if err := e.scan(r, &e.PromptID); err != nil {
			return err
		}
		return put(KindObservation, e)
	}, selectExportedRows, key, of.Key)
}

func (e *Exported) scan(r *sql.Rows, more ...any) error {
	var meta string
	var digest any
	err := r.Scan(append([]any{
		&e.ID, &e.Timestamp, &e.Project, &e.ObsType, &e.SourceEvent, &e.ToolName, &e.Content, &e.FilePath, &e.PathKey,
		&meta, &e.Pinned, &e.ToolUseID, &e.Part, &e.AgentID, &e.HarnessPromptID,
		&digest, &e.OutputSize,
	}, more...)...)
	if digest != nil && err == nil {
		if e.Output, err = tooloutput.Unpack(digest); err != nil {
			err = fmt.Errorf("the output of observation %d is damaged; see `cairn doctor`: %w", e.ID, err)
		}
	}
	if meta != "" {
		e.Metadata = json.RawMessage(meta)
	}
	if err == nil && meta != "" && !json.Valid(e.Metadata) {
		err = fmt.Errorf("observation %d has metadata that is not JSON", e.ID)
	}
	return err
}

// ExportForgotten passes the tombstones of the whole store to put. A hash does not reveal its
// project, so they cannot be limited to one. Without tombstones it passes nothing.
func ExportForgotten(ctx context.Context, tx *store.Tx, put func(kind string, v any) error) error {
	g, err := observation.OpenTombstones(ctx, tx)
	if err != nil || !g.Any() {
		return err
	}
	line := ExportedForgotten{Salts: g.Salts()}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var t ExportedTomb
		if err := r.Scan(&t.Hash, &t.Until); err != nil {
			return err
		}
		line.Hashes = append(line.Hashes, t)
		if len(line.Hashes) < tombsPerLine {
			return nil
		}
		err := put(KindForgotten, line)
		line = ExportedForgotten{}
		return err
	}, selectTombs)
	if err != nil || len(line.Hashes)+len(line.Salts) == 0 {
		return err
	}
	return put(KindForgotten, line)
}

// CountExported returns how many lines of rows Export passes, and how many lines ExportForgotten
// passes.
func CountExported(ctx context.Context, tx *store.Tx, of project.Scope) (rows, forgotten int, err error) {
	if err := tx.Get(ctx, []any{&rows}, countExportedRows, of.Key); err != nil {
		return 0, 0, err
	}
	g, err := observation.OpenTombstones(ctx, tx)
	if err != nil || !g.Any() {
		return rows, 0, err
	}
	var tombs int
	err = tx.Get(ctx, []any{&tombs}, countTombs)
	return rows, max(1, (tombs+tombsPerLine-1)/tombsPerLine), err
}
