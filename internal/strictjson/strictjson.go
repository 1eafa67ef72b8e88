// Package strictjson reads JSON that may have no fields but the known ones.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// ErrMore is the error for a text with something behind its JSON value.
var ErrMore = errors.New("something follows the JSON value")

// UnknownField is the error for a field that the Go type does not have: its name, quoted.
type UnknownField string

func (f UnknownField) Error() string { return "the field " + string(f) + " is unknown" }

// Decode reads one JSON value, which is all of text, into what v points to. Errors:
// [UnknownField], [ErrMore] and those of encoding/json.
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
