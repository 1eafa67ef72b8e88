package redact

import (
	"slices"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// Seed phrases of wallets (BIP-39) consist of words from a list of 2,048. Each word has
// three to eight letters.
const (
	ruleSeedPhrase  = "seed_phrase"
	seedPhraseWords = 12 // the shortest phrase
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
		if !looks.IsSeedWord(word) {
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
		first := shape.Back(t, end, looks.SeedLongest+1, shape.IsLetter)
		if first == end || end-first > looks.SeedLongest || first > 0 && shape.IsWord(t[first-1]) {
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
		first := shape.Back(t, end, looks.SeedLongest+1, shape.IsLetter)
		if end == start || !looks.IsSeedWord(t[first:end]) || first > 0 && shape.IsWord(t[first-1]) {
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
	j := shape.Back(t, i, maxSeparator, isSeedSeparator)
	if j == i {
		return i
	}
	number := j
	if j > 0 && (t[j-1] == '.' || t[j-1] == ')') {
		number--
	}
	if digits := shape.Back(t, number, 2, shape.IsDigit); digits < number {
		return shape.Back(t, digits, maxSeparator, isSeedSeparator)
	}
	return j
}

// isSeedSeparator reports whether c can be between two words of a seed phrase.
func isSeedSeparator(c byte) bool {
	return shape.IsSpace(c) || shape.IsQuote(c) || c == ',' || c == '\\'
}

// seedPhraseEnd returns the end of the last word of the seed phrase that begins at
// text[i:].
func seedPhraseEnd(t string, i int) int {
	end := i
	for {
		last := shape.Skip(t, i, looks.SeedLongest+1, shape.IsLetter)
		if !looks.IsSeedWord(t[i:last]) || last < len(t) && shape.IsWord(t[last]) {
			return end
		}
		end = last
		i = shape.Skip(t, last, maxSeparator, isSeedSeparator)
		if digits := shape.Skip(t, i, 2, shape.IsDigit); digits > i {
			digits = shape.Skip(t, digits, 1, func(c byte) bool { return c == '.' || c == ')' })
			i = shape.Skip(t, digits, maxSeparator, isSeedSeparator)
		}
		if i == last {
			return end
		}
	}
}
