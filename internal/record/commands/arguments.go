package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/record"
	"cairn/internal/redact"
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

	maxDescription = 2000 // of a project
)

func checkType(text string) error {
	if err := checkText("type", text, maxType); err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" || strings.ContainsFunc(text, unicode.IsControl) {
		return record.Invalid("type", "type is one line of 1 to 64 characters")
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
		return "", record.Invalid("title", "title is one line of 1 to 200 characters")
	}
	return text, nil
}

func isLineBreak(r rune) bool {
	return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029'
}

func checkBody(text string) error {
	if len(text) > maxBody {
		return record.Invalid("body", "body has at most 1 MiB")
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
		return nil, record.Invalid("metadata", "metadata has at most 64 KiB")
	}
	if err := checkText("metadata", string(data), maxMetadata); err != nil {
		return nil, err
	}
	var object map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&object); err != nil || object == nil || d.More() {
		return nil, record.Invalid("metadata", "metadata must be a JSON object")
	}
	if len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return nil, record.Invalid("metadata", "metadata must be one JSON object")
	}
	return object, nil
}

// metadataWith redacts an object and adds the reason of the last transition, nil for none.
// It returns nil for an empty object.
func metadataWith(filter *redact.Filter, object map[string]any, reason any) (json.RawMessage, error) {
	if filter != nil && object != nil {
		v, _ := filter.Value(object)
		clean, ok := v.(map[string]any)
		if !ok {
			return nil, record.Invalid("metadata", "metadata must be a JSON object")
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
	return record.PlainJSON(object)
}

// withReason returns stored metadata with another reason, nil for none. Stored metadata
// is already redacted.
func withReason(data json.RawMessage, reason any) (json.RawMessage, error) {
	object, err := record.DecodeObject(data)
	if err != nil {
		return nil, err
	}
	delete(object, reasonKey)
	return metadataWith(nil, object, reason)
}

// checkRelated returns the ids of other records in their usual form, once each,
// in the order given. own is the record's own number.
func checkRelated(ctx context.Context, s *record.CallTx, ids []string, own int64) ([]string, error) {
	if len(ids) > maxRelated {
		return nil, record.Invalid("related", "related has at most 100 ids")
	}
	var related, missing []string
	for _, id := range ids {
		number, ok := record.ParseID(id)
		if ok {
			var err error
			if ok, err = s.Exists(ctx, number); err != nil {
				return nil, err
			}
		}
		switch {
		case number == own && own != 0:
			return nil, record.Invalid("related", "a record cannot be related to itself")
		case !ok:
			missing = append(missing, id)
		case !slices.Contains(related, record.FormatID(number)):
			related = append(related, record.FormatID(number))
		}
	}
	if len(missing) > 0 {
		return nil, record.NotFound(missing...)
	}
	return related, nil
}

// checkText returns an error for invalid or too long text.
func checkText(field, text string, limit int) error {
	switch {
	case !utf8.ValidString(text):
		return record.Invalid(field, field+" is not valid UTF-8")
	case strings.ContainsRune(text, 0):
		return record.Invalid(field, field+" contains a NUL character")
	case utf8.RuneCountInString(text) > limit:
		return record.Invalid(field, fmt.Sprintf("%s has at most %d characters", field, limit))
	}
	return nil
}
