// Package fault defines the errors that users and programs see. An error has a kind, a
// stable code, a message and, if something can be done, a hint. The code that detects a
// failure chooses its kind. Each edge maps kinds once: the command line to an exit code,
// HTTP to a status, MCP to a tool result or a protocol error.
package fault

import (
	"errors"
	"fmt"
)

// Kind classifies a failure by who can do something about it.
type Kind uint8

// The kinds. An error without one counts as Internal.
const (
	Internal    Kind = iota // a defect or damaged data: another request would not help
	Invalid                 // the request itself is wrong and would be wrong again
	NotFound                // the requested object does not exist
	Conflict                // another change prevents it
	Denied                  // the caller may not do this
	Unavailable             // the store cannot serve it now: busy, full, read-only, unreachable
)

// String returns the kind's name in lower case, for logs.
func (k Kind) String() string {
	switch k {
	case Invalid:
		return "invalid"
	case NotFound:
		return "not found"
	case Conflict:
		return "conflict"
	case Denied:
		return "denied"
	case Unavailable:
		return "unavailable"
	default:
		return "internal"
	}
}

// Error is a failure with everything an edge needs to present it. It is
// immutable once returned.
type Error struct {
	Kind    Kind
	Code    string         // stable, for programs
	Message string         // what happened and why, human-readable; no secrets, no payload text
	Hint    string         // what to do about it; may be empty
	Details map[string]any // data for programs; may be nil
	cause   error
}

// New returns an error of a kind with a stable code and a message.
func New(kind Kind, code, message string) *Error {
	return &Error{Kind: kind, Code: code, Message: message}
}

// Newf is New with a formatted message.
func Newf(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an error that keeps its cause for errors.Is and errors.As. The message
// does not contain the text of the cause.
func Wrap(cause error, kind Kind, code, message string) *Error {
	return &Error{Kind: kind, Code: code, Message: message, cause: cause}
}

// WithHint returns a copy that tells the user what to do.
func (e *Error) WithHint(hint string) *Error {
	c := *e
	c.Hint = hint
	return &c
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.cause }

// As finds the first *Error in err's chain. Without one it describes err as
// Internal with code "internal". It returns nil for nil.
func As(err error) *Error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Error](err); ok {
		return f
	}
	return Wrap(err, Internal, "internal", err.Error())
}

// KindOf returns the kind of the first *Error in err's chain, or Internal if there is
// none.
func KindOf(err error) Kind {
	if f := As(err); f != nil {
		return f.Kind
	}
	return Internal
}

// HasCode reports whether an *Error in err's chain carries the code.
func HasCode(err error, code string) bool {
	f, ok := errors.AsType[*Error](err)
	return ok && f.Code == code
}

// Envelope is the JSON in which every edge sends an error to a program (design §7):
// {"error":{"code","message","details","recovery_hint"}}.
type Envelope struct {
	Error struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details"`
		Hint    string         `json:"recovery_hint"`
	} `json:"error"`
}

// EnvelopeOf returns err as an Envelope, whose details are never nil.
func EnvelopeOf(err error) Envelope {
	var v Envelope
	f := As(err)
	if f == nil {
		f = New(Internal, "internal", "no error")
	}
	v.Error.Code, v.Error.Message, v.Error.Hint, v.Error.Details = f.Code, f.Message, f.Hint, f.Details
	if v.Error.Details == nil {
		v.Error.Details = map[string]any{}
	}
	return v
}
