package memory

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzLocalID(f *testing.F) {
	for _, s := range []string{"pending-1", "pending-0", "pending-9223372036854775807", "pending-9223372036854775808", "pending-01", "Pending-1", "pending-1 ", ""} {
		f.Add(s)
	}
	pattern := regexp.MustCompile(`^pending-[1-9][0-9]*$`)
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parseLocalID(text)
		wanted := pattern.MatchString(text) && text[len(text)-1] != '\n'
		if wanted {
			_, tooLarge := strconv.ParseInt(text[len("pending-"):], 10, 64)
			wanted = tooLarge == nil
		}
		if (err == nil) != wanted {
			t.Fatalf("%q: %d, %v", text, key, err)
		}
		if err == nil && localID(key) != text {
			t.Fatalf("%q comes back as %q", text, localID(key))
		}
	})
}

func FuzzCursor(f *testing.F) {
	for _, s := range []string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000001+02:00", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z",
		"01900000-0000-0000-0000-000000000000", "01900000-0000-0000-0000-00000000000G", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, id, ok := parseCursor(text)
		switch {
		case !ok:
		case id != "":
			if again, ok := ParseID(id); !ok || again != id {
				t.Fatalf("%q is the id %q, which is none", text, id)
			}
		default:
			when, err := time.Parse(time.RFC3339Nano, text)
			if err != nil || when.Year() > 1700 && when.Year() < 2200 && when.UnixNano() != int64(at) {
				t.Fatalf("%q is %v, want %v (%v)", text, at, when, err)
			}
			if again, _, ok := parseCursor(at.String()); !ok || again != at {
				t.Fatalf("%v comes back as %v", at, again)
			}
		}
	})
}

func FuzzCanonicalJSON(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1.0,1e30,-0,4.50,2e-3,0.000000000000000000000000001]}`, `"\u20ac$\u000f\u000aA'\u0042\"\\/"`,
		`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"😀":5,"\u0080":6,"ö":7}`, `null`, `1e999`, `[`, `{} {}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		plain, err := canonicalJSON(text)
		if err != nil {
			return
		}
		if !json.Valid(plain) {
			t.Fatalf("%q became %q", text, plain)
		}
		again, err := canonicalJSON(plain)
		if err != nil || !bytes.Equal(again, plain) {
			t.Fatalf("%q became %q, then %q (%v)", text, plain, again, err)
		}
		if bytes.IndexByte(plain, '\n') >= 0 {
			t.Fatalf("%q holds a line break", plain)
		}
	})
}

func FuzzJSONText(f *testing.F) {
	for _, s := range []string{`"\ud83d\ude00"`, `"\ud800"`, `"\udc00"`, `"\\ud800"`, `"\u0000"`, `"\ud800\u0041"`, "\"\xff\"", `"\u00"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v string
		if json.Unmarshal(text, &v) != nil {
			return
		}
		sound := CheckJSON("x", text) == nil
		// What the decoder replaced is told apart from what was given by turning the
		// character itself into another before.
		replaced := bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\ufffd"), nil), []byte(`\ufffd`), nil)
		replaced = bytes.ReplaceAll(replaced, []byte(`\uFFFD`), nil)
		var w string
		if json.Unmarshal(replaced, &w) != nil || bytes.Contains(bytes.ToLower(replaced), []byte(`\ufffd`)) {
			return
		}
		broken := bytes.ContainsRune([]byte(w), utf8.RuneError) || bytes.IndexByte([]byte(w), 0) >= 0 || !utf8.Valid(replaced)
		if sound && broken && bytes.Equal(text, replaced) {
			t.Fatalf("%q is taken and decodes to %q", text, v)
		}
		if !sound && !broken && bytes.Equal(text, replaced) {
			t.Fatalf("%q is refused and decodes to %q", text, v)
		}
	})
}

func TestCanonicalJSONIsTheStandards(t *testing.T) {
	t.Parallel()
	for text, plain := range map[string]string{
		`{ "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001, -0, 1e21, 1e-6, 1e-7, 123456789012345678901] }`: `{"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27,0,1e+21,0.000001,1e-7,123456789012345680000]}`,
		`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"😀":5,"\u0080":6,"ö":7}`:                                                                       "{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}",
		`"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`:                                                                                   `"€$\u000f\nA'B\"\\\\\"/"`,
		`[true,false,null,"<&>\u2028"]`:                                                                                                     "[true,false,null,\"<&>\u2028\"]",
	} {
		got, err := canonicalJSON([]byte(text))
		if err != nil || string(got) != plain {
			t.Errorf("%s\n is %s, %v\nwant %s", text, got, err, plain)
		}
	}
}
