package observation

import (
	"cmp"
	"database/sql"
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

	selectPostings = `SELECT count(*), ifnull(max(id), 0), ifnull(group_concat(id), '')
FROM (SELECT rowid AS id FROM turn_words WHERE turn_words MATCH ? AND rowid > ? LIMIT +?)`
	selectNewestTurn = `SELECT ifnull(max(id), 0) FROM turns`

	// The project of a turn stands in its row, which is read only where it matters.
	selectFoundTurns = `SELECT t.id, t.session_key, t.at, t.length,
iif(?2, (SELECT o.project_key FROM observation_rows o WHERE o.id = t.id), 0)
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
	turns, err := r.known(maxRankTurns, rankTries)
	if err != nil {
		return nil, err
	}
	ranked, err := r.group(turns)
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

// postings are turns that hold a word in the form in which the index has it.
type postings struct {
	term  int
	ids   []int64
	whole bool // there are no more
}

func (r *recalling) postings(key string, after int64, limit int) (p postings, last int64, err error) {
	p, last, err = r.read(selectPostings, `"`+key+`"`, after, limit)
	p.whole = len(p.ids) < limit
	return p, last, err
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

// appendIDs appends the ids of a list that SQLite has joined with commas, which is not
// empty.
func appendIDs(ids []int64, list string) []int64 {
	id := int64(0)
	for i := range len(list) {
		if c := list[i]; c != ',' {
			id = 10*id + int64(c-'0')
			continue
		}
		ids = append(ids, id)
		id = 0
	}
	return append(ids, id)
}

// collect reads which turns hold the words of the question, the rarest words first.
func (r *recalling) collect() error {
	var newest int64
	if err := r.tx.Get(r.ctx, []any{&newest}, selectNewestTurn); err != nil {
		return err
	}
	all := make([]postings, len(r.terms))
	for i := range r.terms {
		var err error
		if all[i], err = r.firstPostings(i, newest); err != nil {
			return err
		}
	}
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b postings) int { return cmp.Compare(r.terms[a.term].count, r.terms[b.term].count) })
	room := maxPostings
	for _, p := range order {
		t := &r.terms[p.term]
		if !p.whole {
			if t.count > float64(room) {
				break
			}
			more, _, err := r.postings(t.Key, p.ids[len(p.ids)-1], room-len(p.ids))
			if err != nil {
				return err
			}
			p.ids = append(p.ids, more.ids...)
		}
		printed, _, err := r.postings(printedMark+t.Key, 0, max(1, min(room-len(p.ids), maxPrinted)))
		if err != nil {
			return err
		}
		printed.term = p.term
		if len(p.ids)+len(printed.ids) == 0 {
			found, err := r.replaced(&p)
			if err != nil || !found {
				if err != nil {
					return err
				}
				continue
			}
		}
		room -= len(p.ids) + len(printed.ids)
		t.count = min(r.turns, t.count+printedShare*float64(len(printed.ids)))
		t.rarity = r.rarityOf(t.count)
		t.full = t.share() * t.weight * t.rarity * (bmK + 1)
		if err := r.take(p); err != nil {
			return err
		}
		r.takePrinted(printed)
	}
	return nil
}

// firstPostings reads turns of a word and estimates how many hold it.
func (r *recalling) firstPostings(term int, newest int64) (postings, error) {
	t := &r.terms[term]
	p, last, err := r.postings(t.Key, 0, firstRead)
	p.term = term
	count := float64(len(p.ids))
	if !p.whole && last > 0 {
		count = min(r.turns, count*float64(newest)/float64(last))
	}
	t.count += count
	return p, err
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
	more, _, err := r.postings(t.Key, 0, maxPostings/4)
	p.ids = more.ids
	t.count = float64(len(p.ids))
	return true, err
}

// take adds the turns of a word.
func (r *recalling) take(p postings) error {
	if len(p.ids) == 0 {
		return nil
	}
	for _, id := range p.ids {
		t := r.turn(id)
		t.counts[p.term] = max(t.counts[p.term], 1)
	}
	for _, m := range oftenMarks() {
		often, _, err := r.postings(r.terms[p.term].Key+m.mark, 0, len(p.ids)+1)
		if err != nil || len(often.ids) == 0 {
			return err
		}
		for _, id := range often.ids {
			if t := r.found[id]; t != nil {
				t.counts[p.term] = max(t.counts[p.term], m.about)
			}
		}
	}
	return nil
}

// takePrinted adds the turns in which a word stands only in what tools printed.
func (r *recalling) takePrinted(p postings) {
	for _, id := range p.ids {
		if t := r.turn(id); t.counts[p.term] == 0 {
			t.counts[p.term] = printedShare
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
	list, err := idList(ids)
	if err != nil {
		return err
	}
	return r.tx.Each(r.ctx, func(rows *sql.Rows) error {
		var id int64
		var t foundTurn
		if err := rows.Scan(&id, &t.session, &t.at, &t.length, &t.project); err != nil {
			return err
		}
		f := r.found[id]
		f.session, f.at, f.length, f.project, f.known = t.session, t.at, t.length, t.project, true
		return nil
	}, selectFoundTurns, list, r.project != 0 || r.withProjects)
}

// wants reports whether a turn may be part of the answer.
func (r *recalling) wants(t *foundTurn) bool {
	a := r.args
	return (r.project == 0 || t.project == r.project) && t.session != r.asking &&
		(a.Before == nil || t.at < *a.Before) && (a.After == nil || t.at > *a.After)
}
