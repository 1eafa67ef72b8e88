package windsurf

import (
	"os"
	"path/filepath"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// silent returns an empty output.
func silent(observation.Event, string, harness.GuardDecision) (string, error) { return "", nil }

func dir(h harness.Homes) string { return h.In("", ".codeium", "windsurf") }

// hooks returns Cascade's hooks. They cannot add text to the conversation.
func hooks() harness.Hooks {
	return harness.Hooks{
		Form: harness.HookForm{Flat: true, Quiet: true, Windows: harness.PowerShell},
		Wanted: harness.HooksFor(0, "pre_user_prompt", "pre_write_code", "post_read_code", "post_write_code", "post_run_command", "post_mcp_tool_use",
			"post_cascade_response"),
	}
}

func settings(h harness.Homes) []harness.File {
	dir := dir(h)
	return []harness.File{
		{Path: filepath.Join(dir, "hooks.json"), Hooks: true},
		{Path: filepath.Join(dir, "mcp_config.json"), Server: harness.Server{Under: "mcpServers"}},
		{Path: filepath.Join(dir, "memories", "global_rules.md"), Format: harness.Block, Text: harness.Rules},
	}
}

// event reads a payload of Windsurf's Cascade in its documented format. Cascade does not
// report starts and ends of sessions. A turn ends with a response. Only payloads of commands
// contain a folder. For others the directory is the hook's working directory, the workspace.
func event(body lazyjson.Value, _ string) (observation.Event, error) {
	f := body.Pick("agent_action_name", "trajectory_id", "execution_id", "tool_info", "cwd", "model_name")
	info := f[3]
	e := observation.Event{Harness: name, Session: f[1].Text(), PromptID: f[2].Text(), Source: f[0].Text(), Model: f[5].Text()}
	e.Cwd = lazyjson.FirstNonBlank(f[4].Text(), info.Get("workspace_path").Text())
	if here, err := os.Getwd(); err == nil && e.Cwd == "" {
		e.Cwd = here
	}
	if err := harness.RequireFields(e, "trajectory_id", "cwd", "hook_event_name"); err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case "pre_user_prompt":
		e.Kind, e.Source, e.Text = observation.Prompt, harness.OnPrompt, strings.TrimSpace(harness.Typed(info.Get("user_prompt").Plain()))
	case "post_cascade_response":
		e.Kind, e.Source, e.Role, e.TurnEnds = observation.Message, harness.OnStop, harness.RoleTurn, true
		e.Text = info.Get("response").Plain()
	case "pre_write_code":
		e.Kind, e.Source, e.Calls = observation.Touch, harness.OnBeforeTool, []observation.Call{call(e.Source, info)}
	case "post_write_code", "post_read_code", "post_run_command", "post_mcp_tool_use":
		tool(&e, info)
	}
	return e, nil
}

func isPayload(body lazyjson.Value) bool { return body.Get("agent_action_name") != nil }

func tool(e *observation.Event, info lazyjson.Value) {
	c := call(e.Source, info)
	e.Source, e.Kind = harness.OnToolUse, observation.Tool
	result := info.Get("mcp_result")
	if harness.IsOwnCall(c) {
		e.Kind = observation.Touch
		harness.FinishOwn(&c, result.Unwrapped())
	} else if c.Action == observation.MCP {
		c.Output = result.Plain()
		harness.DecideFailure(&c, result.Unwrapped())
	}
	harness.ReadPieces(&c, info, nil, nil)
	e.Calls = []observation.Call{c}
}

// call describes an action: a read, an edit, a command or a call of an MCP server. The
// payload does not contain the result of a command.
func call(action string, info lazyjson.Value) observation.Call {
	f := info.Pick("file_path", "command_line", "mcp_server_name", "mcp_tool_name", "mcp_tool_arguments")
	switch action {
	case "pre_write_code", "post_write_code":
		return observation.Call{Tool: "write_code", Action: observation.Edit, Path: f[0].Text()}
	case "post_read_code":
		return observation.Call{Tool: "read_code", Action: observation.Read, Path: f[0].Text()}
	case "post_run_command":
		return observation.Call{Tool: "run_command", Action: observation.Shell, Command: f[1].Text()}
	}
	return observation.Call{
		Tool: "mcp_tool_use", Action: observation.MCP, Server: f[2].Text(), Method: f[3].Text(), Args: harness.Arguments(f[4]),
	}
}

// name is the name of Windsurf.
const name = "windsurf"

// Harness describes Windsurf. Its transcripts are encrypted.
// A rules file gives its model the context that hooks cannot provide.
func Harness() harness.Harness {
	return harness.Harness{
		Name: name, Title: "Windsurf", Aliases: []string{"cascade"}, Program: name,
		RefusesByTwo: true,
		Folder:       dir,
		Hooks:        hooks(), Files: settings,
		Answer: silent, Event: event, Sends: isPayload,
	}
}
