package harness

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cairn/internal/observation"
	"cairn/internal/regular"
)

// isClineFile reports whether a file name belongs to a conversation of Cline.
func isClineFile(name string) bool { return strings.HasSuffix(name, clineSuffix) }

const clineSuffix = ".messages.json"

// looksLikeCline reports whether a file is a conversation of Cline, one JSON document. It checks
// only the beginning.
func looksLikeCline(head []byte) bool {
	head = trimSpace(bytes.TrimPrefix(head, []byte(byteOrderMark)))
	head = head[:min(len(head), 4096)]
	has := func(name string) bool { return bytes.Contains(head, []byte(`"`+name+`"`)) }
	return kindOf(head) == '{' && has("messages") && has("sessionId") && has("origin") && has("agent")
}

// clineChat is the state while reading a conversation of Cline. Cline rewrites the file for every
// message. The file next to it contains the session's directory.
type clineChat struct {
	agentTranscript
	open map[string]pendingCall
}

// readCline reads a conversation, always from the start (Resume is the start).
func readCline(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error) {
	report := newReport(o)
	report.Resume = 0
	if o.Offset > 0 && o.Head != nil {
		r = io.MultiReader(o.Head, r)
	}
	whole, err := io.ReadAll(io.LimitReader(r, maxLine+1))
	if err != nil {
		return report, unreadable(err)
	}
	report.Bytes, report.Lines = int64(len(whole)), bytes.Count(whole, []byte("\n"))+1
	c := &clineChat{
		agentTranscript: newAgentTranscript(cline, observation.MatchID, o, &report, yield), open: map[string]pendingCall{},
	}
	raw := trimSpace(bytes.TrimPrefix(whole, []byte(byteOrderMark)))
	maskNUL(raw)
	switch {
	case len(whole) > maxLine:
		c.skip(hugeDocument)
		return report, nil
	case !isObject(c.decoder, raw):
		c.skip(badLine)
		return report, nil
	}
	f := pick(raw, "sessionId", "messages")
	c.place(text(f[0]), o.Path)
	for m := range elements(f[1]) {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		if err := c.message(m); err != nil {
			return report, err
		}
	}
	return report, c.finish(len(c.open))
}

// place finds the session, the subagent and their directory. Subagents' files are in the folder of
// their session's file. The folder has the session's name.
func (c *clineChat) place(session, path string) {
	c.session = session
	if path == "" {
		return
	}
	folder := filepath.Dir(path)
	stem := strings.TrimSuffix(filepath.Base(path), ".messages.json")
	root := strings.ToValidUTF8(filepath.Base(folder), "\uFFFD")
	about, err := regular.Read(filepath.Join(folder, filepath.Base(folder)+".json"), maxRootFile)
	if err != nil {
		about, _ = regular.Read(filepath.Join(folder, stem+".json"), maxRootFile)
	} else if c.session = root; stem != filepath.Base(folder) {
		c.agent = strings.ToValidUTF8(stem, "\uFFFD")
	}
	if about = trimSpace(about); isObject(c.decoder, about) {
		f := pick(about, "cwd", "workspace_root")
		c.cwd = firstNonBlank(text(f[0]), text(f[1]))
	}
}

func (c *clineChat) message(raw []byte) error {
	f := pick(raw, "id", "role", "content", "ts", "metadata")
	if ms, ok := integer(f[3]); ok && ms > 0 {
		c.at = time.UnixMilli(ms)
	}
	if c.incomplete() {
		return nil
	}
	id := text(f[0])
	if text(f[1]) == "assistant" {
		c.reply(id, f[2])
		return nil
	}
	for block := range elements(f[2]) {
		b := pick(block, "type", "text", "tool_use_id", "content", "is_error")
		switch text(b[0]) {
		case "tool_result":
			if err := c.result(text(b[2]), b[3], isTrue(b[4])); err != nil {
				return err
			}
		case "text":
			if err := c.prompt(id, text(b[1])); err != nil {
				return err
			}
		}
	}
	return nil
}

// prompt yields the user's text, which Cline puts between tags. The rest of the message is
// Cline's.
func (c *clineChat) prompt(id, said string) error {
	_, rest, ok := strings.Cut(said, "<user_input")
	_, rest, closed := strings.Cut(rest, ">")
	i := strings.LastIndex(rest, "</user_input>")
	if !ok || !closed || i < 0 || c.agent != "" {
		c.skip(metaLine)
		return nil
	}
	words := typed(strings.TrimSpace(rest[:i]))
	if strings.TrimSpace(words) == "" {
		c.skip(machinePrompt)
		return nil
	}
	if err := c.endTurn(); err != nil {
		return err
	}
	p := c.newEvent(observation.Prompt, onPrompt, id)
	p.Text, p.PromptID = words, id
	return c.yield(p)
}

func (c *clineChat) reply(id string, content []byte) {
	if said := words(content); strings.TrimSpace(said) != "" {
		c.says(said, id)
	}
	for block := range elements(content) {
		b := pick(block, "type", "id", "name", "input")
		if tool := text(b[2]); text(b[0]) == "tool_use" && text(b[1]) != "" && strings.TrimSpace(tool) != "" {
			c.acted = true
			c.open[text(b[1])] = pendingCall{call: observation.Call{ID: text(b[1]), Tool: tool}, input: bytes.Clone(b[3])}
		}
	}
}

func (c *clineChat) result(id string, content []byte, failed bool) error {
	p, ok := c.open[id]
	if !ok {
		c.skip(noCall)
		return nil
	}
	delete(c.open, id)
	calls := clineResult(id, p.call.Tool, p.input, content, failed)
	if isOwnServer(calls[0]) {
		c.skip(ownTool)
		return nil
	}
	source := onToolUse
	if failed {
		source = onToolFailure
	}
	e := c.newEvent(observation.Tool, source, "")
	e.Calls = calls
	return c.yield(e)
}

// clineResult describes the calls of a tool with their results: a list with one result per call,
// or one result for all.
func clineResult(id, tool string, input, content []byte, failed bool) []observation.Call {
	calls := clineCalls(id, tool, input)
	var results [][]byte
	for r := range elements(content) {
		results = append(results, r)
	}
	for i := range calls {
		answer := content
		if i < len(results) && len(results) == len(calls) {
			answer = results[i]
		}
		finishCline(&calls[i], input, answer, failed)
	}
	return calls
}

// finishCline adds the result to a call: {result, error, success}, or text.
func finishCline(c *observation.Call, input, answer []byte, failed bool) {
	answer = firstOf(insideText(answer), answer)
	f := pick(answer, "result", "error", "success")
	said, complaint := firstNonBlank(text(f[0]), plain(f[0]), plain(answer)), text(f[1])
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
		c.Stdout, c.Stderr, complaint = said, said, firstNonBlank(said, complaint)
	case observation.Write:
		c.Created = strings.HasPrefix(said, "File created")
	case observation.Spawn, observation.Fetch, observation.MCP, observation.Other:
		c.Output = said
	}
	if c.Failed {
		c.Error, c.Output = firstNonBlank(complaint, said), ""
	}
	markInterrupted(c)
	if c.Failed {
		return
	}
	e := pick(input, "old_text", "new_text")
	switch now := text(e[1]); {
	case now == "":
	case c.Action == observation.Write:
		c.Whole, c.Pieces = true, []observation.Piece{{New: now}}
	case c.Action == observation.Edit:
		c.Partial, c.Pieces = true, []observation.Piece{{Old: text(e[0]), New: now}}
	}
}

// clineCalls describes a call of one of Cline's tools by its input. Tools that accept several
// commands or files produce one call for each.
func clineCalls(id, tool string, input []byte) (calls []observation.Call) {
	c := observation.Call{ID: id, Tool: tool}
	f := pick(input, "commands", "files", "path", "old_text", "insert_line", "queries", "requests", "question", "task")
	switch tool {
	case "run_commands":
		for command := range jsonTexts(f[0]) {
			calls = append(calls, observation.Call{ID: id, Tool: tool, Action: observation.Shell, Command: command})
		}
	case "read_files":
		for file := range elements(f[1]) {
			calls = append(calls, observation.Call{ID: id, Tool: tool, Action: observation.Read, Path: text(get(file, "path"))})
		}
	case "editor":
		if c.Action, c.Path = observation.Write, text(f[2]); isThere(f[3]) || isThere(f[4]) {
			c.Action = observation.Edit
		}
	case "apply_patch":
		calls = patchCalls(id, tool, patchText(input), "")
	case "search_codebase":
		c.Action = observation.Search
		var queries []string
		for q := range jsonTexts(f[5]) {
			queries = append(queries, q)
		}
		c.Pattern = bounded([]byte(strings.Join(queries, ", ")))
	case "fetch_web_content":
		for request := range elements(f[6]) {
			calls = append(calls, observation.Call{ID: id, Tool: tool, Action: observation.Fetch, URL: text(get(request, "url"))})
		}
	case "ask_question":
		c.Action, c.Question = observation.Ask, text(f[7])
	case "spawn_agent":
		c.Action, c.Prompt = observation.Spawn, text(f[8])
	default:
		if strings.Contains(tool, "__") {
			c.Action, c.Args = observation.MCP, arguments(input)
			c.Server, c.Method = splitTool(tool)
		}
	}
	if len(calls) > maxArgs {
		calls = calls[:maxArgs]
	}
	if len(calls) == 0 {
		return []observation.Call{c}
	}
	return calls
}
