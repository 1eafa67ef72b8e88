package markdown

import "strings"

// mark is what an item of a list begins with.
type mark struct {
	width   int // to where its text begins; 0 for no mark
	sign    int // without the blanks
	kind    byte
	ordered bool
	start   int
	empty   bool // nothing stands behind it
}

// marker reads the mark at the beginning of a line.
func marker(rest string) mark {
	m := sign(rest)
	if m.sign == 0 {
		return m
	}
	behind := untabAt(rest[m.sign:], m.sign)
	blanks := indent(behind)
	switch {
	case blanks == len(behind):
		m.empty, blanks = true, 1
	case blanks == 0:
		return mark{}
	case blanks > 4:
		blanks = 1 // the text begins with code
	}
	m.width = m.sign + blanks
	return m
}

// sign reads a mark without looking at what is behind it.
func sign(rest string) (m mark) {
	end := 0
	for end < len(rest) && end < 9 && rest[end] >= '0' && rest[end] <= '9' {
		m.start = m.start*10 + int(rest[end]-'0')
		end++
	}
	if end == len(rest) {
		return mark{}
	}
	m.sign, m.kind, m.ordered = end+1, rest[end], end > 0
	if m.ordered && (m.kind == '.' || m.kind == ')') || !m.ordered && strings.IndexByte("-+*", m.kind) >= 0 && !isRule(rest) {
		return m
	}
	return mark{}
}

// list reads a list and its items.
func (p *parser) list(in []string, depth int) (*node, int) {
	first := marker(strings.TrimLeft(untab(in[0]), " "))
	out := &node{kind: list, ordered: first.ordered, level: first.start}
	used := 0
	for used < len(in) {
		line := untab(in[used])
		ind := indent(line)
		rest := line[ind:]
		if rest == "" || ind >= 4 {
			break
		}
		m := marker(rest)
		if m.width == 0 || m.kind != first.kind || m.ordered != first.ordered {
			break
		}
		inner, n, apart := within(in[used:], ind+m.width, ind, m)
		i := &node{kind: item}
		inner = i.box(inner)
		var loose bool
		i.kids, loose = p.blocks(inner, depth+1)
		out.kids = append(out.kids, i)
		used += n
		more := used < len(in) && follows(in[used], first)
		out.loose = out.loose || loose || apart && more
		if !more {
			break
		}
	}
	return out, used
}

// follows reports whether a line is another item of a list.
func follows(line string, first mark) bool {
	line = untab(line)
	ind := indent(line)
	if ind >= 4 || ind == len(line) {
		return false
	}
	m := marker(line[ind:])
	return m.width > 0 && m.kind == first.kind && m.ordered == first.ordered
}

// within takes the lines of an item, without its mark and the blanks below it. Blank
// lines at its end are used up but not its own; apart says that there were some.
func within(in []string, width, ind int, m mark) (inner []string, used int, apart bool) {
	var open follow
	text := untabAt(untab(in[0])[ind+m.sign:], m.sign)
	text = text[min(len(text), m.width-m.sign):]
	inner = append(inner, text)
	open.see(text)
	used = 1
	blank := 0
	for i := 1; i < len(in); i++ {
		line := untab(in[i])
		switch {
		case isBlank(line):
			if m.empty && i == 1 {
				return inner, 2, true // an item that begins with two blank lines is empty
			}
			blank++
			open.see("")
			continue
		case indent(line) >= width:
			line = line[width:]
		case blank > 0 || !open.lazy(line):
			return inner, used + blank, blank > 0
		}
		for ; blank > 0; blank-- {
			inner = append(inner, "")
			used++
		}
		open.see(line)
		inner = append(inner, line)
		used++
	}
	return inner, used + blank, blank > 0
}

// box takes the box of a task off an item's first line.
func (n *node) box(inner []string) []string {
	text := strings.TrimLeft(inner[0], " ")
	if len(text) < 4 || text[0] != '[' || text[2] != ']' || text[3] != ' ' && text[3] != '\t' || isBlank(text[3:]) {
		return inner
	}
	switch text[1] {
	case ' ':
		n.task = '☐'
	case 'x', 'X':
		n.task = '☑'
	default:
		return inner
	}
	return append([]string{strings.TrimLeft(text[3:], " \t")}, inner[1:]...)
}
