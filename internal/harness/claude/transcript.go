package claude

import (
	"context"
	"io"
	"time"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// isLine reports whether a line looks like one of Claude Code's. Lines of Codex and Qwen Code
// may look the same.
func isLine(line lazyjson.Value) bool {
	f := line.Pick("type", "sessionId", "uuid", "leafUuid")
	return f[0] != nil && lazyjson.First(f[1:]...) != nil
}

func readTranscript(ctx context.Context, r io.Reader, o harness.TranscriptOptions, yield func(observation.Event) error) (harness.TranscriptReport, error) {
	report := harness.NewReport(o)
	t := &transcript{
		yield:   yield,
		agent:   harness.AgentOfFile(o.Path),
		resume:  o.Offset,
		skipped: report.Skipped,
		seen:    map[string]struct{}{},
		pending: map[string]harness.PendingCall{},
		main:    &thread{},
		byAgent: map[string]*thread{},
	}
	if err := harness.EachObject(ctx, r, o, &report, t.line); err != nil {
		return report, err
	}
	if err := t.end(); err != nil {
		return report, err
	}
	report.Resume = t.resume
	return report, nil
}

// transcript is the state while reading a transcript.
type transcript struct {
	yield   func(observation.Event) error
	agent   string // the subagent that the file belongs to, "" for a main session
	resume  int64
	skipped map[string]int
	seen    map[string]struct{}            // ids of lines
	pending map[string]harness.PendingCall // by tool use id
	main    *thread
	agents  []*thread // the subagents of this turn, in order of appearance
	byAgent map[string]*thread
	last    envelope // the facts of the latest line, for lines that lack them
}

// thread is the conversation with one agent.
type thread struct {
	agent   string // "" for the main agent
	prompt  string // the harness's id of the turn's prompt
	yielded bool   // the prompt with that id has been yielded
	stopped bool   // stopped by the user
	acted   bool   // the agent called a tool after text, or is about to
	text    string // the latest text, "" if none
	at      envelope
}

// envelope contains the fields that all lines of a conversation have.
type envelope struct {
	id        string
	session   string
	cwd       string
	agent     string
	prompt    string
	branch    string
	at        time.Time
	sidechain bool
	meta      bool
}

func (t *transcript) skip(reason string) { t.skipped[reason]++ }

func (t *transcript) line(raw lazyjson.Value, start int64) error {
	switch kind := string(raw.Get("type")); kind {
	case `"user"`, `"assistant"`, `"system"`, `"attachment"`:
		e, ok := t.envelope(raw)
		if !ok {
			return nil
		}
		return t.conversation(kind, raw, e, start)
	case `"progress"`, `"summary"`, `"file-history-snapshot"`, `"file-history-delta"`, `"queue-operation"`,
		`"mode"`, `"permission-mode"`, `"ai-title"`, `"custom-title"`, `"agent-name"`, `"last-prompt"`:
		t.skip(harness.UnusedLine)
	default:
		t.skip(harness.UnknownLine)
	}
	return nil
}

func (t *transcript) conversation(kind string, raw lazyjson.Value, e envelope, start int64) error {
	switch kind {
	case `"user"`:
		return t.user(raw, e, start)
	case `"assistant"`:
		return t.assistant(raw, e)
	case `"system"`:
		return t.system(raw, e)
	default:
		return t.attachment(raw, e)
	}
}

// envelope reads the common fields of a line. It reports whether the line is usable.
func (t *transcript) envelope(raw lazyjson.Value) (envelope, bool) {
	f := raw.Pick("uuid", "sessionId", "cwd", "timestamp", "isSidechain", "agentId", "promptId", "isMeta", "gitBranch")
	e := envelope{
		id: f[0].Text(), session: f[1].Text(), cwd: f[2].Text(),
		agent: f[5].Text(), prompt: f[6].Text(), meta: f[7].IsTrue(), branch: f[8].Text(),
	}
	e.sidechain = f[4].IsTrue() || e.agent != "" || t.agent != ""
	if e.id != "" {
		if _, repeated := t.seen[e.id]; repeated {
			t.skip(harness.RepeatedLine)
			return e, false
		}
		t.seen[e.id] = struct{}{}
	}
	e.session = lazyjson.FirstNonBlank(e.session, t.last.session)
	e.cwd = lazyjson.FirstNonBlank(e.cwd, t.last.cwd)
	var err error
	if e.at, err = time.Parse(time.RFC3339Nano, f[3].Text()); err != nil {
		e.at = t.last.at
	}
	if e.session == "" || e.cwd == "" || e.at.IsZero() {
		t.skip(harness.HomelessLine)
		return e, false
	}
	t.last = e
	if !e.sidechain {
		return e, true
	}
	e.agent = lazyjson.FirstNonBlank(e.agent, t.agent, harness.UnnamedAgent)
	if harness.IsHostAgent(e.agent) {
		t.skip(harness.OwnAgent)
		return e, false
	}
	return e, true
}

// thread returns the conversation that a line belongs to.
func (t *transcript) thread(e envelope) *thread {
	if !e.sidechain {
		return t.main
	}
	th := t.byAgent[e.agent]
	if th == nil {
		th = &thread{agent: e.agent}
		t.byAgent[e.agent] = th
		t.agents = append(t.agents, th)
	}
	return th
}

func (e envelope) event(kind observation.EventKind, source string) observation.Event {
	return observation.Event{
		Kind: kind, Source: source, Harness: name, Session: e.session, Cwd: e.cwd, At: e.at,
		PromptID: e.prompt, AgentID: e.agent, LineID: e.id, Branch: e.branch, Imported: true,
	}
}
