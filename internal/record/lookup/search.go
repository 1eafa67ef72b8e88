package lookup

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/record"
	"cairn/internal/words"
)

const (
	// A hit in a title outweighs hits in summaries, and those outweigh hits in bodies. A
	// weight multiplies a hit's count before the discount for long records, so the steps
	// between weights must exceed the longest record.
	weights = `1e12, 1e6, 1, 1e12, 1e6, 1`

	allMatches = `records_fts WHERE records_fts MATCH ?1`

	// The filters of a search on the record r: project, subtree, states, types.
	matchesThatPass = `records_fts CROSS JOIN records r ON r.key = records_fts.rowid
WHERE records_fts MATCH ?1 AND r.project_key = ?3 AND r.path >= ?4 AND r.path < ?5
AND (?6 IS NULL OR r.state IN (SELECT value FROM json_each(?6))) AND (?7 IS NULL OR r.type IN (SELECT value FROM json_each(?7)))`

	// Each match is ranked once, without reading its record. Records are read only for
	// matches at least as good as the last one shown, because of ties. So the cost is
	// that of FTS5's ranking, about a microsecond per match.
	hitsBefore = `WITH scored AS MATERIALIZED (
    SELECT records_fts.rowid AS key, bm25(records_fts, ` + weights + `) AS score FROM `
	hitsBehind = `),
edge AS MATERIALIZED (
    SELECT max(score) AS worst, (SELECT count(*) FROM scored) AS total FROM (SELECT score FROM scored ORDER BY score LIMIT +?2))
SELECT ` + record.RefColumns + `, s.score, r.body, e.total, ifnull((SELECT id FROM sessions WHERE key = r.creator), ''), (SELECT id FROM projects WHERE key = r.project_key)
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

// Search finds records by their words, best first, ties last changed first (records §2,
// search_records; §7, search). A query of plain words is searched in two tiers
// (amendments §A.1): first records with all words except stop words; then, if these are
// fewer than the limit, records with some of the words, marked in Matched. Words that no
// record contains are replaced by the nearest words of the newest 2,000 records and
// reported in Corrected (amendments §A.2). In a query with operators, quotes or *,
// adjacent words are alternatives, and there is one tier. A query that cannot be parsed
// is searched for word by word. A query without a letter or digit finds nothing.
//
// Errors: CodeInvalid for a blank query, states and at; CodeNotFound for ParentID.
func (b *Lookup) Search(ctx context.Context, a record.SearchArgs) (out record.SearchResult, err error) {
	if strings.TrimSpace(a.Query) == "" {
		return out, record.Invalid("query", "query must not be blank")
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
	out.Results = []record.Hit{}
	q := hitQuery{query: a.Query}
	if err := q.parse(); err != nil {
		return out, err
	}
	err = b.Read(ctx, a.Caller, a.At, func(ctx context.Context, s *record.CallTx) error {
		if out.At = s.Then; s.Tx != s.Log {
			if err := indexPast(ctx, s); err != nil {
				return err
			}
		}
		from, until := []byte{}, behindAll()
		if a.ParentID != "" {
			r, err := s.MustFind(ctx, a.ParentID)
			if err != nil {
				return err
			}
			from, until = r.Path, record.Behind(r.Path)
		}
		if q.some == "" {
			return nil
		}
		q.hits, q.count, q.args = selectHits, countHits, []any{nil, clamp(a.Limit, 20), s.Project.Key, from, until, states, types}
		if alone := a.Everywhere; a.ParentID == "" && states == nil && types == nil {
			if !alone {
				if err := s.Tx.Get(ctx, []any{&alone}, selectAlone, s.Project.Key); err != nil {
					return err
				}
			}
			if alone { // without filters, count the matches
				q.hits, q.count, q.args = selectAllHits, countAllHits, q.args[:2]
			}
		}
		return searchFor(ctx, s, &q, a.AsIs, &out)
	})
	if err == nil && len(out.Results) == 0 {
		out.Hint = emptyHint
	}
	return out, err
}

// searchFor finds the hits in two tiers. If they are fewer than the limit, it corrects
// unknown words, unless AsIs is set.
func searchFor(ctx context.Context, s *record.CallTx, q *hitQuery, asIs bool, out *record.SearchResult) error {
	err := tiers(ctx, s, q, out)
	n := len(out.Results)
	if err != nil || asIs || len(q.plain) == 0 || n == q.limit() && out.Results[n-1].Matched == "" {
		return err
	}
	return corrected(ctx, s, *q, out)
}

const emptyHint = "No record contains any of these words or a similar one. Try other words, or recall, which searches what agents did, mail and memories, too."

// hitQuery is a search. all and some are its FTS5 expressions, see parse. hits is the SQL
// that returns the best matches, count the SQL that counts them. Their first argument is
// the match, the second the limit.
type hitQuery struct {
	query       string
	plain       []string // the words of a plain query without stop words; nil for another query
	all, some   string
	hits, count string
	args        []any
}

func (q *hitQuery) limit() int { return q.args[1].(int) }

// with returns the arguments for a match.
func (q *hitQuery) with(match string) []any { return append([]any{match}, q.args[1:]...) }

// parse sets some and all. some finds all results of Search, and is "" if the query has
// no word. all finds the records with all words of a plain query, and is "" if that is
// the same or the query is not plain.
func (q *hitQuery) parse() (err error) {
	language := words.Language{
		Parts: "{title summary body}", Wholes: "{title_wholes summary_wholes body_wholes}", AnyOf: true,
	}
	query := q.query
	if words.IsPlain(query) {
		q.plain = words.PlainWords(query)
	}
	if q.all = ""; len(q.plain) > 0 {
		query = strings.Join(q.plain, " ")
		if len(q.plain) > 1 {
			every := language
			every.AnyOf = false
			if q.all, err = every.Parse(query); err != nil && fault.KindOf(err) != fault.Invalid {
				return err
			}
		}
	}
	q.some, err = language.Parse(query)
	if err != nil && fault.KindOf(err) == fault.Invalid {
		q.some, err = words.AnyOf(query), nil
	}
	return err
}

// tiers finds the hits with all words, then, if they are fewer than the limit, the hits
// with some of them.
func tiers(ctx context.Context, s *record.CallTx, q *hitQuery, out *record.SearchResult) (err error) {
	if q.all == "" {
		out.Results, out.Total, err = readHits(ctx, s, q.query, q.hits, q.with(q.some))
		return err
	}
	if out.Results, out.Total, err = readHits(ctx, s, q.query, q.hits, q.with(q.all)); err != nil {
		return err
	}
	if len(out.Results) == q.limit() {
		args := q.with(q.some)
		if q.count == countAllHits {
			args = args[:1]
		}
		return s.Tx.Get(ctx, []any{&out.Total}, q.count, args...)
	}
	rest, total, err := readHits(ctx, s, q.query, q.hits, q.with(q.some))
	last := 1.0
	if n := len(out.Results); n > 0 {
		last = out.Results[n-1].Relevance
	}
	for _, h := range rest {
		if len(out.Results) < q.limit() && !slices.ContainsFunc(out.Results, func(first record.Hit) bool { return first.ID == h.ID }) {
			h.Matched, h.Relevance = record.MatchedSome, min(h.Relevance, last)
			out.Results = append(out.Results, h)
		}
	}
	out.Total = total
	return err
}

const (
	// The texts of the newest records of a project, from which unknown words are
	// corrected.
	selectTexts    = `SELECT title || char(10) || summary || char(10) || body FROM records WHERE project_key = ? ORDER BY key DESC LIMIT +?`
	selectAllTexts = `SELECT title || char(10) || summary || char(10) || body FROM records ORDER BY key DESC LIMIT +?`

	correctedFrom = 2000 // records
)

// corrected searches again, with words that no record contains replaced by the nearest
// known words, if there are any.
func corrected(ctx context.Context, s *record.CallTx, q hitQuery, out *record.SearchResult) error {
	var unknown []string
	for _, word := range q.plain {
		one := hitQuery{query: word, hits: q.hits, count: q.count, args: q.args}
		if err := one.parse(); err != nil {
			return err
		}
		args := one.with(one.some)
		if one.count == countAllHits {
			args = args[:1]
		}
		var n int
		if err := s.Tx.Get(ctx, []any{&n}, one.count, args...); err != nil {
			return err
		}
		if n == 0 {
			unknown = append(unknown, word)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	corrector := words.NewCorrector(unknown)
	texts, args := selectTexts, []any{s.Project.Key, correctedFrom}
	if q.count == countAllHits {
		texts, args = selectAllTexts, args[1:]
	}
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		corrector.Learn(text)
		return err
	}, texts, args...)
	corrections := corrector.Corrections()
	if err != nil || len(corrections) == 0 {
		return err
	}
	q.query = strings.Join(words.Corrected(q.plain, corrections), " ")
	if err := q.parse(); err != nil {
		return err
	}
	out.Corrected = corrections
	return tiers(ctx, s, &q, out)
}

// readHits returns the best matches of a query and the total number of matches.
func readHits(ctx context.Context, s *record.CallTx, query, q string, args []any) (list []record.Hit, total int, err error) {
	list = []record.Hit{}
	marker := words.NewMarker(query)
	best := 0.0
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var h record.Hit
		var score float64
		var body, session, project string
		var err error
		if h.Ref, err = record.ScanRef(rows, &score, &body, &total, &session, &project); err != nil {
			return err
		}
		if len(list) == 0 {
			best = score
		}
		h.Relevance = relevance(score, best)
		h.SessionID, h.Project = session, project
		h.Snippet = marker.Snippet(maxSnippet, body, h.Summary, h.Title)
		list = append(list, h)
		return nil
	}, q, args...)
	return list, total, err
}

// relevance returns a score relative to the best one, or 1 if the best one is 0.
func relevance(score, best float64) float64 {
	if best == 0 {
		return 1
	}
	return math.Round(score/best*1000) / 1000
}

// indexPast makes the index of words of a store that holds a project as of the past. Only a
// search needs it, and it takes a third of the time of the rest.
func indexPast(ctx context.Context, s *record.CallTx) error {
	var all []record.Stored
	err := record.EachOfAll(ctx, s.Tx, func(r record.Stored) error {
		all = append(all, r)
		return nil
	})
	for i := range all {
		if err == nil {
			err = record.PutWords(ctx, s.Tx, all[i].Key, &all[i].Record, true)
		}
	}
	return err
}
