package harnesstest

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"cairn/internal/observation"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Golden returns an event as one line of JSON without its empty fields.
func Golden(t *testing.T, e observation.Event) string {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	b, err = json.Marshal(withoutZeros(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value = withoutZeros(value); value == nil || value == "" || value == false || value == 0.0 && name != "NumFiles" {
				delete(v, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutZeros(v[i])
		}
	}
	return v
}

// SameAsGolden compares a text with a golden file, or writes the file.
func SameAsGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("run with -update and look at the difference:\n%s", got)
	}
}
