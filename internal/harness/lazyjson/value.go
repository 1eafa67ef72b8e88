package lazyjson

import (
	"bytes"
	"iter"
	"math"
	"strconv"
)

// Value is a JSON value as it was sent: one value of checked JSON, or nil for a missing member.
// Its methods are lazy: they skip unused parts without decoding them.
type Value []byte

// Kind returns the first byte of a value: { [ " t f n, a digit or a minus sign. It returns 0 if the
// value is missing.
func (v Value) Kind() byte {
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

// Members yields the names (without quotes) and values of an object in order. For other values it
// yields nothing.
func (v Value) Members() iter.Seq2[[]byte, Value] {
	return func(yield func(name []byte, value Value) bool) {
		if v.Kind() != '{' {
			return
		}
		for i := next(v, 1); i < len(v) && v[i] == '"'; {
			end := skip(v, i)
			name := v[i+1 : max(i+1, end-1)]
			if bytes.IndexByte(name, '\\') >= 0 {
				name, _ = decode(name, 3*len(name))
			}
			i = next(v, end)
			end = skip(v, i)
			if end <= i || !yield(name, v[i:end]) {
				return
			}
			i = next(v, end)
		}
	}
}

// Elements yields the values of an array in order. For other values it yields nothing.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != '[' {
			return
		}
		for i := next(v, 1); i < len(v) && v[i] != ']'; {
			end := skip(v, i)
			if end <= i || !yield(v[i:end]) {
				return
			}
			i = next(v, end)
		}
	}
}

// Pick returns the values of the named members of an object, nil for missing members. If a name
// occurs more than once, the last value counts.
func (v Value) Pick(names ...string) []Value {
	found := make([]Value, len(names))
	for name, value := range v.Members() {
		for i, want := range names {
			if want == string(name) {
				found[i] = value
				break
			}
		}
	}
	return found
}

// Get is Pick for one name.
func (v Value) Get(name string) Value { return v.Pick(name)[0] }

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

// IsTrue reports whether a value is true.
func (v Value) IsTrue() bool { return string(v) == "true" }

// IsSet reports whether a value is present and differs from null, false and the empty string.
func (v Value) IsSet() bool {
	return v != nil && string(v) != "null" && string(v) != "false" && string(v) != `""`
}

// Integer returns an integer with an absolute value of at most 2^53.
func (v Value) Integer() (int64, bool) {
	if k := v.Kind(); k != '-' && (k < '0' || k > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// Code returns an integer as a pointer, nil for any other value.
func (v Value) Code() *int {
	n, ok := v.Integer()
	if !ok {
		return nil
	}
	code := int(n)
	return &code
}

// Texts yields the strings of an array.
func (v Value) Texts() iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range v.Elements() {
			if !yield(line.Text()) {
				return
			}
		}
	}
}

// maxInside limits the size of a JSON object inside a text, because the whole object is decoded.
const maxInside = 32 << 20

// Inside returns the JSON object that a JSON string contains as text. It returns nil if there is none
// or it is too long. Function calls send their arguments this way.
func (v Value) Inside() Value {
	if v.Kind() != '"' || len(v) < 4 || len(v) > maxInside {
		return nil
	}
	in := v[1 : len(v)-1]
	if first := next(in, 0); first >= len(in) || in[first] != '{' && in[first] != '\\' {
		return nil
	}
	out, _ := decode(in, 3*len(in))
	if out = TrimSpace(out); !NewChecker().IsObject(out) {
		return nil
	}
	return out
}

// Unwrapped returns the JSON object that a JSON string contains as text, else the value itself.
func (v Value) Unwrapped() Value { return First(v.Inside(), v) }

// First returns the first value that is present.
func First(values ...Value) Value {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

// UpTo returns the text of a string, or the JSON of another value without white space between
// tokens. It reads at most limit bytes of the result.
func (v Value) UpTo(limit int) string {
	if v.Kind() != '"' {
		return ValidText(compact(nil, v, limit))
	}
	return Decoded(v[1:len(v)-1], limit)
}

// Decoded returns the text at the start of a JSON string, given without its quotes. It reads at
// most limit bytes of the text.
func Decoded(in []byte, limit int) string {
	out, _ := decode(in, limit)
	return string(out)
}
