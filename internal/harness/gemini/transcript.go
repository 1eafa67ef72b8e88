package gemini

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// isGeminiFile reports whether a file name belongs to a session or to the prompt log of Gemini
// CLI.
func isGeminiFile(name string) bool {
	return harness.IsLines(name) || name == "logs.json" || strings.HasPrefix(name, "session-") && strings.HasSuffix(name, ".json")
}

// Further reasons why an entry of Gemini CLI produces no event.
const (
	commandLine = "command to the harness"
)

// looksLikeGemini reports whether a file belongs to Gemini CLI: a session, as one JSON document or
// as lines, or the log of all prompts. It checks only the beginning.
func looksLikeGemini(first []byte) bool {
	start := lazyjson.Trimmed(first)
	start = start[:min(len(start), 4096)]
	has := func(name string) bool { return bytes.Contains(start, []byte(`"`+name+`"`)) }
	switch start.Kind() {
	case '{':
		return has("sessionId") && has("projectHash")
	case '[':
		return has("sessionId") && has("messageId")
	}
	return false
}

// chat is the state while reading a session file of Gemini CLI (observations §12). Earlier
// versions rewrite one document for every message. Later versions append lines: session metadata,
// messages, messages again when they have grown, and changes under $set. A log contains the
// prompts of many sessions.
type chat struct {
	harness.AgentTranscript
	options harness.TranscriptOptions
	hash    string // the hash that names the project's folder
	roots   []string

	seen     map[string]struct{} // message ids
	finished map[string]struct{} // ids of completed calls
	open     map[string]struct{} // ids of calls without an outcome yet
}

// readGemini reads a session file of Gemini CLI, always from the start (Resume is the start). A
// grown file repeats its earlier content, and its calls are recognized by their ids.
func readGemini(ctx context.Context, r io.Reader, o harness.TranscriptOptions, yield func(observation.Event) error) (harness.TranscriptReport, error) {
	report := harness.NewReport(o)
	g := &chat{
		AgentTranscript: harness.NewAgentTranscript(name, observation.MatchCount, o, &report, yield), options: o,
		seen: map[string]struct{}{}, finished: map[string]struct{}{}, open: map[string]struct{}{},
	}
	g.Session, g.Agent = agent(o.Path)
	buffered := bufio.NewReaderSize(r, 64<<10)
	read := g.readLines
	if first, _ := buffered.Peek(4096); isDocument(first) {
		read = g.readDocument
	}
	if err := read(ctx, buffered, &report); err != nil {
		return report, err
	}
	return report, g.Finish(len(g.open))
}

// isDocument reports whether a file is a document of several lines, or a log.
func isDocument(first []byte) bool {
	start := lazyjson.Trimmed(first)
	if start.Kind() == '[' {
		return true
	}
	line, _, _ := bytes.Cut(start, []byte("\n"))
	return string(lazyjson.TrimSpace(line)) == "{"
}

// agent returns the session and the subagent in the path of a file. Subagents' files are in
// a folder with the session's name.
func agent(file string) (session, agent string) {
	folder, name := filepath.Split(filepath.Clean(file))
	folder = filepath.Clean(folder)
	if filepath.Base(filepath.Dir(folder)) != "chats" {
		return "", ""
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".jsonl"), ".json")
	return strings.ToValidUTF8(filepath.Base(folder), "\uFFFD"), strings.ToValidUTF8(name, "\uFFFD")
}

func (g *chat) readLines(ctx context.Context, r *bufio.Reader, report *harness.TranscriptReport) error {
	return harness.EachObject(ctx, r, g.options, report, func(raw lazyjson.Value, _ int64) error { return g.record(raw) })
}

func (g *chat) readDocument(ctx context.Context, r *bufio.Reader, report *harness.TranscriptReport) error {
	whole, err := io.ReadAll(io.LimitReader(r, harness.MaxLine+1))
	report.Bytes = int64(len(whole))
	report.Lines = bytes.Count(whole, []byte("\n")) + 1
	if err != nil {
		return harness.Unreadable(err)
	}
	if len(whole) > harness.MaxLine {
		rest, err := io.Copy(io.Discard, r)
		report.Bytes += rest
		g.Skip(harness.HugeDocument)
		if err != nil {
			return harness.Unreadable(err)
		}
		return ctx.Err()
	}
	raw := lazyjson.Trimmed(whole)
	lazyjson.MaskNUL(raw)
	if g.Checker.IsObject(raw) {
		return g.record(raw)
	}
	if raw.Kind() == '[' && g.Checker.IsValue(raw) {
		return g.log(ctx, raw)
	}
	g.Skip(harness.BadLine)
	return nil
}

// record handles a line or a document.
func (g *chat) record(raw lazyjson.Value) error {
	f := raw.Pick("$set", "$rewindTo", "sessionId", "type", "messages")
	switch {
	case f[0].Kind() == '{':
		g.meta(f[0])
		return g.messages(f[0].Get("messages"))
	case f[1] != nil: // rewound messages happened anyway
		g.Skip(harness.UnusedLine)
		return nil
	case f[3] != nil:
		return g.message(raw)
	case f[2] != nil || f[4] != nil:
		g.meta(raw)
		g.roots = append(g.roots, foldersIn(f[4])...)
		return g.messages(f[4])
	}
	g.Skip(harness.UnknownLine)
	return nil
}

// messages handles a list of messages. After the summary of a compressed history, the list repeats
// the recent messages under new ids.
func (g *chat) messages(all lazyjson.Value) error {
	compressed := false
	for m := range all.Elements() {
		f := m.Pick("id", "type", "content")
		id := f[0].Text()
		if _, known := g.seen[id]; compressed && id != "" && !known {
			g.seen[id] = struct{}{}
			g.Skip(harness.CopiedLine)
			continue
		}
		if err := g.message(m); err != nil {
			return err
		}
		compressed = compressed || f[1].Text() == "user" && isGeminiSummary(harness.ContentText(f[2]))
	}
	return nil
}

// isGeminiSummary reports whether a text is the summary of a compressed history.
func isGeminiSummary(said string) bool {
	return strings.HasPrefix(strings.TrimSpace(said), "<state_snapshot>")
}

// meta reads the session's metadata.
func (g *chat) meta(raw lazyjson.Value) {
	f := raw.Pick("sessionId", "projectHash", "startTime", "directories", "kind")
	id := f[0].Text()
	if f[4].Text() == "subagent" && g.Agent == "" {
		g.Agent = lazyjson.FirstNonBlank(id, harness.UnnamedAgent)
	}
	if g.Agent == "" || g.Session == "" {
		g.Session = lazyjson.FirstNonBlank(id, g.Session)
	}
	g.hash = lazyjson.FirstNonBlank(f[1].Text(), g.hash)
	for dir := range f[3].Elements() {
		g.roots = append(g.roots, dir.Text())
	}
	g.Dated(f[2])
}

// lineID returns the id of a message, "" if it has none.
func (g *chat) lineID(id string) string {
	if id == "" {
		return ""
	}
	return g.Session + "/" + id
}

func (g *chat) message(raw lazyjson.Value) error {
	f := raw.Pick("id", "type", "timestamp", "content", "displayContent", "toolCalls")
	if g.Cwd == "" {
		g.Cwd = g.folder()
	}
	g.Dated(f[2])
	if g.Incomplete() {
		return nil
	}
	id := f[0].Text()
	_, again := g.seen[id]
	if id != "" {
		g.seen[id] = struct{}{}
	}
	switch f[1].Text() {
	case "user":
		if again || isResult(f[3]) {
			return nil
		}
		return g.user(id, harness.ContentText(f[3]), harness.ContentText(f[4]))
	case "gemini":
		return g.reply(id, harness.ContentText(f[3]), f[5])
	case "info", "error", "warning":
		if !again {
			g.Skip(harness.UnusedLine)
		}
		return nil
	}
	g.Skip(harness.UnknownLine)
	return nil
}

// isResult reports whether a content is the result of calls for the model.
func isResult(content lazyjson.Value) bool {
	for part := range content.Elements() {
		if part.Get("functionResponse") != nil {
			return true
		}
	}
	return false
}

// user handles a message to the model in the user's name: a prompt, or the summary that replaces a
// compressed history. shown is the part that the user saw, "" if the user saw all of it.
func (g *chat) user(id, said, shown string) error {
	if isGeminiSummary(said) {
		m := g.NewEvent(observation.Message, harness.OnPostCompact, g.lineID(id))
		m.Role, m.Text = harness.RoleSummary, said
		return g.Yield(m)
	}
	if err := g.EndTurn(); err != nil {
		return err
	}
	if g.Agent != "" {
		return nil // an agent's text to its subagent is not a prompt
	}
	p := g.NewEvent(observation.Prompt, harness.OnPrompt, g.lineID(id))
	if p.Text = typed(lazyjson.FirstNonBlank(shown, said)); p.Text == "" {
		g.Skip(harness.MachinePrompt)
		return nil
	}
	return g.Yield(p)
}

// reply handles the agent's message and its calls. Gemini CLI writes a message again when one of
// its calls is done.
func (g *chat) reply(id, said string, calls lazyjson.Value) error {
	said = geminiSaid(said)
	if _, old := g.finished["said "+id]; !old && strings.TrimSpace(said) != "" {
		g.Says(said, g.lineID(id))
		if id != "" {
			g.finished["said "+id] = struct{}{}
		}
	}
	n := 0
	for call := range calls.Elements() {
		n++
		if err := g.call(id+"#"+strconv.Itoa(n), call); err != nil {
			return err
		}
	}
	return nil
}

// call handles a call, which may still be running. place replaces a missing id.
func (g *chat) call(place string, raw lazyjson.Value) error {
	f := raw.Pick("id", "name", "args", "result", "status", "timestamp", "resultDisplay")
	id, tool := lazyjson.FirstNonBlank(f[0].Text(), place), f[1].Text()
	if _, done := g.finished[id]; done || strings.TrimSpace(tool) == "" {
		return nil
	}
	g.Acted = true
	status := f[4].Text()
	switch status {
	case "success", "error", "cancelled":
	case "":
		if !f[3].IsSet() {
			g.open[id] = struct{}{}
			return nil
		}
	default:
		g.open[id] = struct{}{}
		return nil
	}
	delete(g.open, id)
	g.finished[id] = struct{}{}
	c := call(id, tool, f[2], nil)
	a := result{said: unmarked(harness.ContentText(f[3])), display: f[6], failed: status == "error" || hasError(f[3])}
	switch why := refusal(status, a.said); {
	case harness.IsOwnCall(c):
		g.Skip(harness.OwnTool)
		return nil
	case why != harness.NeverRefused:
		g.Skip(why)
		return nil
	}
	if a.failed {
		a.complaint = a.said
	}
	a.apply(&c)
	harness.ReadPieces(&c, f[2], nil, a.display)
	g.Dated(f[5])
	return g.YieldCalls([]observation.Call{c}, a.failed)
}

// hasError reports whether the response to a function call is an error.
func hasError(result lazyjson.Value) bool {
	for part := range result.Elements() {
		if part.Get("functionResponse").Get("response").Get("error").IsSet() {
			return true
		}
	}
	return false
}

// refusal returns the reason why a call never ran, harness.NeverRefused if it ran.
func refusal(status, said string) string {
	if status == "cancelled" {
		return harness.Stopped
	}
	if status != "error" {
		return harness.NeverRefused
	}
	for _, form := range [...]struct{ start, within, why string }{
		{"[Operation Cancelled]", "", harness.Stopped},
		{"Tool ", "not found in registry", harness.InvalidCall},
		{"Tool ", "denied by policy", harness.Denied},
		{"Tool ", "blocked by hook", harness.Blocked},
		{"Tool execution blocked: ", "", harness.Blocked},
		{"Agent execution stopped by hook: ", "", harness.Blocked},
		{"params", "must ", harness.InvalidCall},
		{"Error: params", "must ", harness.InvalidCall},
		{"Invalid parameters provided", "", harness.InvalidCall},
	} {
		if strings.HasPrefix(said, form.start) && strings.Contains(said[:min(len(said), 500)], form.within) {
			return form.why
		}
	}
	return harness.NeverRefused
}

// log handles the prompt log of a project. It also contains commands to the harness, which hooks
// never see.
func (g *chat) log(ctx context.Context, entries lazyjson.Value) error {
	for entry := range entries.Elements() {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := entry.Pick("sessionId", "type", "message", "timestamp")
		said := typed(f[2].Text())
		switch {
		case f[1].Text() != "user":
			g.Skip(harness.UnknownLine)
			continue
		case strings.HasPrefix(said, "/") || strings.HasPrefix(said, "!") || said == "?":
			g.Skip(commandLine)
			continue
		case said == "":
			g.Skip(harness.MachinePrompt)
			continue
		}
		if g.Cwd == "" {
			g.Cwd = g.folder()
		}
		g.Session, g.At = f[0].Text(), g.options.ModTime
		g.Dated(f[3])
		if g.Incomplete() {
			continue
		}
		p := g.NewEvent(observation.Prompt, harness.OnPrompt, "")
		p.Text = said
		if err := g.Yield(p); err != nil {
			return err
		}
	}
	return nil
}
