package harness

import (
	"strings"

	"cairn/internal/observation"
)

// openCodeRefused is the start of the error of a call that cairn's plugin has refused.
const openCodeRefused = "Refused by cairn: "

// openCodeEvent reads a payload of cairn's plugin in OpenCode. The payload has Claude Code's
// format and describes OpenCode's tools.
func openCodeEvent(body []byte) (observation.Event, error) {
	e, err := commonEvent(openCode, "prompt_id", body)
	if err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case onToolUse, onToolFailure, onBeforeTool:
		openCodeTool(&e, body)
	default:
		fill(&e, body)
	}
	return e, nil
}

func openCodeTool(e *observation.Event, body []byte) {
	f := pick(body, "tool_name", "tool_use_id", "tool_input", "tool_response", "error")
	tool := text(f[0])
	if e.Source == onBeforeTool {
		e.Kind = observation.Touch
	}
	if strings.TrimSpace(tool) == "" {
		return
	}
	e.Calls = openCodeCalls(text(f[1]), tool, f[2])
	if e.Source == onBeforeTool {
		return
	}
	r := pick(f[3], "output", "exit", "exists", "isError", "sessionId")
	result := openCodeResult{
		said: text(r[0]), exit: r[1], exists: r[2], spawned: text(r[4]), complaint: text(f[4]),
		failed: e.Source == onToolFailure || isTrue(r[3]),
	}
	if strings.HasPrefix(e.Calls[0].Tool, "cairn_") {
		e.Kind, e.Calls[0].Failed, e.Calls[0].Result = observation.Touch, result.failed, result.said
		return
	}
	if openCodeRefusal(result.complaint) != neverRefused {
		e.Kind = observation.Touch
		return
	}
	e.Kind = observation.Tool
	for i := range e.Calls {
		result.apply(&e.Calls[i], f[2])
	}
}

// openCodeResult is the result of one of OpenCode's tools.
type openCodeResult struct {
	said      string // for the model
	exit      []byte // the exit code of a command, nil if unknown
	exists    []byte // whether a written file existed before
	spawned   string // the subagent's session
	failed    bool   // as reported by OpenCode
	complaint string // the error message
}

func (r openCodeResult) apply(c *observation.Call, input []byte) {
	c.Failed = r.failed
	switch c.Action {
	case observation.Shell:
		c.Stdout, c.Stderr = r.said, r.said // one text contains both streams
		if n, ok := integer(r.exit); ok {
			code := int(n)
			c.ExitCode, c.Failed = &code, c.Failed || code != 0
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
		c.Error, c.Output = firstNonBlank(r.complaint, c.Stdout, r.said), ""
	}
	markInterrupted(c)
	readPieces(c, input, nil, nil)
}

// openCodeRefusal returns the reason why a call that ended with an error never ran.
func openCodeRefusal(complaint string) string {
	switch {
	case strings.HasPrefix(complaint, openCodeRefused):
		return blocked
	case strings.HasPrefix(complaint, "The user rejected permission"):
		return rejected
	case strings.HasPrefix(complaint, "The user has specified a rule which prevents"):
		return denied
	case strings.HasPrefix(complaint, "Tool execution aborted"):
		return stopped
	case strings.HasPrefix(complaint, "The arguments provided to the tool are invalid"), strings.Contains(complaint, "tool was called with invalid arguments"):
		return invalidCall
	}
	return neverRefused
}

// openCodeCalls describes a call of one of OpenCode's tools by its input. It returns one call, or
// one per file of a patch.
func openCodeCalls(id, tool string, input []byte) []observation.Call {
	if tool == "apply_patch" || tool == "patch" {
		if calls := patchCalls(id, tool, text(get(input, "patchText")), ""); len(calls) > 0 {
			return calls
		}
	}
	return []observation.Call{openCodeCall(id, tool, input)}
}

func openCodeCall(id, tool string, input []byte) observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	f := pick(input, "filePath", "path", "pattern", "description", "prompt", "subagent_type", "url", "query", "command")
	c.Path = text(f[0])
	switch tool {
	case "bash", "shell":
		c.Action, c.Command, c.Description = observation.Shell, text(f[8]), text(f[3])
	case "read":
		c.Action = observation.Read
	case "write":
		c.Action = observation.Write
	case "edit", "multiedit", "apply_patch", "patch":
		c.Action, c.ReplaceAll = observation.Edit, isTrue(get(input, "replaceAll"))
	case "glob", "grep", "list", "codesearch":
		c.Action, c.Path, c.Pattern = observation.Search, text(f[1]), firstNonBlank(text(f[2]), text(f[7]))
	case "webfetch":
		c.Action, c.URL = observation.Fetch, text(f[6])
	case "websearch":
		c.Action, c.Query = observation.WebSearch, text(f[7])
	case "task":
		c.Action, c.Description, c.Prompt, c.SubagentType = observation.Spawn, text(f[3]), text(f[4]), text(f[5])
	case "question":
		c.Action, c.Question = observation.Ask, firstQuestion(input)
	case "skill":
		c.Action, c.SkillName = observation.Skill, text(get(input, "name"))
	case "todowrite", "todoread", "invalid", "lsp", "plan_enter", "plan_exit":
		c.Action = observation.Other
	default:
		if server, method, ok := strings.Cut(tool, "_"); ok && server != "" && method != "" {
			c.Action, c.Path, c.Server, c.Method, c.Args = observation.MCP, "", server, method, arguments(input)
		}
	}
	return c
}
