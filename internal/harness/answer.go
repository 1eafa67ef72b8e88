package harness

import (
	"encoding/json"

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

// AnswerWithEvent returns the output for Claude Code. At the start of a session or a turn it is
// plain text for users and models. Around calls it is an object with the event's name.
func AnswerWithEvent(e observation.Event, text string, v GuardDecision) (string, error) {
	switch {
	case text == "" && v.Decision == "":
		return "", nil
	case e.Source == OnSessionStart || e.Source == OnPrompt:
		return text, nil
	}
	return ForEvent(e.Source, text, v)
}

// ForEvent returns an object with the name of an event, a text for the model and a decision. Empty
// ones are left out.
func ForEvent(name, text string, v GuardDecision) (string, error) {
	out := map[string]any{"hookEventName": name}
	if text != "" {
		out["additionalContext"] = text
	}
	if v.Decision != "" {
		out["permissionDecision"], out["permissionDecisionReason"] = v.Decision, v.Reason
	}
	return JSONLine(map[string]any{"hookSpecificOutput": out})
}

// JSONLine returns a value as one line of JSON.
func JSONLine(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b) + "\n", err
}

// FlatAnswer returns an object without the event's name, for Copilot CLI and cairn's plugin in
// OpenCode.
func FlatAnswer(_ observation.Event, text string, v GuardDecision) (string, error) {
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
	return JSONLine(out)
}

// ObjectAnswer returns an object with the event's name, for all events.
func ObjectAnswer(e observation.Event, text string, v GuardDecision) (string, error) {
	if text == "" && v.Decision == "" {
		return "", nil
	}
	return ForEvent(e.Source, text, v)
}
