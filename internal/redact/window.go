package redact

import (
	"strings"
	"unicode/utf8"
)

// Limits of the work on a field that is stored truncated (contract observations §7).
const (
	// beyond is the number of characters read past the limit, so that a secret that
	// begins before the limit is read completely.
	beyond = 65_536
	// blurred is the number of characters at the far end of the read text that are never
	// kept. A secret that is cut there is not recognisable.
	blurred = 16_384
)

// Gap separates the two ends of a field that HeadTail has shortened. It adds three
// characters to the sum of head and tail.
const Gap = " … "

// Head redacts s and then cuts it to its first limit characters (Unicode code points; a
// byte that is not UTF-8 counts as one). It reads at most limit+65,536 characters of s. A
// secret, private section or key block that begins before the limit leaves no fragment. If
// the cut would split a mark, it moves to the start of the mark. The bool reports whether
// anything was redacted in the text that was read; the cut itself does not count. A limit
// of 0 or less gives "".
func (f *Filter) Head(s string, limit int) (string, bool) {
	limit = bounded(limit)
	end := headEnd(s, limit+beyond)
	out, changed := f.Text(s[:end])
	if end == len(s) || strings.HasSuffix(out, Mark) || strings.HasSuffix(out, PrivateMark) {
		return cutHead(out, limit), changed
	}
	return cutHead(cutTailOff(out, blurred), limit), changed
}

// HeadTail redacts s and, if more than head+tail characters are left, keeps the first
// head and the last tail of them with Gap in between; the result has at most head+tail+3
// characters. Like Head it reads at most 65,536 characters beyond the kept parts, from
// either end, with the same guarantees. It also detects a private section or key block
// that begins anywhere before the tail. Negative lengths count as 0.
func (f *Filter) HeadTail(s string, head, tail int) (string, bool) {
	head, tail = bounded(head), bounded(tail)
	if headEnd(s, head+tail+2*beyond) == len(s) {
		out, changed := f.Text(s)
		if headEnd(out, head+tail) == len(out) {
			return out, changed
		}
		return join(cutHead(out, head), cutTail(out, tail)), changed
	}
	first, changedFirst := f.Head(s, head)
	last, changedLast := f.lastPart(s, tail)
	return join(first, last), changedFirst || changedLast
}

// lastPart redacts the end of s and returns its last tail characters.
func (f *Filter) lastPart(s string, tail int) (string, bool) {
	start := tailStart(s, tail+beyond)
	mark, from := f.openBlock(s, start)
	out, changed := f.Text(s[from:])
	if mark != "" {
		return cutTail(mark+out, tail), true
	}
	return cutTail(cutHeadOff(out, blurred), tail), changed
}

// bounded limits a length so that sums of it do not overflow. It does not depend on the
// text's length, because redaction may lengthen the text.
func bounded(n int) int { return min(max(n, 0), 1<<29) }

func join(head, tail string) string {
	return head + Gap + tail
}

// headEnd returns where the first n characters of s end.
func headEnd(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	i := 0
	for ; n > 0 && i < len(s); n-- {
		for n > asciiStep && i+asciiStep < len(s) && isASCII(s[i:]) {
			i, n = i+asciiStep, n-asciiStep
		}
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}

// tailStart returns where the last n characters of s begin.
func tailStart(s string, n int) int {
	if n >= len(s) {
		return 0
	}
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		for n > asciiStep && i > asciiStep && isASCII(s[i-asciiStep:]) {
			i, n = i-asciiStep, n-asciiStep
		}
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return i
}

// asciiStep is the number of bytes that isASCII examines.
const asciiStep = 8

// isASCII reports whether the first asciiStep bytes of s are ASCII. The compiler reads
// them with one load.
func isASCII(s string) bool {
	_ = s[asciiStep-1]
	all := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	return all&0x8080808080808080 == 0
}

// cutHead returns the first n characters of s, or fewer if a mark would be split.
func cutHead(s string, n int) string {
	end := headEnd(s, n)
	if start := splitMark(s, end); start >= 0 {
		end = start
	}
	return s[:end]
}

// cutTail returns the last n characters of s, or fewer if a mark would be split.
func cutTail(s string, n int) string {
	start := tailStart(s, n)
	if at := splitMark(s, start); at >= 0 {
		start = at + strings.IndexByte(s[at:], ']') + 1
	}
	return s[start:]
}

// cutTailOff and cutHeadOff return s without n characters at one end.
func cutTailOff(s string, n int) string { return cutHead(s, utf8.RuneCountInString(s)-n) }
func cutHeadOff(s string, n int) string { return cutTail(s, utf8.RuneCountInString(s)-n) }

// splitMark returns the start of the mark that contains s[i], or -1 if there is none.
func splitMark(s string, i int) int {
	for _, mark := range [...]string{Mark, PrivateMark} {
		from := max(0, i-len(mark)+1)
		to := min(len(s), i+len(mark)-1)
		if from < to {
			if j := strings.Index(s[from:to], mark); j >= 0 && from+j < i {
				return from + j
			}
		}
	}
	return -1
}
