package mail

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

// SearchArgs are the arguments of search_messages.
type SearchArgs struct {
	ProjectKey, Query  string
	Limit              *int // nil for 20
	Offset             int
	Ranking            string // "" or relevance, or recency
	Sender             string // "" for anybody
	Importance         string // a list with commas; "" for any
	ThreadID           string // "" for any
	DateStart, DateEnd string // both inclusive, a date as end to its last instant; "" for none
}

// Hit is a message that a search found.
type Hit struct {
	ID          int64   `json:"id"`
	Subject     string  `json:"subject"`
	Importance  string  `json:"importance"`
	AckRequired int     `json:"ack_required"` // 0 or 1
	Created     Time    `json:"created_ts"`
	ThreadID    *string `json:"thread_id"`
	From        string  `json:"from"`
}

// Hits is what search_messages answers; never nil.
type Hits struct {
	Result []Hit `json:"result"`
}

const (
	maxQuery = 1000 // characters

	// bm25 is below 0, the lower the better; a subject counts three times a body.
	searchRank   = `bm25(mail_fts, 3.0, 1.0)`
	searchFilter = `m.project_id = ?2 AND (?3 = 0 OR m.sender_id = ?3) AND (?4 = '' OR instr(?4, ',' || m.importance || ',') > 0)
AND (?5 IS NULL OR m.thread_id = ?5) AND m.created_ts >= ?6 AND m.created_ts <= ?7 `
	hitColumns = `SELECT m.id, m.subject, m.importance, m.ack_required, m.created_ts, m.thread_id, a.name `

	// All matches, of which those that are asked for get a score.
	allMatches      = `SELECT m.id FROM mail_fts f CROSS JOIN mail_messages m ON m.id = f.rowid WHERE mail_fts MATCH ?1 AND ` + searchFilter
	mostRelevant    = `ORDER BY ` + searchRank + `, m.id LIMIT +?9`
	mostRecent      = `ORDER BY m.created_ts DESC, m.id DESC LIMIT +?9`
	selectRelevant  = allMatches + mostRelevant
	selectRecent    = allMatches + mostRecent
	countAllMatches = `SELECT count(*) FROM (SELECT rowid FROM mail_fts WHERE mail_fts MATCH ? ORDER BY rowid DESC LIMIT +?)`

	// The same among few messages, of a thread, a sender or a project; the sign keeps
	// SQLite from asking the full text for each of them.
	ofThread  = `SELECT id FROM mail_messages WHERE project_id = ?2 AND thread_id = ?5`
	ofSender  = `SELECT id FROM mail_messages WHERE sender_id = ?3`
	ofProject = `SELECT id FROM mail_messages WHERE project_id = ?2`
	among     = allMatches + `AND +f.rowid IN (`
	countOf   = `SELECT count(*) FROM (`
	limited   = ` LIMIT +?8)`

	countThread     = countOf + ofThread + limited
	countSender     = countOf + ofSender + limited
	countProject    = countOf + ofProject + limited
	threadRelevant  = among + ofThread + `) ` + mostRelevant
	threadRecent    = among + ofThread + `) ` + mostRecent
	senderRelevant  = among + ofSender + `) ` + mostRelevant
	senderRecent    = among + ofSender + `) ` + mostRecent
	projectRelevant = among + ofProject + `) ` + mostRelevant
	projectRecent   = among + ofProject + `) ` + mostRecent

	// The newest matches of the store, ?8 of them, read one after the other and not put
	// aside first. Most of the time is for their scores.
	newestMatches        = `FROM mail_fts WHERE mail_fts MATCH ?1 ORDER BY rowid DESC LIMIT +?8) f CROSS JOIN mail_messages m ON m.id = f.id WHERE ` + searchFilter
	selectNewestRelevant = `SELECT m.id FROM (SELECT rowid AS id, ` + searchRank + ` AS score ` + newestMatches + `ORDER BY f.score, m.id LIMIT +?9`
	selectNewestRecent   = `SELECT m.id FROM (SELECT rowid AS id ` + newestMatches + mostRecent

	// Among the newest of the project, ?8 of them: looking into a text is slow.
	selectContaining = `SELECT m.id FROM (SELECT * FROM mail_messages WHERE project_id = ?2 ORDER BY created_ts DESC LIMIT +?8) m
WHERE (instr(lower(m.subject), ?1) > 0 OR instr(lower(m.body_md), ?1) > 0) AND ` + searchFilter + `ORDER BY `

	selectContainingFirst  = selectContaining + `m.id LIMIT +?9`
	selectContainingRecent = selectContaining + `m.created_ts DESC, m.id DESC LIMIT +?9`

	selectHit = hitColumns + `FROM mail_messages m JOIN mail_agents a ON a.id = m.sender_id WHERE m.id = ?`
)

const (
	rankedMatches   = 10_000 // of more, among as many messages, the newest are ranked, as long as they fill a page
	lookedIntoTexts = 10_000 // messages that are searched for a part of a word
)

// SearchMessages finds messages of a project by their words, the most relevant
// first, equals by their numbers (mail §5). A query is one of SQLite's full text
// search; what is none is searched literally, and if no word matches, as a part of
// the texts of the newest 10,000 messages. A blank query finds nothing; so does an
// unknown sender. Where 10,000 messages and more match, and as many are of the thread,
// the sender or else the project, the newest 10,000 matches are ranked among each other
// if they fill the page.
//
// Errors: NOT_FOUND for the project, INVALID_LIMIT, INVALID_ARGUMENT,
// INVALID_THREAD_ID, INVALID_TIMESTAMP.
func (o *Office) SearchMessages(ctx context.Context, c Caller, a SearchArgs) (out Hits, err error) {
	q, err := a.query()
	if err != nil {
		return out, mapped(err)
	}
	out.Result = []Hit{}
	err = o.readIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *scope) error {
		if q.text == "" {
			return nil
		}
		if a.Sender != "" {
			from, err := agentByName(ctx, s.tx, s.p.ID, strings.TrimSpace(a.Sender))
			if err != nil || from == nil {
				return err
			}
			q.sender = from.ID
		}
		ids, err := s.search(ctx, q)
		if err != nil {
			return err
		}
		for _, id := range ids {
			var h Hit
			if err := s.tx.Get(ctx, []any{&h.ID, &h.Subject, &h.Importance, &h.AckRequired, &h.Created, &h.ThreadID, &h.From}, selectHit, id); err != nil {
				return err
			}
			out.Result = append(out.Result, h)
		}
		return nil
	})
	return out, err
}

// query is a search as it was checked.
type query struct {
	text       string
	recent     bool
	sender     int64   // 0 for anybody
	importance string  // with commas around each, "" for any
	thread     *string // nil for any
	from, to   Time
	skip, n    int
}

func (a *SearchArgs) query() (q *query, err error) {
	q = &query{skip: a.Offset, to: Time(1<<63 - 1), recent: a.Ranking == "recency"}
	if err := checkText("query", a.Query); err != nil {
		return nil, err
	}
	q.text = strings.TrimSpace(cut(strings.TrimSpace(a.Query), maxQuery))
	if q.n, err = limit(a.Limit, 20); err != nil {
		return nil, err
	}
	switch {
	case a.Offset < 0:
		return nil, invalid("offset", a.Offset, "offset is 0 or more, not %d", a.Offset)
	case a.Ranking != "" && a.Ranking != "relevance" && a.Ranking != "recency":
		return nil, invalid("ranking", a.Ranking, "ranking is relevance or recency, not %s", quoted(a.Ranking))
	}
	if q.thread, err = threadID(a.ThreadID); err != nil {
		return nil, err
	}
	for word := range strings.SplitSeq(a.Importance, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		if !isImportance(word) {
			return nil, badImportance(word)
		}
		q.importance += "," + word + ","
	}
	if a.DateStart != "" {
		if q.from, err = parseTime("date_start", a.DateStart); err != nil {
			return nil, err
		}
	}
	if a.DateEnd != "" {
		if q.to, err = parseTime("date_end", a.DateEnd); err != nil {
			return nil, err
		}
		if _, err := time.Parse(time.DateOnly, strings.TrimSpace(a.DateEnd)); err == nil {
			q.to += Time(24*time.Hour) - 1
		}
	}
	q.skip = min(q.skip, 1<<30)
	return q, nil
}

// search finds the numbers of the messages of one page.
func (s *scope) search(ctx context.Context, q *query) (ids []int64, err error) {
	ids, err = s.matching(ctx, q, q.text)
	if err != nil { // no query of full text; if it is something else, it comes again
		ids, err = s.matching(ctx, q, literally(q.text))
		if err == nil && len(ids) == 0 {
			ids, err = s.containing(ctx, q)
		}
	}
	if err != nil {
		return nil, err
	}
	return ids[min(q.skip, len(ids)):], nil
}

// literally is a query of full text for every word of a text, none of which is an
// operator.
func literally(text string) string {
	var words []string
	for _, word := range strings.Fields(text) {
		words = append(words, `"`+strings.ReplaceAll(word, `"`, `""`)+`"`)
	}
	return strings.Join(words, " ")
}

func (q *query) filter(s *scope, text string, more ...any) []any {
	return append([]any{text, s.p.ID, q.sender, q.importance, q.thread, q.from, q.to}, more...)
}

// matching finds what a query of full text matches, the page and all before it. Where
// fewer messages come into question than match, no others are looked up. Else, of a word
// that is in very many messages only the newest are ranked.
func (s *scope) matching(ctx context.Context, q *query, match string) ([]int64, error) {
	args := q.filter(s, match, rankedMatches, q.skip+q.n)
	var matches, few int
	err := s.tx.Get(ctx, []any{&matches}, countAllMatches, match, rankedMatches)
	if err != nil || matches == 0 {
		return nil, err
	}
	count, among := q.narrowed()
	if err := s.tx.Get(ctx, []any{&few}, count, q.filter(s, match, matches)...); err != nil {
		return nil, err
	}
	if few < matches {
		return s.found(ctx, among, args...)
	}
	if matches < rankedMatches {
		return s.found(ctx, q.ordered(selectRelevant, selectRecent), args...)
	}
	ids, err := s.found(ctx, q.ordered(selectNewestRelevant, selectNewestRecent), args...)
	if err != nil || len(ids) == q.skip+q.n {
		return ids, err
	}
	return s.found(ctx, q.ordered(selectRelevant, selectRecent), args...) // perhaps there are more than were looked at
}

func (q *query) ordered(relevant, recent string) string {
	if q.recent {
		return recent
	}
	return relevant
}

// narrowed are the queries for the messages that come into question: how many they
// are, and which of them match.
func (q *query) narrowed() (count, matching string) {
	switch {
	case q.thread != nil:
		return countThread, q.ordered(threadRelevant, threadRecent)
	case q.sender != 0:
		return countSender, q.ordered(senderRelevant, senderRecent)
	}
	return countProject, q.ordered(projectRelevant, projectRecent)
}

func (s *scope) containing(ctx context.Context, q *query) ([]int64, error) {
	query := selectContainingFirst
	if q.recent {
		query = selectContainingRecent
	}
	return s.found(ctx, query, q.filter(s, strings.ToLower(q.text), lookedIntoTexts, q.skip+q.n)...)
}

// found runs a query for numbers of messages.
func (s *scope) found(ctx context.Context, query string, args ...any) (ids []int64, err error) {
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, query, args...)
	return ids, err
}
