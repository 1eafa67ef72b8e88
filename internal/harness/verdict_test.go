package harness

import (
	"fmt"
	"strings"
	"testing"

	"cairn/internal/observation"
)

func TestAVerdictTakesTheFormOfTheHarnessAndWhoCannotAskIsTold(t *testing.T) {
	t.Parallel()
	at := func(harness string, alone bool) observation.Event {
		return observation.Event{Harness: harness, Source: "PreToolUse", CannotAsk: alone}
	}
	decision := func(word string) string {
		return `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"` + word + `","permissionDecisionReason":"why"}}` + "\n"
	}
	const told = `{"hookSpecificOutput":{"additionalContext":"why","hookEventName":"PreToolUse"}}` + "\n"
	for name, c := range map[string]struct {
		e        observation.Event
		decision string
		want     string
	}{
		"claude asks":        {at("claude", false), Ask, decision("ask")},
		"claude denies":      {at("claude", true), Deny, decision("deny")},
		"claude alone":       {at("claude", true), Ask, told},
		"codex cannot ask":   {at("codex", false), Ask, told},
		"codex denies":       {at("codex", false), Deny, decision("deny")},
		"gemini denies":      {at("gemini", false), Deny, `{"decision":"deny","reason":"why"}` + "\n"},
		"gemini never asks":  {at("gemini", false), Ask, ""},
		"gemini is warned":   {observation.Event{Harness: "gemini", Source: "PostToolUse"}, Ask, `{"hookSpecificOutput":{"additionalContext":"why","hookEventName":"AfterTool"}}` + "\n"},
		"gemini was denied":  {observation.Event{Harness: "gemini", Source: "PostToolUse"}, Deny, `{"hookSpecificOutput":{"additionalContext":"why","hookEventName":"AfterTool"}}` + "\n"},
		"cursor asks":        {at("cursor", false), Ask, `{"agent_message":"why","permission":"ask","user_message":"why"}` + "\n"},
		"cursor denies":      {at("cursor", false), Deny, `{"agent_message":"why","permission":"deny","user_message":"why"}` + "\n"},
		"after the fact":     {observation.Event{Harness: "claude", Source: "PostToolUse"}, Deny, ""},
		"upon a prompt":      {observation.Event{Harness: "gemini", Source: "UserPromptSubmit"}, Deny, ""},
		"no verdict, claude": {at("claude", false), "", ""},
		"no verdict, codex":  {at("codex", false), "", ""},
		"no verdict, gemini": {at("gemini", false), "", ""},
		"no verdict, cursor": {at("cursor", false), "", `{"permission":"allow"}` + "\n"},
	} {
		if got, err := HookOutput(c.e, "", GuardDecision{c.decision, "why"}); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	both, err := HookOutput(at("claude", false), "help", GuardDecision{Ask, "why"})
	if want := strings.Replace(decision("ask"), `{"hookEventName"`, `{"additionalContext":"help","hookEventName"`, 1); both != want || err != nil {
		t.Errorf("with help: %s, %v", both, err)
	}
	if got, err := HookOutput(at("claude", true), "help", GuardDecision{Ask, "why"}); !strings.Contains(got, `"why\n\nhelp"`) || err != nil {
		t.Errorf("alone with help: %s, %v", got, err)
	}
}

func TestTheModesInWhichNobodyIsAskedAreKnown(t *testing.T) {
	t.Parallel()
	for mode, alone := range map[string]bool{
		"default": false, "acceptEdits": false, "plan": false, "": false, "bypassPermissions": true, "dontAsk": true,
	} {
		for _, from := range []string{"claude", "codex"} {
			payload := fmt.Sprintf(`{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":{"file_path":"a"},"permission_mode":%q}`, mode)
			if e, err := Hook([]byte(payload), from, ""); err != nil || e.CannotAsk != alone {
				t.Errorf("%s, %q: %v, %v", from, mode, e.CannotAsk, err)
			}
		}
	}
}

func TestAnAnnouncedPatchTellsAllItsFiles(t *testing.T) {
	t.Parallel()
	var patch strings.Builder
	patch.WriteString(patchBegin + `\n`)
	for i := range 5000 {
		fmt.Fprintf(&patch, `*** Update File: f%d\n`, i)
	}
	for event, want := range map[string]int{"PreToolUse": 5000, "PostToolUse": maxPatchFiles} {
		payload := `{"session_id":"s","cwd":"/w","turn_id":"t","hook_event_name":"` + event + `","tool_name":"apply_patch","tool_input":{"command":"` + patch.String() + `"},"tool_response":"ok"}`
		if e, err := Hook([]byte(payload), "codex", ""); err != nil || len(e.Calls) != want {
			t.Errorf("%s: %d calls, %v", event, len(e.Calls), err)
		}
	}
}
