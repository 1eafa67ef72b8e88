package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
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

// Args holds the checked arguments of one call. A getter asked for a name that
// was not declared with its kind answers as if it had been omitted.
type Args struct {
	values     map[string]any
	ignored    []string // names that were sent and not declared, in order; none of a strict tool
	scope      Scope    // what an omitted project means
	connection string
	remote     bool              // the call came over HTTP
	agentToken string            // of the header X-Cairn-Agent-Token
	bearer     Bearer            // who calls
	trace      string            // of the header traceparent
	key        string            // of the header Idempotency-Key
	receipt    *memory.WriteInfo // what a call that wrote memories leaves beside its result
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

// Text is [Args.String] that tells an omitted argument (nil) from an empty one.
func (a Args) Text(name string) *string {
	if s, ok := a.values[name].(string); ok {
		return &s
	}
	return nil
}

// IsNull reports whether an argument of kind Nullable was null and not omitted.
func (a Args) IsNull(name string) bool { return a.values[name] == jsonNull{} }

// Strings returns a list of texts, or nil when it was omitted.
func (a Args) Strings(name string) []string {
	list, _ := a.values[name].([]string)
	return list
}

// Object returns a JSON object as it was sent, or nil when it was omitted.
func (a Args) Object(name string) json.RawMessage {
	object, _ := a.values[name].(json.RawMessage)
	return object
}

// Connection is the id of the session that a transport session opens if no other
// is known ([cairn.NewSessionID]): the same for all its calls, and no other's. It
// is "" where the transport keeps no sessions (HTTP from revision 2026-07-28 on, and a
// plain POST). Over HTTP it outlives a restart of the server.
func (a Args) Connection() string { return a.connection }

// IsRemote reports whether the call came over HTTP, from a client that this
// process was not started by.
func (a Args) IsRemote() bool { return a.remote }

// AgentToken is the token of an agent that came in a header of HTTP, or "" (mail §4).
func (a Args) AgentToken() string { return a.agentToken }

// IsFalse reports whether a boolean argument is there and false.
func (a Args) IsFalse(name string) bool {
	b, ok := a.values[name].(bool)
	return ok && !b
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

// jsonNull is the value of a Nullable argument that is null.
type jsonNull struct{}

// decode reads the arguments of a call. Those that t does not have are refused if it is
// strict, by the first of them, else noted in what it returns.
func (t Tool) decode(raw json.RawMessage, scope Scope) (Args, error) {
	args, err := decodeArgs(t.Params, raw, scope)
	if !t.strict {
		return args, err
	}
	unknown := args.toldIgnored()
	args.ignored = nil
	if err == nil && len(unknown) > 0 {
		err = unsound(unknown[0], "there is no argument "+unknown[0])
	}
	return args, err
}

// decodeArgs checks raw against params. Its errors are Invalid, name the
// argument, what it must be and what it was, and carry its name in
// details.field.
func decodeArgs(params []Param, raw json.RawMessage, scope Scope) (Args, error) {
	args := Args{values: make(map[string]any, len(params)), scope: scope, receipt: new(memory.WriteInfo)}
	var fields map[string]json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &fields); err != nil {
			return args, fault.Newf(fault.Invalid, CodeInvalidArgument, "arguments must be an object, not %s", typeOf(raw))
		}
	}
	for _, p := range params {
		if p.manner == memorial && p.ambiguous(fields) {
			return args, unsound(p.Name, p.Name+" and "+p.Aliases[0]+" are given and differ")
		}
		field, present := p.take(fields)
		null := present && string(field) == "null"
		switch {
		case null && p.Kind == Names:
			args.values[p.Name] = []string{}
		case null && p.Kind == Project:
			args.values[p.Name] = Scope{All: true}
		case null && p.Kind == Object && p.manner == memorial:
			return args, p.said(wrongType(p.Name, "an object", field), field)
		case null && p.Kind == Nullable:
			args.values[p.Name] = jsonNull{}
		case present && !null:
			v, err := decodeArg(p, field)
			if err != nil {
				return args, err
			}
			args.values[p.Name] = v
		case p.Required:
			return args, p.missing()
		}
	}
	args.ignored = slices.Sorted(maps.Keys(fields))
	return args, nil
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
	if p.manner != plain {
		raw = p.loosened(raw)
	}
	v, err := p.read(raw)
	if err != nil {
		return nil, p.said(err, raw)
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
