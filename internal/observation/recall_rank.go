package observation

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"math"
	"slices"
)

// The numbers of the ranking. BM25's are the usual ones; the others are told by
// measuring on sessions and questions that are no part of this program.
const (
	bmK = 1.2
	bmB = 0.75

	secondTurn   = 0.3 // what a session's second best turn counts beside its best; the third counts this to the power of 2
	sessionShare = 0.5 // what the session as a whole counts beside its turns
	printedShare = 0.2 // what a word counts that only a tool printed
	commonShare  = 0.5 // what an everyday word counts
	bestRowShare = 0.3 // what its best row counts beside its turns
)

// The bounds of a search.
const (
	maxPostings  = 20_000 // turns that are looked at, the rarest words first
	maxPrinted   = 5000   // of these, turns in which only a tool printed a word
	firstRead    = 2000   // turns of each word that are read to tell how rare it is
	maxRankTurns = 300    // turns that are ranked for good
	rankTries    = 5      // how many times as many are read where a filter leaves few over
	maxRankRows  = 12     // sessions whose rows are looked at
)

const (
	countTurns = `SELECT count(*) FROM turns`
	meanLength = `SELECT ifnull(avg(length), 1) FROM (SELECT length FROM turns ORDER BY id DESC LIMIT 500)`

	// Of many words at once, each with at most so many turns, in the order of the words.
	selectPostings = `SELECT j.key, ifnull((SELECT group_concat(id) FROM (SELECT rowid AS id FROM turn_words WHERE turn_words MATCH j.value LIMIT +?2)), '')
FROM json_each(?1) j`
	selectMorePostings = `SELECT count(*), ifnull(max(id), 0), ifnull(group_concat(id), '')
FROM (SELECT rowid AS id FROM turn_words WHERE turn_words MATCH ? AND rowid > ? LIMIT +?)`
	selectNewestTurn = `SELECT ifnull(max(id), 0) FROM turns`

	// The project of a turn stands in its row, which is read only where it matters.
	selectFoundTurns = `SELECT ifnull(group_concat(t.id || ',' || t.session_key || ',' || t.at || ',' || t.length || ',' ||
iif(?2, (SELECT o.project_key FROM observation_rows o WHERE o.id = t.id), 0)), '')
FROM json_each(?1) j CROSS JOIN turns t ON t.id = j.value`

	selectSessionTurns = `SELECT session_key, sum(length), group_concat(id)
FROM turns WHERE session_key IN (SELECT value FROM json_each(?)) GROUP BY session_key`

	selectTurnsWithin = `SELECT id FROM turns WHERE at >= ? AND at < ? ORDER BY at DESC LIMIT +?`

	selectAskingSession = `SELECT key FROM sessions WHERE id = ?`
)

// foundTurn is a turn that holds words of the question.
type foundTurn struct {
	id, session, at, project int64
	length                   float64
	counts                   []float64 // by term, how often it stands there
	rough                    float64   // the score without the turn's length
	score                    float64
	known                    bool // session, at, project and length are known
}

// spareTurns are foundTurns that were made together.
type spareTurns struct {
	turns  []foundTurn
	counts []float64
}

// take returns a turn of some terms.
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

// foundSession is a session that holds words of the question.
type foundSession struct {
	key, at int64
	turns   []*foundTurn // best first
	score   float64
	inside  bool // it has a turn in the period

	sum, whole, row float64
	pastedRow       int64
	pasted          float64 // the weight of the question's lines that one of its rows printed
	items           []RecalledItem
}

// rank finds the sessions that hold words of the question, best first. It finds none if
// the question has a time and everyday words that no session of that time holds.
func (r *recalling) rank() ([]*foundSession, error) {
	if r.args.Session != "" {
		key, err := lookUp(r.ctx, r.tx, selectAskingSession, r.args.Session)
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
		return nil, nil // then the time says more than the words
	}
	return ranked, err
}

// isEveryday reports whether a question has everyday words alone, besides its time.
func (r *recalling) isEveryday() bool {
	return !slices.ContainsFunc(r.terms, func(t askedTerm) bool { return !t.pair && !t.Common })
}

// rarityOf is BM25's inverse document frequency.
func (r *recalling) rarityOf(count float64) float64 {
	return math.Log(1 + (max(r.turns-count, 0)+0.5)/(count+0.5))
}

// postings are turns that hold a word.
type postings struct {
	term  int
	ids   []int64
	whole bool // there are no more
}

// postings reads which turns hold words, each in a form in which the index has it: at most
// limit turns of each, those with the lowest ids.
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

// read runs a query that reports how many ids there are, the highest and all of them.
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

// appendIDs appends the numbers of a list that SQLite has joined with commas.
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

// collect reads which turns hold the words of the question, the rarest words first.
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

// firstPostings reads turns of each word and estimates how many hold it.
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

// printed reads the turns in which only a tool printed words.
func (r *recalling) printed(all []postings) ([][]int64, error) {
	forms := make([]string, len(all))
	for i, p := range all {
		forms[i] = printedMark + r.terms[p.term].Key
	}
	return r.postings(forms, maxPrinted)
}

// replaced reads the turns of the word that replaces one that no turn holds.
func (r *recalling) replaced(p *postings) (found bool, err error) {
	t := &r.terms[p.term]
	if t.count > 0 { // rows that are in no turn yet hold it
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

// take adds the turns of words, and how often they stand there.
func (r *recalling) take(all []postings) error {
	for _, p := range all {
		for _, id := range p.ids {
			t := r.turn(id)
			t.counts[p.term] = max(t.counts[p.term], 1)
		}
	}
	all = slices.Clone(all)
	for _, m := range oftenMarks() {
		all = slices.DeleteFunc(all, func(p postings) bool { return len(p.ids) == 0 })
		forms := make([]string, len(all))
		for i, p := range all {
			forms[i] = r.terms[p.term].Key + m.mark
		}
		often, err := r.postings(forms, maxPostings)
		if err != nil {
			return err
		}
		for i := range all {
			all[i].ids = often[i]
			for _, id := range often[i] {
				if t := r.found[id]; t != nil {
					t.counts[all[i].term] = max(t.counts[all[i].term], m.about)
				}
			}
		}
	}
	return nil
}

// takePrinted adds the turns in which a word stands only in what tools printed.
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

// score is BM25 of counts in a text of a length, measured by the mean of such texts.
func (r *recalling) score(counts []float64, length, mean float64) (sum float64) {
	more := bmK * (1 - bmB + bmB*length/mean)
	for i, n := range counts {
		if n > 0 {
			sum += r.terms[i].full * n / (n + more)
		}
	}
	return sum
}

// known returns the turns that come into question, roughly the best first, with what the
// index knows of them: about most, from at most so many times as many where a filter
// leaves few over.
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
		if err := r.learn(some); err != nil {
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

// bestTurns are the n roughly best turns, best first.
func bestTurns(all []*foundTurn, n int) []*foundTurn {
	better := func(a, b *foundTurn) int { return cmp.Or(cmp.Compare(b.rough, a.rough), cmp.Compare(b.id, a.id)) }
	// Turns before low are better than those from low on, and these than those from high on.
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

// insideFirst is more than any score.
const insideFirst = 1e6

// within are the turns of the question's period, the latest ones of a long one; nil
// without a period.
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

// learn reads what the index knows of turns.
func (r *recalling) learn(turns []*foundTurn) error {
	ids := []int64{}
	for _, t := range turns {
		ids = append(ids, t.id)
	}
	slices.Sort(ids) // neighbours stand on one page
	list, err := idList(ids)
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

// wants reports whether a turn may be part of the answer.
func (r *recalling) wants(t *foundTurn) bool {
	a := r.args
	return (r.project == 0 || t.project == r.project) && t.session != r.asking &&
		(a.Before == nil || t.at < *a.Before) && (a.After == nil || t.at > *a.After)
}
