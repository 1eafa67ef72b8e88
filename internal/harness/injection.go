package harness

import (
	"encoding/json"

	"cairn/internal/observation"
)

// Verdict is a judgement on calls that are about to be made; the zero value is
// none, and the harness's own permissions stand.
type Verdict struct {
	Decision string // Ask, Deny or ""
	Reason   string
}

// Decisions.
const (
	Ask  = "ask"  // a person decides
	Deny = "deny" // the call is not made
)

// Answer is what a hook prints so that its harness puts a text into the
// conversation and heeds a verdict, "" if there is neither or no way to do so upon
// this event. Plain text never begins with {, which hosts would read as JSON
// (observations §4.3, §9; mail §8).
//
// A harness that cannot ask (Codex would make the call), or where nobody would answer
// (Event.Alone), gets what it should have asked as text. Gemini CLI takes nothing but
// one object, which names the event as it calls it. It is never answered "ask", since it
// would wait for ever where nobody is there: it is warned after the tool, see WarnsAfter
// (amendments §B.1). Cursor listens at the start of a session and,
// for verdicts, before a tool, where it takes no answer for a refusal: it is told to
// go on as its own permissions say. It takes "ask", too, and may go on all the same.
func Answer(e observation.Event, text string, v Verdict) (string, error) {
	if WarnsAfter(e) {
		text, v = withText(v.Reason, text), Verdict{}
	}
	if e.Source != onBeforeTool {
		v = Verdict{}
	}
	switch e.Harness {
	case gemini:
		return geminiAnswerTo(e, text, v)
	case cursor:
		return cursorAnswerTo(e, text, v)
	}
	if v.Decision == Ask && (e.Alone || e.Harness == codex) {
		text, v = withText(v.Reason, text), Verdict{}
	}
	if text == "" && v.Decision == "" {
		return "", nil
	}
	switch e.Source {
	case onSessionStart, onPrompt:
		return text, nil
	case onBeforeTool, onToolUse:
		return forEvent(e.Source, text, v)
	}
	return "", nil
}

// WarnsAfter reports whether an event is where a harness that cannot ask before a tool, and
// that does not listen there, is warned of a verdict: after the tool.
func WarnsAfter(e observation.Event) bool { return e.Harness == gemini && e.Source == onToolUse }

// Listens reports whether a harness puts a text into the conversation upon an
// event.
func Listens(e observation.Event) bool {
	switch e.Harness {
	case gemini:
		return e.Source == onSessionStart || e.Source == onPrompt || e.Source == onToolUse
	case cursor:
		return e.Source == onSessionStart
	}
	return e.Source == onSessionStart || e.Source == onPrompt || e.Source == onBeforeTool || e.Source == onToolUse
}

func geminiAnswerTo(e observation.Event, text string, v Verdict) (string, error) {
	switch {
	case v.Decision == Deny:
		return jsonLine(map[string]any{"decision": "deny", "reason": v.Reason})
	case text == "" || v.Decision == Ask:
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

func cursorAnswerTo(e observation.Event, text string, v Verdict) (string, error) {
	switch {
	case e.Source == onSessionStart && text != "":
		return jsonLine(map[string]any{"additional_context": text})
	case v.Decision != "":
		return jsonLine(map[string]any{"permission": v.Decision, "user_message": v.Reason, "agent_message": v.Reason})
	case e.Source == onBeforeTool:
		return jsonLine(map[string]any{"permission": "allow"})
	}
	return "", nil
}

// withText is a text behind another one.
func withText(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "\n\n" + second
}

func forEvent(name, text string, v Verdict) (string, error) {
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
