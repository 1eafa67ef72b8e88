package lazyjson

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// ValidText converts b to a string. Bytes that are not valid UTF-8 become U+FFFD.
func ValidText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}

// Quote encodes a text as JSON.
func Quote(s string) Value {
	quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		return []byte(`""`)
	}
	return quoted
}

const (
	MaxText = 2 << 20     // maximum length of a text in bytes before its middle is omitted
	textEnd = MaxText / 2 // bytes kept at each end
)

// Text returns the decoded value of a JSON string, "" for any other value. A text over MaxText
// bytes is cut to its first and last textEnd bytes, between characters. For a very long string
// only the ends are decoded.
func (v Value) Text() string {
	if v.Kind() != '"' || len(v) < 2 {
		return ""
	}
	in := v[1 : len(v)-1]
	if len(in) > 2*MaxText {
		return ends(in)
	}
	if bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		if len(in) <= MaxText {
			return string(in)
		}
		return joined(firstBytes(in), lastBytes(in))
	}
	out, _ := decode(in, 3*len(in))
	if len(out) <= MaxText {
		return string(out)
	}
	return joined(firstBytes(out), lastBytes(out))
}

// ends decodes both ends of the content of a very long string.
func ends(in []byte) string {
	head, read := decode(in, textEnd)
	in = in[read:]
	for window := textEnd + utf8.UTFMax; ; window *= 2 {
		from := 0
		if window < len(in) {
			from = boundary(in, len(in)-window)
		}
		tail, _ := decode(in[from:], 3*len(in))
		if from == 0 && len(head)+len(tail) <= MaxText {
			return joined(head, tail)
		}
		if from == 0 || len(tail) >= textEnd+utf8.UTFMax {
			return joined(firstBytes(head), lastBytes(tail))
		}
	}
}

func joined(head, tail []byte) string {
	var b strings.Builder
	b.Grow(len(head) + len(tail))
	b.Write(head)
	b.Write(tail)
	return b.String()
}

// boundary returns the first index at or after i that does not split an escape.
func boundary(in []byte, i int) int {
	at := 0
	for at < i {
		n := bytes.IndexByte(in[at:], '\\')
		if n < 0 || at+n >= i {
			return i
		}
		at += n
		_, size := unescape(in[at:])
		at += size
	}
	return at
}

func firstBytes(b []byte) []byte {
	end := min(textEnd, len(b))
	for end > 0 && end < len(b) && !utf8.RuneStart(b[end]) {
		end--
	}
	return b[:end]
}

func lastBytes(b []byte) []byte {
	start := max(0, len(b)-textEnd)
	for start < len(b) && !utf8.RuneStart(b[start]) {
		start++
	}
	return b[start:]
}

// decode converts the content of a JSON string to UTF-8. It stops when the output has limit bytes,
// or up to three more to complete a character. It returns the output and the number of bytes read.
func decode(in []byte, limit int) (out []byte, read int) {
	out = make([]byte, 0, min(len(in), limit)+utf8.UTFMax)
	for read < len(in) && len(out) < limit {
		switch c := in[read]; {
		case c == '\\':
			r, size := unescape(in[read:])
			out = utf8.AppendRune(out, r)
			read += size
		case c < utf8.RuneSelf:
			end := min(len(in), read+limit-len(out))
			i := read + 1
			for i < end && in[i] < utf8.RuneSelf && in[i] != '\\' {
				i++
			}
			out = append(out, in[read:i]...)
			read = i
		default:
			r, size := utf8.DecodeRune(in[read:])
			out = utf8.AppendRune(out, r)
			read += size
		}
	}
	return out, read
}

// unescape decodes the escape at the start of in. It returns the character (U+FFFD for a lone
// surrogate or NUL) and the length of the escape in bytes.
func unescape(in []byte) (rune, int) {
	if len(in) < 2 {
		return utf8.RuneError, len(in)
	}
	switch c := in[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return unescapeUnit(in)
	default: // " \ /
		return rune(c), 2
	}
}

func unescapeUnit(in []byte) (rune, int) {
	r, ok := unit(in)
	switch {
	case !ok:
		return utf8.RuneError, min(len(in), 6)
	case r == 0:
		return utf8.RuneError, 6
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	if low, ok := unit(in[6:]); ok {
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			return full, 12
		}
	}
	return utf8.RuneError, 6
}

// unit decodes the UTF-16 unit of a \uXXXX escape at the start of in.
func unit(in []byte) (rune, bool) {
	if len(in) < 6 || in[0] != '\\' || in[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range in[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Plain returns the text of a value in any form that harnesses send. The forms are a string, an
// array, or an object with such a value in text, content or message. An array contains strings and
// {"type":"text","text":…} blocks, which Plain joins by newlines.
func (v Value) Plain() string {
	switch v.Kind() {
	case '"':
		return v.Text()
	case '{':
		f := v.Pick("text", "content", "message")
		return FirstNonBlank(f[0].Text(), f[1].Text(), f[1].blockTexts(), f[2].Text())
	default:
		return v.blockTexts()
	}
}

func (v Value) blockTexts() string {
	var said Paragraphs
	for block := range v.Elements() {
		part := block.Text()
		if block.Kind() == '{' {
			part = block.Get("text").Text()
		}
		if part != "" {
			said.Add(part)
		}
	}
	return said.Text()
}

// Paragraphs joins texts, with or without newlines. The result is limited to the length of one text.
type Paragraphs struct{ all []byte }

// Add appends a text after a newline.
func (p *Paragraphs) Add(part string) {
	if len(p.all) > 0 {
		p.all = append(p.all, '\n')
	}
	p.Join(part)
}

// Join appends a text without a newline.
func (p *Paragraphs) Join(part string) {
	p.all = append(p.all, part...)
	if len(p.all) > 2*MaxText {
		p.cut()
	}
}

func (p *Paragraphs) cut() {
	head := firstBytes(p.all)
	p.all = append(head, lastBytes(p.all)...)
}

// Text returns the joined text.
func (p *Paragraphs) Text() string {
	if len(p.all) > MaxText {
		p.cut()
	}
	return string(p.all)
}

// FirstNonBlank returns the first text that is not blank, "" if there is none.
func FirstNonBlank(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}
