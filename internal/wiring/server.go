package wiring

import (
	"errors"
	"strings"

	"github.com/tailscale/hujson"
)

// serverName is the name of the MCP server in every harness, and of the plugin.
const serverName = "cairn"

// errForeign is the error for a third-party server named cairn, which is not changed.
var errForeign = errors.New("another MCP server is called cairn")

// call returns the call of a server's entry.
func (s *server) call(entry *hujson.Object) call {
	command := member(entry, "command")
	if command == nil {
		return call{}
	}
	if words, ok := texts(command); ok && len(words) > 0 && s.form.OneList {
		return call{program: words[0], args: words[1:], apart: true}
	}
	c := call{program: text(*command)}
	c.args, c.apart = texts(member(entry, "args"))
	return c
}

func (c call) runsServer() bool {
	return strings.EqualFold(baseName(c.program), serverName) && len(c.args) > 0 && c.args[0] == "serve"
}

// right reports whether a server's entry is correct. The user may have added arguments, an
// environment and other members. An entry of an earlier cairn, without arguments, is not correct
// if arguments are required.
func (s *server) right(c call) bool {
	return c.program == s.program && len(c.args) > 0 && c.args[0] == "serve" && !s.bare(c)
}

// bare reports whether an entry lacks the required arguments and has none of the user's own.
func (s *server) bare(c call) bool { return len(c.args) == 1 && len(s.args) > 1 }

// argsFor returns the wanted arguments of an entry. The user's own arguments are kept.
func (s *server) argsFor(c call) []string {
	if len(c.args) > 0 && c.args[0] == "serve" && !s.bare(c) {
		return c.args
	}
	return s.args
}

// ours reports whether a server's entry calls cairn.
func (s *server) ours(c call) bool {
	return c.runsServer() || c.program == s.program && len(c.args) > 0 && c.args[0] == "serve"
}

// editServer sets the MCP server of a file to the wanted content.
func (d *document) editServer(s *server, was *document) error {
	root := items{object: d.object()}
	value := member(root.object, s.form.Under)
	if value == nil {
		if !s.want {
			return nil
		}
		return d.style.add(root, s.form.Under, []field{{serverName, s.entry()}}, "")
	}
	servers, ok := itemsOf(value)
	if !ok || servers.object == nil {
		if !s.want {
			return nil
		}
		return errShape(s.form.Under, "an object")
	}
	outer := d.indentOfMember(root, s.form.Under, "")
	entry := member(servers.object, serverName)
	if entry == nil {
		if !s.want {
			return nil
		}
		return d.style.add(servers, serverName, s.entry(), outer)
	}
	o, ok := entry.Value.(*hujson.Object)
	switch ours := ok && s.ours(s.call(o)); {
	case !ours && s.want:
		return errForeign
	case !ours:
		return nil
	case s.want:
		return d.correctServer(s, o, d.indentOfMember(servers, serverName, outer))
	}
	d.style.dropNamed(servers, serverName, was.items(s.form.Under))
	if servers.len() == 0 && was.items(s.form.Under) == nil {
		d.dropMember(root, s.form.Under, was)
	}
	return nil
}

func (d *document) correctServer(s *server, o *hujson.Object, indent string) error {
	c := s.call(o)
	if s.right(c) {
		return nil
	}
	for _, f := range s.fields(s.argsFor(c)) {
		if err := d.set(o, f, indent); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the members of an entry that define its call.
func (s *server) fields(args []string) []field {
	if s.form.OneList {
		return []field{{"command", append([]string{s.program}, args...)}}
	}
	return []field{{"command", s.program}, {"args", args}}
}

func (s *server) entry() []field {
	fields := s.fields(s.args)
	if s.form.Type != "" {
		fields = append([]field{{"type", s.form.Type}}, fields...)
	}
	if s.form.Tools {
		fields = append(fields, field{"tools", []string{"*"}})
	}
	return fields
}
