package codex

import (
	"math"
	"strconv"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// calls describes a tool call of Codex CLI by its input. It returns one call, or one per file
// of a patch. A command line that passes a patch to apply_patch counts as a patch. The input is an
// object, or a text for tools with free-form input.
func calls(id, tool string, input lazyjson.Value) []observation.Call {
	return callsUpTo(harness.MaxPatchFiles, id, tool, input)
}

// callsUpTo is calls with another limit for the number of files of a patch.
func callsUpTo(limit int, id, tool string, input lazyjson.Value) []observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	switch tool {
	case harness.PatchTool, "applypatch":
		if calls := harness.PatchCallsUpTo(limit, id, tool, harness.PatchText(input), ""); len(calls) > 0 {
			return calls
		}
		c.Action = observation.Other
	case "Bash", "shell", "local_shell", "shell_command", "exec_command", "unified_exec", "container.exec":
		f := input.Pick("command", "cmd", "description")
		if input.Kind() == '"' {
			f[0] = input
		}
		c.Action, c.Command, c.Description = observation.Shell, shellLine(lazyjson.First(f[0], f[1])), f[2].Text()
		if patch, dir, ok := shellPatch(c.Command); ok {
			if calls := harness.PatchCallsUpTo(limit, id, tool, patch, dir); len(calls) > 0 {
				return calls
			}
		}
	case "view_image", "read_file":
		f := input.Pick("path", "file_path")
		c.Action, c.Path = observation.Read, lazyjson.FirstNonBlank(f[0].Text(), f[1].Text())
	case "grep_files", "list_dir":
		f := input.Pick("pattern", "path", "dir_path")
		c.Action, c.Pattern, c.Path = observation.Search, f[0].Text(), lazyjson.FirstNonBlank(f[1].Text(), f[2].Text())
	case "web_search":
		webCall(&c, input)
	case "spawn_agent":
		f := input.Pick("message", "agent_type")
		c.Action, c.Prompt, c.SubagentType = observation.Spawn, f[0].Text(), f[1].Text()
	case "request_user_input":
		c.Action, c.Question = observation.Ask, harness.FirstQuestion(input)
	default:
		c = harness.NewCall(id, tool, input)
	}
	return []observation.Call{c}
}

// webCall describes a use of the web search: a query, or a page that it opened.
func webCall(c *observation.Call, input lazyjson.Value) {
	f := input.Pick("query", "url")
	if c.URL = f[1].Text(); c.URL != "" {
		c.Action = observation.Fetch
		return
	}
	c.Action, c.Query = observation.WebSearch, f[0].Text()
}

// codexResult is the content of a tool's response. The response is a text, possibly with a header
// above the output, or an object with output and metadata, or blocks of text. The object may also
// be JSON in a text.
type codexResult struct {
	stdout, stderr string
	code           *int   // the exit code, nil if unknown
	failed         bool   // a failure that the response reports other than by the code
	running        string // the number of the process that is still running, "" if none
	durationMS     int64
}

func readCodexResult(response lazyjson.Value) codexResult {
	switch response.Kind() {
	case '{':
		return readResultObject(response)
	case '"':
		if inner := response.Inside(); inner != nil {
			if f := inner.Pick("output", "metadata"); f[0] != nil || f[1] != nil {
				return readResultObject(inner)
			}
		}
	}
	return readResultText(response.Plain())
}

func readResultObject(object lazyjson.Value) codexResult {
	f := object.Pick("output", "content", "metadata", "stdout", "stderr", "aggregated_output", "formatted_output",
		"exit_code", "exitCode", "success", "is_error", "isError", "duration", "duration_ms")
	r := readResultText(lazyjson.FirstNonBlank(f[0].Plain(), f[1].Plain()))
	if r.stdout == "" {
		r.stdout, r.stderr = f[3].Text(), f[4].Text()
		if both := lazyjson.FirstNonBlank(f[5].Text(), f[6].Text()); strings.TrimSpace(r.stdout+r.stderr) == "" && both != "" {
			r.stdout, r.stderr = both, both
		}
	}
	m := f[2].Pick("exit_code", "duration_seconds")
	if code := lazyjson.First(f[7], f[8], m[0]).Code(); code != nil {
		r.code = code
	}
	r.failed = string(f[9]) == "false" || f[10].IsTrue() || f[11].IsTrue()
	d := f[12].Pick("secs", "nanos")
	secs, _ := d[0].Integer()
	nanos, _ := d[1].Integer()
	ms, _ := f[13].Integer()
	r.durationMS = max(r.durationMS, ms, secs*1000+nanos/1e6, milliseconds(string(m[1])))
	return r
}

// maxHeadLines limits the number of header lines above an output.
const maxHeadLines = 12

// readResultText parses the header that Codex puts above the output of a command, up to the line
// "Output:". A text without such a header is all output.
func readResultText(said string) codexResult {
	r := codexResult{stdout: said, stderr: said}
	rest, known := said, false
	var facts codexResult
	for range maxHeadLines {
		line, after, more := strings.Cut(rest, "\n")
		line = strings.TrimSuffix(line, "\r")
		if line == "Output:" && known {
			facts.stdout, facts.stderr = after, after
			return facts
		}
		if !facts.fact(line) && !known {
			return r
		}
		known, rest = true, after
		if !more {
			break
		}
	}
	r.code, r.running, r.durationMS = facts.code, facts.running, facts.durationMS
	return r
}

// fact parses one header line and reports whether it is valid.
func (r *codexResult) fact(line string) bool {
	number := func(s string) *int {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			return nil
		}
		return &n
	}
	name, value, _ := strings.Cut(line, ": ")
	switch name {
	case "Exit code":
		r.code = number(value)
		return r.code != nil
	case "Wall time":
		r.durationMS = milliseconds(strings.TrimSuffix(value, " seconds"))
		return true
	case "Chunk ID", "Total output lines", "Original token count":
		return true
	}
	if s, ok := strings.CutPrefix(line, "Process exited with code "); ok {
		r.code = number(s)
		return r.code != nil
	}
	if s, ok := strings.CutPrefix(line, "Process running with session ID "); ok {
		r.running = strings.TrimSpace(s)
		return r.running != ""
	}
	return false
}

// milliseconds converts a text with a number of seconds. It returns 0 if the text is not a number.
func milliseconds(seconds string) int64 {
	s, err := strconv.ParseFloat(seconds, 64)
	if err != nil || !(s > 0) || s > 1e9 {
		return 0
	}
	return int64(math.Round(s * 1000))
}

// apply adds the result to the calls. also is a payload that may contain further facts next to the
// response.
func (r codexResult) apply(calls []observation.Call, response, also lazyjson.Value) {
	for i := range calls {
		c := &calls[i]
		c.DurationMS = max(c.DurationMS, r.durationMS)
		if c.Action != observation.Shell && !r.isOfPatch(c) {
			response := response.Unwrapped()
			harness.ReadResponse(c, response)
			harness.DecideFailure(c, response, also)
			continue
		}
		if c.Action == observation.Shell {
			c.Stdout, c.Stderr, c.ExitCode = r.stdout, r.stderr, r.code
			if said, ok := harness.ExitCode(r.stdout); ok && r.code == nil {
				c.ExitCode = &said
			}
			readExitCode(c, also)
		}
		if r.failed || r.code != nil && *r.code != 0 || c.ExitCode != nil && *c.ExitCode != 0 {
			c.Failed, c.Error, c.Output = true, lazyjson.FirstNonBlank(r.stderr, r.stdout), ""
		}
		if r.aborted() {
			c.Failed, c.Interrupted = false, true
		}
		harness.MarkInterrupted(c)
	}
}

// aborted reports whether the user stopped the call. Codex then returns a text of one or two lines
// instead of the output.
func (r codexResult) aborted() bool {
	said := strings.TrimSpace(lazyjson.FirstNonBlank(r.stdout, r.stderr))
	if line, rest, ok := strings.Cut(said, "\n"); ok && strings.HasPrefix(line, "Wall time: ") {
		said = rest
	}
	return strings.HasPrefix(said, "aborted by user") || strings.HasPrefix(said, "command aborted by user")
}

// isOfPatch reports whether a call represents one file of a patch.
func (codexResult) isOfPatch(c *observation.Call) bool {
	return c.Action == observation.Edit || c.Action == observation.Write || c.Tool == harness.PatchTool
}

// readExitCode reads an exit code next to the response.
func readExitCode(c *observation.Call, payload lazyjson.Value) {
	if c.ExitCode == nil {
		c.ExitCode = lazyjson.First(payload.Pick("exit_code", "exitCode")...).Code()
	}
}

// refusal returns the reason why a call in a transcript never ran, harness.NeverRefused if it ran
// (observations §12).
func refusal(r codexResult) string {
	if r.code != nil {
		return harness.NeverRefused
	}
	said := strings.TrimSpace(lazyjson.FirstNonBlank(r.stdout, r.stderr))
	if said == "aborted" {
		return harness.Stopped
	}
	for _, form := range [...]struct{ start, why string }{
		{"exec command rejected by user", harness.Rejected},
		{"patch rejected by user", harness.Rejected},
		{"rejected by user", harness.Rejected},
		{"user rejected MCP tool call", harness.Rejected},
		{"user cancelled MCP tool call", harness.Stopped},
		{"aborted by user", harness.Stopped},
		{"This action was rejected", harness.Denied},
		{"patch rejected: ", harness.Denied},
		{"Command blocked by PreToolUse hook", harness.Blocked},
		{"Tool call blocked by PreToolUse hook", harness.Blocked},
		{"unsupported call: ", harness.InvalidCall},
		{"unsupported custom tool call: ", harness.InvalidCall},
		{"failed to parse function arguments", harness.InvalidCall},
		{"failed to parse exec_command arguments", harness.InvalidCall},
		{"apply_patch verification failed", harness.InvalidCall},
		{"apply_patch handler received ", harness.InvalidCall},
	} {
		if strings.HasPrefix(said, form.start) {
			return form.why
		}
	}
	return harness.NeverRefused
}
