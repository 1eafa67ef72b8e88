package wiring

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"
)

// field is one member of an object to write.
type field struct {
	name  string
	value any // string, int, bool, []string, []any or []field
}

// render returns the JSON text of a value. indent is the indentation of its first line.
func (s style) render(v any, indent string) string {
	var open, end string
	var parts []string
	inner := indent + s.unit
	switch v := v.(type) {
	case string:
		return string(hujson.String(v))
	case int:
		return string(hujson.Int(int64(v)))
	case bool:
		return string(hujson.Bool(v))
	case []string: // on one line
		for _, e := range v {
			parts = append(parts, string(hujson.String(e)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []any:
		open, end = "[", "]"
		for _, e := range v {
			parts = append(parts, s.render(e, inner))
		}
	case []field:
		open, end = "{", "}"
		for _, f := range v {
			parts = append(parts, string(hujson.String(f.name))+": "+s.render(f.value, inner))
		}
	}
	if !s.lines {
		return open + strings.Join(parts, ", ") + end
	}
	nl := s.newline + inner
	return open + nl + strings.Join(parts, ","+nl) + s.newline + indent + end
}

// add adds a value after the last item of a container, under a name if it is an object. outer is
// the indentation of the line on which the container opens.
func (s style) add(c items, name string, v any, outer string) error {
	g := s.gap(c, outer)
	inner := s
	inner.lines = g.lines
	value, err := hujson.Parse([]byte(inner.render(v, g.indent)))
	if err != nil {
		return err
	}
	if n := c.len(); n > 0 && *c.after(n - 1) != nil {
		value.AfterExtra = hujson.Extra{} // keep the trailing comma
	}
	*c.closing() = g.closing
	if c.array != nil {
		value.BeforeExtra = g.before
		c.array.Elements = append(c.array.Elements, value)
		return nil
	}
	key := hujson.Value{BeforeExtra: g.before, Value: hujson.String(name)}
	value.BeforeExtra = hujson.Extra(" ")
	c.object.Members = append(c.object.Members, hujson.ObjectMember{Name: key, Value: value})
	return nil
}

// gap is the spacing of a new last item.
type gap struct {
	before, closing hujson.Extra
	indent          string // of the item's line
	lines           bool
}

func (s style) gap(c items, outer string) gap {
	n, closing := c.len(), *c.closing()
	if n == 0 {
		if !s.lines {
			return gap{before: closing, indent: outer}
		}
		g := gap{indent: outer + s.unit, lines: true, closing: hujson.Extra(s.newline + outer)}
		kept, _ := cutLastLine(closing)
		if !hasComment(closing) {
			kept = nil
		}
		g.before = join(kept, s.newline+g.indent)
		return g
	}
	last := string(*c.before(n - 1))
	if !strings.Contains(last, "\n") {
		if hasComment(closing) {
			return gap{before: closing, indent: outer}
		}
		before := " "
		if !s.lines && last == "" { // a text without any white space
			before = ""
		}
		return gap{before: hujson.Extra(before), closing: closing, indent: outer}
	}
	g := gap{indent: indentation(last), lines: true}
	kept, end := cutLastLine(closing)
	g.before, g.closing = join(kept, s.newline+g.indent), end
	if hasComment(closing) && end == nil {
		g.closing = hujson.Extra(s.newline + outer)
	}
	return g
}

// cutLastLine splits an extra before its last line break if only white space follows. Otherwise
// kept is the whole extra and end is nil.
func cutLastLine(e hujson.Extra) (kept, end hujson.Extra) {
	i := bytes.LastIndexByte(e, '\n')
	if i < 0 || len(bytes.TrimSpace(e[i:])) > 0 {
		return e, nil
	}
	if i > 0 && e[i-1] == '\r' {
		i--
	}
	return e[:i], e[i:]
}

func join(e hujson.Extra, tail string) hujson.Extra {
	return append(bytes.Clone(e), tail...)
}

func hasComment(e hujson.Extra) bool { return bytes.IndexByte(e, '/') >= 0 }

// drop removes the item i from a container. Comments before the item stay. was is the same
// container in the text before the first addition, nil if it did not exist. From was, drop
// restores the space before the closing bracket.
func (s style) drop(c items, i int, was *items) {
	n := c.len()
	before := *c.before(i)
	kept, _ := cutLastLine(before)
	if !hasComment(kept) {
		kept = nil
	}
	comma := *c.after(i) != nil
	if c.object != nil {
		c.object.Members = append(c.object.Members[:i:i], c.object.Members[i+1:]...)
	} else {
		c.array.Elements = append(c.array.Elements[:i:i], c.array.Elements[i+1:]...)
	}
	switch {
	case i < n-1:
		next := c.before(i)
		if bytes.IndexByte(*next, '\n') < 0 && bytes.IndexByte(before, '\n') >= 0 { // the next item takes over the line
			kept, *next = before, bytes.TrimLeft(*next, " \t")
		}
		*next = s.joinComments(kept, *next)
		return
	case n == 1:
		if *c.closing() = s.joinComments(kept, *c.closing()); !hasComment(*c.closing()) {
			*c.closing() = nil
		}
	default:
		prev := c.after(n - 2)
		if comma && *prev == nil {
			*prev = hujson.Extra{}
		} else if !comma && *prev != nil {
			kept = join(*prev, string(kept))
			*prev = nil
		}
		*c.closing() = s.joinComments(kept, *c.closing())
	}
	if was != nil && was.len() == c.len() && sameComments(*was.closing(), *c.closing()) {
		*c.closing() = *was.closing()
	}
}

// joinComments joins two extras. The first may end in a line comment without its line break.
func (s style) joinComments(a, b hujson.Extra) hujson.Extra {
	if out := join(a, string(b)); len(a) == 0 || out.IsValid() {
		return out
	}
	return join(join(a, s.newline), string(b))
}

// sameComments reports whether two extras differ only in white space.
func sameComments(a, b hujson.Extra) bool {
	return bytes.Equal(bytes.Join(bytes.Fields(a), nil), bytes.Join(bytes.Fields(b), nil))
}
