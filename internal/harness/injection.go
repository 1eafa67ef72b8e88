package harness

import (
	"encoding/json"
	"slices"

	"cairn/internal/observation"
)

// GuardDecision is a decision about calls that an agent is about to make. The zero value is no
// decision, so the harness's own permissions apply.
type GuardDecision struct {
	Decision string // Ask, Deny or ""
	Reason   string
}

// Decisions.
const (
	Ask  = "ask"  // the user decides
	Deny = "deny" // the call is not made
)

// HookOutput returns the output of a hook, with which the harness adds a text to the conversation
// and applies a decision. It returns "" if there is neither, or if the harness accepts neither on
// this event. Plain text never begins with {, because hosts would parse it as JSON (observations
// §4.3, §9; mail §8).
//
// Some harnesses cannot ask: Codex would make the call, and Gemini CLI would wait forever. In
// sessions with Event.CannotAsk the user cannot reply. In both cases the question is added to the
// text instead, if the harness accepts text on this event. A harness with WarnsLate gets it after
// the call, see WarnsAfter (amendments §B.1).
func HookOutput(e observation.Event, text string, v GuardDecision) (string, error) {
	h := senderOf(e)
	if WarnsAfter(e) {
		text, v = withText(v.Reason, text), GuardDecision{}
	}
	if e.Source != onBeforeTool {
		v = GuardDecision{}
	}
	if v.Decision == Ask && (e.CannotAsk || !h.Asks) {
		text, v = withText(v.Reason, text), GuardDecision{}
	}
	if !Listens(e) {
		text = ""
	}
	return h.answer(e, text, v)
}

// WarnsAfter reports whether a decision is shown as a warning on this event, after the tool. This
// applies to harnesses that can neither ask nor accept text before a tool.
func WarnsAfter(e observation.Event) bool { return e.Source == onToolUse && senderOf(e).WarnsLate }

// Listens reports whether a harness adds a text to the conversation on this event.
func Listens(e observation.Event) bool { return slices.Contains(senderOf(e).Hears, e.Source) }

// TakesHelp reports whether the event's harness accepts help with prompts and before calls
// (observations §9.2).
func TakesHelp(e observation.Event) bool { return senderOf(e).Helped }

// ShowsError reports whether exit code 2 on this event shows the error to the user without
// blocking anything (contract observations §4.1).
func ShowsError(e observation.Event) bool { return slices.Contains(senderOf(e).ShowsTwo, e.Source) }

// StartsLate reports whether an event is a prompt in a harness that accepts the session's context
// with the first prompt. Such a harness may start a session without an event, or drop the context
// at the start.
func StartsLate(e observation.Event) bool {
	return e.Kind == observation.Prompt && senderOf(e).LateStart
}

// answerInEvent returns the output for Claude Code. At the start of a session or a turn it is
// plain text for users and models. Around calls it is an object with the event's name.
func answerInEvent(e observation.Event, text string, v GuardDecision) (string, error) {
	switch {
	case text == "" && v.Decision == "":
		return "", nil
	case e.Source == onSessionStart || e.Source == onPrompt:
		return text, nil
	}
	return forEvent(e.Source, text, v)
}

// geminiAnswerTo returns the output for Gemini CLI: an object with Gemini CLI's name of the event.
func geminiAnswerTo(e observation.Event, text string, v GuardDecision) (string, error) {
	switch {
	case v.Decision == Deny:
		return jsonLine(map[string]any{"decision": "deny", "reason": v.Reason})
	case text == "":
		return "", nil
	}
	switch e.Source {
	case onSessionStart:
		return forEvent(onSessionStart, text, v)
	case onPrompt:
		return forEvent("BeforeAgent", text, v)
	case onToolUse:
		return forEvent("AfterTool", text, v)
	}
	return "", nil
}

// cursorAnswerTo returns the output for Cursor. Before a call, Cursor treats empty output as a
// refusal, so the output without a decision allows the call, and Cursor's own permissions apply.
// Cursor accepts "ask" as well, but may still make the call.
func cursorAnswerTo(e observation.Event, text string, v GuardDecision) (string, error) {
	switch {
	case text != "":
		return jsonLine(map[string]any{"additional_context": text})
	case v.Decision != "":
		return jsonLine(map[string]any{"permission": v.Decision, "user_message": v.Reason, "agent_message": v.Reason})
	case e.Source == onBeforeTool:
		return jsonLine(map[string]any{"permission": "allow"})
	}
	return "", nil
}

// withText appends the second text to the first.
func withText(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "\n\n" + second
}

func forEvent(name, text string, v GuardDecision) (string, error) {
	out := map[string]any{"hookEventName": name}
	if text != "" {
		out["additionalContext"] = text
	}
	if v.Decision != "" {
		out["permissionDecision"], out["permissionDecisionReason"] = v.Decision, v.Reason
	}
	return jsonLine(map[string]any{"hookSpecificOutput": out})
}

func jsonLine(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b) + "\n", err
}

// flatAnswer returns an object without the event's name, for Copilot CLI and cairn's plugin in
// OpenCode.
func flatAnswer(_ observation.Event, text string, v GuardDecision) (string, error) {
	out := map[string]any{}
	if text != "" {
		out["additionalContext"] = text
	}
	if v.Decision != "" {
		out["permissionDecision"], out["permissionDecisionReason"] = v.Decision, v.Reason
	}
	if len(out) == 0 {
		return "", nil
	}
	return jsonLine(out)
}

// objectAnswer returns an object with the event's name, for all events.
func objectAnswer(e observation.Event, text string, v GuardDecision) (string, error) {
	if text == "" && v.Decision == "" {
		return "", nil
	}
	return forEvent(e.Source, text, v)
}

// clineAnswer returns an object for Cline. A denied call is cancelled.
func clineAnswer(_ observation.Event, text string, v GuardDecision) (string, error) {
	switch {
	case v.Decision == Deny:
		return jsonLine(map[string]any{"cancel": true, "errorMessage": v.Reason})
	case text == "":
		return "", nil
	}
	return jsonLine(map[string]any{"contextModification": text})
}

// silent returns an empty output.
func silent(observation.Event, string, GuardDecision) (string, error) { return "", nil }

// RefusesByTwo reports whether the hook must report a decision with exit code 2 and its reason on
// standard error.
func RefusesByTwo(e observation.Event, v GuardDecision) bool {
	return v.Decision == Deny && e.Source == onBeforeTool && senderOf(e).RefusesByTwo
}
