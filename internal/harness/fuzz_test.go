package harness

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"cairn/internal/fault"
	"cairn/internal/observation"
)

// checkTexts fails unless every string in v is valid UTF-8 without NUL and within the length limit
// of texts.
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
		`{"turn_id":"t","session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"apply_patch","tool_input":{"command":["apply_patch","*** Begin Patch\n*** Update File: a\n*** Move to: b\n"]}}`,
		`{"turn_id":"t","session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"bash -lc 'cd \"x\" && apply_patch <<EOF\n*** Begin Patch\n*** Add File: a\n*** End Patch\nEOF'"},"tool_response":"{\"output\":\"x\",\"metadata\":{\"exit_code\":-1}}"}`,
		`{"turn_id":null,"session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"shell","tool_input":{"command":["sh","-c","\ud800"]},"tool_response":[{"text":"Exit code: 1\nWall time: NaN seconds\nOutput:\n"}]}`,
		`{"turn_id":1,"session_id":"s","cwd":"/k","hook_event_name":"UserPromptSubmit","prompt":"<user_instructions>\n# AGENTS.md instructions"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		e, ok := hookTwice(t, payload, "auto", "")
		if !ok {
			return
		}
		for i, c := range e.Calls {
			if c.Part != i {
				t.Errorf("part %d is %d", i, c.Part)
			}
		}
	})
}

// hookTwice returns the event of a payload, and false if the payload is refused. It checks
// properties of all payloads of all harnesses.
func hookTwice(t *testing.T, payload []byte, from, home string) (observation.Event, bool) {
	t.Helper()
	e, err := Hook(bytes.Clone(payload), from, home)
	again, errAgain := Hook(bytes.Clone(payload), from, home)
	if !reflect.DeepEqual(e, again) || (err == nil) != (errAgain == nil) {
		t.Errorf("once %+v, %v; then %+v, %v", e, err, again, errAgain)
	}
	if err != nil {
		if fault.KindOf(err) != fault.Invalid || !reflect.ValueOf(e).IsZero() {
			t.Errorf("%+v, %v", e, err)
		}
		return e, false
	}
	if strings.TrimSpace(e.Session) == "" || strings.TrimSpace(e.Cwd) == "" || e.Kind == observation.Tool && len(e.Calls) == 0 {
		t.Errorf("%+v", e)
	}
	checkTexts(t, reflect.ValueOf(e))
	return e, true
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
		for _, e := range readTwice(t, file, TranscriptOptions{Path: "agent-\xff.txt"}) {
			if e.Harness == claude && e.AgentID == "" {
				t.Errorf("%+v", e)
			}
		}
	})
}

func FuzzCodexTranscript(f *testing.F) {
	file, err := os.ReadFile("testdata/codex.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	meta, _, _ := bytes.Cut(file, []byte("\n"))
	for line := range bytes.Lines(file) {
		f.Add(line)
	}
	f.Add([]byte(new(rollout).prompt("a").calls("t").output("t", "Process running with session ID 1\nOutput:\n").event("turn_aborted", nil).prompt("b").String()))
	f.Add([]byte(`{"type":"message","role":"user","content":[{"text":"<environment_context><cwd>/k"}]}` + "\n" + `{"type":"local_shell_call","id":"x","action":{"command":["a"]}}`))
	for kind, item := range map[string]object{
		"CommandExecution": {"command": []string{"/bin/bash", "-lc", "x"}, "status": "failed", "aggregated_output": "no", "exit_code": 1},
		"FileChange":       {"changes": object{"/k/a\n*** Delete File: b": object{"type": "update", "unified_diff": "@@\n-x\n+y\n", "move_path": "c"}, "d": object{"type": "add", "content": "x"}}, "status": "failed"},
		"McpToolCall":      {"server": "s", "tool": "t", "arguments": nil, "result": object{"Ok": object{"content": []string{"x"}}}, "error": "no"},
		"UserMessage":      {"content": []object{{"text": "a"}}},
		"AgentMessage":     {"content": "b"},
	} {
		item["type"], item["id"] = kind, "i"
		f.Add([]byte(new(rollout).event("task_started", object{"turn_id": "t"}).event("item_completed", object{"item": item}).String()))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		file := slices.Concat(meta, []byte("\n"), lines)
		readTwice(t, file, TranscriptOptions{Path: "rollout-\xff.jsonl"})
		readTwice(t, lines, TranscriptOptions{Path: "/x/rollout-2026-03-02T09-00-00-0a1b2c3d-0000-7000-8000-00000000c0de.jsonl"})
	})
}

// readTwice reads a file with any content and checks properties of all events and reports.
func readTwice(t *testing.T, file []byte, o TranscriptOptions) []observation.Event {
	t.Helper()
	events, report := readAll(t, bytes.NewReader(file), o)
	again, _ := readAll(t, bytes.NewReader(file), o)
	if !reflect.DeepEqual(events, again) {
		t.Error("a second reading differs")
	}
	if report.Bytes != int64(len(file)) || report.Resume < 0 || report.Resume > report.Bytes ||
		report.Resume > 0 && file[report.Resume-1] != '\n' {
		t.Errorf("%+v for %d bytes", report, len(file))
	}
	for _, e := range events {
		if e.Session == "" || e.Cwd == "" || e.At.IsZero() || !e.Imported || e.Harness != report.Harness && report.Harness != "" ||
			(e.Kind == observation.Tool) != (len(e.Calls) > 0) {
			t.Errorf("%+v", e)
		}
		checkTexts(t, reflect.ValueOf(e))
	}
	return events
}

// FuzzPatch checks that every file of a parsed patch occurs in the patch, in the same order.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		"*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n@@\n-x\n*** Delete File: d\n*** End Patch",
		"*** Begin Patch *** Add File: a", "*** Update File:\n*** Move to: x", "\r*** Delete File: C:\\x\r\n", "cd a && apply_patch <<'E'\n*** Begin Patch\n*** End PatchE",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, patch string) {
		for i, c := range patchCalls("c", patchTool, patch, "") {
			if c.Part != i || c.ID != "c" || strings.TrimSpace(c.Path) == "" || !strings.Contains(patch, c.Path) {
				t.Errorf("%d: %+v", i, c)
			}
		}
		if inner, _, ok := shellPatch(patch); ok && (!strings.HasPrefix(inner, patchBegin) || !strings.HasSuffix(inner, patchEnd)) {
			t.Errorf("%q", inner)
		}
		line, err := json.Marshal(patch)
		if err != nil {
			t.Fatal(err)
		}
		shellLine(line)
		if words, ok := splitWords("sh -c " + quoted(patch)); !ok || !slices.Equal(words, []string{"sh", "-c", patch}) {
			t.Errorf("%q is read back as %q", patch, words)
		}
	})
}

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

// compareWalk checks that cairn's walk over a value finds the same as jsontext.
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
