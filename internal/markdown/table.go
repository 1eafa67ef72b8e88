package markdown

import "strings"

const (
	maxColumns = 100
	maxPadded  = 20_000 // cells of a text that its rows do not write themselves
)

// gfmTable reads a table: a row of heads, a row of dashes with as many cells, and
// what follows until a blank line or another block.
func gfmTable(in []string) (*node, int) {
	if len(in) < 2 || !strings.Contains(in[1], "-") || strings.Trim(in[1], "|:- \t") != "" || !strings.ContainsAny(in[0]+in[1], "|") {
		return nil, 0
	}
	heads, dashes := cells(in[0]), cells(in[1])
	if len(heads) != len(dashes) || len(heads) > maxColumns {
		return nil, 0
	}
	n := &node{kind: table, cells: heads}
	for _, d := range dashes {
		line := strings.TrimSuffix(strings.TrimPrefix(d, ":"), ":")
		if line == "" || strings.Trim(line, "-") != "" {
			return nil, 0
		}
		left, right := strings.HasPrefix(d, ":"), strings.HasSuffix(d, ":")
		switch {
		case left && right:
			n.align = append(n.align, "center")
		case right:
			n.align = append(n.align, "right")
		default:
			n.align = append(n.align, "")
		}
	}
	used := 2
	for used < len(in) && !begins(in[used], 0) {
		row := cells(in[used])
		n.rows = append(n.rows, row[:min(len(row), len(heads))])
		used++
	}
	return n, used
}

// cells cuts a row at its bars; a bar behind a backslash is none.
func cells(line string) (out []string) {
	line = strings.Trim(line, " \t")
	line = strings.TrimPrefix(line, "|")
	start := 0
	var cell strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteString(line[start:i])
			start = i + 1
			i++
		case line[i] == '\\':
			i++
		case line[i] == '|':
			cell.WriteString(line[start:i])
			out = append(out, strings.Trim(cell.String(), " \t"))
			cell.Reset()
			start = i + 1
		}
	}
	cell.WriteString(line[min(start, len(line)):])
	if last := strings.Trim(cell.String(), " \t"); last != "" || len(out) == 0 {
		out = append(out, last)
	}
	return out
}
