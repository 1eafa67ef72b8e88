package harness

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"cairn/internal/fault"
	"cairn/internal/observation"
)

// TranscriptOptions describes the file and the part of it to read.
type TranscriptOptions struct {
	// Path of the file, used only for facts that the file's lines do not contain, such as a
	// subagent's id or the folder. May be empty.
	Path string
	// Offset is the position of the reader's first byte in the file: 0, or the Resume of an
	// earlier report. It is always the start of a line.
	Offset int64
	// Head reads the file from its beginning, which in some harnesses contains facts about all
	// lines. It is used only if Offset is over 0. With a nil Head, lines that need these facts
	// produce no event.
	Head io.Reader
	// ModTime is the file's modification time, for harnesses whose lines contain no time.
	ModTime time.Time
	// Roots are the folders of known projects. They are used for harnesses whose transcripts
	// contain the folder only as a hash or as a name without separators.
	Roots []string
}

// TranscriptReport reports what was read and what was skipped.
type TranscriptReport struct {
	Harness string // the harness that wrote the file, "" if unknown
	Lines   int    // including blank lines
	Bytes   int64  // counted from the offset
	// Resume is the position at which the next import begins after the file has grown. It is the
	// start of the last turn, so that calls without a result and an unfinished message are read
	// again.
	Resume int64
	// Skipped counts lines, calls and prompts that produced no event, by reason. It is never nil.
	Skipped map[string]int
}

// Reasons why a line produces no event, in addition to those of refusal.
const (
	badLine       = "invalid JSON"
	tornLine      = "torn last line"
	hugeLine      = "line over 64 MiB"
	repeatedLine  = "repeated line"
	unknownLine   = "unknown type"
	unusedLine    = "type without use"
	homelessLine  = "no session, directory or time"
	metaLine      = "context from the harness"
	machinePrompt = "prompt without words of the user"
	ownMessage    = "message of the harness"
	ownAgent      = "agent of the harness"
	ownTool       = "call of cairn"
	turnStopped   = "message of a stopped turn"
	noCall        = "result without call"
	noResult      = "call without result"
)

// ReadTranscript reads a transcript of any harness (observations §12) and yields its events. It
// recognizes the harness by the content of the file, not by its path. The events are in the order
// of the file and ready to be recorded as imported. Prompts come before their calls. A call is
// yielded with its result, a turn's message when the turn is over or the file ends. ReadTranscript
// does not invent starts and ends of sessions; it only reports compactions. Subagents' calls and
// messages belong to the parent session and contain the agent's id.
//
// Unusable lines are counted and skipped, whatever is wrong with them. Reading the same bytes
// again yields the same events.
//
// An error of yield or ctx stops the reading and is returned unchanged. If r fails, the error is
// Unavailable, code unreadable_transcript. The report then covers the part that was read, but its
// Resume is the position where this reading began.
func ReadTranscript(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error) {
	if err := ctx.Err(); err != nil {
		return newReport(o), err
	}
	head := o.Head
	if head == nil {
		head = r
	}
	writer, seen, err := recognise(head)
	if err != nil {
		return newReport(o), unreadable(err)
	}
	if o.Head == nil {
		r = io.MultiReader(bytes.NewReader(seen), r)
	} else {
		o.Head = bytes.NewReader(seen)
	}
	report, err := senderOf(observation.Event{Harness: writer}).read(ctx, r, o, yield) // also if the writer is unknown
	report.Harness = writer
	return report, err
}

// recognise returns the harness that wrote a transcript, "" if unknown. It reads the beginning up
// to the first line that identifies the harness, and also returns the bytes that it has read.
func recognise(r io.Reader) (writer string, read []byte, err error) {
	const enough = 8 << 20
	var seen bytes.Buffer
	lines := newLineReader(io.TeeReader(io.LimitReader(r, enough), &seen), 0)
	dec := lenient(nil)
	for {
		l, err := lines.next()
		if errors.Is(err, io.EOF) {
			return documentWriter(seen.Bytes()), seen.Bytes(), nil
		}
		if err != nil {
			return "", nil, err
		}
		raw := bytes.Clone(trimSpace(bytes.TrimPrefix(l.text, []byte(byteOrderMark))))
		maskNUL(raw)
		if !isObject(dec, raw) {
			continue
		}
		if writer := writerOf(raw); writer != "" {
			return writer, seen.Bytes(), nil
		}
	}
}

// writerOf returns the harness that writes such lines, "" if this line does not identify it.
func writerOf(line []byte) string {
	for _, h := range Harnesses() {
		if h.writes(line) {
			return h.Name
		}
	}
	return ""
}

// documentWriter returns the harness that writes files with this beginning, "" if unknown. Such
// files are documents with many lines or one very long line.
func documentWriter(head []byte) string {
	for _, h := range Harnesses() {
		if h.document != nil && h.document(head) {
			return h.Name
		}
	}
	return ""
}

func isClaudeLine(line []byte) bool {
	f := pick(line, "type", "sessionId", "uuid", "leafUuid")
	return f[0] != nil && firstOf(f[1:]...) != nil && !isCodexLine(line) && !isQwenLine(line)
}

func newReport(o TranscriptOptions) TranscriptReport {
	return TranscriptReport{Resume: o.Offset, Skipped: map[string]int{}}
}

func unreadable(err error) error {
	return fault.Wrap(err, fault.Unavailable, "unreadable_transcript", "cannot read the transcript")
}

// eachLine passes every line of a transcript to use, and counts lines and bytes in the report.
func eachLine(ctx context.Context, r io.Reader, o TranscriptOptions, report *TranscriptReport, use func(line) error) error {
	lines := newLineReader(r, o.Offset)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := lines.next()
		report.Bytes = lines.offset - o.Offset
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
		report.Lines++
		if err := use(l); err != nil {
			return err
		}
	}
}

func readClaude(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error) {
	report := newReport(o)
	t := &transcript{
		yield:   yield,
		agent:   agentOfFile(o.Path),
		resume:  o.Offset,
		skipped: report.Skipped,
		seen:    map[string]struct{}{},
		pending: map[string]pendingCall{},
		main:    &thread{},
		byAgent: map[string]*thread{},
		decoder: lenient(nil),
	}
	if err := eachLine(ctx, r, o, &report, t.line); err != nil {
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
	decoder *jsontext.Decoder
	seen    map[string]struct{}    // ids of lines
	pending map[string]pendingCall // by tool use id
	main    *thread
	agents  []*thread // the subagents of this turn, in order of appearance
	byAgent map[string]*thread
	last    envelope // the facts of the latest line, for lines that lack them
}

// pendingCall is a call without a result yet.
type pendingCall struct {
	call  observation.Call
	input []byte // the input of an edit or a write
	own   bool   // a call of one of cairn's own tools
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

func (t *transcript) line(l line) error {
	raw, ok := l.object(t.decoder, t.skipped)
	if !ok {
		return nil
	}
	switch kind := string(get(raw, "type")); kind {
	case `"user"`, `"assistant"`, `"system"`, `"attachment"`:
		e, ok := t.envelope(raw)
		if !ok {
			return nil
		}
		return t.conversation(kind, raw, e, l.start)
	case `"progress"`, `"summary"`, `"file-history-snapshot"`, `"file-history-delta"`, `"queue-operation"`,
		`"mode"`, `"permission-mode"`, `"ai-title"`, `"custom-title"`, `"agent-name"`, `"last-prompt"`:
		t.skip(unusedLine)
	default:
		t.skip(unknownLine)
	}
	return nil
}

func (t *transcript) conversation(kind string, raw []byte, e envelope, start int64) error {
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
func (t *transcript) envelope(raw []byte) (envelope, bool) {
	f := pick(raw, "uuid", "sessionId", "cwd", "timestamp", "isSidechain", "agentId", "promptId", "isMeta", "gitBranch")
	e := envelope{
		id: text(f[0]), session: text(f[1]), cwd: text(f[2]),
		agent: text(f[5]), prompt: text(f[6]), meta: isTrue(f[7]), branch: text(f[8]),
	}
	e.sidechain = isTrue(f[4]) || e.agent != "" || t.agent != ""
	if e.id != "" {
		if _, repeated := t.seen[e.id]; repeated {
			t.skip(repeatedLine)
			return e, false
		}
		t.seen[e.id] = struct{}{}
	}
	e.session = firstNonBlank(e.session, t.last.session)
	e.cwd = firstNonBlank(e.cwd, t.last.cwd)
	var err error
	if e.at, err = time.Parse(time.RFC3339Nano, text(f[3])); err != nil {
		e.at = t.last.at
	}
	if e.session == "" || e.cwd == "" || e.at.IsZero() {
		t.skip(homelessLine)
		return e, false
	}
	t.last = e
	if !e.sidechain {
		return e, true
	}
	e.agent = firstNonBlank(e.agent, t.agent, unnamedAgent)
	if isHostAgent(e.agent) {
		t.skip(ownAgent)
		return e, false
	}
	return e, true
}

// unnamedAgent is the id of subagents in old transcripts, whose lines are marked as a subagent's
// but contain no id.
const unnamedAgent = "sidechain"

// isHostAgent reports whether an agent is an internal one, with which Claude Code summarizes the
// conversation or guesses the next prompt. Transcripts of such agents repeat the session's.
func isHostAgent(id string) bool {
	for _, label := range [...]string{"acompact-", "aprompt_suggestion-", "aside_question-"} {
		if strings.HasPrefix(id, label) {
			return true
		}
	}
	return false
}

// agentOfFile returns the agent in the name of a subagent's transcript, "" for the transcript of a
// session.
func agentOfFile(path string) string {
	id, ok := strings.CutPrefix(filepath.Base(path), "agent-")
	if !ok {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSuffix(id, ".jsonl"), "\uFFFD")
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
		Kind: kind, Source: source, Harness: claude, Session: e.session, Cwd: e.cwd, At: e.at,
		PromptID: e.prompt, AgentID: e.agent, LineID: e.id, Branch: e.branch, Imported: true,
	}
}
