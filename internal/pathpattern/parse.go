package pathpattern

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"cairn/internal/fault"
)

// CodeInvalidPath is the code of every error of this package (mail §2.1).
const CodeInvalidPath = "INVALID_PATH"

// The limits of a pattern in its canonical form (mail §7).
const (
	MaxBytes    = 1024
	MaxSegments = 64
)

// Options controls how the text of a pattern is parsed.
type Options struct {
	// Relative makes an absolute path or pattern with slashes relative to the root of its
	// worktree. ok is false outside every worktree. It must only remove a prefix, because
	// the rest may contain wildcards. If nil, there is no worktree, and every absolute
	// text is refused.
	Relative func(abs string) (rel string, ok bool)
	// FoldCase makes patterns ignore case (core.ignorecase).
	FoldCase bool
}

// Pattern is a parsed pattern. It is immutable; the zero value covers nothing.
type Pattern struct {
	text     string
	prefix   string
	absolute bool         // given as an absolute path
	slashed  bool         // given with backslashes on a file system with slashes
	exact    bool         // a name such as tool://x, which matches only itself
	foldCase bool         // the readings are folded
	readings [2][]segment // nil if there is no such reading, or if it can cover nothing
}

// Parse parses a pattern as people and agents write it (mail §7). It ignores blanks
// around the pattern, a leading "./", trailing slashes and doubled slashes. `\` means
// "/", and an absolute pattern becomes relative to its worktree. A name that begins or
// ends with a blank needs a class: "[ ]x".
//
// The error is fault.Invalid with CodeInvalidPath, and its message says why: the pattern
// is empty, contains "..", a NUL or invalid UTF-8, is outside the project, or is longer
// than MaxBytes or MaxSegments.
func Parse(text string, o Options) (Pattern, error) {
	t := strings.TrimSpace(text)
	switch {
	case t == "":
		return Pattern{}, invalid("the path is empty").WithHint("name a file, a folder or a pattern such as src/**; . is the whole project")
	case strings.IndexByte(t, 0) >= 0:
		return Pattern{}, invalid("the path contains a NUL character")
	case !utf8.ValidString(t):
		return Pattern{}, invalid("the path is not valid UTF-8")
	}
	if scheme := schemeOf(t); scheme != "" {
		return parseExact(t, scheme)
	}
	p := Pattern{foldCase: o.FoldCase, slashed: filepath.Separator != '\\' && strings.Contains(t, `\`)}
	t = nfc(slashed(t))
	if p.absolute = isAbsolute(t); p.absolute {
		rel, err := relative(t, o)
		if err != nil {
			return Pattern{}, err
		}
		t = rel
	}
	var err error
	if p.text, err = canonical(t); err != nil {
		return Pattern{}, err
	}
	p.compile()
	return p, nil
}

// String returns the canonical text: relative, in slashes and NFC, with the original
// case. Parsing it again with the same options gives an equal pattern. Texts with equal
// canonical texts are the same pattern.
func (p Pattern) String() string { return p.text }

// Warning returns a sentence about a valid pattern that is probably a mistake, else "".
// It warns about patterns that cover the whole tree or its whole top level in any
// spelling (*, **, **/*, **/**, "."). It also warns about absolute paths, about
// backslashes on a file system with slashes, and about braces or stars that mean more in
// other programs. Several sentences are joined by "; ".
func (p Pattern) Warning() string {
	if p.text == "" || p.exact {
		return ""
	}
	warnings := append([]string{warningOf(p.text, p.readings[0], p.absolute)}, misusesOf(p.text)...)
	if p.slashed {
		warnings = append(warnings, `\ was taken as /, which separates folders on this system`)
	}
	return strings.Join(slices.DeleteFunc(warnings, func(w string) bool { return w == "" }), "; ")
}

// LiteralPrefix returns the pattern's leading segments without wildcards. Every covered
// path begins with them. It is "" if the first segment has a wildcard, and the whole text
// of a name such as tool://x.
//
// It serves to find patterns by index. If two patterns overlap, one's prefix equals the
// other's or is an ancestor of it ("" is an ancestor of all). If a pattern covers a path,
// its prefix is one of the path's Prefixes. The reverse does not hold: candidates must
// still be checked with Overlap or Matches.
//
// The prefix is always case-folded, even if case matters, so that stored prefixes stay
// valid when a repository's setting changes.
func (p Pattern) LiteralPrefix() string { return p.prefix }

// Prefixes returns the chain of ancestors of the pattern's literal prefix, from "" to the
// prefix itself. A pattern that may overlap it has one of these prefixes, or one that
// begins with the prefix and a slash; any, if the prefix is "". In SQL: lit_prefix IN (…)
// OR lit_prefix > prefix||'/' AND lit_prefix < prefix||'0'.
func (p Pattern) Prefixes() []string { return chain(p.prefix) }

func parseExact(t, scheme string) (Pattern, error) {
	if t == scheme {
		return Pattern{}, invalid("the path is empty after %s", scheme)
	}
	if len(t) > MaxBytes {
		return Pattern{}, tooLong()
	}
	return Pattern{text: t, prefix: t, exact: true}, nil
}

func schemeOf(t string) string {
	for _, s := range [...]string{"tool://", "resource://", "service://"} {
		if strings.HasPrefix(t, s) {
			return s
		}
	}
	return ""
}

func relative(abs string, o Options) (string, error) {
	for segment := range strings.SplitSeq(abs, "/") {
		if segment == ".." {
			return "", climbs()
		}
	}
	if o.Relative != nil {
		if rel, ok := o.Relative(abs); ok {
			return nfc(slashed(rel)), nil
		}
	}
	return "", outside()
}

// canonical removes redundant parts and checks the rest. t is trimmed, in slashes and
// NFC.
func canonical(t string) (string, error) {
	for {
		joined, n, err := joinSegments(t)
		switch {
		case err != nil:
			return "", err
		case joined == "":
			return ".", nil
		case isAbsolute(joined): // ./C:/x
			return "", outside()
		case len(joined) > MaxBytes:
			return "", tooLong()
		case n > MaxSegments:
			return "", invalid("the path has %d segments; %d are allowed", n, MaxSegments)
		}
		if t = strings.TrimSpace(joined); t == joined {
			return t, nil
		} // else it was like "./ x": after trimming there may be more to remove
	}
}

// joinSegments drops empty and "." segments and counts the others.
func joinSegments(t string) (joined string, n int, err error) {
	clean := true
	for segment := range strings.SplitSeq(t, "/") {
		switch segment {
		case "..":
			return "", 0, climbs()
		case "", ".":
			clean = false
		default:
			n++
		}
	}
	if clean {
		return t, n, nil
	}
	kept := make([]string, 0, n)
	for segment := range strings.SplitSeq(t, "/") {
		if segment != "" && segment != "." {
			kept = append(kept, segment)
		}
	}
	return strings.Join(kept, "/"), n, nil
}

// warningOf returns the warning about a pattern. Patterns of stars cover the whole tree
// unless they require two segments or more.
func warningOf(text string, reading []segment, absolute bool) string {
	single, deep := 0, false
	for _, s := range reading {
		switch {
		case s.deep:
			deep = true
		case len(s.tokens) == 1 && s.tokens[0].isStar():
			single++
		default:
			single = 2
		}
	}
	wide := ""
	switch {
	case single < 2 && deep:
		wide = text + " covers every file of the project; narrower patterns leave room for others"
	case single == 1:
		wide = text + " covers everything at the top of the project; narrower patterns leave room for others"
	}
	switch {
	case absolute && wide != "":
		return "an absolute path, taken as " + text + " of this project; " + wide
	case absolute:
		return "an absolute path, taken as " + text + " of this project"
	}
	return wide
}

// misusesOf describes parts of a pattern that mean more in the patterns of other
// programs: braces with alternatives, and two stars that are not a whole segment.
func misusesOf(text string) (found []string) {
	if _, rest, ok := strings.Cut(text, "{"); ok {
		if inside, _, closed := strings.Cut(rest, "}"); closed && (strings.Contains(inside, ",") || strings.Contains(inside, "..")) {
			found = append(found, "the braces in "+text+" are plain characters; give each alternative as a separate path")
		}
	}
	for segment := range strings.SplitSeq(text, "/") {
		if segment != "**" && strings.Contains(segment, "**") {
			return append(found, "the stars in "+segment+" stay within one folder; ** matches any number of folders only as a whole segment")
		}
	}
	return found
}

// isAbsolute reports whether t, in slashes, is rooted on any system, so that a pattern
// means the same on every system.
func isAbsolute(t string) bool {
	if strings.HasPrefix(t, "/") {
		return true
	}
	return len(t) >= 3 && t[1] == ':' && t[2] == '/' && ('a' <= t[0]|0x20 && t[0]|0x20 <= 'z')
}

func slashed(t string) string { return strings.ReplaceAll(t, `\`, "/") }

func nfc(t string) string {
	for i := range len(t) {
		if t[i] >= utf8.RuneSelf {
			return norm.NFC.String(t)
		}
	}
	return t
}

func invalid(format string, args ...any) *fault.Error {
	return fault.Newf(fault.Invalid, CodeInvalidPath, format, args...)
}

func climbs() *fault.Error {
	return invalid("the path contains a .. segment").WithHint("give it relative to the root of the repository")
}

func outside() *fault.Error {
	return invalid("the path is outside the project").WithHint("give it relative to the root of the repository")
}

func tooLong() *fault.Error {
	return invalid("the path is longer than %d bytes", MaxBytes)
}
