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

// TranscriptOptions says which part of which file is read.
type TranscriptOptions struct {
	// Path of the file, used only for the agent id in the name of a subagent's
	// transcript, if its lines do not contain it. May be empty.
	Path string
	// Offset is the place in the file of the reader's first byte, the start of a
	// line: 0, or the Resume of an earlier report.
	Offset int64
	// Head reads the file from its beginning, where some harnesses state once
	// what holds for all lines. Only with an Offset over 0; nil if there is no
	// way back, and then such lines make no event.
	Head io.Reader
	// ModTime of the file, for harnesses whose lines have no time.
	ModTime time.Time
	// Roots are the folders of projects that are known, for harnesses whose
	// transcripts contain the folder as a hash or a name that lost its separators.
	Roots []string
}

// TranscriptReport reports what was read and what was left out.
type TranscriptReport struct {
	Harness string // that wrote it, "" if unknown
	Lines   int    // blank ones included
	Bytes   int64  // from the offset on
	// Resume is the place in the file where the next import begins once the
	// file has grown: the start of the last turn, so that its calls without
	// result and its unfinished message are seen again.
	Resume int64
	// Skipped counts by reason what made no event though it looked like one:
	// lines, calls or prompts. Never nil.
	Skipped map[string]int
}

// Reasons for which a line makes no event, besides those of refusal.
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

// ReadTranscript reads a transcript of any harness (observations §12), recognised by
// what stands in it and not by its place, and yields its events in the order of
// the file, ready to be recorded as imported: prompts before what they caused, a
// call once its result is there, a turn's message when the turn is over or the
// file ends. No starts and ends of sessions are made up; only compactions are
// reported. Subagents' calls and messages belong to the parent session and carry the
// agent's id.
//
// Lines that cannot be used are counted and left out, whatever is wrong with
// them. Reading the same bytes again yields the same events.
//
// An error of yield or ctx ends the reading and is returned as it is; if r
// fails, the error is Unavailable, code unreadable_transcript. The report covers
// what was read until then, but its Resume is where this reading began.
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

// recognise reads the beginning of a transcript up to the first line that shows
// which harness wrote it, "" if none does, and returns what it has read.
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

// writerOf reports which harness writes such lines, "" if it is not recognisable by
// this one.
func writerOf(line []byte) string {
	for _, h := range Harnesses() {
		if h.writes(line) {
			return h.Name
		}
	}
	return ""
}

// documentWriter reports which harness writes files that begin so: documents of many lines,
// or of a very long one.
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

// eachLine hands every line of a transcript to use, and notes in the report how
// much was read.
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

// readClaude reads a transcript of Claude Code.
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

// transcript is the state of one reading.
type transcript struct {
	yield   func(observation.Event) error
	agent   string // of the file, "" for a main session
	resume  int64
	skipped map[string]int
	decoder *jsontext.Decoder
	seen    map[string]struct{}    // ids of lines
	pending map[string]pendingCall // by tool use id
	main    *thread
	agents  []*thread // of the subagents of this turn, in order of appearance
	byAgent map[string]*thread
	last    envelope // the facts of the latest line, for lines with fewer facts
}

// pendingCall is a call whose result has not come yet.
type pendingCall struct {
	call  observation.Call
	input []byte // of an edit or a write
	own   bool   // of cairn itself
}

// thread is the conversation with one agent.
type thread struct {
	agent   string // "" for the main agent
	prompt  string // the harness's id of the turn's prompt
	yielded bool   // the prompt of that id has been yielded
	stopped bool   // by the user
	acted   bool   // called a tool after its latest text, or is about to
	text    string // the latest, "" if none
	at      envelope
}

// envelope is what all lines of a conversation have.
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

// envelope reads what all lines have in common, and reports whether the line is
// to be used.
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

// unnamedAgent stands for the subagents of old transcripts, whose lines are
// marked as theirs without saying whose.
const unnamedAgent = "sidechain"

// isHostAgent reports whether an agent is one by which Claude Code summarises the
// conversation or guesses the next prompt. Their transcripts repeat the
// session's.
func isHostAgent(id string) bool {
	for _, label := range [...]string{"acompact-", "aprompt_suggestion-", "aside_question-"} {
		if strings.HasPrefix(id, label) {
			return true
		}
	}
	return false
}

// agentOfFile returns the agent whose own transcript a file is, by its name; "" for
// the transcript of a session.
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
