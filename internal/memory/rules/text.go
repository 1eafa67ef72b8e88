package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"cairn/internal/fault"
)

// Codes of the errors of this package.
const (
	CodeInvalid         = "validation_error"
	CodeEntryTooLarge   = "entry_too_large"
	CodeContextTooLarge = "context_too_large"
)

// Limits of memories §5.1, in code points unless bytes are named.
const (
	MaxTitle       = 50
	MaxDescription = 500
	maxType        = 50
	MaxReason      = 500
	maxRaw         = 9_000
	MaxSummary     = 512
	maxTags        = 32
	maxTagKey      = 64
	maxTagValue    = 256
	maxMetadata    = 16 << 10 // bytes
	maxDepth       = 8
	MaxKey         = 64 // bytes
)

// Failure returns an error with details, which are given as alternating keys and values.
func Failure(kind fault.Kind, code, hint, message string, details ...any) *fault.Error {
	e := fault.New(kind, code, message).WithHint(hint)
	e.Details = map[string]any{}
	for i := 0; i+1 < len(details); i += 2 {
		e.Details[details[i].(string)] = details[i+1]
	}
	return e
}

// Invalid returns the error (Invalid, CodeInvalid) for a field that breaks its rule, with
// details.field.
func Invalid(field, format string, args ...any) error {
	return Failure(fault.Invalid, CodeInvalid, "change "+field+" and call again", fmt.Sprintf(format, args...), "field", field)
}

// checkText refuses texts that could not be returned byte for byte (memories §5.3).
func checkText(field, text string) error {
	if !utf8.ValidString(text) {
		return Invalid(field, "%s is not valid UTF-8", field)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return Invalid(field, "%s contains a NUL character", field)
	}
	return nil
}

// CheckLength refuses a text that is not valid UTF-8, contains a NUL, or has more than most
// characters.
func CheckLength(field, text string, most int) error {
	if err := checkText(field, text); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(text); n > most {
		return Invalid(field, "%s exceeds %d characters", field, most)
	}
	return nil
}

// checkBody checks one of the two large texts, which is required. Above the limit the error
// has a code of its own.
func checkBody(field, text string, most int, code string) error {
	if err := checkText(field, text); err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return Invalid(field, "%s is required", field)
	}
	if n := utf8.RuneCountInString(text); n > most {
		return Failure(fault.Invalid, code, "make it shorter and call again", field+" is too long", "field", field, "limit", most, "actual", n)
	}
	return nil
}

// CheckTitle checks a title. Its messages are those of memories §5.1.
func CheckTitle(title string) error {
	switch {
	case title == "":
		return Invalid("title", "title is required")
	case !utf8.ValidString(title):
		return Invalid("title", "title is not valid UTF-8")
	case utf8.RuneCountInString(title) > MaxTitle:
		return Invalid("title", "title exceeds 50 characters")
	case strings.ContainsFunc(title, func(r rune) bool { return !IsTitleRune(r) }):
		return Invalid("title", "title contains invalid characters; allowed letters, digits, hyphen")
	}
	return nil
}

// IsTitleRune reports whether a title may contain a character.
func IsTitleRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-'
}

// CheckTags checks the tags of an entry, or those to search for.
func CheckTags(tags map[string]string) error {
	if len(tags) > maxTags {
		return Invalid("tags", "tags has more than %d keys", maxTags)
	}
	for k, v := range tags {
		if err := CheckLength("tags", k, maxTagKey); err != nil || k == "" {
			return Invalid("tags", "a key of tags has 1 to %d characters, no NUL, valid UTF-8", maxTagKey)
		}
		if err := CheckLength("tags", v, maxTagValue); err != nil {
			return Invalid("tags", "a value of tags has up to %d characters, no NUL, valid UTF-8", maxTagValue)
		}
	}
	return nil
}

// checkMetadata returns metadata in compact form, nil for none.
func checkMetadata(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if err := CheckJSON("metadata", raw); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil || b.Bytes()[0] != '{' {
		return nil, Invalid("metadata", "metadata is not a JSON object")
	}
	if b.Len() > maxMetadata {
		return nil, Invalid("metadata", "metadata exceeds %d bytes", maxMetadata)
	}
	if depth(b.Bytes()) > maxDepth {
		return nil, Invalid("metadata", "metadata is nested deeper than %d", maxDepth)
	}
	return b.Bytes(), nil
}

// depth returns the depth of nesting of a JSON text.
func depth(raw []byte) (most int) {
	d := json.NewDecoder(bytes.NewReader(raw))
	for now := 0; ; {
		token, err := d.Token()
		if err != nil {
			return most
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			now++
			most = max(most, now)
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}

// CheckJSON refuses JSON text that a decoder would change silently: invalid UTF-8, escapes of
// half a surrogate pair, and \u0000 (memories §5.3). field names the argument in the error.
// CheckJSON does not check that the text is JSON.
func CheckJSON(field string, raw []byte) error {
	if !utf8.Valid(raw) {
		return Invalid(field, "%s is not valid UTF-8", field)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if i >= len(raw) || raw[i] != 'u' {
			continue
		}
		unit, ok := hexUnit(raw, i+1)
		i += 4
		switch {
		case !ok:
			return Invalid(field, "%s has a broken escape", field)
		case unit == 0:
			return Invalid(field, "%s contains a NUL character", field)
		case unit >= 0xDC00 && unit < 0xE000:
			return Invalid(field, "%s has a lone surrogate", field)
		case unit >= 0xD800 && unit < 0xDC00:
			low, ok := hexUnit(raw, i+3)
			if !ok || raw[i+1] != '\\' || raw[i+2] != 'u' || low < 0xDC00 || low >= 0xE000 {
				return Invalid(field, "%s has a lone surrogate", field)
			}
			i += 6
		}
	}
	return nil
}

// hexUnit parses four hex digits.
func hexUnit(raw []byte, at int) (unit int, ok bool) {
	if at+4 > len(raw) {
		return 0, false
	}
	for _, c := range raw[at : at+4] {
		switch {
		case c >= '0' && c <= '9':
			unit = unit<<4 | int(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			unit = unit<<4 | int(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return unit, true
}

// checkContext refuses characters that only a context document must not contain (memories
// §5.3): control characters except TAB, LF and CR, and non-characters.
func checkContext(text string) error {
	for _, r := range text {
		control := r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r >= 0x7F && r <= 0x9F
		nothing := r >= 0xFDD0 && r <= 0xFDEF || r&0xFFFE == 0xFFFE
		if control || nothing {
			return Invalid("markdown", "markdown contains U+%04X, which a context cannot hold", r)
		}
	}
	return nil
}

// UUIDArg parses a required argument that is a UUID.
func UUIDArg(field, text string) (string, error) {
	if text == "" {
		return "", Invalid(field, "%s is required", field)
	}
	id, ok := ParseID(text)
	if !ok {
		return "", Invalid(field, "%s is not a UUID", field)
	}
	return id, nil
}

// SessionArg parses the argument session_id. needed refuses "".
func SessionArg(text string, needed bool) (string, error) {
	if text == "" && !needed {
		return "", nil
	}
	if text == "" {
		return "", Invalid("session_id", "session_id is required")
	}
	id, ok := sessionID(text)
	if !ok {
		return "", Invalid("session_id", "session_id is neither a UUID nor a session of cairn (S-…)")
	}
	return id, nil
}

// CheckKey checks an Idempotency-Key; "" means that the caller gave none.
func CheckKey(key string) error {
	odd := strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 || r > 0x7E })
	if odd || len(key) > MaxKey {
		return Invalid("idempotency_key", "idempotency_key has 1 to %d printable ASCII characters", MaxKey)
	}
	return nil
}
