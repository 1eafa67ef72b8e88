package messages

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/mail"
	"cairn/internal/neutral"
	"cairn/internal/words"
)

// SearchArgs are the arguments of search_messages.
type SearchArgs struct {
	ProjectKey string `arg:"project_key,required"`
	Query      string `arg:"query,required" about:"What to search for. Blank: no hits."`
	Limit      *int   `arg:"limit,default=20,min=1,max=1000" about:"Maximum number of hits."`
	Offset     int    `arg:"offset,default=0,min=0" about:"Number of hits to skip."`
	Ranking    string `arg:"ranking,default=relevance,enum=relevance|recency" about:"Best matches first, or newest first."`
	Sender     string `arg:"sender,or=from_agent|sender_name" about:"Only mail from this agent."`
	Importance string `arg:"importance" about:"Only these, separated by commas: low, normal, high, urgent."`
	ThreadID   string `arg:"thread_id" about:"Only this thread."`
	DateStart  string `arg:"date_start,or=after|since" about:"Only mail from this time on (ISO 8601, or a date)."` // inclusive
	DateEnd    string `arg:"date_end,or=before|until" about:"Only mail up to this time; a date means its end."`    // inclusive
	AsIs       bool   // do not correct unknown words
	Everywhere bool   // a plain query in all projects, without Sender and ThreadID; ProjectKey may name any project
}

// Hit is a message that a search found.
type Hit struct {
	ID          int64     `json:"id"`
	Subject     string    `json:"subject"`
	Importance  string    `json:"importance"`
	AckRequired int       `json:"ack_required"` // 0 or 1
	Created     mail.Time `json:"created_ts"`
	ThreadID    *string   `json:"thread_id"`
	From        string    `json:"from"`
	SessionID   string    `json:"session_id,omitempty"` // of the session that sent the message, if known
	Matched     string    `json:"matched,omitempty"`    // MatchedSome, or "" if the message contains all words of a plain query
	Excerpt     string    `json:"excerpt,omitempty"`    // at most 160 characters around the words of the query, one line

	Body    string `json:"-"`
	Project string `json:"-"` // the id that all parts of cairn share
	Slug    string `json:"-"` // of the mail's project
}

// MatchedSome marks a hit that contains some words of a query, but not all (amendments §A.1).
const MatchedSome = "some"

// Hits is the result of search_messages; Result is never nil.
type Hits struct {
	Result []Hit `json:"result"`

	Corrected map[string]string `json:"corrected,omitempty"` // words that no message contains, with their replacements
	Hint      string            `json:"hint,omitempty"`      // for an empty first page: what was tried, and what to try
}

const (
	maxQuery   = 1000 // characters
	maxExcerpt = 160  // characters

	// bm25 is negative, and lower is better. A subject counts three times as much as a body.
	searchRank   = `bm25(mail_fts, 3.0, 1.0)`
	searchFilter = `(?2 = 0 OR m.project_id = ?2) AND (?3 = 0 OR m.sender_id = ?3) AND (?4 = '' OR instr(?4, ',' || m.importance || ',') > 0)
AND (?5 IS NULL OR m.thread_id = ?5) AND m.created_ts >= ?6 AND m.created_ts <= ?7 `
	hitColumns = `SELECT m.id, m.subject, m.importance, m.ack_required, m.created_ts, m.thread_id, a.name `

	// All matches. Only those that pass the filter get a score.
	allMatches      = `SELECT m.id FROM mail_fts f CROSS JOIN mail_messages m ON m.id = f.rowid WHERE mail_fts MATCH ?1 AND ` + searchFilter
	mostRelevant    = `ORDER BY ` + searchRank + `, m.id LIMIT +?9`
	mostRecent      = `ORDER BY m.created_ts DESC, m.id DESC LIMIT +?9`
	selectRelevant  = allMatches + mostRelevant
	selectRecent    = allMatches + mostRecent
	countAllMatches = `SELECT count(*) FROM (SELECT rowid FROM mail_fts WHERE mail_fts MATCH ? ORDER BY rowid DESC LIMIT +?)`

	// The same among the few messages of a thread, a sender or a project. The + prevents
	// SQLite from querying the full text for each message.
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

	// The newest ?8 matches of the store, read one after the other without a temporary copy.
	// Most of the time is spent on their scores.
	newestMatches        = `FROM mail_fts WHERE mail_fts MATCH ?1 ORDER BY rowid DESC LIMIT +?8) f CROSS JOIN mail_messages m ON m.id = f.id WHERE ` + searchFilter
	selectNewestRelevant = `SELECT m.id FROM (SELECT rowid AS id, ` + searchRank + ` AS score ` + newestMatches + `ORDER BY f.score, m.id LIMIT +?9`
	selectNewestRecent   = `SELECT m.id FROM (SELECT rowid AS id ` + newestMatches + mostRecent

	// Only among the newest ?8 messages of the project, since scanning texts is slow.
	selectContaining = `SELECT m.id FROM (SELECT * FROM mail_messages WHERE project_id = ?2 ORDER BY created_ts DESC LIMIT +?8) m
WHERE (instr(lower(m.subject), ?1) > 0 OR instr(lower(m.body_md), ?1) > 0) AND ` + searchFilter + `ORDER BY `

	selectContainingFirst  = selectContaining + `m.id LIMIT +?9`
	selectContainingRecent = selectContaining + `m.created_ts DESC, m.id DESC LIMIT +?9`

	selectTexts = `SELECT subject || char(10) || body_md FROM mail_messages WHERE project_id = ? ORDER BY created_ts DESC LIMIT +?`

	selectAllTexts = `SELECT subject || char(10) || body_md FROM mail_messages ORDER BY id DESC LIMIT +?`

	selectHit = hitColumns + `, m.body_md, m.seq, m.uid, p.slug, ifnull((SELECT q.id FROM projects q WHERE q.key = p.project_key), '') FROM mail_messages m JOIN mail_agents a ON a.id = m.sender_id
JOIN mail_projects p ON p.id = m.project_id WHERE m.id = ?`
)

const (
	rankedMatches   = 10_000 // of more matches, among at least as many messages, only the newest are ranked, if they fill the page
	correctedFrom   = 2_000  // newest messages whose words are used for corrections
	lookedIntoTexts = 10_000 // newest messages that are searched for a part of a word
)

// SearchMessages finds messages of a project by their words, most relevant first, and by
// number if equally relevant (mail §5).
//
// A query of words alone is searched in two tiers (amendments §A.1). The first tier is the
// messages that contain all of the words, without stop words. If they do not fill the page,
// messages that contain some of the words follow, with Matched set. A word that no message
// contains is replaced by the nearest word in the newest 2,000 messages of the project.
// Corrected contains the replacements.
//
// A query with operators, quotes, * or a column uses SQLite's full text syntax. If SQLite
// refuses it, it is searched for literally. If no word matches either, it is searched for as a
// part of the texts of the newest 10,000 messages. A blank query finds nothing, and neither
// does an unknown sender.
//
// At least 10,000 messages may match, while the thread, the sender or else the project has as
// many. Then only the newest 10,000 matches are ranked, if they fill the page.
//
// With Everywhere it finds messages of all projects and corrects by their words, too.
//
// Errors: NOT_FOUND for the project, INVALID_LIMIT, INVALID_ARGUMENT, INVALID_THREAD_ID,
// INVALID_TIMESTAMP.
func (o *Messages) SearchMessages(ctx context.Context, c mail.Caller, a SearchArgs) (out Hits, err error) {
	q, err := a.query()
	if err != nil {
		return out, mail.Fault(err)
	}
	out.Result = []Hit{}
	err = o.ReadIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		if q.text == "" {
			return nil
		}
		if a.Sender != "" {
			from, err := mail.AgentByName(ctx, s.Tx, s.Project.ID, strings.TrimSpace(a.Sender))
			if err != nil || from == nil {
				return err
			}
			q.sender = from.ID
		}
		found, err := search(ctx, s, q)
		out.Corrected = q.corrected
		if err != nil {
			return err
		}
		finder := words.FinderOf(q.text)
		for _, f := range found {
			h, err := hit(ctx, s, f, finder)
			if err != nil {
				return err
			}
			out.Result = append(out.Result, h)
		}
		if len(found) == 0 && q.skip == 0 {
			out.Hint = emptyHint
		}
		return nil
	})
	return out, err
}

const emptyHint = "No message of the project holds any of these words or a similar one. Try other words, or recall, which searches what agents did, records and memories, too."

// query is a search with checked arguments.
type query struct {
	text       string
	recent     bool
	sender     int64   // 0 for any sender
	importance string  // each between commas, "" for any
	thread     *string // nil for any
	from, to   mail.Time
	skip, n    int
	asIs       bool
	everywhere bool
	corrected  map[string]string // the replacements of SearchMessages
}

func (a *SearchArgs) query() (q *query, err error) {
	q = &query{asIs: a.AsIs, everywhere: a.Everywhere, skip: a.Offset, to: mail.Time(1<<63 - 1), recent: a.Ranking == "recency"}
	if err := mail.CheckText("query", a.Query); err != nil {
		return nil, err
	}
	q.text = strings.TrimSpace(mail.Truncate(strings.TrimSpace(a.Query), maxQuery))
	if q.n, err = mail.CheckLimit(a.Limit, 20); err != nil {
		return nil, err
	}
	switch {
	case a.Offset < 0:
		return nil, mail.InvalidArgument("offset", a.Offset, "offset is 0 or more, not %d", a.Offset)
	case a.Ranking != "" && a.Ranking != "relevance" && a.Ranking != "recency":
		return nil, mail.InvalidArgument("ranking", a.Ranking, "ranking is relevance or recency, not %s", mail.Quoted(a.Ranking))
	}
	if q.thread, err = mail.ThreadID(a.ThreadID); err != nil {
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
		if q.from, err = mail.ParseTime("date_start", a.DateStart); err != nil {
			return nil, err
		}
	}
	if a.DateEnd != "" {
		if q.to, err = mail.ParseTime("date_end", a.DateEnd); err != nil {
			return nil, err
		}
		if _, err := time.Parse(time.DateOnly, strings.TrimSpace(a.DateEnd)); err == nil {
			q.to += mail.Time(24*time.Hour) - 1
		}
	}
	q.skip = min(q.skip, 1<<30)
	return q, nil
}

// hit returns the hit for a message that was found.
func hit(ctx context.Context, s *mail.CallTx, f foundMessage, finder *words.Finder) (h Hit, err error) {
	var uid string
	var seq int64
	columns := []any{&h.ID, &h.Subject, &h.Importance, &h.AckRequired, &h.Created, &h.ThreadID, &h.From, &h.Body, &seq, &uid, &h.Slug, &h.Project}
	if err = s.Tx.Get(ctx, columns, selectHit, f.id); err != nil {
		return h, err
	}
	if f.some {
		h.Matched = MatchedSome
	}
	h.Excerpt = neutral.Line(finder.Excerpt(h.Body, maxExcerpt).Text)
	changes, err := s.Tx.Changes(ctx, seq-1, 1)
	if err == nil && len(changes) == 1 && changes[0].Kind == mail.KindMessage && changes[0].ID == uid {
		h.SessionID = changes[0].Session
	}
	return h, err
}

// foundMessage is the number of a message that was found. some is set if it contains some
// words of a plain query, but not all.
type foundMessage struct {
	id   int64
	some bool
}

// search returns the messages of one page.
func search(ctx context.Context, s *mail.CallTx, q *query) (found []foundMessage, err error) {
	plain := words.IsPlain(q.text)
	if plain && !strings.ContainsFunc(q.text, isSyntax) {
		found, err = tiers(ctx, s, q)
		return found[min(q.skip, len(found)):], err
	}
	ids, refused := matching(ctx, s, q, q.text)
	switch {
	case refused == nil:
		found = listed(ids)
	case plain:
		found, err = tiers(ctx, s, q)
	default: // if the error has another cause, the next query returns it
		ids, err = matching(ctx, s, q, literally(strings.Fields(q.text)))
		found = listed(ids)
	}
	if refused != nil && err == nil && len(found) == 0 {
		ids, err = containing(ctx, s, q)
		found = listed(ids)
	}
	return found[min(q.skip, len(found)):], err
}

// isSyntax reports whether a character may have a meaning in SQLite's full text syntax, in a
// query without quotes and operators.
func isSyntax(r rune) bool {
	return r < utf8.RuneSelf && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSpace(r)
}

func listed(ids []int64) (all []foundMessage) {
	for _, id := range ids {
		all = append(all, foundMessage{id: id})
	}
	return all
}

// tiers returns the messages that contain all words of a plain query. If they do not fill the
// page, messages that contain some of the words follow.
func tiers(ctx context.Context, s *mail.CallTx, q *query) ([]foundMessage, error) {
	all := words.PlainWords(q.text)
	if len(all) == 0 {
		return nil, nil
	}
	found, err := tiersOf(ctx, s, q, all)
	if n := len(found); err != nil || q.asIs || n == q.skip+q.n && !found[n-1].some {
		return found, err
	}
	if all, err = correct(ctx, s, q, all); err == nil && q.corrected != nil {
		q.text = strings.Join(all, " ")
		found, err = tiersOf(ctx, s, q, all)
	}
	return found, err
}

// correct replaces words that no message contains by the nearest words in the newest messages
// of the project.
func correct(ctx context.Context, s *mail.CallTx, q *query, all []string) ([]string, error) {
	var unknown []string
	for _, word := range all {
		var n int
		if err := s.Tx.Get(ctx, []any{&n}, countAllMatches, literally([]string{word}), 1); err != nil {
			return nil, err
		}
		if n == 0 {
			unknown = append(unknown, word)
		}
	}
	if len(unknown) == 0 {
		return all, nil
	}
	corrector := words.NewCorrector(unknown)
	texts, args := selectTexts, []any{s.Project.ID, correctedFrom}
	if q.everywhere {
		texts, args = selectAllTexts, args[1:]
	}
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		corrector.Learn(text)
		return err
	}, texts, args...)
	q.corrected = corrector.Corrections()
	return words.Corrected(all, q.corrected), err
}

// tiersOf is tiers for given words, without corrections.
func tiersOf(ctx context.Context, s *mail.CallTx, q *query, all []string) ([]foundMessage, error) {
	ids, err := matching(ctx, s, q, literally(all))
	if err != nil {
		return nil, err
	}
	found := listed(ids)
	if len(found) == q.skip+q.n || len(all) == 1 {
		return found, nil
	}
	rest, err := matching(ctx, s, q, strings.Join(quotedWords(all), " OR "))
	for _, id := range rest {
		if len(found) < q.skip+q.n && !slices.Contains(ids, id) {
			found = append(found, foundMessage{id, true})
		}
	}
	return found, err
}

// literally returns a full text query for all of some words, none of which is an operator.
func literally(all []string) string { return strings.Join(quotedWords(all), " ") }

// quotedWords returns words as full text phrases.
func quotedWords(all []string) (quoted []string) {
	for _, word := range all {
		quoted = append(quoted, `"`+strings.ReplaceAll(word, `"`, `""`)+`"`)
	}
	return quoted
}

func (q *query) filter(s *mail.CallTx, text string, more ...any) []any {
	projectID := s.Project.ID
	if q.everywhere {
		projectID = 0
	}
	return append([]any{text, projectID, q.sender, q.importance, q.thread, q.from, q.to}, more...)
}

// matching returns the matches of a full text query, up to the end of the page. If there are
// fewer candidates than matches, it scans only the candidates. Otherwise, of very many matches
// only the newest are ranked, if they fill the page.
func matching(ctx context.Context, s *mail.CallTx, q *query, match string) ([]int64, error) {
	args := q.filter(s, match, rankedMatches, q.skip+q.n)
	var matches, few int
	err := s.Tx.Get(ctx, []any{&matches}, countAllMatches, match, rankedMatches)
	if err != nil || matches == 0 {
		return nil, err
	}
	if !q.everywhere {
		count, among := q.narrowed()
		if err := s.Tx.Get(ctx, []any{&few}, count, q.filter(s, match, matches)...); err != nil {
			return nil, err
		}
		if few < matches {
			return s.Tx.Keys(ctx, among, args...)
		}
	}
	if matches < rankedMatches {
		return s.Tx.Keys(ctx, q.ordered(selectRelevant, selectRecent), args...)
	}
	ids, err := s.Tx.Keys(ctx, q.ordered(selectNewestRelevant, selectNewestRecent), args...)
	if err != nil || len(ids) == q.skip+q.n {
		return ids, err
	}
	return s.Tx.Keys(ctx, q.ordered(selectRelevant, selectRecent), args...) // there may be more matches than the newest
}

func (q *query) ordered(relevant, recent string) string {
	if q.recent {
		return recent
	}
	return relevant
}

// narrowed returns the queries for the candidates: how many there are, and which of them
// match.
func (q *query) narrowed() (count, matching string) {
	switch {
	case q.thread != nil:
		return countThread, q.ordered(threadRelevant, threadRecent)
	case q.sender != 0:
		return countSender, q.ordered(senderRelevant, senderRecent)
	}
	return countProject, q.ordered(projectRelevant, projectRecent)
}

func containing(ctx context.Context, s *mail.CallTx, q *query) ([]int64, error) {
	query := selectContainingFirst
	if q.recent {
		query = selectContainingRecent
	}
	return s.Tx.Keys(ctx, query, q.filter(s, strings.ToLower(q.text), lookedIntoTexts, q.skip+q.n)...)
}
