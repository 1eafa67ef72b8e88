package citation

import (
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Max is how many citations of one text count; further ones are plain prose.
const Max = 100

const (
	maxPath = 1024       // bytes of a cited path
	maxLine = 10_000_000 // the largest line number
)

// Citation names lines of a file: Path is relative to the repository's root, in
// slashes, clean, and leads nowhere outside; 1 ≤ First ≤ Last.
type Citation struct {
	Path        string
	First, Last int
}

// Lines is how the lines are written: L12, or L12-L20.
func (c Citation) Lines() string {
	if c.First == c.Last {
		return "L" + strconv.Itoa(c.First)
	}
	return "L" + strconv.Itoa(c.First) + "-L" + strconv.Itoa(c.Last)
}

// ParseLines reads what Lines writes; ok is false for anything else.
func ParseLines(s string) (first, last int, ok bool) {
	numbers, ok := strings.CutPrefix(s, "L")
	if !ok {
		return 0, 0, false
	}
	first, last, end, ok := readLines(numbers, 0)
	return first, last, ok && end == len(numbers)
}

// Parse finds the citations of a text, in its order, equal ones once, at most
// Max. One is written PATH#L12, PATH#L12-L20 or PATH#L12-20. A path ends where
// prose goes on (white space, quotes, brackets around it); one with spaces in it
// stands whole between backticks or angle brackets. URLs, absolute paths and
// paths with .. in them are no citations.
func Parse(text string) []Citation {
	var out []Citation
	seen := map[Citation]bool{}
	from := 0 // where the path of the next one may begin
	for at := 0; len(out) < Max; {
		i := strings.Index(text[at:], "#L")
		if i < 0 {
			break
		}
		hash := at + i
		first, last, end, ok := readLines(text, hash+len("#L"))
		at = max(end, hash+len("#L"))
		if !ok {
			continue
		}
		p, ok := cleanPath(pathBefore(text[from:hash], text[end:]))
		from = end
		if c := (Citation{p, first, last}); ok && !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	return out
}

// readLines reads 12, 12-L20 or 12-20 at an offset, and where it ends. A range
// without an end is its first line; what goes on as a word is none.
func readLines(text string, at int) (first, last, end int, ok bool) {
	first, end, ok = readNumber(text, at)
	if !ok {
		return 0, 0, end, false
	}
	last = first
	if rest := text[end:]; strings.HasPrefix(rest, "-") {
		if n, e, ok := readNumber(text, end+len(rest)-len(strings.TrimPrefix(rest[1:], "L"))); ok {
			last, end = n, e
		}
	}
	next, _ := utf8.DecodeRuneInString(text[end:])
	word := end < len(text) && (next == '_' || unicode.IsLetter(next) || unicode.IsDigit(next))
	return first, last, end, !word && first <= last
}

func readNumber(text string, at int) (n, end int, ok bool) {
	end = at
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(text[at:end])
	return n, end, err == nil && 1 <= n && n <= maxLine
}

// pathBefore is the path at the end of what stands before a citation's #L: what
// the quotes that close right after it opened, else the last word.
func pathBefore(before, after string) string {
	before = before[strings.LastIndexByte(before, '\n')+1:]
	for _, q := range [...]struct{ open, close string }{{"`", "`"}, {"<", ">"}} {
		if i := strings.LastIndex(before, q.open); i >= 0 && strings.HasPrefix(after, q.close) {
			return before[i+1:]
		}
	}
	start := strings.LastIndexFunc(before, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`<>|", r) })
	if start >= 0 {
		_, size := utf8.DecodeRuneInString(before[start:])
		before = before[start+size:]
	}
	if i := strings.LastIndex(before, "]("); i >= 0 { // [text](path
		before = before[i+len("]("):]
	}
	return trimOpening(before)
}

// trimOpening drops punctuation that opens before a word, but not brackets that
// close within it: (group)/page.tsx and [id].tsx are paths.
func trimOpening(word string) string {
	for word != "" {
		closing, bracket := map[byte]string{'(': ")", '[': "]", '{': "}"}[word[0]]
		switch {
		case bracket && strings.Contains(word, closing):
			return word
		case !bracket && !strings.ContainsRune(",;:*=–—", firstRune(word)):
			return word
		}
		_, size := utf8.DecodeRuneInString(word)
		word = word[size:]
	}
	return word
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// cleanPath is a cited path as Citation holds it; ok is false for what is none.
func cleanPath(p string) (clean string, ok bool) {
	p = strings.ReplaceAll(p, `\`, "/")
	switch {
	case p == "" || len(p) > maxPath || !utf8.ValidString(p):
		return "", false
	case strings.Contains(p, "://") || strings.ContainsFunc(p, unicode.IsControl):
		return "", false
	case p[0] == '/' || p[0] == '~' || len(p) > 1 && p[1] == ':' || strings.TrimSpace(p) != p:
		return "", false
	}
	for segment := range strings.SplitSeq(p, "/") {
		if segment == ".." {
			return "", false
		}
	}
	clean = path.Clean(p)
	return clean, clean != "."
}
