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

// copilotEvent reads a payload of Copilot CLI, whose hooks are wired under Claude Code's
// names of events and then send mostly the same. Copilot CLI gives calls no ids there,
// and a turn's last words only by its transcript.
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

// isCopilotPayload reports whether only Copilot CLI sends such a payload: transcripts of its
// own, results of its own form.
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
	said      string // to the model
	failed    bool   // as Copilot CLI says
	complaint string // its error
}

func (r copilotResult) apply(c *observation.Call, input []byte) {
	c.Failed = r.failed
	switch c.Action {
	case observation.Shell:
		said, code, hasCode := copilotShell(r.said)
		c.Stdout, c.Stderr = said, said // one text holds both streams
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

// copilotShell separates the output of a command from the line after it with its
// exit code.
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

// copilotRefusal returns the reason why a call that failed never ran.
func copilotRefusal(code, complaint string) string {
	switch {
	case code == "rejected", strings.HasPrefix(complaint, "The user rejected"):
		return rejected
	case code == "denied", strings.HasPrefix(complaint, "Permission denied"), strings.HasPrefix(complaint, "Denied by preToolUse hook"):
		return denied
	}
	return neverRefused
}

// copilotPatience is how long a turn's last words are waited for: Copilot CLI writes its
// transcript behind the event that a turn is over.
const (
	copilotPatience = 400 * time.Millisecond
	copilotPause    = 10 * time.Millisecond
	copilotTurnEnd  = time.Second // between a turn's last words and its end
)

// copilotLastWords returns the last thing that the agent said in a transcript before a turn
// stopped, "" if it is not a transcript of Copilot CLI, does not hold the turn's end yet,
// or the turn has ended without words. Only the end of the file is read.
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

// copilotEnd returns the last thing that the agent said since the last prompt, and whether
// that ended a turn after a moment, or nothing can be read. A file that does not exist yet
// may come.
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

// copilotCalls describes a call of one of Copilot CLI's tools by its input, under the
// names that hooks and transcripts have for them: one call, or one per file of a patch.
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
