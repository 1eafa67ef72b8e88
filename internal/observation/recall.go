package observation

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"cairn/internal/store"
	"cairn/internal/words"
)

// RecallArgs is a question in plain words for Recall and RecallRows.
type RecallArgs struct {
	Query   string
	Words   string // what the one who asks expects to stand there; these weigh more; "" for none
	Scope   Scope
	ObsType string // the type of the rows that are shown; "" for every type
	Before  *int64 // Unix seconds, exclusive; nil for no bound
	After   *int64
	Limit   int    // sessions of Recall, kept within 1 to 100, 0 for 5; rows of RecallRows, likewise, 0 for 20
	Items   int    // rows of one session, kept within 1 to 20, 0 for 3
	Session string // the session that asks, which is no answer; "" for none
	Similar int    // of Recall: how many sessions similar words may find, 0 for none
}

// Recalled is what Recall found.
type Recalled struct {
	Sessions  []RecalledSession `json:"sessions"`            // best first, each once
	Similar   []RecalledSession `json:"similar,omitempty"`   // found by similar words, best first; some are among Sessions, too
	Words     []string          `json:"words"`               // what was searched for
	Corrected map[string]string `json:"corrected,omitempty"` // words that no turn holds, and what was searched for in their place
	Period    *RecalledPeriod   `json:"period,omitempty"`    // the time that the question speaks of
	Matched   string            `json:"matched"`             // "words"; "period", the sessions have none of the words; "newest", nor are they of that time
}

// RecalledPeriod is the time that a question speaks of, from From, inclusive, until To,
// exclusive, in Unix seconds.
type RecalledPeriod struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Said string `json:"said"` // the words that tell it
}

// RecalledSession is a session that answers a question.
type RecalledSession struct {
	SessionID string         `json:"session_id"`
	Project   string         `json:"project"`
	When      int64          `json:"when"`              // of its best turn, Unix seconds
	Harness   string         `json:"harness"`           // "" if it is not known
	Branch    string         `json:"branch,omitempty"`  // "" if it is not known
	About     string         `json:"about"`             // the first prompt that means something, at most 200 characters in one line
	Score     float64        `json:"score"`             // above 0, comparable within one answer; 0 where no word matched
	Items     []RecalledItem `json:"items"`             // its best rows, best first
	Printed   bool           `json:"printed,omitempty"` // a row of it printed a line of the question, its first item
}

// RecalledItem is a row of a turn that answers a question.
type RecalledItem struct {
	Hit
	Excerpt string   `json:"excerpt"`         // at most 160 characters in one line, around what matched
	Marks   [][2]int `json:"-"`               // where the excerpt holds words of the question, in bytes
	Matched string   `json:"matched"`         // "all": it holds all words of the question; "some"; "similar": none, but similar ones
	Score   float64  `json:"score,omitempty"` // comparable within one answer

	telling int    // words of the question that it holds and that are no everyday words
	content string // of the row, until its excerpt is made
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

// maxExcerpt is how many characters an excerpt has at most (amendments §A.3).
const maxExcerpt = 160

// Recall answers a question in plain words with sessions, the best first, and their best
// rows (amendments §A.1–A.4). What is ranked is the turn: a prompt with the actions and
// answers that follow it. Any word counts, a rare one more; words that say nothing are
// left out, a word that no turn holds is replaced by the nearest one that some turn
// holds. A time expression is taken out of the question, and turns of that time come
// first; it is counted from the store's clock in the local time zone. Operators of
// Search mean nothing here.
//
// Where no turn holds 7 tenths of the question, by the weight of its words, words of nearly
// the same meaning find further sessions: see Similar. They are not used for a question
// with Words, or with a line that some row printed.
//
// When no session matches, the newest of that time or, without any, of the project are
// returned, and Matched says so; an unknown project and an empty store give none. A
// question without a letter or digit is answered in the same way. Errors are those of
// store.Read.
func (j *Service) Recall(ctx context.Context, a RecallArgs) (out Recalled, err error) {
	out = Recalled{Sessions: []RecalledSession{}, Words: []string{}, Matched: MatchedNewest}
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		key, ok, err := scopeKey(ctx, tx, a.Scope)
		if err != nil || !ok {
			return err
		}
		r := j.newRecalling(ctx, tx, &a, key)
		out, err = r.sessions()
		return err
	})
	return out, err
}

// RecalledRows are rows that answer a question, best first.
type RecalledRows struct {
	Rows      []RecalledItem    `json:"rows"`
	Corrected map[string]string `json:"corrected,omitempty"` // see Recalled
}

// RecallRows ranks as Recall does and returns rows: those of the best turn that hold
// words of the question, best first, then those of the next. A row that holds none is
// not among them, so there may be none. A question that has a time and no other word that
// is known gives the prompts of that time, newest first. Errors are those of store.Read.
func (j *Service) RecallRows(ctx context.Context, a RecallArgs) (out RecalledRows, err error) {
	out.Rows = []RecalledItem{}
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		key, ok, err := scopeKey(ctx, tx, a.Scope)
		if err != nil || !ok {
			return err
		}
		r := j.newRecalling(ctx, tx, &a, key)
		out, err = r.rows()
		return err
	})
	return out, err
}

// recalling is one question under way.
type recalling struct {
	journal     *Service
	rowSessions int             // sessions whose rows are weighed
	ctx         context.Context //nolint:containedctx // it lives as long as one call
	tx          *store.Tx
	args        *RecallArgs
	project     int64 // key, 0 for all

	withProjects bool // the projects of turns are read also where all are asked

	period    *words.Period
	terms     []askedTerm
	corrected map[string]string
	tries     int     // words that were to be corrected
	asking    int64   // key of the session that asks
	turns     float64 // in the index
	length    float64 // of a turn, in the mean
	found     map[int64]*foundTurn
	spare     spareTurns
	pasted    []pastedRow    // rows that printed a line of the question; nil until they are read
	similar   []similarTurns // turns of similar words, read where they are wanted and needed
}

// askedTerm is a word of the question.
type askedTerm struct {
	words.Term
	weight float64 // how much it counts beside its rarity
	count  float64 // turns that hold it
	rarity float64
	full   float64 // what it counts in a text that holds it very often
	pair   bool    // it is two words of the question in one

	borrowed bool // no turn holds it, only words similar to it
}

func (j *Service) newRecalling(ctx context.Context, tx *store.Tx, a *RecallArgs, project int64) *recalling {
	r := &recalling{journal: j, rowSessions: maxRankRows, ctx: ctx, tx: tx, args: a, project: project, corrected: map[string]string{}, found: map[int64]*foundTurn{}}
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
	wordsWeight = 2   // how much more a word counts that the agent expects to stand there
	pairWeight  = 0.7 // what two neighbouring words count where they stand as one
)

// sessions answers Recall.
func (r *recalling) sessions() (out Recalled, err error) {
	limit, items := clamp(cmp.Or(r.args.Limit, 5), 1, 100), clamp(cmp.Or(r.args.Items, 3), 1, 20)
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

// describe describes the first sessions of a ranking, with their best rows.
func (r *recalling) describe(ranked []*foundSession, limit, items int) ([]RecalledSession, error) {
	out := []RecalledSession{}
	for _, s := range ranked[:min(limit, len(ranked))] {
		described, err := r.tell(s, items)
		if err != nil {
			return nil, err
		}
		out = append(out, described)
	}
	return out, nil
}

// rows answers RecallRows.
func (r *recalling) rows() (out RecalledRows, err error) {
	out = RecalledRows{Rows: []RecalledItem{}, Corrected: r.corrected}
	limit := clamp(cmp.Or(r.args.Limit, 20), 1, 100)
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

// prompts are those of a time, newest first.
func (r *recalling) prompts(from, to int64, n int) (items []RecalledItem, err error) {
	items = []RecalledItem{}
	err = r.tx.Each(r.ctx, func(rows *sql.Rows) error {
		item, content, err := scanItem(rows)
		item.Excerpt, item.Matched = cutRunes(strings.Join(strings.Fields(content), " "), maxExcerpt), MatchedSome
		items = append(items, item)
		return err
	}, selectPromptsWithin, from, to, r.project, r.args.Session, cmp.Or(r.args.ObsType, typePrompt), n)
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

// newest are the sessions with most turns in the period or, without a period or any
// session in it, those with the newest turns.
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

// bounds are those of the question's period, in Unix seconds.
func (r *recalling) bounds() (from, to int64, ok bool) {
	if r.period == nil {
		return 0, 0, false
	}
	if !r.period.From.IsZero() {
		from = r.period.From.Unix()
	}
	return from, r.period.To.Unix(), true
}

// tell describes a session and its best rows.
func (r *recalling) tell(s *foundSession, items int) (out RecalledSession, err error) {
	var seen int64
	var intent string
	err = r.tx.Get(r.ctx, []any{&out.SessionID, &out.Project, &out.Harness, &out.Branch, &intent, &seen}, selectRecalled, s.key)
	if err != nil {
		return out, err
	}
	out.When, out.Score, out.Printed = s.at, s.score, s.pasted > 0
	if out.About, err = r.about(s.key, intent); err != nil {
		return out, err
	}
	out.Items, err = r.items(s, items)
	return out, err
}

// about is the first prompt of a session that means something, else its intent.
func (r *recalling) about(session int64, intent string) (about string, err error) {
	err = r.tx.Each(r.ctx, func(rows *sql.Rows) error {
		var prompt string
		if err := rows.Scan(&prompt); err != nil || !isMeaningful(prompt) {
			return err
		}
		about = prompt
		return errEnough
	}, selectFirstPrompts, session)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return cutRunes(strings.Join(strings.Fields(cmp.Or(about, intent)), " "), maxIntent), err
}

// isMeaningful reports whether a prompt says what a session is about: it has four words
// that say something and is none that a harness wrote.
func isMeaningful(prompt string) bool {
	prompt = strings.TrimSpace(prompt)
	for _, start := range []string{"/", "<", "[", "This session is being continued", "Caveat:"} {
		if strings.HasPrefix(prompt, start) {
			return false
		}
	}
	q := words.Ask(prompt)
	return len(q.Terms) >= minPromptWords || len(q.Terms) > 1 && len(q.Terms)+len(q.Left) >= 2*minPromptWords
}

// idList is ids as a JSON array.
func idList(ids []int64) (string, error) {
	list, err := json.Marshal(ids)
	return string(list), err
}

// items are the best rows of a session's best turns, best first, each text once.
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

// cut makes the excerpt of a row that has none.
func (i *RecalledItem) cut(finder *words.Finder) {
	if i.content != "" {
		e := finder.Excerpt(i.content, maxExcerpt)
		i.Excerpt, i.Marks, i.content = e.Text, e.Marks, ""
	}
}
