package harness

import (
	"math"
	"strconv"
	"strings"

	"cairn/internal/observation"
)

// codexCalls describes a tool call of Codex CLI by its input. It returns one call, or one per file
// of a patch. A command line that passes a patch to apply_patch counts as a patch. The input is an
// object, or a text for tools with free-form input.
func codexCalls(id, tool string, input []byte) []observation.Call {
	return codexCallsUpTo(maxPatchFiles, id, tool, input)
}

// codexCallsUpTo is codexCalls with another limit for the number of files of a patch.
func codexCallsUpTo(limit int, id, tool string, input []byte) []observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	switch tool {
	case patchTool, "applypatch":
		if calls := patchCallsUpTo(limit, id, tool, patchText(input), ""); len(calls) > 0 {
			return calls
		}
		c.Action = observation.Other
	case "Bash", "shell", "local_shell", "shell_command", "exec_command", "unified_exec", "container.exec":
		f := pick(input, "command", "cmd", "description")
		if kindOf(input) == '"' {
			f[0] = input
		}
		c.Action, c.Command, c.Description = observation.Shell, shellLine(firstOf(f[0], f[1])), text(f[2])
		if patch, dir, ok := shellPatch(c.Command); ok {
			if calls := patchCallsUpTo(limit, id, tool, patch, dir); len(calls) > 0 {
				return calls
			}
		}
	case "view_image", "read_file":
		f := pick(input, "path", "file_path")
		c.Action, c.Path = observation.Read, firstNonBlank(text(f[0]), text(f[1]))
	case "grep_files", "list_dir":
		f := pick(input, "pattern", "path", "dir_path")
		c.Action, c.Pattern, c.Path = observation.Search, text(f[0]), firstNonBlank(text(f[1]), text(f[2]))
	case "web_search":
		webCall(&c, input)
	case "spawn_agent":
		f := pick(input, "message", "agent_type")
		c.Action, c.Prompt, c.SubagentType = observation.Spawn, text(f[0]), text(f[1])
	case "request_user_input":
		c.Action, c.Question = observation.Ask, firstQuestion(input)
	default:
		c = newCall(id, tool, input)
	}
	return []observation.Call{c}
}

// webCall describes a use of the web search: a query, or a page that it opened.
func webCall(c *observation.Call, input []byte) {
	f := pick(input, "query", "url")
	if c.URL = text(f[1]); c.URL != "" {
		c.Action = observation.Fetch
		return
	}
	c.Action, c.Query = observation.WebSearch, text(f[0])
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

func readCodexResult(response []byte) codexResult {
	switch kindOf(response) {
	case '{':
		return readResultObject(response)
	case '"':
		if inner := insideText(response); inner != nil {
			if f := pick(inner, "output", "metadata"); f[0] != nil || f[1] != nil {
				return readResultObject(inner)
			}
		}
	}
	return readResultText(plain(response))
}

func readResultObject(object []byte) codexResult {
	f := pick(object, "output", "content", "metadata", "stdout", "stderr", "aggregated_output", "formatted_output",
		"exit_code", "exitCode", "success", "is_error", "isError", "duration", "duration_ms")
	r := readResultText(firstNonBlank(plain(f[0]), plain(f[1])))
	if r.stdout == "" {
		r.stdout, r.stderr = text(f[3]), text(f[4])
		if both := firstNonBlank(text(f[5]), text(f[6])); strings.TrimSpace(r.stdout+r.stderr) == "" && both != "" {
			r.stdout, r.stderr = both, both
		}
	}
	m := pick(f[2], "exit_code", "duration_seconds")
	if n, ok := integer(firstOf(f[7], f[8], m[0])); ok {
		code := int(n)
		r.code = &code
	}
	r.failed = string(f[9]) == "false" || isTrue(f[10]) || isTrue(f[11])
	d := pick(f[12], "secs", "nanos")
	secs, _ := integer(d[0])
	nanos, _ := integer(d[1])
	ms, _ := integer(f[13])
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
func (r codexResult) apply(calls []observation.Call, response, also []byte) {
	for i := range calls {
		c := &calls[i]
		c.DurationMS = max(c.DurationMS, r.durationMS)
		if c.Action != observation.Shell && !r.isOfPatch(c) {
			response := firstOf(insideText(response), response)
			readResponse(c, response)
			decideFailure(c, response, also)
			continue
		}
		if c.Action == observation.Shell {
			c.Stdout, c.Stderr, c.ExitCode = r.stdout, r.stderr, r.code
			if said, ok := exitCode(r.stdout); ok && r.code == nil {
				c.ExitCode = &said
			}
			readExitCode(c, also)
		}
		if r.failed || r.code != nil && *r.code != 0 || c.ExitCode != nil && *c.ExitCode != 0 {
			c.Failed, c.Error, c.Output = true, firstNonBlank(r.stderr, r.stdout), ""
		}
		if r.aborted() {
			c.Failed, c.Interrupted = false, true
		}
		markInterrupted(c)
	}
}

// aborted reports whether the user stopped the call. Codex then returns a text of one or two lines
// instead of the output.
func (r codexResult) aborted() bool {
	said := strings.TrimSpace(firstNonBlank(r.stdout, r.stderr))
	if line, rest, ok := strings.Cut(said, "\n"); ok && strings.HasPrefix(line, "Wall time: ") {
		said = rest
	}
	return strings.HasPrefix(said, "aborted by user") || strings.HasPrefix(said, "command aborted by user")
}

// isOfPatch reports whether a call represents one file of a patch.
func (codexResult) isOfPatch(c *observation.Call) bool {
	return c.Action == observation.Edit || c.Action == observation.Write || c.Tool == patchTool
}

// readExitCode reads an exit code next to the response.
func readExitCode(c *observation.Call, payload []byte) {
	if n, ok := integer(firstOf(pick(payload, "exit_code", "exitCode")...)); ok && c.ExitCode == nil {
		code := int(n)
		c.ExitCode = &code
	}
}

// codexRefusal returns the reason why a call in a transcript never ran, neverRefused if it ran
// (observations §12).
func codexRefusal(r codexResult) string {
	if r.code != nil {
		return neverRefused
	}
	said := strings.TrimSpace(firstNonBlank(r.stdout, r.stderr))
	if said == "aborted" {
		return stopped
	}
	for _, form := range [...]struct{ start, why string }{
		{"exec command rejected by user", rejected},
		{"patch rejected by user", rejected},
		{"rejected by user", rejected},
		{"user rejected MCP tool call", rejected},
		{"user cancelled MCP tool call", stopped},
		{"aborted by user", stopped},
		{"This action was rejected", denied},
		{"patch rejected: ", denied},
		{"Command blocked by PreToolUse hook", blocked},
		{"Tool call blocked by PreToolUse hook", blocked},
		{"unsupported call: ", invalidCall},
		{"unsupported custom tool call: ", invalidCall},
		{"failed to parse function arguments", invalidCall},
		{"failed to parse exec_command arguments", invalidCall},
		{"apply_patch verification failed", invalidCall},
		{"apply_patch handler received ", invalidCall},
	} {
		if strings.HasPrefix(said, form.start) {
			return form.why
		}
	}
	return neverRefused
}

// maxInside limits the size of a JSON object inside a text, because the whole object is decoded.
const maxInside = 32 << 20

// insideText returns the JSON object that a JSON string contains as text. It returns nil if there
// is none or it is too long. Function calls send their arguments this way.
func insideText(value []byte) []byte {
	if kindOf(value) != '"' || len(value) < 4 || len(value) > maxInside {
		return nil
	}
	in := value[1 : len(value)-1]
	if first := next(in, 0); first >= len(in) || in[first] != '{' && in[first] != '\\' {
		return nil
	}
	out, _ := decode(in, 3*len(in))
	if out = trimSpace(out); !isObject(lenient(nil), out) {
		return nil
	}
	return out
}
