// Package strictjson decodes JSON and rejects unknown fields.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// ErrMore is the error for text after the JSON value.
var ErrMore = errors.New("something follows the JSON value")

// UnknownField is the error for a field that the Go type does not have. It holds the
// field's name in quotes.
type UnknownField string

func (f UnknownField) Error() string { return "the field " + string(f) + " is unknown" }

// Decode decodes text, which must be exactly one JSON value, into the value that v points
// to. It returns [UnknownField], [ErrMore] or an error of encoding/json.
func Decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return UnknownField(name)
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return ErrMore
	}
	return nil
}
