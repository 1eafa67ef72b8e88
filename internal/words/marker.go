package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// AnyOf returns the MATCH expression that finds any of a text's words, or "" if it has
// none. It treats the text as plain words and uses at most 64.
func AnyOf(text string) string {
	var all []matchExpr
	for _, id := range Identifiers(strings.ToValidUTF8(text, "\uFFFD")) {
		if len(all) == maxQueryTerms {
			break
		}
		all = append(all, searchTerm{identifiers: []Identifier{id}}.expr())
	}
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	joined("OR", all).write(&b)
	return b.String()
}

// Marker marks the words of a query in texts. It ignores the query's operators. It is
// immutable.
type Marker struct{ terms []markedTerm }

// markedTerm is an identifier of the query: the stems of its parts, in a row.
type markedTerm struct {
	whole  string
	stems  []string
	prefix bool // the last of stems is the beginning of a word
}

// NewMarker returns a marker for a query.
func NewMarker(query string) *Marker {
	m := &Marker{}
	eachRun(query, func(from, to int) {
		word := query[from:to]
		if isOperator(word) || word == "NEAR" {
			return
		}
		prefix := strings.HasPrefix(query[to:], "*")
		for _, id := range Identifiers(word) {
			m.terms = append(m.terms, termOf(id, prefix))
		}
	})
	return m
}

func termOf(id Identifier, prefix bool) markedTerm {
	t := markedTerm{whole: strings.ToLower(id.Whole), prefix: prefix}
	for i, part := range id.Parts {
		part = strings.ToLower(part)
		if !prefix || i < len(id.Parts)-1 {
			part = stem(part)
		}
		t.stems = append(t.stems, part)
	}
	return t
}

// finds reports whether the term is in an identifier.
func (t *markedTerm) finds(id Identifier) bool {
	whole := strings.ToLower(id.Whole)
	if whole == t.whole || t.prefix && strings.HasPrefix(whole, t.whole) {
		return true
	}
	for at := 0; at+len(t.stems) <= len(id.Parts); at++ {
		if t.findsAt(id.Parts[at:]) {
			return true
		}
	}
	return false
}

func (t *markedTerm) findsAt(parts []string) bool {
	for i, want := range t.stems {
		part := strings.ToLower(parts[i])
		if t.prefix && i == len(t.stems)-1 {
			if !strings.HasPrefix(part, want) {
				return false
			}
		} else if stem(part) != want {
			return false
		}
	}
	return true
}

// found is the position of a query's term in a text, in characters.
type found struct{ from, to, term int }

// Snippet returns the excerpt with the most terms of the query from one of the texts. It
// has at most limit characters, with ellipses where text was cut, and ** around the
// terms, which do not count. Of equal excerpts it returns the one from the first text.
// Line breaks become blanks. If no text has a term, it returns the beginning of the first
// text that is not blank.
func (m *Marker) Snippet(limit int, texts ...string) string {
	text, at, best := "", []found(nil), 0
	for _, t := range texts {
		if text == "" {
			text = strings.TrimSpace(t)
		}
		all := m.find(t)
		window, n := densest(all, limit-2)
		if n > best {
			text, at, best = t, window, n
		}
	}
	return excerpt([]rune(text), at, limit)
}

// find returns the positions of the query's terms in a text.
func (m *Marker) find(text string) (all []found) {
	chars, last := 0, 0
	terms := map[string]int{} // by word, for the words seen so far
	eachRun(text, func(from, to int) {
		chars += utf8.RuneCountInString(text[last:from])
		start := chars
		chars += utf8.RuneCountInString(text[from:to])
		last = to
		word := text[from:to]
		term, known := terms[word]
		if !known {
			term = m.termIn(word)
			terms[word] = term
		}
		if term >= 0 {
			all = append(all, found{start, chars, term})
		}
	})
	return all
}

// termIn returns the index of the term that a word contains, or -1.
func (m *Marker) termIn(word string) int {
	for _, id := range Identifiers(word) {
		for i := range m.terms {
			if m.terms[i].finds(id) {
				return i
			}
		}
	}
	return -1
}

// densest returns the positions within limit characters that have the most different
// terms, and the number of these terms. Of equal parts it returns the first.
func densest(all []found, limit int) (window []found, terms int) {
	end := 0
	counts := map[int]int{}
	for start := range all {
		for end < len(all) && (end == start || all[end].to-all[start].from <= limit) {
			counts[all[end].term]++
			end++
		}
		if len(counts) > terms {
			window, terms = all[start:end], len(counts)
		}
		if counts[all[start].term]--; counts[all[start].term] == 0 {
			delete(counts, all[start].term)
		}
	}
	return window, terms
}

// excerpt returns limit characters of a text around the positions.
func excerpt(text []rune, at []found, limit int) string {
	from, to := 0, len(text)
	if len(text) > limit {
		room := limit - 2 // for two ellipses
		if len(at) > 0 {
			span := min(at[len(at)-1].to-at[0].from, room)
			from = max(0, at[0].from-(room-span)/2)
		}
		to = min(len(text), from+room)
		from = max(0, to-room)
		if from > 0 {
			from = wordBorder(text, from, at)
		}
	}
	var b strings.Builder
	if from > 0 {
		b.WriteRune('…')
	}
	next := from
	plain := func(until int) {
		for _, r := range text[next:until] {
			if unicode.IsSpace(r) || unicode.IsControl(r) {
				r = ' '
			}
			b.WriteRune(r)
		}
		next = until
	}
	for i := 0; i < len(at); {
		begin, end := max(at[i].from, from), min(at[i].to, to)
		for i++; i < len(at) && at[i].from == end; i++ {
			end = min(at[i].to, to)
		}
		if begin >= to || end <= next {
			continue
		}
		plain(begin)
		b.WriteString("**")
		plain(end)
		b.WriteString("**")
	}
	plain(to)
	if to < len(text) {
		b.WriteRune('…')
	}
	return b.String()
}

// wordBorder moves the beginning of an excerpt after the word that it would cut, if the
// word ends nearby and no position is lost.
func wordBorder(text []rune, from int, at []found) int {
	const near = 20
	if unicode.IsSpace(text[from-1]) {
		return from
	}
	for i := from; i < min(from+near, len(text)); i++ {
		if len(at) > 0 && i >= at[0].from {
			break
		}
		if unicode.IsSpace(text[i]) {
			return i + 1
		}
	}
	return from
}

// eachRun calls do for every run of letters, digits and marks of a text. An ideograph is
// a separate run.
func eachRun(text string, do func(from, to int)) {
	start := -1
	end := func(at int) {
		if start >= 0 {
			do(start, at)
		}
		start = -1
	}
	for i, r := range text {
		class := classOf(r)
		switch {
		case class == ideograph:
			end(i)
			do(i, i+utf8.RuneLen(r))
		case class == separator && (start < 0 || !unicode.IsMark(r)):
			end(i)
		case start < 0:
			start = i
		}
	}
	end(len(text))
}
