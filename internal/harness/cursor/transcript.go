package cursor

import (
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// isLine reports whether a line belongs to a transcript of Cursor: a role next to a
// message, or the end of a turn.
func isLine(line lazyjson.Value) bool {
	f := line.Pick("role", "message", "type", "sessionId", "uuid")
	if f[3] != nil || f[4] != nil {
		return false
	}
	return f[0] != nil && f[1].Kind() == '{' || string(f[2]) == `"turn_ended"`
}

// transcript is the state while reading a transcript of Cursor (observations §12). Its lines
// are {role, message: {content}} and {type: "turn_ended", status}. Recent transcripts do not
// contain the results of tools.
//
// They contain no ids, and times only in prompts, in minutes. So a line is identified by its
// session and its place in the file, because Cursor only appends. The session is the name of the
// file or folder. Every event has the time of the prompt before it, or of the file if no prompt
// contains a time. Whether a call succeeded is unknown; a call followed by another line counts as
// done.
type transcript struct {
	harness.AgentTranscript
	pending []observation.Call // calls that may not have run
	results map[string]int     // indexes in pending, by id
}

// readTranscript reads a transcript of Cursor, always from the start (Resume is the start). Equal
// calls can only be told apart by counting them from the first.
func readTranscript(ctx context.Context, r io.Reader, o harness.TranscriptOptions, yield func(observation.Event) error) (harness.TranscriptReport, error) {
	report := harness.NewReport(o)
	t := &transcript{
		AgentTranscript: harness.NewAgentTranscript(name, observation.MatchText, o, &report, yield),
		results:         map[string]int{},
	}
	t.Session, t.Agent = session(o.Path)
	t.Cwd = folder(o.Path, o.Roots)
	if err := harness.EachObject(ctx, r, o, &report, t.line); err != nil {
		return report, err
	}
	return report, t.Finish(len(t.pending))
}

// session returns the session and the subagent in the path of a file. The file is
// SESSION.jsonl, possibly in a folder of that name. Subagents' files are in a folder next to it.
func session(file string) (session, agent string) {
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

func (t *transcript) line(raw lazyjson.Value, start int64) error {
	f := raw.Pick("role", "message", "type", "status", "timestamp")
	t.Dated(f[4])
	place := strconv.FormatInt(start, 10)
	content := f[1].Get("content")
	switch role := f[0].Text(); {
	case f[2].Text() == "turn_ended":
		return t.turnEnded(f[3].Text())
	case role != "user" && role != "assistant":
		t.Skip(harness.UnknownLine)
		return nil
	case role == "user":
		return t.user(place, content)
	default:
		return t.assistant(place, content)
	}
}

// lineID returns the id of the line at a place in the file.
func (t *transcript) lineID(place string) string {
	return lazyjson.FirstNonBlank(t.Agent, t.Session) + "@" + place
}

// user handles prompts, and results of tools in versions that write them.
func (t *transcript) user(place string, content lazyjson.Value) error {
	for _, block := range harness.ToolResults(content) {
		if err := t.result(block); err != nil {
			return err
		}
	}
	said := harness.MessageText(content)
	if strings.TrimSpace(said) == "" {
		return nil
	}
	if err := t.yieldPending(); err != nil {
		return err
	}
	if err := t.EndTurn(); err != nil {
		return err
	}
	if at, ok := cursorTime(said); ok {
		t.At = at
	}
	if t.Agent != "" || t.Incomplete() {
		return nil // an agent's text to its subagent is not a prompt
	}
	p := t.NewEvent(observation.Prompt, harness.OnPrompt, t.lineID(place))
	if p.Text = typed(said); p.Text == "" {
		t.Skip(harness.MachinePrompt)
		return nil
	}
	return t.Yield(p)
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
func (t *transcript) assistant(place string, content lazyjson.Value) error {
	if err := t.yieldPending(); err != nil || t.Incomplete() {
		return err
	}
	if said := said(harness.MessageText(content)); strings.TrimSpace(said) != "" {
		t.Says(said, t.lineID(place))
	}
	n := 0
	for block := range content.Elements() {
		b := block.Pick("type", "id", "name", "input")
		tool := b[2].Text()
		if string(b[0]) != `"tool_use"` || strings.TrimSpace(tool) == "" {
			continue
		}
		n++
		t.Acted = true
		id := lazyjson.FirstNonBlank(b[1].Text(), t.lineID(place)+"."+strconv.Itoa(n))
		t.results[id] = len(t.pending)
		input := b[3].Unwrapped()
		calls := calls(id, tool, input)
		for i := range calls {
			harness.ReadPieces(&calls[i], input, nil, nil)
		}
		t.pending = append(t.pending, calls...)
	}
	return nil
}

// result handles a tool's result.
func (t *transcript) result(block lazyjson.Value) error {
	f := block.Pick("tool_use_id", "content", "is_error")
	i, ok := t.results[f[0].Text()]
	if !ok {
		t.Skip(harness.NoCall)
		return nil
	}
	delete(t.results, f[0].Text())
	response := f[1].Unwrapped()
	for ; i < len(t.pending) && t.pending[i].ID == f[0].Text(); i++ {
		c := &t.pending[i]
		harness.ReadResponse(c, response)
		if f[2].IsTrue() {
			harness.SetFailed(c, "", response)
		} else {
			harness.DecideFailure(c, response)
		}
	}
	return nil
}

// yieldPending yields the calls of the previous line. Another line follows them, so they ran.
func (t *transcript) yieldPending() error {
	calls := t.pending
	t.pending = nil
	clear(t.results)
	for len(calls) > 0 {
		n := 1
		for n < len(calls) && calls[n].ID == calls[0].ID {
			n++
		}
		e := t.NewEvent(observation.Tool, harness.OnToolUse, "")
		if calls[0].Failed {
			e.Source = harness.OnToolFailure
		}
		e.Calls, calls = calls[:n:n], calls[n:]
		if harness.IsOwnCall(e.Calls[0]) {
			t.Skip(harness.OwnTool)
			continue
		}
		if err := t.Yield(e); err != nil {
			return err
		}
	}
	return nil
}

// turnEnded handles the mark at the end of a turn. A cancelled turn has no message, and its latest
// calls may not have run.
func (t *transcript) turnEnded(status string) error {
	if status == "" || status == "success" || status == "completed" {
		if err := t.yieldPending(); err != nil {
			return err
		}
		return t.EndTurn()
	}
	if n := len(t.pending); n > 0 {
		t.Skipped[harness.Stopped] += n
	}
	if t.Said != "" {
		t.Skip(harness.TurnStopped)
	}
	t.pending, t.Said, t.Acted = nil, "", false
	clear(t.results)
	return nil
}
