package mcp

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"cairn/internal/fault"
)

// CodeInvalidArgument is the stable code of every argument error.
const CodeInvalidArgument = "invalid_argument"

// Scope says which projects a question is about. The zero value means the
// current project.
type Scope struct {
	All  bool   // every project
	Name string // this project or alias; unset when All
}

// Args holds the checked arguments of one call. A getter asked for a name that
// was not declared with its kind answers as if it had been omitted.
type Args struct {
	values map[string]any
	scope  Scope // what an omitted project means
}

// String returns a text argument, or "" when it was omitted.
func (a Args) String(name string) string {
	s, _ := a.values[name].(string)
	return s
}

// Int64 returns an integer argument, or nil when it was omitted. A number
// beyond 64 bits arrives as the nearest one that fits.
func (a Args) Int64(name string) *int64 {
	if n, ok := a.values[name].(int64); ok {
		return &n
	}
	return nil
}

// Int is [Args.Int64] for counts.
func (a Args) Int(name string) *int {
	if n := a.Int64(name); n != nil {
		return new(int(max(math.MinInt, min(math.MaxInt, *n))))
	}
	return nil
}

// Bool returns a boolean argument, or false when it was omitted.
func (a Args) Bool(name string) bool {
	b, _ := a.values[name].(bool)
	return b
}

// Integers returns a list argument, or nil when it was omitted.
func (a Args) Integers(name string) []int64 {
	list, _ := a.values[name].([]int64)
	return list
}

// Scope returns a project argument: a name as it is, null or "*" as all
// projects. Omitted or empty means the current project, over HTTP the one in
// the URL's ?project= or else all (contract observations §8).
func (a Args) Scope(name string) Scope {
	if s, ok := a.values[name].(Scope); ok {
		return s
	}
	return a.scope
}

// decodeArgs checks raw against params. Its errors are Invalid and name the
// argument, what it must be and what it was.
func decodeArgs(params []Param, raw json.RawMessage, scope Scope) (Args, error) {
	args := Args{values: make(map[string]any, len(params)), scope: scope}
	var fields map[string]json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &fields); err != nil {
			return args, fault.Newf(fault.Invalid, CodeInvalidArgument, "arguments must be an object, not %s", typeOf(raw))
		}
	}
	for _, p := range params {
		field, present := fields[p.Name]
		null := present && string(field) == "null"
		switch {
		case null && p.Kind == Project:
			args.values[p.Name] = Scope{All: true}
		case present && !null:
			v, err := decodeArg(p, field)
			if err != nil {
				return args, err
			}
			args.values[p.Name] = v
		case p.Required:
			return args, fault.Newf(fault.Invalid, CodeInvalidArgument, "missing required argument %q", p.Name)
		}
	}
	return args, nil
}

// decodeArg reads one value that is not null; nil means that it counts as
// omitted.
func decodeArg(p Param, raw json.RawMessage) (any, error) {
	switch p.Kind {
	case Integer:
		if n, ok := integer(raw); ok {
			return n, nil
		}
		return nil, wrongType(p.Name, "an integer", raw)
	case Boolean:
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			return nil, wrongType(p.Name, "true or false", raw)
		}
		return b, nil
	case Integers:
		return integers(p.Name, raw)
	case Project:
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil, wrongType(p.Name, "a string or null", raw)
		}
		switch s {
		case "":
			return nil, nil
		case "*":
			return Scope{All: true}, nil
		}
		return Scope{Name: s}, nil
	default:
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil, wrongType(p.Name, "a string", raw)
		}
		return s, nil
	}
}

func integers(name string, raw json.RawMessage) ([]int64, error) {
	const want = "an array of integers"
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil, wrongType(name, want, raw)
	}
	list := make([]int64, len(items))
	for i, item := range items {
		n, ok := integer(item)
		if !ok {
			return nil, fault.Newf(fault.Invalid, CodeInvalidArgument,
				"argument %q must be %s; element %d is %s", name, want, i+1, typeOf(item))
		}
		list[i] = n
	}
	return list, nil
}

// integer reads a JSON number that is whole, however it is written.
func integer(raw json.RawMessage) (int64, bool) {
	text := string(bytes.TrimSpace(raw))
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	var number json.Number
	if text == "" || text[0] == '"' || json.Unmarshal(raw, &number) != nil || number == "" {
		return 0, false
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range is ±Inf, clamped below
	switch {
	case f != math.Trunc(f):
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

func wrongType(name, want string, raw json.RawMessage) error {
	return fault.Newf(fault.Invalid, CodeInvalidArgument, "argument %q must be %s, not %s", name, want, typeOf(raw))
}

// typeOf names what a JSON value is, without showing any of it.
func typeOf(raw json.RawMessage) string {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "an array"
	case raw[0] == '"':
		return "a string"
	case raw[0] == 't', raw[0] == 'f':
		return "a boolean"
	case raw[0] == 'n':
		return "null"
	case bytes.ContainsAny(raw, ".eE"):
		return "a fraction"
	}
	return "a number"
}
