package mcp

import (
	"bytes"
	"cmp"
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
	"cairn/internal/memory"
)

// CodeInvalidArgument is the stable code of every argument error.
const CodeInvalidArgument = "invalid_argument"

// Scope says which projects a question is about. The zero value means the
// current project.
type Scope struct {
	All  bool   // every project
	Name string // this project or alias; unset when All
}

// Call is what a tool is told of a call besides its arguments.
type Call struct {
	// Scope is what an omitted project means: the current project, over HTTP the one in
	// the URL's ?project= or else all (contract observations §8).
	Scope Scope

	// Connection is the id of the session that a transport session opens if no other
	// is known ([cairn.NewSessionID]): the same for all its calls, and no other's. It
	// is "" where the transport keeps no sessions (HTTP from revision 2026-07-28 on, and a
	// plain POST). Over HTTP it outlives a restart of the server.
	Connection string

	Remote     bool   // the call came over HTTP, from a client that this process was not started by
	AgentToken string // the token of an agent that came in a header of HTTP, or "" (mail §4)

	common  any               // a pointer to the arguments that the tool's part adds
	bearer  Bearer            // who calls
	trace   string            // of the header traceparent
	key     string            // of the header Idempotency-Key
	ignored []string          // names that were sent and not declared, in order; none of a strict tool
	receipt *memory.WriteInfo // what a call that wrote memories leaves beside its result
}

// ProjectOf returns the project that a call is about if its arguments name none: the
// one in the URL of HTTP, else standard.
func (c Call) ProjectOf(standard string) string { return cmp.Or(c.Scope.Name, standard) }

// decode reads the arguments of a call of t into a new value of its struct type, and
// returns a pointer to it. Those that t does not have are refused if it is strict, by the
// first of them, else noted in the call.
func (t Tool) decode(raw json.RawMessage, scope Scope) (c Call, in any, err error) {
	c = Call{Scope: scope, receipt: new(memory.WriteInfo)}
	in, err = c.decode(raw, t.Params, t.in, t.common)
	if !t.strict {
		return c, in, err
	}
	unknown := c.ignoredNames()
	c.ignored = nil
	if err == nil && len(unknown) > 0 {
		err = unsound(unknown[0], "there is no argument "+unknown[0])
	}
	return c, in, err
}

// decode checks raw against params, which are those of two types, and stores the arguments
// in new values of these: in and c.common point to them. It notes in c which names are no
// parameters. Its errors are Invalid, name the argument, what it must be and what it was,
// and carry its name in details.field.
func (c *Call) decode(raw json.RawMessage, params []Param, own, common reflect.Type) (in any, err error) {
	var fields map[string]json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, fault.Newf(fault.Invalid, CodeInvalidArgument, "arguments must be an object, not %s", typeOf(raw))
		}
	}
	structs := [2]reflect.Value{reflect.New(own), reflect.New(common)}
	for _, p := range params {
		v, given, err := p.decode(fields)
		if err == nil {
			err = p.store(structs, v, given, c.Scope)
		}
		if err != nil {
			return nil, err
		}
	}
	c.common, c.ignored = structs[1].Interface(), slices.Sorted(maps.Keys(fields))
	return structs[0].Interface(), nil
}

// presence is how an argument was given.
type presence uint8

const (
	omitted presence = iota
	null             // and null means something else than omitted
	present
)

// decode takes p's argument out of fields. nil counts as omitted, but for what a Project
// says.
func (p Param) decode(fields map[string]json.RawMessage) (v any, given presence, err error) {
	if p.style == memoryStyle && p.ambiguous(fields) {
		return nil, present, unsound(p.Name, p.Name+" and "+p.Aliases[0]+" are given and differ")
	}
	field, there := p.take(fields)
	isNull := there && string(field) == "null"
	switch {
	case isNull && p.Kind == Names:
		return []string{}, present, nil
	case isNull && p.Kind == Project:
		return Scope{All: true}, present, nil
	case isNull && p.Kind == Object && p.style == memoryStyle:
		return nil, present, p.said(wrongType(p.Name, "an object", field), field)
	case isNull && p.Kind == Nullable:
		return nil, null, nil
	case there && !isNull:
		v, err = decodeArg(p, field)
		return v, present, err
	case p.Required:
		return nil, omitted, p.missing()
	}
	return nil, omitted, nil
}

// wrong is an Invalid error about one argument.
func wrong(name, message string) error {
	err := fault.New(fault.Invalid, CodeInvalidArgument, message)
	err.Details = map[string]any{"field": name}
	return err
}

// decodeArg reads one value that is not null; nil means that it counts as
// omitted.
func decodeArg(p Param, raw json.RawMessage) (any, error) {
	if !isText(raw) {
		return nil, p.said(wrong(p.Name, fmt.Sprintf("argument %q must be valid Unicode", p.Name)), raw)
	}
	if p.style != defaultStyle {
		raw = p.loosened(raw)
	}
	v, err := p.read(raw)
	switch {
	case err != nil:
		return nil, p.said(err, raw)
	case p.nonempty && v == "":
		return nil, unsound(p.Name, p.Name+" is empty")
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
		s, ok := text(raw)
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
		s, ok := text(raw)
		switch {
		case !ok && p.Kind == Nullable:
			return nil, wrongType(p.Name, "a string or null", raw)
		case !ok:
			return nil, wrongType(p.Name, "a string", raw)
		}
		return s, nil
	}
}

// readList reads a list, of Names also a single one.
func (p Param) readList(raw json.RawMessage) (any, error) {
	switch p.Kind {
	case Integers:
		return list(p.Name, "an array of integers", raw, p.integer)
	case Names:
		if s, ok := text(raw); ok {
			return []string{s}, nil
		}
		return list(p.Name, "a string or an array of strings", raw, text)
	}
	return list(p.Name, "an array of strings", raw, text)
}

// isText reports whether every string in a JSON value is valid Unicode: no broken
// UTF-8, and no escaped half of a surrogate pair.
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

// unit is the UTF-16 unit of the escape \uXXXX that raw begins with, 0 for none.
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

func text(raw json.RawMessage) (s string, ok bool) {
	return s, json.Unmarshal(raw, &s) == nil && bytes.TrimSpace(raw)[0] == '"'
}

// list reads an array of which every element can be read.
func list[T any](name, want string, raw json.RawMessage, read func(json.RawMessage) (T, bool)) ([]T, error) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil, wrongType(name, want, raw)
	}
	all := make([]T, len(items))
	for i, item := range items {
		v, ok := read(item)
		if !ok {
			return nil, wrong(name, fmt.Sprintf("argument %q must be %s; element %d is %s", name, want, i+1, typeOf(item)))
		}
		all[i] = v
	}
	return all, nil
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
	return wrong(name, fmt.Sprintf("argument %q must be %s, not %s", name, want, typeOf(raw)))
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
