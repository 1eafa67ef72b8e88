package words

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Index returns what the two columns of a full-text table hold for a text
// (contract observations §8.1), as tokens one space apart in the text's own order
// and case, without accents. parts is its letters and digits with identifiers split at
// punctuation, digits and camelCase humps, and every Han, Kana or Hangul
// character by itself. wholes is the identifiers that humps or digits tore apart,
// in one piece, each with up to three neighbours on either side, so that short
// phrases find GitHub Actions as well in small letters; gap stands for what is
// left out between them. Both are empty where there is nothing to hold. The time
// is linear in the text.
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
	gap        = "\uE000" // a token to FTS5, never one of a text or query
)

// wholesColumn collects the column wholes. The last identifiers that are not in
// it wait for a torn one to follow.
type wholesColumn struct {
	text    strings.Builder
	waiting [neighbours]string
	passed  int // identifiers since the last one in text
	after   int // how many more belong to the last torn one
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

// Each calls do for every longest run of letters and digits in text,
// in order, with the parts it splits into; a Han, Kana or Hangul character is a
// run by itself. The slice is reused by the next call.
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

// runeClass is what splitting needs to know of a character.
type runeClass uint8

const (
	separator runeClass = iota
	digit
	upper
	lower
	letter    // of a script without case
	ideograph // Han, Kana, Hangul: a token by itself
)

// isBorder reports whether a part ends between a character of class last and the
// one of class next with which rest begins: at a change between letters and
// digits (utf|8), before a hump (get|User), and before the last capital of a row
// that a small letter follows (HTTP|Server), unless that is the s of a plural
// (URLs).
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

// classOf takes letters and numbers for parts of words, as FTS5's unicode61 does,
// and private characters, which it takes too, for the ornaments that they are.
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

// withoutAccents takes the combining marks off all letters but the voice marks of
// Kana, so that a word is the same however its accents are spelt, in all scripts:
// FTS5 by itself folds those of Latin only and takes many marks for separators.
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

// Identifiers are those of a text, in order; none gives nil.
func Identifiers(text string) (ids []Identifier) {
	Each(text, func(whole string, parts []string) {
		ids = append(ids, Identifier{whole, slices.Clone(parts)})
	})
	return ids
}

// searchTerm is a word or phrase of a query.
type searchTerm struct {
	identifiers []Identifier
	prefix      bool   // the last part may go on
	operator    string // AND, OR, NOT when it may be one; then nothing else is set
}

// tokens are the parts of the identifiers, in a row, or the identifiers themselves.
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

// Phrase is the MATCH expression that finds identifiers, at least one, in a row.
func Phrase(ids ...Identifier) string {
	var b strings.Builder
	searchTerm{identifiers: ids}.expr().write(&b)
	return b.String()
}

// expr is what finds the term, of at least one identifier: the phrase of its
// parts or, in either column, of its identifiers in one piece.
func (t searchTerm) expr() matchExpr {
	all := phrases(t.tokens(false), t.prefix)
	if t.torn() {
		all = append(all, phrases(t.tokens(true), t.prefix)...)
	}
	return joined("OR", all)
}

// nearExpr finds two or more terms at most distance tokens apart. Inside NEAR
// FTS5 takes phrases only, so a prefix there is FTS5's own. In wholes a distance
// means little beyond the neighbours of a torn identifier.
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

// phrases are the ways to ask for tokens, at least one, in a row. For a prefix
// they are alternatives, because FTS5 stems a prefix as it stems a word:
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
