package lazyjson

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"cairn/internal/fault"
)

// ByteOrderMark may precede the JSON of a file.
const ByteOrderMark = "\uFEFF"

// maxDepth limits the nesting of arrays and objects in a hook payload.
const maxDepth = 1000

// MaskNUL replaces NUL bytes, which JSON must not contain, by a byte that is invalid in UTF-8.
// Inside a string this byte is read as U+FFFD. Anywhere else it is an error at the same offset.
// MaskNUL modifies b.
func MaskNUL(b []byte) {
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			return
		}
		b[i] = 0xFF
		b = b[i+1:]
	}
}

func lenient(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// CheckPayload returns an error unless b is one JSON object, nested at most maxDepth deep,
// surrounded only by white space. b begins at offset base of the payload. Offsets in error
// messages count from the start of the payload.
func CheckPayload(b []byte, base int) error {
	invalid := func(at int) error {
		return fault.Newf(fault.Invalid, "invalid_json", "invalid JSON at byte %d", base+at)
	}
	dec := lenient(b)
	for {
		if _, err := dec.ReadToken(); err != nil {
			var syntax *jsontext.SyntacticError
			if errors.As(err, &syntax) {
				return invalid(int(syntax.ByteOffset))
			}
			return invalid(len(b)) // only white space
		}
		depth := dec.StackDepth()
		if depth > maxDepth {
			return fault.New(fault.Invalid, "json_too_deep", "JSON nested too deeply")
		}
		if depth == 0 {
			break
		}
	}
	if rest := TrimSpace(b[dec.InputOffset():]); len(rest) > 0 {
		return invalid(len(b) - len(rest))
	}
	if TrimSpace(b).Kind() != '{' {
		return fault.New(fault.Invalid, "not_an_object", "payload must be a JSON object")
	}
	return nil
}

// Checker checks texts one after the other. It reuses its memory.
type Checker struct{ dec *jsontext.Decoder }

// NewChecker returns a checker.
func NewChecker() Checker { return Checker{lenient(nil)} }

// IsObject reports whether b is one JSON object and nothing else.
func (c Checker) IsObject(b []byte) bool { return Value(b).Kind() == '{' && c.IsValue(b) }

// IsValue reports whether b is one JSON value and nothing else.
func (c Checker) IsValue(b []byte) bool {
	c.dec.Reset(bytes.NewBuffer(b), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return c.dec.SkipValue() == nil && len(TrimSpace(b[c.dec.InputOffset():])) == 0
}

// Trimmed returns b without a byte order mark at its start and white space around it.
func Trimmed(b []byte) Value { return TrimSpace(bytes.TrimPrefix(b, []byte(ByteOrderMark))) }

// TrimSpace returns b without white space around it.
func TrimSpace(b []byte) Value { return bytes.Trim(b, " \t\r\n") }
