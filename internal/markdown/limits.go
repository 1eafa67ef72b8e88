package markdown

import "strings"

// Above these limits, goldmark's time grows with the square of the text's length.
const (
	maxMarks   = 12_000 // characters that could open emphasis or a link
	maxLinks   = 2_000  // URLs of links and images that could begin
	maxMarkers = 1_000  // quotes and lists that one line could open
)

// isCheap reports whether parsing a text takes time proportional to its length. This is true of
// ordinary texts from people and agents.
func isCheap(source string) bool {
	if len(source) > maxSource || strings.Count(source, "](") > maxLinks {
		return false
	}
	if strings.Count(source, "[")+strings.Count(source, "*")+strings.Count(source, "_")+strings.Count(source, "~") > maxMarks {
		return false
	}
	for line := range strings.SplitSeq(source, "\n") {
		if markers(line) > maxMarkers {
			return false
		}
	}
	return true
}

// markers returns how many quotes and list items a line could open: three for "> - 1. text".
func markers(line string) (n int) {
	for i := range len(line) {
		switch c := line[i]; {
		case c == '>':
			n++
		case c == ' ' || c == '\t':
			if i > 0 && strings.IndexByte("-+*.)", line[i-1]) >= 0 {
				n++
			}
		case strings.IndexByte("-+*.)0123456789", c) < 0:
			return n
		}
	}
	return n
}
