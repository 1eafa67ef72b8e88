package harness

import (
	"encoding/json"
	"slices"

	"cairn/internal/observation"
)

// GuardDecision is a judgement on calls that are about to be made; the zero value is
// none, and the harness's own permissions stand.
type GuardDecision struct {
	Decision string // Ask, Deny or ""
	Reason   string
}

// Decisions.
const (
	Ask  = "ask"  // a person decides
	Deny = "deny" // the call is not made
)

// HookOutput is what a hook prints so that its harness puts a text into the
// conversation and heeds a verdict, "" if there is neither or no way to do so on
// this event. Plain text never begins with {, which hosts would read as JSON
// (observations §4.3, §9; mail §8).
//
// A harness that cannot ask (Codex would make the call, Gemini CLI would wait forever),
// or where nobody would answer (Event.Alone), gets what it should have asked as text, if
// it listens there; one that is warned late gets it after the call, see WarnsAfter
// (amendments §B.1).
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

// WarnsAfter reports whether an event is where a harness that cannot ask before a tool, and
// that does not listen there, is warned of a verdict: after the tool.
func WarnsAfter(e observation.Event) bool { return e.Source == onToolUse && senderOf(e).WarnsLate }

// Listens reports whether a harness puts a text into the conversation on an
// event.
func Listens(e observation.Event) bool { return slices.Contains(senderOf(e).Hears, e.Source) }

// TakesHelp reports whether the harness of an event takes help with prompts and before
// calls (observations §9.2).
func TakesHelp(e observation.Event) bool { return senderOf(e).Helped }

// ShowsError reports whether exit code 2 on an event shows the error to the user and
// vetoes nothing (contract observations §4.1).
func ShowsError(e observation.Event) bool { return slices.Contains(senderOf(e).ShowsTwo, e.Source) }

// StartsLate reports whether an event is a prompt of a harness that takes the context of
// a session with its first prompt.
func StartsLate(e observation.Event) bool {
	return e.Kind == observation.Prompt && senderOf(e).LateStart
}

// answerInEvent answers as Claude Code takes it: text for people and models alike where a
// session or a turn begins, and an object that names the event around calls.
func answerInEvent(e observation.Event, text string, v GuardDecision) (string, error) {
	switch {
	case text == "" && v.Decision == "":
		return "", nil
	case e.Source == onSessionStart || e.Source == onPrompt:
		return text, nil
	}
	return forEvent(e.Source, text, v)
}

// geminiAnswerTo answers with one object, which names the event as Gemini CLI calls it.
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

// cursorAnswerTo answers as Cursor takes it. Where it takes no answer for a refusal it is
// instructed to follow its own permissions. It takes "ask", too, and may go on anyway.
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

// withText returns a text behind another one.
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

// flatAnswer answers with one object whose members name no event, as Copilot CLI and
// cairn's plugin in OpenCode take it.
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

// objectAnswer answers with an object that names the event, at every event.
func objectAnswer(e observation.Event, text string, v GuardDecision) (string, error) {
	if text == "" && v.Decision == "" {
		return "", nil
	}
	return forEvent(e.Source, text, v)
}

// clineAnswer answers with one object; a call that is not to be made is cancelled.
func clineAnswer(_ observation.Event, text string, v GuardDecision) (string, error) {
	switch {
	case v.Decision == Deny:
		return jsonLine(map[string]any{"cancel": true, "errorMessage": v.Reason})
	case text == "":
		return "", nil
	}
	return jsonLine(map[string]any{"contextModification": text})
}

// silent answers nothing, whatever there is to say.
func silent(observation.Event, string, GuardDecision) (string, error) { return "", nil }

// RefusesByTwo reports whether a verdict is given by exit code 2, with its reason on
// standard error.
func RefusesByTwo(e observation.Event, v GuardDecision) bool {
	return v.Decision == Deny && e.Source == onBeforeTool && senderOf(e).RefusesByTwo
}
