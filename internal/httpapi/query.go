package httpapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/mcp"
)

// queryArguments makes arguments of query parameters, each read as its Param wants:
// numbers and booleans as they are written (a boolean also as 1, t, yes or y and
// their opposites), lists by repeating the parameter, objects as JSON, and null, of
// what may be null, as the word. The tool itself judges what it gets.
func queryArguments(params []mcp.Param, query string) (json.RawMessage, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fault.New(fault.Invalid, mcp.CodeInvalidArgument, "the query cannot be read").
			WithHint("escape its values; separate parameters by &")
	}
	arguments := make(map[string]any, len(values))
	for name, given := range values {
		i := slices.IndexFunc(params, func(p mcp.Param) bool { return p.Name == name })
		switch {
		case i < 0:
			arguments[name] = nil // ignored and named
		case params[i].Kind == mcp.Integers || params[i].Kind == mcp.Strings:
			arguments[name] = each(params[i].Kind, given)
		case len(given) > 1:
			e := fault.Newf(fault.Invalid, mcp.CodeInvalidArgument, "argument %q is given %d times", name, len(given))
			e.Details = map[string]any{"field": name}
			return nil, e
		default:
			arguments[name] = queryValue(params[i].Kind, given[0])
		}
	}
	return encode(arguments)
}

// encode is v in JSON; what is in it in JSON already keeps its characters.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func each(kind mcp.Kind, given []string) []any {
	list := make([]any, len(given))
	for i, text := range given {
		if list[i] = raw(text); kind == mcp.Integers {
			list[i] = number(text)
		}
	}
	return list
}

// queryValue is a text as the kind of argument wants it, or as it is.
func queryValue(kind mcp.Kind, text string) any {
	switch kind {
	case mcp.Integer:
		return number(text)
	case mcp.Boolean:
		switch strings.ToLower(text) {
		case "true", "1", "t", "yes", "y":
			return true
		case "false", "0", "f", "no", "n":
			return false
		}
	case mcp.Object:
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	case mcp.Nullable:
		if text == "null" {
			return nil
		}
	}
	return raw(text)
}

// number is a text as a number if it is one in JSON.
func number(text string) any {
	if text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return raw(text)
}

// raw is a text as JSON that keeps broken Unicode, for the tool to refuse.
func raw(text string) any {
	quoted := []byte{'"'}
	for i := range len(text) {
		switch b := text[i]; {
		case b == '"' || b == '\\':
			quoted = append(quoted, '\\', b)
		case b < ' ':
			quoted = append(quoted, `\u00`...)
			quoted = append(quoted, "0123456789abcdef"[b>>4], "0123456789abcdef"[b&15])
		default:
			quoted = append(quoted, b)
		}
	}
	return json.RawMessage(append(quoted, '"'))
}
