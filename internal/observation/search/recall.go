package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"cairn/internal/observation"
	"cairn/internal/oneline"
	"cairn/internal/store"
	"cairn/internal/words"
)

// RecallArgs is a natural-language question for Recall and RecallRows.
type RecallArgs struct {
	Query   string
	Words   string // words that the caller expects in the result, which weigh more; "" for none
	Scope   observation.Scope
	ObsType string // type of the returned rows; "" for every type
	Before  *int64 // Unix seconds, exclusive; nil for no bound
	After   *int64
	Limit   int    // sessions (Recall) or rows (RecallRows), clamped to 1–100; 0 for 5 or 20
	Items   int    // maximum number of rows per session, clamped to 1–20, 0 for 3
	Session string // id of the calling session, which is excluded; "" for none
	Similar int    // Recall only: maximum number of sessions found by similar words, 0 for none
}

// Recalled is the result of Recall.
type Recalled struct {
	Sessions  []RecalledSession `json:"sessions"`            // best first, without duplicates
	Similar   []RecalledSession `json:"similar,omitempty"`   // found by similar words, best first; may repeat some of Sessions
	Words     []string          `json:"words"`               // the words that were searched for
	Corrected map[string]string `json:"corrected,omitempty"` // words that no turn contains, and their replacements
	Period    *RecalledPeriod   `json:"period,omitempty"`    // the period that the question names
	Matched   string            `json:"matched"`             // "words"; "period": no word matches; "newest": the period does not match either
}

// RecalledPeriod is the period that a question names: from From, inclusive, to To, exclusive, in
// Unix seconds.
type RecalledPeriod struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Said string `json:"said"` // the words of the question that name it
}

// RecalledSession is a session that matches a question.
type RecalledSession struct {
	SessionID string         `json:"session_id"`
	Project   string         `json:"project"`
	When      int64          `json:"when"`              // time of its best turn, Unix seconds
	Harness   string         `json:"harness"`           // "" if it is not known
	Branch    string         `json:"branch,omitempty"`  // "" if it is not known
	About     string         `json:"about"`             // first meaningful prompt, on one line of at most 200 characters
	Score     float64        `json:"score"`             // above 0, comparable within one result; 0 if no word matched
	Items     []RecalledItem `json:"items"`             // its best rows, best first
	Printed   bool           `json:"printed,omitempty"` // one of its rows printed a line of the question; that row is its first item
}

// RecalledItem is a row of a turn that matches a question.
type RecalledItem struct {
	Hit
	Excerpt string   `json:"excerpt"`         // text around the match, on one line of at most 160 characters
	Marks   [][2]int `json:"-"`               // byte ranges of the excerpt that are words of the question
	Matched string   `json:"matched"`         // "all": it contains all words of the question; "some"; "similar": only similar words
	Score   float64  `json:"score,omitempty"` // comparable within one result

	telling int    // number of words of the question in it, without everyday words
	content string // text of the row; "" once the excerpt is set
}

// Values of Matched.
const (
	MatchedAll     = "all"
	MatchedSome    = "some"
	MatchedSimilar = "similar"
	MatchedWords   = "words"
	MatchedPeriod  = "period"
	MatchedNewest  = "newest"
)

// maxExcerpt is the maximum number of characters in an excerpt (amendments §A.3).
const maxExcerpt = 160

// Recall returns the sessions that best match a natural-language question, best first, with their
// best rows (amendments §A.1–A.4). It ranks turns: a prompt with the actions and answers that
// follow it. Every word counts, rare words more. Stop words are ignored. A word that no turn
// contains is replaced by the nearest word that some turn contains. A time expression is removed
// from the question, and turns of that period come first. It is resolved against the store's clock
// in the local time zone. Operators of Search have no effect here.
//
// If no turn covers 7 tenths of the question, by the weight of its words, words of nearly the same
// meaning find further sessions: see RecallArgs.Similar. They are not used for a question with
// Words, or with a line that some row printed.
//
// If no session matches, Recall returns the sessions with the most turns in the period. If there
// are none, or without a period, it returns the newest sessions of the scope. Matched reports
// which. A question without a letter or digit is treated the same way. An unknown project and an
// empty store return no sessions. Errors are those of store.Read.
func Recall(ctx context.Context, svc *observation.Service, a RecallArgs) (out Recalled, err error) {
	out = Recalled{Sessions: []RecalledSession{}, Words: []string{}, Matched: MatchedNewest}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		key, ok, err := observation.ScopeKey(ctx, tx, a.Scope)
		if err != nil || !ok {
			return err
		}
		r := newRecalling(ctx, svc, tx, &a, key)
		out, err = r.sessions()
		return err
	})
	return out, err
}

// RecalledRows is the result of RecallRows: the matching rows, best first.
type RecalledRows struct {
	Rows      []RecalledItem    `json:"rows"`
	Corrected map[string]string `json:"corrected,omitempty"` // see Recalled
}

// RecallRows ranks as Recall does and returns rows. The rows of the best session that contain
// words of the question come first, best first, then those of the next session. Rows without such
// a word are left out, so the result may be empty. If no session matches and the question names a
// period, RecallRows returns the prompts of that period, newest first. Errors are those of
// store.Read.
func RecallRows(ctx context.Context, svc *observation.Service, a RecallArgs) (out RecalledRows, err error) {
	out.Rows = []RecalledItem{}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		key, ok, err := observation.ScopeKey(ctx, tx, a.Scope)
		if err != nil || !ok {
			return err
		}
		r := newRecalling(ctx, svc, tx, &a, key)
		out, err = r.rows()
		return err
	})
	return out, err
}

// recalling is the state of one call of Recall, RecallRows or Related.
type recalling struct {
	service     *observation.Service
	rowSessions int             // maximum number of sessions whose rows are scored
	ctx         context.Context //nolint:containedctx // it lives as long as one call
	tx          *store.Tx
	args        *RecallArgs
	project     int64 // key, 0 for all

	withProjects bool // read the projects of turns even if all projects are searched

	period    *words.Period
	terms     []askedTerm
	corrected map[string]string
	tries     int     // words for which a correction was tried
	asking    int64   // key of the calling session
	turns     float64 // number of turns in the index
	length    float64 // mean length of a turn
	found     map[int64]*foundTurn
	spare     spareTurns
	pasted    []pastedRow    // rows that printed a line of the question; nil until read
	similar   []similarTurns // turns that contain similar words; read only if needed
}

// askedTerm is a word of the question.
type askedTerm struct {
	words.Term
	weight float64 // weight in addition to its rarity
	count  float64 // number of turns that contain it
	rarity float64
	full   float64 // upper limit of its score in a text that contains it very often
	pair   bool    // two neighbouring words of the question, joined

	borrowed bool // no turn contains it, only similar words
}

func newRecalling(ctx context.Context, svc *observation.Service, tx *store.Tx, a *RecallArgs, project int64) *recalling {
	r := &recalling{service: svc, rowSessions: maxRankRows, ctx: ctx, tx: tx, args: a, project: project, corrected: map[string]string{}, found: map[int64]*foundTurn{}}
	rest := a.Query
	if cut, p, ok := words.CutPeriod(a.Query, tx.Now().In(time.Local)); ok {
		rest, r.period = cut, &p
	}
	known := map[string]int{}
	add := func(q words.Question, weight float64) {
		for _, t := range q.Terms {
			if i, ok := known[t.Key]; ok {
				r.terms[i].weight = max(r.terms[i].weight, weight)
				continue
			}
			known[t.Key] = len(r.terms)
			r.terms = append(r.terms, askedTerm{Term: t, weight: weight})
		}
	}
	question := words.Ask(rest)
	if r.period == nil || !question.IsEmpty() {
		add(question, 1)
	}
	add(words.Ask(a.Words), wordsWeight)
	for _, t := range question.Pairs {
		if _, ok := known[t.Key]; !ok {
			known[t.Key] = len(r.terms)
			r.terms = append(r.terms, askedTerm{Term: t, weight: pairWeight, pair: true})
		}
	}
	return r
}

const (
	wordsWeight = 2   // weight of a word that the caller expects in the result
	pairWeight  = 0.7 // weight of two neighbouring words that are joined in a text
)

// sessions returns the result of Recall.
func (r *recalling) sessions() (out Recalled, err error) {
	limit, items := min(max(cmp.Or(r.args.Limit, 5), 1), 100), min(max(cmp.Or(r.args.Items, 3), 1), 20)
	out = Recalled{Sessions: []RecalledSession{}, Words: []string{}, Corrected: r.corrected, Matched: MatchedWords}
	for _, t := range r.terms {
		if !t.pair {
			out.Words = append(out.Words, t.Word)
		}
	}
	if p := r.period; p != nil {
		out.Period = &RecalledPeriod{From: p.From.Unix(), To: p.To.Unix(), Said: p.Said}
		if p.From.IsZero() {
			out.Period.From = 0
		}
	}
	ranked, err := r.rank()
	if err != nil {
		return out, err
	}
	if len(ranked) == 0 {
		if ranked, out.Matched, err = r.newest(limit); err != nil {
			return out, err
		}
	}
	var similar []*foundSession
	if out.Matched == MatchedWords {
		if similar, err = r.similarSessions(); err != nil {
			return out, err
		}
	}
	if out.Sessions, err = r.describe(ranked, limit, items); err != nil {
		return out, err
	}
	out.Similar, err = r.describe(similar, r.args.Similar, items)
	r.spell(out.Sessions)
	return out, err
}

// describe returns the first limit sessions of a ranking, each with its best rows.
func (r *recalling) describe(ranked []*foundSession, limit, items int) ([]RecalledSession, error) {
	out := []RecalledSession{}
	for _, s := range ranked[:min(limit, len(ranked))] {
		described, err := r.describeSession(s, items)
		if err != nil {
			return nil, err
		}
		out = append(out, described)
	}
	return out, nil
}

// rows returns the result of RecallRows.
func (r *recalling) rows() (out RecalledRows, err error) {
	out = RecalledRows{Rows: []RecalledItem{}, Corrected: r.corrected}
	limit := min(max(cmp.Or(r.args.Limit, 20), 1), 100)
	ranked, err := r.rank()
	if err != nil {
		return out, err
	}
	if from, to, ok := r.bounds(); ok && len(ranked) == 0 {
		out.Rows, err = r.prompts(from, to, limit)
		return out, err
	}
	for _, s := range ranked {
		if len(out.Rows) >= limit {
			break
		}
		items, err := r.items(s, limit-len(out.Rows))
		if err != nil {
			return out, err
		}
		out.Rows = append(out.Rows, items...)
	}
	return out, nil
}

// prompts returns the prompts of a period, newest first, at most n. With an ObsType it returns
// turns' first rows of that type instead.
func (r *recalling) prompts(from, to int64, n int) (items []RecalledItem, err error) {
	items = []RecalledItem{}
	err = r.tx.Each(r.ctx, func(rows *sql.Rows) error {
		item, content, err := scanItem(rows)
		item.Excerpt, item.Matched = oneline.Cut(strings.Join(strings.Fields(content), " "), maxExcerpt), MatchedSome
		items = append(items, item)
		return err
	}, selectPromptsWithin, from, to, r.project, r.args.Session, cmp.Or(r.args.ObsType, observation.TypePrompt), n)
	return items, err
}

const (
	selectPromptsWithin = `SELECT o.id, o.timestamp, o.obs_type, o.content, o.file_path, s.id, p.id, o.is_pinned
FROM turns t JOIN observation_rows o ON o.id = t.id JOIN sessions s ON s.key = o.session_key JOIN projects p ON p.key = o.project_key
WHERE t.at >= ?1 AND t.at < ?2 AND (?3 = 0 OR o.project_key = ?3) AND s.id <> ?4 AND o.obs_type = ?5
ORDER BY t.at DESC, t.id DESC LIMIT +?6`

	selectRecalled = `SELECT s.id, p.id, ifnull(s.harness, ''), ifnull((SELECT b.branch FROM session_branches b WHERE b.session_key = s.key ORDER BY b.branch IN ('main', 'master'), b.branch LIMIT 1), ''),
ifnull(s.summary ->> '$.intent', ''), s.last_seen
FROM sessions s JOIN observation_rows o ON o.id = (SELECT id FROM observation_rows WHERE session_key = s.key ORDER BY timestamp LIMIT 1)
JOIN projects p ON p.key = o.project_key WHERE s.key = ?`

	selectFirstPrompts = `SELECT substr(content, 1, 1000) FROM observation_rows
WHERE session_key = ? AND obs_type = 'user_prompt' ORDER BY timestamp, id LIMIT 20`

	selectBusiestSessions = `SELECT s.key, max(t.at) AS newest FROM turns t JOIN sessions s ON s.key = t.session_key
JOIN observation_rows o ON o.id = t.id
WHERE t.at >= ?1 AND t.at < ?2 AND (?3 = 0 OR o.project_key = ?3) AND s.id <> ?4
GROUP BY s.key ORDER BY count(*) DESC, newest DESC LIMIT +?5`

	selectNewestSessions = `SELECT s.key, s.last_seen FROM sessions s JOIN projects p ON p.id = s.project_id
WHERE (?1 = 0 OR p.key = ?1) AND s.id <> ?2 AND EXISTS (SELECT 1 FROM observation_rows o WHERE o.session_key = s.key)
ORDER BY s.last_seen DESC, s.key DESC LIMIT +?3`
)

// newest returns the sessions with the most turns in the question's period. Without a period, or
// if no session has a turn in it, it returns the sessions that were active last.
func (r *recalling) newest(n int) (out []*foundSession, matched string, err error) {
	read := func(query string, args ...any) error {
		return r.tx.Each(r.ctx, func(rows *sql.Rows) error {
			s := &foundSession{}
			err := rows.Scan(&s.key, &s.at)
			out = append(out, s)
			return err
		}, query, args...)
	}
	if from, to, ok := r.bounds(); ok {
		if err := read(selectBusiestSessions, from, to, r.project, r.args.Session, n); err != nil || len(out) > 0 {
			return out, MatchedPeriod, err
		}
	}
	return out, MatchedNewest, read(selectNewestSessions, r.project, r.args.Session, n)
}

// bounds returns the question's period in Unix seconds. ok is false if the question names none.
func (r *recalling) bounds() (from, to int64, ok bool) {
	if r.period == nil {
		return 0, 0, false
	}
	if !r.period.From.IsZero() {
		from = r.period.From.Unix()
	}
	return from, r.period.To.Unix(), true
}

// describeSession returns the description of a session and its best rows.
func (r *recalling) describeSession(s *foundSession, items int) (out RecalledSession, err error) {
	var seen int64
	var intent string
	err = r.tx.Get(r.ctx, []any{&out.SessionID, &out.Project, &out.Harness, &out.Branch, &intent, &seen}, selectRecalled, s.key)
	if err != nil {
		return out, err
	}
	out.When, out.Score, out.Printed = s.at, s.score, s.pasted > 0
	if out.About, err = AboutSession(r.ctx, r.tx, s.key, intent); err != nil {
		return out, err
	}
	out.Items, err = r.items(s, items)
	return out, err
}

// AboutSession returns the first meaningful prompt of a session, or its intent if there is none,
// on one line of at most observation.MaxIntent characters.
func AboutSession(ctx context.Context, tx *store.Tx, session int64, intent string) (about string, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var prompt string
		if err := rows.Scan(&prompt); err != nil || !isMeaningful(prompt) {
			return err
		}
		about = prompt
		return observation.ErrEnough
	}, selectFirstPrompts, session)
	if errors.Is(err, observation.ErrEnough) {
		err = nil
	}
	return oneline.Cut(strings.Join(strings.Fields(cmp.Or(about, intent)), " "), observation.MaxIntent), err
}

// minMeaningful is the number of informative words that make a prompt meaningful.
const minMeaningful = 4

// isMeaningful reports whether a prompt describes what a session is about. It must not begin like
// a command or like text that a harness wrote. It needs four informative words, or two of them
// among eight words.
func isMeaningful(prompt string) bool {
	prompt = strings.TrimSpace(prompt)
	for _, start := range []string{"/", "<", "[", "This session is being continued", "Caveat:"} {
		if strings.HasPrefix(prompt, start) {
			return false
		}
	}
	q := words.Ask(prompt)
	return len(q.Terms) >= minMeaningful || len(q.Terms) > 1 && len(q.Terms)+len(q.Left) >= 2*minMeaningful
}

// items returns the best rows of a session's best turns, best first, at most n, without duplicate
// excerpts.
func (r *recalling) items(s *foundSession, n int) ([]RecalledItem, error) {
	finder := r.finder()
	all, err := r.turnItems(s, finder)
	if err == nil && len(all) == 0 && len(r.similar) > 0 {
		finder = r.similarFinder()
		all, err = r.similarItems(s, finder)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b RecalledItem) int { return cmp.Compare(b.Score, a.Score) })
	seen := map[string]bool{}
	out := []RecalledItem{}
	for _, item := range all {
		if len(out) == n {
			break
		}
		item.cut(finder)
		if seen[item.Excerpt] {
			continue
		}
		seen[item.Excerpt] = true
		out = append(out, item)
	}
	return out, nil
}

// cut sets the excerpt of a row, unless it has been set already.
func (i *RecalledItem) cut(finder *words.Finder) {
	if i.content != "" {
		e := finder.Excerpt(i.content, maxExcerpt)
		i.Excerpt, i.Marks, i.content = e.Text, e.Marks, ""
	}
}
