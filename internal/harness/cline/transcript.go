package cline

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
	"cairn/internal/regular"
)

// isConversationFile reports whether a file name belongs to a conversation of Cline.
func isConversationFile(name string) bool { return strings.HasSuffix(name, suffix) }

const suffix = ".messages.json"

// isConversation reports whether a file is a conversation of Cline, one JSON document. It checks
// only the beginning.
func isConversation(head []byte) bool {
	start := lazyjson.Trimmed(head)
	start = start[:min(len(start), 4096)]
	has := func(name string) bool { return bytes.Contains(start, []byte(`"`+name+`"`)) }
	return start.Kind() == '{' && has("messages") && has("sessionId") && has("origin") && has("agent")
}

// chat is the state while reading a conversation of Cline. Cline rewrites the file for every
// message. The file next to it contains the session's directory.
type chat struct {
	harness.AgentTranscript
	open map[string]harness.PendingCall
}

// readConversation reads a conversation, always from the start (Resume is the start).
func readConversation(ctx context.Context, r io.Reader, o harness.TranscriptOptions, yield func(observation.Event) error) (harness.TranscriptReport, error) {
	report := harness.NewReport(o)
	report.Resume = 0
	whole, err := io.ReadAll(io.LimitReader(harness.FromStart(r, &o), harness.MaxLine+1))
	if err != nil {
		return report, harness.Unreadable(err)
	}
	report.Bytes, report.Lines = int64(len(whole)), bytes.Count(whole, []byte("\n"))+1
	c := &chat{
		AgentTranscript: harness.NewAgentTranscript(name, observation.MatchID, o, &report, yield), open: map[string]harness.PendingCall{},
	}
	raw := lazyjson.Trimmed(whole)
	lazyjson.MaskNUL(raw)
	switch {
	case len(whole) > harness.MaxLine:
		c.Skip(harness.HugeDocument)
		return report, nil
	case !c.Checker.IsObject(raw):
		c.Skip(harness.BadLine)
		return report, nil
	}
	f := raw.Pick("sessionId", "messages")
	c.place(f[0].Text(), o.Path)
	for m := range f[1].Elements() {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		if err := c.message(m); err != nil {
			return report, err
		}
	}
	return report, c.Finish(len(c.open))
}

// place finds the session, the subagent and their directory. Subagents' files are in the folder of
// their session's file. The folder has the session's name.
func (c *chat) place(session, path string) {
	c.Session = session
	if path == "" {
		return
	}
	folder := filepath.Dir(path)
	stem := strings.TrimSuffix(filepath.Base(path), ".messages.json")
	root := strings.ToValidUTF8(filepath.Base(folder), "\uFFFD")
	about, err := regular.Read(filepath.Join(folder, filepath.Base(folder)+".json"), harness.MaxSmallFile)
	if err != nil {
		about, _ = regular.Read(filepath.Join(folder, stem+".json"), harness.MaxSmallFile)
	} else if c.Session = root; stem != filepath.Base(folder) {
		c.Agent = strings.ToValidUTF8(stem, "\uFFFD")
	}
	if facts := lazyjson.TrimSpace(about); c.Checker.IsObject(facts) {
		f := facts.Pick("cwd", "workspace_root")
		c.Cwd = lazyjson.FirstNonBlank(f[0].Text(), f[1].Text())
	}
}

func (c *chat) message(raw lazyjson.Value) error {
	f := raw.Pick("id", "role", "content", "ts", "metadata")
	if ms, ok := f[3].Integer(); ok && ms > 0 {
		c.At = time.UnixMilli(ms)
	}
	if c.Incomplete() {
		return nil
	}
	id := f[0].Text()
	if f[1].Text() == "assistant" {
		c.reply(id, f[2])
		return nil
	}
	for block := range f[2].Elements() {
		b := block.Pick("type", "text", "tool_use_id", "content", "is_error")
		switch b[0].Text() {
		case "tool_result":
			if err := c.result(b[2].Text(), b[3], b[4].IsTrue()); err != nil {
				return err
			}
		case "text":
			if err := c.prompt(id, b[1].Text()); err != nil {
				return err
			}
		}
	}
	return nil
}

// prompt yields the user's text, which Cline puts between tags. The rest of the message is
// Cline's.
func (c *chat) prompt(id, said string) error {
	_, rest, ok := strings.Cut(said, "<user_input")
	_, rest, closed := strings.Cut(rest, ">")
	i := strings.LastIndex(rest, "</user_input>")
	if !ok || !closed || i < 0 || c.Agent != "" {
		c.Skip(harness.MetaLine)
		return nil
	}
	words := harness.Typed(strings.TrimSpace(rest[:i]))
	if strings.TrimSpace(words) == "" {
		c.Skip(harness.MachinePrompt)
		return nil
	}
	if err := c.EndTurn(); err != nil {
		return err
	}
	p := c.NewEvent(observation.Prompt, harness.OnPrompt, id)
	p.Text, p.PromptID = words, id
	return c.Yield(p)
}

func (c *chat) reply(id string, content lazyjson.Value) {
	if said := harness.MessageText(content); strings.TrimSpace(said) != "" {
		c.Says(said, id)
	}
	for block := range content.Elements() {
		b := block.Pick("type", "id", "name", "input")
		if tool := b[2].Text(); b[0].Text() == "tool_use" && b[1].Text() != "" && strings.TrimSpace(tool) != "" {
			c.Acted = true
			c.open[b[1].Text()] = harness.PendingCall{Call: observation.Call{ID: b[1].Text(), Tool: tool}, Input: bytes.Clone(b[3])}
		}
	}
}

func (c *chat) result(id string, content lazyjson.Value, failed bool) error {
	p, ok := c.open[id]
	if !ok {
		c.Skip(harness.NoCall)
		return nil
	}
	delete(c.open, id)
	calls := result(id, p.Call.Tool, p.Input, content, failed)
	if harness.IsOwnCall(calls[0]) {
		c.Skip(harness.OwnTool)
		return nil
	}
	return c.YieldCalls(calls, failed)
}

// result describes the calls of a tool with their results: a list with one result per call,
// or one result for all.
func result(id, tool string, input, content lazyjson.Value, failed bool) []observation.Call {
	calls := calls(id, tool, input)
	var results []lazyjson.Value
	for r := range content.Elements() {
		results = append(results, r)
	}
	for i := range calls {
		answer := content
		if i < len(results) && len(results) == len(calls) {
			answer = results[i]
		}
		finishCall(&calls[i], input, answer, failed)
	}
	return calls
}

// finishCall adds the result to a call: {result, error, success}, or text.
func finishCall(c *observation.Call, input, answer lazyjson.Value, failed bool) {
	answer = answer.Unwrapped()
	f := answer.Pick("result", "error", "success")
	said, complaint := lazyjson.FirstNonBlank(f[0].Text(), f[0].Plain(), answer.Plain()), f[1].Text()
	c.Failed = failed || complaint != "" || string(f[2]) == "false"
	switch c.Action {
	case observation.Shell:
		if rest, ok := strings.CutPrefix(said, "[Command exited with code "); ok {
			number, out, _ := strings.Cut(rest, "]")
			if code, err := strconv.Atoi(number); err == nil {
				c.ExitCode, c.Failed = &code, c.Failed || code != 0
				said = strings.TrimPrefix(strings.TrimSpace(out), "[stderr]\n")
			}
		}
		c.Stdout, c.Stderr, complaint = said, said, lazyjson.FirstNonBlank(said, complaint)
	case observation.Write:
		c.Created = strings.HasPrefix(said, "File created")
	case observation.Spawn, observation.Fetch, observation.MCP, observation.Other:
		c.Output = said
	}
	if c.Failed {
		c.Error, c.Output = lazyjson.FirstNonBlank(complaint, said), ""
	}
	harness.MarkInterrupted(c)
	if c.Failed {
		return
	}
	e := input.Pick("old_text", "new_text")
	switch now := e[1].Text(); {
	case now == "":
	case c.Action == observation.Write:
		c.Whole, c.Pieces = true, []observation.Piece{{New: now}}
	case c.Action == observation.Edit:
		c.Partial, c.Pieces = true, []observation.Piece{{Old: e[0].Text(), New: now}}
	}
}

// calls describes a call of one of Cline's tools by its input. Tools that accept several
// commands or files produce one call for each.
func calls(id, tool string, input lazyjson.Value) (calls []observation.Call) {
	c := observation.Call{ID: id, Tool: tool}
	f := input.Pick("commands", "files", "path", "old_text", "insert_line", "queries", "requests", "question", "task")
	switch tool {
	case "run_commands":
		for command := range f[0].Texts() {
			calls = append(calls, observation.Call{ID: id, Tool: tool, Action: observation.Shell, Command: command})
		}
	case "read_files":
		for file := range f[1].Elements() {
			calls = append(calls, observation.Call{ID: id, Tool: tool, Action: observation.Read, Path: file.Get("path").Text()})
		}
	case "editor":
		if c.Action, c.Path = observation.Write, f[2].Text(); f[3].IsSet() || f[4].IsSet() {
			c.Action = observation.Edit
		}
	case "apply_patch":
		calls = harness.PatchCalls(id, tool, harness.PatchText(input), "")
	case "search_codebase":
		c.Action = observation.Search
		var queries []string
		for q := range f[5].Texts() {
			queries = append(queries, q)
		}
		c.Pattern = harness.Listed(queries)
	case "fetch_web_content":
		for request := range f[6].Elements() {
			calls = append(calls, observation.Call{ID: id, Tool: tool, Action: observation.Fetch, URL: request.Get("url").Text()})
		}
	case "ask_question":
		c.Action, c.Question = observation.Ask, f[7].Text()
	case "spawn_agent":
		c.Action, c.Prompt = observation.Spawn, f[8].Text()
	default:
		if strings.Contains(tool, "__") {
			c.Action, c.Args = observation.MCP, harness.Arguments(input)
			c.Server, c.Method = harness.SplitTool(tool)
		}
	}
	if len(calls) > harness.MaxArgs {
		calls = calls[:harness.MaxArgs]
	}
	if len(calls) == 0 {
		return []observation.Call{c}
	}
	return calls
}
