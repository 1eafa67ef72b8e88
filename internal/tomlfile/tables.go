package tomlfile

import (
	"bytes"

	"github.com/pelletier/go-toml/v2/unstable"
)

// Table is the position of a table in a text. [Start, End) begins with the first byte of the
// header's line. It ends with the line of the last key, without trailing comments and blank
// lines.
type Table struct {
	Name       []string // the dotted name
	Start, End int
	HeaderEnd  int // after the header's line
	Keys       []Key
}

// Key is the position of one assignment of a table: [Start, End) is name to value, without
// indentation and comment.
type Key struct {
	Name       []string
	Start, End int
}

// Tables lists the tables of a text in order, including tables of arrays. Keys before the
// first header belong to no table. The error is the parser's.
func Tables(text []byte) ([]Table, error) {
	var p unstable.Parser
	p.Reset(text)
	var out []Table
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			t := Table{}
			var last unstable.Range
			for it := e.Key(); it.Next(); {
				t.Name = append(t.Name, string(it.Node().Data))
				if len(t.Name) == 1 {
					t.Start = lineStart(text, int(it.Node().Raw.Offset))
				}
				last = it.Node().Raw
			}
			t.HeaderEnd = lineEnd(text, int(last.Offset+last.Length))
			t.End = t.HeaderEnd
			out = append(out, t)
		case unstable.KeyValue:
			if len(out) == 0 {
				continue
			}
			t := &out[len(out)-1]
			k := Key{Start: int(e.Raw.Offset), End: int(e.Raw.Offset + e.Raw.Length)}
			for it := e.Key(); it.Next(); {
				k.Name = append(k.Name, string(it.Node().Data))
			}
			t.Keys = append(t.Keys, k)
			t.End = lineEnd(text, k.End)
		}
	}
	return out, p.Error()
}

func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// lineEnd returns the position after the line break of a byte's line.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}
