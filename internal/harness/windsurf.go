package harness

import (
	"os"
	"strings"

	"cairn/internal/observation"
)

// windsurfEvent reads a payload of Windsurf's Cascade in its documented format. Cascade does not
// report starts and ends of sessions. A turn ends with a response. Only payloads of commands
// contain a folder. For others the directory is the hook's working directory, the workspace.
func windsurfEvent(body []byte, _ string) (observation.Event, error) {
	f := pick(body, "agent_action_name", "trajectory_id", "execution_id", "tool_info", "cwd", "model_name")
	info := f[3]
	e := observation.Event{Harness: windsurf, Session: text(f[1]), PromptID: text(f[2]), Source: text(f[0]), Model: text(f[5])}
	e.Cwd = firstNonBlank(text(f[4]), text(get(info, "workspace_path")))
	if here, err := os.Getwd(); err == nil && e.Cwd == "" {
		e.Cwd = here
	}
	if err := requireFields(e, "trajectory_id", "cwd", "hook_event_name"); err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case "pre_user_prompt":
		e.Kind, e.Source, e.Text = observation.Prompt, onPrompt, strings.TrimSpace(typed(plain(get(info, "user_prompt"))))
	case "post_cascade_response":
		e.Kind, e.Source, e.Role, e.TurnEnds = observation.Message, onStop, roleTurn, true
		e.Text = plain(get(info, "response"))
	case "pre_write_code":
		e.Kind, e.Source, e.Calls = observation.Touch, onBeforeTool, []observation.Call{windsurfCall(e.Source, info)}
	case "post_write_code", "post_read_code", "post_run_command", "post_mcp_tool_use":
		windsurfTool(&e, info)
	}
	return e, nil
}

func isWindsurfPayload(body []byte) bool { return get(body, "agent_action_name") != nil }

func windsurfTool(e *observation.Event, info []byte) {
	c := windsurfCall(e.Source, info)
	e.Source, e.Kind = onToolUse, observation.Tool
	result := get(info, "mcp_result")
	if isOwnServer(c) {
		e.Kind = observation.Touch
		finishOwn(&c, firstOf(insideText(result), result))
	} else if c.Action == observation.MCP {
		c.Output = plain(result)
		decideFailure(&c, firstOf(insideText(result), result))
	}
	readPieces(&c, info, nil, nil)
	e.Calls = []observation.Call{c}
}

// windsurfCall describes an action: a read, an edit, a command or a call of an MCP server. The
// payload does not contain the result of a command.
func windsurfCall(action string, info []byte) observation.Call {
	f := pick(info, "file_path", "command_line", "mcp_server_name", "mcp_tool_name", "mcp_tool_arguments")
	switch action {
	case "pre_write_code", "post_write_code":
		return observation.Call{Tool: "write_code", Action: observation.Edit, Path: text(f[0])}
	case "post_read_code":
		return observation.Call{Tool: "read_code", Action: observation.Read, Path: text(f[0])}
	case "post_run_command":
		return observation.Call{Tool: "run_command", Action: observation.Shell, Command: text(f[1])}
	}
	return observation.Call{
		Tool: "mcp_tool_use", Action: observation.MCP, Server: text(f[2]), Method: text(f[3]), Args: arguments(f[4]),
	}
}
