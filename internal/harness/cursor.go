package harness

import (
	"strings"

	"cairn/internal/observation"
)

// cursorEvent reads a payload of Cursor (observations §4.3). The directory is the payload's own,
// else the first of the workspace, else the user's home.
//
// Cursor reports many actions twice, with a general and with a specific event. Both create a row
// unless they have the same tool_use_id. So only one of the two groups should be connected (§15).
func cursorEvent(body []byte, home string) (observation.Event, error) {
	f := pick(body, "conversation_id", "session_id", "cwd", "workspace_roots", "hook_event_name", "generation_id")
	e := observation.Event{
		Harness: cursor, Session: firstNonBlank(text(f[0]), text(f[1])),
		Cwd:    firstNonBlank(cursorPath(text(f[2])), firstRoot(f[3]), home),
		Source: text(f[4]), PromptID: text(f[5]),
	}
	if err := requireFields(e, "conversation_id", "workspace_roots", "hook_event_name"); err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case "sessionStart": // sent only for new conversations
		e.Kind, e.Source, e.Text, e.Model = observation.SessionStart, onSessionStart, "startup", text(get(body, "model"))
	case "sessionEnd":
		e.Kind, e.Source, e.Text = observation.SessionEnd, onSessionEnd, text(get(body, "reason"))
	case "beforeSubmitPrompt":
		e.Kind, e.Source, e.Text = observation.Prompt, onPrompt, strings.TrimSpace(typed(plain(get(body, "prompt"))))
	case "afterAgentResponse", "stop": // the text, if any, comes with afterAgentResponse
		e.Kind, e.Source, e.Role, e.TurnEnds = observation.Message, onStop, roleTurn, true
		e.Text = cursorSaid(plain(get(body, "text")))
	case "afterShellExecution", "afterFileEdit", "afterMCPExecution", "postToolUse", "postToolUseFailure":
		cursorAfter(&e, body)
	case "preToolUse":
		e.Kind, e.Source = observation.Touch, onBeforeTool
		f := pick(body, "tool_name", "tool_use_id", "tool_input")
		if tool := text(f[0]); strings.TrimSpace(tool) != "" {
			e.Calls = cursorCalls(text(f[1]), tool, firstOf(insideText(f[2]), f[2]))
		}
	case "beforeShellExecution", "beforeMCPExecution", "beforeReadFile":
		e.Kind, e.Source = observation.Touch, onBeforeTool
	case "preCompact":
		e.Kind = observation.Touch
	}
	return e, nil
}

func isCursorPayload(body []byte) bool {
	id := get(body, "conversation_id")
	return id != nil && string(id) != "null"
}

// cursorAfter reads the event of a finished call.
func cursorAfter(e *observation.Event, body []byte) {
	event := e.Source
	e.Source = onToolUse
	f := pick(body, "tool_name", "tool_use_id", "tool_input", "tool_output", "result_json", "output", "mcp_server_name", "failure_type")
	tool, id, input := text(f[0]), text(f[1]), firstOf(insideText(f[2]), f[2])
	response := firstOf(f[3], f[4], f[5])
	switch event {
	case "afterShellExecution":
		tool, input = "Shell", body
	case "afterFileEdit":
		tool, input = "Edit", body
	}
	if strings.TrimSpace(tool) == "" {
		return
	}
	calls := cursorCalls(id, tool, input)
	if event == "afterMCPExecution" && calls[0].Action != observation.MCP {
		calls = []observation.Call{{ID: id, Tool: tool, Action: observation.MCP, Method: tool, Args: arguments(input)}}
	}
	if calls[0].Action == observation.MCP {
		calls[0].Server = firstNonBlank(cursorServer(text(f[6])), calls[0].Server)
	}
	e.Kind, e.Calls = observation.Tool, calls
	if event == "postToolUseFailure" {
		e.Source = onToolFailure
	}
	switch {
	case isOwnServer(calls[0]):
		e.Kind = observation.Touch
		finishOwn(&calls[0], firstOf(insideText(response), response), body)
		return
	case text(f[7]) == "permission_denied": // a denied call never ran
		e.Kind = observation.Touch
		return
	}
	for i := range calls {
		cursorResult(&calls[i], e.Source == onToolFailure, firstOf(insideText(response), response), body)
		readPieces(&calls[i], input, nil, nil)
	}
}

// cursorResult adds the response and the other fields of the payload to a call.
func cursorResult(c *observation.Call, failed bool, response, body []byte) {
	f := pick(body, "duration", "is_interrupt", "error_message")
	if ms, ok := integer(f[0]); ok {
		c.DurationMS = ms
	}
	created := c.Created // set by a patch, which contains more than its response
	readResponse(c, response)
	c.Created = c.Created || created
	if said := text(get(response, "output")); c.Action == observation.Shell && c.Stdout == "" {
		c.Stdout, c.Stderr = said, firstNonBlank(c.Stderr, said)
	}
	c.Interrupted = c.Interrupted || isTrue(f[1])
	if failed {
		fail(c, plain(f[2]), response)
		return
	}
	decideFailure(c, response, body)
}

// cursorPath returns a folder's path in the system's form. On Windows, Cursor puts a slash before
// the drive.
func cursorPath(path string) string {
	if len(path) > 2 && path[0] == '/' && path[2] == ':' {
		return path[1:]
	}
	return path
}

func firstRoot(roots []byte) string {
	for root := range elements(roots) {
		if path := cursorPath(text(root)); strings.TrimSpace(path) != "" {
			return path
		}
	}
	return ""
}

// cursorServer returns the name of an MCP server as configured. In some places Cursor prefixes it
// with the place of its configuration.
func cursorServer(name string) string {
	for _, prefix := range [...]string{"user-", "project-"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			return rest
		}
	}
	return name
}

// cursorCalls describes a call of one of Cursor's tools by its input. It accepts the tool names of
// hooks, transcripts and earlier versions. It returns one call, or one per file of a patch.
func cursorCalls(id, tool string, input []byte) []observation.Call {
	if tool == "ApplyPatch" || tool == patchTool {
		if calls := patchCalls(id, tool, patchText(input), ""); len(calls) > 0 {
			return calls
		}
	}
	return []observation.Call{cursorCall(id, tool, input)}
}

func cursorCall(id, tool string, input []byte) observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	f := pick(input, "file_path", "path", "target_file", "target_notebook", "notebook_path", "relative_workspace_path",
		"description", "prompt")
	c.Path = cursorPath(firstNonBlank(text(f[0]), text(f[1]), text(f[2]), text(f[3]), text(f[4]), text(f[5])))
	switch tool {
	case "Shell", "Bash", "run_terminal_cmd":
		f := pick(input, "command", "description", "explanation", "is_background", "run_in_background")
		c = observation.Call{ID: id, Tool: tool, Action: observation.Shell, Command: text(f[0])}
		c.Description, c.Background = firstNonBlank(text(f[1]), text(f[2])), isTrue(f[3]) || isTrue(f[4])
	case "Read", "read_file", "ReadFile":
		c.Action = observation.Read
	case "Write", "write", "create_file":
		c.Action = observation.Write
	case "Edit", "StrReplace", "MultiEdit", "EditNotebook", "search_replace", "edit_file", "edit_notebook", "ApplyPatch":
		c.Action, c.ReplaceAll = observation.Edit, replacesAll(input)
	case "Delete", "delete_file":
		c.Action, c.Deleted = observation.Edit, true
	case "Grep", "Glob", "grep", "grep_search", "glob_file_search", "file_search", "SemanticSearch", "codebase_search", "LS", "list_dir":
		cursorSearch(&c, input)
	case "WebFetch", "web_fetch", "fetch":
		c.Action, c.URL = observation.Fetch, text(get(input, "url"))
	case "WebSearch", "web_search":
		q := pick(input, "search_term", "query")
		c.Action, c.Query = observation.WebSearch, firstNonBlank(text(q[0]), text(q[1]))
	case "Task", "Subagent":
		c.Action, c.SubagentType = observation.Spawn, text(get(input, "subagent_type"))
		c.Description, c.Prompt, c.Path = text(f[6]), text(f[7]), ""
	case "AskQuestion", "AskUserQuestion":
		c.Action, c.Question = observation.Ask, cursorQuestion(input)
	default:
		cursorMCP(&c, input)
	}
	return c
}

func cursorSearch(c *observation.Call, input []byte) {
	c.Action = observation.Search
	f := pick(input, "pattern", "query", "glob_pattern", "target_directory", "target_directories", "output_mode")
	c.Pattern, c.Mode = firstNonBlank(text(f[0]), text(f[1]), text(f[2])), text(f[5])
	c.Path = firstNonBlank(c.Path, cursorPath(text(f[3])), firstRoot(f[4]))
}

// cursorQuestion returns the first question for the user.
func cursorQuestion(input []byte) string {
	for q := range elements(get(input, "questions")) {
		f := pick(q, "prompt", "question")
		if said := firstNonBlank(text(f[0]), text(f[1])); said != "" {
			return said
		}
	}
	return firstQuestion(input)
}

// cursorMCP describes a call of an MCP server. The tool is the general one for such calls, or its
// name is MCP:METHOD or joins server and method.
func cursorMCP(c *observation.Call, input []byte) {
	method, isMCP := strings.CutPrefix(c.Tool, "MCP:")
	switch {
	case c.Tool == "CallMcpTool":
		f := pick(input, "server", "toolName", "arguments")
		c.Action, c.Path = observation.MCP, ""
		c.Server, c.Method, c.Args = cursorServer(text(f[0])), text(f[1]), arguments(f[2])
	case isMCP:
		c.Action, c.Path, c.Method, c.Args = observation.MCP, "", strings.TrimSpace(method), arguments(input)
	case strings.Contains(c.Tool, "__"):
		c.Action, c.Path, c.Args = observation.MCP, "", arguments(input)
		c.Server, c.Method = splitTool(c.Tool)
	}
}

// cursorTyped returns the user's text in a prompt of a transcript. The text is between tags, after
// the time and other additions of Cursor. Text between the tags is not escaped, so only the first
// opening and the last closing tag are Cursor's. Without these tags, everything after the leading
// blocks counts as the user's text.
func cursorTyped(prompt string) string {
	const start, end = "<user_query>", "</user_query>"
	if i := strings.Index(prompt, start); i >= 0 {
		prompt = prompt[i+len(start):]
		if j := strings.LastIndex(prompt, end); j >= 0 {
			prompt = prompt[:j]
		}
		return strings.TrimSpace(typed(strings.TrimSpace(prompt)))
	}
	prompt = strings.TrimSpace(prompt)
	for strings.HasPrefix(prompt, "<") {
		n := 1
		for n < len(prompt) && isNameByte(prompt[n]) {
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
	return strings.TrimSpace(typed(prompt))
}

// cursorSaid removes the marks from an agent's message that Cursor writes in place of its
// thoughts.
func cursorSaid(message string) string {
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
