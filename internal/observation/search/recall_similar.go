package search

import (
	"slices"

	"cairn/internal/observation"
	"cairn/internal/similar"
	"cairn/internal/words"
)

// Parameters of similar words, tuned by measurement like those of the ranking.
const (
	poorCover         = 0.5  // up to this cover, similar words take part in the ranking
	fairCover         = 0.7  // below this cover, similar words find further sessions
	similarShare      = 0.6  // highest weight of a similar word that takes part in the ranking
	maxSimilar        = 6    // similar words per word of the question
	minSimilarLetters = 3    // minimum length of a word whose similar words are used
	maxSimilarTurns   = 1000 // similar words in this many turns or more are too common to help
)

// similarTurns are the turns that contain a word similar to one of the question.
type similarTurns struct {
	term  int
	word  similar.Word
	ids   []int64
	often [][]int64 // by mark, the turns that contain it often
}

// cover returns how much of the question, by weight, the best turn contains: from 0 (no turn
// contains any word of it) to 1.
func (r *recalling) cover() float64 {
	all, best := 0.0, 0.0
	weights := make([]float64, len(r.terms))
	for i := range r.terms {
		if t := &r.terms[i]; !t.pair {
			weights[i] = t.share() * t.weight * r.rarityOf(t.count)
			all += weights[i]
		}
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

// readSimilar returns the turns of the words that are similar to words of the question. It leaves
// out words in maxSimilarTurns turns or more, because they are too common to help.
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
	for _, m := range observation.OftenMarks() {
		lists, err := read(m.Mark)
		if err != nil {
			return nil, err
		}
		for i := range all {
			all[i].often = append(all[i].often, lists[i])
		}
	}
	return all, nil
}

// takeSimilar counts similar words in turns as partial matches of the question's words. A similar
// word counts at most share of a word. It counts less the less similar it is, and less if it is
// more common than the word itself.
func (r *recalling) takeSimilar(all []similarTurns, share float64) {
	type match struct{ count, rarity float64 }
	best := map[int]map[int64]match{} // by term and turn, that of its best similar word
	for _, s := range all {
		if best[s.term] == nil {
			best[s.term] = map[int64]match{}
		}
		weight := share * (s.word.Likeness - 0.4) / 0.6
		rare := r.rarityOf(float64(len(s.ids)))
		take := func(ids []int64, count float64) {
			for _, id := range ids {
				if weight*count > best[s.term][id].count {
					best[s.term][id] = match{weight * count, rare}
				}
			}
		}
		take(s.ids, 1)
		for i, m := range observation.OftenMarks() {
			take(s.often[i], m.About)
		}
	}
	for i, turns := range best {
		t := &r.terms[i]
		if t.count == 0 || t.borrowed { // no turn contains the word itself
			t.borrowed, t.count = true, 0
			for _, m := range turns {
				t.count += min(1, m.count)
			}
			t.count = min(t.count, r.turns)
			t.rarity = r.rarityOf(t.count)
			t.full = t.share() * t.weight * t.rarity * (bmK + 1)
		}
		for id, m := range turns {
			f := r.turn(id)
			f.counts[i] = max(f.counts[i], m.count*min(1, m.rarity/max(t.rarity, 0.01)))
		}
	}
}

// prepareSimilar reads the similar words of a question if no turn covers it well. If no turn
// covers more than half of it, similar words take part in the ranking.
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

// similarSessions ranks the sessions again, with similar words weighing as much as the question's
// own words.
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
	r.order(all)
	return all, nil
}

// similarFinder returns a finder for the words of the question and the words similar to them.
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

// similarItems returns the rows of a session whose best turns contain only similar words, none of
// the question's own.
func (r *recalling) similarItems(s *foundSession, finder *words.Finder) ([]RecalledItem, error) {
	s.items = nil
	all, err := r.turnItems(s, finder)
	for i := range all {
		all[i].Matched = MatchedSimilar
	}
	return all, err
}

// WithSimilar merges the sessions of Recalled into at most limit sessions. The first three fifths
// are those that match the question's own words best. The sessions found by similar words follow,
// then the rest of own. Each session appears once.
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
