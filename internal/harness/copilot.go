package harness

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"cairn/internal/observation"
	"cairn/internal/regular"
)

// copilotEvent reads a payload of Copilot CLI. Its hooks are installed under Claude Code's event
// names and then send mostly the same payloads. The payloads contain no call ids. Only the
// transcript contains a turn's last message.
func copilotEvent(body []byte) (observation.Event, error) {
	e, err := commonEvent(copilot, "prompt_id", body)
	if err != nil {
		return observation.Event{}, err
	}
	switch e.Source {
	case onToolUse, onToolFailure, onBeforeTool:
		copilotTool(&e, body)
	case onStop:
		fill(&e, body)
		if e.Text == "" {
			stopped, _ := time.Parse(time.RFC3339Nano, text(get(body, "timestamp")))
			e.Text = copilotLastWords(text(get(body, "transcript_path")), e.Session, stopped)
		}
	case onSessionStart:
		if fill(&e, body); e.Text == "new" {
			e.Text = "startup"
		}
	default:
		fill(&e, body)
	}
	return e, nil
}

// isCopilotPayload reports whether only Copilot CLI sends such a payload, recognized by the path
// of its transcript and the form of its results.
func isCopilotPayload(body []byte) bool {
	f := pick(body, "transcript_path", "tool_result", "initial_prompt")
	return strings.Contains(text(f[0]), "session-state") || kindOf(f[1]) == '{' && get(f[1], "text_result_for_llm") != nil || f[2] != nil
}

func copilotTool(e *observation.Event, body []byte) {
	f := pick(body, "tool_name", "tool_input", "tool_result", "error")
	tool := text(f[0])
	if e.Source == onBeforeTool {
		e.Kind = observation.Touch
	}
	if strings.TrimSpace(tool) == "" {
		return
	}
	e.Calls = copilotCalls("", tool, firstOf(insideText(f[1]), f[1]))
	if e.Source == onBeforeTool {
		return
	}
	r := pick(f[2], "result_type", "text_result_for_llm")
	kind, said := text(r[0]), text(r[1])
	result := copilotResult{said: said, failed: e.Source == onToolFailure || kind == "failure", complaint: plain(f[3])}
	switch {
	case e.Calls[0].Server == "cairn":
		e.Kind, e.Calls[0].Failed, e.Calls[0].Result = observation.Touch, result.failed, firstNonBlank(said, result.complaint)
		return
	case kind == "rejected" || kind == "denied" || copilotRefusal("", result.complaint) != neverRefused:
		e.Kind = observation.Touch
		return
	}
	e.Kind = observation.Tool
	for i := range e.Calls {
		result.apply(&e.Calls[i], firstOf(insideText(f[1]), f[1]))
	}
}

// copilotResult is the result of one of Copilot CLI's tools.
type copilotResult struct {
	said      string // for the model
	failed    bool   // as reported by Copilot CLI
	complaint string // the error message
}

func (r copilotResult) apply(c *observation.Call, input []byte) {
	c.Failed = r.failed
	switch c.Action {
	case observation.Shell:
		said, code, hasCode := copilotShell(r.said)
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
		c.Error, c.Output = firstNonBlank(r.complaint, c.Stdout, r.said), ""
	}
	markInterrupted(c)
	readPieces(c, input, nil, nil)
}

// copilotShell splits a command's output from the line with the exit code that follows it.
func copilotShell(said string) (output string, code int, hasCode bool) {
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

// copilotRefusal returns the reason why a failed call never ran.
func copilotRefusal(code, complaint string) string {
	switch {
	case code == "rejected", strings.HasPrefix(complaint, "The user rejected"):
		return rejected
	case code == "denied", strings.HasPrefix(complaint, "Permission denied"), strings.HasPrefix(complaint, "Denied by preToolUse hook"):
		return denied
	}
	return neverRefused
}

// copilotPatience is the maximum wait for a turn's last message. Copilot CLI writes its transcript
// after the event at the end of a turn.
const (
	copilotPatience = 400 * time.Millisecond
	copilotPause    = 10 * time.Millisecond
	copilotTurnEnd  = time.Second // between a turn's last message and its end
)

// copilotLastWords returns the agent's last message in a transcript before a turn stopped. It
// returns "" if the file is not a transcript of Copilot CLI, or if the turn's end is not written
// yet. It also returns "" if the turn has no message. It reads only the end of the file.
func copilotLastWords(path, session string, stopped time.Time) string {
	if session == "" || !strings.Contains(path, session) {
		return ""
	}
	for waited := time.Duration(0); ; waited += copilotPause {
		said, over := copilotEnd(path, stopped.Add(-copilotTurnEnd))
		switch {
		case over:
			return said
		case waited >= copilotPatience:
			return ""
		}
		time.Sleep(copilotPause)
	}
}

// copilotEnd returns the agent's last message since the last prompt. over reports whether a turn
// ended after the given time or the file cannot be read. A file that does not exist may still be
// created, so over is false then.
func copilotEnd(path string, after time.Time) (said string, over bool) {
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
	dec := lenient(nil)
	for raw := range bytes.Lines(end) {
		if raw = trimSpace(raw); !isObject(dec, raw) {
			continue
		}
		l := pick(raw, "type", "data", "timestamp")
		if at, err := time.Parse(time.RFC3339Nano, text(l[2])); err == nil && at.Before(after) {
			continue
		}
		switch text(l[0]) {
		case "user.message", "session.start", "session.resume":
			said, over = "", false
		case "assistant.message":
			d := pick(l[1], "content", "toolRequests", "parentToolCallId")
			if text(d[2]) != "" {
				continue
			}
			over = true
			for range elements(d[1]) {
				over = false
			}
			said = firstNonBlank(text(d[0]), said)
		case "session.shutdown":
			over = true
		}
	}
	return said, over
}

// copilotCalls describes a call of one of Copilot CLI's tools by its input. It accepts the tool
// names of hooks and transcripts. It returns one call, or one per file of a patch.
func copilotCalls(id, tool string, input []byte) []observation.Call {
	if tool == "apply_patch" {
		patch := text(input)
		if patch == "" {
			patch = patchText(input)
		}
		if calls := patchCalls(id, tool, patch, ""); len(calls) > 0 {
			return calls
		}
	}
	return []observation.Call{copilotCall(id, tool, input)}
}

func copilotCall(id, tool string, input []byte) observation.Call {
	c := observation.Call{ID: id, Tool: tool}
	f := pick(input, "path", "pattern", "description", "prompt", "agent_type", "url", "query", "command")
	c.Path = firstNonBlank(text(f[0]), text(get(input, "file_path")))
	switch strings.ToLower(tool) {
	case "bash", "powershell", "shell":
		c.Tool, c.Path, c.Action, c.Command, c.Description = "Bash", "", observation.Shell, text(f[7]), text(f[2])
	case "view", "read":
		c.Tool, c.Action = "Read", observation.Read
	case "create", "write":
		c.Tool, c.Action = "Write", observation.Write
	case "edit", "str_replace", "insert", "apply_patch":
		c.Tool, c.Action = "Edit", observation.Edit
	case "grep", "glob", "rg":
		c.Action, c.Pattern = observation.Search, text(f[1])
		c.Tool = strings.ToUpper(tool[:1]) + strings.ToLower(tool[1:])
	case "web_fetch", "webfetch", "fetch":
		c.Tool, c.Path, c.Action, c.URL = "WebFetch", "", observation.Fetch, text(f[5])
	case "web_search", "websearch":
		c.Tool, c.Path, c.Action, c.Query = "WebSearch", "", observation.WebSearch, text(f[6])
	case "task", "agent":
		c.Tool, c.Path, c.Action = "Task", "", observation.Spawn
		c.Description, c.Prompt, c.SubagentType = text(f[2]), text(f[3]), text(f[4])
	case "ask_user", "askuserquestion":
		c.Tool, c.Path, c.Action, c.Question = "AskUser", "", observation.Ask, firstQuestion(input)
	case "skill":
		c.Tool, c.Path, c.Action, c.SkillName = "Skill", "", observation.Skill, text(get(input, "skill"))
	default:
		if i := strings.LastIndexByte(tool, '-'); i > 0 && i < len(tool)-1 {
			c.Action, c.Path, c.Server, c.Method, c.Args = observation.MCP, "", tool[:i], tool[i+1:], arguments(input)
		}
	}
	return c
}
