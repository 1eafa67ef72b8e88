package harness

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/harness/lazyjson"
)

// IsLines reports whether a file name belongs to a transcript in lines. Names of Claude Code's
// internal files do not.
func IsLines(name string) bool {
	return strings.HasSuffix(name, ".jsonl") && name != "journal.jsonl" && !IsHostAgent(AgentOfFile(name))
}

// MaxSettled limits how many bytes of a transcript's end a hook reads. Earlier lines were read at
// the ends of earlier turns, or are read by the next import.
const MaxSettled = 2 << 20

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
	BadLine       = "invalid JSON"
	CopiedLine    = "copy of another session's line"
	HugeDocument  = "document over 64 MiB"
	TornLine      = "torn last line"
	HugeLine      = "line over 64 MiB"
	RepeatedLine  = "repeated line"
	UnknownLine   = "unknown type"
	UnusedLine    = "type without use"
	HomelessLine  = "no session, directory or time"
	MetaLine      = "context from the harness"
	MachinePrompt = "prompt without words of the user"
	OwnMessage    = "message of the harness"
	OwnAgent      = "agent of the harness"
	OwnTool       = "call of cairn"
	TurnStopped   = "message of a stopped turn"
	NoCall        = "result without call"
	NoResult      = "call without result"
)

// NewReport returns the report before the first line.
func NewReport(o TranscriptOptions) TranscriptReport {
	return TranscriptReport{Resume: o.Offset, Skipped: map[string]int{}}
}

// FromStart returns a reader of the whole file, for harnesses whose files are always read from the
// start. It adjusts the options accordingly.
func FromStart(r io.Reader, o *TranscriptOptions) io.Reader {
	if o.Offset > 0 && o.Head != nil {
		r = io.MultiReader(o.Head, r)
		o.Offset, o.Head = 0, nil
	}
	return r
}

// Unreadable returns the error of a reader that failed.
func Unreadable(err error) error {
	return fault.Wrap(err, fault.Unavailable, "unreadable_transcript", "cannot read the transcript")
}

// EachObject passes the JSON object of every line of a transcript to use, with the position of the
// line. It counts lines, bytes and what it skips in the report.
func EachObject(ctx context.Context, r io.Reader, o TranscriptOptions, report *TranscriptReport, use func(raw lazyjson.Value, start int64) error) error {
	lines := NewLineReader(r, o.Offset)
	check := lazyjson.NewChecker()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := lines.Next()
		report.Bytes = lines.offset - o.Offset
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return Unreadable(err)
		}
		report.Lines++
		if raw, ok := l.object(check, report.Skipped); ok {
			if err := use(raw, l.start); err != nil {
				return err
			}
		}
	}
}

// UnnamedAgent is the id of subagents in old transcripts, whose lines are marked as a subagent's
// but contain no id.
const UnnamedAgent = "sidechain"

// IsHostAgent reports whether an agent is an internal one, with which Claude Code summarizes the
// conversation or guesses the next prompt. Transcripts of such agents repeat the session's.
func IsHostAgent(id string) bool {
	for _, label := range [...]string{"acompact-", "aprompt_suggestion-", "aside_question-"} {
		if strings.HasPrefix(id, label) {
			return true
		}
	}
	return false
}

// AgentOfFile returns the agent in the name of a subagent's transcript, "" for the transcript of a
// session.
func AgentOfFile(path string) string {
	id, ok := strings.CutPrefix(filepath.Base(path), "agent-")
	if !ok {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSuffix(id, ".jsonl"), "\uFFFD")
}
