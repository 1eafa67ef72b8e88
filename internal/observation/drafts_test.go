package observation

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// contentLimits are the most characters a row of each type may hold.
func contentLimits() map[string]int {
	return map[string]int{
		typePrompt: 2000, typeMessage: 2000, typeSessionStart: 200, typeSessionEnd: 200, typeCompact: 200,
		typeRead: 1000, typeWrite: 1000, typeEdit: 1000, typeSearch: 500 + len(" in ") + 1000,
		typeCommand: 500, typeGitCommit: 500, typeGitPush: 500, typeGitHub: 500, typeCommandError: 500 + 1 + 500,
		typeMCP: 300, typeSpawn: 200, typeFetch: 500, typeWebSearch: 500, typeOther: 206,
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
	checkText(t, "path", d.Path, maxPath)
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
				limit = maxCommand
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
		e := Event{
			Kind: EventKind(kind % 6), Text: plant(a, b), Role: plant(b, c), Model: plant(c, a), Imported: failed,
			Calls: []Call{{
				ID: a, Tool: plant(b, a), Action: Action(action % 12), Failed: failed, Error: plant(c, b), ExitCode: &seven, DurationMS: 1,
				Command: plant(a, c), Description: plant(b, c), Note: plant(c, c), Interrupted: failed,
				Stdout: "[main c0dd4af] " + b + secret + "\n create mode 100644 " + plant(c, a) + b, Stderr: "To " + b + secret + "\n" + c,
				Path: plant(b, b), Pattern: plant(a, a), Mode: plant(a, b), NumFiles: &seven,
				Prompt: plant(c, a), SubagentType: plant(a, b), SpawnedID: plant(b, a), URL: plant(b, c), Query: plant(c, a),
				Server: plant(a, b), Method: plant(c, b), Question: plant(a, a), SkillName: plant(b, b),
				Args: []Arg{{plant(a, b), c}, {b, plant(c, a)}, {"password", a}, {"n", padding}, {"", ""}},
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

func benchmarkDrafts(b *testing.B, e Event) {
	f := testFilter(b)
	b.ReportAllocs()
	for b.Loop() {
		if rows := drafts(&e, f); len(rows) != 1 {
			b.Fatal(rows)
		}
	}
}

func BenchmarkDraftsBash(b *testing.B) {
	benchmarkDrafts(b, Event{Kind: Tool, Calls: []Call{{ID: "toolu_01", Tool: "Bash", Action: Shell,
		Command: "cd /src/app && git add -A && git commit -m \"fix: handle the empty list\" 2>&1 | tail -3", Description: "Commit the fix",
		Stdout: "[main c0dd4af] fix: handle the empty list\n 2 files changed, 31 insertions(+), 15 deletions(-)\n"}}})
}

func BenchmarkDraftsEdit(b *testing.B) {
	benchmarkDrafts(b, Event{Kind: Tool, Calls: []Call{{ID: "toolu_01", Tool: "Edit", Action: Edit, Path: "/home/me/src/app/internal/list/list.go"}}})
}

func BenchmarkDraftsPrompt2K(b *testing.B) {
	text := "The refund test fails since yesterday. Look at internal/billing/refund.go, find out why and fix it; run `go test ./...` then.\n"
	benchmarkDrafts(b, Event{Kind: Prompt, Text: strings.Repeat(text, 17)[:2048]})
}
