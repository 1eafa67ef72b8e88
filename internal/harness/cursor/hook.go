package cursor

import (
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// event reads a payload of Cursor (observations §4.3). The directory is the payload's own,
// else the first of the workspace, else the user's home.
//
// Cursor reports many actions twice, with a general and with a specific event. Both create a row
// unless they have the same tool_use_id. So only one of the two groups should be connected (§15).
func event(body lazyjson.Value, home string) (observation.Event, error) {
	f := body.Pick("conversation_id", "session_id", "cwd", "workspace_roots", "hook_event_name", "generation_id")
	e := observation.Event{
		Harness: name, Session: lazyjson.FirstNonBlank(f[0].Text(), f[1].Text()),
		Cwd:    lazyjson.FirstNonBlank(harness.FolderPath(f[2].Text()), harness.FirstFolder(f[3]), home),
		Source: f[4].Text(), PromptID: f[5].Text(),
	}
	if err := harness.RequireFields(e, "conversation_id", "workspace_roots", "hook_event_name"); err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case "sessionStart": // sent only for new conversations
		e.Kind, e.Source, e.Text, e.Model = observation.SessionStart, harness.OnSessionStart, "startup", body.Get("model").Text()
	case "sessionEnd":
		e.Kind, e.Source, e.Text = observation.SessionEnd, harness.OnSessionEnd, body.Get("reason").Text()
	case "beforeSubmitPrompt":
		e.Kind, e.Source, e.Text = observation.Prompt, harness.OnPrompt, strings.TrimSpace(harness.Typed(body.Get("prompt").Plain()))
	case "afterAgentResponse", "stop": // the text, if any, comes with afterAgentResponse
		e.Kind, e.Source, e.Role, e.TurnEnds = observation.Message, harness.OnStop, harness.RoleTurn, true
		e.Text = said(body.Get("text").Plain())
	case "afterShellExecution", "afterFileEdit", "afterMCPExecution", "postToolUse", "postToolUseFailure":
		after(&e, body)
	case "preToolUse":
		e.Kind, e.Source = observation.Touch, harness.OnBeforeTool
		f := body.Pick("tool_name", "tool_use_id", "tool_input")
		if tool := f[0].Text(); strings.TrimSpace(tool) != "" {
			e.Calls = calls(f[1].Text(), tool, f[2].Unwrapped())
		}
	case "beforeShellExecution", "beforeMCPExecution", "beforeReadFile":
		e.Kind, e.Source = observation.Touch, harness.OnBeforeTool
	case "preCompact":
		e.Kind = observation.Touch
	}
	return e, nil
}

func isPayload(body lazyjson.Value) bool {
	id := body.Get("conversation_id")
	return id != nil && string(id) != "null"
}

// after reads the event of a finished call.
func after(e *observation.Event, body lazyjson.Value) {
	event := e.Source
	e.Source = harness.OnToolUse
	f := body.Pick("tool_name", "tool_use_id", "tool_input", "tool_output", "result_json", "output", "mcp_server_name", "failure_type")
	tool, id, input := f[0].Text(), f[1].Text(), f[2].Unwrapped()
	response := lazyjson.First(f[3], f[4], f[5])
	switch event {
	case "afterShellExecution":
		tool, input = "Shell", body
	case "afterFileEdit":
		tool, input = "Edit", body
	}
	if strings.TrimSpace(tool) == "" {
		return
	}
	calls := calls(id, tool, input)
	if event == "afterMCPExecution" && calls[0].Action != observation.MCP {
		calls = []observation.Call{{ID: id, Tool: tool, Action: observation.MCP, Method: tool, Args: harness.Arguments(input)}}
	}
	if calls[0].Action == observation.MCP {
		calls[0].Server = lazyjson.FirstNonBlank(server(f[6].Text()), calls[0].Server)
	}
	e.Kind, e.Calls = observation.Tool, calls
	if event == "postToolUseFailure" {
		e.Source = harness.OnToolFailure
	}
	switch {
	case harness.IsOwnCall(calls[0]):
		e.Kind = observation.Touch
		harness.FinishOwn(&calls[0], response.Unwrapped(), body)
		return
	case f[7].Text() == "permission_denied": // a denied call never ran
		e.Kind = observation.Touch
		return
	}
	for i := range calls {
		result(&calls[i], e.Source == harness.OnToolFailure, response.Unwrapped(), body)
		harness.ReadPieces(&calls[i], input, nil, nil)
	}
}

// result adds the response and the other fields of the payload to a call.
func result(c *observation.Call, failed bool, response, body lazyjson.Value) {
	f := body.Pick("duration", "is_interrupt", "error_message")
	if ms, ok := f[0].Integer(); ok {
		c.DurationMS = ms
	}
	created := c.Created // set by a patch, which contains more than its response
	harness.ReadResponse(c, response)
	c.Created = c.Created || created
	if said := response.Get("output").Text(); c.Action == observation.Shell && c.Stdout == "" {
		c.Stdout, c.Stderr = said, lazyjson.FirstNonBlank(c.Stderr, said)
	}
	c.Interrupted = c.Interrupted || f[1].IsTrue()
	if failed {
		harness.SetFailed(c, f[2].Plain(), response)
		return
	}
	harness.DecideFailure(c, response, body)
}

// server returns the name of an MCP server as configured. In some places Cursor prefixes it
// with the place of its configuration.
func server(name string) string {
	for _, prefix := range [...]string{"user-", "project-"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			return rest
		}
	}
	return name
}

// calls describes a call of one of Cursor's tools by its input. It accepts the tool names of
// hooks, transcripts and earlier versions. It returns one call, or one per file of a patch.
func calls(id, tool string, input lazyjson.Value) []observation.Call {
	if tool == "ApplyPatch" || tool == harness.PatchTool {
		if calls := harness.PatchCalls(id, tool, harness.PatchText(input), ""); len(calls) > 0 {
			return calls
		}
	}
	return []observation.Call{call(id, tool, input)}
}

func call(id, tool string, input lazyjson.Value) observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	f := input.Pick("file_path", "path", "target_file", "target_notebook", "notebook_path", "relative_workspace_path",
		"description", "prompt")
	c.Path = harness.FolderPath(lazyjson.FirstNonBlank(f[0].Text(), f[1].Text(), f[2].Text(), f[3].Text(), f[4].Text(), f[5].Text()))
	switch tool {
	case "Shell", "Bash", "run_terminal_cmd":
		f := input.Pick("command", "description", "explanation", "is_background", "run_in_background")
		c = observation.Call{ID: id, Tool: tool, Action: observation.Shell, Command: f[0].Text()}
		c.Description, c.Background = lazyjson.FirstNonBlank(f[1].Text(), f[2].Text()), f[3].IsTrue() || f[4].IsTrue()
	case "Read", "read_file", "ReadFile":
		c.Action = observation.Read
	case "Write", "write", "create_file":
		c.Action = observation.Write
	case "Edit", "StrReplace", "MultiEdit", "EditNotebook", "search_replace", "edit_file", "edit_notebook", "ApplyPatch":
		c.Action, c.ReplaceAll = observation.Edit, harness.ReplacesAll(input)
	case "Delete", "delete_file":
		c.Action, c.Deleted = observation.Edit, true
	case "Grep", "Glob", "grep", "grep_search", "glob_file_search", "file_search", "SemanticSearch", "codebase_search", "LS", "list_dir":
		search(&c, input)
	case "WebFetch", "web_fetch", "fetch":
		c.Action, c.URL = observation.Fetch, input.Get("url").Text()
	case "WebSearch", "web_search":
		q := input.Pick("search_term", "query")
		c.Action, c.Query = observation.WebSearch, lazyjson.FirstNonBlank(q[0].Text(), q[1].Text())
	case "Task", "Subagent":
		c.Action, c.SubagentType = observation.Spawn, input.Get("subagent_type").Text()
		c.Description, c.Prompt, c.Path = f[6].Text(), f[7].Text(), ""
	case "AskQuestion", "AskUserQuestion":
		c.Action, c.Question = observation.Ask, question(input)
	default:
		mcp(&c, input)
	}
	return c
}

func search(c *observation.Call, input lazyjson.Value) {
	c.Action = observation.Search
	f := input.Pick("pattern", "query", "glob_pattern", "target_directory", "target_directories", "output_mode")
	c.Pattern, c.Mode = lazyjson.FirstNonBlank(f[0].Text(), f[1].Text(), f[2].Text()), f[5].Text()
	c.Path = lazyjson.FirstNonBlank(c.Path, harness.FolderPath(f[3].Text()), harness.FirstFolder(f[4]))
}

// question returns the first question for the user.
func question(input lazyjson.Value) string {
	for q := range input.Get("questions").Elements() {
		f := q.Pick("prompt", "question")
		if said := lazyjson.FirstNonBlank(f[0].Text(), f[1].Text()); said != "" {
			return said
		}
	}
	return harness.FirstQuestion(input)
}

// mcp describes a call of an MCP server. The tool is the general one for such calls, or its
// name is MCP:METHOD or joins server and method.
func mcp(c *observation.Call, input lazyjson.Value) {
	method, isMCP := strings.CutPrefix(c.Tool, "MCP:")
	switch {
	case c.Tool == "CallMcpTool":
		f := input.Pick("server", "toolName", "arguments")
		c.Action, c.Path = observation.MCP, ""
		c.Server, c.Method, c.Args = server(f[0].Text()), f[1].Text(), harness.Arguments(f[2])
	case isMCP:
		c.Action, c.Path, c.Method, c.Args = observation.MCP, "", strings.TrimSpace(method), harness.Arguments(input)
	case strings.Contains(c.Tool, "__"):
		c.Action, c.Path, c.Args = observation.MCP, "", harness.Arguments(input)
		c.Server, c.Method = harness.SplitTool(c.Tool)
	}
}

// typed returns the user's text in a prompt of a transcript. The text is between tags, after
// the time and other additions of Cursor. Text between the tags is not escaped, so only the first
// opening and the last closing tag are Cursor's. Without these tags, everything after the leading
// blocks counts as the user's text.
func typed(prompt string) string {
	const start, end = "<user_query>", "</user_query>"
	if i := strings.Index(prompt, start); i >= 0 {
		prompt = prompt[i+len(start):]
		if j := strings.LastIndex(prompt, end); j >= 0 {
			prompt = prompt[:j]
		}
		return strings.TrimSpace(harness.Typed(strings.TrimSpace(prompt)))
	}
	prompt = strings.TrimSpace(prompt)
	for strings.HasPrefix(prompt, "<") {
		n := 1
		for n < len(prompt) && harness.IsNameByte(prompt[n]) {
			n++
		}
		name := prompt[1:n]
		if name != "timestamp" && !strings.Contains(name, "_") {
			break
		}
		_, rest, ok := strings.Cut(prompt, "</"+name+">")
		if !ok {
			break
		}
		prompt = strings.TrimSpace(rest)
	}
	return strings.TrimSpace(harness.Typed(prompt))
}

// said removes the marks from an agent's message that Cursor writes in place of its
// thoughts.
func said(message string) string {
	const removed = "[REDACTED]"
	if !strings.Contains(message, removed) {
		return message
	}
	message = strings.TrimSpace(message)
	for strings.HasSuffix(message, removed) {
		message = strings.TrimSpace(strings.TrimSuffix(message, removed))
	}
	return message
}

// answerTo returns the output for Cursor. Before a call, Cursor treats empty output as a
// refusal, so the output without a decision allows the call, and Cursor's own permissions apply.
// Cursor accepts "ask" as well, but may still make the call.
func answerTo(e observation.Event, text string, v harness.GuardDecision) (string, error) {
	switch {
	case text != "":
		return harness.JSONLine(map[string]any{"additional_context": text})
	case v.Decision != "":
		return harness.JSONLine(map[string]any{"permission": v.Decision, "user_message": v.Reason, "agent_message": v.Reason})
	case e.Source == harness.OnBeforeTool:
		return harness.JSONLine(map[string]any{"permission": "allow"})
	}
	return "", nil
}
