package wiring

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"
)

// document is a JSON text, with or without comments, that is edited in place. Parts that are not
// edited are packed into the same bytes.
type document struct {
	bom   bool
	blank bool // the text contained only white space
	root  hujson.Value
	style style
}

// style is the layout of a text, used for additions to it.
type style struct {
	newline string
	unit    string // one level of indentation
	lines   bool   // each member is on its own line
}

const bom = "\ufeff"

// parseDocument parses a text whose top level must be an object. A text of only white space
// counts as an empty object.
func parseDocument(text []byte) (*document, error) {
	d := &document{style: style{newline: "\n", unit: "  ", lines: true}}
	rest, ok := bytes.CutPrefix(text, []byte(bom))
	d.bom = ok
	if bytes.Contains(rest, []byte("\r\n")) {
		d.style.newline = "\r\n"
	}
	if len(bytes.TrimSpace(rest)) == 0 {
		d.blank = true
		d.root = hujson.Value{Value: &hujson.Object{}, AfterExtra: hujson.Extra(d.style.newline)}
		return d, nil
	}
	var err error
	if d.root, err = hujson.Parse(rest); err != nil {
		return nil, err
	}
	root, ok := d.root.Value.(*hujson.Object)
	if !ok {
		return nil, errShape("the top level", "an object")
	}
	if len(root.Members) > 0 {
		first := string(root.Members[0].Name.BeforeExtra)
		d.style.lines = strings.Contains(first, "\n")
		if unit := indentation(first); d.style.lines && unit != "" {
			d.style.unit = unit
		}
	}
	return d, nil
}

func (d *document) object() *hujson.Object { return d.root.Value.(*hujson.Object) }

func (d *document) pack() []byte {
	if d.bom {
		return append([]byte(bom), d.root.Pack()...)
	}
	return d.root.Pack()
}

// indentation returns the white space after the last line break of an extra.
func indentation(extra string) string {
	line := extra[strings.LastIndexByte(extra, '\n')+1:]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// member returns the value of the named member, nil if it does not exist. If several members
// have the name, the last one counts, as for the readers of these files.
func member(o *hujson.Object, name string) *hujson.Value {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if text(o.Members[i].Name) == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// text returns a string value, "" if the value is not a string.
func text(v hujson.Value) string {
	if l, ok := v.Value.(hujson.Literal); ok && l.Kind() == '"' {
		return l.String()
	}
	return ""
}

// texts returns the strings of an array. It returns false if the value is not an array or
// contains other values.
func texts(v *hujson.Value) ([]string, bool) {
	if v == nil {
		return nil, false
	}
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, false
	}
	out := []string{}
	for _, e := range a.Elements {
		if l, ok := e.Value.(hujson.Literal); !ok || l.Kind() != '"' {
			return nil, false
		}
		out = append(out, text(e))
	}
	return out, true
}

// items are the members of an object or the elements of an array. Both follow the same spacing
// rules.
type items struct {
	object *hujson.Object
	array  *hujson.Array
}

func itemsOf(v *hujson.Value) (items, bool) {
	if v == nil {
		return items{}, false
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		return items{object: c}, true
	case *hujson.Array:
		return items{array: c}, true
	}
	return items{}, false
}

func (c items) len() int {
	if c.object != nil {
		return len(c.object.Members)
	}
	return len(c.array.Elements)
}

// before returns the white space and comments before an item.
func (c items) before(i int) *hujson.Extra {
	if c.object != nil {
		return &c.object.Members[i].Name.BeforeExtra
	}
	return &c.array.Elements[i].BeforeExtra
}

// after returns the white space and comments between an item and its comma. It is nil for a last
// item without a comma.
func (c items) after(i int) *hujson.Extra {
	if c.object != nil {
		return &c.object.Members[i].Value.AfterExtra
	}
	return &c.array.Elements[i].AfterExtra
}

// closing returns the white space and comments before the closing bracket.
func (c items) closing() *hujson.Extra {
	if c.object != nil {
		return &c.object.AfterExtra
	}
	return &c.array.AfterExtra
}

func (c items) value(i int) *hujson.Value {
	if c.object != nil {
		return &c.object.Members[i].Value
	}
	return &c.array.Elements[i]
}
