package wiring

import (
	"errors"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// serverName is the MCP server's name in every harness, and the plugin's.
const serverName = "cairn"

// errForeign is why a server of that name is left alone.
var errForeign = errors.New("another MCP server is called cairn")

// serverCall is what a server's entry runs.
func serverCall(entry *hujson.Object) call {
	command := member(entry, "command")
	if command == nil {
		return call{}
	}
	c := call{program: text(*command)}
	c.args, c.apart = texts(member(entry, "args"))
	return c
}

func (c call) runsServer() bool {
	return strings.EqualFold(baseName(c.program), serverName) && len(c.args) > 0 && c.args[0] == "serve"
}

// right reports whether a server's entry is as it should be; the user may
// have added arguments, an environment and whatever else.
func (s *server) right(c call) bool {
	return c.program == s.program && len(c.args) > 0 && c.args[0] == "serve"
}

// ours reports whether what a server's entry runs is cairn.
func (s *server) ours(c call) bool { return c.runsServer() || s.right(c) }

// editServer makes the MCP server of a file what is wanted.
func (d *document) editServer(s *server, was *document) error {
	root := items{object: d.object()}
	value := member(root.object, "mcpServers")
	if value == nil {
		if !s.want {
			return nil
		}
		return d.style.add(root, "mcpServers", []field{{serverName, s.entry()}}, "")
	}
	servers, ok := itemsOf(value)
	if !ok || servers.object == nil {
		if !s.want {
			return nil
		}
		return errShape("mcpServers", "an object")
	}
	outer := d.indentOfMember(root, "mcpServers", "")
	entry := member(servers.object, serverName)
	if entry == nil {
		if !s.want {
			return nil
		}
		return d.style.add(servers, serverName, s.entry(), outer)
	}
	o, ok := entry.Value.(*hujson.Object)
	switch ours := ok && s.ours(serverCall(o)); {
	case !ours && s.want:
		return errForeign
	case !ours:
		return nil
	case s.want:
		return d.correctServer(s, o, d.indentOfMember(servers, serverName, outer))
	}
	d.style.dropNamed(servers, serverName, was.items("mcpServers"))
	if servers.len() == 0 && was.items("mcpServers") == nil {
		d.dropMember(root, "mcpServers", was)
	}
	return nil
}

func (d *document) correctServer(s *server, o *hujson.Object, indent string) error {
	c := serverCall(o)
	if s.right(c) {
		return nil
	}
	if err := d.set(o, field{"command", s.program}, indent); err != nil {
		return err
	}
	args := []string{"serve"}
	if i := slices.Index(c.args, "serve"); i == 0 {
		args = c.args
	}
	return d.set(o, field{"args", args}, indent)
}

func (s *server) entry() []field {
	fields := []field{{"command", s.program}, {"args", []string{"serve"}}}
	if s.typed {
		fields = append([]field{{"type", "stdio"}}, fields...)
	}
	return fields
}
