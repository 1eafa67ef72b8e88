package observation

import (
	"slices"

	"cairn/internal/similar"
	"cairn/internal/words"
)

// The numbers of similar words, told by measuring as those of the ranking are.
const (
	poorCover         = 0.5  // below this cover of a question by its best turn, similar words take part in the ranking
	fairCover         = 0.7  // below this one, they find further sessions
	similarShare      = 0.6  // what a similar word counts at most where it takes part in the ranking
	maxSimilar        = 6    // similar words of one word
	minSimilarLetters = 3    // of a word that has similar ones
	maxSimilarTurns   = 1000 // a similar word that more turns hold says little
)

// similarTurns are the turns that hold a word similar to one of the question.
type similarTurns struct {
	term  int
	word  similar.Word
	ids   []int64
	often [][]int64 // by mark, those that hold it often
}

// cover is how much of the question, by weight, the turn holds that holds most of it: from
// 0, no turn holds any of its words, to 1.
func (r *recalling) cover() float64 {
	all, best := 0.0, 0.0
	weigh := func(i int) float64 {
		t := &r.terms[i]
		if t.pair {
			return 0
		}
		return t.share() * t.weight * r.rarityOf(t.count)
	}
	weights := make([]float64, len(r.terms))
	for i := range r.terms {
		weights[i] = weigh(i)
		all += weights[i]
	}
	for _, t := range r.found {
		sum := 0.0
		for i, n := range t.counts {
			sum += min(1, n) * weights[i]
		}
		best = max(best, sum)
	}
	if all == 0 {
		return 1
	}
	return best / all
}

// readSimilar reads the turns of the words that are similar to those of the question. A
// word that stands in very many turns says nothing and is left out.
func (r *recalling) readSimilar() ([]similarTurns, error) {
	asked := map[string]bool{}
	for _, t := range r.terms {
		asked[t.Key] = true
	}
	var all []similarTurns
	for i, t := range r.terms {
		if t.pair || t.Torn || len(t.Key) < minSimilarLetters {
			continue
		}
		for _, w := range similar.Words(t.Key) {
			if !asked[w.Key] {
				all = append(all, similarTurns{term: i, word: w})
			}
		}
	}
	read := func(mark string) ([][]int64, error) {
		forms := make([]string, len(all))
		for i, s := range all {
			forms[i] = s.word.Key + mark
		}
		return r.postings(forms, maxSimilarTurns)
	}
	lists, err := read("")
	if err != nil {
		return nil, err
	}
	of := map[int]int{}
	kept := all[:0]
	for i, s := range all {
		if n := len(lists[i]); n > 0 && n < maxSimilarTurns && of[s.term] < maxSimilar {
			of[s.term]++
			s.ids = lists[i]
			kept = append(kept, s)
		}
	}
	all = kept
	for _, m := range oftenMarks() {
		lists, err := read(m.mark)
		if err != nil {
			return nil, err
		}
		for i := range all {
			all[i].often = append(all[i].often, lists[i])
		}
	}
	return all, nil
}

// takeSimilar lets turns hold words of the question to a part where they hold similar ones:
// share of a word at most, less of a less similar one and of one that is less rare than the
// word itself.
func (r *recalling) takeSimilar(all []similarTurns, share float64) {
	held := map[int]map[int64]float64{} // by term, what its similar words count in a turn
	rarity := map[int]map[int64]float64{}
	for _, s := range all {
		if held[s.term] == nil {
			held[s.term], rarity[s.term] = map[int64]float64{}, map[int64]float64{}
		}
		weight := share * (s.word.Likeness - 0.4) / 0.6
		rare := r.rarityOf(float64(len(s.ids)))
		take := func(ids []int64, count float64) {
			for _, id := range ids {
				if weight*count > held[s.term][id] {
					held[s.term][id], rarity[s.term][id] = weight*count, rare
				}
			}
		}
		take(s.ids, 1)
		for i, m := range oftenMarks() {
			take(s.often[i], m.about)
		}
	}
	for i, turns := range held {
		t := &r.terms[i]
		if t.count == 0 || t.borrowed { // no turn holds the word itself
			t.borrowed, t.count = true, 0
			for _, x := range turns {
				t.count += min(1, x)
			}
			t.count = min(t.count, r.turns)
			t.rarity = r.rarityOf(t.count)
			t.full = t.share() * t.weight * t.rarity * (bmK + 1)
		}
		for id, x := range turns {
			f := r.turn(id)
			f.counts[i] = max(f.counts[i], x*min(1, rarity[i][id]/max(t.rarity, 0.01)))
		}
	}
}

// prepareSimilar reads the similar words of a question that no turn covers well. Where none
// covers half of it, similar words take part in the ranking.
func (r *recalling) prepareSimilar() (err error) {
	if r.args.Similar == 0 || r.args.Words != "" {
		return nil
	}
	cover := r.cover()
	if cover >= fairCover {
		return nil
	}
	if err := r.readPasted(); err != nil || len(r.pasted) > 0 {
		return err
	}
	if r.similar, err = r.readSimilar(); err == nil && cover <= poorCover {
		r.takeSimilar(r.similar, similarShare)
	}
	return err
}

// similarSessions ranks the sessions once more, with similar words as good as the
// question's own.
func (r *recalling) similarSessions() ([]*foundSession, error) {
	if len(r.similar) == 0 {
		return nil, nil
	}
	r.takeSimilar(r.similar, 1)
	turns, err := r.known(maxRankTurns, rankTries)
	if err != nil {
		return nil, err
	}
	all, _ := r.group(turns)
	if err := r.weighSessions(all); err != nil {
		return nil, err
	}
	r.settle(all)
	return all, nil
}

// similarFinder finds the words of the question, and those similar to them, in texts.
func (r *recalling) similarFinder() *words.Finder {
	keys := r.keys()
	for _, s := range r.similar {
		if _, own := keys[s.word.Key]; !own {
			t := &r.terms[s.term]
			keys[s.word.Key] = s.word.Likeness * t.weight * max(t.rarity, 0.1)
		}
	}
	return words.NewFinder(keys)
}

// similarItems returns the rows of a session whose best turns hold none of the question's
// own words, only similar ones.
func (r *recalling) similarItems(s *foundSession, finder *words.Finder) ([]RecalledItem, error) {
	s.items = nil
	all, err := r.turnItems(s, finder)
	for i := range all {
		all[i].Matched = MatchedSimilar
	}
	return all, err
}

// WithSimilar merges the sessions of Recalled into at most limit ones: of five, the first
// three are those that hold the question's own words best; then come those that similar
// words find, then the other own ones.
func WithSimilar(own, similar []RecalledSession, limit int) []RecalledSession {
	n := min(len(own), max(1, limit*3/5))
	out := slices.Clone(own[:n])
	for _, s := range slices.Concat(similar, own[n:]) {
		if !slices.ContainsFunc(out, func(o RecalledSession) bool { return o.SessionID == s.SessionID }) {
			out = append(out, s)
		}
	}
	return out[:min(len(out), limit)]
}
