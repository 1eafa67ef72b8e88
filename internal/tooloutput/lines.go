package tooloutput

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// minLine is the minimum number of characters of a line whose hash is kept.
const minLine = 12

// minLetters is the minimum number of letters and digits of a line whose hash is kept. For the
// masked hash, as many letters must remain after numbers are masked.
const minLetters = 6

// LineHash is an unsalted hash of a line. It never leaves the process.
type LineHash uint64

// Salt converts hashes to their stored form.
type Salt uint64

// wordBytes is the length of the index word for a hash.
const wordBytes = 5

// AppendWord appends the index word for a line: 32 bits of its salted hash in five bytes. The bytes
// are 0x80 or higher, which the tokenizer treats as letters. With seven bits per byte, the index
// is smaller than with letters and digits.
func (s Salt) AppendWord(b []byte, h LineHash) []byte {
	x := uint64(h) ^ uint64(s)
	x *= 0x9E3779B97F4A7C15
	x ^= x >> 32
	x *= 0xD6E8FEB86659FD93
	n := uint32(x >> 32)
	return append(b, 0x80|byte(n>>25), 0x80|byte(n>>18&0x7F), 0x80|byte(n>>11&0x7F), 0x80|byte(n>>4&0x7F), 0x80|byte(n&0xF))
}

// Words returns the index words for lines, each followed by a space.
func (s Salt) Words(lines []LineHash) string {
	b := make([]byte, 0, len(lines)*(wordBytes+1))
	for _, h := range lines {
		b = append(s.AppendWord(b, h), ' ')
	}
	return string(b)
}

// Line is one line of an output. A hash is 0 if the line is too short or has too few letters.
type Line struct {
	Text          string
	Plain, Masked LineHash // Masked is the hash of the line with its numbers masked
}

// Lines splits a text into lines as a terminal shows it. It omits text overwritten after a
// carriage return, control characters, blank lines, and lines that are mostly binary. Trailing
// space is removed.
func Lines(text string) []Line {
	lines := make([]Line, 0, 1+strings.Count(text, "\n"))
	var hasher lineHasher
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		if line, ok := readable(line); ok && strings.TrimLeft(line, " \t") != "" {
			plain, masked := hasher.hash(line)
			lines = append(lines, Line{line, plain, masked})
		}
	}
	return lines
}

// readable removes the control characters from a line. ok is false if they and invalid UTF-8 make
// up more than a fifth of it.
func readable(line string) (clean string, ok bool) {
	if isPlainLine(line) {
		return line, true
	}
	strange := 0
	for _, r := range line {
		if isStrange(r) {
			strange++
		}
	}
	if strange == 0 {
		return line, true
	}
	if 5*strange > utf8.RuneCountInString(line) {
		return "", false
	}
	return strings.Map(func(r rune) rune {
		if isStrange(r) && r != utf8.RuneError {
			return -1
		}
		return r
	}, line), true
}

// isPlainLine reports whether a line contains only printable ASCII and tabs.
func isPlainLine(line string) bool {
	for i := range len(line) {
		if c := line[i]; c < ' ' && c != '\t' || c >= 0x7F {
			return false
		}
	}
	return true
}

// isStrange reports whether a character is not text: a control character, or the replacement for
// invalid UTF-8.
func isStrange(r rune) bool {
	return r < ' ' && r != '\t' || r >= 0x7F && r <= 0x9F || r == utf8.RuneError
}

// Hashes returns the plain and masked hashes of lines, sorted and without duplicates.
func Hashes(lines []Line) []LineHash {
	out := make([]LineHash, 0, 2*len(lines))
	for _, l := range lines {
		for _, h := range [...]LineHash{l.Plain, l.Masked} {
			if h != 0 {
				out = append(out, h)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lineHasher hashes lines. Its zero value is ready for use.
type lineHasher struct{ buffer []byte }

// hash returns the hash of a line and the hash of the line with its numbers masked. Both are
// equal if it has no numbers. Each is 0 if the line, or its masked form, is too short or has too
// few letters.
func (l *lineHasher) hash(line string) (plain, masked LineHash) {
	line = l.folded(line)
	if isShorter(line, minLine) || !hasLetters(line, true) {
		return 0, 0
	}
	plain = hashOf(line)
	text := l.masked(line)
	if !hasLetters(text, false) {
		return plain, 0
	}
	if text == line {
		return plain, plain
	}
	return plain, hashOf(text)
}

// isShorter reports whether a text has fewer than n characters.
func isShorter(text string, n int) bool {
	return len(text) < n*utf8.UTFMax && utf8.RuneCountInString(text) < n
}

// hashOf returns the 64-bit FNV-1a hash of a text, never 0.
func hashOf(text string) LineHash {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return LineHash(max(h, 1))
}

// folded returns a line without leading and trailing space, with each run of spaces and tabs
// replaced by one space.
func (l *lineHasher) folded(line string) string {
	line = strings.Trim(line, " \t")
	if strings.IndexByte(line, '\t') < 0 && !strings.Contains(line, "  ") {
		return line
	}
	b, space := l.buffer[:0], false
	for i := range len(line) {
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			space = true
		case space:
			b, space = append(b, ' ', c), false
		default:
			b = append(b, c)
		}
	}
	l.buffer = b
	return string(b)
}

// hasLetters reports whether a text has at least minLetters letters. Digits count, too, if digits
// is set. Every byte of a non-ASCII character counts as a letter.
func hasLetters(text string, digits bool) bool {
	n := 0
	for i := 0; i < len(text) && n < minLetters; i++ {
		if c := text[i]; c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 || digits && isDigit(c) {
			n++
		}
	}
	return n == minLetters
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }

// maskMark replaces a number.
const maskMark = '#'

// masked returns a line with each number replaced by maskMark. A number is a run of digits,
// digits joined by a dot, comma or colon, or a hexadecimal word of four or more characters that
// contains a digit.
func (l *lineHasher) masked(line string) string {
	b, done := l.buffer[:0], 0 // line[:done] is already in b
	for i := 0; i < len(line); i++ {
		if !isDigit(line[i]) {
			continue
		}
		start, end := i, i+1
		for start > done && isAlnum(line[start-1]) {
			start--
		}
		for end < len(line) && isAlnum(line[end]) {
			end++
		}
		b = append(b, line[done:start]...)
		if n := len(b); start == i && n > 1 && b[n-2] == maskMark && (b[n-1] == '.' || b[n-1] == ',' || b[n-1] == ':') {
			b = b[:n-1] // the character joins two numbers
		}
		b = appendMaskedWord(b, line[start:end])
		done, i = end, end-1
	}
	if done == 0 {
		return line
	}
	l.buffer = append(b, line[done:]...)
	return string(l.buffer)
}

// appendMaskedWord appends a word of letters and digits with its numbers masked.
func appendMaskedWord(b []byte, word string) []byte {
	if isHexWord(word) {
		return appendMark(b)
	}
	for i := range len(word) {
		if isDigit(word[i]) {
			b = appendMark(b)
		} else {
			b = append(b, word[i])
		}
	}
	return b
}

// appendMark appends maskMark, unless b already ends with it.
func appendMark(b []byte) []byte {
	if len(b) > 0 && b[len(b)-1] == maskMark {
		return b
	}
	return append(b, maskMark)
}

// isHexWord reports whether a word is a hexadecimal number, with or without 0x.
func isHexWord(word string) bool {
	if len(word) > 2 && isDigit(word[0]) && word[1]|0x20 == 'x' {
		word = word[2:]
	}
	digit := false
	for i := range len(word) {
		c := word[i]
		digit = digit || isDigit(c)
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return digit && len(word) >= 4
}
