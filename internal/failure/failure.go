package failure

import "strings"

// Finding is the line that explains why a tool failed.
type Finding struct {
	// Text is the line, with runs of white space as one space, at most 500 bytes. If the
	// line ends with a colon, Text continues with the next line. The values that a test
	// expected and got follow after a comma, if the output has them on separate lines.
	// Text is "" if no line explains the failure.
	Text string
	// Start and End are the byte offsets in the output of the line, and of the next
	// line where Text continues with it. Both are 0 if Text is "".
	Start, End int
}

// Limits of how much of an output the rules see.
const (
	maxLine  = 500      // bytes of a line
	maxWhole = 40 << 10 // bytes of an output of which the rules see every line
	maxHead  = 8 << 10  // bytes at the start of a longer one of which they see every line
	maxTail  = 24 << 10 // bytes at its end
	maxKept  = 32 << 10 // bytes of the lines in between that have a failure word, and of their neighbours
)

// Find returns the line of output that explains why the command failed. words are the
// programs of the command and their first arguments, in any order and case; they select
// the rules that are tried first. output has no terminal escape codes. Between the first
// 8 KiB and the last 24 KiB of an output above 40 KiB, Find reads only the lines near a
// word such as error or failed. The time is linear in the length of the output.
func Find(output string, words []string) Finding {
	o := readLines(output)
	if len(o.lines) == 0 {
		return Finding{}
	}
	families := allFamilies()
	named := namedFamilies(families, words)
	i := o.apply(named, false)
	if i < 0 {
		i = o.apply(families, false)
	}
	if i < 0 {
		i = o.apply(named, true)
	}
	if i < 0 {
		i = o.general()
	}
	return o.finding(i)
}

// line is one line of an output.
type line struct {
	text       string // with indentation, without white space at its end, at most maxLine bytes
	trim       string // text without indentation
	start, end int    // in the output
	kind       lineKind
}

// lineKind determines whether the general rules may select a line.
type lineKind uint8

const (
	unclassified lineKind = iota
	telling
	harmless    // has failure words but reports no failure
	meaningless // never explains a failure
)

// output is the output of a tool, split into lines, without blank ones.
type output struct {
	lines []line
}

func readLines(s string) *output {
	o := &output{}
	if len(s) <= maxWhole {
		o.read(s, 0, len(s))
		return o
	}
	at := o.read(s, 0, maxHead)
	tail := len(s) - maxTail
	if n := strings.IndexByte(s[tail:], '\n'); n >= 0 {
		tail += n + 1
	}
	o.readNear(s, min(at, tail), tail)
	o.read(s, max(at, tail), len(s))
	return o
}

// read adds the lines that start between two offsets and returns the offset after the
// last one.
func (o *output) read(s string, from, to int) int {
	at := from
	for at < to {
		end := lineEnd(s, at)
		o.add(s, at, end)
		at = end + 1
	}
	return min(at, len(s))
}

func lineEnd(s string, at int) int {
	if n := strings.IndexByte(s[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(s)
}

func (o *output) add(s string, at, end int) {
	if l := newLine(s[at:end]); l.trim != "" {
		l.start, l.end = at, end
		o.lines = append(o.lines, l)
	}
}

// readNear adds the lines between two offsets that have a failure word, each with the
// line before it and the four lines after it.
func (o *output) readNear(s string, from, to int) {
	const after = 4
	type place struct{ at, end int }
	var before place
	room, left := maxKept, 0
	for at := from; at < to && room > 0; {
		l := place{at, lineEnd(s, at)}
		at = l.end + 1
		switch {
		case hasSignal(s[l.at:l.end]):
			if left == 0 && before.end > 0 {
				o.add(s, before.at, before.end)
				room -= before.end - before.at
			}
			left = after
		case left > 0:
			left--
		default:
			before = l
			continue
		}
		o.add(s, l.at, l.end)
		room -= min(l.end-l.at, maxLine)
		before = place{}
	}
}

// hasSignal reports whether a line has a failure word, in any case.
func hasSignal(s string) bool {
	for i := 0; i+4 < len(s); i++ {
		var word string
		switch s[i] | 0x20 {
		case 'e':
			word = "error"
			if s[i+1]|0x20 == 'x' {
				word = "exception"
			}
		case 'f':
			word = "fail"
			if s[i+2]|0x20 == 't' {
				word = "fatal"
			}
		case 'p':
			word = "panic"
		case 'c':
			word = "conflict"
		case 'u':
			word = "undefined"
		default:
			continue
		}
		if len(s)-i >= len(word) && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// newLine returns a line as a terminal shows it: a carriage return starts the line
// again. Prefixes that a wrapper puts before each line of another tool are removed.
func newLine(s string) line {
	s = strings.TrimRight(s, " \t\r\u00a0")
	s = s[strings.LastIndexByte(s, '\r')+1:]
	if len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "")
	}
	s = withoutPrefix(s)
	return line{text: s, trim: strings.TrimSpace(s)}
}

// withoutPrefix removes the step prefix of docker build (#8 1.234) and the frame
// that some tools draw around errors.
func withoutPrefix(s string) string {
	if strings.HasPrefix(s, "#") {
		step, rest, ok := strings.Cut(s[1:], " ")
		seconds, inner, timed := strings.Cut(rest, " ")
		if ok && isNumber(step) && timed && isDecimal(seconds) {
			return inner
		}
	}
	if rest, ok := strings.CutPrefix(s, "│ "); ok {
		return strings.TrimRight(rest, " │")
	}
	return s
}

// apply returns the index of the line that the first matching rule of the families finds,
// or -1 if no rule matches.
func (o *output) apply(families []family, loose bool) int {
	for _, f := range families {
		rules := f.strict
		if loose {
			rules = f.loose
		}
		for _, find := range rules {
			if i := find(o); i >= 0 {
				return i
			}
		}
	}
	return -1
}

// finding returns the result for the line i.
func (o *output) finding(i int) Finding {
	if i < 0 {
		return Finding{}
	}
	l := o.lines[i]
	f := Finding{Text: strings.TrimPrefix(l.trim, "E   "), Start: l.start, End: l.end}
	if (strings.HasSuffix(l.trim, ":") || strings.HasPrefix(l.trim, "ERROR in ")) && i+1 < len(o.lines) {
		if next := o.lines[i+1]; isContinuation(next.trim) {
			f.Text += " " + next.trim
			f.End = next.end
			i++
		}
	}
	f.Text = strings.Join(strings.Fields(f.Text+o.values(i+1)), " ")
	if len(f.Text) > maxLine {
		f.Text = strings.ToValidUTF8(f.Text[:maxLine], "")
	}
	return f
}

// isContinuation reports whether a line can end the sentence of the line above it.
func isContinuation(s string) bool {
	return !isExitCode(s) && !isBanner(s) && !isFrame(s) &&
		strings.ContainsFunc(s, func(r rune) bool { return isLetter(r) || r >= '0' && r <= '9' })
}

// values returns the expected and the actual value that a test framework prints near the
// failure message, or "" if there are none.
func (o *output) values(from int) (values string) {
	const near = 8
	for i, n := from, 0; i < len(o.lines) && i < from+near && n < 2; i++ {
		s := o.lines[i].trim
		name, value, ok := strings.Cut(strings.ToLower(s), ":")
		if !ok || strings.TrimSpace(value) == "" {
			continue
		}
		switch strings.TrimSpace(name) {
		case "expected", "received", "got", "actual", "left", "right", "want", "have":
			values += ", " + s
			n++
		}
	}
	return values
}

// family is a group of tools that print failures alike.
type family struct {
	programs string // names separated by spaces
	strict   []rule // for lines that only this family prints
	loose    []rule // for lines that other tools print too
}

// rule returns the index of the line that it finds, or -1 if it finds none.
type rule func(o *output) int

// namedFamilies returns the families that the words of a command name, in the
// order of the words, each once.
func namedFamilies(families []family, words []string) (named []family) {
	taken := map[int]bool{}
	for _, w := range words {
		w = strings.ToLower(w)
		for i, f := range families {
			if !taken[i] && hasWord(f.programs, w) {
				taken[i] = true
				named = append(named, f)
			}
		}
	}
	return named
}

func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// first returns the first line for which match is true.
func first(match func(string) bool) rule {
	return func(o *output) int {
		for i := range o.lines {
			if match(o.lines[i].trim) {
				return i
			}
		}
		return -1
	}
}

// last returns the last line for which match is true.
func last(match func(string) bool) rule {
	return func(o *output) int {
		for i := len(o.lines) - 1; i >= 0; i-- {
			if match(o.lines[i].trim) {
				return i
			}
		}
		return -1
	}
}

// starting matches lines that start with one of the texts.
func starting(prefixes ...string) func(string) bool {
	return func(s string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(s, p) {
				return true
			}
		}
		return false
	}
}

// holding matches lines that contain one of the texts.
func holding(parts ...string) func(string) bool {
	return func(s string) bool {
		for _, p := range parts {
			if strings.Contains(s, p) {
				return true
			}
		}
		return false
	}
}

// but matches lines that match and that do not match unless.
func but(match, unless func(string) bool) func(string) bool {
	return func(s string) bool { return match(s) && !unless(s) }
}
