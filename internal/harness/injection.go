package harness

import (
	"encoding/json"

	"cairn/internal/observation"
)

// Injection is what a hook prints so that its harness puts a text into the
// conversation, "" if it has no way to do so upon this event, or if there is no
// text. Plain text never begins with {, which hosts would read as JSON
// (observations §4.3, §9).
//
// Gemini CLI takes nothing but one object, which names the event as it calls it;
// Cursor listens at the start of a session only.
func Injection(e observation.Event, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	switch e.Harness {
	case gemini:
		switch e.Source {
		case onSessionStart:
			return forEvent(onSessionStart, text)
		case onPrompt:
			return forEvent("BeforeAgent", text)
		}
		return "", nil
	case cursor:
		if e.Source == onSessionStart {
			return jsonLine(map[string]any{"additional_context": text})
		}
		return "", nil
	}
	switch e.Source {
	case onSessionStart, onPrompt:
		return text, nil
	case onBeforeTool:
		return forEvent(onBeforeTool, text)
	}
	return "", nil
}

func forEvent(name, text string) (string, error) {
	return jsonLine(map[string]any{"hookSpecificOutput": map[string]any{
		"hookEventName": name, "additionalContext": text,
	}})
}

func jsonLine(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b) + "\n", err
}
