package harness

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"cairn/internal/fault"
	"cairn/internal/observation"
)

// checkTexts fails unless every string in v is UTF-8 without NUL and not longer
// than a text may be.
func checkTexts(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); !utf8.ValidString(s) || strings.ContainsRune(s, 0) || len(s) > longText {
			t.Errorf("%d bytes: %.200q", len(s), s)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				checkTexts(t, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkTexts(t, v.Index(i))
		}
	}
}

func FuzzHook(f *testing.F) {
	for _, seed := range []string{
		``, `[]`, `{`, `{"a":"\ud800"}`, byteOrderMark + `{}`, strings.Repeat(`{"a":[`, 600),
		`{"session_id":"s","cwd":"/k","hook_event_name":"UserPromptSubmit","prompt":"<bash-x>\u0000</bash-x> [Request interrupted by user] y"}`,
		`{"session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"x"},"tool_response":{"stdout":"\udfff","exit_code":1e3}}`,
		`{"session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"a__b","tool_input":{"q":{"z":[1 , "` + "\xff" + `"]},"\u0061":"\u0000"}}`,
		`{"session_id":"s","cwd":"/k","hook_event_name":"PostToolUseFailure","tool_name":"Edit","tool_input":{"edits":[{}]},"error":{"message":"m"}}`,
		`{"session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"AskUserQuestion","tool_input":{"questions":[["a"]]},"tool_response":"Error: Exit code -4"}`,
		`{"session_id":"s","cwd":"/k","hook_event_name":"Stop","last_assistant_message":["a",{"text":"b"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		e, err := Hook(bytes.Clone(payload), "auto", "")
		again, errAgain := Hook(bytes.Clone(payload), "auto", "")
		if !reflect.DeepEqual(e, again) || (err == nil) != (errAgain == nil) {
			t.Errorf("once %+v, %v; then %+v, %v", e, err, again, errAgain)
		}
		if err != nil {
			if fault.KindOf(err) != fault.Invalid || !reflect.ValueOf(e).IsZero() {
				t.Errorf("%+v, %v", e, err)
			}
			return
		}
		if strings.TrimSpace(e.Session) == "" || strings.TrimSpace(e.Cwd) == "" || e.Kind == observation.Tool != (len(e.Calls) == 1) {
			t.Errorf("%+v", e)
		}
		checkTexts(t, reflect.ValueOf(e))
	})
}

func FuzzTranscript(f *testing.F) {
	file, err := os.ReadFile("testdata/session.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	for line := range bytes.Lines(file) {
		f.Add(line)
	}
	f.Add([]byte(new(talk).user("a").says("b").calls("t").result("t", `,"content":["x"],"is_error":true`).user("[Request interrupted").String()))
	f.Fuzz(func(t *testing.T, file []byte) {
		events, report := readAll(t, bytes.NewReader(file), TranscriptOptions{Path: "agent-\xff.txt"})
		again, _ := readAll(t, bytes.NewReader(file), TranscriptOptions{Path: "agent-\xff.txt"})
		if !reflect.DeepEqual(events, again) {
			t.Error("a second reading differs")
		}
		if report.Bytes != int64(len(file)) || report.Resume < 0 || report.Resume > report.Bytes ||
			report.Resume > 0 && file[report.Resume-1] != '\n' {
			t.Errorf("%+v for %d bytes", report, len(file))
		}
		for _, e := range events {
			if e.Session == "" || e.Cwd == "" || e.At.IsZero() || !e.Imported || e.AgentID == "" {
				t.Errorf("%+v", e)
			}
			checkTexts(t, reflect.ValueOf(e))
		}
	})
}

// FuzzJSON holds our reading of JSON against two others.
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
		err := checkPayload(b, 0)
		b = trimSpace(b)
		if !valid && err == nil || valid != isObject(lenient(nil), b) && kindOf(b) == '{' {
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

// compareWalk checks that our walk over a value finds what jsontext finds.
func compareWalk(t *testing.T, b []byte) {
	t.Helper()
	if end := skip(b, 0); end != len(b) {
		t.Fatalf("skip ends at %d of %q", end, b)
	}
	switch kindOf(b) {
	case '"':
		want, err := jsontext.AppendUnquote(nil, b)
		if err != nil && !utf8.Valid(want) {
			t.Fatal(err)
		}
		want = bytes.ReplaceAll(want, []byte{0}, []byte("\uFFFD"))
		if got := text(b); got != string(want) {
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
		for name, value := range members(b) {
			if want := read(); text(want) != string(bytes.ToValidUTF8(name, nil)) && utf8.Valid(name) {
				t.Fatalf("member %q, want %s", name, want)
			}
			if want := read(); !bytes.Equal(value, want) {
				t.Fatalf("value %s, want %s", value, want)
			}
			compareWalk(t, value)
		}
		for value := range elements(b) {
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
			if n, ok := integer(b); ok && (!isNumber || float64(n) != number) {
				t.Fatalf("%s is %d", b, n)
			}
		}
	}
}
