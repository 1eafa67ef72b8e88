package harness

import (
	"bytes"
	"errors"
	"iter"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"cairn/internal/fault"
)

// maxDepth limits the nesting of arrays and objects in a hook payload.
const maxDepth = 1000

// maskNUL replaces NUL bytes, which JSON must not contain, by a byte that is invalid in UTF-8.
// Inside a string this byte is read as U+FFFD. Anywhere else it is an error at the same offset.
// maskNUL modifies b.
func maskNUL(b []byte) {
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

// checkPayload returns an error unless b is one JSON object, nested at most maxDepth deep,
// surrounded only by white space. b begins at offset base of the payload. Offsets in error
// messages count from the start of the payload.
func checkPayload(b []byte, base int) error {
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
	if rest := trimSpace(b[dec.InputOffset():]); len(rest) > 0 {
		return invalid(len(b) - len(rest))
	}
	if kindOf(trimSpace(b)) != '{' {
		return fault.New(fault.Invalid, "not_an_object", "payload must be a JSON object")
	}
	return nil
}

// isObject reports whether b is one JSON object and nothing else.
func isObject(dec *jsontext.Decoder, b []byte) bool {
	if kindOf(b) != '{' {
		return false
	}
	dec.Reset(bytes.NewBuffer(b), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return dec.SkipValue() == nil && len(trimSpace(b[dec.InputOffset():])) == 0
}

func trimSpace(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

// kindOf returns the first byte of a JSON value: { [ " t f n, a digit or a minus sign. It returns
// 0 if v is empty.
func kindOf(v []byte) byte {
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

// The functions below walk JSON that is already checked. They are lazy: they skip unused values
// without decoding them.

// members yields the names (without quotes) and values of an object in order. For other values it
// yields nothing.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		if kindOf(object) != '{' {
			return
		}
		for i := next(object, 1); i < len(object) && object[i] == '"'; {
			end := skip(object, i)
			name := object[i+1 : max(i+1, end-1)]
			if bytes.IndexByte(name, '\\') >= 0 {
				name, _ = decode(name, 3*len(name))
			}
			i = next(object, end)
			end = skip(object, i)
			if end <= i || !yield(name, object[i:end]) {
				return
			}
			i = next(object, end)
		}
	}
}

// elements yields the values of an array in order. For other values it yields nothing.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if kindOf(array) != '[' {
			return
		}
		for i := next(array, 1); i < len(array) && array[i] != ']'; {
			end := skip(array, i)
			if end <= i || !yield(array[i:end]) {
				return
			}
			i = next(array, end)
		}
	}
}

// pick returns the values of the named members of an object, nil for missing members. If a name
// occurs more than once, the last value counts.
func pick(object []byte, names ...string) [][]byte {
	found := make([][]byte, len(names))
	for name, value := range members(object) {
		for i, want := range names {
			if want == string(name) {
				found[i] = value
				break
			}
		}
	}
	return found
}

// get is pick for one name.
func get(object []byte, name string) []byte { return pick(object, name)[0] }

// next returns the first index at or after i that is not white space, a comma or a colon.
func next(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
		default:
			return i
		}
	}
	return i
}

// skip returns the end of the value that starts at i.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	for i < len(b) {
		switch b[i] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return i
		}
		i++
	}
	return i
}

func skipString(b []byte, i int) int {
	start := i + 1
	for i = start; ; i++ {
		quote := bytes.IndexByte(b[i:], '"')
		if quote < 0 {
			return len(b)
		}
		i += quote
		slashes := 0
		for i-slashes > start && b[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

func skipNested(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// compact appends a JSON value to dst without white space between tokens. It appends at most limit
// bytes.
func compact(dst, value []byte, limit int) []byte {
	limit += len(dst)
	for i := 0; i < len(value) && len(dst) < limit; {
		switch value[i] {
		case ' ', '\t', '\r', '\n':
			i++
		case '"':
			end := min(skipString(value, i), i+limit-len(dst))
			dst = append(dst, value[i:end]...)
			i = end
		default:
			dst = append(dst, value[i])
			i++
		}
	}
	return dst
}

func isTrue(value []byte) bool { return string(value) == "true" }

// integer parses an integer with an absolute value of at most 2^53.
func integer(value []byte) (int64, bool) {
	if k := kindOf(value); k != '-' && (k < '0' || k > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// validText converts b to a string. Bytes that are not valid UTF-8 become U+FFFD.
func validText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}
