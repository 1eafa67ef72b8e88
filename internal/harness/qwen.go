package harness

import (
	"strings"

	"cairn/internal/observation"
)

// qwenEvent reads a payload of Qwen Code: Claude Code's events with Gemini CLI's tools and
// results. Before every further request of a turn, Qwen Code sends a prompt without text, which is
// Ignored. Its prompt ids do not occur in transcripts. In recent versions this also applies to the
// ids of calls.
func qwenEvent(body []byte) (observation.Event, error) {
	e, err := commonEvent(qwen, "prompt_id", body)
	if err != nil {
		return observation.Event{}, err
	}
	e.PromptID = ""
	switch e.Source {
	case onPrompt:
		said := geminiTyped(plain(get(body, "prompt")))
		if strings.TrimSpace(said) == "" {
			return e, nil
		}
		e.Kind, e.Text = observation.Prompt, said
	case onToolUse, onToolFailure, onBeforeTool:
		qwenTool(&e, body)
	default:
		fill(&e, body)
	}
	return e, nil
}

func isQwenPayload(body []byte) bool {
	return strings.Contains(strings.ReplaceAll(text(get(body, "transcript_path")), `\`, "/"), "/.qwen/")
}

func qwenTool(e *observation.Event, body []byte) {
	f := pick(body, "tool_name", "tool_input", "tool_response", "error", "is_interrupt", "tool_call_id", "duration_ms")
	tool := text(f[0])
	if e.Source == onBeforeTool {
		e.Kind = observation.Touch
	}
	if strings.TrimSpace(tool) == "" {
		return
	}
	c := qwenCall(text(f[5]), tool, f[1])
	e.Calls = []observation.Call{c}
	if e.Source == onBeforeTool {
		return
	}
	r := pick(f[2], "llmContent", "returnDisplay", "error")
	a := geminiResult{
		said: geminiText(firstOf(r[0], f[2])), display: r[1],
		failed: e.Source == onToolFailure || isThere(r[2]), complaint: firstNonBlank(plain(f[3]), plain(r[2])),
	}
	if isOwnServer(c) {
		e.Kind, e.Calls[0].Failed, e.Calls[0].Result = observation.Touch, a.failed, a.said
		return
	}
	e.Kind, e.Calls[0].Interrupted = observation.Tool, isTrue(f[4])
	if ms, ok := integer(f[6]); ok {
		e.Calls[0].DurationMS = ms
	}
	if a.failed {
		e.Source = onToolFailure
	}
	finishQwen(&e.Calls[0], a, f[1])
}

// finishQwen adds the result to a call.
func finishQwen(c *observation.Call, a geminiResult, input []byte) {
	if c.Action == observation.Shell && a.said == "" { // the error contains the output of a failed command
		a.said, a.complaint = a.complaint, ""
	}
	if c.Action == observation.Shell {
		a.said = withoutGuidance(a.said)
	}
	a.apply(c)
	if c.Action == observation.Write && strings.HasPrefix(a.said, "Successfully overwrote") {
		c.Created = false
	}
	readPieces(c, input, nil, a.display)
}

// qwenCall describes a call of one of Qwen Code's tools by its input. Most tools are the same as
// Gemini CLI's.
func qwenCall(id, tool string, input []byte) observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	switch tool {
	case "edit":
		f := pick(input, "file_path", "replace_all")
		c.Action, c.Path, c.ReplaceAll = observation.Edit, text(f[0]), isTrue(f[1])
	case "tool_call": // a call of a tool that is loaded on demand; hooks use the name of that tool
		f := pick(input, "name", "arguments")
		if name := text(f[0]); strings.TrimSpace(name) != "" && name != tool {
			return qwenCall(id, name, f[1])
		}
	case "agent", "task":
		f := pick(input, "description", "prompt", "subagent_type")
		c.Action, c.Description, c.Prompt, c.SubagentType = observation.Spawn, text(f[0]), text(f[1]), text(f[2])
	case "web_search":
		c.Action, c.Query = observation.WebSearch, text(get(input, "query"))
	case "ask_user_question":
		c.Action, c.Question = observation.Ask, firstQuestion(input)
	case "skill":
		c.Action, c.SkillName = observation.Skill, text(get(input, "skill"))
	default:
		return geminiCall(id, tool, input, nil)
	}
	return c
}
