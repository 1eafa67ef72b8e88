package markdown

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	text tokenKind = iota // escaped when it is written
	span                  // code
	anchor
	anchorEnd
	image
	newline
)

// token is a piece of a line. Emphasis stands beside the text of its marks.
type token struct {
	kind   tokenKind
	text   string
	to     string   // of a link or image
	closes []string // elements that end before the text
	opens  []string // elements that begin behind it, the innermost first
}

// run is a row of marks that may begin or end emphasis.
type run struct {
	token             int
	c                 byte
	n, written        int // marks left, and as they were written
	mayOpen, mayClose bool
	previous, next    int // of those that are left; -1 for none
}

// bracket is a [ that may begin a link.
type bracket struct {
	token, runs, at int // at is where its text begins
	image           bool
}

// inlines reads the text of a block.
type inlines struct {
	page     *page
	in       string
	at       int
	plain    int // where the text begins that is not yet a token
	out      []token
	runs     []run
	brackets []bracket
	dead     int         // brackets below this hold a link, so none begins there
	ticks    map[int]int // where the last row of so many ` begins
}

func (p *page) inline(in string) []token {
	s := &inlines{page: p, in: in}
	for s.at < len(s.in) {
		if !s.step() {
			s.at++
		}
	}
	s.flush(s.at)
	s.emphasize(0)
	return s.out
}

// flush makes a token of what was passed over.
func (s *inlines) flush(end int) {
	if s.plain < end {
		s.out = append(s.out, token{kind: text, text: s.in[s.plain:end]})
	}
	s.plain = end
}

// put adds a token that stands for the text up to end.
func (s *inlines) put(t token, end int) {
	s.flush(s.at)
	s.out = append(s.out, t)
	s.at, s.plain = end, end
}

// step reads what begins here; false if nothing does.
func (s *inlines) step() bool {
	switch c := s.in[s.at]; c {
	case '\\':
		return s.escape()
	case '`':
		return s.code()
	case '*', '_', '~':
		return s.marks(c)
	case '[':
		s.open(false)
		return true
	case '!':
		if strings.HasPrefix(s.in[s.at:], "![") {
			s.open(true)
			return true
		}
	case ']':
		return s.close()
	case '<':
		return s.angle()
	case '&':
		if decoded, n := entity(s.in[s.at:]); n > 0 {
			s.put(token{kind: text, text: decoded}, s.at+n)
			return true
		}
	case '\n':
		return s.end()
	case 'h', 'H', 'w', 'W':
		return s.bare()
	case '@':
		return s.address()
	}
	return false
}

func (s *inlines) escape() bool {
	rest := s.in[s.at+1:]
	switch {
	case rest == "":
		return false
	case rest[0] == '\n':
		s.put(token{kind: newline}, s.at+2)
		return true
	case !isPunctuation(rest[0]):
		return false
	}
	s.put(token{kind: text, text: rest[:1]}, s.at+2)
	return true
}

// end reads the end of a line, which two blanks before it make a break.
func (s *inlines) end() bool {
	before := strings.TrimRight(s.in[s.plain:s.at], " ")
	hard := s.at-s.plain-len(before) >= 2
	at := s.at
	s.flush(s.plain + len(before))
	t := token{kind: text, text: "\n"}
	if hard {
		t.kind = newline
	}
	s.out = append(s.out, t)
	s.at = at + 1
	s.plain = s.at
	return true
}

func (s *inlines) code() bool {
	if s.ticks == nil {
		s.ticks = map[int]int{}
		for i := 0; i < len(s.in); {
			n := row(s.in[i:], '`')
			if n > 0 {
				s.ticks[n] = i
			}
			i += max(n, 1)
		}
	}
	n := row(s.in[s.at:], '`')
	for i := s.at + n; i <= s.ticks[n]; {
		m := row(s.in[i:], '`')
		if m == n {
			inner := strings.ReplaceAll(s.in[s.at+n:i], "\n", " ")
			if len(inner) > 2 && inner[0] == ' ' && inner[len(inner)-1] == ' ' && strings.Trim(inner, " ") != "" {
				inner = inner[1 : len(inner)-1]
			}
			s.put(token{kind: span, text: inner}, i+n)
			return true
		}
		i += max(m, 1)
	}
	s.at += n
	return true
}

// row is how often c stands at the beginning of a text.
func row(in string, c byte) (n int) {
	for n < len(in) && in[n] == c {
		n++
	}
	return n
}

func (s *inlines) marks(c byte) bool {
	n := row(s.in[s.at:], c)
	if c == '~' && n > 2 {
		s.at += n
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s.in[:s.at])
	after, _ := utf8.DecodeRuneInString(s.in[s.at+n:])
	left, right := flanks(before, after, s.at == 0, s.at+n == len(s.in))
	r := run{token: -1, c: c, n: n, written: n, mayOpen: left, mayClose: right, previous: -1, next: -1}
	if c == '_' {
		r.mayOpen = left && (!right || isMark(before))
		r.mayClose = right && (!left || isMark(after))
	}
	s.put(token{kind: text, text: s.in[s.at : s.at+n]}, s.at+n)
	r.token = len(s.out) - 1
	s.runs = append(s.runs, r)
	return true
}

// flanks reports whether marks stand at the left or right of a word.
func flanks(before, after rune, first, last bool) (left, right bool) {
	blankBefore, blankAfter := first || unicode.IsSpace(before), last || unicode.IsSpace(after)
	markBefore, markAfter := !first && isMark(before), !last && isMark(after)
	left = !blankAfter && (!markAfter || blankBefore || markBefore)
	right = !blankBefore && (!markBefore || blankAfter || markAfter)
	return left, right
}

func isMark(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

func isPunctuation(c byte) bool {
	return c >= '!' && c <= '/' || c >= ':' && c <= '@' || c >= '[' && c <= '`' || c >= '{' && c <= '~'
}

// emphasize pairs the runs from the given one on and forgets them.
func (s *inlines) emphasize(from int) {
	runs := s.runs[from:]
	for i := range runs {
		runs[i].previous, runs[i].next = i-1, i+1
	}
	bottom := map[[3]int]int{} // below which there is nothing to pair with
	for i := 0; i < len(runs); {
		closer := &runs[i]
		j := -1
		if closer.mayClose {
			j = opener(runs, i, bottom)
		}
		if j < 0 {
			i = closer.next
			continue
		}
		s.pair(&runs[j], closer)
		closer.previous = j // what is between is of no more use
		if runs[j].n == 0 {
			closer.previous = runs[j].previous
		}
		if closer.n == 0 {
			i = closer.next
			if i < len(runs) {
				runs[i].previous = closer.previous
			}
		}
	}
	s.runs = s.runs[:from]
}

// opener finds the nearest run that a run may close, -1 for none. That there is none
// is kept for runs of the same kind, so that nothing is looked at twice.
func opener(runs []run, i int, bottom map[[3]int]int) int {
	closer := &runs[i]
	kind := [3]int{int(closer.c), closer.written % 3, 0}
	if closer.mayOpen {
		kind[2] = 1
	}
	if closer.c == '~' {
		kind[1] = closer.written
	}
	low, known := bottom[kind]
	if !known {
		low = -1
	}
	for j := closer.previous; j > low; j = runs[j].previous {
		if runs[j].c == closer.c && runs[j].mayOpen && pairs(&runs[j], closer) {
			return j
		}
	}
	bottom[kind] = closer.previous
	return -1
}

// pairs reports whether two runs of a mark are a pair.
func pairs(open, closer *run) bool {
	if open.c == '~' {
		return open.written == closer.written
	}
	return !(open.mayClose || closer.mayOpen) || (open.written+closer.written)%3 != 0 || open.written%3 == 0 && closer.written%3 == 0
}

// pair makes an element of what is between two runs.
func (s *inlines) pair(open, closer *run) {
	n, element := 1, "em"
	switch {
	case open.c == '~':
		n, element = open.n, "del"
	case open.n >= 2 && closer.n >= 2:
		n, element = 2, "strong"
	}
	open.n -= n
	closer.n -= n
	a, b := &s.out[open.token], &s.out[closer.token]
	a.text, b.text = a.text[n:], b.text[n:]
	a.opens = append(a.opens, element)
	b.closes = append(b.closes, element)
}

// entity decodes the character that a text begins with the name or number of.
func entity(in string) (decoded string, n int) {
	end := strings.IndexByte(in[:min(len(in), 34)], ';')
	if end < 2 || strings.ContainsAny(in[1:end], "& \n<") {
		return "", 0
	}
	if in[1] == '#' && end > 9 { // no number of a character has more digits
		return "", 0
	}
	decoded = html.UnescapeString(in[:end+1])
	if strings.HasSuffix(decoded, ";") && decoded != ";" { // no such name, or one without the ;
		return "", 0
	}
	return decoded, end + 1
}
