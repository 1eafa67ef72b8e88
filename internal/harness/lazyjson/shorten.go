package lazyjson

import (
	"bytes"
	"unicode/utf8"
)

// shortener copies a JSON text and omits parts, so that the size of the copy is limited. A valid
// object remains a valid object. The limits are bytes of the copy, see newShortener.
//
// It checks only the structure that it needs. For input that is not JSON, the copy is not JSON
// either, or failed is set.
type shortener struct {
	out    []byte
	failed bool // the input is not JSON, or nested too deeply; out is incomplete

	half     int // bytes kept at each end of a string while out is shorter than nested
	lateHalf int // the same after that
	nested   int // from this size on, arrays and objects inside the outermost one lose their end
	outer    int // from this size on, the outermost one loses its end, too
	most     int // maximum length of out for valid input

	stack    []byte // the closing brackets that must follow, the outermost first
	skipFrom int    // the length of stack at which the rest of a container is omitted, or 0
	run      int    // the length of the current number or literal

	inString bool
	headEnd  int    // the length of out at which the first end of the string is complete
	inTail   bool   // the first end is complete
	tail     []byte // the last end; it begins neither inside an escape nor inside a character
	keep     int    // bytes of tail to keep
	escape   int    // remaining bytes of the current escape; escapeBegins after a backslash
}

const (
	escapeBegins = 5
	maxLiteral   = 64 // bytes kept of a number or literal
)

func newShortener() *shortener {
	return &shortener{half: textEnd, lateHalf: 32 << 10, nested: 8 << 20, outer: 16 << 20, most: 20 << 20}
}

// write copies the next part of the input.
func (s *shortener) write(b []byte) {
	for len(b) > 0 && !s.failed {
		if s.inString {
			b = b[s.text(b):]
		} else {
			s.structure(b[0])
			b = b[1:]
		}
		s.failed = s.failed || len(s.out) > s.most
	}
}

// structure copies one byte outside strings.
func (s *shortener) structure(c byte) {
	switch c {
	case '"', '{', '[', '}', ']', ',', ':':
		s.run = 0
	}
	switch c {
	case '"':
		s.beginString()
	case '{', '[':
		s.open(c)
	case '}', ']':
		s.close(c)
	case ',':
		if n := len(s.stack); s.skipFrom == 0 && n > 0 && (n > 1 && len(s.out) >= s.nested || len(s.out) >= s.outer) {
			s.skipFrom = n
		}
		s.emit(c)
	case ' ', '\t', '\r', '\n':
		if s.run > 0 {
			s.emit(' ')
		}
		s.run = 0
	case ':':
		s.emit(c)
	default:
		s.literal(c)
	}
}

// emit copies a byte unless it is in an omitted part.
func (s *shortener) emit(c byte) {
	if s.skipFrom == 0 {
		s.out = append(s.out, c)
	}
}

func (s *shortener) open(c byte) {
	if len(s.stack) == maxDepth {
		s.failed = true
		return
	}
	s.emit(c)
	s.stack = append(s.stack, c+2) // in ASCII, } is two after { and ] two after [
	if n := len(s.stack); s.skipFrom == 0 && n > 1 && len(s.out) >= s.nested {
		s.skipFrom = n
	}
}

func (s *shortener) close(c byte) {
	n := len(s.stack)
	if n == 0 || s.stack[n-1] != c {
		s.failed = true
		return
	}
	if s.skipFrom == n {
		s.skipFrom = 0
	}
	s.stack = s.stack[:n-1]
	s.emit(c)
}

// literal copies a byte of a number, true, false or null.
func (s *shortener) literal(c byte) {
	s.run++
	switch {
	case s.run <= maxLiteral:
		s.emit(c)
	case s.run == maxLiteral+1 && s.skipFrom == 0:
		s.out = bytes.TrimRight(s.out, "eE+-.") // otherwise the number would be invalid
	}
}

func (s *shortener) beginString() {
	s.emit('"')
	s.inString, s.inTail, s.escape, s.tail = true, false, 0, s.tail[:0]
	s.keep = s.half
	if len(s.out) >= s.nested {
		s.keep = s.lateHalf
	}
	s.headEnd = len(s.out) + s.keep
}

func (s *shortener) endString() {
	s.inString = false
	if s.inTail {
		s.trimTail()
		s.out = append(s.out, s.tail...)
	}
	s.emit('"')
}

// text copies a part of a string's content, up to the end of the string or the next special byte.
// It returns the length of the part.
func (s *shortener) text(b []byte) int {
	if s.escape > 0 {
		s.escaped(b[0])
		return 1
	}
	if s.inTail || s.skipFrom > 0 {
		if n := simpleText(b); n > 0 {
			s.later(b[:n])
			return n
		}
	}
	n := 0
	for n < len(b) && b[n] != '"' && b[n] != '\\' {
		n++
	}
	if n == len(b) {
		s.plain(b)
		return len(b)
	}
	s.plain(b[:n])
	if b[n] == '"' {
		s.endString()
	} else {
		s.plain(b[n : n+1])
		s.escape = escapeBegins
	}
	return n + 1
}

// simpleText returns the length of the text at the start of b that contains no escapes except
// complete ones of two bytes.
func simpleText(b []byte) int {
	n := 0
	for n < len(b) && b[n] != '"' {
		if b[n] != '\\' {
			n++
			continue
		}
		if n+1 >= len(b) || b[n+1] == 'u' {
			break
		}
		n += 2
	}
	return n
}

// later copies whole characters and escapes of a string whose first end is complete.
func (s *shortener) later(b []byte) {
	if s.skipFrom > 0 {
		return
	}
	s.tail = append(s.tail, b...)
	if len(s.tail) > 2*s.keep+utf8.UTFMax {
		s.trimTail()
	}
}

// escaped copies a byte after a backslash. It never splits an escape.
func (s *shortener) escaped(c byte) {
	switch {
	case s.escape != escapeBegins:
		s.escape--
		s.failed = s.failed || c == '"' || c == '\\'
	case c == 'u':
		s.escape = 4
	default:
		s.escape = 0
	}
	switch {
	case s.skipFrom > 0:
	case s.inTail:
		s.tail = append(s.tail, c)
	default:
		s.out = append(s.out, c)
	}
}

// plain copies bytes of a string that are not inside an escape.
func (s *shortener) plain(b []byte) {
	if s.skipFrom > 0 || len(b) == 0 {
		return
	}
	if !s.inTail {
		n := min(max(0, s.headEnd-len(s.out)), len(b))
		for limit := n + utf8.UTFMax; n < min(limit, len(b)) && !utf8.RuneStart(b[n]); {
			n++
		}
		s.out = append(s.out, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			return
		}
		s.inTail = true
	}
	s.later(b)
}

// trimTail cuts the last end of a string to the length that is kept.
func (s *shortener) trimTail() {
	if len(s.tail) <= s.keep {
		return
	}
	rest := s.tail[boundary(s.tail, len(s.tail)-s.keep):]
	s.tail = append(s.tail[:0], rest[characterAt(rest):]...)
}

// characterAt returns the index of the first character that begins in b. b may start inside a
// character.
func characterAt(b []byte) int {
	for i := range min(utf8.UTFMax, len(b)) {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return 0
}
