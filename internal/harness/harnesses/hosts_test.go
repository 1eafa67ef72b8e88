package harnesses_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/readtest"
	"cairn/internal/observation"
)

func TestEveryHarnessIsCompleteAndItsNamesAreItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, h := range harnesses.All() {
		for _, name := range append([]string{h.Name}, h.Aliases...) {
			if other := seen[name]; other != "" {
				t.Errorf("%s is a name of %s and %s", name, other, h.Name)
			}
			seen[name] = h.Name
			if found, ok := harnesses.Of(name); !ok || found.Name != h.Name {
				t.Errorf("%s: %+v", name, found)
			}
		}
		homes := harness.Homes{User: filepath.FromSlash("/home/ana")}
		files := h.Files(homes)
		if h.Title == "" || h.Program == "" || h.Answer == nil || h.Event == nil || len(files) == 0 {
			t.Errorf("%s lacks something", h.Name)
		}
		if (h.Transcripts == nil) != (h.Read == nil) || (h.Read == nil) != (h.IsTranscript == nil) || (h.Read == nil) != (h.Writes == nil && h.WritesDocument == nil) {
			t.Errorf("%s: transcripts that nobody reads", h.Name)
		}
		for _, f := range files {
			if !strings.HasPrefix(f.Path, homes.User) || (f.Format == harness.Block || f.Format == harness.Script) != (f.Text != "") {
				t.Errorf("%s: %+v", h.Name, f)
			}
		}
		for _, w := range h.Hooks.Wanted {
			if w.Helps && !h.Helped {
				t.Errorf("%s: %s asks for help that the harness does not take", h.Name, w.Event)
			}
		}
	}
}

// Without --from, the payload's content identifies the host. For the hosts below this applies at
// least to payloads at the end of a turn or with a call's result.
func TestPayloadsOfNewHostsAreToldByWhatTheyHold(t *testing.T) {
	t.Parallel()
	for host, marks := range map[string][]string{
		"copilot": {`"tool_result"`, `"transcript_path"`, `"initial_prompt"`}, "qwen": {`"session_id"`},
	} {
		n := 0
		for payload := range bytes.Lines(readtest.Sent(t, host, "payloads.jsonl")) {
			if !slices.ContainsFunc(marks, func(m string) bool { return bytes.Contains(payload, []byte(m)) }) {
				continue
			}
			n++
			payload = bytes.ReplaceAll(payload, []byte("@HOME@"), []byte("/home/ana"))
			if e, err := harnesses.Hook(bytes.TrimSpace(payload), "auto", ""); err != nil || e.Harness != host {
				t.Errorf("%s is taken for %s's, %v", payload, e.Harness, err)
			}
		}
		if n < 3 {
			t.Errorf("%s: %d payloads", host, n)
		}
	}
}

func TestOnlyHarnessesThatTakeItGetHelpAndOnlyTheFirstPromptOfQwenBringsTheContext(t *testing.T) {
	t.Parallel()
	var helped, late []string
	for _, h := range harnesses.All() {
		e := observation.Event{Kind: observation.Prompt, Source: harness.OnPrompt, Harness: h.Name}
		if harnesses.TakesHelp(e) {
			helped = append(helped, h.Name)
		}
		if harnesses.StartsLate(e) {
			late = append(late, h.Name)
		}
		e.Kind, e.Source = observation.Touch, harness.OnBeforeTool
		if harnesses.StartsLate(e) {
			t.Errorf("%s starts with a call", h.Name)
		}
		if harnesses.RefusesByTwo(e, harness.GuardDecision{Decision: harness.Deny}) != (h.Name == "windsurf") || harnesses.RefusesByTwo(e, harness.GuardDecision{Decision: harness.Ask}) {
			t.Errorf("%s: refusal by exit code", h.Name)
		}
	}
	if want := []string{"claude", "codex", "opencode", "copilot", "qwen"}; !slices.Equal(helped, want) || !slices.Equal(late, []string{"qwen"}) {
		t.Errorf("helped %v, late %v", helped, late)
	}
}
