package words

import (
	"slices"
	"strings"
	"unicode"
)

// PlainWords returns the words of a plain query ([IsPlain]) as they are written there,
// without words that have no letter or digit. Stop words are left out unless the query
// has no others. Parentheses around a word are removed. For a query without a letter or
// digit it returns nil. At most 64 words are returned.
func PlainWords(query string) (all []string) {
	for _, word := range strings.FieldsFunc(query, unicode.IsSpace) {
		word = strings.TrimLeft(word, "(")
		if !strings.Contains(word, "(") {
			word = strings.TrimRight(word, ")")
		}
		if len(Identifiers(word)) > 0 {
			all = append(all, word)
		}
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(word string) bool {
		return !slices.ContainsFunc(Ask(word).Terms, func(t Term) bool { return !IsStopWord(t.Word) })
	})
	if len(rest) > 0 {
		all = rest
	}
	return all[:min(len(all), maxQueryTerms)]
}

// FinderOf returns a finder for the words of some queries. All words have the same
// weight, because their rarity is unknown.
func FinderOf(queries ...string) *Finder {
	keys := map[string]float64{}
	for _, q := range queries {
		for _, t := range Ask(q).Terms {
			keys[t.Key] = 1
		}
	}
	return NewFinder(keys)
}
