package entries_test

import (
	"testing"
	"time"

	"cairn/internal/memory/entries"
	"cairn/internal/memory/rules"
)

func FuzzCursor(f *testing.F) {
	for _, s := range []string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000001+02:00", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z",
		"01900000-0000-0000-0000-000000000000", "01900000-0000-0000-0000-00000000000G", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, id, ok := entries.ParseCursor(text)
		switch {
		case !ok:
		case id != "":
			if again, ok := rules.ParseID(id); !ok || again != id {
				t.Fatalf("%q is the id %q, which is none", text, id)
			}
		default:
			when, err := time.Parse(time.RFC3339Nano, text)
			if err != nil || when.Year() > 1700 && when.Year() < 2200 && when.UnixNano() != int64(at) {
				t.Fatalf("%q is %v, want %v (%v)", text, at, when, err)
			}
			if again, _, ok := entries.ParseCursor(at.String()); !ok || again != at {
				t.Fatalf("%v comes back as %v", at, again)
			}
		}
	})
}
