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

// Options say what a pattern's text alone does not.
type Options struct {
	// Relative turns an absolute path or pattern, in slashes, into one relative
	// to the root of its worktree; ok is false outside every worktree. It must
	// only cut off the front: what follows may hold wildcards. nil: there is no
	// worktree, and every absolute text is refused.
	Relative func(abs string) (rel string, ok bool)
	// FoldCase says that case does not count (core.ignorecase).
	FoldCase bool
}

// Pattern is a parsed pattern. It is immutable; the zero value covers nothing.
type Pattern struct {
	text     string
	prefix   string
	absolute bool         // it was given as an absolute path
	slashed  bool         // it was given with backslashes where the file system has slashes
	exact    bool         // a name such as tool://x, met by itself only
	foldCase bool         // the readings are folded
	readings [2][]segment // nil where there is no such reading, or nothing it could cover
}

// Parse reads a pattern as people and agents write it (mail §7): blanks around
// it, "./" before it, slashes after it and doubled ones within it do not count,
// `\` is "/", an absolute one becomes relative to its worktree. A name that
// begins or ends with a blank is written with a wildcard: "[ ]x".
//
// The error is fault.Invalid with CodeInvalidPath, and its message says why: the
// pattern is empty, holds "..", a NUL or what is no UTF-8, lies outside the
// project, or is longer than MaxBytes or MaxSegments.
func Parse(text string, o Options) (Pattern, error) {
	t := strings.TrimSpace(text)
	switch {
	case t == "":
		return Pattern{}, invalid("the path is empty").WithHint("name a file, a folder or a pattern such as src/**; . is the whole project")
	case strings.IndexByte(t, 0) >= 0:
		return Pattern{}, invalid("the path holds a NUL character")
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

// String is the canonical text: relative, in slashes and NFC, with the case it
// was given in. Parsing it with the same options gives an equal pattern without
// an error, and two texts for which it is equal are the same pattern.
func (p Pattern) String() string { return p.text }

// Warning is a sentence about a pattern that is granted but probably not what
// was meant, "" for all others: one that covers the whole tree or its whole top,
// however it is spelled (*, **, **/*, **/**, "."), one that was given as an absolute
// path or with backslashes where the file system has slashes, and one with braces or
// stars that mean more to other programs. Several sentences are joined by "; ".
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

// LiteralPrefix is the path that every path begins with which the pattern
// covers: its leading segments without wildcards. It is "" if the first segment
// has one, and the whole text of a name such as tool://x.
//
// It is for looking patterns up by index: if two patterns overlap, then one's
// prefix is equal to the other's or, segment by segment, an ancestor of it (""
// is an ancestor of all); if a pattern covers a path, its prefix is one of the
// path's Prefixes. The reverse does not hold: what is found so must still be
// asked with Overlap or Matches.
//
// The prefix is always case-folded, also where case counts, so that what is
// stored stays right when a repository's setting changes.
func (p Pattern) LiteralPrefix() string { return p.prefix }

// Prefixes is the chain of ancestors of the pattern's literal prefix, from "" to
// the prefix itself. The prefixes of all patterns that may overlap it are these
// and those that begin with the prefix and a slash (all, if the prefix is ""): in
// SQL, lit_prefix IN (…) OR lit_prefix > prefix||'/' AND lit_prefix < prefix||'0'.
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

// canonical drops what does not count and checks the rest. t is trimmed, in
// slashes and NFC.
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
		} // else it was like "./ x": trimmed, there may be more to drop
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

// warningOf says what is odd about a pattern. Patterns of stars alone cover the
// whole tree unless they ask for two segments or more.
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
			found = append(found, "the braces in "+text+" are plain characters; give each alternative as a path of its own")
		}
	}
	for segment := range strings.SplitSeq(text, "/") {
		if segment != "**" && strings.Contains(segment, "**") {
			return append(found, "the stars in "+segment+" stay within one folder; ** stands for any number of folders only as a whole segment")
		}
	}
	return found
}

// isAbsolute reports whether t, in slashes, is rooted on any system, so that
// a pattern means the same wherever it is read.
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
	return invalid("the path holds a .. segment").WithHint("give it relative to the root of the repository")
}

func outside() *fault.Error {
	return invalid("the path lies outside the project").WithHint("give it relative to the root of the repository")
}

func tooLong() *fault.Error {
	return invalid("the path is longer than %d bytes", MaxBytes)
}
