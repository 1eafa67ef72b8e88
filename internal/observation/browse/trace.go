package browse

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/oneline"
	"cairn/internal/project"
	"cairn/internal/store"
)

// Trace is the structure of a session: its prompts, each with the rows it caused (seed,
// session_trace).
type Trace struct {
	SessionID string          `json:"session_id"`
	Project   string          `json:"project"`
	StartedAt int64           `json:"started_at"`
	EndedAt   *int64          `json:"ended_at"`
	Summary   json.RawMessage `json:"summary"` // the digest, or null
	Prompts   []TracePrompt   `json:"prompts"`
	Omitted   int             `json:"omitted_prompts,omitempty"` // number of agent messages that Compact omitted
}

// TracePrompt is one prompt of a trace. Rows without a prompt form a separate TracePrompt of
// source system, without id and content.
type TracePrompt struct {
	PromptID         *int64     `json:"prompt_id"`
	Timestamp        int64      `json:"timestamp"`
	Source           string     `json:"source"`
	Content          *string    `json:"content"`
	ObservationCount int        `json:"observation_count"` // includes the rows that Compact folded or omitted
	Observations     []TraceRow `json:"observations"`
}

// TraceRow is one row of a trace.
type TraceRow struct {
	ID             int64   `json:"id"`
	Timestamp      int64   `json:"timestamp"`
	ObsType        string  `json:"obs_type"`
	FilePath       *string `json:"file_path"`
	ContentPreview string  `json:"content_preview"`
	IsPinned       bool    `json:"is_pinned"`
	Failed         bool    `json:"failed,omitempty"`
	Interrupted    bool    `json:"interrupted,omitempty"` // the user interrupted the call; this is not a failure
	Error          string  `json:"error,omitempty"`       // for a failed call: the line with the reason, at most 200 characters
	Count          int     `json:"count,omitempty"`       // number of rows that Compact folded into this row, itself included
	LastID         int64   `json:"last_id,omitempty"`     // id of the last of these rows
}

const (
	selectTracePrompts = `SELECT id, timestamp, source, content FROM prompts
WHERE session_id = ?1 AND (?2 IS NULL OR timestamp < ?2) AND (?3 IS NULL OR timestamp > ?3)
ORDER BY timestamp, id`

	selectTraceRows = `SELECT id, timestamp, obs_type, file_path, substr(content, 1, 120), is_pinned, prompt_id,
metadata ->> '$.failed' IS NOT NULL, metadata ->> '$.interrupted' IS NOT NULL,
ifnull(metadata ->> '$.command', ''), ifnull(metadata ->> '$.error', '')
FROM observation_rows
WHERE session_key = ?1 AND (?2 IS NULL OR timestamp < ?2) AND (?3 IS NULL OR timestamp > ?3)
  AND obs_type NOT IN ('user_prompt', 'agent_message')
ORDER BY timestamp, id`
)

// TraceSession returns the prompts of a session in order of time, each with its rows. The
// bounds are exclusive, in Unix seconds or nil, and apply to both prompts and rows. An unknown
// session is NotFound. If nothing is within the bounds, the trace has no prompts (observations
// §8.5).
func TraceSession(ctx context.Context, svc *observation.Service, session string, before, after *int64) (t Trace, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, ok, err := project.FindSession(ctx, tx, session)
		if err != nil || !ok {
			return err
		}
		t = Trace{SessionID: s.ID, Project: s.ProjectID, StartedAt: s.StartedAt, Summary: json.RawMessage("null")}
		if s.EndedAt != 0 {
			t.EndedAt = &s.EndedAt
		}
		if s.Summary != "" {
			t.Summary = json.RawMessage(s.Summary)
		}
		t.Prompts, err = tracePrompts(ctx, tx, s, before, after)
		return err
	})
	if err == nil && t.SessionID == "" {
		err = observation.SessionNotFound(session)
	}
	return t, err
}

// LeastSessionBeginning is the minimum number of characters in the beginning of a session's id.
const LeastSessionBeginning = 4

const selectSessionsBeginning = `SELECT id FROM sessions WHERE id >= ?1 AND id < ?1 || char(1114111)
  AND EXISTS (SELECT 1 FROM observation_rows o WHERE o.session_key = sessions.key) ORDER BY id <> ?1, id LIMIT 2`

// SessionBeginning returns the id of the session with exactly this id. Otherwise it returns the
// id of the only session whose id begins with beginning. Several such sessions are Invalid. The
// result is NotFound if there is none, or if beginning has fewer than LeastSessionBeginning
// characters.
func SessionBeginning(ctx context.Context, svc *observation.Service, beginning string) (string, error) {
	var found []string
	err := svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var id string
			err := r.Scan(&id)
			found = append(found, id)
			return err
		}, selectSessionsBeginning, beginning)
	})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0, found[0] != beginning && len(beginning) < LeastSessionBeginning:
		return "", observation.SessionNotFound(beginning)
	case len(found) > 1 && found[0] != beginning:
		return "", fault.Newf(fault.Invalid, "ambiguous_session", "several sessions begin with %s", beginning).
			WithHint("give more of the id: " + found[0] + ", " + found[1] + " …")
	}
	return found[0], nil
}

func tracePrompts(ctx context.Context, tx *store.Tx, s project.Session, before, after *int64) ([]TracePrompt, error) {
	prompts := []TracePrompt{}
	at := map[int64]int{}
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var id int64
		p := TracePrompt{Observations: []TraceRow{}}
		err := r.Scan(&id, &p.Timestamp, &p.Source, &p.Content)
		p.PromptID = &id
		at[id] = len(prompts)
		prompts = append(prompts, p)
		return err
	}, selectTracePrompts, s.ID, before, after)
	if err != nil {
		return nil, err
	}
	var system []TraceRow
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var row TraceRow
		var parent sql.NullInt64
		var command, said string
		err := r.Scan(&row.ID, &row.Timestamp, &row.ObsType, &row.FilePath, &row.ContentPreview, &row.IsPinned, &parent,
			&row.Failed, &row.Interrupted, &command, &said)
		row.complete(command, said)
		if !parent.Valid {
			system = append(system, row)
		} else if i, ok := at[parent.Int64]; ok { // otherwise its prompt is outside the bounds
			prompts[i].Observations = append(prompts[i].Observations, row)
			prompts[i].ObservationCount++
		}
		return err
	}, selectTraceRows, s.Key, before, after)
	if len(system) > 0 {
		prompts = slices.Insert(prompts, 0, TracePrompt{
			Timestamp: system[0].Timestamp, Source: "system", ObservationCount: len(system), Observations: system,
		})
		slices.SortStableFunc(prompts, func(a, b TracePrompt) int { return int(a.Timestamp - b.Timestamp) })
	}
	return prompts, err
}

// maxReason is the maximum number of characters of a failure's reason in a trace.
const maxReason = 200

// complete sets Failed and Error from the stored command and error. Earlier versions stored
// interrupted commands as failed.
func (r *TraceRow) complete(command, said string) {
	r.Failed = r.Failed && !r.Interrupted
	if r.Failed {
		r.Error = oneline.Cut(observation.Reason(command, said), maxReason)
	}
}
