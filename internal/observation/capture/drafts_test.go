package capture

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/observation"
)

// contentLimits returns the maximum number of characters in a row's content, by type.
func contentLimits() map[string]int {
	return map[string]int{
		observation.TypePrompt: 2000, observation.TypeMessage: 2000, observation.TypeSessionStart: 200, observation.TypeSessionEnd: 200, observation.TypeCompact: 200,
		observation.TypeRead: 1000, observation.TypeWrite: 1000, observation.TypeEdit: 1000, observation.TypeSearch: 500 + len(" in ") + 1000,
		observation.TypeCommand: 500, observation.TypeGitCommit: 500, observation.TypeGitPush: 500, observation.TypeGitHub: 500, observation.TypeCommandError: 500 + 1 + 500,
		observation.TypeMCP: 300, observation.TypeSpawn: 200, observation.TypeFetch: 500, observation.TypeWebSearch: 500, observation.TypeOther: 206,
	}
}

func checkText(t *testing.T, what, s string, limit int) {
	t.Helper()
	if n := utf8.RuneCountInString(s); n > limit || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		t.Fatalf("%s: %d of %d characters, valid %v: %q", what, n, limit, utf8.ValidString(s), s)
	}
	if strings.Contains(s, plantedKey()) {
		t.Fatalf("%s holds the secret: %q", what, s)
	}
}

func checkDraft(t *testing.T, d draft) {
	t.Helper()
	limit, ok := contentLimits()[d.Type]
	if !ok {
		t.Fatalf("unknown type %q", d.Type)
	}
	checkText(t, d.Type, d.Content, limit)
	checkText(t, "path", d.Path, observation.MaxPath)
	checkText(t, "tool", d.Tool, maxFact)
	text := metaText(t, d.Meta)
	if (text == "") != (len(d.Meta) == 0) || text != "" && !json.Valid([]byte(text)) {
		t.Fatalf("metadata is no JSON: %q", text)
	}
	params, newFiles := 0, 0
	check := func(key string, v any) {
		switch v := v.(type) {
		case string:
			limit := maxFact
			switch key {
			case "error":
				limit = errorHead + errorTail
			case "command", "commit_message", "remote_url":
				limit = observation.MaxCommand
			}
			checkText(t, key, v, limit)
			if v == "" {
				t.Fatalf("%s is empty", key)
			}
		case []string:
			for _, s := range v {
				checkText(t, key, s, maxFact)
				newFiles += utf8.RuneCountInString(s)
			}
		case map[string]string:
			for name, s := range v {
				checkText(t, "a parameter's name", name, maxFact)
				checkText(t, name, s, maxParam)
				params += utf8.RuneCountInString(name + s)
			}
		}
	}
	for key, v := range d.Meta {
		check(key, v)
	}
	if params > maxParams || newFiles > maxNewFileText {
		t.Fatalf("%d characters of parameters, %d of new files", params, newFiles)
	}
}

func FuzzDrafts(f *testing.F) {
	f.Add(uint8(5), uint8(1), "git commit -m x; git push", "[main c0dd4af] s\n create mode 100644 f\n", "To x\n * [new branch] a -> a\n", 600, true)
	f.Add(uint8(3), uint8(0), "<private>", "\x1b]0;x", "", 2000, false)
	f.Add(uint8(5), uint8(9), "{\"a\":", "password", "\xff\x00", 200, true)
	f.Add(uint8(5), uint8(5), "-----BEGIN", "token=", "\u009b3", 1000, false)
	f.Fuzz(func(t *testing.T, kind, action uint8, a, b, c string, long int, failed bool) {
		secret := " " + plantedKey() + " "
		padding := strings.Repeat("wörd ", max(0, min(long, 4000)))
		plant := func(s, u string) string { return s + secret + u + "\n" + padding + secret + s }
		seven := 7
		e := observation.Event{
			Kind: observation.EventKind(kind % 6), Text: plant(a, b), Role: plant(b, c), Model: plant(c, a), Imported: failed,
			Calls: []observation.Call{{
				ID: a, Tool: plant(b, a), Action: observation.Action(action % 12), Failed: failed, Error: plant(c, b), ExitCode: &seven, DurationMS: 1,
				Command: plant(a, c), Description: plant(b, c), Note: plant(c, c), Interrupted: failed,
				Stdout: "[main c0dd4af] " + b + secret + "\n create mode 100644 " + plant(c, a) + b, Stderr: "To " + b + secret + "\n" + c,
				Path: plant(b, b), Pattern: plant(a, a), Mode: plant(a, b), NumFiles: &seven,
				Prompt: plant(c, a), SubagentType: plant(a, b), SpawnedID: plant(b, a), URL: plant(b, c), Query: plant(c, a),
				Server: plant(a, b), Method: plant(c, b), Question: plant(a, a), SkillName: plant(b, b),
				Args: []observation.Arg{{Name: plant(a, b), Value: c}, {Name: b, Value: plant(c, a)}, {Name: "password", Value: a}, {Name: "n", Value: padding}, {Name: "", Value: ""}},
			}},
		}
		for _, d := range drafts(&e, testFilter(t)) {
			checkDraft(t, d)
			checkText(t, "searchable", d.searchable(), 16000)
		}
		e.Calls[0].Command, e.Calls[0].Server, e.Calls[0].Method = a, b, c
		for _, d := range drafts(&e, testFilter(t)) {
			checkDraft(t, d)
		}
	})
}

func benchmarkDrafts(b *testing.B, e observation.Event) {
	f := testFilter(b)
	b.ReportAllocs()
	for b.Loop() {
		if rows := drafts(&e, f); len(rows) != 1 {
			b.Fatal(rows)
		}
	}
}

func BenchmarkDraftsBash(b *testing.B) {
	benchmarkDrafts(b, observation.Event{Kind: observation.Tool, Calls: []observation.Call{{ID: "toolu_01", Tool: "Bash", Action: observation.Shell,
		Command: "cd /src/app && git add -A && git commit -m \"fix: handle the empty list\" 2>&1 | tail -3", Description: "Commit the fix",
		Stdout: "[main c0dd4af] fix: handle the empty list\n 2 files changed, 31 insertions(+), 15 deletions(-)\n"}}})
}

func BenchmarkDraftsEdit(b *testing.B) {
	benchmarkDrafts(b, observation.Event{Kind: observation.Tool, Calls: []observation.Call{{ID: "toolu_01", Tool: "Edit", Action: observation.Edit, Path: "/home/me/src/app/internal/list/list.go"}}})
}

func BenchmarkDraftsPrompt2K(b *testing.B) {
	text := "The refund test fails since yesterday. Look at internal/billing/refund.go, find out why and fix it; run `go test ./...` then.\n"
	benchmarkDrafts(b, observation.Event{Kind: observation.Prompt, Text: strings.Repeat(text, 17)[:2048]})
}
