package observation

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Hit is one row of a search.
type Hit struct {
	ID             int64   `json:"id"`
	Timestamp      int64   `json:"timestamp"`
	ObsType        string  `json:"obs_type"`
	ContentPreview string  `json:"content_preview"` // the first 120 characters
	FilePath       *string `json:"file_path"`
	SessionID      string  `json:"session_id"`
	Project        string  `json:"project"`
	IsPinned       bool    `json:"is_pinned"`
}

// SearchArgs is a question for Search.
type SearchArgs struct {
	Query   string
	Scope   Scope
	ObsType string // "" for every type
	Limit   int    // kept within 1 to 100
	Offset  int    // below 0 counts as 0
	OrderBy string // "", relevance or blended
	Before  *int64 // Unix seconds, exclusive; nil for no bound
	After   *int64
}

const (
	// Ranked first, read then: only the rows of the page are fetched whole. Rows of
	// equal relevance come newest first. A filter that is not asked for (NULL)
	// costs a comparison per match.
	selectHits = `WITH best AS MATERIALIZED (
    SELECT o.id, o.timestamp, f.rank AS relevance
    FROM observations_fts f CROSS JOIN observation_rows o ON o.id = f.rowid
    WHERE observations_fts MATCH ?1
      AND (?2 IS NULL OR o.project_key = ?2) AND (?3 IS NULL OR o.obs_type = ?3)
      AND (?4 IS NULL OR o.timestamp < ?4) AND (?5 IS NULL OR o.timestamp > ?5)
    ORDER BY f.rank, o.timestamp DESC, o.id DESC LIMIT ?6 OFFSET ?7)
SELECT o.id, o.timestamp, o.obs_type, substr(o.content, 1, 120), o.file_path, s.id, p.id, o.is_pinned, b.relevance
FROM best b
CROSS JOIN observation_rows o ON o.id = b.id
JOIN sessions s ON s.key = o.session_key
JOIN projects p ON p.key = o.project_key
ORDER BY b.relevance, o.timestamp DESC, o.id DESC`

	// blendDepth is how many of the most relevant rows are blended with recency.
	blendDepth = 1000
)

// Search returns the rows that match the query, most relevant first, ties newest
// first. An unknown project or type, no match and an offset past the end give
// none. A bad query or order is Invalid with a message that says why
// (observations §8.1).
func (j *Journal) Search(ctx context.Context, a SearchArgs) (hits []Hit, err error) {
	match, err := parseQuery(a.Query)
	if err != nil {
		return nil, err
	}
	if a.OrderBy != "" && a.OrderBy != "relevance" && a.OrderBy != "blended" {
		return nil, fault.Newf(fault.Invalid, "invalid_argument", "orderBy must be relevance or blended, not %q", a.OrderBy)
	}
	hits = []Hit{}
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		key, ok, err := scopeKey(ctx, tx, a.Scope)
		if err != nil || !ok {
			return err
		}
		hits, err = search(ctx, tx, match, key, a)
		return err
	})
	return hits, err
}

func search(ctx context.Context, tx *store.Tx, match string, key int64, a SearchArgs) ([]Hit, error) {
	limit, offset := clamp(a.Limit, 1, 100), max(a.Offset, 0)
	filter := []any{match, nil, nil, a.Before, a.After, limit, offset}
	if key != 0 {
		filter[1] = key
	}
	if a.ObsType != "" {
		filter[2] = a.ObsType
	}
	blended := a.OrderBy == "blended"
	if blended {
		filter[5], filter[6] = blendDepth, 0
	}
	hits, ranks := []Hit{}, []float64{}
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var h Hit
		var rank float64
		err := r.Scan(&h.ID, &h.Timestamp, &h.ObsType, &h.ContentPreview, &h.FilePath, &h.SessionID, &h.Project, &h.IsPinned, &rank)
		hits, ranks = append(hits, h), append(ranks, rank)
		return err
	}, selectHits, filter...)
	if err != nil || !blended {
		return hits, err
	}
	hits = blend(hits, ranks, tx.Now().Unix())
	return hits[min(offset, len(hits)):min(offset+limit, len(hits))], nil
}

// blend orders hits by 0.7 relevance, scaled so that the best is 1, and 0.3
// recency; ties newest first.
func blend(hits []Hit, ranks []float64, now int64) []Hit {
	type scored struct {
		Hit
		score float64
	}
	all := make([]scored, len(hits))
	for i, h := range hits {
		relevance := 1.0
		if ranks[0] != 0 {
			relevance = ranks[i] / ranks[0]
		}
		all[i] = scored{h, 0.7*relevance + 0.3*recency(now, h.Timestamp)}
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		switch {
		case a.score != b.score:
			return cmp.Compare(b.score, a.score)
		case a.Timestamp != b.Timestamp:
			return cmp.Compare(b.Timestamp, a.Timestamp)
		default:
			return cmp.Compare(b.ID, a.ID)
		}
	})
	for i, s := range all {
		hits[i] = s.Hit
	}
	return hits
}
