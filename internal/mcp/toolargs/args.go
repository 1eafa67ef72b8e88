package toolargs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"cairn/internal/fault"
)

// CodeInvalidArgument is the stable code of every argument error.
const CodeInvalidArgument = "invalid_argument"

// Scope selects the projects of a query. The zero value means the current project.
type Scope struct {
	All  bool   // every project
	Name string // this project or alias; unset when All
}

// Decode checks raw against params, the parameters of the struct types own and common.
// It returns pointers to new values of these types with the arguments, and the names in raw
// that are no parameter's, sorted. scope is the project of an omitted project argument. Its
// errors are Invalid. They name the argument, the expected and the actual type, and have
// the name in details.field.
func Decode(raw json.RawMessage, params []Param, own, common reflect.Type, scope Scope) (in, shared any, unknown []string, err error) {
	var fields map[string]json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, nil, nil, fault.Newf(fault.Invalid, CodeInvalidArgument, "arguments must be an object, not %s", TypeOf(raw))
		}
	}
	structs := [2]reflect.Value{reflect.New(own), reflect.New(common)}
	for _, p := range params {
		v, given, err := p.decode(fields)
		if err == nil {
			err = p.store(structs, v, given, scope)
		}
		if err != nil {
			return nil, nil, nil, err
		}
	}
	return structs[0].Interface(), structs[1].Interface(), slices.Sorted(maps.Keys(fields)), nil
}

// presence is the state of an argument: given, omitted or null.
type presence uint8

const (
	omitted presence = iota
	null             // for parameters where null differs from omitted
	present
)

// decode removes p's argument from fields and returns its value. null counts as omitted,
// except for a Project.
func (p Param) decode(fields map[string]json.RawMessage) (v any, given presence, err error) {
	if p.Style == MemoryStyle && p.ambiguous(fields) {
		return nil, present, MemoryError(p.Name, p.Name+" and "+p.Aliases[0]+" have different values")
	}
	field, there := p.take(fields)
	isNull := there && string(field) == "null"
	switch {
	case isNull && p.Kind == Names:
		return []string{}, present, nil
	case isNull && p.Kind == Project:
		return Scope{All: true}, present, nil
	case isNull && p.Kind == Object && p.Style == MemoryStyle:
		return nil, present, p.styleError(wrongType(p.Name, "an object", field), field)
	case isNull && p.Kind == Nullable:
		return nil, null, nil
	case there && !isNull:
		v, err = decodeArg(p, field)
		return v, present, err
	case p.Required:
		return nil, omitted, p.Missing()
	}
	return nil, omitted, nil
}

// Error returns an Invalid error about one argument.
func Error(name, message string) error {
	err := fault.New(fault.Invalid, CodeInvalidArgument, message)
	err.Details = map[string]any{"field": name}
	return err
}

// decodeArg reads one value that is not null. It returns nil if the value counts as
// omitted.
func decodeArg(p Param, raw json.RawMessage) (any, error) {
	if !isText(raw) {
		return nil, p.styleError(Error(p.Name, fmt.Sprintf("argument %q must be valid Unicode", p.Name)), raw)
	}
	if p.Style != defaultStyle {
		raw = p.coerced(raw)
	}
	v, err := p.read(raw)
	switch {
	case err != nil:
		return nil, p.styleError(err, raw)
	case p.nonempty && v == "":
		return nil, MemoryError(p.Name, p.Name+" is empty")
	}
	return v, nil
}

// read reads one value that is not null.
func (p Param) read(raw json.RawMessage) (any, error) {
	switch p.Kind {
	case Anything:
		return nil, nil
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
	case Integers, Names, Strings:
		return p.readList(raw)
	case Object:
		if trimmed := bytes.TrimSpace(raw); trimmed[0] != '{' {
			return nil, wrongType(p.Name, "an object", raw)
		}
		return raw, nil
	case Project:
		s, ok := Text(raw)
		switch {
		case !ok:
			return nil, wrongType(p.Name, "a string or null", raw)
		case s == "":
			return nil, nil
		case s == "*":
			return Scope{All: true}, nil
		}
		return Scope{Name: s}, nil
	default:
		s, ok := Text(raw)
		switch {
		case !ok && p.Kind == Nullable:
			return nil, wrongType(p.Name, "a string or null", raw)
		case !ok:
			return nil, wrongType(p.Name, "a string", raw)
		}
		return s, nil
	}
}

// readList reads a list; for Names it also accepts a single text.
func (p Param) readList(raw json.RawMessage) (any, error) {
	switch p.Kind {
	case Integers:
		return list(p.Name, "an array of integers", raw, p.integer)
	case Names:
		if s, ok := Text(raw); ok {
			return []string{s}, nil
		}
		return list(p.Name, "a string or an array of strings", raw, Text)
	}
	return list(p.Name, "an array of strings", raw, Text)
}

// isText reports whether every string in a JSON value is valid Unicode: valid UTF-8, and
// no unpaired surrogate escape.
func isText(raw json.RawMessage) bool {
	if !utf8.Valid(raw) {
		return false
	}
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return true
		}
		first, second := unit(raw[i:]), rune(0)
		raw = raw[i+2:]
		if !utf16.IsSurrogate(first) {
			continue
		}
		raw = raw[4:]
		if second = unit(raw); utf16.DecodeRune(first, second) == utf8.RuneError {
			return false
		}
		raw = raw[6:]
	}
}

// unit returns the UTF-16 unit of the escape \uXXXX at the beginning of raw, 0 if there
// is none.
func unit(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// Text returns a JSON value that is a string; ok is false for any other.
func Text(raw json.RawMessage) (s string, ok bool) {
	return s, json.Unmarshal(raw, &s) == nil && bytes.TrimSpace(raw)[0] == '"'
}

// list reads an array. Every element must be readable.
func list[T any](name, want string, raw json.RawMessage, read func(json.RawMessage) (T, bool)) ([]T, error) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil, wrongType(name, want, raw)
	}
	all := make([]T, len(items))
	for i, item := range items {
		v, ok := read(item)
		if !ok {
			return nil, Error(name, fmt.Sprintf("argument %q must be %s; element %d is %s", name, want, i+1, TypeOf(item)))
		}
		all[i] = v
	}
	return all, nil
}

// integer reads a whole JSON number in any notation, such as 3, 3.0 or 3e0.
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
	return Error(name, fmt.Sprintf("argument %q must be %s, not %s", name, want, TypeOf(raw)))
}

// TypeOf returns the name of a JSON value's type. It does not reveal the value.
func TypeOf(raw json.RawMessage) string {
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
