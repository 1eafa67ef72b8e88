package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"

	"cairn/internal/observation"
	"cairn/internal/oneline"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/words"
)

// maxPromptTerms is the number of words of a prompt that are searched for: the most informative
// ones.
const maxPromptTerms = 16

// The evidence that help requires. By chance, fewer than one turn in rareForOrder or
// rareForQuestion may contain the same words of the prompt. An order needs more evidence than a
// question, because most orders refer to the work in progress. Each returned session needs at
// least the share leastEvidence of this evidence.
const (
	rareForOrder    = 50
	rareForQuestion = 20
	leastEvidence   = 0.5
)

const (
	maxRelated        = 5    // rows
	MaxRelatedExcerpt = 120  // characters
	ownProject        = 1.05 // factor for the scores of the project's own sessions
	maxHelpTurns      = 100  // turns that are ranked
	maxHasteTurns     = 30   // turns that are ranked if the time runs out
)

// RelatedArgs are the arguments of Related.
type RelatedArgs struct {
	Prompt  string
	Session string // id of the calling session
	Key     int64  // key of the calling session
	Project project.Project
	Near    map[int64]string // ids of the projects whose rows may be returned, by key
	Shown   map[int64]bool   // rows that the session has already been shown

	// InTime returns a context that ends when the ranking must end. Related then ranks what it has
	// found so far.
	InTime func(context.Context) context.Context
}

// RelatedRow is a row that may help with a prompt.
type RelatedRow struct {
	ID, At  int64 // At in Unix seconds
	ObsType string
	Project string // id of its project
	Excerpt string // text around the match, at most 120 characters
}

// relating is the state of one call of Related.
type relating struct {
	RelatedArgs
	*recalling
}

// Related returns up to five rows of the best sessions, in Recall's order of sessions. A session
// has one row. If fewer than five sessions have any, the first ones have two. Related leaves out
// the calling session, rows that it has been shown, rows that only name a file, and text that a
// harness wrote. It returns nil if the evidence is too weak: see evidence.
func Related(ctx context.Context, svc *observation.Service, tx *store.Tx, a RelatedArgs) (out []RelatedRow, err error) {
	r := newRelating(ctx, svc, tx, a)
	sessions, err := r.rankInTime(ctx)
	if err != nil || len(sessions) == 0 {
		return nil, err
	}
	rows := r.helpRows(sessions)
	r.order(sessions)
	r.preferOwn(sessions)
	spare := maxRelated - len(rows)
	for _, s := range sessions {
		all := rows[s]
		n := min(len(all), 1+max(spare, 0))
		spare -= max(n-1, 0)
		out = append(out, all[:n]...)
	}
	return out, nil
}

func newRelating(ctx context.Context, svc *observation.Service, tx *store.Tx, a RelatedArgs) *relating {
	args := RecallArgs{Query: oneline.Cut(a.Prompt, maxPromptText), Session: a.Session}
	r := &relating{a, newRecalling(ctx, svc, tx, &args, a.Project.Key)}
	if len(a.Near) > 1 {
		r.project = 0
	}
	r.cutTerms(maxPromptTerms)
	return r
}

// rankInTime returns up to five of the best sessions with enough evidence, without scoring their
// rows. If the time limit is reached, it ranks what has been found by then.
func (r *relating) rankInTime(ctx context.Context) ([]*foundSession, error) {
	r.rowSessions, r.asking, r.withProjects = 0, r.Key, true
	r.ctx = r.InTime(ctx)
	err := r.gather()
	isLate := func() bool { return err != nil && ctx.Err() == nil && r.ctx.Err() != nil }
	if err != nil && !isLate() {
		return nil, err
	}
	inTime := r.ctx
	r.ctx = ctx
	n := maxHelpTurns
	if err != nil {
		n = maxHasteTurns
	}
	turns, err := r.known(n, 1)
	if err != nil {
		return nil, err
	}
	r.ctx = inTime
	ranked, err := r.rankSessions(turns)
	if isLate() {
		ranked, err = r.groupInHaste(turns), nil
	}
	r.ctx = ctx
	if err != nil {
		return nil, err
	}
	asks := isQuestion(r.args.Query)
	evidence := map[*foundSession]float64{}
	ranked = slices.DeleteFunc(ranked, func(s *foundSession) bool {
		known := len(s.turns) > 0
		s.turns = slices.DeleteFunc(s.turns, func(t *foundTurn) bool { return r.Near[t.project] == "" })
		evidence[s] = r.evidence(s, asks)
		return known && len(s.turns) == 0
	})
	r.preferOwn(ranked)
	ranked = ranked[:min(len(ranked), maxRelated)]
	most := 0.0
	for _, s := range ranked {
		most = max(most, evidence[s])
	}
	if most < 1 {
		return nil, nil
	}
	return slices.DeleteFunc(ranked, func(s *foundSession) bool { return evidence[s] < leastEvidence }), nil
}

const selectOtherStale = `SELECT EXISTS (SELECT 1 FROM stale_turns WHERE session_key != ?)`

// gather reads which turns contain the words of the prompt, like rank. The calling session is
// always outdated in the index, but it cannot be a result. If no other session is outdated, gather
// skips the rows outside the index.
func (r *recalling) gather() error {
	var stale bool
	for _, q := range []struct {
		query string
		into  any
		args  []any
	}{{countTurns, &r.turns, nil}, {meanLength, &r.length, nil}, {selectOtherStale, &stale, []any{r.asking}}} {
		if err := r.tx.Get(r.ctx, []any{q.into}, q.query, q.args...); err != nil {
			return err
		}
	}
	if stale {
		if err := r.collectFresh(); err != nil {
			return err
		}
		r.turns += float64(len(r.found))
	}
	return r.collect()
}

// groupInHaste groups turns by session and ranks the sessions by their best turn alone.
func (r *recalling) groupInHaste(turns []*foundTurn) (ranked []*foundSession) {
	slices.SortFunc(turns, func(a, b *foundTurn) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id))
	})
	from, to, bounded := r.bounds()
	byKey := map[int64]*foundSession{}
	for _, t := range turns {
		s := byKey[t.session]
		if s == nil {
			s = &foundSession{key: t.session, at: t.at, sum: t.score}
			byKey[t.session], ranked = s, append(ranked, s)
		}
		s.inside = s.inside || bounded && t.at >= from && t.at < to
		s.turns = append(s.turns, t)
	}
	r.order(ranked)
	return ranked
}

// evidence returns how strongly a session matches a prompt. 1 is enough for help. The score is
// that of the best of the session's three best turns: the rarity of the prompt's words in it,
// divided by the rarity that help requires. Everyday words count half. Corrected words, pairs and
// stop words do not count.
//
// An order needs two words that are not everyday words, a question needs one. If a question names
// a period, any word of a session in that period is enough. A pasted line that a tool printed is
// enough. With few turns, rarity means nothing, and the number of words is enough.
func (r *recalling) evidence(s *foundSession, asks bool) (best float64) {
	if s.pasted > 0 {
		return 1
	}
	least, rare := 2, float64(rareForOrder)
	if asks {
		least, rare = 1, rareForQuestion
	}
	enough := math.Log1p(rare)
	for _, t := range s.turns[:min(3, len(s.turns))] {
		telling, sum := 0, 0.0
		for i, n := range t.counts {
			term := &r.terms[i]
			if _, corrected := r.corrected[term.Word]; n == 0 || corrected || term.pair || words.IsStopWord(term.Word) {
				continue
			}
			sum += term.share() * term.rarity
			if !term.Common {
				telling++
			}
		}
		switch {
		case asks && s.inside && sum > 0, telling >= least && r.turns < rare:
			return 1
		case telling >= least:
			best = max(best, sum/enough)
		}
	}
	return best
}

// isQuestion reports whether a prompt is a question: one of its words ends with a question mark.
func isQuestion(prompt string) bool {
	if strings.ContainsAny(prompt, "？؟") {
		return true
	}
	for word := range strings.FieldsSeq(prompt) {
		if strings.HasSuffix(strings.TrimRight(word, `"')]*_`), "?") {
			return true
		}
	}
	return false
}

// preferOwn sorts sessions by score, with a small bonus for those of the same project. Sessions
// with a pasted line still come first, then those in the period.
func (r *relating) preferOwn(sessions []*foundSession) {
	score := func(s *foundSession) float64 {
		if len(s.turns) > 0 && s.turns[0].project == r.Project.Key {
			return s.score * ownProject
		}
		return s.score
	}
	slices.SortStableFunc(sessions, func(x, y *foundSession) int {
		return cmp.Or(cmp.Compare(y.pasted, x.pasted), before(x.inside, y.inside), cmp.Compare(score(y), score(x)))
	})
}

// rowsOfSession is the maximum number of rows per session if there are fewer than five sessions.
const rowsOfSession = 2

// helpRows returns the most informative rows of each session, and stores the score of its best row
// in the session. Sessions without such a row are not in the map. helpRows stops when the budget
// is used up.
func (r *relating) helpRows(sessions []*foundSession) map[*foundSession][]RelatedRow {
	found := map[*foundSession][]RelatedRow{}
	seen := map[string]bool{}
	most := 1
	if len(sessions) < maxRelated {
		most = rowsOfSession
	}
	for _, s := range sessions {
		rows, err := r.sessionRows(s, seen, most)
		if err != nil { // the budget is used up
			break
		}
		if len(rows) > 0 {
			found[s] = rows
		}
	}
	return found
}

// sessionRows returns up to most of the most informative rows of a session: those of its best
// turn, then those of the next. If neither turn has any, it returns the prompt of the best turn.
func (r *relating) sessionRows(s *foundSession, seen map[string]bool, most int) (rows []RelatedRow, err error) {
	for i := range max(1, min(len(s.turns), 2)) {
		one := *s
		one.turns = s.turns[min(i, len(s.turns)):min(i+1, len(s.turns))]
		items, err := r.items(&one, 2*maxRelated)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if r.Shown[item.ID] || seen[item.Excerpt] || isFileRow(item.ObsType) || isHarnessText(item.ContentPreview) ||
				item.telling == 0 && !s.inside && s.pasted == 0 || !r.isNear(item.Project) {
				continue
			}
			seen[item.Excerpt] = true
			s.row = max(s.row, item.Score)
			if rows = append(rows, r.row(&item)); len(rows) == most {
				return rows, nil
			}
		}
	}
	if len(rows) > 0 {
		return rows, nil
	}
	row, err := r.promptRow(s, seen)
	if err != nil || row.ID == 0 {
		return nil, err
	}
	return []RelatedRow{row}, nil
}

func (r *relating) isNear(project string) bool {
	for _, id := range r.Near {
		if id == project {
			return true
		}
	}
	return false
}

// row converts an item to a RelatedRow with a shorter excerpt.
func (r *relating) row(item *RecalledItem) RelatedRow {
	excerpt := r.finder().Excerpt(item.Excerpt, MaxRelatedExcerpt).Text
	return RelatedRow{item.ID, item.Timestamp, item.ObsType, item.Project, excerpt}
}

const selectTurnPrompt = `SELECT o.timestamp, o.content, p.id FROM observation_rows o JOIN projects p ON p.key = o.project_key
WHERE o.id = ? AND o.obs_type = 'user_prompt'`

// promptRow returns the prompt of a session's best turn. It serves turns whose matching words are
// in tool output or in rows that only name a file. It returns the zero row if the prompt is not
// meaningful, is not of a permitted project, or has been shown.
func (r *relating) promptRow(s *foundSession, seen map[string]bool) (row RelatedRow, err error) {
	if len(s.turns) == 0 || r.Shown[s.turns[0].id] {
		return row, nil
	}
	item := RecalledItem{Hit: Hit{ID: s.turns[0].id, ObsType: observation.TypePrompt}}
	var content string
	err = r.tx.Get(r.ctx, []any{&item.Timestamp, &content, &item.Project}, selectTurnPrompt, item.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return row, nil
	}
	item.Excerpt = r.finder().Excerpt(content, MaxRelatedExcerpt).Text
	if err != nil || seen[item.Excerpt] || !isMeaningful(content) || !r.isNear(item.Project) {
		return row, err
	}
	seen[item.Excerpt] = true
	return r.row(&item), nil
}

// isHarnessText reports whether a harness wrote a text in the name of the user or the agent.
func isHarnessText(text string) bool {
	text = strings.TrimSpace(text)
	for _, start := range []string{"<", "[Request interrupted", "This session is being continued", "Caveat:"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// maxPromptText is the number of characters of a prompt that are searched for.
const maxPromptText = 2000

// isFileRow reports whether a row only names a file.
func isFileRow(obsType string) bool {
	return obsType == observation.TypeRead || obsType == observation.TypeEdit || obsType == observation.TypeWrite
}

// cutTerms keeps the n most informative words of a question. It drops pairs first, then everyday
// words, then short words.
func (r *recalling) cutTerms(n int) {
	slices.SortStableFunc(r.terms, func(a, b askedTerm) int {
		return cmp.Or(before(!a.pair, !b.pair), before(!a.Common, !b.Common), cmp.Compare(len(b.Word), len(a.Word)))
	})
	r.terms = r.terms[:min(n, len(r.terms))]
}
