package capture

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"cairn/internal/observation"
	"cairn/internal/oneline"
	"cairn/internal/redact"
)

// mcp fills in the row of an MCP call.
func (d *drafter) mcp(c *observation.Call) {
	d.Type = observation.TypeMCP
	d.set("server", c.Server, maxFact)
	d.set("method", c.Method, maxFact)
	server, _ := d.Meta["server"].(string)
	method, _ := d.Meta["method"].(string)
	d.Content = strings.Trim(server+"."+method, ".")
	args := d.arguments(c.Args)
	if len(args) == 0 {
		return
	}
	params := make(map[string]string, len(args))
	room := maxParams
	for _, a := range args {
		if room -= utf8.RuneCountInString(a.Name); room <= 0 {
			break
		}
		value := oneline.Cut(a.Value, min(maxParam, room))
		room -= utf8.RuneCountInString(value)
		params[a.Name] = value
	}
	d.put("params", params)
	d.Content = d.head(d.Content+" "+objectText(args), maxMCP)
}

// arguments returns as many of an MCP call's arguments as a row can show, each value cut to what
// the content can show. They are redacted together with their structure, since a name or another
// argument may show that a value is a secret.
func (d *drafter) arguments(args []observation.Arg) []observation.Arg {
	var out []observation.Arg
	named := map[string]any{}
	for size := 0; len(out) < len(args) && size < maxParams; {
		a := args[len(out)]
		a.Name, a.Value = observation.Clean(oneline.Cut(a.Name, maxFact)), observation.Clean(oneline.Cut(a.Value, maxMCP+redactMargin))
		out = append(out, a)
		named[a.Name] = observation.Structure(a.Value)
		size += 1 + utf8.RuneCountInString(a.Name) + min(utf8.RuneCountInString(a.Value), maxMCP)
	}
	redacted, changed := d.filter.Value(named)
	d.changed = d.changed || changed
	for i, a := range out {
		if changed {
			a = d.redactedArgument(a, redacted)
		}
		out[i] = observation.Arg{Name: a.Name, Value: oneline.Cut(a.Value, maxMCP)}
	}
	return out
}

// redactedArgument returns an argument's redacted form. An argument whose name was redacted is
// missing from redacted under that name, so its parts are redacted separately.
func (d *drafter) redactedArgument(a observation.Arg, redacted any) observation.Arg {
	values, _ := redacted.(map[string]any)
	v, ok := values[a.Name]
	if !ok {
		return observation.Arg{Name: d.head(a.Name, maxFact), Value: d.head(a.Value, maxMCP)}
	}
	text, ok := v.(string)
	if !ok {
		var err error
		if text, err = observation.CompactJSON(v); err != nil {
			text = redact.Mark
		}
	}
	return observation.Arg{Name: a.Name, Value: text}
}

// objectText returns arguments as one compact, human-readable JSON object, in their order.
// Values that look like JSON are not quoted again.
func objectText(args []observation.Arg) string {
	b := []byte{'{'}
	for i, a := range args {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, a.Name), ':')
		if isJSONLike(a.Value) {
			b = append(b, a.Value...)
		} else {
			b = appendQuoted(b, a.Value)
		}
	}
	return string(append(b, '}'))
}

func appendQuoted(b []byte, s string) []byte {
	text, err := observation.CompactJSON(s)
	if err != nil {
		text = s
	}
	return append(b, text...)
}

// isJSONLike reports whether s looks like JSON from an adapter, complete or cut. It also matches
// a few other strings.
func isJSONLike(s string) bool {
	switch {
	case s == "":
		return false
	case s[0] == '{':
		return true
	case s[0] == '[':
		return len(s) > 1 && strings.IndexByte(`{["]-0123456789`, s[1]) >= 0
	}
	return s[0] != '"' && len(s) <= 32 && json.Valid([]byte(s))
}
