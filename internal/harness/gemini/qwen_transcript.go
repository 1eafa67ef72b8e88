package gemini

import (
	"bytes"
	"context"
	"io"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// isQwenLine reports whether a line belongs to a transcript of Qwen Code: Claude Code's envelope
// around a message of Gemini CLI.
func isQwenLine(line lazyjson.Value) bool {
	f := line.Pick("sessionId", "uuid", "type", "message", "systemPayload")
	if f[0].Kind() != '"' || f[1].Kind() != '"' || f[2].Kind() != '"' {
		return false
	}
	return f[4].Kind() == '{' || f[3].Get("parts") != nil
}

// qwenChat is the state while reading a transcript of Qwen Code. Its lines are prompts, replies
// with calls, and results, each with an id. The file is always read from the start, because equal
// calls are counted from the first.
type qwenChat struct {
	harness.AgentTranscript
	branch string
	seen   map[string]struct{} // line ids
	open   map[string]harness.PendingCall
}

func readQwen(ctx context.Context, r io.Reader, o harness.TranscriptOptions, yield func(observation.Event) error) (harness.TranscriptReport, error) {
	report := harness.NewReport(o)
	q := &qwenChat{
		AgentTranscript: harness.NewAgentTranscript(qwenName, observation.MatchCount, o, &report, yield),
		seen:            map[string]struct{}{}, open: map[string]harness.PendingCall{},
	}
	r = harness.FromStart(r, &o)
	err := harness.EachObject(ctx, r, o, &report, q.record)
	if report.Resume = 0; err != nil {
		return report, err
	}
	return report, q.Finish(len(q.open))
}

func (q *qwenChat) record(raw lazyjson.Value, _ int64) error {
	f := raw.Pick("uuid", "sessionId", "timestamp", "type", "cwd", "gitBranch", "message", "toolCallResult", "subtype", "isSidechain")
	id := f[0].Text()
	if _, again := q.seen[id]; again && id != "" {
		q.Skip(harness.RepeatedLine)
		return nil
	}
	q.seen[id] = struct{}{}
	q.Session, q.Cwd, q.branch = f[1].Text(), f[4].Text(), f[5].Text()
	q.Dated(f[2])
	switch {
	case q.Incomplete():
		return nil
	case f[9].IsTrue():
		q.Skip(harness.OwnAgent)
		return nil
	}
	parts := f[6].Get("parts")
	switch f[3].Text() {
	case "user":
		return q.user(id, parts)
	case "assistant":
		q.reply(id, parts)
		return nil
	case "tool_result":
		return q.result(parts, f[7])
	case "system":
		if f[8].Text() == "chat_compression" {
			s := q.NewEvent(observation.SessionStart, harness.OnSessionStart, id)
			s.Text = "compact"
			return q.Yield(s)
		}
		q.Skip(harness.UnusedLine)
		return nil
	}
	q.Skip(harness.UnknownLine)
	return nil
}

// user handles a prompt. The text of hooks and referenced files is in separate parts after the
// user's text.
func (q *qwenChat) user(id string, parts lazyjson.Value) error {
	said := ""
	for part := range parts.Elements() {
		if said = typed(harness.PartText(part)); strings.TrimSpace(said) != "" {
			break
		}
	}
	if strings.TrimSpace(said) == "" {
		q.Skip(harness.MachinePrompt)
		return nil
	}
	if err := q.EndTurn(); err != nil {
		return err
	}
	p := q.NewEvent(observation.Prompt, harness.OnPrompt, id)
	p.Text, p.Branch = said, q.branch
	return q.Yield(p)
}

func (q *qwenChat) reply(id string, parts lazyjson.Value) {
	if said := harness.ContentText(parts); strings.TrimSpace(said) != "" {
		q.Says(said, id)
		q.Spoke.Branch = q.branch
	}
	for part := range parts.Elements() {
		call := part.Get("functionCall")
		f := call.Pick("id", "name", "args")
		tool := f[1].Text()
		if strings.TrimSpace(tool) == "" {
			continue
		}
		q.Acted = true
		q.open[f[0].Text()] = harness.PendingCall{Call: qwenCall(f[0].Text(), tool, f[2]), Input: bytes.Clone(f[2])}
	}
}

func (q *qwenChat) result(parts, outcome lazyjson.Value) error {
	o := outcome.Pick("callId", "status", "resultDisplay", "error", "errorType")
	status, kind := o[1].Text(), o[4].Text()
	for part := range parts.Elements() {
		f := part.Get("functionResponse").Pick("id", "response")
		id := f[0].Text()
		p, ok := q.open[id]
		if !ok {
			q.Skip(harness.NoCall)
			continue
		}
		delete(q.open, id)
		r := f[1].Pick("output", "error")
		a := result{said: r[0].Text(), display: o[2], failed: status == "error" || r[0] == nil && r[1].IsSet(), complaint: r[1].Text()}
		switch {
		case harness.IsOwnCall(p.Call):
			q.Skip(harness.OwnTool)
			continue
		case status == "cancelled":
			q.Skip(harness.Stopped)
			continue
		case kind == "invalid_tool_params" || kind == "tool_not_registered":
			q.Skip(harness.InvalidCall)
			continue
		case kind == "execution_denied":
			q.Skip(harness.Denied)
			continue
		}
		finishQwen(&p.Call, a, p.Input)
		if err := q.YieldCalls([]observation.Call{p.Call}, a.failed); err != nil {
			return err
		}
	}
	return nil
}

// withoutGuidance returns a command's output and the facts about it, without the text that hooks
// appended.
func withoutGuidance(said string) string {
	for _, fact := range [...]string{"\nProcess Group PGID: ", "\nSignal: ", "\nExit Code: "} {
		i := strings.LastIndex(said, fact)
		if i < 0 {
			continue
		}
		if end := strings.IndexByte(said[i+1:], '\n'); end >= 0 {
			return said[:i+1+end]
		}
		return said
	}
	return said
}
