package words

import (
	"strings"
	"unicode/utf8"
)

// Corrector finds the known words nearest to unknown ones (amendments §A.2). It must be
// used by one goroutine at a time.
type Corrector struct {
	unknown []string
	best    []knownWord
	seen    map[string]bool
}

// knownWord is a known word near an unknown one.
type knownWord struct {
	word string
	far  int // twice the number of edits; 1 for a word that begins with the unknown one
}

// NewCorrector returns a corrector for words that no text contains.
func NewCorrector(unknown []string) *Corrector {
	c := &Corrector{seen: map[string]bool{}}
	for _, word := range unknown {
		c.unknown = append(c.unknown, strings.ToLower(withoutAccents(word)))
	}
	c.best = make([]knownWord, len(unknown))
	return c
}

// Learn adds the words of a text to the known words.
func (c *Corrector) Learn(text string) {
	Each(strings.ToValidUTF8(text, "\uFFFD"), func(whole string, parts []string) {
		c.learn(whole)
		if len(parts) > 1 {
			for _, p := range parts {
				c.learn(p)
			}
		}
	})
}

func (c *Corrector) learn(word string) {
	if c.seen[word] || len(word) < minCorrected {
		return
	}
	c.seen[word] = true
	word = strings.ToLower(word)
	for i, unknown := range c.unknown {
		far := farFrom(unknown, word)
		if b := c.best[i]; far > 0 && (b.word == "" || far < b.far || far == b.far && word < b.word) {
			c.best[i] = knownWord{word, far}
		}
	}
}

// minCorrected is the minimum length in bytes of a word to correct.
const minCorrected = 4

// farFrom returns the distance of a known word from an unknown one, or 0 if it is too
// far. A word of up to seven letters may differ by one edit, a longer one by two; a word
// that begins with at least four letters of the unknown one is nearest.
func farFrom(unknown, known string) int {
	const short = 7
	letters := utf8.RuneCountInString(unknown)
	if letters < minCorrected {
		return 0
	}
	if strings.HasPrefix(known, unknown) {
		return 1
	}
	most := 1
	if letters > short {
		most = 2
	}
	if n := edits([]rune(unknown), []rune(known), most); n > 0 && n <= most {
		return 2 * n
	}
	return 0
}

// edits returns how many letters must be inserted, deleted, replaced or swapped with
// their neighbour to turn a into b. It returns any number above most if there are more
// than most.
func edits(a, b []rune, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	before, last, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(last[j]+1, next[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
			least = min(least, next[j])
		}
		if least > most {
			return most + 1
		}
		before, last, next = last, next, before
	}
	return last[len(b)]
}

// Corrections returns the nearest known word of each unknown word that has one, or nil.
// Keys are in lower case.
func (c *Corrector) Corrections() map[string]string {
	var all map[string]string
	for i, b := range c.best {
		if b.word == "" {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[c.unknown[i]] = b.word
	}
	return all
}

// Corrected returns the words with corrections applied.
func Corrected(all []string, corrections map[string]string) []string {
	out := make([]string, len(all))
	for i, word := range all {
		out[i] = word
		if known, ok := corrections[strings.ToLower(withoutAccents(word))]; ok {
			out[i] = known
		}
	}
	return out
}
