package record

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/words"
)

const (
	// A hit in a title outweighs those in summaries, and one there those in bodies.
	// A weight multiplies a hit's count before a long record discounts it, so that
	// the steps between them are longer than any record is.
	weights = `1e12, 1e6, 1, 1e12, 1e6, 1`

	allMatches = `records_fts WHERE records_fts MATCH ?1`

	// The filters of a search, of the record r: project, subtree, states, types.
	matchesThatPass = `records_fts CROSS JOIN records r ON r.key = records_fts.rowid
WHERE records_fts MATCH ?1 AND r.project_key = ?3 AND r.path >= ?4 AND r.path < ?5
AND (?6 IS NULL OR r.state IN (SELECT value FROM json_each(?6))) AND (?7 IS NULL OR r.type IN (SELECT value FROM json_each(?7)))`

	// Each match is ranked once and without its record, which only those are asked
	// for that are as good as the last one to be shown: they may tie with it. That
	// leaves what FTS5 itself takes to rank a match, about a microsecond.
	hitsBefore = `WITH scored AS MATERIALIZED (
    SELECT records_fts.rowid AS key, bm25(records_fts, ` + weights + `) AS score FROM `
	hitsBehind = `),
edge AS MATERIALIZED (
    SELECT max(score) AS worst, (SELECT count(*) FROM scored) AS total FROM (SELECT score FROM scored ORDER BY score LIMIT +?2))
SELECT ` + refColumns + `, s.score, r.body, e.total, ifnull((SELECT id FROM sessions WHERE key = r.creator), '')
FROM edge e CROSS JOIN scored s CROSS JOIN records r ON r.key = s.key
WHERE s.score <= e.worst ORDER BY s.score, r.modified_at DESC, r.key DESC LIMIT +?2`

	selectHits    = hitsBefore + matchesThatPass + hitsBehind
	selectAllHits = hitsBefore + allMatches + hitsBehind

	countHits    = `SELECT count(*) FROM ` + matchesThatPass
	countAllHits = `SELECT count(*) FROM ` + allMatches

	selectAlone = `SELECT NOT EXISTS (SELECT 1 FROM records WHERE project_key < ?1)
AND NOT EXISTS (SELECT 1 FROM records WHERE project_key > ?1)`

	maxSnippet = 200 // characters
)

// Search finds records by their words, best first, ties last changed first
// (records §2, search_records; §7, search). A query of words alone finds in two tiers
// (amendments §A.1): first the records that hold all of its words, stop words left out;
// then, if these are fewer than the limit, the records that hold some of them, whose
// Matched says so. In a query with operators, quotes or *, adjacent words are
// alternatives, and there is one tier. A query that cannot be parsed is searched for
// word by word. A query without a letter or digit finds nothing.
//
// Errors: CodeInvalid for a blank query, states and at; CodeNotFound for ParentID.
func (b *Book) Search(ctx context.Context, a SearchArgs) (out SearchResult, err error) {
	if strings.TrimSpace(a.Query) == "" {
		return out, invalid("query", "query must not be blank")
	}
	if err := checkStates("states", a.States); err != nil {
		return out, err
	}
	states, err := filterOf(a.States)
	if err != nil {
		return out, err
	}
	types, err := filterOf(a.Types)
	if err != nil {
		return out, err
	}
	out.Results = []Hit{}
	all, some, err := matchesOf(a.Query)
	if err != nil {
		return out, err
	}
	err = b.read(ctx, a.Caller, a.At, func(ctx context.Context, s *scope) error {
		from, until := []byte{}, behindAll()
		if a.ParentID != "" {
			r, err := s.mustFind(ctx, a.ParentID)
			if err != nil {
				return err
			}
			from, until = r.path, behind(r.path)
		}
		if some == "" {
			return nil
		}
		q := hitQuery{query: a.Query, hits: selectHits, count: countHits, args: []any{some, clamp(a.Limit, 20), s.p.Key, from, until, states, types}}
		if a.ParentID == "" && states == nil && types == nil {
			var alone bool
			if err := s.tx.Get(ctx, []any{&alone}, selectAlone, s.p.Key); err != nil {
				return err
			}
			if alone { // every match is of this project
				q.hits, q.count, q.args = selectAllHits, countAllHits, q.args[:2]
			}
		}
		out.Results, out.Total, err = s.tiers(ctx, q, all)
		return err
	})
	return out, err
}

// matchesOf returns a query in FTS5's language: some finds what Search finds, "" if the
// query has no word; all finds what holds all words of a plain query, "" if that is the
// same or the query is not plain.
func matchesOf(query string) (all, some string, err error) {
	language := words.Language{
		Parts: "{title summary body}", Wholes: "{title_wholes summary_wholes body_wholes}", AnyOf: true,
	}
	if plain := words.PlainWords(query); words.IsPlain(query) && len(plain) > 0 {
		query = strings.Join(plain, " ")
		if len(plain) > 1 {
			every := language
			every.AnyOf = false
			if all, err = every.Parse(query); err != nil && fault.KindOf(err) != fault.Invalid {
				return "", "", err
			}
		}
	}
	some, err = language.Parse(query)
	if err == nil || fault.KindOf(err) != fault.Invalid {
		return all, some, err
	}
	return all, words.AnyOf(query), nil
}

// hitQuery is a search as SQL: hits returns the best matches, count their number. The
// first argument is the query in FTS5's language, the second the limit.
type hitQuery struct {
	query       string // as the caller wrote it
	hits, count string
	args        []any
}

// tiers returns the hits that all finds, then, if they are fewer than the limit, the
// other hits of q, and how many hits q has.
func (s *scope) tiers(ctx context.Context, q hitQuery, all string) (list []Hit, total int, err error) {
	if all == "" {
		return s.hits(ctx, q.query, q.hits, q.args)
	}
	limit := q.args[1].(int)
	args := append([]any{all}, q.args[1:]...)
	if list, total, err = s.hits(ctx, q.query, q.hits, args); err != nil {
		return nil, 0, err
	}
	if len(list) == limit {
		args[0] = q.args[0]
		if q.count == countAllHits {
			args = args[:1]
		}
		return list, total, s.tx.Get(ctx, []any{&total}, q.count, args...)
	}
	rest, total, err := s.hits(ctx, q.query, q.hits, q.args)
	last := 1.0
	if len(list) > 0 {
		last = list[len(list)-1].Relevance
	}
	for _, h := range rest {
		if len(list) < limit && !slices.ContainsFunc(list, func(first Hit) bool { return first.ID == h.ID }) {
			h.Matched, h.Relevance = MatchedSome, min(h.Relevance, last)
			list = append(list, h)
		}
	}
	return list, total, err
}

// hits are the best matches of a query, and how many there are in all.
func (s *scope) hits(ctx context.Context, query, q string, args []any) (list []Hit, total int, err error) {
	list = []Hit{}
	marker := words.NewMarker(query)
	best := 0.0
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		var h Hit
		var score float64
		var body, session string
		var err error
		if h.Ref, err = scanRef(rows, &score, &body, &total, &session); err != nil {
			return err
		}
		if len(list) == 0 {
			best = score
		}
		h.Relevance = relevance(score, best)
		h.SessionID = session
		h.Snippet = marker.Snippet(maxSnippet, body, h.Summary, h.Title)
		list = append(list, h)
		return nil
	}, q, args...)
	return list, total, err
}

// relevance is a score relative to the best one, 1 where that says nothing.
func relevance(score, best float64) float64 {
	if best == 0 {
		return 1
	}
	return math.Round(score/best*1000) / 1000
}
