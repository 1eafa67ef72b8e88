package harnesses_test

import (
	"fmt"
	"strings"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/observation"
)

func TestInjectionTakesTheFormOfTheHarness(t *testing.T) {
	t.Parallel()
	const text = "# cairn context\n\"quoted\" | `x`"
	for name, c := range map[string]struct {
		e    observation.Event
		want string
	}{
		"claude":             {observation.Event{Harness: "claude", Source: "SessionStart"}, text},
		"codex":              {observation.Event{Harness: "codex", Source: "UserPromptSubmit"}, text},
		"claude, tool":       {observation.Event{Harness: "claude", Source: "PreToolUse"}, `{"hookSpecificOutput":{"additionalContext":"# cairn context\n\"quoted\" | ` + "`x`" + `","hookEventName":"PreToolUse"}}` + "\n"},
		"claude, elsewhere":  {observation.Event{Harness: "claude", Source: "Stop"}, ""},
		"gemini":             {observation.Event{Harness: "gemini", Source: "SessionStart"}, `{"hookSpecificOutput":{"additionalContext":"# cairn context\n\"quoted\" | ` + "`x`" + `","hookEventName":"SessionStart"}}` + "\n"},
		"gemini, prompt":     {observation.Event{Harness: "gemini", Source: "UserPromptSubmit"}, `{"hookSpecificOutput":{"additionalContext":"# cairn context\n\"quoted\" | ` + "`x`" + `","hookEventName":"BeforeAgent"}}` + "\n"},
		"gemini, tool":       {observation.Event{Harness: "gemini", Source: "PreToolUse"}, ""},
		"cursor":             {observation.Event{Harness: "cursor", Source: "SessionStart"}, `{"additional_context":"# cairn context\n\"quoted\" | ` + "`x`" + `"}` + "\n"},
		"cursor, prompt":     {observation.Event{Harness: "cursor", Source: "UserPromptSubmit"}, ""},
		"cursor, after tool": {observation.Event{Harness: "cursor", Source: "PostToolUse"}, ""},
	} {
		if got, err := harnesses.HookOutput(c.e, text, harness.GuardDecision{}); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if got, err := harnesses.HookOutput(c.e, "", harness.GuardDecision{}); err != nil || got != "" {
			t.Errorf("%s without text: %q, %v", name, got, err)
		}
	}
}

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
		"claude asks":        {at("claude", false), harness.Ask, decision("ask")},
		"claude denies":      {at("claude", true), harness.Deny, decision("deny")},
		"claude alone":       {at("claude", true), harness.Ask, told},
		"codex cannot ask":   {at("codex", false), harness.Ask, told},
		"codex denies":       {at("codex", false), harness.Deny, decision("deny")},
		"gemini denies":      {at("gemini", false), harness.Deny, `{"decision":"deny","reason":"why"}` + "\n"},
		"gemini never asks":  {at("gemini", false), harness.Ask, ""},
		"gemini is warned":   {observation.Event{Harness: "gemini", Source: "PostToolUse"}, harness.Ask, `{"hookSpecificOutput":{"additionalContext":"why","hookEventName":"AfterTool"}}` + "\n"},
		"gemini was denied":  {observation.Event{Harness: "gemini", Source: "PostToolUse"}, harness.Deny, `{"hookSpecificOutput":{"additionalContext":"why","hookEventName":"AfterTool"}}` + "\n"},
		"cursor asks":        {at("cursor", false), harness.Ask, `{"agent_message":"why","permission":"ask","user_message":"why"}` + "\n"},
		"cursor denies":      {at("cursor", false), harness.Deny, `{"agent_message":"why","permission":"deny","user_message":"why"}` + "\n"},
		"after the fact":     {observation.Event{Harness: "claude", Source: "PostToolUse"}, harness.Deny, ""},
		"upon a prompt":      {observation.Event{Harness: "gemini", Source: "UserPromptSubmit"}, harness.Deny, ""},
		"no verdict, claude": {at("claude", false), "", ""},
		"no verdict, codex":  {at("codex", false), "", ""},
		"no verdict, gemini": {at("gemini", false), "", ""},
		"no verdict, cursor": {at("cursor", false), "", `{"permission":"allow"}` + "\n"},
	} {
		if got, err := harnesses.HookOutput(c.e, "", harness.GuardDecision{Decision: c.decision, Reason: "why"}); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	both, err := harnesses.HookOutput(at("claude", false), "help", harness.GuardDecision{Decision: harness.Ask, Reason: "why"})
	if want := strings.Replace(decision("ask"), `{"hookEventName"`, `{"additionalContext":"help","hookEventName"`, 1); both != want || err != nil {
		t.Errorf("with help: %s, %v", both, err)
	}
	if got, err := harnesses.HookOutput(at("claude", true), "help", harness.GuardDecision{Decision: harness.Ask, Reason: "why"}); !strings.Contains(got, `"why\n\nhelp"`) || err != nil {
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
			if e, err := harnesses.Hook([]byte(payload), from, ""); err != nil || e.CannotAsk != alone {
				t.Errorf("%s, %q: %v, %v", from, mode, e.CannotAsk, err)
			}
		}
	}
}

func TestAnAnnouncedPatchTellsAllItsFiles(t *testing.T) {
	t.Parallel()
	var patch strings.Builder
	patch.WriteString(harness.PatchBegin + `\n`)
	for i := range 5000 {
		fmt.Fprintf(&patch, `*** Update File: f%d\n`, i)
	}
	for event, want := range map[string]int{"PreToolUse": 5000, "PostToolUse": harness.MaxPatchFiles} {
		payload := `{"session_id":"s","cwd":"/w","turn_id":"t","hook_event_name":"` + event + `","tool_name":"apply_patch","tool_input":{"command":"` + patch.String() + `"},"tool_response":"ok"}`
		if e, err := harnesses.Hook([]byte(payload), "codex", ""); err != nil || len(e.Calls) != want {
			t.Errorf("%s: %d calls, %v", event, len(e.Calls), err)
		}
	}
}
