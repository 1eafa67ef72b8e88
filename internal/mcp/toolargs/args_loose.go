package toolargs

import (
	"bytes"
	"encoding/json"
	"fmt"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/memory"
)

// This file reads arguments by the conventions of mail (mail §2, §2.1) and memories
// (memories §5.3).

// maxProvided is the maximum number of bytes of a wrong value that an error repeats.
const maxProvided = 200

// take removes a parameter's value from the fields and returns it. It looks for the name,
// then for the aliases in their order.
func (p Param) take(fields map[string]json.RawMessage) (field json.RawMessage, present bool) {
	for _, name := range append([]string{p.Name}, p.Aliases...) {
		if v, ok := fields[name]; ok && (!present || string(field) == "null") {
			field, present = v, true
			delete(fields, name)
		}
	}
	return field, present
}

// ambiguous reports whether a parameter is given under two names with different texts.
func (p Param) ambiguous(fields map[string]json.RawMessage) bool {
	if len(p.Aliases) == 0 || fields[p.Name] == nil || fields[p.Aliases[0]] == nil {
		return false
	}
	one, _ := Text(fields[p.Name])
	other, _ := Text(fields[p.Aliases[0]])
	return one != other
}

// coerced converts a text to the integer or boolean that it contains, if the parameter
// expects one. Else it returns raw.
func (p Param) coerced(raw json.RawMessage) json.RawMessage {
	s, ok := Text(raw)
	switch {
	case !ok:
	case p.Kind == Integer && isDecimal(s):
		return json.RawMessage(s)
	case p.Kind == Boolean && p.Style == MailStyle && (s == "true" || s == "false"):
		return json.RawMessage(s)
	}
	return raw
}

// integer reads an element of a list.
func (p Param) integer(raw json.RawMessage) (int64, bool) {
	if s, ok := Text(raw); ok && p.Style == MailStyle && isDecimal(s) {
		raw = json.RawMessage(s)
	}
	return integer(raw)
}

// isDecimal reports whether a text is a whole number in decimal digits.
func isDecimal(s string) bool {
	digits := bytes.TrimPrefix([]byte(s), []byte("-"))
	for _, d := range digits {
		if d < '0' || d > '9' {
			return false
		}
	}
	return len(digits) > 0
}

// Missing returns the error for a missing required parameter.
func (p Param) Missing() error {
	switch p.Style {
	case defaultStyle:
		return Error(p.Name, fmt.Sprintf("missing required argument %q", p.Name))
	case MemoryStyle:
		return MemoryError(p.Name, p.Name+" is required")
	}
	err := fault.New(fault.Invalid, mail.CodeMissing, p.Name+" is missing").WithHint("give the argument " + p.Name + " and call again")
	err.Details = map[string]any{"recoverable": true, "field": p.Name, "provided": nil}
	return err
}

// styleError converts an error about a value to the conventions of the parameter's part.
func (p Param) styleError(err error, raw json.RawMessage) error {
	f := fault.As(err)
	switch p.Style {
	case defaultStyle:
		return err
	case MemoryStyle:
		return MemoryError(p.Name, f.Message)
	}
	code, provided := mail.CodeType, any(raw)
	switch {
	case !isText(raw):
		code, provided = mail.CodeInvalid, nil
	case len(raw) > maxProvided:
		provided = string(bytes.ToValidUTF8(raw[:maxProvided], nil))
	}
	e := fault.New(fault.Invalid, code, f.Message).WithHint("change the argument " + p.Name + " and call again")
	e.Details = map[string]any{"recoverable": true, "field": p.Name, "provided": provided}
	return e
}

// MemoryError returns an error about an argument in the form of memories.
func MemoryError(field, message string) error {
	e := fault.New(fault.Invalid, memory.CodeInvalid, message).WithHint("change " + field + " and call again")
	e.Details = map[string]any{"field": field}
	return e
}
