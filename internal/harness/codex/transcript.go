package codex

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"time"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// Further reasons why a line of Codex produces no event.
const (
	typedInput = "input to a running command"
)

// copyTime is how long after its first line a forked session's file may still contain copied
// lines. Codex copies the history with the time of the fork.
const copyTime = 2 * time.Second

// isLine reports whether a line belongs to a transcript of Codex CLI. Such a line is an
// envelope with a payload. In the oldest format lines have no envelope.
func isLine(line lazyjson.Value) bool {
	f := line.Pick("type", "payload", "record_type", "id", "timestamp", "instructions", "call_id", "sessionId")
	switch {
	case f[7] != nil:
		return false
	case f[1].Kind() == '{':
		return f[0].Kind() == '"'
	}
	return f[2] != nil || f[0] == nil && f[3] != nil && f[4] != nil && f[5] != nil || f[0] != nil && f[6] != nil
}

// transcript is the state while reading a transcript of Codex CLI (observations §12). Its
// lines are envelopes {timestamp, type, payload}. Lines of the oldest files are bare payloads.
type transcript struct {
	yield   func(observation.Event) error
	resume  int64
	skipped map[string]int

	session   string
	described bool   // a session_meta line was read
	id        string // from that line; a subagent's id differs from its session's
	agent     string
	own       bool // the session is an internal one of the harness
	cwd       string
	branch    string // checked out when the session began, "" if unknown
	at        time.Time
	copied    time.Time // lines up to this time are copies

	turn     string // the id of the current turn, "" if unknown
	open     bool   // the turn has started and not ended
	prompted bool   // the turn's prompt had a separate event
	held     []heldPrompt
	said     string // the agent's latest text in the turn, "" if none
	saidAt   time.Time
	acted    bool // the agent called a tool after said
	pending  map[string]*codexCall
	running  []*codexCall    // commands whose process is still running
	scripts  map[string]bool // ids of calls that ran a script, whose output follows
}

// heldPrompt is a prompt that waits for the id of its turn. Messages to the model repeat prompts,
// but contain other texts as well. An unconfirmed message is a prompt only if the turn has no
// prompt event.
type heldPrompt struct {
	event observation.Event
	sure  bool
}

// codexCall is a call without a result yet.
type codexCall struct {
	tool     string
	calls    []observation.Call
	own      bool         // of one of cairn's own tools
	reported *codexResult // from an event, which has more details than the output
	number   string       // of the running process; for input, of the process that receives it
	at       time.Time    // the time of the output that reported the number
	turn     string

	final bool // an item reported the result
}

func readTranscript(ctx context.Context, r io.Reader, o harness.TranscriptOptions, yield func(observation.Event) error) (harness.TranscriptReport, error) {
	report := harness.NewReport(o)
	t := &transcript{
		yield: yield, resume: o.Offset, skipped: report.Skipped,
		session: sessionOfRollout(o.Path), pending: map[string]*codexCall{}, scripts: map[string]bool{},
	}
	if o.Head != nil {
		if err := t.readHead(ctx, o.Head); err != nil {
			return report, err
		}
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

// readHead reads the facts at the beginning of a file that apply to all its lines.
func (t *transcript) readHead(ctx context.Context, r io.Reader) error {
	ignored := harness.NewReport(harness.TranscriptOptions{}) // these lines were already counted
	return harness.EachObject(ctx, r, harness.TranscriptOptions{}, &ignored, func(raw lazyjson.Value, _ int64) error {
		switch kind, payload, bare := t.parts(raw); {
		case kind == "session_meta":
			t.meta(payload)
		case bare && t.cwd == "":
			t.cwd = cwdOfContext(payload)
		}
		return nil
	})
}

// sessionOfRollout returns the session in a file name, or "".
func sessionOfRollout(file string) string {
	const uuid = 36
	name, ok := strings.CutSuffix(filepath.Base(file), ".jsonl")
	if !ok || !strings.HasPrefix(name, "rollout-") || len(name) < uuid {
		return ""
	}
	if id := name[len(name)-uuid:]; strings.Count(id, "-") == 4 {
		return strings.ToValidUTF8(id, "\uFFFD")
	}
	return ""
}

func (t *transcript) skip(reason string) { t.skipped[reason]++ }

// parts returns the payload of a line without its envelope and stores the line's time.
func (t *transcript) parts(raw lazyjson.Value) (kind string, payload lazyjson.Value, bare bool) {
	f := raw.Pick("timestamp", "type", "payload", "id", "record_type")
	if at, err := time.Parse(time.RFC3339Nano, f[0].Text()); err == nil {
		t.at = at
	}
	kind = f[1].Text()
	switch {
	case f[2].Kind() == '{':
		return kind, f[2], false
	case f[4] != nil:
		return "state", raw, true
	case f[1] == nil && f[3] != nil:
		return "session_meta", raw, true
	}
	return "response_item", raw, true
}

func (t *transcript) line(raw lazyjson.Value, start int64) error {
	kind, payload, bare := t.parts(raw)
	if kind == "session_meta" {
		t.meta(payload)
		return nil
	}
	if kind == "turn_context" {
		t.cwd = lazyjson.FirstNonBlank(payload.Get("cwd").Text(), t.cwd)
	} else if bare && t.cwd == "" {
		t.cwd = cwdOfContext(payload)
	}
	switch {
	case t.own:
		t.skip(harness.OwnAgent)
	case t.session == "" || t.cwd == "" || t.at.IsZero():
		t.skip(harness.HomelessLine)
	case !t.at.After(t.copied):
		t.skip(harness.CopiedLine)
	default:
		return t.use(kind, payload, bare, start)
	}
	return nil
}

func (t *transcript) use(kind string, payload lazyjson.Value, bare bool, start int64) error {
	switch kind {
	case "response_item":
		return t.item(payload, bare, start)
	case "event_msg":
		return t.event(payload, start)
	case "turn_context":
		t.named(payload.Get("turn_id").Text())
	case "compacted":
		if t.agent != "" {
			return nil
		}
		s := t.newEvent(observation.SessionStart, harness.OnSessionStart)
		s.Text = "compact"
		return t.emit(s)
	case "state", "world_state", "inter_agent_communication", "token_usage_record":
		t.skip(harness.UnusedLine)
	default:
		t.skip(harness.UnknownLine)
	}
	return nil
}

// meta reads a session's metadata. A fork's file repeats the metadata of its origin, so only the
// first counts.
func (t *transcript) meta(payload lazyjson.Value) {
	f := payload.Pick("id", "session_id", "cwd", "source", "forked_from_id", "parent_thread_id", "timestamp", "git")
	id := f[0].Text()
	if t.described {
		if t.copied.IsZero() && id != t.id {
			t.copied = t.at.Add(copyTime)
		}
		return
	}
	t.described, t.id = true, id
	if f[4].Text() != "" {
		t.copied = t.at.Add(copyTime)
	}
	if t.at.IsZero() {
		t.at, _ = time.Parse(time.RFC3339Nano, f[6].Text())
	}
	t.cwd = lazyjson.FirstNonBlank(f[2].Text(), t.cwd)
	t.session = lazyjson.FirstNonBlank(id, t.session)
	t.branch = f[7].Get("branch").Text()
	sources := f[3].Pick("subagent", "internal")
	sub := sources[0]
	if t.own = sources[1] != nil; sub == nil {
		return
	}
	parent := lazyjson.FirstNonBlank(f[1].Text(), f[5].Text(), sub.Get("thread_spawn").Get("parent_thread_id").Text())
	switch name := sub.Text(); {
	case name == "compact" || name == "memory_consolidation":
		t.own = true
	default:
		t.agent = lazyjson.FirstNonBlank(id, name, harness.UnnamedAgent)
		t.session = lazyjson.FirstNonBlank(parent, t.session)
	}
}

// cwdOfContext returns the working directory in the context that the oldest files give to the
// model. They contain it nowhere else. It returns "" if item is not such a context.
func cwdOfContext(item lazyjson.Value) string {
	said := item.Get("content").Plain()
	if !strings.HasPrefix(strings.TrimSpace(said), "<environment_context>") {
		return ""
	}
	if _, rest, ok := strings.Cut(said, "<cwd>"); ok {
		cwd, _, _ := strings.Cut(rest, "</cwd>")
		return strings.TrimSpace(cwd)
	}
	_, rest, _ := strings.Cut(said, "Current working directory:")
	cwd, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(cwd)
}

// newEvent returns an event at the current time.
func (t *transcript) newEvent(kind observation.EventKind, source string) observation.Event {
	return observation.Event{
		Kind: kind, Source: source, Harness: name, Session: t.session, Cwd: t.cwd, At: t.at,
		PromptID: t.turn, AgentID: t.agent, Branch: t.branch, Imported: true,
	}
}

// emit yields an event after the prompts that came before it.
func (t *transcript) emit(e observation.Event) error {
	if err := t.release(true); err != nil {
		return err
	}
	return t.yield(e)
}
