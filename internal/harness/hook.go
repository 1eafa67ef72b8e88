package harness

import (
	"bytes"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/observation"
)

// Message roles and the hook events that produce them.
const (
	roleTurn     = "turn"
	roleSubagent = "subagent"
	roleSummary  = "compact_summary"

	onSessionStart = "SessionStart"
	onSessionEnd   = "SessionEnd"
	onPrompt       = "UserPromptSubmit"
	onBeforeTool   = "PreToolUse"
	onToolUse      = "PostToolUse"
	onToolFailure  = "PostToolUseFailure"
	onStop         = "Stop"
	onSubagentStop = "SubagentStop"
	onPostCompact  = "PostCompact"
)

const byteOrderMark = "\uFEFF"

// Hook parses one hook payload, the whole of standard input (observations §4). It may modify
// payload. The event contains only copies.
//
// from is the harness that sent the payload: one of Names, an alias, or "auto" to detect it. home
// is the user's home directory, or "". It is the directory of events from Cursor without an open
// folder. Source is always one of Claude Code's event names (§4.3), whatever name the harness
// uses. Events of unknown kinds and tool events without a tool name are returned as Ignored. Calls
// of cairn's own tools are returned as Touch.
//
// All errors have the kind Invalid. The codes, in order of the checks, are unknown_harness,
// invalid_json, json_too_deep and not_an_object (§13), then missing_field. missing_field names the
// first of session, directory and event that is blank or not text, by the harness's name for it.
func Hook(payload []byte, from, home string) (observation.Event, error) {
	sender, known := Of(from)
	if from != "auto" && !known {
		return observation.Event{}, fault.Newf(fault.Invalid, "unknown_harness", "unknown --from value %.40q", from).
			WithHint("this version knows: auto, " + strings.Join(Names(), ", "))
	}
	body := bytes.TrimPrefix(payload, []byte(byteOrderMark))
	maskNUL(body)
	if err := checkPayload(body, len(payload)-len(body)); err != nil {
		return observation.Event{}, err
	}
	body = trimSpace(body)
	if !known {
		sender = senderOfPayload(body)
	}
	e, err := sender.event(body, home)
	for i := range e.Calls {
		unwrapOwn(&e.Calls[i])
	}
	return e, err
}

// senderOfPayload returns the harness that sent a payload, detected by its fields (observations
// §4.3). It is the last harness in the table that is the only sender of such payloads, else Claude
// Code.
func senderOfPayload(body []byte) Harness {
	all := Harnesses()
	for _, h := range slices.Backward(all) {
		if h.sends != nil && h.sends(body) {
			return h
		}
	}
	return all[0]
}

// requireFields checks the required fields of an event. session, cwd and event are the harness's
// names for the session, the directory and the event.
func requireFields(e observation.Event, session, cwd, event string) error {
	for _, f := range [...]struct{ name, value string }{
		{session, e.Session}, {cwd, e.Cwd}, {event, e.Source},
	} {
		if strings.TrimSpace(f.value) == "" {
			return fault.Newf(fault.Invalid, "missing_field", "%s is missing, blank or not a text", f.name)
		}
	}
	return nil
}

// claudeEvent reads a payload of Claude Code (observations §4.2).
func claudeEvent(body []byte) (observation.Event, error) {
	e, err := commonEvent(claude, "prompt_id", body)
	if err == nil {
		fill(&e, body)
		e.CannotAsk = e.Source == onBeforeTool && isAlone(body)
	}
	return e, err
}

// isAlone reports whether the payload's session cannot ask the user for permission.
func isAlone(body []byte) bool {
	mode := text(get(body, "permission_mode"))
	return mode == "bypassPermissions" || mode == "dontAsk"
}

// commonEvent reads the fields that all events have in Claude Code and in harnesses with the same
// format. promptID is the name of the member with the prompt's id.
func commonEvent(harness, promptID string, body []byte) (observation.Event, error) {
	f := pick(body, "session_id", "cwd", "hook_event_name", promptID, "agent_id")
	e := observation.Event{
		Harness: harness, Session: text(f[0]), Cwd: text(f[1]), Source: text(f[2]),
		PromptID: text(f[3]), AgentID: text(f[4]),
	}
	if err := requireFields(e, "session_id", "cwd", "hook_event_name"); err != nil {
		return observation.Event{}, err
	}
	return e, nil
}

// fill adds the fields that are specific to the kind of event (observations §4.2).
func fill(e *observation.Event, body []byte) {
	switch e.Source {
	case onSessionStart:
		f := pick(body, "source", "model")
		e.Kind, e.Text, e.Model = observation.SessionStart, text(f[0]), text(f[1])
	case onSessionEnd:
		e.Kind, e.Text = observation.SessionEnd, text(get(body, "reason"))
	case onPrompt:
		e.Kind, e.Text = observation.Prompt, typed(plain(get(body, "prompt")))
	case onToolUse, onToolFailure:
		fillTool(e, body)
	case onStop:
		e.Kind, e.Role, e.Text = observation.Message, roleTurn, plain(get(body, "last_assistant_message"))
		e.TurnEnds = e.AgentID == ""
	case onSubagentStop:
		if isInternal(body) {
			e.Kind = observation.Touch
			return
		}
		e.Kind, e.Role, e.Text = observation.Message, roleSubagent, plain(get(body, "last_assistant_message"))
	case onPostCompact:
		e.Kind, e.Role, e.Text = observation.Message, roleSummary, plain(get(body, "compact_summary"))
	case onBeforeTool:
		e.Kind = observation.Touch
		f := pick(body, "tool_name", "tool_use_id", "tool_input")
		if tool := text(f[0]); strings.TrimSpace(tool) != "" {
			e.Calls = []observation.Call{newCall(text(f[1]), tool, f[2])}
		}
	case "PreCompact", "Notification":
		e.Kind = observation.Touch
	}
}

// isInternal reports whether a subagent is an internal one of the program. Claude Code uses
// subagents with the type "" to write summaries and to guess the next prompt. It keeps no
// transcripts of them.
func isInternal(body []byte) bool {
	kind := get(body, "agent_type")
	return kind != nil && kindOf(kind) == '"' && text(kind) == ""
}

func fillTool(e *observation.Event, body []byte) {
	f := pick(body, "tool_name", "tool_use_id", "tool_input", "tool_response", "duration_ms", "error", "is_interrupt")
	tool := text(f[0])
	if strings.TrimSpace(tool) == "" {
		return
	}
	c := newCall(text(f[1]), tool, f[2])
	if isOwn(tool) {
		finishOwn(&c, f[3], body)
		e.Kind, e.Calls = observation.Touch, []observation.Call{c}
		return
	}
	if ms, ok := integer(f[4]); ok {
		c.DurationMS = ms
	}
	readResponse(&c, f[3])
	c.Interrupted = c.Interrupted || isTrue(f[6])
	if e.Source == onToolFailure {
		fail(&c, plain(f[5]), f[3])
	} else {
		decideFailure(&c, f[3], body)
	}
	readPieces(&c, f[2], f[3], nil)
	e.Kind, e.Calls = observation.Tool, []observation.Call{c}
}
