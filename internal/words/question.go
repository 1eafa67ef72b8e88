package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsPlain reports whether a query consists only of words: it has no quote, no * and no
// operator (AND, OR, NOT, NEAR in capitals). A query that is not plain keeps the exact
// language of Parse; a plain one may be answered with rows that hold some of its words
// (amendments §A.1). Parentheses without an operator group nothing, so they are plain.
func IsPlain(query string) bool {
	return !strings.ContainsAny(query, `"*`) &&
		!slices.ContainsFunc(strings.FieldsFunc(query, func(r rune) bool { return unicode.IsSpace(r) || r == '(' || r == ')' }),
			func(word string) bool { return isOperator(word) || word == "NEAR" })
}

// Key returns the form of a word for comparisons, in lower case. English words become
// their stem. Words of other alphabets with cases (Cyrillic, Greek) become their first
// six letters, because their endings change.
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

// EachKey calls do for every occurrence of a key in a text, in order: for the parts of
// each identifier and, if it has several, for the identifier itself.
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

// Question is a question of a person or an agent, prepared for ranking by its words. The
// zero value has no terms.
type Question struct {
	Terms []Term   // each key once, in the order of the text
	Left  []string // stop words of the text, in lower case
	Pairs []Term   // neighbouring words as one, as identifiers have them: auto commit finds AutoCommit
}

// IsEmpty reports whether a question has no word but stop words.
func (q Question) IsEmpty() bool {
	return !slices.ContainsFunc(q.Terms, func(t Term) bool { return t.Torn || !IsStopWord(t.Word) })
}

// Term is one word of a question.
type Term struct {
	Word string // as in the question, in lower case
	Key  string // the form for comparisons, see Key
	Part bool   // it is a part of the identifier that precedes its parts
	Torn bool   // it is an identifier of several parts

	Common bool // an everyday word, which says little
}

// maxTerms is the maximum number of terms of a question; the rest of the text is ignored.
const maxTerms = 64

// Ask parses a question. It omits stop words (articles, pronouns, question words,
// auxiliary verbs and the like), unless the question has no other words. It keeps them in
// code: a file name, a flag, text in backquotes. It omits a verb that introduces the
// question ("explain how"); the same word as a name ("what does explain do") counts as an
// everyday word. An identifier counts as a whole and by its parts. A text without a
// letter or digit gives a question without terms. The time is linear in the text.
func Ask(text string) Question {
	r := questionReader{text: strings.ToValidUTF8(text, "\uFFFD"), seen: map[string]bool{}}
	eachRun(r.text, r.addRun)
	if len(r.Terms) == 0 {
		for _, word := range r.Left {
			r.add(word, false, false, true)
		}
		r.Left = nil
	}
	return r.Question
}

// questionReader reads the words of a question.
type questionReader struct {
	Question
	text string
	seen map[string]bool

	at       int    // end of the last word
	last     string // the last word of the sentence, in lower case; "" at its start
	pairable string // the last word if it can form a pair with the next
}

func (r *questionReader) add(word string, part, torn, everyday bool) {
	key, word := Key(word), strings.ToLower(word)
	if !r.seen[key] && len(r.Terms) < maxTerms {
		r.seen[key] = true
		r.Terms = append(r.Terms, Term{word, key, part, torn, everyday})
	}
}

// addRun adds a run of letters and digits.
func (r *questionReader) addRun(from, to int) {
	if strings.ContainsAny(r.text[r.at:from], ".?!;:\n") {
		r.last = ""
	}
	asCode := isCode(r.text, from, to)
	for _, id := range Identifiers(r.text[from:to]) {
		torn := len(id.Parts) > 1
		if torn {
			r.add(id.Whole, false, true, false)
		}
		for _, p := range id.Parts {
			small := strings.ToLower(p)
			everyday := !asCode && (isCommonWord(small) || IsStopWord(small))
			if !asCode && r.isOmitted(small) || torn && len(p) == 1 {
				r.Left = append(r.Left, small)
				continue
			}
			r.add(p, torn, false, everyday)
		}
		r.pair(strings.ToLower(id.Whole))
	}
	r.at = to
}

// isOmitted reports whether a word, in lower case, is omitted at its position.
func (r *questionReader) isOmitted(word string) bool {
	return IsStopWord(word) && (r.last == "" || !contains(askingVerbs[:], word) || contains(verbOpeners[:], r.last))
}

// pair adds a word and its neighbour as one term.
func (r *questionReader) pair(word string) {
	const letters = 3
	r.last = word
	if utf8.RuneCountInString(word) < letters || IsStopWord(word) {
		r.pairable = ""
		return
	}
	if both := r.pairable + word; r.pairable != "" && len(r.Pairs) < maxTerms {
		r.Pairs = append(r.Pairs, Term{Word: both, Key: Key(both), Torn: true})
	}
	r.pairable = word
}

// isCode reports whether a word is part of a name with dots or underscores (help.go), of
// a flag (--print) or of text in backquotes.
func isCode(text string, from, to int) bool {
	joins := func(at, next int) bool {
		return at >= 0 && next >= 0 && at < len(text) && next < len(text) && (text[at] == '.' || text[at] == '_') &&
			(text[next] >= utf8.RuneSelf || classOf(rune(text[next])) != separator)
	}
	before := strings.TrimRight(text[:from], "-")
	return joins(from-1, from-2) || joins(to, to+1) || strings.HasSuffix(text[:from], "`") ||
		len(before) < from && (before == "" || before[len(before)-1] == ' ')
}

// IsStopWord reports whether a word, in lower case, says nothing about the subject of a
// question.
func IsStopWord(word string) bool { return contains(stopWords[:], word) }

func isCommonWord(word string) bool { return contains(commonWords[:], word) }

// contains reports whether a sorted list contains a word.
func contains(sorted []string, word string) bool {
	_, found := slices.BinarySearch(sorted, word)
	return found
}
