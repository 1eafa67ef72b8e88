package browse

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/store"
)

const (
	observationColumns = `SELECT o.id, o.timestamp, s.id, p.id, o.obs_type, o.source_event, o.tool_name,
o.content, o.file_path, o.metadata, o.prompt_id, o.is_pinned, o.agent_id
FROM observation_rows o JOIN sessions s ON s.key = o.session_key JOIN projects p ON p.key = o.project_key `

	selectObservation = observationColumns + `WHERE o.id = ?`

	selectBefore = observationColumns + `WHERE o.session_key = (SELECT session_key FROM observation_rows WHERE id = ?)
AND (o.timestamp, o.id) < (?, ?) ORDER BY o.timestamp DESC, o.id DESC LIMIT +?`

	selectAfter = observationColumns + `WHERE o.session_key = (SELECT session_key FROM observation_rows WHERE id = ?)
AND (o.timestamp, o.id) > (?, ?) ORDER BY o.timestamp, o.id LIMIT +?`
)

func scanObservation(r *sql.Rows) (observation.Observation, error) {
	var o observation.Observation
	var meta sql.NullString
	err := r.Scan(&o.ID, &o.Timestamp, &o.SessionID, &o.Project, &o.ObsType, &o.SourceEvent, &o.ToolName,
		&o.Content, &o.FilePath, &meta, &o.PromptID, &o.IsPinned, &o.AgentID)
	if meta.Valid {
		o.Metadata = json.RawMessage(meta.String)
	} else {
		o.Metadata = json.RawMessage("null")
	}
	return o, err
}

func observations(ctx context.Context, tx *store.Tx, query string, args ...any) ([]observation.Observation, error) {
	out := []observation.Observation{}
	err := tx.Each(ctx, func(r *sql.Rows) error {
		o, err := scanObservation(r)
		out = append(out, o)
		return err
	}, query, args...)
	return out, err
}

// Get returns whole rows, in the order of ids. Repeated ids count once, and missing rows are
// omitted. If the outputs exceed 16 KiB in total, each is cut in the middle to an equal share.
// An empty list of ids and more than 50 ids are Invalid (observations §8.2).
func Get(ctx context.Context, svc *observation.Service, ids []int64) ([]observation.Observation, error) {
	switch {
	case len(ids) == 0:
		return nil, fault.New(fault.Invalid, "invalid_argument", "ids array must not be empty")
	case len(ids) > observation.MaxIDs:
		return nil, fault.New(fault.Invalid, "invalid_argument", "ids array must not exceed 50 elements")
	}
	out := []observation.Observation{}
	err := svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for i, id := range ids {
			if slices.Contains(ids[:i], id) {
				continue
			}
			rows, err := observations(ctx, tx, selectObservation, id)
			if err == nil && len(rows) > 0 {
				rows[0].Output, err = observation.OutputOf(ctx, tx, id)
			}
			if err != nil {
				return err
			}
			out = append(out, rows...)
		}
		return nil
	})
	shareOutputs(out)
	return out, err
}

// Timeline contains the rows around a row in its session.
type Timeline struct {
	Anchor observation.Observation   `json:"anchor"`
	Before []observation.Observation `json:"before"` // chronological
	After  []observation.Observation `json:"after"`  // chronological
}

// RowsAround returns the rows of the anchor's session around the anchor, in order of time and
// id. before and after are clamped to 0–50. A missing anchor is NotFound (observations §8.3).
func RowsAround(ctx context.Context, svc *observation.Service, anchor int64, before, after int) (t Timeline, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err := observations(ctx, tx, selectObservation, anchor)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return nil
		}
		t.Anchor = found[0]
		at := t.Anchor.Timestamp
		if t.Before, err = observations(ctx, tx, selectBefore, anchor, at, anchor, min(max(before, 0), 50)); err != nil {
			return err
		}
		slices.Reverse(t.Before)
		t.After, err = observations(ctx, tx, selectAfter, anchor, at, anchor, min(max(after, 0), 50))
		return err
	})
	if err == nil && t.Anchor.ID == 0 {
		err = fault.New(fault.NotFound, "not_found", "anchor observation not found")
	}
	return t, err
}

// Scored is a row with its score.
type Scored struct {
	observation.Observation
	Score float64 `json:"score"`
}

// Recent returns the currently most relevant rows, highest score first, one per project and
// file. limit is clamped to 1–100. A project in the scope raises the score of its rows but does
// not filter. If that project is unknown or has no rows, the result is empty (observations
// §8.4). Calls that only serve the harness (observation.IsBookkeeping) are omitted.
func Recent(ctx context.Context, svc *observation.Service, s observation.Scope, limit int) (out []Scored, err error) {
	out = []Scored{}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		key, ok, err := observation.ScopeKey(ctx, tx, s)
		if err != nil || !ok {
			return err
		}
		all, err := json.Marshal(observation.Types())
		if err != nil {
			return err
		}
		now := tx.Now().Unix()
		r, err := observation.NewRanking(ctx, tx, observation.Lanes{Mode: observation.LaneAll}, string(all), recentScore(now, key))
		if err != nil {
			return err
		}
		r.Skip = observation.IsBookkeeping
		best, err := r.Take(ctx, tx, min(max(limit, 1), 100))
		if err != nil {
			return err
		}
		for _, b := range best {
			rows, err := observations(ctx, tx, selectObservation, b.Id)
			if err != nil {
				return err
			}
			out = append(out, Scored{rows[0], b.Score})
		}
		return nil
	})
	return out, err
}

// recentScore returns the composite score of the seed. With a project it is 0.5 recency, 0.3
// type and 0.2 for the own project. Without a project it is 0.6 recency and 0.4 type.
func recentScore(now, own int64) func(int64, string, int64) float64 {
	return func(project int64, obsType string, at int64) float64 {
		r, t := observation.Recency(now, at, observation.RecencyDays), observation.ToolWeight(obsType)
		switch {
		case own == 0:
			return 0.6*r + 0.4*t
		case own == project:
			return 0.5*r + 0.3*t + 0.2
		default:
			return 0.5*r + 0.3*t + 0.2*0.3
		}
	}
}
