package harness

import (
	"strings"

	"cairn/internal/fault"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// Message roles and the hook events that produce them.
const (
	RoleTurn     = "turn"
	RoleSubagent = "subagent"
	RoleSummary  = "compact_summary"

	OnSessionStart = "SessionStart"
	OnSessionEnd   = "SessionEnd"
	OnPrompt       = "UserPromptSubmit"
	OnBeforeTool   = "PreToolUse"
	OnToolUse      = "PostToolUse"
	OnToolFailure  = "PostToolUseFailure"
	OnStop         = "Stop"
	OnSubagentStop = "SubagentStop"
	OnPostCompact  = "PostCompact"
)

// RequireFields checks the required fields of an event. session, cwd and event are the harness's
// names for the session, the directory and the event.
func RequireFields(e observation.Event, session, cwd, event string) error {
	for _, f := range [...]struct{ name, value string }{
		{session, e.Session}, {cwd, e.Cwd}, {event, e.Source},
	} {
		if strings.TrimSpace(f.value) == "" {
			return fault.Newf(fault.Invalid, "missing_field", "%s is missing, blank or not a text", f.name)
		}
	}
	return nil
}

// CannotAsk reports whether the payload's session cannot ask the user for permission.
func CannotAsk(body lazyjson.Value) bool {
	mode := body.Get("permission_mode").Text()
	return mode == "bypassPermissions" || mode == "dontAsk"
}

// CommonEvent reads the fields that all events have in Claude Code and in harnesses with the same
// format. promptID is the name of the member with the prompt's id.
func CommonEvent(harness, promptID string, body lazyjson.Value) (observation.Event, error) {
	f := body.Pick("session_id", "cwd", "hook_event_name", promptID, "agent_id")
	e := observation.Event{
		Harness: harness, Session: f[0].Text(), Cwd: f[1].Text(), Source: f[2].Text(),
		PromptID: f[3].Text(), AgentID: f[4].Text(),
	}
	if err := RequireFields(e, "session_id", "cwd", "hook_event_name"); err != nil {
		return observation.Event{}, err
	}
	return e, nil
}

// FillEvent adds the fields that are specific to the kind of event (observations §4.2).
func FillEvent(e *observation.Event, body lazyjson.Value) {
	switch e.Source {
	case OnSessionStart:
		f := body.Pick("source", "model")
		e.Kind, e.Text, e.Model = observation.SessionStart, f[0].Text(), f[1].Text()
	case OnSessionEnd:
		e.Kind, e.Text = observation.SessionEnd, body.Get("reason").Text()
	case OnPrompt:
		e.Kind, e.Text = observation.Prompt, Typed(body.Get("prompt").Plain())
	case OnToolUse, OnToolFailure:
		fillTool(e, body)
	case OnStop:
		e.Kind, e.Role, e.Text = observation.Message, RoleTurn, body.Get("last_assistant_message").Plain()
		e.TurnEnds = e.AgentID == ""
	case OnSubagentStop:
		if isInternal(body) {
			e.Kind = observation.Touch
			return
		}
		e.Kind, e.Role, e.Text = observation.Message, RoleSubagent, body.Get("last_assistant_message").Plain()
	case OnPostCompact:
		e.Kind, e.Role, e.Text = observation.Message, RoleSummary, body.Get("compact_summary").Plain()
	case OnBeforeTool:
		e.Kind = observation.Touch
		f := body.Pick("tool_name", "tool_use_id", "tool_input")
		if tool := f[0].Text(); strings.TrimSpace(tool) != "" {
			e.Calls = []observation.Call{NewCall(f[1].Text(), tool, f[2])}
		}
	case "PreCompact", "Notification":
		e.Kind = observation.Touch
	}
}

// isInternal reports whether a subagent is an internal one of the program. Claude Code uses
// subagents with the type "" to write summaries and to guess the next prompt. It keeps no
// transcripts of them.
func isInternal(body lazyjson.Value) bool {
	kind := body.Get("agent_type")
	return kind != nil && kind.Kind() == '"' && kind.Text() == ""
}

func fillTool(e *observation.Event, body lazyjson.Value) {
	f := body.Pick("tool_name", "tool_use_id", "tool_input", "tool_response", "duration_ms", "error", "is_interrupt")
	tool := f[0].Text()
	if strings.TrimSpace(tool) == "" {
		return
	}
	c := NewCall(f[1].Text(), tool, f[2])
	if IsOwnTool(tool) {
		FinishOwn(&c, f[3], body)
		e.Kind, e.Calls = observation.Touch, []observation.Call{c}
		return
	}
	if ms, ok := f[4].Integer(); ok {
		c.DurationMS = ms
	}
	ReadResponse(&c, f[3])
	c.Interrupted = c.Interrupted || f[6].IsTrue()
	if e.Source == OnToolFailure {
		SetFailed(&c, f[5].Plain(), f[3])
	} else {
		DecideFailure(&c, f[3], body)
	}
	ReadPieces(&c, f[2], f[3], nil)
	e.Kind, e.Calls = observation.Tool, []observation.Call{c}
}
