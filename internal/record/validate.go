package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits (records §1).
const (
	maxType     = 64
	maxTitle    = 200
	maxSummary  = 1000
	maxBody     = 1 << 20
	maxRelated  = 100
	maxMetadata = 64 << 10
	maxReason   = 1000
	maxLimit    = 500

	maxDescription = 2000 // of a project
)

func states() []State { return []State{Open, Later, Resolved, Discarded} }

func checkState(field string, s State) error {
	if slices.Contains(states(), s) {
		return nil
	}
	return invalid(field, fmt.Sprintf("%.40q is not a state; valid states are OPEN, LATER, RESOLVED and DISCARDED", s))
}

func checkStates(field string, list []State) error {
	for _, s := range list {
		if err := checkState(field, s); err != nil {
			return err
		}
	}
	return nil
}

// checkText returns an error for invalid or too long text.
func checkText(field, text string, limit int) error {
	switch {
	case !utf8.ValidString(text):
		return invalid(field, field+" is not valid UTF-8")
	case strings.ContainsRune(text, 0):
		return invalid(field, field+" contains a NUL character")
	case utf8.RuneCountInString(text) > limit:
		return invalid(field, fmt.Sprintf("%s has at most %d characters", field, limit))
	}
	return nil
}

func checkType(text string) error {
	if err := checkText("type", text, maxType); err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" || strings.ContainsFunc(text, unicode.IsControl) {
		return invalid("type", "type is one line of 1 to 64 characters")
	}
	return nil
}

// checkTitle returns the title without the blanks around it.
func checkTitle(text string) (string, error) {
	text = strings.TrimSpace(text)
	if err := checkText("title", text, maxTitle); err != nil {
		return "", err
	}
	if text == "" || strings.ContainsFunc(text, isLineBreak) {
		return "", invalid("title", "title is one line of 1 to 200 characters")
	}
	return text, nil
}

func isLineBreak(r rune) bool {
	return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029'
}

func checkBody(text string) error {
	if len(text) > maxBody {
		return invalid("body", "body has at most 1 MiB")
	}
	return checkText("body", text, maxBody)
}

// reasonKey is the metadata key of the reason of the last transition.
const reasonKey = "state_reason"

// checkMetadata returns the members of a metadata object, or nil if there is none.
func checkMetadata(data json.RawMessage) (map[string]any, error) {
	if data == nil {
		return nil, nil
	}
	if len(data) > maxMetadata {
		return nil, invalid("metadata", "metadata has at most 64 KiB")
	}
	if err := checkText("metadata", string(data), maxMetadata); err != nil {
		return nil, err
	}
	var object map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&object); err != nil || object == nil || d.More() {
		return nil, invalid("metadata", "metadata must be a JSON object")
	}
	if len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return nil, invalid("metadata", "metadata must be one JSON object")
	}
	return object, nil
}

// text redacts a text.
func (b *Service) text(s string) string {
	if b.config.Filter == nil {
		return s
	}
	s, _ = b.config.Filter.Text(s)
	return s
}

// line redacts a text that must stay within a limit and on one line.
func (b *Service) line(s string, limit int) string {
	s = b.text(s)
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i]
		}
	}
	return s
}

// metadata redacts an object and adds the reason of the last transition, "" for none. It
// returns nil for an empty object.
func (b *Service) metadata(object map[string]any, reason any) (json.RawMessage, error) {
	if b.config.Filter != nil && object != nil {
		v, _ := b.config.Filter.Value(object)
		clean, ok := v.(map[string]any)
		if !ok {
			return nil, invalid("metadata", "metadata must be a JSON object")
		}
		object = clean
	}
	if reason != nil {
		with := map[string]any{}
		for k, v := range object {
			with[k] = v
		}
		with[reasonKey] = reason
		object = with
	}
	if len(object) == 0 {
		return nil, nil
	}
	return plainJSON(object)
}

// plainJSON encodes a value in the spelling of rows and of agents: unlike the log, it
// does not escape HTML characters.
func plainJSON(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// canonical returns a JSON text in the spelling of rows. Invalid JSON is returned
// unchanged.
func canonical(text json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if len(text) == 0 || dec.Decode(&v) != nil {
		return text
	}
	out, err := plainJSON(v)
	if err != nil {
		return text
	}
	return out
}

// withReason returns stored metadata with another reason, nil for none. Stored metadata
// is already redacted.
func withReason(data json.RawMessage, reason any) (json.RawMessage, error) {
	object, err := decodeObject(data)
	if err != nil {
		return nil, err
	}
	delete(object, reasonKey)
	return (&Service{}).metadata(object, reason)
}

func decodeObject(data json.RawMessage) (object map[string]any, err error) {
	if len(data) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return object, d.Decode(&object)
}

// checkRelated returns the ids of other records in their usual form, once each,
// in the order given. own is the record's own number.
func (s *callTx) checkRelated(ctx context.Context, ids []string, own int64) ([]string, error) {
	if len(ids) > maxRelated {
		return nil, invalid("related", "related has at most 100 ids")
	}
	var related, missing []string
	for _, id := range ids {
		number, ok := parseID(id)
		if ok {
			if err := s.tx.Get(ctx, []any{&ok}, selectExists, s.p.Key, number); err != nil {
				return nil, err
			}
		}
		switch {
		case number == own && own != 0:
			return nil, invalid("related", "a record cannot be related to itself")
		case !ok:
			missing = append(missing, id)
		case !slices.Contains(related, formatID(number)):
			related = append(related, formatID(number))
		}
	}
	if len(missing) > 0 {
		return nil, recordNotFound(missing...)
	}
	return related, nil
}

// clamp limits a number to 1 to 500; 0 means usual.
func clamp(limit, usual int) int {
	if limit == 0 {
		limit = usual
	}
	return min(max(limit, 1), maxLimit)
}
