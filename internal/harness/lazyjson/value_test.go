package lazyjson

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"cairn/internal/fault"
)

// FuzzJSON compares cairn's JSON functions with two other parsers.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,"b\\",{"c":null}],"d":"\"}{","e":-1.5e3}`, `[[],{},"",0]`, ` {"\u0061\n" : "x"} `, `"\ud800\udc00\ud800"`,
		"{\"\xff\":\"\x80\"}", `{"a":1,"a":[]}`, `[true,false,null]`, "\"a\\u00e9\\/\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.IndexByte(b, 0) >= 0 {
			return
		}
		valid := json.Valid(b)
		err := CheckPayload(b, 0)
		b = TrimSpace(b)
		if !valid && err == nil || valid != NewChecker().IsObject(b) && Value(b).Kind() == '{' {
			t.Fatalf("valid %t, checkPayload %v", valid, err)
		}
		if valid && err != nil && !fault.HasCode(err, "json_too_deep") && !fault.HasCode(err, "not_an_object") {
			t.Fatalf("refused: %v", err)
		}
		if valid {
			compareWalk(t, b)
		}
	})
}

// compareWalk checks that cairn's walk over a value finds the same as jsontext.
func compareWalk(t *testing.T, b Value) {
	t.Helper()
	if end := skip(b, 0); end != len(b) {
		t.Fatalf("skip ends at %d of %q", end, b)
	}
	switch b.Kind() {
	case '"':
		want, err := jsontext.AppendUnquote(nil, b)
		if err != nil && !utf8.Valid(want) {
			t.Fatal(err)
		}
		want = bytes.ReplaceAll(want, []byte{0}, []byte("\uFFFD"))
		if got := b.Text(); got != string(want) {
			t.Fatalf("%q is %q, want %q", b, got, want)
		}
	case '{', '[':
		dec := lenient(b)
		read := func() []byte {
			v, err := dec.ReadValue()
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		if _, err := dec.ReadToken(); err != nil {
			t.Fatal(err)
		}
		for name, value := range b.Members() {
			if want := read(); Value(want).Text() != string(bytes.ToValidUTF8(name, nil)) && utf8.Valid(name) {
				t.Fatalf("member %q, want %s", name, want)
			}
			if want := read(); !bytes.Equal(value, want) {
				t.Fatalf("value %s, want %s", value, want)
			}
			compareWalk(t, value)
		}
		for value := range b.Elements() {
			if want := read(); !bytes.Equal(value, want) {
				t.Fatalf("element %s, want %s", value, want)
			}
			compareWalk(t, value)
		}
		if k := dec.PeekKind(); k != '}' && k != ']' {
			t.Fatalf("more in %s: %s", b, k)
		}
	default:
		var want any
		if err := json.Unmarshal(b, &want); err == nil {
			number, isNumber := want.(float64)
			if n, ok := b.Integer(); ok && (!isNumber || float64(n) != number) {
				t.Fatalf("%s is %d", b, n)
			}
		}
	}
}
