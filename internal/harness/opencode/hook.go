package opencode

import (
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// refused is the start of the error of a call that cairn's plugin has refused.
const refused = "Refused by cairn: "

// event reads a payload of cairn's plugin in OpenCode. The payload has Claude Code's
// format and describes OpenCode's tools.
func event(body lazyjson.Value, _ string) (observation.Event, error) {
	e, err := harness.CommonEvent(name, "prompt_id", body)
	if err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case harness.OnToolUse, harness.OnToolFailure, harness.OnBeforeTool:
		tool(&e, body)
	default:
		harness.FillEvent(&e, body)
	}
	return e, nil
}

func tool(e *observation.Event, body lazyjson.Value) {
	f := body.Pick("tool_name", "tool_use_id", "tool_input", "tool_response", "error")
	tool := f[0].Text()
	if e.Source == harness.OnBeforeTool {
		e.Kind = observation.Touch
	}
	if strings.TrimSpace(tool) == "" {
		return
	}
	e.Calls = calls(f[1].Text(), tool, f[2])
	if e.Source == harness.OnBeforeTool {
		return
	}
	r := f[3].Pick("output", "exit", "exists", "isError", "sessionId")
	result := result{
		said: r[0].Text(), exit: r[1], exists: r[2], spawned: r[4].Text(), complaint: f[4].Text(),
		failed: e.Source == harness.OnToolFailure || r[3].IsTrue(),
	}
	if strings.HasPrefix(e.Calls[0].Tool, "cairn_") {
		e.Kind, e.Calls[0].Failed, e.Calls[0].Result = observation.Touch, result.failed, result.said
		return
	}
	if refusal(result.complaint) != harness.NeverRefused {
		e.Kind = observation.Touch
		return
	}
	e.Kind = observation.Tool
	for i := range e.Calls {
		result.apply(&e.Calls[i], f[2])
	}
}

// result is the result of one of OpenCode's tools.
type result struct {
	said      string         // for the model
	exit      lazyjson.Value // the exit code of a command, nil if unknown
	exists    lazyjson.Value // whether a written file existed before
	spawned   string         // the subagent's session
	failed    bool           // as reported by OpenCode
	complaint string         // the error message
}

func (r result) apply(c *observation.Call, input lazyjson.Value) {
	c.Failed = r.failed
	switch c.Action {
	case observation.Shell:
		c.Stdout, c.Stderr = r.said, r.said // one text contains both streams
		if c.ExitCode = r.exit.Code(); c.ExitCode != nil {
			c.Failed = c.Failed || *c.ExitCode != 0
		}
		// OpenCode reports the outcome of a command after its output.
		said, why, cut := strings.Cut(r.said, "<bash_metadata>")
		if !cut {
			said, why, _ = strings.Cut(r.said, "<shell_metadata>")
		}
		c.Stdout, c.Stderr = said, said
		c.Interrupted = strings.Contains(why, "User aborted")
		c.Failed = c.Failed || strings.Contains(why, "timeout")
	case observation.Write:
		c.Created = string(r.exists) == "false"
	case observation.Spawn:
		c.SpawnedID, c.Output = r.spawned, r.said
	case observation.Fetch, observation.WebSearch, observation.MCP, observation.Other:
		c.Output = r.said
	}
	if c.Failed {
		c.Error, c.Output = lazyjson.FirstNonBlank(r.complaint, c.Stdout, r.said), ""
	}
	harness.MarkInterrupted(c)
	harness.ReadPieces(c, input, nil, nil)
}

// refusal returns the reason why a call that ended with an error never ran.
func refusal(complaint string) string {
	switch {
	case strings.HasPrefix(complaint, refused):
		return harness.Blocked
	case strings.HasPrefix(complaint, "The user rejected permission"):
		return harness.Rejected
	case strings.HasPrefix(complaint, "The user has specified a rule which prevents"):
		return harness.Denied
	case strings.HasPrefix(complaint, "Tool execution aborted"):
		return harness.Stopped
	case strings.HasPrefix(complaint, "The arguments provided to the tool are invalid"), strings.Contains(complaint, "tool was called with invalid arguments"):
		return harness.InvalidCall
	}
	return harness.NeverRefused
}

// calls describes a call of one of OpenCode's tools by its input. It returns one call, or
// one per file of a patch.
func calls(id, tool string, input lazyjson.Value) []observation.Call {
	if tool == "apply_patch" || tool == "patch" {
		if calls := harness.PatchCalls(id, tool, input.Get("patchText").Text(), ""); len(calls) > 0 {
			return calls
		}
	}
	return []observation.Call{call(id, tool, input)}
}

func call(id, tool string, input lazyjson.Value) observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	f := input.Pick("filePath", "path", "pattern", "description", "prompt", "subagent_type", "url", "query", "command")
	c.Path = f[0].Text()
	switch tool {
	case "bash", "shell":
		c.Action, c.Command, c.Description = observation.Shell, f[8].Text(), f[3].Text()
	case "read":
		c.Action = observation.Read
	case "write":
		c.Action = observation.Write
	case "edit", "multiedit", "apply_patch", "patch":
		c.Action, c.ReplaceAll = observation.Edit, input.Get("replaceAll").IsTrue()
	case "glob", "grep", "list", "codesearch":
		c.Action, c.Path, c.Pattern = observation.Search, f[1].Text(), lazyjson.FirstNonBlank(f[2].Text(), f[7].Text())
	case "webfetch":
		c.Action, c.URL = observation.Fetch, f[6].Text()
	case "websearch":
		c.Action, c.Query = observation.WebSearch, f[7].Text()
	case "task":
		c.Action, c.Description, c.Prompt, c.SubagentType = observation.Spawn, f[3].Text(), f[4].Text(), f[5].Text()
	case "question":
		c.Action, c.Question = observation.Ask, harness.FirstQuestion(input)
	case "skill":
		c.Action, c.SkillName = observation.Skill, input.Get("name").Text()
	case "todowrite", "todoread", "invalid", "lsp", "plan_enter", "plan_exit":
		c.Action = observation.Other
	default:
		if server, method, ok := strings.Cut(tool, "_"); ok && server != "" && method != "" {
			c.Action, c.Path, c.Server, c.Method, c.Args = observation.MCP, "", server, method, harness.Arguments(input)
		}
	}
	return c
}
