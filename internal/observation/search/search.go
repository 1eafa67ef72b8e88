package search

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/store"
)

// Hit is one row of a search result.
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

// SearchArgs are the arguments of Search.
type SearchArgs struct {
	Query   string
	Scope   observation.Scope
	ObsType string // "" for every type
	Limit   int    // clamped to 1–100
	Offset  int    // negative values count as 0
	OrderBy string // "", relevance or blended
	Before  *int64 // Unix seconds, exclusive; nil for no bound
	After   *int64
}

// An unused filter (NULL) costs one comparison per match.
const (
	// The best of all matches are ranked by full text alone and filtered afterwards. For most
	// matches this avoids reading the row. edge reports whether enough were ranked: their number
	// and the relevance of the worst one. The plus sign keeps FTS5 from sorting every match:
	// SQLite's own sorter keeps only the best.
	selectTop = `WITH top AS MATERIALIZED (
    SELECT rowid AS id, rank AS relevance FROM observations_fts
    WHERE observations_fts MATCH ?1 ORDER BY +rank LIMIT +?7),
edge AS MATERIALIZED (SELECT count(*) AS matches, max(relevance) AS worst FROM top)
SELECT o.id, o.timestamp, t.relevance, e.matches, e.worst
FROM edge e CROSS JOIN top t CROSS JOIN observation_rows o ON o.id = t.id
WHERE (?2 IS NULL OR o.project_key = ?2) AND (?3 IS NULL OR o.obs_type = ?3)
  AND (?4 IS NULL OR o.timestamp < ?4) AND (?5 IS NULL OR o.timestamp > ?5)
ORDER BY t.relevance, o.timestamp DESC, o.id DESC LIMIT +?6`

	selectBest = `SELECT o.id, o.timestamp, f.rank, 0, 0
FROM observations_fts f CROSS JOIN observation_rows o ON o.id = f.rowid
WHERE observations_fts MATCH ?1
  AND (?2 IS NULL OR o.project_key = ?2) AND (?3 IS NULL OR o.obs_type = ?3)
  AND (?4 IS NULL OR o.timestamp < ?4) AND (?5 IS NULL OR o.timestamp > ?5)
ORDER BY f.rank, o.timestamp DESC, o.id DESC LIMIT +?6`

	selectHit = `SELECT o.id, o.timestamp, o.obs_type, substr(o.content, 1, 120), o.file_path, s.id, p.id, o.is_pinned
FROM observation_rows o
JOIN sessions s ON s.key = o.session_key
JOIN projects p ON p.key = o.project_key
WHERE o.id = ?`
)

const (
	// topBeyond is how many more matches than the page needs are ranked first.
	topBeyond = 500
	// blendDepth is the number of most relevant rows that are blended with recency.
	blendDepth = 1000
)

// Search returns the rows that match the query, most relevant first, ties newest first. An unknown
// project, no match and an offset past the end return an empty list. An invalid query or order is
// an error of kind Invalid whose message gives the reason. An unknown type is Invalid too, and its
// hint lists the types (observations §8.1, amendments §F).
func Search(ctx context.Context, svc *observation.Service, a SearchArgs) (hits []Hit, err error) {
	query, err := observation.ParseQuery(a.Query)
	if err != nil {
		return nil, err
	}
	if err := checkOrder(a); err != nil {
		return nil, err
	}
	hits = []Hit{}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		key, ok, err := observation.ScopeKey(ctx, tx, a.Scope)
		if err != nil || !ok {
			return err
		}
		hits, err = search(ctx, tx, query, key, a)
		return err
	})
	return hits, err
}

// checkOrder returns an error if the order or the type is unknown.
func checkOrder(a SearchArgs) error {
	if a.OrderBy != "" && a.OrderBy != "relevance" && a.OrderBy != "blended" {
		return fault.Newf(fault.Invalid, "invalid_argument", "orderBy must be relevance or blended, not %q", a.OrderBy)
	}
	return observation.CheckType(a.ObsType)
}

// match is a row that matches the query.
type match struct {
	id, timestamp int64
	relevance     float64 // BM25 as SQLite computes it: below 0, lower is better
}

// search ranks matches first and then reads only the rows of the requested page.
func search(ctx context.Context, tx *store.Tx, query string, key int64, a SearchArgs) ([]Hit, error) {
	limit, offset := min(max(a.Limit, 1), 100), min(max(a.Offset, 0), math.MaxInt32)
	best, err := matchesInOrder(ctx, tx, query, key, a, offset+limit)
	if err != nil {
		return nil, err
	}
	hits := []Hit{}
	for _, m := range best[min(offset, len(best)):min(offset+limit, len(best))] {
		err := tx.Each(ctx, func(r *sql.Rows) error {
			var h Hit
			err := r.Scan(&h.ID, &h.Timestamp, &h.ObsType, &h.ContentPreview, &h.FilePath, &h.SessionID, &h.Project, &h.IsPinned)
			hits = append(hits, h)
			return err
		}, selectHit, m.id)
		if err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// matchesInOrder returns the n best matches, or more, in the order that a requests.
func matchesInOrder(ctx context.Context, tx *store.Tx, query string, key int64, a SearchArgs, n int) ([]match, error) {
	filter := []any{query, nil, nil, a.Before, a.After}
	if key != 0 {
		filter[1] = key
	}
	if a.ObsType != "" {
		filter[2] = a.ObsType
	}
	if a.OrderBy != "blended" {
		return bestMatches(ctx, tx, filter, n)
	}
	best, err := bestMatches(ctx, tx, filter, blendDepth)
	if err == nil {
		blend(best, tx.Now().Unix())
	}
	return best, err
}

// bestMatches returns the n most relevant matches that pass the filter, ties newest first. Usually
// they are among the best of all matches. It ranks every match only if a further match might
// belong to the result: because too many were filtered out, or because of a tie at the end.
func bestMatches(ctx context.Context, tx *store.Tx, filter []any, n int) ([]match, error) {
	var matches int
	var worst float64
	read := func(query string, args ...any) (best []match, err error) {
		err = tx.Each(ctx, func(r *sql.Rows) error {
			var m match
			err := r.Scan(&m.id, &m.timestamp, &m.relevance, &matches, &worst)
			best = append(best, m)
			return err
		}, query, args...)
		return best, err
	}
	best, err := read(selectTop, append(slices.Clone(filter), n, n+topBeyond)...)
	if err != nil {
		return nil, err
	}
	all := len(best) > 0 && matches < n+topBeyond
	if all || len(best) == n && best[n-1].relevance < worst {
		return best, nil
	}
	return read(selectBest, append(slices.Clone(filter), n)...)
}

// blend sorts matches by 0.7 relevance, scaled so that the best is 1, and 0.3 recency, ties newest
// first.
func blend(best []match, now int64) {
	if len(best) == 0 {
		return
	}
	top := best[0].relevance
	score := func(m match) float64 {
		relevance := 1.0
		if top != 0 {
			relevance = m.relevance / top
		}
		return 0.7*relevance + 0.3*observation.Recency(now, m.timestamp, observation.RecencyDays)
	}
	slices.SortStableFunc(best, func(a, b match) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(b.timestamp, a.timestamp), cmp.Compare(b.id, a.id))
	})
}
