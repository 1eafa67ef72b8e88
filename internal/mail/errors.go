package mail

import (
	"fmt"
	"maps"
	"strings"
	"unicode"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Codes of the errors of mail (mail §2.1).
const (
	CodeConfiguration   = "CONFIGURATION_ERROR"
	CodeInvalid         = "INVALID_ARGUMENT"
	CodeMissing         = "MISSING_FIELD"
	CodeType            = "TYPE_ERROR"
	CodeLimit           = "INVALID_LIMIT"
	CodeTimestamp       = "INVALID_TIMESTAMP"
	CodeThreadID        = "INVALID_THREAD_ID"
	CodeTopic           = "INVALID_TOPIC"
	CodeEmptyProgram    = "EMPTY_PROGRAM"
	CodeEmptyModel      = "EMPTY_MODEL"
	CodeEmptyPaths      = "EMPTY_PATHS"
	CodePath            = "INVALID_PATH"
	CodeAgentName       = "INVALID_AGENT_NAME"
	CodeProgramName     = "PROGRAM_NAME_AS_AGENT"
	CodeModelName       = "MODEL_NAME_AS_AGENT"
	CodeEmail           = "EMAIL_AS_AGENT"
	CodeBroadcast       = "BROADCAST_ATTEMPT"
	CodeDescriptive     = "DESCRIPTIVE_NAME"
	CodeUserName        = "UNIX_USERNAME_AS_AGENT"
	CodeNotFound        = "NOT_FOUND"
	CodeRecipient       = "RECIPIENT_NOT_FOUND"
	CodeContactRequired = "CONTACT_REQUIRED"
	CodeContactBlocked  = "CONTACT_BLOCKED"
	CodeReserved        = "RESERVATION_ACTIVE"
	CodeDenied          = "CAPABILITY_DENIED"
	CodeIdempotency     = "IDEMPOTENCY_CONFLICT"
	CodeTooLarge        = "MESSAGE_TOO_LARGE"
	CodeDiskFull        = "DISK_FULL"
	CodeDatabase        = "DATABASE_ERROR"
	CodePool            = "DATABASE_POOL_EXHAUSTED"
	CodeBusy            = "RESOURCE_BUSY"
	CodeRate            = "RATE_LIMITED"
	CodeCorruption      = "DATABASE_CORRUPTION"
	CodeUnhandled       = "UNHANDLED_EXCEPTION"
)

// Error is an error of mail. Its methods add details, a hint and suggested calls.
type Error struct{ e *fault.Error }

// kindOf returns the kind of the errors with a code; Invalid for codes that are not listed.
func kindOf(code string) fault.Kind {
	switch code {
	case CodeNotFound, CodeRecipient:
		return fault.NotFound
	case CodeContactRequired, CodeReserved, CodeIdempotency:
		return fault.Conflict
	case CodeContactBlocked, CodeDenied:
		return fault.Denied
	case CodeDiskFull, CodeDatabase, CodePool, CodeBusy, CodeRate:
		return fault.Unavailable
	case CodeCorruption, CodeUnhandled:
		return fault.Internal
	}
	return fault.Invalid
}

// Errorf creates an error. It is recoverable unless its kind is Internal.
func Errorf(code, format string, args ...any) *Error {
	e := fault.Newf(kindOf(code), code, format, args...)
	e.Details = map[string]any{"recoverable": e.Kind != fault.Internal}
	return &Error{e}
}

// Error returns the message.
func (p *Error) Error() string { return p.e.Message }

// Unwrap returns the fault.Error, the form that all edges use.
func (p *Error) Unwrap() error { return p.e }

func (p *Error) Hint(text string) *Error { return &Error{p.e.WithHint(text)} }

// With returns a copy of the error with a detail added.
func (p *Error) With(key string, value any) *Error {
	e := *p.e
	e.Details = maps.Clone(p.e.Details)
	e.Details[key] = value
	return &Error{&e}
}

// Call is a suggested tool call, ready to run.
type Call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// Suggest adds calls that could help.
func (p *Error) Suggest(calls ...Call) *Error { return p.With("suggested_tool_calls", calls) }

// InvalidArgument returns the error for an invalid argument.
func InvalidArgument(field string, provided any, format string, args ...any) *Error {
	if text, ok := provided.(string); ok {
		provided = Clip(text, 200)
	}
	return Errorf(CodeInvalid, format, args...).With("field", field).With("provided", provided).
		Hint("change the argument " + field + " and call again")
}

// Fault converts an error of the store, such as a failure to open it, to an error with a code
// of mail (mail §2.1, §14). It returns other errors unchanged, and nil for nil.
func Fault(err error) error {
	if err == nil {
		return nil
	}
	f := fault.As(err)
	var code, text string
	switch f.Code {
	case store.CodeBusy, store.CodeOverloaded, store.CodeClosed:
		code, text = CodeBusy, "Resource is temporarily busy."
	case store.CodeFull:
		code, text = CodeDiskFull, "The disk is full."
	case store.CodeCorrupt, store.CodeUnsound:
		code, text = CodeCorruption, "The database is damaged."
	case store.CodeReadOnly, store.CodeIO, store.CodeNewer, store.CodeForeign, store.CodeEncrypted, store.CodeKey, store.CodeReplaced, store.CodeMissing:
		code, text = CodeDatabase, "A database error occurred."
	case "internal", "database_error":
		code, text = CodeDatabase, "A database error occurred."
	default:
		return f
	}
	hint := f.Hint
	Default(&hint, "nothing of the call was stored; call again, and if it stays, look at `cairn doctor`")
	e := fault.Wrap(err, kindOf(code), code, text+" "+f.Message).WithHint(hint)
	e.Details = map[string]any{"recoverable": code != CodeCorruption, "cause": f.Code}
	if code == CodeCorruption {
		e.Details["corruption_details"] = f.Message
	}
	return e
}

// Clip returns the beginning of a text, at most n bytes and without a partial character.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// Printable replaces control characters and invalid bytes by spaces, for messages.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
}

// NotFound returns the error for a name or id that does not exist.
func NotFound(what string, name any) *Error {
	return Errorf(CodeNotFound, "%s %s not found", what, Quoted(name)).With(what, name)
}

func Quoted(name any) string {
	if text, ok := name.(string); ok {
		return "'" + Printable(Clip(text, 128)) + "'"
	}
	return fmt.Sprint(name)
}
