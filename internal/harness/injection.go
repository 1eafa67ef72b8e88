package harness

import (
	"encoding/json"

	"cairn/internal/observation"
)

// Injection is what a hook prints so that its harness puts a text into the
// conversation, "" if it has no way to do so upon this event, or if there is no
// text. Plain text never begins with {, which hosts would read as JSON
// (observations §4.3, §9).
func Injection(e observation.Event, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	switch e.Source {
	case onSessionStart, onPrompt:
		return text, nil
	case onBeforeTool:
		return jsonLine(map[string]any{"hookSpecificOutput": map[string]any{
			"hookEventName": e.Source, "additionalContext": text,
		}})
	}
	return "", nil
}

func jsonLine(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b) + "\n", err
}
