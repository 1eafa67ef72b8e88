package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/bench/workload"
)

// oddSession covers unusual cases. Its calls include a slash command, and a failed, a refused
// and an invalid call. It also has a compaction, a prompt sent meanwhile, an interrupted turn,
// a repeated line and an incomplete line.
const oddSession = `{"type":"summary","summary":"x","leafUuid":"u0"}
{"type":"user","uuid":"u1","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:00.000Z","message":{"role":"user","content":"<command-message>plan</command-message><command-name>/plan</command-name><command-args>the refund</command-args>"}}
{"type":"assistant","uuid":"u2","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:01.000Z","message":{"model":"m","content":[{"type":"text","text":"Looking."}]}}
{"type":"assistant","uuid":"u3","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:02.000Z","message":{"model":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make test"}}]}}
{"type":"user","uuid":"u4","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:03.000Z","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"Exit code 2\nno rule","is_error":true}]},"toolUseResult":"Error: Exit code 2\nno rule"}
{"type":"assistant","uuid":"u5","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:04.000Z","message":{"model":"m","content":[{"type":"tool_use","id":"t2","name":"Edit","input":{"file_path":"a.go"}},{"type":"tool_use","id":"t3","name":"Read","input":{}}]}}
{"type":"user","uuid":"u6","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:05.000Z","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"The user doesn't want to proceed with this tool use.","is_error":true}]},"toolUseResult":"User rejected tool use"}
{"type":"user","uuid":"u7","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:06.000Z","message":{"content":[{"type":"tool_result","tool_use_id":"t3","content":"<tool_use_error>InputValidationError</tool_use_error>","is_error":true}]}}
{"type":"attachment","uuid":"u8","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:07.000Z","attachment":{"type":"queued_command","prompt":"and the tests, please","commandMode":"prompt"}}
{"type":"assistant","uuid":"u9","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:08.000Z","message":{"model":"m","content":[{"type":"text","text":"It needs a rule called test."}]}}
{"type":"assistant","uuid":"u9","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:08.000Z","message":{"model":"m","content":[{"type":"text","text":"It needs a rule called test."}]}}
{"type":"user","uuid":"u10","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:09.000Z","isMeta":true,"message":{"content":"Caveat: none"}}
{"type":"user","uuid":"u11","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:10.000Z","message":{"content":"<local-command-stdout>ok</local-command-stdout>"}}
{"type":"system","subtype":"compact_boundary","uuid":"u12","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:11.000Z"}
{"type":"user","uuid":"u13","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:12.000Z","isCompactSummary":true,"message":{"content":"So far: a rule was missing."}}
{"type":"user","uuid":"u14","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:13.000Z","message":{"content":[{"type":"text","text":"now add the rule"}]}}
{"type":"assistant","uuid":"u15","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:14.000Z","message":{"model":"m","content":[{"type":"text","text":"Adding it."},{"type":"tool_use","id":"t4","name":"Write","input":{"file_path":"Makefile","content":"test:"}}]}}
{"type":"user","uuid":"u16","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:15.000Z","message":{"content":[{"type":"tool_result","tool_use_id":"t4","content":"ok"}]},"toolUseResult":{"type":"create","filePath":"/work/shop/Makefile"}}
{"type":"user","uuid":"u17","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:16.000Z","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}
{"type":"user","uuid":"u18","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:17.000Z","message":{"content":"stop, commit first"}}
{"type":"assistant","uuid":"u19","sessionId":"S","cwd":"/work/shop","timestamp":"2026-01-10T10:00:18.000Z","message":{"model":"m","content":[{"type":"text","text":"Committed."}]}}
{"type":"assistant","uuid":"u20","sess`

func TestTranslationTellsWhatTheHarnessReported(t *testing.T) {
	t.Parallel()
	tr := newTranslator("")
	var told []string
	note := func(payloads []workload.HookPayload) {
		for _, p := range payloads {
			if p.Session != "S" || p.Cwd != "/work/shop" {
				t.Errorf("%s of session %q in %q", p.Event, p.Session, p.Cwd)
			}
			told = append(told, strings.TrimSpace(p.Event+" "+p.ID+p.Source+p.Prompt+p.Message+p.Summary))
		}
	}
	for line := range strings.Lines(oddSession) {
		var l transcriptLine
		if json.Unmarshal([]byte(line), &l) == nil {
			note(tr.line(l))
		}
	}
	note(tr.end())
	want := []string{
		"SessionStart startup", "UserPromptSubmit /plan the refund", "PostToolUseFailure t1", "UserPromptSubmit and the tests, please",
		"Stop It needs a rule called test.", "SessionStart compact", "PostCompact So far: a rule was missing.",
		"UserPromptSubmit now add the rule", "PostToolUse t4", "UserPromptSubmit stop, commit first", "Stop Committed.",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

func TestImportingWhatWasRecordedLiveAddsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sources := filepath.Join(dir, "sources")
	if err := os.MkdirAll(sources, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sources, "S.jsonl"), []byte(oddSession), 0o600); err != nil {
		t.Fatal(err)
	}
	w := workload.New(filepath.Join(dir, "projects"), 1)
	if _, err := workload.WriteTranscript(sources, w.Session(5, time.Now().Add(-72*time.Hour)), 80); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(sources, "*"))
	if err != nil {
		t.Fatal(err)
	}
	nested, err := filepath.Glob(filepath.Join(sources, "*", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	r := &replaying{live: filepath.Join(dir, "live", "cairn.db"), copies: filepath.Join(dir, "copies"), moments: map[string]time.Time{}}
	r.call = func(payload []byte) { recordIn(t, r.live, payload) }
	for i, path := range append(files, nested...) {
		if strings.HasSuffix(path, ".jsonl") {
			if err := r.file(t.Context(), path, i); err != nil {
				t.Fatal(err)
			}
		}
	}
	tab := newTable("replay", "test", "")
	if err := r.compare(t.Context(), tab, dir); err != nil {
		t.Fatal(err)
	}
	for _, row := range tab.Rows {
		wanted := strings.Contains(row.Name, "differs") || strings.Contains(row.Name, "alone") || row.Target == "none"
		if wanted && row.Cells[0] != 0 {
			t.Errorf("%s: %v", row.Name, row.Cells[0])
		}
	}
	if both := tab.Rows[7]; both.Name != "calls with a row of both" || both.Cells[0].(int) < 40 {
		t.Errorf("%s: %v", both.Name, both.Cells[0])
	}
	if t.Failed() {
		t.Log(strings.Join(tab.Notes, "\n"))
	}
}
