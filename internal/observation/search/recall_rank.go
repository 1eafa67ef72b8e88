package search

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"math"
	"slices"

	"cairn/internal/observation"
)

// Parameters of the ranking. bmK and bmB have BM25's usual values. The others were tuned on
// sessions and questions that are not part of this repository.
const (
	bmK = 1.2
	bmB = 0.75

	secondTurn   = 0.3 // weight of a session's second best turn relative to its best; the third counts secondTurn²
	sessionShare = 0.5 // weight of the whole session relative to its turns
	printedShare = 0.2 // weight of a word that only tool output contains
	commonShare  = 0.5 // weight of an everyday word
	bestRowShare = 0.3 // weight of a session's best row relative to its turns
)

// Limits of a search.
const (
	maxPostings  = 20_000 // turns that are read, for the rarest words first
	maxPrinted   = 5000   // turns that are read per word because tool output contains it
	firstRead    = 2000   // turns that are read per word to estimate its rarity
	maxRankTurns = 300    // turns that get a final score
	rankTries    = 5      // multiple of the wanted turns that is read if a filter drops most of them
	maxRankRows  = 12     // sessions whose rows are scored
)

const (
	countTurns = `SELECT count(*) FROM turns`
	meanLength = `SELECT ifnull(avg(length), 1) FROM (SELECT length FROM turns ORDER BY id DESC LIMIT 500)`

	// The turns of many words in one query: at most ?2 turns per word, in the order of the words.
	selectPostings = `SELECT j.key, ifnull((SELECT group_concat(id) FROM (SELECT rowid AS id FROM turn_words WHERE turn_words MATCH j.value LIMIT +?2)), '')
FROM json_each(?1) j`
	selectMorePostings = `SELECT count(*), ifnull(max(id), 0), ifnull(group_concat(id), '')
FROM (SELECT rowid AS id FROM turn_words WHERE turn_words MATCH ? AND rowid > ? LIMIT +?)`
	selectNewestTurn = `SELECT ifnull(max(id), 0) FROM turns`

	// A turn's project is stored in its row, which is read only if needed.
	selectFoundTurns = `SELECT ifnull(group_concat(t.id || ',' || t.session_key || ',' || t.at || ',' || t.length || ',' ||
iif(?2, (SELECT o.project_key FROM observation_rows o WHERE o.id = t.id), 0)), '')
FROM json_each(?1) j CROSS JOIN turns t ON t.id = j.value`

	selectSessionTurns = `SELECT session_key, sum(length), group_concat(id)
FROM turns WHERE session_key IN (SELECT value FROM json_each(?)) GROUP BY session_key`

	selectTurnsWithin = `SELECT id FROM turns WHERE at >= ? AND at < ? ORDER BY at DESC LIMIT +?`

	selectAskingSession = `SELECT key FROM sessions WHERE id = ?`
)

// foundTurn is a turn that contains words of the question.
type foundTurn struct {
	id, session, at, project int64
	length                   float64
	counts                   []float64 // by term, how often the turn contains it
	rough                    float64   // score that ignores the turn's length
	score                    float64
	known                    bool // session, at, project and length have been read
}

// spareTurns allocates foundTurns in batches.
type spareTurns struct {
	turns  []foundTurn
	counts []float64
}

// take returns an empty turn with room for the given number of terms.
func (s *spareTurns) take(terms int) *foundTurn {
	const together = 256
	if len(s.turns) == 0 {
		s.turns, s.counts = make([]foundTurn, together), make([]float64, together*terms)
	}
	t := &s.turns[0]
	t.counts = s.counts[:terms:terms]
	s.turns, s.counts = s.turns[1:], s.counts[terms:]
	return t
}

// foundSession is a session that contains words of the question.
type foundSession struct {
	key, at int64
	turns   []*foundTurn // best first
	score   float64
	inside  bool // it has a turn in the question's period

	sum, whole, row float64
	pastedRow       int64
	pasted          float64 // weight of the question's lines that one of its rows printed
	items           []RecalledItem
}

// rank returns the sessions that contain words of the question, best first. It returns none if the
// question consists of a period and everyday words, and no session of that period matches.
func (r *recalling) rank() ([]*foundSession, error) {
	if r.args.Session != "" {
		key, err := observation.LookUp(r.ctx, r.tx, selectAskingSession, r.args.Session)
		if err != nil {
			return nil, err
		}
		r.asking = key
	}
	if err := r.tx.Get(r.ctx, []any{&r.turns}, countTurns); err != nil {
		return nil, err
	}
	if err := r.tx.Get(r.ctx, []any{&r.length}, meanLength); err != nil {
		return nil, err
	}
	if err := r.collectFresh(); err != nil {
		return nil, err
	}
	r.turns += float64(len(r.found))
	if err := r.collect(); err != nil {
		return nil, err
	}
	if err := r.prepareSimilar(); err != nil {
		return nil, err
	}
	turns, err := r.known(maxRankTurns, rankTries)
	if err != nil {
		return nil, err
	}
	ranked, err := r.rankSessions(turns)
	if err == nil && r.period != nil && len(ranked) > 0 && !ranked[0].inside && ranked[0].pasted == 0 && r.isEveryday() {
		return nil, nil // the period is more specific than everyday words
	}
	return ranked, err
}

// isEveryday reports whether all words of the question, without its period, are everyday words.
func (r *recalling) isEveryday() bool {
	return !slices.ContainsFunc(r.terms, func(t askedTerm) bool { return !t.pair && !t.Common })
}

// rarityOf returns BM25's inverse document frequency of a word that count turns contain.
func (r *recalling) rarityOf(count float64) float64 {
	return math.Log(1 + (max(r.turns-count, 0)+0.5)/(count+0.5))
}

// postings are the turns that contain a word.
type postings struct {
	term  int
	ids   []int64
	whole bool // ids is complete
}

// postings returns the ids of the turns that contain each of some words. forms are the words as
// the index spells them. Each list has at most limit ids, the lowest ones.
func (r *recalling) postings(forms []string, limit int) ([][]int64, error) {
	lists := make([][]int64, len(forms))
	if len(forms) == 0 {
		return lists, nil
	}
	matches := make([]string, len(forms))
	for i, form := range forms {
		matches[i] = `"` + form + `"`
	}
	asked, err := json.Marshal(matches)
	if err != nil {
		return nil, err
	}
	var list sql.RawBytes
	err = r.tx.Each(r.ctx, func(rows *sql.Rows) error {
		var i int
		err := rows.Scan(&i, &list)
		lists[i] = appendIDs(nil, list)
		return err
	}, selectPostings, string(asked), limit)
	return lists, err
}

// read runs a query that returns the number of ids, the highest id and all ids, joined with
// commas.
func (r *recalling) read(query string, args ...any) (p postings, last int64, err error) {
	var n int
	var list string
	err = r.tx.Get(r.ctx, []any{&n, &last, &list}, query, args...)
	if err != nil || n == 0 {
		return p, last, err
	}
	p.ids = make([]int64, 0, n)
	p.ids = appendIDs(p.ids, list)
	return p, last, nil
}

// appendIDs appends the numbers of a list that SQLite joined with commas.
func appendIDs[T string | sql.RawBytes](ids []int64, list T) []int64 {
	id, sign := int64(0), int64(1)
	for i := range len(list) {
		switch c := list[i]; c {
		case ',':
			ids = append(ids, sign*id)
			id, sign = 0, 1
		case '-':
			sign = -1
		default:
			id = 10*id + int64(c-'0')
		}
	}
	if len(list) > 0 {
		ids = append(ids, sign*id)
	}
	return ids
}

// collect reads which turns contain the words of the question, the rarest words first.
func (r *recalling) collect() error {
	all, err := r.firstPostings()
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b postings) int { return cmp.Compare(r.terms[a.term].count, r.terms[b.term].count) })
	room := maxPostings
	for i := range all {
		if p := &all[i]; !p.whole {
			t := &r.terms[p.term]
			if t.count > float64(room) {
				all = all[:i]
				break
			}
			more, _, err := r.read(selectMorePostings, `"`+t.Key+`"`, p.ids[len(p.ids)-1], room-len(p.ids))
			if err != nil {
				return err
			}
			p.ids = append(p.ids, more.ids...)
		}
		room -= len(all[i].ids)
	}
	printed, err := r.printed(all)
	if err != nil {
		return err
	}
	for i := range all {
		t := &r.terms[all[i].term]
		printed[i] = printed[i][:min(len(printed[i]), max(1, room))]
		room -= len(printed[i])
		if len(all[i].ids)+len(printed[i]) == 0 {
			found, err := r.replaced(&all[i])
			if err != nil || !found {
				if err != nil {
					return err
				}
				continue
			}
		}
		t.count = min(r.turns, t.count+printedShare*float64(len(printed[i])))
		t.rarity = r.rarityOf(t.count)
		t.full = t.share() * t.weight * t.rarity * (bmK + 1)
	}
	if err := r.take(all); err != nil {
		return err
	}
	for i, p := range all {
		r.takePrinted(p.term, printed[i])
	}
	return nil
}

// firstPostings reads up to firstRead turns of each word and estimates how many turns contain it.
func (r *recalling) firstPostings() ([]postings, error) {
	var newest int64
	if err := r.tx.Get(r.ctx, []any{&newest}, selectNewestTurn); err != nil {
		return nil, err
	}
	keys := make([]string, len(r.terms))
	for i, t := range r.terms {
		keys[i] = t.Key
	}
	lists, err := r.postings(keys, firstRead)
	if err != nil {
		return nil, err
	}
	all := make([]postings, len(lists))
	for i, ids := range lists {
		all[i] = postings{term: i, ids: ids, whole: len(ids) < firstRead}
		count := float64(len(ids))
		if !all[i].whole {
			count = min(r.turns, count*float64(newest)/float64(ids[len(ids)-1]))
		}
		r.terms[i].count += count
	}
	return all, nil
}

// printed returns, for each word, the turns in which only tool output contains it.
func (r *recalling) printed(all []postings) ([][]int64, error) {
	forms := make([]string, len(all))
	for i, p := range all {
		forms[i] = observation.PrintedMark + r.terms[p.term].Key
	}
	return r.postings(forms, maxPrinted)
}

// replaced corrects a word that no turn contains and reads the turns of its replacement. found is
// false if there is no replacement.
func (r *recalling) replaced(p *postings) (found bool, err error) {
	t := &r.terms[p.term]
	if t.count > 0 { // rows that are not in an indexed turn contain it
		return true, nil
	}
	if found, err = r.correct(t); err != nil || !found {
		return false, err
	}
	lists, err := r.postings([]string{t.Key}, maxPostings/4)
	if err != nil {
		return false, err
	}
	p.ids = lists[0]
	t.count = float64(len(p.ids))
	return true, nil
}

// take adds the turns of words, with the approximate number of occurrences in each turn.
func (r *recalling) take(all []postings) error {
	for _, p := range all {
		for _, id := range p.ids {
			t := r.turn(id)
			t.counts[p.term] = max(t.counts[p.term], 1)
		}
	}
	all = slices.Clone(all)
	for _, m := range observation.OftenMarks() {
		all = slices.DeleteFunc(all, func(p postings) bool { return len(p.ids) == 0 })
		forms := make([]string, len(all))
		for i, p := range all {
			forms[i] = r.terms[p.term].Key + m.Mark
		}
		often, err := r.postings(forms, maxPostings)
		if err != nil {
			return err
		}
		for i := range all {
			all[i].ids = often[i]
			for _, id := range often[i] {
				if t := r.found[id]; t != nil {
					t.counts[all[i].term] = max(t.counts[all[i].term], m.About)
				}
			}
		}
	}
	return nil
}

// takePrinted adds the turns in which only tool output contains a word.
func (r *recalling) takePrinted(term int, ids []int64) {
	for _, id := range ids {
		if t := r.turn(id); t.counts[term] == 0 {
			t.counts[term] = printedShare
		}
	}
}

func (r *recalling) turn(id int64) *foundTurn {
	t := r.found[id]
	if t == nil {
		t = r.spare.take(len(r.terms))
		t.id = id
		r.found[id] = t
	}
	return t
}

// score returns the BM25 score of a text from its term counts and its length. mean is the mean
// length of such texts.
func (r *recalling) score(counts []float64, length, mean float64) (sum float64) {
	more := bmK * (1 - bmB + bmB*length/mean)
	for i, n := range counts {
		if n > 0 {
			sum += r.terms[i].full * n / (n + more)
		}
	}
	return sum
}

// known returns the candidate turns, roughly best first, with their session, time, project, length
// and score. It returns about most turns. Because a filter may drop turns, it reads up to tries
// times as many.
func (r *recalling) known(most, tries int) (turns []*foundTurn, err error) {
	all := make([]*foundTurn, 0, len(r.found))
	within, err := r.within()
	if err != nil {
		return nil, err
	}
	for _, t := range r.found {
		t.rough = r.score(t.counts, 1, 1)
		if within[t.id] {
			t.rough += insideFirst
		}
		all = append(all, t)
	}
	all = bestTurns(all, tries*most)
	for len(turns) < most && len(all) > 0 {
		some := all[:min(len(all), most)]
		all = all[len(some):]
		if err := r.readTurns(some); err != nil {
			return nil, err
		}
		for _, t := range some {
			if t.known && r.wants(t) {
				t.score = r.score(t.counts, t.length, max(r.length, 1))
				turns = append(turns, t)
			}
		}
	}
	return turns, nil
}

// bestTurns returns the n roughly best turns, best first. It reorders all.
func bestTurns(all []*foundTurn, n int) []*foundTurn {
	better := func(a, b *foundTurn) int { return cmp.Or(cmp.Compare(b.rough, a.rough), cmp.Compare(b.id, a.id)) }
	// Invariant: turns before low are better than those in [low, high), and these are better than
	// those from high on.
	for low, high := 0, len(all); low < n && n < high; {
		middle := all[low+(high-low)/2]
		i, k := low, high-1
		for i <= k {
			for better(all[i], middle) < 0 {
				i++
			}
			for better(middle, all[k]) < 0 {
				k--
			}
			if i <= k {
				all[i], all[k] = all[k], all[i]
				i, k = i+1, k-1
			}
		}
		switch {
		case n <= k+1:
			high = k + 1
		case n >= i:
			low = i
		default:
			low, high = n, n
		}
	}
	all = all[:min(n, len(all))]
	slices.SortFunc(all, better)
	return all
}

// insideFirst exceeds every score, so that turns of the question's period come first.
const insideFirst = 1e6

// within returns the turns of the question's period, the latest maxPostings of them. It returns
// nil without a period.
func (r *recalling) within() (map[int64]bool, error) {
	from, to, ok := r.bounds()
	if !ok {
		return nil, nil
	}
	ids := map[int64]bool{}
	err := r.tx.Each(r.ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids[id] = true
		return err
	}, selectTurnsWithin, from, to, maxPostings)
	return ids, err
}

// readTurns reads the session, time, length and project of turns from the index.
func (r *recalling) readTurns(turns []*foundTurn) error {
	ids := []int64{}
	for _, t := range turns {
		ids = append(ids, t.id)
	}
	slices.Sort(ids) // neighbours are on the same page
	list, err := observation.IdList(ids)
	if err != nil {
		return err
	}
	var found string
	if err := r.tx.Get(r.ctx, []any{&found}, selectFoundTurns, list, r.project != 0 || r.withProjects); err != nil {
		return err
	}
	const columns = 5
	for t := range slices.Chunk(appendIDs(make([]int64, 0, columns*len(turns)), found), columns) {
		f := r.found[t[0]]
		f.session, f.at, f.length, f.project, f.known = t[1], t[2], float64(t[3]), t[4], true
	}
	return nil
}

// wants reports whether a turn passes the filters of the question.
func (r *recalling) wants(t *foundTurn) bool {
	a := r.args
	return (r.project == 0 || t.project == r.project) && t.session != r.asking &&
		(a.Before == nil || t.at < *a.Before) && (a.After == nil || t.at > *a.After)
}
