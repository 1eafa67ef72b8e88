package pathpattern

import "strings"

// Path is a concrete path, ready to be matched against many patterns. The zero
// value is not a path and is covered by no pattern.
type Path struct {
	text           string
	folded         string
	plain, folding []pathSegment
}

type pathSegment struct {
	text  string
	runes []rune
}

// ParsePath reads the path of a file relative to the root of its worktree, in slashes or
// backslashes, as project.Location.PathKey returns it. It drops empty and "." segments.
// Blanks are part of a name. Invalid UTF-8 bytes count as U+FFFD. Length and depth are
// not limited.
//
// The error is fault.Invalid with CodeInvalidPath for other texts: no segment left, an
// absolute path, "..", a NUL, a name such as tool://x.
func ParsePath(text string) (Path, error) {
	switch {
	case strings.IndexByte(text, 0) >= 0:
		return Path{}, invalid("the path contains a NUL character")
	case schemeOf(text) != "":
		return Path{}, invalid("this is not the name of a file")
	}
	t := nfc(slashed(strings.ToValidUTF8(text, "\uFFFD")))
	if isAbsolute(t) {
		return Path{}, outside()
	}
	t, n, err := joinSegments(t)
	if err != nil {
		return Path{}, err
	}
	if n == 0 {
		return Path{}, invalid("the path is empty")
	}
	p := Path{text: t, folded: fold(t), plain: segmentsOf(t, n)}
	p.folding = p.plain
	if p.folded != t {
		p.folding = segmentsOf(p.folded, n)
	}
	return p, nil
}

// String returns the path in slashes and NFC; "" for the zero value.
func (p Path) String() string { return p.text }

// Prefixes returns the possible values of LiteralPrefix for patterns that cover the path:
// "", its ancestors from the top down, and itself, all case-folded. There is one more
// than the path has segments.
func (p Path) Prefixes() []string { return chain(p.folded) }

// chain returns "" and every prefix of t that ends at a segment's end.
func chain(t string) []string {
	all := make([]string, 1, 2+strings.Count(t, "/"))
	if t == "" {
		return all
	}
	for i := range len(t) {
		if t[i] == '/' {
			all = append(all, t[:i])
		}
	}
	return append(all, t)
}

func segmentsOf(t string, n int) []pathSegment {
	segments := make([]pathSegment, 0, n)
	runes := []rune(t)
	for s := range strings.SplitSeq(t, "/") {
		end := 0
		for end < len(runes) && runes[end] != '/' {
			end++
		}
		segments = append(segments, pathSegment{s, runes[:end]})
		runes = runes[min(end+1, len(runes)):]
	}
	return segments
}
