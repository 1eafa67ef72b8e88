package citation

import (
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Max is the maximum number of citations in a text; further ones are treated as prose.
const Max = 100

const (
	maxPath = 1024       // maximum bytes of a cited path
	maxLine = 10_000_000 // the largest line number
)

// Citation identifies lines of a file. Path is relative to the root of the repository,
// clean, with slashes, and never leads outside. 1 ≤ First ≤ Last.
type Citation struct {
	Path        string
	First, Last int
}

// Lines returns the lines as written in a citation: L12, or L12-L20.
func (c Citation) Lines() string {
	if c.First == c.Last {
		return "L" + strconv.Itoa(c.First)
	}
	return "L" + strconv.Itoa(c.First) + "-L" + strconv.Itoa(c.Last)
}

// ParseLines parses the output of Lines. ok is false for other text.
func ParseLines(s string) (first, last int, ok bool) {
	numbers, ok := strings.CutPrefix(s, "L")
	if !ok {
		return 0, 0, false
	}
	first, last, end, ok := readLines(numbers, 0)
	return first, last, ok && end == len(numbers)
}

// Parse returns the citations in a text, in text order, without duplicates and at most
// Max. A citation is written as PATH#L12, PATH#L12-L20 or PATH#L12-20. A path ends at
// white space, quotes or brackets around it. A path with spaces must be in backticks or
// angle brackets. URLs, absolute paths and paths with .. are not citations.
func Parse(text string) []Citation {
	var out []Citation
	seen := map[Citation]bool{}
	from := 0 // earliest offset of the next citation's path
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

// readLines parses 12, 12-L20 or 12-20 at an offset and returns the offset after it. A
// range without an end is its first line. A number that continues as a word is not a
// line.
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

// pathBefore returns the path before a citation's #L: the text since the opening quote if
// the quote closes after the citation, else the last word.
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

// trimOpening drops opening punctuation before a word, but not brackets that close within
// it: (group)/page.tsx and [id].tsx are paths.
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

// cleanPath returns a path in the form of Citation.Path. ok is false if it is invalid.
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
