package memory

import (
	"strings"

	"cairn/internal/words"
)

// Entries of many words, such as answers in chats with agents, have most words of a
// question by chance. The weights of searchrank.go suit entries of a few sentences; for
// long ones the count of each word and the length of the entry decide, as in BM25, and
// what stands around an entry adds less. The mean length of the candidates tells which
// of the two rankings counts, and how much (amendments §A.11).
const (
	shortMean = 30.0 // words: up to this mean, entries are ranked as short ones
	longMean  = 90.0 // from this mean on, as long ones; between the two, by both

	longEntry  = 1.0 // weights in the ranking of long entries: words of the entry itself,
	longWindow = 0.3 // around it,
	longGroup  = 0.4 // and of its group,
	longBonus  = 0.3 // and what it has besides words

	saturation = 1.2 // BM25's k1 and b
	byLength   = 0.75

	// shortEntry is the most words of an entry that is preferred for being a statement.
	// Amendments §A.11 says 40, which costs 1.3 points of R@10 on LoCoMo; 60 costs 0.4.
	shortEntry = 60
)

// contender is a candidate that was read.
type contender struct {
	candidate
	hit    Hit
	text   string
	length float64 // words
	bonus  float64 // what the entry has besides words
}

// countWords returns how many words a text has, separated by white space.
func countWords(text string) (n float64) {
	for range strings.FieldsSeq(text) {
		n++
	}
	return n
}

// weigh keeps the weights of the question's terms.
func (q *question) weigh(all []posting) {
	q.weights = make(map[string]float64, len(all))
	for _, p := range all {
		q.weights[p.term] = p.weight
	}
}

// scores returns the scores by words of contenders, 0–1, in their order.
func (q *question) scores(all []contender) []float64 {
	mean := 0.0
	for _, c := range all {
		mean += c.length / float64(len(all))
	}
	long := min(max((mean-shortMean)/(longMean-shortMean), 0), 1)
	scores := make([]float64, len(all))
	terms := map[string]string{}
	for i, c := range all {
		scores[i] = (1 - long) * (c.words + c.bonus) / weightSum
		if long == 0 {
			continue
		}
		around := longWindow*c.window + longGroup*c.group + longBonus*c.bonus
		scores[i] += long * (longEntry*q.matched(c.text, c.length/mean, terms) + around) / (longEntry + longWindow + longGroup + longBonus)
	}
	return scores
}

// matched returns how well a text of so many mean lengths has the question's words, 0–1.
// terms keeps the terms of words from one call to the next.
func (q *question) matched(text string, length float64, terms map[string]string) (score float64) {
	counts := map[string]float64{}
	eachWord(text, func(word string) {
		term, known := terms[word]
		if !known {
			if term = words.Stem(base(word)); q.weights[term] == 0 {
				term = ""
			}
			terms[word] = term
		}
		if term != "" {
			counts[term]++
		}
	})
	for term, n := range counts {
		score += q.weights[term] * n / (n + saturation*(1-byLength+byLength*length))
	}
	return score
}
