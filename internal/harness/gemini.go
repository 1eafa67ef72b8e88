package harness

import (
	"strconv"
	"strings"

	"cairn/internal/observation"
)

// geminiEvent reads a payload of Gemini CLI (observations §4.3). Events that create no row are
// Ignored, mainly those around every model call.
func geminiEvent(body []byte) (observation.Event, error) {
	f := pick(body, "session_id", "cwd", "hook_event_name")
	e := observation.Event{Harness: gemini, Session: text(f[0]), Cwd: text(f[1]), Source: text(f[2])}
	if err := requireFields(e, "session_id", "cwd", "hook_event_name"); err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case onSessionStart:
		f := pick(body, "source", "model")
		e.Kind, e.Text, e.Model = observation.SessionStart, text(f[0]), text(f[1])
	case onSessionEnd:
		e.Kind, e.Text = observation.SessionEnd, text(get(body, "reason"))
	case "BeforeAgent":
		e.Kind, e.Source, e.Text = observation.Prompt, onPrompt, geminiTyped(geminiText(get(body, "prompt")))
	case "AfterAgent":
		e.Kind, e.Source, e.Role, e.TurnEnds = observation.Message, onStop, roleTurn, true
		e.Text = geminiSaid(geminiText(get(body, "prompt_response")))
	case "AfterTool":
		geminiTool(&e, body)
	case "BeforeTool":
		e.Kind, e.Source = observation.Touch, onBeforeTool
		f := pick(body, "tool_name", "tool_use_id", "tool_input", "mcp_context")
		if tool := text(f[0]); strings.TrimSpace(tool) != "" {
			e.Calls = []observation.Call{geminiCall(text(f[1]), tool, f[2], f[3])}
		}
	case "PreCompress", "Notification":
		e.Kind = observation.Touch
	}
	return e, nil
}

func isGeminiPayload(body []byte) bool {
	f := pick(body, "hook_event_name", "transcript_path")
	return isGeminiEvent(text(f[0]), text(f[1]))
}

// isGeminiEvent reports whether only Gemini CLI sends an event. Events that it shares with Claude
// Code are recognized by the transcript's folder.
func isGeminiEvent(name, transcript string) bool {
	switch name {
	case "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "BeforeModel", "AfterModel",
		"BeforeToolSelection", "PreCompress":
		return true
	case onSessionStart, onSessionEnd, "Notification":
		return strings.Contains(strings.ReplaceAll(transcript, `\`, "/"), "/.gemini/")
	}
	return false
}

func geminiTool(e *observation.Event, body []byte) {
	f := pick(body, "tool_name", "tool_use_id", "tool_input", "tool_response", "mcp_context", "duration_ms")
	tool := text(f[0])
	e.Source = onToolUse
	if strings.TrimSpace(tool) == "" {
		return
	}
	c := geminiCall(text(f[1]), tool, f[2], f[4])
	e.Kind, e.Calls = observation.Tool, []observation.Call{c}
	if ms, ok := integer(f[5]); ok {
		e.Calls[0].DurationMS = ms
	}
	a := geminiResult{said: geminiText(f[3])}
	if kindOf(f[3]) == '{' {
		r := pick(f[3], "llmContent", "returnDisplay", "error")
		a = geminiResult{said: geminiText(firstOf(r[0], f[3])), display: r[1], failed: isThere(r[2]), complaint: plain(r[2])}
	}
	a.said = unmarked(a.said)
	if a.failed {
		e.Source = onToolFailure
	}
	if isOwnServer(c) {
		e.Kind, e.Calls[0].Failed, e.Calls[0].Result = observation.Touch, a.failed, a.said
		return
	}
	a.apply(&e.Calls[0])
	readPieces(&e.Calls[0], f[2], nil, a.display)
}

// unmarked removes the mark that Gemini CLI puts around a tool's output.
func unmarked(said string) string {
	said = strings.TrimSpace(said)
	inside, ok := strings.CutPrefix(said, "<untrusted_context>")
	if !ok {
		return said
	}
	return strings.TrimSpace(strings.TrimSuffix(inside, "</untrusted_context>"))
}

func isThere(value []byte) bool {
	return value != nil && string(value) != "null" && string(value) != "false" && string(value) != `""`
}

// isOwnServer reports whether a call went to cairn's own MCP server.
func isOwnServer(c observation.Call) bool {
	return c.Action == observation.MCP && c.Server == "cairn" || isOwn(c.Tool)
}

// geminiCall describes a call of one of Gemini CLI's tools by its input. mcp is the hook's
// information about the MCP server, nil if there is none.
func geminiCall(id, tool string, input, mcp []byte) observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	if server, method, ok := geminiServer(tool, mcp); ok {
		c.Action, c.Server, c.Method, c.Args = observation.MCP, server, method, arguments(input)
		return c
	}
	f := pick(input, "file_path", "absolute_path", "path", "dir_path", "pattern", "description")
	c.Path = firstNonBlank(text(f[0]), text(f[1]))
	folder := firstNonBlank(text(f[2]), text(f[3]))
	switch tool {
	case "run_shell_command":
		f := pick(input, "command", "is_background")
		c.Action, c.Command, c.Background = observation.Shell, text(f[0]), isTrue(f[1])
	case "read_file":
		c.Action, c.Path = observation.Read, firstNonBlank(c.Path, folder)
	case "write_file":
		c.Action, c.Path = observation.Write, firstNonBlank(c.Path, folder)
	case "replace":
		c.Action, c.Path = observation.Edit, firstNonBlank(c.Path, folder)
		f := pick(input, "allow_multiple", "expected_replacements")
		n, ok := integer(f[1])
		c.ReplaceAll = isTrue(f[0]) || ok && n > 1
	case "read_many_files":
		geminiFiles(&c, input)
	case "glob", "search_file_content", "grep_search", "grep_search_ripgrep", "list_directory":
		c.Action, c.Pattern, c.Path = observation.Search, text(f[4]), folder
	case "web_fetch":
		f := pick(input, "url", "prompt")
		c.Action, c.URL = observation.Fetch, firstNonBlank(text(f[0]), firstURL(text(f[1])))
	case "google_web_search":
		c.Action, c.Query = observation.WebSearch, text(get(input, "query"))
	case "ask_user":
		c.Action, c.Question = observation.Ask, firstQuestion(input)
	case "activate_skill":
		c.Action, c.SkillName = observation.Skill, text(get(input, "name"))
	}
	if c.Action == observation.Shell {
		c.Description = text(f[5])
	}
	return c
}

// geminiFiles describes a call that reads many files: as a read if it names one file, else as a
// search by patterns.
func geminiFiles(c *observation.Call, input []byte) {
	f := pick(input, "include", "paths")
	var patterns []string
	for v := range elements(firstOf(f...)) {
		if p := text(v); p != "" && len(patterns) < maxArgs {
			patterns = append(patterns, p)
		}
	}
	if len(patterns) == 1 && !strings.ContainsAny(patterns[0], "*?[{") {
		c.Action, c.Path = observation.Read, patterns[0]
		return
	}
	c.Action, c.Pattern = observation.Search, bounded([]byte(strings.Join(patterns, ", ")))
}

// firstURL returns the first URL in a prompt that asks for pages, the prompt itself if it contains
// none.
func firstURL(prompt string) string {
	for _, scheme := range [...]string{"https://", "http://"} {
		if i := strings.Index(prompt, scheme); i >= 0 {
			url := prompt[i:]
			if end := strings.IndexAny(url, " \t\r\n\"'`<>)]}"); end >= 0 {
				url = url[:end]
			}
			return strings.TrimRight(url, ".,;")
		}
	}
	return prompt
}

// geminiServer returns an MCP server and its method, as named by the hook, else by the tool's
// name. The formats of tool names, newest first, are mcp_SERVER_METHOD (no underscore in SERVER),
// mcp__SERVER__METHOD and SERVER__METHOD.
func geminiServer(tool string, mcp []byte) (server, method string, ok bool) {
	f := pick(mcp, "server_name", "tool_name")
	if server = text(f[0]); strings.TrimSpace(server) != "" {
		return server, firstNonBlank(text(f[1]), tool), true
	}
	if strings.Contains(tool, "__") {
		server, method = splitTool(tool)
		return server, method, true
	}
	rest, ok := strings.CutPrefix(tool, "mcp_")
	if !ok {
		return "", "", false
	}
	server, method, ok = strings.Cut(rest, "_")
	return server, method, ok && server != "" && method != ""
}

// geminiResult is the result of a tool.
type geminiResult struct {
	said      string // for the model
	display   []byte // for the user: a text or an object
	failed    bool   // as reported by the harness
	complaint string // the error message
}

// apply adds the result to a call.
func (a geminiResult) apply(c *observation.Call) {
	c.Failed = a.failed
	switch c.Action {
	case observation.Shell:
		a.applyShell(c)
	case observation.Write:
		c.Created = isTrue(get(a.display, "isNewFile")) || strings.HasPrefix(a.said, "Successfully created")
	case observation.Search:
		if n, ok := foundFiles(a.said); ok && c.Tool == "glob" {
			c.NumFiles = &n
		}
	case observation.Spawn, observation.Fetch, observation.WebSearch, observation.MCP, observation.Other:
		c.Output = a.said
	}
	if c.Failed {
		c.Error, c.Output = firstNonBlank(c.Error, a.complaint, a.said, text(a.display)), ""
	}
	markInterrupted(c)
}

func (a geminiResult) applyShell(c *observation.Call) {
	said, code, hasCode := shellReport(a.said)
	c.Stdout, c.Stderr = said, said // one text contains both streams
	c.Interrupted = strings.HasPrefix(said, "Command was cancelled")
	timedOut := strings.HasPrefix(said, "Command was automatically cancelled")
	if hasCode {
		c.ExitCode = &code
		c.Failed = c.Failed || code != 0
	}
	if c.Failed = c.Failed || timedOut; c.Failed {
		c.Error = firstNonBlank(a.complaint, said)
	}
}

// foundFiles parses the number of files that a search by name has found.
func foundFiles(said string) (int, bool) {
	if strings.HasPrefix(said, "No files found") {
		return 0, true
	}
	rest, ok := strings.CutPrefix(said, "Found ")
	if !ok {
		return 0, false
	}
	count, rest, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(count)
	return n, err == nil && n >= 0 && strings.HasPrefix(rest, "file")
}

// shellReport parses Gemini CLI's report to the model about a command: the output, and the exit
// code if present. The facts follow the output, one per line. Earlier versions put the command
// first and reported every fact.
func shellReport(said string) (output string, code int, hasCode bool) {
	said = strings.TrimSpace(said)
	for {
		i := strings.LastIndexByte(said, '\n') + 1
		label, value, _ := strings.Cut(said[i:], ": ")
		switch label {
		case "Exit Code":
			if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
				code, hasCode = n, true
			}
		case "Process Group PGID", "Background PIDs", "Signal":
		default:
			return shellOutput(said), code, hasCode
		}
		if i == 0 {
			return "", code, hasCode
		}
		said = said[:i-1]
	}
}

// shellOutput returns the output in the rest of a report.
func shellOutput(said string) string {
	complaint := ""
	if i := strings.LastIndex(said, "\nError: "); i >= 0 && strings.IndexByte(said[i+1:], '\n') < 0 {
		said, complaint = said[:i], strings.TrimPrefix(said[i:], "\nError: ")
	}
	if strings.HasPrefix(said, "Command: ") {
		for _, label := range [...]string{"\nOutput: ", "\nStdout: "} {
			if _, rest, ok := strings.Cut(said, label); ok {
				said = rest
				break
			}
		}
		if out, err, ok := strings.Cut(said, "\nStderr: "); ok {
			said = strings.TrimSpace(emptied(out) + "\n" + emptied(err))
		}
	}
	said = emptied(strings.TrimPrefix(said, "Output: "))
	if complaint == "" || complaint == "(none)" {
		return said
	}
	return strings.TrimSpace(said + "\n" + complaint)
}

func emptied(output string) string {
	if output == "(empty)" {
		return ""
	}
	return output
}

// geminiText returns the text of a content: a string, a part, or several parts, which are joined
// without a separator. It omits thoughts.
func geminiText(content []byte) string {
	switch kindOf(content) {
	case '"':
		return text(content)
	case '{':
		return partText(content)
	}
	var all paragraphs
	for part := range elements(content) {
		if kindOf(part) == '"' {
			all.all = append(all.all, text(part)...)
		} else {
			all.all = append(all.all, partText(part)...)
		}
		if len(all.all) > 2*longText {
			all.cut()
		}
	}
	return all.text()
}

func partText(part []byte) string {
	f := pick(part, "text", "functionResponse", "thought")
	if isTrue(f[2]) {
		return ""
	}
	if f[1] == nil {
		return text(f[0])
	}
	r := pick(get(f[1], "response"), "output", "error", "content")
	return firstNonBlank(text(r[0]), text(r[1]), plain(r[2]))
}

// Texts in the user's turns that Gemini CLI adds to the user's own text.
const (
	referenced = "--- Content from referenced files ---"
	hookStart  = "<hook_context>"
	hookEnd    = "</hook_context>"
)

// geminiTyped returns the user's text in a prompt, "" if nothing is left. It removes the
// referenced files, which Gemini CLI appends, the texts of hooks, including cairn's context, and
// the harness's own messages.
func geminiTyped(prompt string) string {
	if i := strings.Index(prompt, referenced); i >= 0 {
		prompt = prompt[:i]
	}
	prompt = strings.TrimSpace(withoutHooks(prompt))
	for _, machine := range [...]string{
		"<session_context>", "This is the Gemini CLI. We are setting up the context for our chat.",
		"I ran the following shell command:", "System: Please continue.",
	} {
		if strings.HasPrefix(prompt, machine) {
			return ""
		}
	}
	return strings.TrimSpace(typed(prompt))
}

// withoutHooks removes the texts that hooks added to a prompt. A block without a closing tag
// extends to the end of the text.
func withoutHooks(prompt string) string {
	typed, rest, added := strings.Cut(prompt, hookStart)
	if !added {
		return prompt
	}
	var b strings.Builder
	for added {
		b.WriteString(typed)
		_, rest, _ = strings.Cut(rest, hookEnd)
		typed, rest, added = strings.Cut(rest, hookStart)
	}
	b.WriteString(typed)
	return b.String()
}

// geminiSaid returns a message of the agent, "" for a placeholder.
func geminiSaid(message string) string {
	switch strings.TrimSpace(message) {
	case "[no response text]", "Got it. Thanks for the context!", "Got it. Thanks for the additional context!":
		return ""
	}
	return message
}
