package gemini

import (
	"strconv"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// event reads a payload of Gemini CLI (observations §4.3). Events that create no row are
// Ignored, mainly those around every model call.
func event(body lazyjson.Value, _ string) (observation.Event, error) {
	f := body.Pick("session_id", "cwd", "hook_event_name")
	e := observation.Event{Harness: name, Session: f[0].Text(), Cwd: f[1].Text(), Source: f[2].Text()}
	if err := harness.RequireFields(e, "session_id", "cwd", "hook_event_name"); err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case harness.OnSessionStart:
		f := body.Pick("source", "model")
		e.Kind, e.Text, e.Model = observation.SessionStart, f[0].Text(), f[1].Text()
	case harness.OnSessionEnd:
		e.Kind, e.Text = observation.SessionEnd, body.Get("reason").Text()
	case "BeforeAgent":
		e.Kind, e.Source, e.Text = observation.Prompt, harness.OnPrompt, typed(harness.ContentText(body.Get("prompt")))
	case "AfterAgent":
		e.Kind, e.Source, e.Role, e.TurnEnds = observation.Message, harness.OnStop, harness.RoleTurn, true
		e.Text = geminiSaid(harness.ContentText(body.Get("prompt_response")))
	case "AfterTool":
		tool(&e, body)
	case "BeforeTool":
		e.Kind, e.Source = observation.Touch, harness.OnBeforeTool
		f := body.Pick("tool_name", "tool_use_id", "tool_input", "mcp_context")
		if tool := f[0].Text(); strings.TrimSpace(tool) != "" {
			e.Calls = []observation.Call{call(f[1].Text(), tool, f[2], f[3])}
		}
	case "PreCompress", "Notification":
		e.Kind = observation.Touch
	}
	return e, nil
}

func isGeminiPayload(body lazyjson.Value) bool {
	f := body.Pick("hook_event_name", "transcript_path")
	return isGeminiEvent(f[0].Text(), f[1].Text())
}

// isGeminiEvent reports whether only Gemini CLI sends an event. Events that it shares with Claude
// Code are recognized by the transcript's folder.
func isGeminiEvent(name, transcript string) bool {
	switch name {
	case "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "BeforeModel", "AfterModel",
		"BeforeToolSelection", "PreCompress":
		return true
	case harness.OnSessionStart, harness.OnSessionEnd, "Notification":
		return strings.Contains(strings.ReplaceAll(transcript, `\`, "/"), "/.gemini/")
	}
	return false
}

func tool(e *observation.Event, body lazyjson.Value) {
	f := body.Pick("tool_name", "tool_use_id", "tool_input", "tool_response", "mcp_context", "duration_ms")
	tool := f[0].Text()
	e.Source = harness.OnToolUse
	if strings.TrimSpace(tool) == "" {
		return
	}
	c := call(f[1].Text(), tool, f[2], f[4])
	e.Kind, e.Calls = observation.Tool, []observation.Call{c}
	if ms, ok := f[5].Integer(); ok {
		e.Calls[0].DurationMS = ms
	}
	a := result{said: harness.ContentText(f[3])}
	if f[3].Kind() == '{' {
		r := f[3].Pick("llmContent", "returnDisplay", "error")
		a = result{said: harness.ContentText(lazyjson.First(r[0], f[3])), display: r[1], failed: r[2].IsSet(), complaint: r[2].Plain()}
	}
	a.said = unmarked(a.said)
	if a.failed {
		e.Source = harness.OnToolFailure
	}
	if harness.IsOwnCall(c) {
		e.Kind, e.Calls[0].Failed, e.Calls[0].Result = observation.Touch, a.failed, a.said
		return
	}
	a.apply(&e.Calls[0])
	harness.ReadPieces(&e.Calls[0], f[2], nil, a.display)
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

// call describes a call of one of Gemini CLI's tools by its input. mcp is the hook's
// information about the MCP server, or nil.
func call(id, tool string, input, mcp lazyjson.Value) observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	if server, method, ok := server(tool, mcp); ok {
		c.Action, c.Server, c.Method, c.Args = observation.MCP, server, method, harness.Arguments(input)
		return c
	}
	f := input.Pick("file_path", "absolute_path", "path", "dir_path", "pattern", "description")
	c.Path = lazyjson.FirstNonBlank(f[0].Text(), f[1].Text())
	folder := lazyjson.FirstNonBlank(f[2].Text(), f[3].Text())
	switch tool {
	case "run_shell_command":
		f := input.Pick("command", "is_background")
		c.Action, c.Command, c.Background = observation.Shell, f[0].Text(), f[1].IsTrue()
	case "read_file":
		c.Action, c.Path = observation.Read, lazyjson.FirstNonBlank(c.Path, folder)
	case "write_file":
		c.Action, c.Path = observation.Write, lazyjson.FirstNonBlank(c.Path, folder)
	case "replace":
		c.Action, c.Path = observation.Edit, lazyjson.FirstNonBlank(c.Path, folder)
		f := input.Pick("allow_multiple", "expected_replacements")
		n, ok := f[1].Integer()
		c.ReplaceAll = f[0].IsTrue() || ok && n > 1
	case "read_many_files":
		files(&c, input)
	case "glob", "search_file_content", "grep_search", "grep_search_ripgrep", "list_directory":
		c.Action, c.Pattern, c.Path = observation.Search, f[4].Text(), folder
	case "web_fetch":
		f := input.Pick("url", "prompt")
		c.Action, c.URL = observation.Fetch, lazyjson.FirstNonBlank(f[0].Text(), firstURL(f[1].Text()))
	case "google_web_search":
		c.Action, c.Query = observation.WebSearch, input.Get("query").Text()
	case "ask_user":
		c.Action, c.Question = observation.Ask, harness.FirstQuestion(input)
	case "activate_skill":
		c.Action, c.SkillName = observation.Skill, input.Get("name").Text()
	}
	if c.Action == observation.Shell {
		c.Description = f[5].Text()
	}
	return c
}

// files describes a call that reads many files: as a read if it names one file, else as a
// search by patterns.
func files(c *observation.Call, input lazyjson.Value) {
	f := input.Pick("include", "paths")
	var patterns []string
	for v := range lazyjson.First(f...).Elements() {
		if p := v.Text(); p != "" && len(patterns) < harness.MaxArgs {
			patterns = append(patterns, p)
		}
	}
	if len(patterns) == 1 && !strings.ContainsAny(patterns[0], "*?[{") {
		c.Action, c.Path = observation.Read, patterns[0]
		return
	}
	c.Action, c.Pattern = observation.Search, harness.Listed(patterns)
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

// server returns an MCP server and its method, as named by the hook, else by the tool's
// name. The formats of tool names, newest first, are mcp_SERVER_METHOD (no underscore in SERVER),
// mcp__SERVER__METHOD and SERVER__METHOD.
func server(tool string, mcp lazyjson.Value) (server, method string, ok bool) {
	f := mcp.Pick("server_name", "tool_name")
	if server = f[0].Text(); strings.TrimSpace(server) != "" {
		return server, lazyjson.FirstNonBlank(f[1].Text(), tool), true
	}
	if strings.Contains(tool, "__") {
		server, method = harness.SplitTool(tool)
		return server, method, true
	}
	rest, ok := strings.CutPrefix(tool, "mcp_")
	if !ok {
		return "", "", false
	}
	server, method, ok = strings.Cut(rest, "_")
	return server, method, ok && server != "" && method != ""
}

// result is the result of a tool.
type result struct {
	said      string         // for the model
	display   lazyjson.Value // for the user: a text or an object
	failed    bool           // as reported by the harness
	complaint string         // the error message
}

// apply adds the result to a call.
func (a result) apply(c *observation.Call) {
	c.Failed = a.failed
	switch c.Action {
	case observation.Shell:
		a.applyShell(c)
	case observation.Write:
		c.Created = a.display.Get("isNewFile").IsTrue() || strings.HasPrefix(a.said, "Successfully created")
	case observation.Search:
		if n, ok := foundFiles(a.said); ok && c.Tool == "glob" {
			c.NumFiles = &n
		}
	case observation.Spawn, observation.Fetch, observation.WebSearch, observation.MCP, observation.Other:
		c.Output = a.said
	}
	if c.Failed {
		c.Error, c.Output = lazyjson.FirstNonBlank(c.Error, a.complaint, a.said, a.display.Text()), ""
	}
	harness.MarkInterrupted(c)
}

func (a result) applyShell(c *observation.Call) {
	said, code, hasCode := shellReport(a.said)
	c.Stdout, c.Stderr = said, said // one text contains both streams
	c.Interrupted = strings.HasPrefix(said, "Command was cancelled")
	timedOut := strings.HasPrefix(said, "Command was automatically cancelled")
	if hasCode {
		c.ExitCode = &code
		c.Failed = c.Failed || code != 0
	}
	if c.Failed = c.Failed || timedOut; c.Failed {
		c.Error = lazyjson.FirstNonBlank(a.complaint, said)
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

// Texts in the user's turns that Gemini CLI adds to the user's own text.
const (
	referenced = "--- Content from referenced files ---"
	hookStart  = "<hook_context>"
	hookEnd    = "</hook_context>"
)

// typed returns the user's text in a prompt, "" if nothing is left. It removes the
// referenced files, which Gemini CLI appends, the texts of hooks, including cairn's context, and
// the harness's own messages.
func typed(prompt string) string {
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
	return strings.TrimSpace(harness.Typed(prompt))
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

// answerTo returns the output for Gemini CLI: an object with Gemini CLI's name of the event.
func answerTo(e observation.Event, text string, v harness.GuardDecision) (string, error) {
	switch {
	case v.Decision == harness.Deny:
		return harness.JSONLine(map[string]any{"decision": "deny", "reason": v.Reason})
	case text == "":
		return "", nil
	}
	switch e.Source {
	case harness.OnSessionStart:
		return harness.ForEvent(harness.OnSessionStart, text, v)
	case harness.OnPrompt:
		return harness.ForEvent("BeforeAgent", text, v)
	case harness.OnToolUse:
		return harness.ForEvent("AfterTool", text, v)
	}
	return "", nil
}
