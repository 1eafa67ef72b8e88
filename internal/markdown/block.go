package markdown

import (
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep blocks are followed into one another.
const maxDepth = 24

type kind int

const (
	paragraph kind = iota
	heading
	quote
	list
	item
	code
	rule
	table
)

// node is a block.
type node struct {
	kind    kind
	text    string   // of a paragraph, heading or code
	level   int      // of a heading; the number of a list's first item
	info    string   // of a code block: its language
	ordered bool     // of a list
	loose   bool     // of a list: its items are set apart
	task    rune     // of an item: its box, 0 for none
	cells   []string // of a table: the heads; see rows
	align   []string // of its columns
	rows    [][]string
	kids    []*node
}

// parser reads blocks.
type parser struct {
	refs map[string]string // destination of a label
}

// lines cuts a text, with characters that no page may hold replaced.
func lines(text string) []string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", string(utf8.RuneError)).Replace(text)
	return strings.Split(text, "\n")
}

// blocks reads lines; those of an item or a quote come without its marks. apart says
// that a blank line stands between two of the blocks.
func (p *parser) blocks(in []string, depth int) (out []*node, apart bool) {
	before := false
	for i := 0; i < len(in); {
		line := untab(in[i])
		ind := indent(line)
		rest := line[ind:]
		if rest == "" {
			i++
			continue
		}
		apart = apart || before && isBlank(in[i-1])
		before = true
		switch {
		case ind >= 4:
			n, used := indented(in[i:])
			out, i = append(out, n), i+used
		case fence(rest) != "":
			n, used := fenced(in[i:], ind)
			out, i = append(out, n), i+used
		case isRule(rest):
			out, i = append(out, &node{kind: rule}), i+1
		case atx(rest) > 0:
			out, i = append(out, headed(rest)), i+1
		case rest[0] == '>' && depth < maxDepth:
			inner, used := quoted(in[i:])
			kids, _ := p.blocks(inner, depth+1)
			out, i = append(out, &node{kind: quote, kids: kids}), i+used
		case marker(rest).width > 0 && depth < maxDepth:
			n, used := p.list(in[i:], depth)
			out, i = append(out, n), i+used
		default:
			n, used := p.paragraph(in[i:], depth)
			if n != nil {
				out = append(out, n)
			}
			i += used
		}
	}
	return out, apart
}

// begins reports whether a line ends the paragraph before it by beginning something.
func begins(line string, depth int) bool {
	line = untab(line)
	ind := indent(line)
	rest := line[ind:]
	if rest == "" {
		return true
	}
	if ind >= 4 {
		return false
	}
	m := marker(rest)
	return fence(rest) != "" || isRule(rest) || atx(rest) > 0 ||
		depth < maxDepth && (rest[0] == '>' || m.width > 0 && !m.empty && (!m.ordered || m.start == 1))
}

func (p *parser) paragraph(in []string, depth int) (*node, int) {
	used := 1
	for used < len(in) && !begins(in[used], depth) {
		if level := underline(in[used]); level > 0 {
			if text := p.definitions(in[:used]); text != "" {
				return &node{kind: heading, level: level, text: text}, used + 1
			}
		}
		if n, rows := gfmTable(in[used-1:]); n != nil {
			if used == 1 {
				return n, rows
			}
			break // the table begins with the line before
		}
		used++
	}
	if used < len(in) && underline(in[used]) > 0 { // --- is a rule as well
		if text := p.definitions(in[:used]); text != "" {
			return &node{kind: heading, level: underline(in[used]), text: text}, used + 1
		}
	}
	if used > 1 {
		if n, _ := gfmTable(in[used-1:]); n != nil {
			used--
		}
	}
	text := p.definitions(in[:used])
	if text == "" {
		return nil, used
	}
	return &node{kind: paragraph, text: text}, used
}

// definitions takes definitions of links off the beginning of a paragraph and
// returns its text.
func (p *parser) definitions(in []string) string {
	text := make([]string, 0, len(in))
	for i, line := range in {
		line = strings.TrimLeft(line, " \t")
		if len(text) == 0 {
			if label, to, ok := definition(line); ok {
				if _, there := p.refs[label]; !there {
					p.refs[label] = to
				}
				continue
			}
		}
		if i == len(in)-1 {
			line = strings.TrimRight(line, " \t")
		}
		text = append(text, line)
	}
	return strings.Join(text, "\n")
}

// untab writes the tabs that a line begins with as blanks.
func untab(line string) string { return untabAt(line, 0) }

// untabAt is untab of the end of a line, from a column on.
func untabAt(line string, column int) string {
	if !strings.Contains(line[:len(line)-len(strings.TrimLeft(line, " \t"))], "\t") {
		return line
	}
	width := column
	for i, c := range []byte(line) {
		switch c {
		case ' ':
			width++
		case '\t':
			width += 4 - width%4
		default:
			return strings.Repeat(" ", width-column) + line[i:]
		}
	}
	return ""
}

// indent counts the blanks that a line begins with; a blank line has as many as it
// is long.
func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// without takes up to n blanks off a line.
func without(line string, n int) string {
	line = untab(line)
	return line[min(n, indent(line)):]
}

func isBlank(line string) bool { return strings.TrimLeft(line, " \t") == "" }

// isRule reports whether a line is a thematic break.
func isRule(rest string) bool {
	c, n := rest[0], 0
	if c != '*' && c != '-' && c != '_' {
		return false
	}
	for i := range len(rest) {
		switch rest[i] {
		case c:
			n++
		case ' ', '\t':
		default:
			return false
		}
	}
	return n >= 3
}

// underline is the level of the heading whose line a line stands under, 0 for none.
func underline(line string) int {
	line = untab(line)
	if indent(line) >= 4 {
		return 0
	}
	line = strings.Trim(line, " \t")
	switch {
	case line == "":
		return 0
	case strings.Trim(line, "=") == "":
		return 1
	case strings.Trim(line, "-") == "":
		return 2
	}
	return 0
}

// atx is the level of a heading, 0 for none.
func atx(rest string) int {
	n := len(rest) - len(strings.TrimLeft(rest, "#"))
	if n < 1 || n > 6 || len(rest) > n && rest[n] != ' ' && rest[n] != '\t' {
		return 0
	}
	return n
}

func headed(rest string) *node {
	level := atx(rest)
	text := strings.Trim(rest[level:], " \t")
	if end := strings.TrimRight(text, "#"); end == "" || strings.HasSuffix(end, " ") || strings.HasSuffix(end, "\t") {
		text = strings.TrimRight(end, " \t")
	}
	return &node{kind: heading, level: level, text: text}
}

// fence is the run of marks by which a line opens a code block, "" for none.
func fence(rest string) string {
	if rest == "" || rest[0] != '`' && rest[0] != '~' {
		return ""
	}
	n := len(rest) - len(strings.TrimLeft(rest, rest[:1]))
	if n < 3 || rest[0] == '`' && strings.Contains(rest[n:], "`") {
		return ""
	}
	return rest[:n]
}

// closes reports whether a line ends the code block that a fence opened.
func closes(line, open string) bool {
	line = untab(line)
	if indent(line) >= 4 {
		return false
	}
	line = strings.Trim(line, " \t")
	return len(line) >= len(open) && strings.Trim(line, open[:1]) == ""
}

func fenced(in []string, ind int) (*node, int) {
	first := untab(in[0])[ind:]
	open := fence(first)
	n := &node{kind: code, info: strings.Trim(first[len(open):], " \t")}
	used := 1
	var text strings.Builder
	for ; used < len(in); used++ {
		if closes(in[used], open) {
			used++
			break
		}
		line := in[used]
		if ind > 0 {
			line = without(line, ind)
		}
		text.WriteString(line + "\n")
	}
	n.text = text.String()
	return n, used
}

func indented(in []string) (*node, int) {
	var text strings.Builder
	used, blank := 0, 0
	for i, line := range in {
		if isBlank(line) {
			blank++
			continue
		}
		if indent(untab(line)) < 4 {
			break
		}
		text.WriteString(strings.Repeat("\n", blank))
		text.WriteString(without(line, 4) + "\n")
		used, blank = i+1, 0
	}
	return &node{kind: code, text: text.String()}, used
}

// quoted takes the marks off the lines of a quote, and those lines that go on with
// its last paragraph without one.
func quoted(in []string) (inner []string, used int) {
	var open follow
	for _, line := range in {
		line = untab(line)
		if ind := indent(line); ind < 4 && strings.HasPrefix(line[ind:], ">") {
			line = untab(line[ind+1:])
			line = strings.TrimPrefix(line, " ")
		} else if !open.lazy(line) {
			break
		}
		open.see(line)
		inner = append(inner, line)
		used++
	}
	return inner, used
}

// follow tells whether lines without the marks of their container may go on with
// what it holds.
type follow struct {
	fence string // of an open code block
	text  bool   // the last line is a paragraph's
}

// lazy reports whether a line goes on with the paragraph before. An item of any
// number does not.
func (f *follow) lazy(line string) bool {
	if !f.text || begins(line, 0) {
		return false
	}
	line = untab(line)
	ind := indent(line)
	return ind >= 4 || marker(line[ind:]).width == 0
}

// see takes note of a line of the container.
func (f *follow) see(line string) {
	ind := 0
	for range maxDepth { // the marks of what is in it
		line = untab(line)
		ind = indent(line)
		rest := line[ind:]
		if f.fence != "" || ind >= 4 || rest == "" || isRule(rest) {
			break
		}
		if rest[0] == '>' {
			line = strings.TrimPrefix(rest[1:], " ")
		} else if m := marker(rest); m.width > 0 {
			line = rest[min(m.width, len(rest)):]
		} else {
			break
		}
	}
	rest := line[min(ind, len(line)):]
	switch {
	case f.fence != "":
		if closes(line, f.fence) {
			f.fence = ""
		}
		f.text = false
	case rest == "":
		f.text = false
	case ind >= 4:
	case fence(rest) != "":
		f.fence, f.text = fence(rest), false
	default:
		f.text = !isRule(rest) && atx(rest) == 0
	}
}
