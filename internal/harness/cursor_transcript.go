package harness

import (
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cairn/internal/observation"
)

// looksLikeCursor reports whether a line belongs to a transcript of Cursor: a role next to a
// message, or the end of a turn.
func looksLikeCursor(line []byte) bool {
	f := pick(line, "role", "message", "type", "sessionId", "uuid")
	if f[3] != nil || f[4] != nil {
		return false
	}
	return f[0] != nil && kindOf(f[1]) == '{' || string(f[2]) == `"turn_ended"`
}

// cursorTranscript is the state while reading a transcript of Cursor (observations §12). Its lines
// are {role, message: {content}} and {type: "turn_ended", status}. Recent transcripts do not
// contain the results of tools.
//
// They contain no ids, and times only in prompts, in minutes. So a line is identified by its
// session and its place in the file, because Cursor only appends. The session is the name of the
// file or folder. Every event has the time of the prompt before it, or of the file if no prompt
// contains a time. Whether a call succeeded is unknown; a call followed by another line counts as
// done.
type cursorTranscript struct {
	agentTranscript
	pending []observation.Call // calls that may not have run
	results map[string]int     // indexes in pending, by id
}

// readCursor reads a transcript of Cursor, always from the start (Resume is the start). Equal
// calls can only be told apart by counting them from the first.
func readCursor(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error) {
	report := newReport(o)
	t := &cursorTranscript{
		agentTranscript: newAgentTranscript(cursor, observation.MatchText, o, &report, yield),
		results:         map[string]int{},
	}
	t.session, t.agent = cursorSession(o.Path)
	t.cwd = cursorFolder(o.Path, o.Roots)
	if err := eachLine(ctx, r, o, &report, t.line); err != nil {
		return report, err
	}
	return report, t.finish(len(t.pending))
}

// cursorSession returns the session and the subagent in the path of a file. The file is
// SESSION.jsonl, possibly in a folder of that name. Subagents' files are in a folder next to it.
func cursorSession(file string) (session, agent string) {
	if file == "" {
		return "", ""
	}
	folder, name := filepath.Split(filepath.Clean(file))
	name = strings.ToValidUTF8(strings.TrimSuffix(name, ".jsonl"), "\uFFFD")
	folder = filepath.Clean(folder)
	if filepath.Base(folder) == "subagents" {
		return strings.ToValidUTF8(filepath.Base(filepath.Dir(folder)), "\uFFFD"), name
	}
	return name, ""
}

func (t *cursorTranscript) line(l line) error {
	raw, ok := l.object(t.decoder, t.skipped)
	if !ok {
		return nil
	}
	f := pick(raw, "role", "message", "type", "status", "timestamp")
	t.dated(f[4])
	place := strconv.FormatInt(l.start, 10)
	content := get(f[1], "content")
	switch role := text(f[0]); {
	case text(f[2]) == "turn_ended":
		return t.turnEnded(text(f[3]))
	case role != "user" && role != "assistant":
		t.skip(unknownLine)
		return nil
	case role == "user":
		return t.user(place, content)
	default:
		return t.assistant(place, content)
	}
}

// lineID returns the id of the line at a place in the file.
func (t *cursorTranscript) lineID(place string) string {
	return firstNonBlank(t.agent, t.session) + "@" + place
}

// user handles prompts, and results of tools in versions that write them.
func (t *cursorTranscript) user(place string, content []byte) error {
	for _, block := range toolResults(content) {
		if err := t.result(block); err != nil {
			return err
		}
	}
	said := words(content)
	if strings.TrimSpace(said) == "" {
		return nil
	}
	if err := t.yieldPending(); err != nil {
		return err
	}
	if err := t.endTurn(); err != nil {
		return err
	}
	if at, ok := cursorTime(said); ok {
		t.at = at
	}
	if t.agent != "" || t.incomplete() {
		return nil // an agent's text to its subagent is not a prompt
	}
	p := t.newEvent(observation.Prompt, onPrompt, t.lineID(place))
	if p.Text = cursorTyped(said); p.Text == "" {
		t.skip(machinePrompt)
		return nil
	}
	return t.yield(p)
}

// cursorTime parses the time that Cursor puts before a prompt:
// <timestamp>Thursday, May 28, 2026, 8:37 PM (UTC+8)</timestamp>.
func cursorTime(said string) (time.Time, bool) {
	_, rest, ok := strings.Cut(said[:min(len(said), 64<<10)], "<timestamp>")
	if !ok {
		return time.Time{}, false
	}
	stamp, _, _ := strings.Cut(rest, "</timestamp>")
	stamp = strings.TrimSpace(stamp)
	if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
		return at, true
	}
	date, zone, ok := strings.Cut(stamp, " (UTC")
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse("Monday, Jan 2, 2006, 3:04 PM", date)
	offset, ok := zoneOffset(strings.TrimSuffix(zone, ")"))
	return at.Add(-offset), err == nil && ok
}

// zoneOffset parses how far a time zone is ahead of UTC: empty, +8, -7 or +5:30.
func zoneOffset(zone string) (time.Duration, bool) {
	if zone == "" {
		return 0, true
	}
	hours, minutes, _ := strings.Cut(zone[1:], ":")
	h, err := strconv.Atoi(hours)
	m := 0
	if err == nil && minutes != "" {
		m, err = strconv.Atoi(minutes)
	}
	offset := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if zone[0] == '-' {
		offset = -offset
	}
	return offset, err == nil && (zone[0] == '+' || zone[0] == '-') && h >= 0 && h <= 14 && m >= 0 && m < 60
}

// assistant handles the agent's messages and calls.
func (t *cursorTranscript) assistant(place string, content []byte) error {
	if err := t.yieldPending(); err != nil || t.incomplete() {
		return err
	}
	if said := cursorSaid(words(content)); strings.TrimSpace(said) != "" {
		t.says(said, t.lineID(place))
	}
	n := 0
	for block := range elements(content) {
		b := pick(block, "type", "id", "name", "input")
		tool := text(b[2])
		if string(b[0]) != `"tool_use"` || strings.TrimSpace(tool) == "" {
			continue
		}
		n++
		t.acted = true
		id := firstNonBlank(text(b[1]), t.lineID(place)+"."+strconv.Itoa(n))
		t.results[id] = len(t.pending)
		input := firstOf(insideText(b[3]), b[3])
		calls := cursorCalls(id, tool, input)
		for i := range calls {
			readPieces(&calls[i], input, nil, nil)
		}
		t.pending = append(t.pending, calls...)
	}
	return nil
}

// result handles a tool's result.
func (t *cursorTranscript) result(block []byte) error {
	f := pick(block, "tool_use_id", "content", "is_error")
	i, ok := t.results[text(f[0])]
	if !ok {
		t.skip(noCall)
		return nil
	}
	delete(t.results, text(f[0]))
	response := firstOf(insideText(f[1]), f[1])
	for ; i < len(t.pending) && t.pending[i].ID == text(f[0]); i++ {
		c := &t.pending[i]
		readResponse(c, response)
		if isTrue(f[2]) {
			fail(c, "", response)
		} else {
			decideFailure(c, response)
		}
	}
	return nil
}

// yieldPending yields the calls of the previous line. Another line follows them, so they ran.
func (t *cursorTranscript) yieldPending() error {
	calls := t.pending
	t.pending = nil
	clear(t.results)
	for len(calls) > 0 {
		n := 1
		for n < len(calls) && calls[n].ID == calls[0].ID {
			n++
		}
		e := t.newEvent(observation.Tool, onToolUse, "")
		if calls[0].Failed {
			e.Source = onToolFailure
		}
		e.Calls, calls = calls[:n:n], calls[n:]
		if isOwnServer(e.Calls[0]) {
			t.skip(ownTool)
			continue
		}
		if err := t.yield(e); err != nil {
			return err
		}
	}
	return nil
}

// turnEnded handles the mark at the end of a turn. A cancelled turn has no message, and its latest
// calls may not have run.
func (t *cursorTranscript) turnEnded(status string) error {
	if status == "" || status == "success" || status == "completed" {
		if err := t.yieldPending(); err != nil {
			return err
		}
		return t.endTurn()
	}
	if n := len(t.pending); n > 0 {
		t.skipped[stopped] += n
	}
	if t.said != "" {
		t.skip(turnStopped)
	}
	t.pending, t.said, t.acted = nil, "", false
	clear(t.results)
	return nil
}
