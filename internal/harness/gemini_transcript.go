package harness

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"cairn/internal/observation"
)

// Further reasons why an entry of Gemini CLI produces no event.
const (
	hugeDocument = "document over 64 MiB"
	commandLine  = "command to the harness"
)

// looksLikeGemini reports whether a file belongs to Gemini CLI: a session, as one JSON document or
// as lines, or the log of all prompts. It checks only the beginning.
func looksLikeGemini(first []byte) bool {
	first = trimSpace(bytes.TrimPrefix(first, []byte(byteOrderMark)))
	first = first[:min(len(first), 4096)]
	has := func(name string) bool { return bytes.Contains(first, []byte(`"`+name+`"`)) }
	switch kindOf(first) {
	case '{':
		return has("sessionId") && has("projectHash")
	case '[':
		return has("sessionId") && has("messageId")
	}
	return false
}

// geminiChat is the state while reading a session file of Gemini CLI (observations §12). Earlier
// versions rewrite one document for every message. Later versions append lines: session metadata,
// messages, messages again when they have grown, and changes under $set. A log contains the
// prompts of many sessions.
type geminiChat struct {
	agentTranscript
	options TranscriptOptions
	hash    string // the hash that names the project's folder
	roots   []string

	seen     map[string]struct{} // message ids
	finished map[string]struct{} // ids of completed calls
	open     map[string]struct{} // ids of calls without an outcome yet
}

// readGemini reads a session file of Gemini CLI, always from the start (Resume is the start). A
// grown file repeats its earlier content, and its calls are recognized by their ids.
func readGemini(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error) {
	report := newReport(o)
	g := &geminiChat{
		agentTranscript: newAgentTranscript(gemini, observation.MatchCount, o, &report, yield), options: o,
		seen: map[string]struct{}{}, finished: map[string]struct{}{}, open: map[string]struct{}{},
	}
	g.session, g.agent = geminiAgent(o.Path)
	buffered := bufio.NewReaderSize(r, 64<<10)
	read := g.readLines
	if first, _ := buffered.Peek(4096); isDocument(first) {
		read = g.readDocument
	}
	if err := read(ctx, buffered, &report); err != nil {
		return report, err
	}
	return report, g.finish(len(g.open))
}

// isDocument reports whether a file is a document of several lines, or a log.
func isDocument(first []byte) bool {
	first = trimSpace(bytes.TrimPrefix(first, []byte(byteOrderMark)))
	if kindOf(first) == '[' {
		return true
	}
	line, _, _ := bytes.Cut(first, []byte("\n"))
	return string(trimSpace(line)) == "{"
}

// geminiAgent returns the session and the subagent in the path of a file. Subagents' files are in
// a folder with the session's name.
func geminiAgent(file string) (session, agent string) {
	folder, name := filepath.Split(filepath.Clean(file))
	folder = filepath.Clean(folder)
	if filepath.Base(filepath.Dir(folder)) != "chats" {
		return "", ""
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".jsonl"), ".json")
	return strings.ToValidUTF8(filepath.Base(folder), "\uFFFD"), strings.ToValidUTF8(name, "\uFFFD")
}

func (g *geminiChat) readLines(ctx context.Context, r *bufio.Reader, report *TranscriptReport) error {
	return eachLine(ctx, r, g.options, report, func(l line) error {
		raw, ok := l.object(g.decoder, g.skipped)
		if !ok {
			return nil
		}
		return g.record(raw)
	})
}

func (g *geminiChat) readDocument(ctx context.Context, r *bufio.Reader, report *TranscriptReport) error {
	whole, err := io.ReadAll(io.LimitReader(r, maxLine+1))
	report.Bytes = int64(len(whole))
	report.Lines = bytes.Count(whole, []byte("\n")) + 1
	if err != nil {
		return unreadable(err)
	}
	if len(whole) > maxLine {
		rest, err := io.Copy(io.Discard, r)
		report.Bytes += rest
		g.skip(hugeDocument)
		if err != nil {
			return unreadable(err)
		}
		return ctx.Err()
	}
	raw := trimSpace(bytes.TrimPrefix(whole, []byte(byteOrderMark)))
	maskNUL(raw)
	if kindOf(raw) == '{' && isObject(g.decoder, raw) {
		return g.record(raw)
	}
	if kindOf(raw) == '[' && isValue(g.decoder, raw) {
		return g.log(ctx, raw)
	}
	g.skip(badLine)
	return nil
}

// isValue reports whether b is one JSON value and nothing else.
func isValue(dec *jsontext.Decoder, b []byte) bool {
	dec.Reset(bytes.NewBuffer(b), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return dec.SkipValue() == nil && len(trimSpace(b[dec.InputOffset():])) == 0
}

// record handles a line or a document.
func (g *geminiChat) record(raw []byte) error {
	f := pick(raw, "$set", "$rewindTo", "sessionId", "type", "messages")
	switch {
	case kindOf(f[0]) == '{':
		g.meta(f[0])
		return g.messages(get(f[0], "messages"))
	case f[1] != nil: // rewound messages happened anyway
		g.skip(unusedLine)
		return nil
	case f[3] != nil:
		return g.message(raw)
	case f[2] != nil || f[4] != nil:
		g.meta(raw)
		g.roots = append(g.roots, foldersIn(f[4])...)
		return g.messages(f[4])
	}
	g.skip(unknownLine)
	return nil
}

// messages handles a list of messages. After the summary of a compressed history, the list repeats
// the recent messages under new ids.
func (g *geminiChat) messages(all []byte) error {
	compressed := false
	for m := range elements(all) {
		f := pick(m, "id", "type", "content")
		id := text(f[0])
		if _, known := g.seen[id]; compressed && id != "" && !known {
			g.seen[id] = struct{}{}
			g.skip(copiedLine)
			continue
		}
		if err := g.message(m); err != nil {
			return err
		}
		compressed = compressed || text(f[1]) == "user" && isGeminiSummary(geminiText(f[2]))
	}
	return nil
}

// isGeminiSummary reports whether a text is the summary of a compressed history.
func isGeminiSummary(said string) bool {
	return strings.HasPrefix(strings.TrimSpace(said), "<state_snapshot>")
}

// meta reads the session's metadata.
func (g *geminiChat) meta(raw []byte) {
	f := pick(raw, "sessionId", "projectHash", "startTime", "directories", "kind")
	id := text(f[0])
	if text(f[4]) == "subagent" && g.agent == "" {
		g.agent = firstNonBlank(id, unnamedAgent)
	}
	if g.agent == "" || g.session == "" {
		g.session = firstNonBlank(id, g.session)
	}
	g.hash = firstNonBlank(text(f[1]), g.hash)
	for dir := range elements(f[3]) {
		g.roots = append(g.roots, text(dir))
	}
	g.dated(f[2])
}

// lineID returns the id of a message, "" if it has none.
func (g *geminiChat) lineID(id string) string {
	if id == "" {
		return ""
	}
	return g.session + "/" + id
}

func (g *geminiChat) message(raw []byte) error {
	f := pick(raw, "id", "type", "timestamp", "content", "displayContent", "toolCalls")
	if g.cwd == "" {
		g.cwd = g.folder()
	}
	g.dated(f[2])
	if g.incomplete() {
		return nil
	}
	id := text(f[0])
	_, again := g.seen[id]
	if id != "" {
		g.seen[id] = struct{}{}
	}
	switch text(f[1]) {
	case "user":
		if again || isResult(f[3]) {
			return nil
		}
		return g.user(id, geminiText(f[3]), geminiText(f[4]))
	case "gemini":
		return g.reply(id, geminiText(f[3]), f[5])
	case "info", "error", "warning":
		if !again {
			g.skip(unusedLine)
		}
		return nil
	}
	g.skip(unknownLine)
	return nil
}

// isResult reports whether a content is the result of calls for the model.
func isResult(content []byte) bool {
	for part := range elements(content) {
		if get(part, "functionResponse") != nil {
			return true
		}
	}
	return false
}

// user handles a message to the model in the user's name: a prompt, or the summary that replaces a
// compressed history. shown is the part that the user saw, "" if the user saw all of it.
func (g *geminiChat) user(id, said, shown string) error {
	if isGeminiSummary(said) {
		m := g.newEvent(observation.Message, onPostCompact, g.lineID(id))
		m.Role, m.Text = roleSummary, said
		return g.yield(m)
	}
	if err := g.endTurn(); err != nil {
		return err
	}
	if g.agent != "" {
		return nil // an agent's text to its subagent is not a prompt
	}
	p := g.newEvent(observation.Prompt, onPrompt, g.lineID(id))
	if p.Text = geminiTyped(firstNonBlank(shown, said)); p.Text == "" {
		g.skip(machinePrompt)
		return nil
	}
	return g.yield(p)
}

// reply handles the agent's message and its calls. Gemini CLI writes a message again when one of
// its calls is done.
func (g *geminiChat) reply(id, said string, calls []byte) error {
	said = geminiSaid(said)
	if _, old := g.finished["said "+id]; !old && strings.TrimSpace(said) != "" {
		g.says(said, g.lineID(id))
		if id != "" {
			g.finished["said "+id] = struct{}{}
		}
	}
	n := 0
	for call := range elements(calls) {
		n++
		if err := g.call(id+"#"+strconv.Itoa(n), call); err != nil {
			return err
		}
	}
	return nil
}

// call handles a call, which may still be running. place replaces a missing id.
func (g *geminiChat) call(place string, raw []byte) error {
	f := pick(raw, "id", "name", "args", "result", "status", "timestamp", "resultDisplay")
	id, tool := firstNonBlank(text(f[0]), place), text(f[1])
	if _, done := g.finished[id]; done || strings.TrimSpace(tool) == "" {
		return nil
	}
	g.acted = true
	status := text(f[4])
	switch status {
	case "success", "error", "cancelled":
	case "":
		if !isThere(f[3]) {
			g.open[id] = struct{}{}
			return nil
		}
	default:
		g.open[id] = struct{}{}
		return nil
	}
	delete(g.open, id)
	g.finished[id] = struct{}{}
	c := geminiCall(id, tool, f[2], nil)
	a := geminiResult{said: unmarked(geminiText(f[3])), display: f[6], failed: status == "error" || hasError(f[3])}
	switch why := geminiRefusal(status, a.said); {
	case isOwnServer(c):
		g.skip(ownTool)
		return nil
	case why != neverRefused:
		g.skip(why)
		return nil
	}
	source := onToolUse
	if a.failed {
		source, a.complaint = onToolFailure, a.said
	}
	a.apply(&c)
	readPieces(&c, f[2], nil, a.display)
	g.dated(f[5])
	e := g.newEvent(observation.Tool, source, "")
	e.Calls = []observation.Call{c}
	return g.yield(e)
}

// hasError reports whether the response to a function call is an error.
func hasError(result []byte) bool {
	for part := range elements(result) {
		if isThere(get(get(get(part, "functionResponse"), "response"), "error")) {
			return true
		}
	}
	return false
}

// geminiRefusal returns the reason why a call never ran, neverRefused if it ran.
func geminiRefusal(status, said string) string {
	if status == "cancelled" {
		return stopped
	}
	if status != "error" {
		return neverRefused
	}
	for _, form := range [...]struct{ start, within, why string }{
		{"[Operation Cancelled]", "", stopped},
		{"Tool ", "not found in registry", invalidCall},
		{"Tool ", "denied by policy", denied},
		{"Tool ", "blocked by hook", blocked},
		{"Tool execution blocked: ", "", blocked},
		{"Agent execution stopped by hook: ", "", blocked},
		{"params", "must ", invalidCall},
		{"Error: params", "must ", invalidCall},
		{"Invalid parameters provided", "", invalidCall},
	} {
		if strings.HasPrefix(said, form.start) && strings.Contains(said[:min(len(said), 500)], form.within) {
			return form.why
		}
	}
	return neverRefused
}

// log handles the prompt log of a project. It also contains commands to the harness, which hooks
// never see.
func (g *geminiChat) log(ctx context.Context, entries []byte) error {
	for entry := range elements(entries) {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := pick(entry, "sessionId", "type", "message", "timestamp")
		said := geminiTyped(text(f[2]))
		switch {
		case text(f[1]) != "user":
			g.skip(unknownLine)
			continue
		case strings.HasPrefix(said, "/") || strings.HasPrefix(said, "!") || said == "?":
			g.skip(commandLine)
			continue
		case said == "":
			g.skip(machinePrompt)
			continue
		}
		if g.cwd == "" {
			g.cwd = g.folder()
		}
		g.session, g.at = text(f[0]), g.options.ModTime
		g.dated(f[3])
		if g.incomplete() {
			continue
		}
		p := g.newEvent(observation.Prompt, onPrompt, "")
		p.Text = said
		if err := g.yield(p); err != nil {
			return err
		}
	}
	return nil
}
