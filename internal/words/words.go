package words

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Index returns a text's values for the two columns of a full-text table (contract
// observations §8.1). Both contain tokens separated by one space, in the text's order and
// case, without accents. parts contains the letters and digits, with identifiers split at
// punctuation, digits and camelCase humps, and with every Han, Kana or Hangul character
// as a separate token. wholes contains the identifiers that were split at humps or
// digits, unsplit, each with up to three neighbours on either side. So short phrases find
// GitHub Actions in lower case too. gap marks omitted tokens between them. Either is
// empty if the text has no such tokens. The time is linear in the text.
func Index(text string) (parts, wholes string) {
	var p strings.Builder
	var w wholesColumn
	p.Grow(len(text) + len(text)/8)
	Each(text, func(whole string, split []string) {
		for _, s := range split {
			appendToken(&p, s)
		}
		w.add(whole, len(split) > 1)
	})
	return p.String(), w.text.String()
}

const (
	neighbours = 3
	gap        = "\uE000" // a token for FTS5 that no text or query contains
)

// wholesColumn builds the column wholes. The latest identifiers outside it are kept, in
// case a split identifier follows.
type wholesColumn struct {
	text    strings.Builder
	waiting [neighbours]string
	passed  int // identifiers since the last one in text
	after   int // how many more belong to the last split one
}

func (c *wholesColumn) add(whole string, torn bool) {
	if !torn && c.after == 0 {
		c.waiting[c.passed%neighbours] = whole
		c.passed++
		return
	}
	if c.passed > neighbours && c.text.Len() > 0 {
		appendToken(&c.text, gap)
	}
	for i := max(0, c.passed-neighbours); i < c.passed; i++ {
		appendToken(&c.text, c.waiting[i%neighbours])
	}
	appendToken(&c.text, whole)
	c.passed = 0
	c.after--
	if torn {
		c.after = neighbours
	}
}

func appendToken(b *strings.Builder, token string) {
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(token)
}

// Each calls do for every longest run of letters and digits in text, in order, with the
// parts it splits into; a Han, Kana or Hangul character is a separate run. The slice is
// reused by the next call.
func Each(text string, do func(whole string, parts []string)) {
	text = withoutAccents(text)
	var parts []string
	run, part := 0, 0 // where the current run and its current part begin
	last := separator
	end := func(at int) {
		if last != separator {
			parts = append(parts, text[part:at])
			do(text[run:at], parts)
			parts = parts[:0]
		}
	}
	for at, r := range text {
		class := classOf(r)
		switch {
		case class == separator || class == ideograph || last == separator || last == ideograph:
			end(at)
			run, part = at, at
		case isBorder(last, class, text[at:]):
			parts = append(parts, text[part:at])
			part = at
		}
		last = class
	}
	end(len(text))
}

// runeClass classifies a character for splitting.
type runeClass uint8

const (
	separator runeClass = iota
	digit
	upper
	lower
	letter    // of a script without case
	ideograph // Han, Kana, Hangul: a separate token
)

// isBorder reports whether a part ends between a character of class last and one of class
// next, with which rest begins. Parts end between letters and digits (utf|8), before a
// hump (get|User), and before the last of several capitals that a lower-case letter
// follows (HTTP|Server). The s of a plural (URLs) is an exception.
func isBorder(last, next runeClass, rest string) bool {
	switch {
	case (last == digit) != (next == digit):
		return true
	case next != upper:
		return false
	case last != upper:
		return last == lower
	}
	_, n := utf8.DecodeRuneInString(rest)
	small, m := utf8.DecodeRuneInString(rest[n:])
	if classOf(small) != lower {
		return false
	}
	after, _ := utf8.DecodeRuneInString(rest[n+m:])
	return small != 's' || classOf(after) == lower
}

// classOf treats letters and numbers as parts of words, like FTS5's unicode61, but not
// private-use characters, which are ornaments.
func classOf(r rune) runeClass {
	switch {
	case 'a' <= r && r <= 'z':
		return lower
	case 'A' <= r && r <= 'Z':
		return upper
	case '0' <= r && r <= '9':
		return digit
	case r < utf8.RuneSelf || r == utf8.RuneError:
		return separator
	case IsIdeograph(r):
		return ideograph
	case unicode.IsNumber(r):
		return digit
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		return upper
	case unicode.IsLower(r):
		return lower
	case unicode.IsLetter(r):
		return letter
	default:
		return separator
	}
}

// IsIdeograph reports whether r is a letter or number written without spaces
// around words: Han, Kana or Hangul, and the marks of length, voice and
// repetition that Kana shares with other scripts.
func IsIdeograph(r rune) bool {
	const firstHangul = 0x1100
	switch {
	case r < firstHangul:
		return false
	case r == 'ー', r == 'ｰ', r == 'ﾞ', r == 'ﾟ', '〱' <= r && r <= '〵':
		return true
	default:
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) &&
			(unicode.IsLetter(r) || unicode.IsNumber(r))
	}
}

// withoutAccents removes the combining marks from all letters, except the voice marks of
// Kana. So a word is the same with and without accents in all scripts. FTS5 folds only
// Latin accents and treats many marks as separators.
func withoutAccents(text string) string {
	const firstMark, voiced, halfVoiced = 0x300, '\u3099', '\u309A'
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return text
	}
	bare := strings.Map(func(r rune) rune {
		if r >= firstMark && unicode.IsMark(r) && r != voiced && r != halfVoiced {
			return -1
		}
		return r
	}, norm.NFD.String(text))
	return norm.NFC.String(bare)
}

// Identifier is a run of letters and digits, see Each.
type Identifier struct {
	Whole string
	Parts []string
}

// Identifiers returns the identifiers of a text, in order, or nil if there are none.
func Identifiers(text string) (ids []Identifier) {
	Each(text, func(whole string, parts []string) {
		ids = append(ids, Identifier{whole, slices.Clone(parts)})
	})
	return ids
}

// searchTerm is a word or phrase of a query.
type searchTerm struct {
	identifiers []Identifier
	prefix      bool   // the last part is a prefix
	operator    string // AND, OR or NOT if it may be an operator; then nothing else is set
}

// tokens returns the parts of the identifiers in sequence, or the identifiers themselves.
func (t searchTerm) tokens(whole bool) (all []string) {
	for _, id := range t.identifiers {
		if whole {
			all = append(all, id.Whole)
		} else {
			all = append(all, id.Parts...)
		}
	}
	return all
}

func (t searchTerm) torn() bool {
	return slices.ContainsFunc(t.identifiers, func(id Identifier) bool { return len(id.Parts) > 1 })
}

// Phrase returns the MATCH expression that finds identifiers, at least one, in a row.
func Phrase(ids ...Identifier) string {
	var b strings.Builder
	searchTerm{identifiers: ids}.expr().write(&b)
	return b.String()
}

// expr returns an expression that finds the term, of at least one identifier: the phrase
// of its parts or, in either column, of its unsplit identifiers.
func (t searchTerm) expr() matchExpr {
	all := phrases(t.tokens(false), t.prefix)
	if t.torn() {
		all = append(all, phrases(t.tokens(true), t.prefix)...)
	}
	return joined("OR", all)
}

// nearExpr finds two or more terms at most distance tokens apart. Inside NEAR, FTS5
// accepts only phrases, so a prefix there is FTS5's own. In wholes a distance means
// little beyond the neighbours of a split identifier.
func (l Language) nearExpr(terms []searchTerm, distance int) matchExpr {
	near := func(column string, whole bool, distance int) matchExpr {
		var b strings.Builder
		b.WriteString(column + " : NEAR(")
		for _, t := range terms {
			b.WriteString(`"` + strings.Join(t.tokens(whole), " ") + `"`)
			if t.prefix {
				b.WriteString(" *")
			}
			b.WriteByte(' ')
		}
		b.WriteString(", " + strconv.Itoa(distance) + ")")
		return leaf(b.String())
	}
	all := []matchExpr{near(l.Parts, false, distance), near(l.Wholes, true, min(distance, neighbours))}
	if slices.ContainsFunc(terms, searchTerm.torn) {
		all = append(all, near(l.Parts, true, distance))
	}
	return joined("OR", all)
}

// phrases returns the expressions for at least one token in sequence. For a prefix they
// are alternatives, because FTS5 stems a prefix like a word:
//
//   - the prefix itself;
//   - after an ending that stemming changes into something else (y to i, hoping
//     to hope), the prefix and an e, which is all that stemming takes away then:
//     pay* becomes pai*, paye* becomes pay* and finds payload;
//   - where the prefix breaks off inside an English ending, the word with that
//     ending, since only its stem is in the index: authoriz* finds authorize,
//     stored as author.
func phrases(tokens []string, prefix bool) []matchExpr {
	phrase := `"` + strings.Join(tokens, " ")
	ask := func(ending string) matchExpr { return leaf(phrase + ending) }
	if !prefix {
		return []matchExpr{ask(`"`)}
	}
	all := []matchExpr{ask(`" *`)}
	last := strings.ToLower(tokens[len(tokens)-1])
	n := len(last)
	if n < 3 {
		return all
	}
	if hasAnySuffix(last, "y", "ys", "ed", "ing", "ings") {
		all = append(all, ask(`e" *`))
	}
	if c := last[n-1]; c == last[n-2] && 'a' <= c && c <= 'z' {
		all = append(all, ask(`ing"`))
	}
	for _, ending := range [...]string{
		"ability", "al", "ance", "ation", "ative", "ator", "ed", "ence", "ful", "ibility",
		"ing", "ions", "ism", "ity", "ive", "ize", "ly", "ment", "ness", "ous",
	} {
		for i := 1; i < len(ending); i++ {
			stem := n - i
			if strings.HasSuffix(last, ending[:i]) && (stem > 2 || stem == 2 && i > 1) {
				all = append(all, ask(ending[i:]+`"`))
			}
		}
	}
	return all
}

func hasAnySuffix(s string, suffixes ...string) bool {
	for _, suffix := range suffixes {
		if strings.HasSuffix(s, suffix) {
			return true
		}
	}
	return false
}
