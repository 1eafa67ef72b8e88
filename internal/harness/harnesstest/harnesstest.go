package harnesstest

import (
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cairn/internal/observation"
)

// CheckTexts fails unless every string in v is valid UTF-8 without NUL and within the length limit
// of texts.
func CheckTexts(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); !utf8.ValidString(s) || strings.ContainsRune(s, 0) || len(s) > 2<<20 {
			t.Errorf("%d bytes: %.200q", len(s), s)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				CheckTexts(t, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			CheckTexts(t, v.Index(i))
		}
	}
}

// Someday is a modification time of files.
var Someday = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// Payload returns a hook payload of the event with the given members in addition to the common
// ones. A nil value removes a common member.
func Payload(t testing.TB, event string, more map[string]any) []byte {
	t.Helper()
	return Merged(t, Object{
		"session_id": "s-1", "cwd": "/home/ada/kiln", "hook_event_name": event,
		"transcript_path": "/nowhere.jsonl", "permission_mode": "default",
	}, more)
}

// Merged returns a JSON object of common members and more. A nil value removes a common member.
func Merged(t testing.TB, p, more Object) []byte {
	t.Helper()
	for name, value := range more {
		if value == nil {
			delete(p, name)
		} else {
			p[name] = value
		}
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Object is a JSON object.
type Object = map[string]any

// WithoutPieces returns calls without their written passages.
func WithoutPieces(calls []observation.Call) []observation.Call {
	out := slices.Clone(calls)
	for i := range out {
		out[i].Pieces, out[i].Whole, out[i].Partial = nil, false, false
	}
	return out
}

// Huge returns a payload over the limit: a part is repeated between its head and its end.
func Huge(head, part, end string) io.Reader {
	chunk := strings.Repeat(part, 1<<20/len(part))
	readers := []io.Reader{strings.NewReader(head)}
	for size := 0; size <= 64<<20; size += len(chunk) {
		readers = append(readers, strings.NewReader(chunk))
	}
	return io.MultiReader(append(readers, strings.NewReader(end))...)
}

// Told returns the text of an event, or the id of its first call.
func Told(e observation.Event) string {
	if e.Kind == observation.Tool {
		return e.Calls[0].ID
	}
	return e.Text
}

// Endless repeats one byte.
type Endless byte

// Read fills p.
func (c Endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c)
	}
	return len(p), nil
}
