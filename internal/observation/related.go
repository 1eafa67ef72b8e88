package observation

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/words"
)

// What bounds the search for related rows. Each bound can only make it find less.
const (
	maxRelated     = 5
	maxLookedUp    = 24     // words of a prompt, the longest
	maxListed      = 500    // rows of the store that a rare word may be in
	maxSized       = 50_000 // rows of a project that are counted: 1 % of more makes no difference
	maxWeighed     = 1000   // matches that are looked up to tell which project they are of
	maxInspected   = 200    // rows that are looked at
	minWordLetters = 3
)

const (
	selectProjectSize = `SELECT count(*) FROM (SELECT 1 FROM observation_rows WHERE project_key = ? LIMIT +?)`

	selectContent = `SELECT content FROM observation_rows WHERE id = ?`

	// Where the last turn of a session begins: the prompt before the present one.
	selectLastTurn = `SELECT o.id FROM observation_rows o JOIN prompt_rows p ON p.id = o.prompt_id
WHERE o.session_key = ?1 AND o.obs_type = 'user_prompt' AND o.id < ?2 ORDER BY o.id DESC LIMIT 1`

	selectMatches = `SELECT count(*), ifnull(group_concat(id), '')
FROM (SELECT rowid AS id FROM observations_fts WHERE observations_fts MATCH ? LIMIT +?)`
)

// rareWord is a word of the prompt that few rows of the store hold.
type rareWord struct {
	match  string
	rows   string // their ids, separated by commas, the prompt's own among them
	count  int    // of those rows, without the prompt's own
	known  bool   // whether it is rare has been found out
	isRare bool   // in under 1 % of the project's rows
}

// wordSearch finds the rows of the store that hold words of a prompt that few do.
type wordSearch struct {
	project int64 // key
	own     int   // 1 if the prompt's own row is one of the store's
	size    int   // of the project, in rows, without the prompt's own
	words   []rareWord
	half    context.Context  //nolint:containedctx // when it ends no more words are looked up; nil for never
	held    map[int64]uint64 // by row, the words that it holds, one bit for each
}

// maxPromptTerms is how many words of a prompt are searched for: of more, those that say most.
const maxPromptTerms = 16

// What a turn must hold of a prompt for help to speak: words that by chance fewer than
// one turn in so many holds together. To a question less is an answer than to an order,
// which most often speaks of what is going on. A session must hold half of that.
const (
	rareForOrder    = 50
	rareForQuestion = 20
	leastEvidence   = 0.5
)

const (
	maxHelpExcerpt = 120  // characters
	ownProject     = 1.05 // how much more a session of the project counts than one of a related project
	maxHelpTurns   = 100  // turns that are ranked
	maxHasteTurns  = 30   // of those that are found when the time is over
)

// related returns up to five rows of the best sessions in the order in which Recall ranks
// them, as excerpts around what matched: one row of each, of the first ones two where
// there are fewer than five. The session that asks is not among
// them, nor are rows that it was told of, rows that only name a file, and a harness's own
// words; see evidence for when nothing is said. What is found when the budget ends is
// returned.
func (a *assistant) related(ctx context.Context, tx *store.Tx, prompt string) (out []contextRow, err error) {
	if err := a.findNear(ctx, tx); err != nil {
		return nil, unlessOver(ctx, err)
	}
	args := RecallArgs{Query: cutRunes(prompt, maxPromptText), Session: a.event.Session}
	r := a.journal.newRecalling(ctx, tx, &args, a.project.Key)
	if len(a.near) > 1 {
		r.project = 0
	}
	r.cutTerms(maxPromptTerms)
	sessions, err := a.rankInTime(ctx, r)
	if err != nil || len(sessions) == 0 {
		return nil, unlessOver(ctx, err)
	}
	rows := a.helpRows(r, sessions)
	r.settle(sessions)
	a.preferOwn(sessions)
	spare := maxRelated - len(rows)
	for _, s := range sessions {
		all := rows[s]
		n := min(len(all), 1+max(spare, 0))
		spare -= max(n-1, 0)
		out = append(out, all[:n]...)
	}
	return out, nil
}

const selectProjectNames = `SELECT key, id, name, ifnull(origin_url, '') FROM projects LIMIT 1000`

// findNear finds the projects whose rows may help: the project itself and, unless other
// projects are left out of the context, those with the same owner of the remote and those
// one of whose names has all words of the other.
func (a *assistant) findNear(ctx context.Context, tx *store.Tx) error {
	a.near = map[int64]string{a.project.Key: a.project.ID}
	if a.journal.config.Limits.SuppressCross {
		return nil
	}
	type named struct {
		id, remote string
		words      map[string]bool
	}
	all := map[int64]named{}
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		var key int64
		var p named
		var name string
		err := rows.Scan(&key, &p.id, &name, &p.remote)
		p.words = wordSet(name)
		all[key] = p
		return err
	}, selectProjectNames)
	own := all[a.project.Key]
	owner := remoteOwner(own.remote)
	for key, p := range all {
		if owner != "" && owner == remoteOwner(p.remote) || contains(own.words, p.words) || contains(p.words, own.words) {
			a.near[key] = p.id
		}
	}
	return err
}

// contains reports whether some words are among others; no words are not.
func contains(words, some map[string]bool) bool {
	for w := range some {
		if !words[w] {
			return false
		}
	}
	return len(some) > 0
}

// rankInTime returns the five best sessions that say enough about the prompt, without
// weighing their rows. When the time for it ends, they are ranked by what is found by
// then.
func (a *assistant) rankInTime(ctx context.Context, r *recalling) ([]*foundSession, error) {
	r.rowSessions, r.asking, r.withProjects = 0, a.session, true
	r.ctx = a.budget.until(ctx, rankShare)
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
		s.turns = slices.DeleteFunc(s.turns, func(t *foundTurn) bool { return a.near[t.project] == "" })
		evidence[s] = r.evidence(s, asks)
		return known && len(s.turns) == 0
	})
	a.preferOwn(ranked)
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

// gather reads which turns hold the words of the prompt, as rank does. The session that
// asks is never up to date, and no answer either: it alone is not looked through.
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

// groupInHaste makes sessions of turns and ranks them by their best turns alone.
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
	r.settle(ranked)
	return ranked
}

// evidence is how much a session says about a prompt: 1 is enough for help to speak. Its
// best turns count, by the words of the prompt that one of them holds, the rarer the
// more, everyday words half, corrected ones nothing. An order needs two words that are no
// everyday words, a question one; of the time that a question speaks of any word will do,
// and a pasted line that a tool printed is enough. Where there are few turns, nothing
// tells which words are rare.
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

// isQuestion reports whether a prompt asks something: a question mark ends a word of it.
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

// isSlashCommand reports whether a prompt calls a command of the harness: its first word
// is a slash and a name, and no path.
func isSlashCommand(prompt string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(prompt), " ")
	name, ok := strings.CutPrefix(first, "/")
	return ok && name != "" && !strings.ContainsAny(name, "/.")
}

// preferOwn sorts sessions by their scores, those of the project a little better, inside
// the classes that come first for another reason.
func (a *assistant) preferOwn(sessions []*foundSession) {
	score := func(s *foundSession) float64 {
		if len(s.turns) > 0 && s.turns[0].project == a.project.Key {
			return s.score * ownProject
		}
		return s.score
	}
	slices.SortStableFunc(sessions, func(x, y *foundSession) int {
		return cmp.Or(cmp.Compare(y.pasted, x.pasted), before(x.inside, y.inside), cmp.Compare(score(y), score(x)))
	})
}

// rowsOfSession is how many rows of one session are shown at most, where there are few
// sessions.
const rowsOfSession = 2

// helpRows reads the rows of each session that say most, as far as the budget allows, and
// notes the weight of the best. A session without one is not among them.
func (a *assistant) helpRows(r *recalling, sessions []*foundSession) map[*foundSession][]contextRow {
	found := map[*foundSession][]contextRow{}
	seen := map[string]bool{}
	most := 1
	if len(sessions) < maxRelated {
		most = rowsOfSession
	}
	for _, s := range sessions {
		rows, err := a.sessionRows(r, s, seen, most)
		if err != nil { // the budget is used up, or will be before the others
			break
		}
		if len(rows) > 0 {
			found[s] = rows
		}
	}
	return found
}

// sessionRows returns the rows of a session's best turn that say most, then of the next
// turn, else the prompt of the best one.
func (a *assistant) sessionRows(r *recalling, s *foundSession, seen map[string]bool, most int) (rows []contextRow, err error) {
	for i := range max(1, min(len(s.turns), 2)) {
		one := *s
		one.turns = s.turns[min(i, len(s.turns)):min(i+1, len(s.turns))]
		items, err := r.items(&one, 2*maxRelated)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if a.told[item.ID] || seen[item.Excerpt] || isFileRow(item.ObsType) || isHarnessText(item.ContentPreview) ||
				item.telling == 0 && !s.inside && s.pasted == 0 || !a.isNear(item.Project) {
				continue
			}
			seen[item.Excerpt] = true
			s.row = max(s.row, item.Score)
			if rows = append(rows, a.helpLine(r, &item)); len(rows) == most {
				return rows, nil
			}
		}
	}
	if len(rows) > 0 {
		return rows, nil
	}
	row, err := a.promptLine(r, s, seen)
	if err != nil || row.id == 0 {
		return nil, err
	}
	return []contextRow{row}, nil
}

func (a *assistant) isNear(project string) bool {
	for _, id := range a.near {
		if id == project {
			return true
		}
	}
	return false
}

// helpLine is a row as a line of help. One of another project names it.
func (a *assistant) helpLine(r *recalling, item *RecalledItem) contextRow {
	kind := item.ObsType
	if item.Project != a.project.ID {
		kind += " [" + cell(item.Project, maxCell) + "]"
	}
	excerpt := r.finder().Excerpt(item.Excerpt, maxHelpExcerpt).Text
	return contextRow{id: item.ID, line: fmt.Sprintf("| #%d | %s | %s | %s |", item.ID, ago(a.now, item.Timestamp), kind, cell(excerpt, maxHelpExcerpt))}
}

const selectTurnPrompt = `SELECT o.timestamp, o.content, p.id FROM observation_rows o JOIN projects p ON p.key = o.project_key
WHERE o.id = ? AND o.obs_type = 'user_prompt'`

// promptLine is the prompt of a session's best turn: its words stand in what tools
// printed or in rows that only name a file.
func (a *assistant) promptLine(r *recalling, s *foundSession, seen map[string]bool) (row contextRow, err error) {
	if len(s.turns) == 0 || a.told[s.turns[0].id] {
		return row, nil
	}
	item := RecalledItem{Hit: Hit{ID: s.turns[0].id, ObsType: typePrompt}}
	var content string
	err = r.tx.Get(r.ctx, []any{&item.Timestamp, &content, &item.Project}, selectTurnPrompt, item.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return row, nil
	}
	item.Excerpt = r.finder().Excerpt(content, maxHelpExcerpt).Text
	if err != nil || seen[item.Excerpt] || !isMeaningful(content) || !a.isNear(item.Project) {
		return row, err
	}
	seen[item.Excerpt] = true
	return a.helpLine(r, &item), nil
}

// isHarnessText reports whether a harness wrote a text in the user's or the agent's name.
func isHarnessText(text string) bool {
	text = strings.TrimSpace(text)
	for _, start := range []string{"<", "[Request interrupted", "This session is being continued", "Caveat:"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// maxPromptText is how many characters of a prompt are searched for.
const maxPromptText = 2000

// isFileRow reports whether a row names a file and says nothing else.
func isFileRow(obsType string) bool {
	return obsType == typeRead || obsType == typeEdit || obsType == typeWrite
}

// cutTerms leaves the n words of a question that say most: everyday words and short ones
// go first.
func (r *recalling) cutTerms(n int) {
	slices.SortStableFunc(r.terms, func(a, b askedTerm) int {
		return cmp.Or(before(!a.pair, !b.pair), before(!a.Common, !b.Common), cmp.Compare(len(b.Word), len(a.Word)))
	})
	r.terms = r.terms[:min(n, len(r.terms))]
}

// lastTurn is where the turn before the present one began: at the prompt itself if
// it is the session's first.
func (a *assistant) lastTurn(ctx context.Context, tx *store.Tx) (since int64, err error) {
	since, err = lookUp(ctx, tx, selectLastTurn, a.session, a.own)
	return cmp.Or(since, a.own), err
}

// rare reports whether n rows are under 1 % of the project's.
func (s *wordSearch) rare(n int) bool { return 100*n < s.size }

// find looks the words of a prompt up.
func (s *wordSearch) find(ctx context.Context, tx *store.Tx, text string) error {
	if err := tx.Get(ctx, []any{&s.size}, selectProjectSize, s.project, maxSized+1); err != nil {
		return err
	}
	s.size -= s.own
	if err := s.count(ctx, tx, text); err != nil {
		return err
	}
	return s.list()
}

// count finds the words of the prompt that few rows hold, the rarest first. It takes
// half of the time at most: on a slow day fewer words are better than silence.
func (s *wordSearch) count(ctx context.Context, tx *store.Tx, text string) error {
	for _, term := range promptWords(text) {
		if s.half != nil && s.half.Err() != nil {
			break
		}
		w := rareWord{match: words.Phrase(term...)}
		if err := tx.Get(ctx, []any{&w.count, &w.rows}, selectMatches, w.match, maxListed+2); err != nil {
			return err
		}
		if w.count -= s.own; w.count > 0 && w.count <= maxListed {
			w.isRare = s.rare(w.count) // whatever part of them is the project's
			w.known = w.isRare
			s.words = append(s.words, w)
		}
	}
	slices.SortStableFunc(s.words, func(a, b rareWord) int { return cmp.Compare(a.count, b.count) })
	return nil
}

// list finds the rows that hold the words.
func (s *wordSearch) list() error {
	s.held = map[int64]uint64{}
	for i, w := range s.words {
		for id := range strings.SplitSeq(w.rows, ",") {
			n, err := strconv.ParseInt(id, 10, 64)
			if err != nil {
				return err
			}
			s.held[n] |= 1 << i
		}
	}
	return nil
}

// foundRow is a row with the weight of the words that it holds.
type foundRow struct {
	id     int64
	weight float64
}

// best are the n rows whose words weigh most, ties newest first. A word weighs the
// more the fewer rows hold it.
func (s *wordSearch) best(n int) []foundRow {
	weights := make([]float64, len(s.words))
	for i, w := range s.words {
		weights[i] = math.Log1p(float64(max(s.size, 0)) / float64(w.count))
	}
	found := make([]foundRow, 0, len(s.held))
	for id, held := range s.held {
		f := foundRow{id: id}
		for ; held != 0; held &= held - 1 {
			f.weight += weights[bits.TrailingZeros64(held)]
		}
		found = append(found, f)
	}
	slices.SortFunc(found, func(a, b foundRow) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.id, a.id))
	})
	return found[:min(n, len(found))]
}

// countWords is how many words a prompt has; two characters of a script without
// spaces count as one.
func countWords(text string) int {
	n := 0
	for _, r := range text {
		if words.IsIdeograph(r) {
			n++
		}
	}
	return len(strings.Fields(text)) + n/2
}

// promptWords are the different words of a prompt that are worth looking up, the
// longest first, at most 24: runs of letters and digits, of scripts without spaces
// every two neighbours. Short words and small numbers say nothing.
func promptWords(text string) (found [][]words.Identifier) {
	seen := map[string]bool{}
	add := func(word string, ids ...words.Identifier) {
		if word = strings.ToLower(word); !seen[word] {
			seen[word] = true
			found = append(found, ids)
		}
	}
	all := words.Identifiers(text)
	for i, id := range all {
		first, size := utf8.DecodeRuneInString(id.Whole)
		switch {
		case words.IsIdeograph(first):
			if i+1 < len(all) && isIdeographic(all[i+1]) && strings.Contains(text, id.Whole+all[i+1].Whole) {
				add(id.Whole+all[i+1].Whole, id, all[i+1])
			}
		case utf8.RuneCountInString(id.Whole) < minWordLetters:
		case strings.Trim(id.Whole, "0123456789") != "" || len(id.Whole) > minWordLetters*size:
			add(id.Whole, id)
		}
	}
	slices.SortStableFunc(found, func(a, b []words.Identifier) int { return cmp.Compare(lengthOf(b), lengthOf(a)) })
	return found[:min(len(found), maxLookedUp)]
}

func isIdeographic(id words.Identifier) bool {
	first, _ := utf8.DecodeRuneInString(id.Whole)
	return words.IsIdeograph(first)
}

func lengthOf(ids []words.Identifier) (n int) {
	for _, id := range ids {
		n += len(id.Whole)
	}
	return n
}
