package harness

import (
	"strings"

	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// The limits for the arguments of an MCP call. They leave enough for the 1,000 characters that are
// stored and the look-ahead of redaction (observations §5, §7).
const (
	MaxArgs     = 256
	maxArgBytes = 4 * (200 + 65_536)
)

// NewCall describes a tool call by its input. Missing fields and fields of a wrong type stay
// empty.
func NewCall(id, tool string, input lazyjson.Value) observation.Call {
	c := observation.Call{ID: id, Tool: tool, Action: ActionOf(tool)}
	f := input.Pick("file_path", "notebook_path")
	c.Path = lazyjson.FirstNonBlank(f[0].Text(), f[1].Text())
	switch c.Action {
	case observation.Shell:
		f := input.Pick("command", "description", "run_in_background")
		c.Command, c.Description, c.Background = f[0].Text(), f[1].Text(), f[2].IsTrue()
	case observation.Edit:
		c.ReplaceAll = ReplacesAll(input)
	case observation.Search:
		f := input.Pick("pattern", "path", "output_mode")
		c.Pattern, c.Path, c.Mode = f[0].Text(), lazyjson.FirstNonBlank(c.Path, f[1].Text()), f[2].Text()
	case observation.Spawn:
		f := input.Pick("description", "prompt", "subagent_type")
		c.Description, c.Prompt, c.SubagentType = f[0].Text(), f[1].Text(), f[2].Text()
	case observation.Fetch:
		c.URL = input.Get("url").Text()
	case observation.WebSearch:
		c.Query = input.Get("query").Text()
	case observation.MCP:
		c.Server, c.Method = SplitTool(tool)
		c.Args = Arguments(input)
	case observation.Ask:
		c.Question = FirstQuestion(input)
	case observation.Skill:
		f := input.Pick("skill", "command", "name")
		c.SkillName = lazyjson.FirstNonBlank(f[0].Text(), f[1].Text(), f[2].Text())
	}
	return c
}

// ActionOf returns the action of one of Claude Code's tools (observations §5).
func ActionOf(tool string) observation.Action {
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

// SplitTool splits a tool name of the form mcp__SERVER__METHOD or SERVER__METHOD.
func SplitTool(tool string) (server, method string) {
	server, method, _ = strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__")
	return server, method
}

// IsOwnTool reports whether a tool belongs to cairn's MCP server, connected directly or through a
// plugin. Calls of such tools create no row (observations §5).
func IsOwnTool(tool string) bool {
	name, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return false
	}
	server, _, ok := strings.Cut(name, "__")
	return ok && (server == "cairn" || strings.HasPrefix(server, "plugin_") && strings.HasSuffix(server, "_cairn"))
}

// UnwrapOwn replaces a call of cairn's tool call_tool by the call inside it. The profile lean
// calls the other tools through call_tool (amendments §B.6).
func UnwrapOwn(c *observation.Call) {
	if c.Method != "call_tool" || !IsOwnCall(*c) {
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
		c.Method, c.Args = name, Arguments([]byte(args))
	}
}

// maxResult limits how many bytes of a result of cairn's own tools are read.
const maxResult = 256 << 10

// FinishOwn adds the result to a call of one of cairn's own tools. also contains further objects
// that may have an error flag.
func FinishOwn(c *observation.Call, response lazyjson.Value, also ...lazyjson.Value) {
	DecideFailure(c, response, also...)
	switch {
	case len(response) > maxResult:
	case response.Kind() == '{' && response.Get("content") == nil && response.Get("text") == nil:
		c.Result = lazyjson.ValidText(response) // the result as the tool returned it
	default:
		c.Result = response.Plain()
	}
}

// ReplacesAll reports whether an edit replaces all occurrences, in one of its passages at least.
func ReplacesAll(input lazyjson.Value) bool {
	f := input.Pick("replace_all", "edits")
	if f[0].IsTrue() {
		return true
	}
	for edit := range f[1].Elements() {
		if edit.Get("replace_all").IsTrue() {
			return true
		}
	}
	return false
}

// FirstQuestion returns the first question for the user in a call's input. Without one it
// returns "".
func FirstQuestion(input lazyjson.Value) string {
	f := input.Pick("questions", "question")
	for q := range f[0].Elements() {
		return lazyjson.First(q.Get("question"), q).Plain()
	}
	return f[1].Text()
}

// Arguments returns the members of a call's input, within the limits.
func Arguments(input lazyjson.Value) []observation.Arg {
	var args []observation.Arg
	for name, value := range input.Members() {
		if len(args) == MaxArgs {
			break
		}
		args = append(args, observation.Arg{Name: lazyjson.Decoded(name, maxArgBytes), Value: value.UpTo(maxArgBytes)})
	}
	return args
}

// ReadResponse adds a tool's response to a call. A response is an object with named fields, a
// text, blocks of text, or empty.
func ReadResponse(c *observation.Call, response lazyjson.Value) {
	switch c.Action {
	case observation.Shell:
		readShellResponse(c, response)
	case observation.Read, observation.Write, observation.Edit:
		f := response.Pick("filePath", "file", "type")
		c.Path = lazyjson.FirstNonBlank(c.Path, f[0].Text(), f[1].Get("filePath").Text())
		c.Created = c.Action == observation.Write && f[2].Text() == "create"
	case observation.Search:
		f := response.Pick("numFiles", "mode")
		if n, ok := f[0].Integer(); ok {
			files := int(n)
			c.NumFiles = &files
		}
		c.Mode = lazyjson.FirstNonBlank(c.Mode, f[1].Text())
	case observation.Spawn:
		f := response.Pick("agentId", "agent_id")
		c.SpawnedID = lazyjson.FirstNonBlank(f[0].Text(), f[1].Text())
		c.Output = printed(response)
	case observation.Fetch, observation.WebSearch, observation.MCP, observation.Other:
		c.Output = printed(response)
	}
}

// printed returns the text that a tool printed: the response as Value.Plain returns it, else the member
// with the text. A response without text returns "".
func printed(response lazyjson.Value) string {
	if said := response.Plain(); said != "" || response.Kind() != '{' {
		return said
	}
	f := response.Pick("result", "output", "task", "results", "llmContent")
	if said := lazyjson.FirstNonBlank(f[0].Plain(), f[1].Plain(), f[2].Get("output").Text(), f[4].Plain()); said != "" {
		return said
	}
	var all lazyjson.Paragraphs
	for result := range f[3].Elements() { // results of a web search: texts, and lists of titles and addresses
		if said := result.Text(); said != "" {
			all.Add(said)
		}
		for hit := range result.Get("content").Elements() {
			h := hit.Pick("title", "url")
			all.Add(h[0].Text() + " " + h[1].Text())
		}
	}
	return all.Text()
}

func readShellResponse(c *observation.Call, response lazyjson.Value) {
	if response.Kind() != '{' {
		said := response.Plain()
		if _, failed := ExitCode(said); !failed && !strings.HasPrefix(said, ErrorPrefix) {
			c.Stdout, c.Stderr = said, said // one text contains both streams
		}
		return
	}
	f := response.Pick("stdout", "stderr", "interrupted", "returnCodeInterpretation", "backgroundTaskId")
	c.Stdout, c.Stderr, c.Note = f[0].Text(), f[1].Text(), f[3].Text()
	c.Interrupted = c.Interrupted || f[2].IsTrue()
	c.Background = c.Background || f[4].Text() != ""
}

// Listed joins texts that a call lists, such as patterns, and limits their length.
func Listed(texts []string) string {
	return lazyjson.Decoded([]byte(strings.Join(texts, ", ")), maxArgBytes)
}

// IsOwnCall reports whether a call went to cairn's own MCP server.
func IsOwnCall(c observation.Call) bool {
	return c.Action == observation.MCP && c.Server == "cairn" || IsOwnTool(c.Tool)
}
