package ranking

import (
	"cmp"
	"math"
	"slices"
)

// Weights of a score. The first three are for the question's words in the entry itself, in its
// neighbours, and in its whole group; each word counts by its rareness in the memory. They
// were tuned on three of five LoCoMo conversations (cairn-bench locomo).
const (
	weightEntry  = 0.12
	weightWindow = 0.50
	weightGroup  = 0.38

	weightSpeaker   = 0.06 // the question names the speaker
	weightAsked     = 0.12 // the question asks for a time, and the text names one
	weightBeside    = 0.06 // the same, but the words are in the neighbours only, so the time may belong to something else
	weightTime      = 0.03 // the text names a time
	weightStatement = 0.07 // the text is short and does not end with a question

	weightSum = weightEntry + weightWindow + weightGroup + weightSpeaker + weightAsked + weightTime + weightStatement
)

// At these counts a word contributes half of its weight, so that repetitions add less and
// less. The count of a group is for a group of average size.
const (
	halfWindow = 0.8
	halfGroup  = 3.0
)

// reach is the number of neighbours on either side that form an entry's window. Words of the
// neighbours before an entry count more, because the entry may answer them.
const reach = 2

// nearness returns the weight of a word in the neighbour that is by steps after an entry.
func nearness(by int64) float64 {
	switch by {
	case -1, 0:
		return 1
	case -2, 1:
		return 0.5
	}
	return 0.25
}

// MaxCandidates is the maximum number of entries that are read and scored, by words and by
// vectors.
const MaxCandidates = 200

// Posting is a term of the question with the places of the entries that contain it, ascending.
type Posting struct {
	Places []int64
	Weight float64 // by rareness; the weights of a question add up to 1
}

// Weigh sets the weights of postings among n entries. It removes postings without a place.
func Weigh(all []Posting, n int) []Posting {
	all = slices.DeleteFunc(all, func(p Posting) bool { return len(p.Places) == 0 })
	sum := 0.0
	for i := range all {
		has := float64(len(all[i].Places))
		all[i].Weight = math.Log1p((max(float64(n), has) - has + 0.5) / (has + 0.5))
		sum += all[i].Weight
	}
	for i := range all {
		all[i].Weight /= sum
	}
	return all
}

// Candidate is a place with its scores by words and by the nearness of its vector, both 0–1.
type Candidate struct {
	Place int64
	Words float64
	Near  float64
	Has   bool // the entry itself contains a word, not only its neighbours
}

// mark is an occurrence of a term in the entry at a place.
type mark struct {
	place int64
	term  int
}

// Candidates returns the places by their words, best first. An entry without any of the words
// is a candidate if its window contains some. size returns a group's size by its key; usual is
// the average size. admitted limits the candidates, but not the neighbours whose words count;
// nil admits all.
func Candidates(postings []Posting, size func(group int64) float64, usual float64, admitted func(place int64) bool) []Candidate {
	var marks []mark
	for term, p := range postings {
		for _, place := range p.Places {
			marks = append(marks, mark{place, term})
		}
	}
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.term, b.term)) })
	r := ranking{postings: postings, near: make([]float64, len(postings)), has: make([]bool, len(postings)), admitted: admitted}
	for len(marks) > 0 {
		group := marks[0].place >> PlaceBits
		end := 1
		for end < len(marks) && marks[end].place>>PlaceBits == group {
			end++
		}
		r.rank(marks[:end], halfGroup*(0.25+0.75*size(group)/usual))
		marks = marks[end:]
	}
	slices.SortFunc(r.found, func(a, b Candidate) int { return cmp.Or(cmp.Compare(b.Words, a.Words), cmp.Compare(a.Place, b.Place)) })
	return r.found
}

// ranking collects candidates. near and has are scratch space with an element per term.
type ranking struct {
	postings []Posting
	near     []float64
	has      []bool
	admitted func(place int64) bool
	found    []Candidate
}

// rank scores the places of one group by its marks.
func (r *ranking) rank(marks []mark, half float64) {
	clear(r.near)
	for _, m := range marks {
		r.near[m.term]++
	}
	group := 0.0
	for term, n := range r.near {
		group += r.postings[term].Weight * n / (n + half)
	}
	first := marks[0].place &^ (1<<PlaceBits - 1)
	next := first // the first place that is not scored yet
	low := 0      // the first mark that can be in a window
	for _, m := range marks {
		for place := max(next, m.place-reach); place <= m.place+reach; place++ {
			for marks[low].place < place-reach {
				low++
			}
			if r.admitted == nil || r.admitted(place) {
				words, has := r.window(marks[low:], place)
				r.found = append(r.found, Candidate{Place: place, Words: weightGroup*group + words, Has: has})
			}
			next = place + 1
		}
	}
}

// window scores the words in the window of a place, and reports whether any is at the place
// itself. marks start in the window.
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
		score += r.postings[term].Weight * weightWindow * n / (n + halfWindow)
		if r.has[term] {
			score += r.postings[term].Weight * weightEntry
			has = true
		}
	}
	return score, has
}

// A long entry contains more of any words, and lends more of them to its neighbours. Above
// shortEntry words its score by words decreases with the logarithm of its length.
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

// countWords returns the number of words of a text, separated by blanks.
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

// PlaceBits is the number of low bits of a place that number an entry in its group. The bits
// above are the group's key.
const PlaceBits = 28

// Score returns the score by words of a candidate, 0–1, including the bonus. text is the entry
// with its summary, raw the entry alone.
func (q *Question) Score(c Candidate, text, raw, speaker string) float64 {
	length := countWords(raw)
	return (c.Words*lengthNorm(length) + q.bonus(text, raw, speaker, c.Has, length)) / weightSum
}

// bonus returns the part of a score that does not depend on the words' rareness: for the
// speaker, a time, and a short statement.
func (q *Question) bonus(text, raw, speaker string, has bool, length int) (score float64) {
	if q.names(speaker) {
		score += weightSpeaker
	}
	if tellsTime(text) {
		score += weightTime
		switch {
		case q.Time && has:
			score += weightAsked
		case q.Time:
			score += weightBeside
		}
	}
	if length <= shortEntry && !asks(raw) {
		score += weightStatement
	}
	return score
}
