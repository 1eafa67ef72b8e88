package memory

import (
	"cmp"
	"math"
	"slices"
)

// Weights of what makes a score. The first three go by the words of the question:
// those in the entry itself, those around it and those in its whole group, each word
// by its rareness in the memory. They were tuned on three of the five conversations
// of the LoCoMo dialogues at hand, see cairn-bench locomo.
const (
	weightEntry  = 0.12
	weightWindow = 0.50
	weightGroup  = 0.38

	weightSpeaker   = 0.06 // the question names who spoke
	weightAsked     = 0.12 // it asks for a time, and the text tells one
	weightBeside    = 0.06 // the same, but the words stand around the text only, whose time may be of something else
	weightTime      = 0.03 // the text tells a time
	weightStatement = 0.07 // the text does not end with a question; of short entries only

	weightSum = weightEntry + weightWindow + weightGroup + weightSpeaker + weightAsked + weightTime + weightStatement
)

// How soon more of the same word says nothing more: at these counts it says half of
// what it can. That of a group is for one of the memory's usual size.
const (
	halfWindow = 0.8
	halfGroup  = 3.0
)

// reach is how many neighbours on either side are an entry's window. Of those before
// it, which it may answer, the words count more than of those behind.
const reach = 2

// nearness is the weight of a word that stands by steps behind an entry.
func nearness(by int64) float64 {
	switch by {
	case -1, 0:
		return 1
	case -2, 1:
		return 0.5
	}
	return 0.25
}

// maxCandidates is how many entries are read and ranked to the end, by words and by
// vectors.
const maxCandidates = 200

// posting is a term of the question and the places that have it, ascending.
type posting struct {
	places []int64
	weight float64 // by rareness; all of a question add up to 1
}

// weigh sets the weights of postings, of n entries. Those without a place are dropped.
func weigh(all []posting, n int) []posting {
	all = slices.DeleteFunc(all, func(p posting) bool { return len(p.places) == 0 })
	sum := 0.0
	for i := range all {
		has := float64(len(all[i].places))
		all[i].weight = math.Log1p((max(float64(n), has) - has + 0.5) / (has + 0.5))
		sum += all[i].weight
	}
	for i := range all {
		all[i].weight /= sum
	}
	return all
}

// candidate is a place with its score by words and how near its vector is, both 0–1.
type candidate struct {
	place int64
	words float64
	near  float64
	has   bool // some of the words itself, not only around it
}

// mark says that the entry at a place has a term.
type mark struct {
	place int64
	term  int
}

// candidates are the places by words, best first. An entry without any of the words is one where its window has some. size tells a
// group's size by its key, usual is the memory's. admitted limits what counts as a
// candidate, not what lends its words to one; nil admits all.
func candidates(postings []posting, size func(group int64) float64, usual float64, admitted func(place int64) bool) []candidate {
	var marks []mark
	for term, p := range postings {
		for _, place := range p.places {
			marks = append(marks, mark{place, term})
		}
	}
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.term, b.term)) })
	r := ranking{postings: postings, near: make([]float64, len(postings)), has: make([]bool, len(postings)), admitted: admitted}
	for len(marks) > 0 {
		group := marks[0].place >> placeBits
		end := 1
		for end < len(marks) && marks[end].place>>placeBits == group {
			end++
		}
		r.rank(marks[:end], halfGroup*(0.25+0.75*size(group)/usual))
		marks = marks[end:]
	}
	slices.SortFunc(r.found, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.words, a.words), cmp.Compare(a.place, b.place)) })
	return r.found
}

// ranking gathers candidates; near and has are scratch space, a place per term.
type ranking struct {
	postings []posting
	near     []float64
	has      []bool
	admitted func(place int64) bool
	found    []candidate
}

// rank scores the places of one group, of which these are the marks.
func (r *ranking) rank(marks []mark, half float64) {
	clear(r.near)
	for _, m := range marks {
		r.near[m.term]++
	}
	group := 0.0
	for term, n := range r.near {
		group += r.postings[term].weight * n / (n + half)
	}
	first := marks[0].place &^ (1<<placeBits - 1)
	next := first // the first place that was not looked at
	low := 0      // the first mark that can be in a window
	for _, m := range marks {
		for place := max(next, m.place-reach); place <= m.place+reach; place++ {
			for marks[low].place < place-reach {
				low++
			}
			if r.admitted == nil || r.admitted(place) {
				words, has := r.window(marks[low:], place)
				r.found = append(r.found, candidate{place: place, words: weightGroup*group + words, has: has})
			}
			next = place + 1
		}
	}
}

// window scores the words at and around a place, and says whether any is at it; marks
// begin in its window.
func (r *ranking) window(marks []mark, place int64) (score float64, has bool) {
	clear(r.near)
	clear(r.has)
	for _, m := range marks {
		if m.place > place+reach {
			break
		}
		r.near[m.term] += nearness(m.place - place)
		r.has[m.term] = r.has[m.term] || m.place == place
	}
	for term, n := range r.near {
		score += r.postings[term].weight * weightWindow * n / (n + halfWindow)
		if r.has[term] {
			score += r.postings[term].weight * weightEntry
			has = true
		}
	}
	return score, has
}

// An entry of more than shortEntry words has more of any words, and lends more of
// them to its neighbours. Its score by words falls with the logarithm of its length.
const (
	shortEntry    = 80
	lengthPenalty = 0.3
)

// lengthNorm returns the factor of the score by words of an entry: 1 up to
// shortEntry words, less for longer entries.
func lengthNorm(words int) float64 {
	if words <= shortEntry {
		return 1
	}
	return 1 / (1 + lengthPenalty*math.Log(float64(words)/shortEntry))
}

// countWords returns the number of words of a text, between blanks.
func countWords(text string) (n int) {
	inside := false
	for i := range len(text) {
		blank := text[i] <= ' '
		if !blank && !inside {
			n++
		}
		inside = !blank
	}
	return n
}
