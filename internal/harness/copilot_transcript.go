package harness

import (
	"bytes"
	"context"
	"io"
	"strings"

	"cairn/internal/observation"
)

// isCopilotLine reports whether a line belongs to a transcript of Copilot CLI: an event with data.
func isCopilotLine(line []byte) bool {
	f := pick(line, "type", "data", "id", "timestamp", "sessionId", "payload")
	return strings.Contains(text(f[0]), ".") && kindOf(f[1]) == '{' && f[2] != nil && f[3] != nil && f[4] == nil && f[5] == nil
}

// copilotChat is the state while reading a session's events.jsonl. The file is always read from
// the start, because equal calls are counted from the first.
type copilotChat struct {
	agentTranscript
	branch string
	seen   map[string]struct{} // event ids
	open   map[string]pendingCall
}

func readCopilot(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error) {
	report := newReport(o)
	c := &copilotChat{
		agentTranscript: newAgentTranscript(copilot, observation.MatchCount, o, &report, yield),
		seen:            map[string]struct{}{}, open: map[string]pendingCall{},
	}
	var err error
	if r, err = fromStart(r, &o); err != nil {
		return report, unreadable(err)
	}
	err = eachLine(ctx, r, o, &report, func(l line) error {
		raw, ok := l.object(c.decoder, c.skipped)
		if !ok {
			return nil
		}
		return c.record(raw)
	})
	if report.Resume = 0; err != nil {
		return report, err
	}
	return report, c.finish(len(c.open))
}

func (c *copilotChat) record(raw []byte) error {
	f := pick(raw, "type", "data", "id", "timestamp")
	kind, data, id := text(f[0]), f[1], text(f[2])
	if _, again := c.seen[id]; again && id != "" {
		c.skip(repeatedLine)
		return nil
	}
	c.seen[id] = struct{}{}
	c.dated(f[3])
	switch kind {
	case "session.start", "session.resume", "session.context_changed":
		c.place(data)
		return nil
	case "user.message", "assistant.message", "tool.execution_start", "tool.execution_complete", "session.compaction_complete":
	default:
		c.skip(unusedLine)
		return nil
	}
	if c.incomplete() {
		return nil
	}
	switch kind {
	case "user.message":
		return c.user(id, data)
	case "assistant.message":
		c.reply(id, data)
		return nil
	case "tool.execution_start":
		c.call(data)
		return nil
	case "tool.execution_complete":
		return c.result(data)
	}
	s := c.newEvent(observation.SessionStart, onSessionStart, id)
	s.Text = "compact"
	return c.yield(s)
}

// place stores the session and its folder from an event.
func (c *copilotChat) place(data []byte) {
	f := pick(data, "sessionId", "context", "cwd")
	c.session = firstNonBlank(text(f[0]), c.session)
	where := pick(f[1], "cwd", "branch")
	c.cwd = firstNonBlank(text(where[0]), text(f[2]), c.cwd)
	c.branch = firstNonBlank(text(where[1]), c.branch)
}

func (c *copilotChat) user(id string, data []byte) error {
	f := pick(data, "content", "source", "parentToolCallId")
	if text(f[2]) != "" {
		c.skip(ownAgent)
		return nil
	}
	said := typed(text(f[0]))
	if source := text(f[1]); strings.TrimSpace(said) == "" || source != "" && source != "user" {
		c.skip(machinePrompt)
		return nil
	}
	if err := c.endTurn(); err != nil {
		return err
	}
	p := c.newEvent(observation.Prompt, onPrompt, id)
	p.Text, p.Branch = said, c.branch
	return c.yield(p)
}

func (c *copilotChat) reply(id string, data []byte) {
	f := pick(data, "content", "toolRequests", "parentToolCallId")
	if text(f[2]) != "" {
		c.skip(ownAgent)
		return
	}
	if said := text(f[0]); strings.TrimSpace(said) != "" {
		c.says(said, id)
		c.spoke.Branch = c.branch
	}
	for range elements(f[1]) {
		c.acted = true
	}
}

func (c *copilotChat) call(data []byte) {
	f := pick(data, "toolCallId", "toolName", "arguments")
	id, tool := text(f[0]), text(f[1])
	if id == "" || strings.TrimSpace(tool) == "" {
		return
	}
	input := bytes.Clone(firstOf(insideText(f[2]), f[2]))
	c.open[id] = pendingCall{call: observation.Call{ID: id, Tool: tool}, input: input}
}

func (c *copilotChat) result(data []byte) error {
	f := pick(data, "toolCallId", "success", "result", "error", "shellExecution")
	id := text(f[0])
	p, ok := c.open[id]
	if !ok {
		c.skip(noCall)
		return nil
	}
	delete(c.open, id)
	calls := copilotCalls(id, p.call.Tool, p.input)
	failure := pick(f[3], "message", "code")
	r := copilotResult{said: withoutHookGuidance(text(get(f[2], "content"))), failed: !isTrue(f[1]), complaint: text(failure[0])}
	why := neverRefused
	if r.failed {
		why = copilotRefusal(text(failure[1]), r.complaint)
	}
	switch {
	case calls[0].Server == "cairn":
		c.skip(ownTool)
		return nil
	case why != neverRefused:
		c.skip(why)
		return nil
	}
	source := onToolUse
	if r.failed {
		source = onToolFailure
	}
	for i := range calls {
		r.apply(&calls[i], p.input)
		if n, ok := integer(get(f[4], "exitCode")); ok && calls[i].Action == observation.Shell && calls[i].ExitCode == nil {
			code := int(n)
			calls[i].ExitCode = &code
		}
	}
	e := c.newEvent(observation.Tool, source, "")
	e.Calls = calls
	return c.yield(e)
}

// withoutHookGuidance removes the text that Copilot CLI appends to a result for hooks.
func withoutHookGuidance(said string) string {
	i := strings.LastIndex(said, "\n\nTool \"")
	if i < 0 || !strings.Contains(said[i:], "Additional guidance from postToolUse") {
		return said
	}
	return said[:i]
}
