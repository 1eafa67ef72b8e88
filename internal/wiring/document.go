package wiring

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"
)

// document is a JSON text, with or without comments, that is edited in place:
// everything that is not touched packs into the same bytes again.
type document struct {
	bom   bool
	blank bool // there was nothing but white space
	root  hujson.Value
	style style
}

// style is how a text is laid out, for what is added to it.
type style struct {
	newline string
	unit    string // of indentation
	lines   bool   // members stand on lines of their own
}

const bom = "\ufeff"

// parseDocument reads a text whose top level must be an object; white space
// alone counts as an empty one.
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

// indentation returns the white space between the last line break of an extra and
// what follows it.
func indentation(extra string) string {
	line := extra[strings.LastIndexByte(extra, '\n')+1:]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// member returns a member's value by its name, nil if there is none. Of several with
// one name the last counts, as it does for the readers of these files.
func member(o *hujson.Object, name string) *hujson.Value {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if text(o.Members[i].Name) == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// text returns the string that a value holds, "" if it is not a string.
func text(v hujson.Value) string {
	if l, ok := v.Value.(hujson.Literal); ok && l.Kind() == '"' {
		return l.String()
	}
	return ""
}

// texts returns the strings of an array, false if it is not one or holds anything else.
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

// items are the members of an object or the elements of an array, which are
// spaced by the same rules.
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

// before is what stands before an item.
func (c items) before(i int) *hujson.Extra {
	if c.object != nil {
		return &c.object.Members[i].Name.BeforeExtra
	}
	return &c.array.Elements[i].BeforeExtra
}

// after is what stands between an item and its comma; of the last one it is nil
// if there is no comma.
func (c items) after(i int) *hujson.Extra {
	if c.object != nil {
		return &c.object.Members[i].Value.AfterExtra
	}
	return &c.array.Elements[i].AfterExtra
}

// closing is what stands before the closing bracket.
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
