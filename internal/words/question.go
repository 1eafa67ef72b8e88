package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsPlain reports whether a query is words alone: it has no quote, no * and none of the
// operators AND, OR, NOT and NEAR in capitals. A query that is not plain keeps the exact
// language of Parse; a plain one may be answered with rows that hold some of its words
// (amendments §A.1). Parentheses without an operator group nothing, so they are plain.
func IsPlain(query string) bool {
	return !strings.ContainsAny(query, `"*`) &&
		!slices.ContainsFunc(strings.FieldsFunc(query, func(r rune) bool { return unicode.IsSpace(r) || r == '(' || r == ')' }),
			func(word string) bool { return isOperator(word) || word == "NEAR" })
}

// Key is the form in which a word is compared: in small letters, English words by
// their stem, words of other alphabets with cases (Cyrillic, Greek) by their first six
// letters, since their endings change.
func Key(word string) string {
	const stemLetters = 6
	word = strings.ToLower(word)
	r, _ := utf8.DecodeRuneInString(word)
	if r < utf8.RuneSelf {
		return stem(word)
	}
	if classOf(r) != lower {
		return word
	}
	n := 0
	for at := range word {
		if n++; n > stemLetters {
			return word[:at]
		}
	}
	return word
}

// EachKey calls do for every key of a text, in order and as often as it stands there:
// for the parts of each identifier and, if it has several, for the identifier itself.
func EachKey(text string, do func(key string)) {
	Each(strings.ToValidUTF8(text, "\uFFFD"), func(whole string, parts []string) {
		for _, p := range parts {
			do(Key(p))
		}
		if len(parts) > 1 {
			do(Key(whole))
		}
	})
}

// Question is a text as a person or an agent asks it, prepared for a ranking by its
// words. The zero value asks for nothing.
type Question struct {
	Terms []Term   // each key once, in the order of the text
	Left  []string // words of the text that were left out because they say nothing, in small letters
}

// Term is one word of a question.
type Term struct {
	Word string // as it stands in the question, in small letters
	Key  string // what it is compared by, see Key
	Part bool   // it is a part of the identifier that precedes its parts
	Torn bool   // it is an identifier of several parts

	Common bool // it is an everyday word, which says little
}

// maxTerms is how many terms a question has at most; the rest of its text is left out.
const maxTerms = 64

// Ask reads a question. Words that say nothing (articles, pronouns, question words,
// auxiliary verbs and the like) are left out, unless the question has no others. An
// identifier counts as a whole and by its parts. A text without a letter or digit gives
// a question without terms. The time is linear in the text.
func Ask(text string) Question {
	q := Question{}
	seen := map[string]bool{}
	add := func(word string, part, torn bool) {
		key := Key(word)
		if !seen[key] && len(q.Terms) < maxTerms {
			seen[key] = true
			q.Terms = append(q.Terms, Term{strings.ToLower(word), key, part, torn, isCommonWord(strings.ToLower(word))})
		}
	}
	all := Identifiers(strings.ToValidUTF8(text, "\uFFFD"))
	for _, id := range all {
		if len(id.Parts) > 1 {
			add(id.Whole, false, true)
		}
		for _, p := range id.Parts {
			if small := strings.ToLower(p); IsStopWord(small) || len(id.Parts) > 1 && utf8.RuneCountInString(p) == 1 && p[0] < utf8.RuneSelf {
				q.Left = append(q.Left, small)
				continue
			}
			add(p, len(id.Parts) > 1, false)
		}
	}
	if len(q.Terms) == 0 {
		for _, id := range all {
			for _, p := range id.Parts {
				add(p, false, false)
			}
		}
		q.Left = nil
	}
	return q
}

// IsStopWord reports whether a word, in small letters, says nothing about what a
// question is after.
func IsStopWord(word string) bool {
	_, found := slices.BinarySearch(stopWords[:], word)
	return found
}

func isCommonWord(word string) bool {
	_, found := slices.BinarySearch(commonWords[:], word)
	return found
}
