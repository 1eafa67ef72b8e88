package wiring

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// statusMember is the member of a settings file that names the program for the line below the
// prompt.
const statusMember = "statusLine"

// statusLine is the wanted status line of a file.
type statusLine struct {
	want    bool // false: cairn's line is removed
	program string
	shell   shell
	windows bool
}

func statusArgs() []string { return []string{"status", "--line"} }

// call returns the call of a status line. ours is true if it calls only cairn. It is false for a
// user's script that also calls cairn.
func (s *statusLine) call(v *hujson.Value) (c call, ours bool) {
	if v == nil {
		return c, false
	}
	o, ok := v.Value.(*hujson.Object)
	if !ok || member(o, "command") == nil {
		return c, false
	}
	words := splitLine(text(*member(o, "command")), s.windows)
	if len(words) == 0 {
		return c, false
	}
	c = call{program: words[0], args: words[1:]}
	return c, strings.EqualFold(baseName(c.program), serverName) && slices.Equal(c.args, statusArgs())
}

// editStatusLine sets the status line of a file to the wanted content. It keeps the user's own
// line.
func (d *document) editStatusLine(s *statusLine, was *document) error {
	root := items{object: d.object()}
	value := member(root.object, statusMember)
	c, ours := s.call(value)
	switch {
	case value == nil && s.want:
		entry := []field{{"type", "command"}, {"command", s.shell.line(s.program, statusArgs())}}
		return d.style.add(root, statusMember, entry, "")
	case ours && s.want && c.program != s.program:
		outer := d.indentOfMember(root, statusMember, "")
		return d.set(value.Value.(*hujson.Object), field{"command", s.shell.line(s.program, statusArgs())}, outer)
	case ours && !s.want:
		d.dropMember(root, statusMember, was)
	}
	return nil
}

// foreignStatusLine reports whether a file has a status line that is not cairn's.
func (c contents) foreignStatusLine() bool {
	if c.status == nil || c.doc == nil {
		return false
	}
	value := member(c.doc.object(), statusMember)
	_, ours := c.status.call(value)
	return value != nil && !ours
}
