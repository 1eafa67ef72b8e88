// Package mailtest holds what the tests of several packages of mail share: checks of
// values, rows in bulk, query plans and small images.
package mailtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/fault"
)

// Must returns the value, or fails the test if there is an error.
func Must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%v (%s)", err, fault.As(err).Hint)
		}
		return v
	}
}

// Want checks that two values are equal.
func Want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// WantFields checks that a value has exactly some fields, in their order.
func WantFields(t testing.TB, what string, v any, fields ...string) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	var got []string
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				depth++
			} else {
				depth--
			}
		case string:
			if depth == 1 {
				got = append(got, token)
				var value json.RawMessage
				if err := d.Decode(&value); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(fields) {
		t.Errorf("%s has the fields %v, want %v", what, got, fields)
	}
}

// JSON returns a value as JSON.
func JSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
