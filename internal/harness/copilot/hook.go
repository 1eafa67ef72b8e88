package copilot

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
	"cairn/internal/regular"
)

// event reads a payload of Copilot CLI. Its hooks are installed under Claude Code's event
// names and then send mostly the same payloads. The payloads contain no call ids. Only the
// transcript contains a turn's last message.
func event(body lazyjson.Value, _ string) (observation.Event, error) {
	e, err := harness.CommonEvent(name, "prompt_id", body)
	if err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case harness.OnToolUse, harness.OnToolFailure, harness.OnBeforeTool:
		tool(&e, body)
	case harness.OnStop:
		harness.FillEvent(&e, body)
		if e.Text == "" {
			stopped, _ := time.Parse(time.RFC3339Nano, body.Get("timestamp").Text())
			e.Text = lastWords(body.Get("transcript_path").Text(), e.Session, stopped)
		}
	case harness.OnSessionStart:
		if harness.FillEvent(&e, body); e.Text == "new" {
			e.Text = "startup"
		}
	default:
		harness.FillEvent(&e, body)
	}
	return e, nil
}

// isPayload reports whether only Copilot CLI sends such a payload, recognized by the path
// of its transcript and the form of its results.
func isPayload(body lazyjson.Value) bool {
	f := body.Pick("transcript_path", "tool_result", "initial_prompt")
	return strings.Contains(f[0].Text(), "session-state") || f[1].Kind() == '{' && f[1].Get("text_result_for_llm") != nil || f[2] != nil
}

func tool(e *observation.Event, body lazyjson.Value) {
	f := body.Pick("tool_name", "tool_input", "tool_result", "error")
	tool := f[0].Text()
	if e.Source == harness.OnBeforeTool {
		e.Kind = observation.Touch
	}
	if strings.TrimSpace(tool) == "" {
		return
	}
	e.Calls = calls("", tool, f[1].Unwrapped())
	if e.Source == harness.OnBeforeTool {
		return
	}
	r := f[2].Pick("result_type", "text_result_for_llm")
	kind, said := r[0].Text(), r[1].Text()
	result := result{said: said, failed: e.Source == harness.OnToolFailure || kind == "failure", complaint: f[3].Plain()}
	switch {
	case e.Calls[0].Server == "cairn":
		e.Kind, e.Calls[0].Failed, e.Calls[0].Result = observation.Touch, result.failed, lazyjson.FirstNonBlank(said, result.complaint)
		return
	case kind == "rejected" || kind == "denied" || refusal("", result.complaint) != harness.NeverRefused:
		e.Kind = observation.Touch
		return
	}
	e.Kind = observation.Tool
	for i := range e.Calls {
		result.apply(&e.Calls[i], f[1].Unwrapped())
	}
}

// result is the result of one of Copilot CLI's tools.
type result struct {
	said      string // for the model
	failed    bool   // as reported by Copilot CLI
	complaint string // the error message
}

func (r result) apply(c *observation.Call, input lazyjson.Value) {
	c.Failed = r.failed
	switch c.Action {
	case observation.Shell:
		said, code, hasCode := shell(r.said)
		c.Stdout, c.Stderr = said, said // one text contains both streams
		if hasCode {
			c.ExitCode, c.Failed = &code, c.Failed || code != 0
		}
	case observation.Write:
		c.Created = strings.HasPrefix(r.said, "Created file ")
	case observation.Spawn, observation.Fetch, observation.WebSearch, observation.MCP, observation.Other:
		c.Output = r.said
	}
	if c.Failed {
		c.Error, c.Output = lazyjson.FirstNonBlank(r.complaint, c.Stdout, r.said), ""
	}
	harness.MarkInterrupted(c)
	harness.ReadPieces(c, input, nil, nil)
}

// shell splits a command's output from the line with the exit code that follows it.
func shell(said string) (output string, code int, hasCode bool) {
	i := strings.LastIndex(said, "<")
	line := strings.TrimSpace(said[max(i, 0):])
	_, rest, ok := strings.Cut(line, "exited with exit code ")
	if !ok {
		_, rest, ok = strings.Cut(line, "completed with exit code ")
	}
	n, err := strconv.Atoi(strings.TrimSuffix(rest, ">"))
	if i < 0 || !ok || err != nil {
		return said, 0, false
	}
	return strings.TrimRight(said[:i], "\n"), n, true
}

// refusal returns the reason why a failed call never ran.
func refusal(code, complaint string) string {
	switch {
	case code == "rejected", strings.HasPrefix(complaint, "The user rejected"):
		return harness.Rejected
	case code == "denied", strings.HasPrefix(complaint, "Permission denied"), strings.HasPrefix(complaint, "Denied by preToolUse hook"):
		return harness.Denied
	}
	return harness.NeverRefused
}

// patience is the maximum wait for a turn's last message. Copilot CLI writes its transcript
// after the event at the end of a turn.
const (
	patience = 400 * time.Millisecond
	pause    = 10 * time.Millisecond
	turnEnd  = time.Second // between a turn's last message and its end
)

// lastWords returns the agent's last message in a transcript before a turn stopped. It
// returns "" if the file is not a transcript of Copilot CLI, or if the turn's end is not written
// yet. It also returns "" if the turn has no message. It reads only the end of the file.
func lastWords(path, session string, stopped time.Time) string {
	if session == "" || !strings.Contains(path, session) {
		return ""
	}
	for waited := time.Duration(0); ; waited += pause {
		said, over := end(path, stopped.Add(-turnEnd))
		switch {
		case over:
			return said
		case waited >= patience:
			return ""
		}
		time.Sleep(pause)
	}
}

// end returns the agent's last message since the last prompt. over reports whether a turn
// ended after the given time or the file cannot be read. A file that does not exist may still be
// created, so over is false then.
func end(path string, after time.Time) (said string, over bool) {
	f, err := regular.Open(path)
	if err != nil {
		return "", !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	const enough = 512 << 10
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-enough), io.SeekStart)
	}
	end, err := io.ReadAll(io.LimitReader(f, enough))
	if err != nil {
		return "", true
	}
	check := lazyjson.NewChecker()
	for line := range bytes.Lines(end) {
		raw := lazyjson.TrimSpace(line)
		if !check.IsObject(raw) {
			continue
		}
		l := raw.Pick("type", "data", "timestamp")
		if at, err := time.Parse(time.RFC3339Nano, l[2].Text()); err == nil && at.Before(after) {
			continue
		}
		switch l[0].Text() {
		case "user.message", "session.start", "session.resume":
			said, over = "", false
		case "assistant.message":
			d := l[1].Pick("content", "toolRequests", "parentToolCallId")
			if d[2].Text() != "" {
				continue
			}
			over = true
			for range d[1].Elements() {
				over = false
			}
			said = lazyjson.FirstNonBlank(d[0].Text(), said)
		case "session.shutdown":
			over = true
		}
	}
	return said, over
}

// calls describes a call of one of Copilot CLI's tools by its input. It accepts the tool
// names of hooks and transcripts. It returns one call, or one per file of a patch.
func calls(id, tool string, input lazyjson.Value) []observation.Call {
	if tool == "apply_patch" {
		patch := input.Text()
		if patch == "" {
			patch = harness.PatchText(input)
		}
		if calls := harness.PatchCalls(id, tool, patch, ""); len(calls) > 0 {
			return calls
		}
	}
	return []observation.Call{call(id, tool, input)}
}

func call(id, tool string, input lazyjson.Value) observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	f := input.Pick("path", "pattern", "description", "prompt", "agent_type", "url", "query", "command")
	c.Path = lazyjson.FirstNonBlank(f[0].Text(), input.Get("file_path").Text())
	switch strings.ToLower(tool) {
	case "bash", "powershell", "shell":
		c.Tool, c.Path, c.Action, c.Command, c.Description = "Bash", "", observation.Shell, f[7].Text(), f[2].Text()
	case "view", "read":
		c.Tool, c.Action = "Read", observation.Read
	case "create", "write":
		c.Tool, c.Action = "Write", observation.Write
	case "edit", "str_replace", "insert", "apply_patch":
		c.Tool, c.Action = "Edit", observation.Edit
	case "grep", "glob", "rg":
		c.Action, c.Pattern = observation.Search, f[1].Text()
		c.Tool = strings.ToUpper(tool[:1]) + strings.ToLower(tool[1:])
	case "web_fetch", "webfetch", "fetch":
		c.Tool, c.Path, c.Action, c.URL = "WebFetch", "", observation.Fetch, f[5].Text()
	case "web_search", "websearch":
		c.Tool, c.Path, c.Action, c.Query = "WebSearch", "", observation.WebSearch, f[6].Text()
	case "task", "agent":
		c.Tool, c.Path, c.Action = "Task", "", observation.Spawn
		c.Description, c.Prompt, c.SubagentType = f[2].Text(), f[3].Text(), f[4].Text()
	case "ask_user", "askuserquestion":
		c.Tool, c.Path, c.Action, c.Question = "AskUser", "", observation.Ask, harness.FirstQuestion(input)
	case "skill":
		c.Tool, c.Path, c.Action, c.SkillName = "Skill", "", observation.Skill, input.Get("skill").Text()
	default:
		if i := strings.LastIndexByte(tool, '-'); i > 0 && i < len(tool)-1 {
			c.Action, c.Path, c.Server, c.Method, c.Args = observation.MCP, "", tool[:i], tool[i+1:], harness.Arguments(input)
		}
	}
	return c
}
