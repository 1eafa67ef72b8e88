package harness

import (
	"strings"

	"cairn/internal/observation"
)

// The limits for the arguments of an MCP call. They leave enough for the 1,000 characters that are
// stored and the look-ahead of redaction (observations §5, §7).
const (
	maxArgs     = 256
	maxArgBytes = 4 * (200 + 65_536)
)

// newCall describes a tool call by its input. Missing fields and fields of a wrong type stay
// empty.
func newCall(id, tool string, input []byte) observation.Call {
	c := observation.Call{ID: id, Tool: tool, Action: actionOf(tool)}
	f := pick(input, "file_path", "notebook_path")
	c.Path = firstNonBlank(text(f[0]), text(f[1]))
	switch c.Action {
	case observation.Shell:
		f := pick(input, "command", "description", "run_in_background")
		c.Command, c.Description, c.Background = text(f[0]), text(f[1]), isTrue(f[2])
	case observation.Edit:
		c.ReplaceAll = replacesAll(input)
	case observation.Search:
		f := pick(input, "pattern", "path", "output_mode")
		c.Pattern, c.Path, c.Mode = text(f[0]), firstNonBlank(c.Path, text(f[1])), text(f[2])
	case observation.Spawn:
		f := pick(input, "description", "prompt", "subagent_type")
		c.Description, c.Prompt, c.SubagentType = text(f[0]), text(f[1]), text(f[2])
	case observation.Fetch:
		c.URL = text(get(input, "url"))
	case observation.WebSearch:
		c.Query = text(get(input, "query"))
	case observation.MCP:
		c.Server, c.Method = splitTool(tool)
		c.Args = arguments(input)
	case observation.Ask:
		c.Question = firstQuestion(input)
	case observation.Skill:
		f := pick(input, "skill", "command", "name")
		c.SkillName = firstNonBlank(text(f[0]), text(f[1]), text(f[2]))
	}
	return c
}

// actionOf returns the action of one of Claude Code's tools (observations §5).
func actionOf(tool string) observation.Action {
	switch tool {
	case "Bash", "PowerShell":
		return observation.Shell
	case "Read":
		return observation.Read
	case "Write":
		return observation.Write
	case "Edit", "MultiEdit", "NotebookEdit":
		return observation.Edit
	case "Grep", "Glob":
		return observation.Search
	case "Task", "Agent":
		return observation.Spawn
	case "WebFetch":
		return observation.Fetch
	case "WebSearch":
		return observation.WebSearch
	case "AskUserQuestion":
		return observation.Ask
	case "Skill":
		return observation.Skill
	}
	if strings.Contains(tool, "__") {
		return observation.MCP
	}
	return observation.Other
}

// splitTool splits a tool name of the form mcp__SERVER__METHOD or SERVER__METHOD.
func splitTool(tool string) (server, method string) {
	server, method, _ = strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__")
	return server, method
}

// isOwn reports whether a tool belongs to cairn's MCP server, connected directly or through a
// plugin. Calls of such tools create no row (observations §5).
func isOwn(tool string) bool {
	name, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return false
	}
	server, _, ok := strings.Cut(name, "__")
	return ok && (server == "cairn" || strings.HasPrefix(server, "plugin_") && strings.HasSuffix(server, "_cairn"))
}

// unwrapOwn replaces a call of cairn's tool call_tool by the call inside it. The profile lean
// calls the other tools through call_tool (amendments §B.6).
func unwrapOwn(c *observation.Call) {
	if c.Method != "call_tool" || !isOwnServer(*c) {
		return
	}
	var name, args string
	for _, a := range c.Args {
		switch a.Name {
		case "name":
			name = a.Value
		case "arguments":
			args = a.Value
		}
	}
	if name != "" {
		c.Method, c.Args = name, arguments([]byte(args))
	}
}

// maxResult limits how many bytes of a result of cairn's own tools are read.
const maxResult = 256 << 10

// finishOwn adds the result to a call of one of cairn's own tools. also contains further objects
// that may have an error flag.
func finishOwn(c *observation.Call, response []byte, also ...[]byte) {
	decideFailure(c, response, also...)
	switch {
	case len(response) > maxResult:
	case kindOf(response) == '{' && get(response, "content") == nil && get(response, "text") == nil:
		c.Result = validText(response) // the result as the tool returned it
	default:
		c.Result = plain(response)
	}
}

func replacesAll(input []byte) bool {
	f := pick(input, "replace_all", "edits")
	if isTrue(f[0]) {
		return true
	}
	for edit := range elements(f[1]) {
		if isTrue(get(edit, "replace_all")) {
			return true
		}
	}
	return false
}

func firstQuestion(input []byte) string {
	f := pick(input, "questions", "question")
	for q := range elements(f[0]) {
		return plain(firstOf(get(q, "question"), q))
	}
	return text(f[1])
}

// firstOf returns the first value that is present.
func firstOf(values ...[]byte) []byte {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

func arguments(input []byte) []observation.Arg {
	var args []observation.Arg
	for name, value := range members(input) {
		if len(args) == maxArgs {
			break
		}
		args = append(args, observation.Arg{Name: bounded(name), Value: argument(value)})
	}
	return args
}

func argument(value []byte) string {
	if kindOf(value) != '"' {
		return validText(compact(nil, value, maxArgBytes))
	}
	return bounded(value[1 : len(value)-1])
}

// bounded returns the text at the start of a JSON string, given without its quotes.
func bounded(in []byte) string {
	out, _ := decode(in, maxArgBytes)
	return string(out)
}

// readResponse adds a tool's response to a call. A response is an object with named fields, a
// text, blocks of text, or empty.
func readResponse(c *observation.Call, response []byte) {
	switch c.Action {
	case observation.Shell:
		readShellResponse(c, response)
	case observation.Read, observation.Write, observation.Edit:
		f := pick(response, "filePath", "file", "type")
		c.Path = firstNonBlank(c.Path, text(f[0]), text(get(f[1], "filePath")))
		c.Created = c.Action == observation.Write && text(f[2]) == "create"
	case observation.Search:
		f := pick(response, "numFiles", "mode")
		if n, ok := integer(f[0]); ok {
			files := int(n)
			c.NumFiles = &files
		}
		c.Mode = firstNonBlank(c.Mode, text(f[1]))
	case observation.Spawn:
		f := pick(response, "agentId", "agent_id")
		c.SpawnedID = firstNonBlank(text(f[0]), text(f[1]))
		c.Output = printed(response)
	case observation.Fetch, observation.WebSearch, observation.MCP, observation.Other:
		c.Output = printed(response)
	}
}

// printed returns the text that a tool printed: the response as plain returns it, else the member
// with the text. A response without text returns "".
func printed(response []byte) string {
	if said := plain(response); said != "" || kindOf(response) != '{' {
		return said
	}
	f := pick(response, "result", "output", "task", "results", "llmContent")
	if said := firstNonBlank(plain(f[0]), plain(f[1]), text(get(f[2], "output")), plain(f[4])); said != "" {
		return said
	}
	var all paragraphs
	for result := range elements(f[3]) { // results of a web search: texts, and lists of titles and addresses
		if said := text(result); said != "" {
			all.add(said)
		}
		for hit := range elements(get(result, "content")) {
			h := pick(hit, "title", "url")
			all.add(text(h[0]) + " " + text(h[1]))
		}
	}
	return all.text()
}

func readShellResponse(c *observation.Call, response []byte) {
	if kindOf(response) != '{' {
		said := plain(response)
		if _, failed := exitCode(said); !failed && !strings.HasPrefix(said, errorPrefix) {
			c.Stdout, c.Stderr = said, said // one text contains both streams
		}
		return
	}
	f := pick(response, "stdout", "stderr", "interrupted", "returnCodeInterpretation", "backgroundTaskId")
	c.Stdout, c.Stderr, c.Note = text(f[0]), text(f[1]), text(f[3])
	c.Interrupted = c.Interrupted || isTrue(f[2])
	c.Background = c.Background || text(f[4]) != ""
}
