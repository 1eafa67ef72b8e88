package harness

import (
	"bytes"
	"context"
	"io"
	"strings"

	"cairn/internal/observation"
)

// isQwenLine reports whether a line belongs to a transcript of Qwen Code: Claude Code's envelope
// around a message of Gemini CLI.
func isQwenLine(line []byte) bool {
	f := pick(line, "sessionId", "uuid", "type", "message", "systemPayload")
	if kindOf(f[0]) != '"' || kindOf(f[1]) != '"' || kindOf(f[2]) != '"' {
		return false
	}
	return kindOf(f[4]) == '{' || get(f[3], "parts") != nil
}

// qwenChat is the state while reading a transcript of Qwen Code. Its lines are prompts, replies
// with calls, and results, each with an id. The file is always read from the start, because equal
// calls are counted from the first.
type qwenChat struct {
	agentTranscript
	branch string
	seen   map[string]struct{} // line ids
	open   map[string]pendingCall
}

func readQwen(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error) {
	report := newReport(o)
	q := &qwenChat{
		agentTranscript: newAgentTranscript(qwen, observation.MatchCount, o, &report, yield),
		seen:            map[string]struct{}{}, open: map[string]pendingCall{},
	}
	var err error
	if r, err = fromStart(r, &o); err != nil {
		return report, unreadable(err)
	}
	err = eachLine(ctx, r, o, &report, func(l line) error {
		raw, ok := l.object(q.decoder, q.skipped)
		if !ok {
			return nil
		}
		return q.record(raw)
	})
	if report.Resume = 0; err != nil {
		return report, err
	}
	return report, q.finish(len(q.open))
}

// fromStart returns a reader of the whole file, for harnesses whose files are always read from the
// start. It adjusts the options accordingly.
func fromStart(r io.Reader, o *TranscriptOptions) (io.Reader, error) {
	if o.Offset > 0 && o.Head != nil {
		r = io.MultiReader(o.Head, r)
		o.Offset, o.Head = 0, nil
	}
	return r, nil
}

func (q *qwenChat) record(raw []byte) error {
	f := pick(raw, "uuid", "sessionId", "timestamp", "type", "cwd", "gitBranch", "message", "toolCallResult", "subtype", "isSidechain")
	id := text(f[0])
	if _, again := q.seen[id]; again && id != "" {
		q.skip(repeatedLine)
		return nil
	}
	q.seen[id] = struct{}{}
	q.session, q.cwd, q.branch = text(f[1]), text(f[4]), text(f[5])
	q.dated(f[2])
	switch {
	case q.incomplete():
		return nil
	case isTrue(f[9]):
		q.skip(ownAgent)
		return nil
	}
	parts := get(f[6], "parts")
	switch text(f[3]) {
	case "user":
		return q.user(id, parts)
	case "assistant":
		q.reply(id, parts)
		return nil
	case "tool_result":
		return q.result(parts, f[7])
	case "system":
		if text(f[8]) == "chat_compression" {
			s := q.newEvent(observation.SessionStart, onSessionStart, id)
			s.Text = "compact"
			return q.yield(s)
		}
		q.skip(unusedLine)
		return nil
	}
	q.skip(unknownLine)
	return nil
}

// user handles a prompt. The text of hooks and referenced files is in separate parts after the
// user's text.
func (q *qwenChat) user(id string, parts []byte) error {
	said := ""
	for part := range elements(parts) {
		if said = geminiTyped(partText(part)); strings.TrimSpace(said) != "" {
			break
		}
	}
	if strings.TrimSpace(said) == "" {
		q.skip(machinePrompt)
		return nil
	}
	if err := q.endTurn(); err != nil {
		return err
	}
	p := q.newEvent(observation.Prompt, onPrompt, id)
	p.Text, p.Branch = said, q.branch
	return q.yield(p)
}

func (q *qwenChat) reply(id string, parts []byte) {
	if said := geminiText(parts); strings.TrimSpace(said) != "" {
		q.says(said, id)
		q.spoke.Branch = q.branch
	}
	for part := range elements(parts) {
		call := get(part, "functionCall")
		f := pick(call, "id", "name", "args")
		tool := text(f[1])
		if strings.TrimSpace(tool) == "" {
			continue
		}
		q.acted = true
		q.open[text(f[0])] = pendingCall{call: qwenCall(text(f[0]), tool, f[2]), input: bytes.Clone(f[2])}
	}
}

func (q *qwenChat) result(parts, outcome []byte) error {
	o := pick(outcome, "callId", "status", "resultDisplay", "error", "errorType")
	status, kind := text(o[1]), text(o[4])
	for part := range elements(parts) {
		f := pick(get(part, "functionResponse"), "id", "response")
		id := text(f[0])
		p, ok := q.open[id]
		if !ok {
			q.skip(noCall)
			continue
		}
		delete(q.open, id)
		r := pick(f[1], "output", "error")
		a := geminiResult{said: text(r[0]), display: o[2], failed: status == "error" || r[0] == nil && isThere(r[1]), complaint: text(r[1])}
		switch {
		case isOwnServer(p.call):
			q.skip(ownTool)
			continue
		case status == "cancelled":
			q.skip(stopped)
			continue
		case kind == "invalid_tool_params" || kind == "tool_not_registered":
			q.skip(invalidCall)
			continue
		case kind == "execution_denied":
			q.skip(denied)
			continue
		}
		source := onToolUse
		if a.failed {
			source = onToolFailure
		}
		finishQwen(&p.call, a, p.input)
		e := q.newEvent(observation.Tool, source, "")
		e.Calls = []observation.Call{p.call}
		if err := q.yield(e); err != nil {
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
