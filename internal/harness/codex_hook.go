package harness

import (
	"strings"

	"cairn/internal/observation"
)

// codexEvent reads a payload of Codex CLI (observations §4.3). Its events have Claude Code's names
// and mostly the same content. A turn's id serves as the id of its prompt.
func codexEvent(body []byte) (observation.Event, error) {
	e, err := commonEvent(codex, "turn_id", body)
	if err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case onPrompt:
		e.Kind, e.Text = observation.Prompt, codexTyped(plain(get(body, "prompt")))
	case onToolUse, onToolFailure, onBeforeTool:
		fillCodexTool(&e, body)
	default:
		fill(&e, body)
		if e.Source == onStop || e.Source == onSessionEnd {
			e.Transcript = text(get(body, "transcript_path"))
		}
	}
	return e, nil
}

func fillCodexTool(e *observation.Event, body []byte) {
	f := pick(body, "tool_name", "tool_use_id", "tool_input", "tool_response", "duration_ms", "error", "is_interrupt")
	tool := text(f[0])
	if e.Source == onBeforeTool {
		e.Kind, e.CannotAsk = observation.Touch, isAlone(body)
	}
	if strings.TrimSpace(tool) == "" {
		return
	}
	if e.Source == onBeforeTool {
		e.Calls = codexCallsUpTo(maxAnnouncedFiles, text(f[1]), tool, f[2])
		return
	}
	e.Calls = codexCalls(text(f[1]), tool, f[2])
	if isOwn(tool) {
		e.Kind = observation.Touch
		finishOwn(&e.Calls[0], firstOf(insideText(f[3]), f[3]), body)
		return
	}
	e.Kind = observation.Tool
	readCodexResult(f[3]).apply(e.Calls, f[3], body)
	for i := range e.Calls {
		c := &e.Calls[i]
		if ms, ok := integer(f[4]); ok {
			c.DurationMS = ms
		}
		c.Interrupted = c.Interrupted || isTrue(f[6])
		if e.Source == onToolFailure {
			fail(c, plain(f[5]), f[3])
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

// codexTyped returns the user's text in a prompt to Codex, "" if there is none. It removes the
// text that the harness and the editor put before it, and whatever typed removes.
func codexTyped(prompt string) string {
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
	return typed(rest)
}

// withoutContext removes the block at the beginning of a text if Codex writes such blocks on the
// user's behalf. If the closing tag is missing, it removes the whole text.
func withoutContext(s string) string {
	end := strings.IndexAny(s[:min(len(s), maxTag)], "> \n")
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
