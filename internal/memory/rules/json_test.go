package rules

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

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
