package httpapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/mcp/toolargs"
)

// queryArguments converts query parameters to arguments, by the kind of each Param. Numbers
// and booleans are written plainly; a boolean can also be 1, t, yes or y, or the opposite.
// Lists repeat the parameter, objects are JSON, and null is the word null. The tool checks
// the values.
func queryArguments(params []toolargs.Param, query string) (json.RawMessage, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fault.New(fault.Invalid, toolargs.CodeInvalidArgument, "the query cannot be read").
			WithHint("escape its values; separate parameters by &")
	}
	arguments := make(map[string]any, len(values))
	for name, given := range values {
		i := slices.IndexFunc(params, func(p toolargs.Param) bool { return p.Name == name })
		switch {
		case i < 0:
			arguments[name] = nil // ignored and reported
		case params[i].Kind == toolargs.Integers || params[i].Kind == toolargs.Strings:
			arguments[name] = each(params[i].Kind, given)
		case len(given) > 1:
			e := fault.Newf(fault.Invalid, toolargs.CodeInvalidArgument, "argument %q is given %d times", name, len(given))
			e.Details = map[string]any{"field": name}
			return nil, e
		default:
			arguments[name] = queryValue(params[i].Kind, given[0])
		}
	}
	return encode(arguments)
}

// encode returns v as JSON. JSON in it keeps its characters.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func each(kind toolargs.Kind, given []string) []any {
	list := make([]any, len(given))
	for i, text := range given {
		if list[i] = raw(text); kind == toolargs.Integers {
			list[i] = number(text)
		}
	}
	return list
}

// queryValue converts a text to a kind of argument, or returns it unchanged.
func queryValue(kind toolargs.Kind, text string) any {
	switch kind {
	case toolargs.Integer:
		return number(text)
	case toolargs.Boolean:
		switch strings.ToLower(text) {
		case "true", "1", "t", "yes", "y":
			return true
		case "false", "0", "f", "no", "n":
			return false
		}
	case toolargs.Object:
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	case toolargs.Nullable:
		if text == "null" {
			return nil
		}
	}
	return raw(text)
}

// number converts a text to a number if it is a JSON number.
func number(text string) any {
	if text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return raw(text)
}

// raw returns a text as JSON and keeps invalid Unicode, which the tool rejects.
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
