package memory

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"cairn/internal/fault"
)

// Limits of memories §5.1, in code points unless bytes are named.
const (
	maxTitle       = 50
	maxDescription = 500
	maxType        = 50
	maxReason      = 500
	maxRaw         = 9_000
	maxSummary     = 512
	maxTags        = 32
	maxTagKey      = 64
	maxTagValue    = 256
	maxMetadata    = 16 << 10 // bytes
	maxDepth       = 8
	maxKey         = 64 // bytes
)

// checkText refuses what cannot come back byte for byte (memories §5.3).
func checkText(field, text string) error {
	if !utf8.ValidString(text) {
		return invalid(field, "%s is not valid UTF-8", field)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return invalid(field, "%s contains a NUL character", field)
	}
	return nil
}

// checkLength is checkText with a limit.
func checkLength(field, text string, most int) error {
	if err := checkText(field, text); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(text); n > most {
		return invalid(field, "%s exceeds %d characters", field, most)
	}
	return nil
}

// checkBody is for the two large texts: required, with an error of its own beyond the limit.
func checkBody(field, text string, most int, code string) error {
	if err := checkText(field, text); err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return invalid(field, "%s is required", field)
	}
	if n := utf8.RuneCountInString(text); n > most {
		return failure(fault.Invalid, code, "make it shorter and call again",
			field+" is too long", "field", field, "limit", most, "actual", n)
	}
	return nil
}

// checkTitle has the messages of memories §5.1.
func checkTitle(title string) error {
	switch {
	case title == "":
		return invalid("title", "title is required")
	case !utf8.ValidString(title):
		return invalid("title", "title is not valid UTF-8")
	case utf8.RuneCountInString(title) > maxTitle:
		return invalid("title", "title exceeds 50 characters")
	case strings.ContainsFunc(title, func(r rune) bool { return !isTitleRune(r) }):
		return invalid("title", "title contains invalid characters; allowed letters, digits, hyphen")
	}
	return nil
}

func isTitleRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-'
}

func checkType(text string) error {
	odd := strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
	if odd || text == "" || len(text) > maxType {
		return invalid("memoryType", "memoryType has 1 to %d of the characters a-z 0-9 _ -", maxType)
	}
	return nil
}

func checkTags(tags map[string]string) error {
	if len(tags) > maxTags {
		return invalid("tags", "tags has more than %d keys", maxTags)
	}
	for k, v := range tags {
		if err := checkLength("tags", k, maxTagKey); err != nil || k == "" {
			return invalid("tags", "a key of tags has 1 to %d characters, no NUL, valid UTF-8", maxTagKey)
		}
		if err := checkLength("tags", v, maxTagValue); err != nil {
			return invalid("tags", "a value of tags has up to %d characters, no NUL, valid UTF-8", maxTagValue)
		}
	}
	return nil
}

// checkMetadata returns metadata without blanks between its tokens; nil for none.
func checkMetadata(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if err := CheckJSON("metadata", raw); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil || b.Bytes()[0] != '{' {
		return nil, invalid("metadata", "metadata is not a JSON object")
	}
	if b.Len() > maxMetadata {
		return nil, invalid("metadata", "metadata exceeds %d bytes", maxMetadata)
	}
	if depth(b.Bytes()) > maxDepth {
		return nil, invalid("metadata", "metadata is nested deeper than %d", maxDepth)
	}
	return b.Bytes(), nil
}

// depth is how deep a JSON text is nested.
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

// CheckJSON refuses JSON text in which a decoder would put U+FFFD in silence, or with
// a NUL: invalid UTF-8, escapes of half a surrogate pair, \u0000 (memories §5.3).
// field names the argument in the error. That it is JSON at all it does not check.
func CheckJSON(field string, raw []byte) error {
	if !utf8.Valid(raw) {
		return invalid(field, "%s is not valid UTF-8", field)
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
			return invalid(field, "%s has a broken escape", field)
		case unit == 0:
			return invalid(field, "%s contains a NUL character", field)
		case unit >= 0xDC00 && unit < 0xE000:
			return invalid(field, "%s has a lone surrogate", field)
		case unit >= 0xD800 && unit < 0xDC00:
			low, ok := hexUnit(raw, i+3)
			if !ok || raw[i+1] != '\\' || raw[i+2] != 'u' || low < 0xDC00 || low >= 0xE000 {
				return invalid(field, "%s has a lone surrogate", field)
			}
			i += 6
		}
	}
	return nil
}

// hexUnit reads four hex digits.
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

// checkContext refuses what a context document must not hold beyond other texts
// (memories §5.3): control characters but TAB, LF and CR, and non-characters.
func checkContext(text string) error {
	for _, r := range text {
		control := r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r >= 0x7F && r <= 0x9F
		nothing := r >= 0xFDD0 && r <= 0xFDEF || r&0xFFFE == 0xFFFE
		if control || nothing {
			return invalid("markdown", "markdown contains U+%04X, which a context cannot hold", r)
		}
	}
	return nil
}

// uuidArg reads a required UUID argument.
func uuidArg(field, text string) (string, error) {
	if text == "" {
		return "", invalid(field, "%s is required", field)
	}
	id, ok := ParseID(text)
	if !ok {
		return "", invalid(field, "%s is not a UUID", field)
	}
	return id, nil
}

// sessionArg reads a session_id; needed says whether "" is refused.
func sessionArg(text string, needed bool) (string, error) {
	if text == "" && !needed {
		return "", nil
	}
	if text == "" {
		return "", invalid("session_id", "session_id is required")
	}
	id, ok := sessionID(text)
	if !ok {
		return "", invalid("session_id", "session_id is neither a UUID nor a session of cairn (S-…)")
	}
	return id, nil
}

// checkKey is for an Idempotency-Key that a caller gave.
func checkKey(key string) error {
	odd := strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 || r > 0x7E })
	if odd || len(key) > maxKey {
		return invalid("idempotency_key", "idempotency_key has 1 to %d printable ASCII characters", maxKey)
	}
	return nil
}
