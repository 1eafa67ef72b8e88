package codex

import (
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// event reads a payload of Codex CLI (observations §4.3). Its events have Claude Code's names
// and mostly the same content. A turn's id serves as the id of its prompt.
func event(body lazyjson.Value, _ string) (observation.Event, error) {
	e, err := harness.CommonEvent(name, "turn_id", body)
	if err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case harness.OnPrompt:
		e.Kind, e.Text = observation.Prompt, typed(body.Get("prompt").Plain())
	case harness.OnToolUse, harness.OnToolFailure, harness.OnBeforeTool:
		fillCodexTool(&e, body)
	default:
		harness.FillEvent(&e, body)
		if e.Source == harness.OnStop || e.Source == harness.OnSessionEnd {
			e.Transcript = body.Get("transcript_path").Text()
		}
	}
	return e, nil
}

func fillCodexTool(e *observation.Event, body lazyjson.Value) {
	f := body.Pick("tool_name", "tool_use_id", "tool_input", "tool_response", "duration_ms", "error", "is_interrupt")
	tool := f[0].Text()
	if e.Source == harness.OnBeforeTool {
		e.Kind, e.CannotAsk = observation.Touch, harness.CannotAsk(body)
	}
	if strings.TrimSpace(tool) == "" {
		return
	}
	if e.Source == harness.OnBeforeTool {
		e.Calls = callsUpTo(harness.MaxAnnouncedFiles, f[1].Text(), tool, f[2])
		return
	}
	e.Calls = calls(f[1].Text(), tool, f[2])
	if harness.IsOwnTool(tool) {
		e.Kind = observation.Touch
		harness.FinishOwn(&e.Calls[0], f[3].Unwrapped(), body)
		return
	}
	e.Kind = observation.Tool
	readCodexResult(f[3]).apply(e.Calls, f[3], body)
	for i := range e.Calls {
		c := &e.Calls[i]
		if ms, ok := f[4].Integer(); ok {
			c.DurationMS = ms
		}
		c.Interrupted = c.Interrupted || f[6].IsTrue()
		if e.Source == harness.OnToolFailure {
			harness.SetFailed(c, f[5].Plain(), f[3])
		}
	}
}

// The beginnings and ends of the texts that the editor and Codex put before the user's text.
const (
	editorContext = "# Context from my IDE setup"
	editorRequest = "## My request for Codex:"
	agentsContext = "# AGENTS.md instructions"
	agentsEnd     = "</INSTRUCTIONS>"
)

// typed returns the user's text in a prompt to Codex, or "". It removes the
// text that the harness and the editor put before it, and whatever harness.Typed removes.
func typed(prompt string) string {
	rest := strings.TrimSpace(prompt)
	for {
		cut := rest
		switch {
		case strings.HasPrefix(rest, editorContext), strings.HasPrefix(rest, editorRequest):
			if _, request, ok := strings.Cut(rest, editorRequest); ok {
				cut = request
			}
		case strings.HasPrefix(rest, agentsContext):
			_, cut, _ = strings.Cut(rest, agentsEnd)
		case strings.HasPrefix(rest, "<"):
			cut = withoutContext(rest)
		}
		if len(cut) == len(rest) {
			break
		}
		rest = strings.TrimSpace(cut)
	}
	if len(rest) == len(strings.TrimSpace(prompt)) {
		rest = prompt
	}
	return harness.Typed(rest)
}

// withoutContext removes the block at the beginning of a text if Codex writes such blocks on the
// user's behalf. If the closing tag is missing, it removes the whole text.
func withoutContext(s string) string {
	end := strings.IndexAny(s[:min(len(s), harness.MaxTag)], "> \n")
	if end < 0 {
		return s
	}
	name := s[1:end]
	switch name {
	case "user_instructions", "environment_context", "turn_aborted", "user_shell_command", "user_action",
		"subagent_notification", "skill", "codex_internal_context", "goal_context", "recommended_plugins",
		"hook_prompt", "INSTRUCTIONS", "model_switch", "permissions", "collaboration_mode",
		"agent_message_board_notification":
	default:
		return s
	}
	_, rest, _ := strings.Cut(s, "</"+name)
	_, rest, _ = strings.Cut(rest, ">")
	return rest
}
