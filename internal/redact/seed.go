package redact

import (
	"slices"
	"strings"
)

// Seed phrases of wallets (BIP-39) consist of words from a list of 2,048. Each word has
// three to eight letters.
const (
	ruleSeedPhrase  = "seed_phrase"
	seedPhraseWords = 12 // the shortest phrase
	seedShortest    = 3
	seedLongest     = 8
)

// seedPhrase redacts a seed phrase whose twelfth or later word ends at text[:end]. White
// space, commas, quotes and the words' numbers may separate the words. One repeated word
// is not a phrase. It returns how many of the last words can still begin a phrase.
func (s *scan) seedPhrase(end int) int {
	t := s.text
	if end > 0 && t[end-1] == '\\' { // part of an escaped quote
		end--
	}
	words, start, n := wordsBefore(t, end)
	if n < seedPhraseWords {
		return n
	}
	if !varied(words) {
		return seedPhraseWords - 1
	}
	for n, word := range words {
		if !isSeedWord(word) {
			return n
		}
	}
	start = seedPhraseStart(t, start)
	s.seedEnd = seedPhraseEnd(t, start)
	s.add(ruleSeedPhrase, start, s.seedEnd)
	return 0
}

// wordsBefore returns the twelve words up to text[:end], last word first, and the start of
// the first word. n is less than twelve if there are fewer words.
func wordsBefore(t string, end int) (words [seedPhraseWords]string, start, n int) {
	for n := range words {
		first := back(t, end, seedLongest+1, isLetter)
		if first == end || end-first > seedLongest || first > 0 && isWord(t[first-1]) {
			return words, start, n
		}
		words[n], start = t[first:end], first
		if end = backSeparator(t, first); end == first && n < seedPhraseWords-1 {
			return words, start, n + 1
		}
	}
	return words, start, seedPhraseWords
}

// seedPhraseStart returns the start of the seed phrase that has a later word at
// text[start]. The longest phrase has 24 words.
func seedPhraseStart(t string, start int) int {
	for range seedPhraseWords {
		end := backSeparator(t, start)
		first := back(t, end, seedLongest+1, isLetter)
		if end == start || !isSeedWord(t[first:end]) || first > 0 && isWord(t[first-1]) {
			break
		}
		start = first
	}
	return start
}

// varied reports whether the words, last word first, are not a list of few values such as
// "true, false, true". Five words must differ, or only the last one, as in example
// phrases.
func varied(words [seedPhraseWords]string) bool {
	differ := 0
	for i, w := range words {
		if !slices.Contains(words[:i], w) {
			differ++
		}
	}
	return differ >= 5 || differ == 2 && !slices.Contains(words[1:], words[0])
}

// maxSeparator is the maximum length in bytes of a separator between two words of a seed
// phrase.
const maxSeparator = 16

// backSeparator returns the start of the separator that ends at text[:i], or i if there is
// none. A separator consists of white space, commas and quotes, and a number with a dot or
// a bracket.
func backSeparator(t string, i int) int {
	j := back(t, i, maxSeparator, isSeedSeparator)
	if j == i {
		return i
	}
	number := j
	if j > 0 && (t[j-1] == '.' || t[j-1] == ')') {
		number--
	}
	if digits := back(t, number, 2, isDigit); digits < number {
		return back(t, digits, maxSeparator, isSeedSeparator)
	}
	return j
}

// isSeedSeparator reports whether c can be between two words of a seed phrase.
func isSeedSeparator(c byte) bool {
	return isSpace(c) || isQuote(c) || c == ',' || c == '\\'
}

// seedPhraseEnd returns the end of the last word of the seed phrase that begins at
// text[i:].
func seedPhraseEnd(t string, i int) int {
	end := i
	for {
		last := skip(t, i, seedLongest+1, isLetter)
		if !isSeedWord(t[i:last]) || last < len(t) && isWord(t[last]) {
			return end
		}
		end = last
		i = skip(t, last, maxSeparator, isSeedSeparator)
		if digits := skip(t, i, 2, isDigit); digits > i {
			digits = skip(t, digits, 1, func(c byte) bool { return c == '.' || c == ')' })
			i = skip(t, digits, maxSeparator, isSeedSeparator)
		}
		if i == last {
			return end
		}
	}
}

// isSeedWord reports whether w, in any case, is one of seedWords. It uses a binary search.
func isSeedWord(w string) bool {
	if len(w) < seedShortest || len(w) > seedLongest {
		return false
	}
	var folded [seedLongest]byte
	for i := range len(w) {
		folded[i] = lower(w[i])
	}
	word := string(folded[:len(w)])
	low, high := 0, len(seedWords) // offsets of words
	for low < high {
		middle := strings.LastIndexByte(seedWords[:(low+high)/2], ' ') + 1
		if middle < low {
			middle = low
		}
		end := middle + strings.IndexByte(seedWords[middle:], ' ')
		switch strings.Compare(seedWords[middle:end], word) {
		case 0:
			return true
		case -1:
			low = end + 1
		default:
			high = middle
		}
	}
	return false
}
