package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"cairn/internal/redact"
)

// testValues returns values for all placeholders of the sessions.
func testValues() map[string]string {
	return map[string]string{
		"home": `C:\Users\ada "demo"`, "shop": `C:\Users\ada "demo"\shop`, "billing": "/home/ada/billing", "stripe_key": "$STRIPE_KEY",
	}
}

// filled returns the payloads of a recording as JSON objects.
func filled(t *testing.T, r recording) []map[string]any {
	t.Helper()
	var out []map[string]any
	for i, line := range r.payloads {
		body, err := fill(line, testValues())
		if err != nil {
			t.Fatalf("%s line %d: %v", r.file, i+1, err)
		}
		var p map[string]any
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatalf("%s line %d: %v", r.file, i+1, err)
		}
		out = append(out, p)
	}
	return out
}

func mustRead(t *testing.T) []recording {
	t.Helper()
	list, err := readRecordings()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEveryRecordedLineIsAHookPayload(t *testing.T) {
	t.Parallel()
	all, calls, owner := 0, map[any]bool{}, map[any]string{}
	for _, r := range mustRead(t) {
		if r.repo != "shop" && r.repo != "billing" {
			t.Errorf("%s belongs to no repository: %q", r.file, r.repo)
		}
		for i, p := range filled(t, r) {
			all++
			for _, name := range []string{"session_id", "cwd", "hook_event_name"} {
				if s, ok := p[name].(string); !ok || strings.TrimSpace(s) == "" {
					t.Errorf("%s line %d: %s is missing", r.file, i+1, name)
				}
			}
			if was := owner[p["session_id"]]; was != "" && was != r.file {
				t.Errorf("%s and %s share a session id", r.file, was)
			}
			owner[p["session_id"]] = r.file
			if id, ok := p["tool_use_id"]; ok && calls[id] {
				t.Errorf("%s line %d: the call %v was made before", r.file, i+1, id)
			} else if ok {
				calls[id] = true
			}
		}
	}
	if all < 60 || all > 100 {
		t.Errorf("%d events are no quick tour", all)
	}
	if len(owner) != len(mustRead(t)) {
		t.Errorf("%d session ids in %d files", len(owner), len(mustRead(t)))
	}
}

func TestRecordingsShowEveryEventThatIsStored(t *testing.T) {
	t.Parallel()
	seen, subagent := map[any]bool{}, false
	for _, r := range mustRead(t) {
		for _, p := range filled(t, r) {
			seen[p["hook_event_name"]] = true
			_, ok := p["agent_id"]
			subagent = subagent || ok
		}
	}
	for _, event := range []string{
		"SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "PostCompact", "SessionEnd",
	} {
		if !seen[event] {
			t.Errorf("no session holds a %s", event)
		}
	}
	if !subagent {
		t.Error("no session holds a subagent")
	}
}

// The filter must find real secrets, and nothing else, which matters as much for the demo.
func TestRecordingsHoldNothingThatLooksLikeASecret(t *testing.T) {
	t.Parallel()
	filter, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range mustRead(t) {
		for i, p := range filled(t, r) {
			for _, s := range stringsIn(p) {
				if got, found := filter.Text(s); found {
					t.Errorf("%s line %d: %q becomes %q", r.file, i+1, s, got)
				}
			}
		}
	}
}

// stringsIn lists the strings at any depth of a JSON value.
func stringsIn(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			out = append(out, stringsIn(e)...)
		}
	case map[string]any:
		for _, e := range v {
			out = append(out, stringsIn(e)...)
		}
	}
	return out
}

func TestFillKeepsTheLineValidJSON(t *testing.T) {
	t.Parallel()
	got, err := fill([]byte(`{"cwd":"{{shop}}/x","home":"{{home}}"}`), testValues())
	if err != nil {
		t.Fatal(err)
	}
	var p map[string]string
	if err := json.Unmarshal(got, &p); err != nil {
		t.Fatal(err)
	}
	if p["cwd"] != testValues()["shop"]+"/x" || p["home"] != testValues()["home"] {
		t.Errorf("filled as %q", p)
	}
}

func TestFillRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, line := range []string{`{"a":"{{nobody}}"}`, `{"a":"{{shop"}`, `{{`} {
		if got, err := fill([]byte(line), testValues()); err == nil {
			t.Errorf("%s became %s", line, got)
		}
	}
}

func TestInventedKeysDiffer(t *testing.T) {
	t.Parallel()
	keys := []string{inventedKey(), inventedKey(), inventedKey()}
	slices.Sort(keys)
	if len(slices.Compact(keys)) != 3 {
		t.Errorf("the same key twice: %q", keys)
	}
	filter, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, found := filter.Text("our key is " + keys[0] + "."); !found || strings.Contains(got, keys[0][8:]) {
		t.Errorf("not taken for a key: %q", got)
	}
}
