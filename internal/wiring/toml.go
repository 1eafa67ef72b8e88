package wiring

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"cairn/internal/tomlfile"
)

// editTOML edits the MCP server in Codex's config.toml as text. It appends cairn's table,
// replaces the table's keys, or removes the table with its subtables. The result is parsed again
// and accepted only if nothing except cairn's server differs. Errors of the file itself are
// tomlfile's.
func editTOML(path string, old []byte, s *server, was []byte) ([]byte, error) {
	body, hadBOM := bytes.CutPrefix(old, []byte(bom))
	before := map[string]any{}
	if err := tomlfile.Decode(path, body, &before); err != nil {
		return nil, err
	}
	out, err := editServerText(body, s, before)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(out, body) {
		return old, nil
	}
	if w := bytes.TrimPrefix(was, []byte(bom)); !s.want && was != nil && sameButEnd(out, w) {
		out = w
	}
	if err := s.onlyChange(path, before, out); err != nil {
		return nil, err
	}
	if hadBOM {
		out = append([]byte(bom), out...)
	}
	return out, nil
}

// editServerText returns a text with cairn's server in its wanted form, or the text itself if no
// change is needed. config is the parsed text.
func editServerText(text []byte, s *server, config map[string]any) ([]byte, error) {
	c, there := codexServer(config)
	ours := there && s.ours(c)
	switch {
	case s.want && !there:
		return appendServer(text, s), nil
	case s.want && !ours:
		return nil, errForeign
	case s.want && s.right(c), !s.want && !ours:
		return text, nil
	case s.want:
		out, err := replaceServer(text, s, c)
		if err != nil && c.program == s.program {
			return text, nil // the server works, but its text cannot be improved
		}
		return out, err
	}
	return cutServer(text)
}

// onlyChange returns an error if the edited text changes more than cairn's server.
func (s *server) onlyChange(path string, before map[string]any, text []byte) error {
	after := map[string]any{}
	if err := tomlfile.Decode(path, text, &after); err != nil {
		return errShape("mcp_servers", "a table that can be added to")
	}
	c, there := codexServer(after)
	if there != s.want || there && !s.right(c) || !reflect.DeepEqual(withoutServer(before), withoutServer(after)) {
		return errors.New("mcp_servers.cairn cannot be changed without changing more")
	}
	return nil
}

// codexServer returns the call of Codex's server named cairn, false if there is no such server.
func codexServer(config map[string]any) (call, bool) {
	servers, _ := config["mcp_servers"].(map[string]any)
	entry, there := servers[serverName]
	table, _ := entry.(map[string]any)
	c := call{apart: true}
	c.program, _ = table["command"].(string)
	list, _ := table["args"].([]any)
	for _, a := range list {
		word, _ := a.(string)
		c.args = append(c.args, word)
	}
	return c, there
}

func withoutServer(config map[string]any) map[string]any {
	if servers, ok := config["mcp_servers"].(map[string]any); ok {
		delete(servers, serverName)
		if len(servers) == 0 {
			delete(config, "mcp_servers")
		}
	}
	return config
}

func newlineOf(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

func appendServer(text []byte, s *server) []byte {
	nl := newlineOf(text)
	out := bytes.Clone(text)
	if len(out) > 0 {
		if !bytes.HasSuffix(out, []byte("\n")) {
			out = append(out, nl...)
		}
		out = append(out, nl...)
	}
	lines := []string{"[mcp_servers." + serverName + "]", "command = " + tomlString(s.program), tomlArgs(s.args)}
	return append(out, strings.Join(lines, nl)+nl...)
}

// isServerTable reports whether a table is cairn's server table or, if below is set, one of its
// subtables.
func isServerTable(t tomlfile.Table, below bool) bool {
	return len(t.Name) >= 2 && t.Name[0] == "mcp_servers" && t.Name[1] == serverName && (below || len(t.Name) == 2)
}

func replaceServer(text []byte, s *server, c call) ([]byte, error) {
	tables, err := tomlfile.Tables(text)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tables, func(t tomlfile.Table) bool { return isServerTable(t, false) })
	if i < 0 {
		return nil, errors.New("mcp_servers.cairn is not a table of its own")
	}
	assignments := map[string]string{"command": "command = " + tomlString(s.program)}
	if args := s.argsFor(c); !slices.Equal(args, c.args) {
		assignments["args"] = tomlArgs(args)
	}
	out := bytes.Clone(text)
	for _, k := range slices.Backward(tables[i].Keys) {
		if a, ok := assignments[k.Name[0]]; ok && len(k.Name) == 1 {
			out = slices.Concat(out[:k.Start], []byte(a), out[k.End:])
			delete(assignments, k.Name[0])
		}
	}
	nl := newlineOf(text)
	head := tables[i].HeaderEnd
	for _, name := range []string{"args", "command"} {
		a, ok := assignments[name]
		if !ok {
			continue
		}
		if head > 0 && out[head-1] != '\n' { // the header is the last line and has no line break
			a = nl + a
		} else {
			a += nl
		}
		out = slices.Concat(out[:head], []byte(a), out[head:])
	}
	return out, nil
}

// cutServer removes cairn's server table and its subtables. A remaining subtable would be a
// server without a command.
func cutServer(text []byte) ([]byte, error) {
	tables, err := tomlfile.Tables(text)
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(text)
	cut := false
	for _, t := range slices.Backward(tables) {
		if !isServerTable(t, true) {
			continue
		}
		cut = true
		head, tail := out[:t.Start], out[t.End:]
		atEnd := len(tail) == 0 || bytes.HasPrefix(tail, []byte("\n")) || bytes.HasPrefix(tail, []byte("\r\n"))
		for _, blank := range []string{"\r\n\r\n", "\n\n"} {
			if atEnd && bytes.HasSuffix(head, []byte(blank)) {
				head = head[:len(head)-len(blank)/2]
				break
			}
		}
		out = slices.Concat(head, tail)
	}
	if !cut {
		return nil, errors.New("mcp_servers.cairn is not a table of its own")
	}
	return out, nil
}

func sameButEnd(a, b []byte) bool {
	return bytes.Equal(bytes.TrimRight(a, "\r\n"), bytes.TrimRight(b, "\r\n"))
}

// tomlArgs returns the line with an entry's arguments.
func tomlArgs(args []string) string {
	var words []string
	for _, a := range args {
		words = append(words, tomlString(a))
	}
	return "args = [" + strings.Join(words, ", ") + "]"
}

// tomlString returns a path as a TOML string. It does not escape backslashes if that is
// possible.
func tomlString(s string) string {
	control := strings.ContainsFunc(s, unicode.IsControl)
	if strings.Contains(s, `\`) && !strings.Contains(s, "'") && !control {
		return "'" + s + "'"
	}
	return style{}.render(s, "") // JSON strings are valid in TOML too
}
