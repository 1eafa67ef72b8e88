package copilot

import (
	"bytes"
	"context"
	"io"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// isLine reports whether a line belongs to a transcript of Copilot CLI: an event with data.
func isLine(line lazyjson.Value) bool {
	f := line.Pick("type", "data", "id", "timestamp", "sessionId", "payload")
	return strings.Contains(f[0].Text(), ".") && f[1].Kind() == '{' && f[2] != nil && f[3] != nil && f[4] == nil && f[5] == nil
}

// chat is the state while reading a session's events.jsonl. The file is always read from
// the start, because equal calls are counted from the first.
type chat struct {
	harness.AgentTranscript
	branch string
	seen   map[string]struct{} // event ids
	open   map[string]harness.PendingCall
}

func readTranscript(ctx context.Context, r io.Reader, o harness.TranscriptOptions, yield func(observation.Event) error) (harness.TranscriptReport, error) {
	report := harness.NewReport(o)
	c := &chat{
		AgentTranscript: harness.NewAgentTranscript(name, observation.MatchCount, o, &report, yield),
		seen:            map[string]struct{}{}, open: map[string]harness.PendingCall{},
	}
	r = harness.FromStart(r, &o)
	err := harness.EachObject(ctx, r, o, &report, c.record)
	if report.Resume = 0; err != nil {
		return report, err
	}
	return report, c.Finish(len(c.open))
}

func (c *chat) record(raw lazyjson.Value, _ int64) error {
	f := raw.Pick("type", "data", "id", "timestamp")
	kind, data, id := f[0].Text(), f[1], f[2].Text()
	if _, again := c.seen[id]; again && id != "" {
		c.Skip(harness.RepeatedLine)
		return nil
	}
	c.seen[id] = struct{}{}
	c.Dated(f[3])
	switch kind {
	case "session.start", "session.resume", "session.context_changed":
		c.place(data)
		return nil
	case "user.message", "assistant.message", "tool.execution_start", "tool.execution_complete", "session.compaction_complete":
	default:
		c.Skip(harness.UnusedLine)
		return nil
	}
	if c.Incomplete() {
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
	s := c.NewEvent(observation.SessionStart, harness.OnSessionStart, id)
	s.Text = "compact"
	return c.Yield(s)
}

// place stores the session and its folder from an event.
func (c *chat) place(data lazyjson.Value) {
	f := data.Pick("sessionId", "context", "cwd")
	c.Session = lazyjson.FirstNonBlank(f[0].Text(), c.Session)
	where := f[1].Pick("cwd", "branch")
	c.Cwd = lazyjson.FirstNonBlank(where[0].Text(), f[2].Text(), c.Cwd)
	c.branch = lazyjson.FirstNonBlank(where[1].Text(), c.branch)
}

func (c *chat) user(id string, data lazyjson.Value) error {
	f := data.Pick("content", "source", "parentToolCallId")
	if f[2].Text() != "" {
		c.Skip(harness.OwnAgent)
		return nil
	}
	said := harness.Typed(f[0].Text())
	if source := f[1].Text(); strings.TrimSpace(said) == "" || source != "" && source != "user" {
		c.Skip(harness.MachinePrompt)
		return nil
	}
	if err := c.EndTurn(); err != nil {
		return err
	}
	p := c.NewEvent(observation.Prompt, harness.OnPrompt, id)
	p.Text, p.Branch = said, c.branch
	return c.Yield(p)
}

func (c *chat) reply(id string, data lazyjson.Value) {
	f := data.Pick("content", "toolRequests", "parentToolCallId")
	if f[2].Text() != "" {
		c.Skip(harness.OwnAgent)
		return
	}
	if said := f[0].Text(); strings.TrimSpace(said) != "" {
		c.Says(said, id)
		c.Spoke.Branch = c.branch
	}
	for range f[1].Elements() {
		c.Acted = true
	}
}

func (c *chat) call(data lazyjson.Value) {
	f := data.Pick("toolCallId", "toolName", "arguments")
	id, tool := f[0].Text(), f[1].Text()
	if id == "" || strings.TrimSpace(tool) == "" {
		return
	}
	input := bytes.Clone(f[2].Unwrapped())
	c.open[id] = harness.PendingCall{Call: observation.Call{ID: id, Tool: tool}, Input: input}
}

func (c *chat) result(data lazyjson.Value) error {
	f := data.Pick("toolCallId", "success", "result", "error", "shellExecution")
	id := f[0].Text()
	p, ok := c.open[id]
	if !ok {
		c.Skip(harness.NoCall)
		return nil
	}
	delete(c.open, id)
	calls := calls(id, p.Call.Tool, p.Input)
	failure := f[3].Pick("message", "code")
	r := result{said: withoutHookGuidance(f[2].Get("content").Text()), failed: !f[1].IsTrue(), complaint: failure[0].Text()}
	why := harness.NeverRefused
	if r.failed {
		why = refusal(failure[1].Text(), r.complaint)
	}
	switch {
	case calls[0].Server == "cairn":
		c.Skip(harness.OwnTool)
		return nil
	case why != harness.NeverRefused:
		c.Skip(why)
		return nil
	}
	for i := range calls {
		r.apply(&calls[i], p.Input)
		if calls[i].Action == observation.Shell && calls[i].ExitCode == nil {
			calls[i].ExitCode = f[4].Get("exitCode").Code()
		}
	}
	return c.YieldCalls(calls, r.failed)
}

// withoutHookGuidance removes the text that Copilot CLI appends to a result for hooks.
func withoutHookGuidance(said string) string {
	i := strings.LastIndex(said, "\n\nTool \"")
	if i < 0 || !strings.Contains(said[i:], "Additional guidance from postToolUse") {
		return said
	}
	return said[:i]
}
