package gemini

import (
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// qwenEvent reads a payload of Qwen Code: Claude Code's events with Gemini CLI's tools and
// results. Before every further request of a turn, Qwen Code sends a prompt without text, which is
// Ignored. Its prompt ids do not occur in transcripts. In recent versions this also applies to the
// ids of calls.
func qwenEvent(body lazyjson.Value, _ string) (observation.Event, error) {
	e, err := harness.CommonEvent(qwenName, "prompt_id", body)
	if err != nil {
		return observation.Event{}, err
	}
	e.PromptID = ""
	switch e.Source {
	case harness.OnPrompt:
		said := typed(body.Get("prompt").Plain())
		if strings.TrimSpace(said) == "" {
			return e, nil
		}
		e.Kind, e.Text = observation.Prompt, said
	case harness.OnToolUse, harness.OnToolFailure, harness.OnBeforeTool:
		qwenTool(&e, body)
	default:
		harness.FillEvent(&e, body)
	}
	return e, nil
}

func isQwenPayload(body lazyjson.Value) bool {
	return strings.Contains(strings.ReplaceAll(body.Get("transcript_path").Text(), `\`, "/"), "/.qwen/")
}

func qwenTool(e *observation.Event, body lazyjson.Value) {
	f := body.Pick("tool_name", "tool_input", "tool_response", "error", "is_interrupt", "tool_call_id", "duration_ms")
	tool := f[0].Text()
	if e.Source == harness.OnBeforeTool {
		e.Kind = observation.Touch
	}
	if strings.TrimSpace(tool) == "" {
		return
	}
	c := qwenCall(f[5].Text(), tool, f[1])
	e.Calls = []observation.Call{c}
	if e.Source == harness.OnBeforeTool {
		return
	}
	r := f[2].Pick("llmContent", "returnDisplay", "error")
	a := result{
		said: harness.ContentText(lazyjson.First(r[0], f[2])), display: r[1],
		failed: e.Source == harness.OnToolFailure || r[2].IsSet(), complaint: lazyjson.FirstNonBlank(f[3].Plain(), r[2].Plain()),
	}
	if harness.IsOwnCall(c) {
		e.Kind, e.Calls[0].Failed, e.Calls[0].Result = observation.Touch, a.failed, a.said
		return
	}
	e.Kind, e.Calls[0].Interrupted = observation.Tool, f[4].IsTrue()
	if ms, ok := f[6].Integer(); ok {
		e.Calls[0].DurationMS = ms
	}
	if a.failed {
		e.Source = harness.OnToolFailure
	}
	finishQwen(&e.Calls[0], a, f[1])
}

// finishQwen adds the result to a call.
func finishQwen(c *observation.Call, a result, input lazyjson.Value) {
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
	harness.ReadPieces(c, input, nil, a.display)
}

// qwenCall describes a call of one of Qwen Code's tools by its input. Most tools are the same as
// Gemini CLI's.
func qwenCall(id, tool string, input lazyjson.Value) observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	switch tool {
	case "edit":
		f := input.Pick("file_path", "replace_all")
		c.Action, c.Path, c.ReplaceAll = observation.Edit, f[0].Text(), f[1].IsTrue()
	case "tool_call": // a call of a tool that is loaded on demand; hooks use the name of that tool
		f := input.Pick("name", "arguments")
		if name := f[0].Text(); strings.TrimSpace(name) != "" && name != tool {
			return qwenCall(id, name, f[1])
		}
	case "agent", "task":
		f := input.Pick("description", "prompt", "subagent_type")
		c.Action, c.Description, c.Prompt, c.SubagentType = observation.Spawn, f[0].Text(), f[1].Text(), f[2].Text()
	case "web_search":
		c.Action, c.Query = observation.WebSearch, input.Get("query").Text()
	case "ask_user_question":
		c.Action, c.Question = observation.Ask, harness.FirstQuestion(input)
	case "skill":
		c.Action, c.SkillName = observation.Skill, input.Get("skill").Text()
	default:
		return call(id, tool, input, nil)
	}
	return c
}
