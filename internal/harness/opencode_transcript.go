package harness

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/internal/observation"
	"cairn/internal/regular"
	"cairn/internal/sqlitefile"
)

// OpenCode stores all sessions in one SQLite file, with rows for sessions, messages and parts of
// messages. Messages and parts are JSON. cairn reads the file and its write-ahead log page by
// page, without SQLite, so it never blocks a running OpenCode.

// unknownForm counts databases whose tables differ from those of version 1.18.
const unknownForm = "database of an unknown form"

// isOpenCodeFile reports whether a file name belongs to a database of OpenCode. Builds other than
// releases add a channel's name.
func isOpenCodeFile(name string) bool {
	return strings.HasPrefix(name, "opencode") && strings.HasSuffix(name, ".db")
}

func isDatabase(head []byte) bool { return bytes.HasPrefix(head, []byte("SQLite format 3\x00")) }

// openCodeSession is the row of a session.
type openCodeSession struct {
	id, parent, folder string
}

// openCodeRow is the row of a message or of a part of a message.
type openCodeRow struct {
	id, of, session string // of: the message of a part
	made, changed   int64  // milliseconds
	data            string
}

// openCodeBase is the content of a database.
type openCodeBase struct {
	sessions map[string]openCodeSession
	messages []openCodeRow
	parts    map[string][]openCodeRow // by message id
}

// readOpenCode reads a whole database (Resume is the start), because existing messages may grow.
func readOpenCode(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error) {
	report := newReport(o)
	report.Resume = 0
	db, done, err := databaseAt(o.Path, r)
	if err != nil {
		return report, unreadable(err)
	}
	defer done()
	base, ok := readOpenCodeBase(db[0], db[1])
	report.Bytes = db[0].Size + db[1].Size
	if !ok {
		report.Skipped[unknownForm]++
		return report, nil
	}
	report.Lines = len(base.messages)
	for len(base.messages) > 0 {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		n := 1
		for n < len(base.messages) && base.messages[n].session == base.messages[0].session {
			n++
		}
		if err := base.emit(base.messages[:n], o, &report, yield); err != nil {
			return report, err
		}
		base.messages = base.messages[n:]
	}
	return report, nil
}

// databaseAt opens a database and its write-ahead log at path. If path is empty, it reads the
// database from r.
func databaseAt(path string, r io.Reader) (files [2]sqlitefile.File, done func(), err error) {
	done = func() {}
	if path == "" {
		whole, err := io.ReadAll(io.LimitReader(r, maxLine))
		files[0] = sqlitefile.File{ReaderAt: bytes.NewReader(whole), Size: int64(len(whole))}
		return files, done, err
	}
	var closing []io.Closer
	done = func() {
		for _, c := range closing {
			_ = c.Close()
		}
	}
	for i, name := range [...]string{path, path + "-wal"} {
		f, err := regular.Open(name)
		if err != nil {
			if i == 0 {
				return files, done, err
			}
			continue // the log does not exist or is unreadable
		}
		closing = append(closing, f)
		info, err := f.Stat()
		if err != nil {
			return files, done, err
		}
		files[i] = sqlitefile.File{ReaderAt: f, Size: info.Size()}
	}
	return files, done, nil
}

// TranscriptState returns the size and modification time (in nanoseconds) by which a change of a
// transcript is detected. For a database they include its write-ahead log, if there is one.
func TranscriptState(path string, size, changed int64) (int64, int64) {
	if !isOpenCodeFile(filepath.Base(path)) {
		return size, changed
	}
	f, err := regular.Open(path + "-wal")
	if err != nil {
		return size, changed
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return size, changed
	}
	return size + info.Size(), max(changed, info.ModTime().UnixNano())
}

func readOpenCodeBase(db, log sqlitefile.File) (base openCodeBase, ok bool) {
	image := sqlitefile.Read(db, log)
	roots := map[string]uint32{}
	for _, o := range image.Schema() {
		if o.Kind == "table" {
			roots[o.Name] = o.Root
		}
	}
	if roots["session"] == 0 || roots["message"] == 0 || roots["part"] == 0 {
		return base, false
	}
	base.sessions, base.parts = map[string]openCodeSession{}, map[string][]openCodeRow{}
	image.Rows(roots["session"], func(r sqlitefile.Row) bool {
		if s := (openCodeSession{column(r, 0), column(r, 3), column(r, 5)}); s.id != "" {
			base.sessions[s.id] = s
		}
		return true
	})
	image.Rows(roots["message"], func(r sqlitefile.Row) bool {
		base.messages = append(base.messages, openCodeRow{
			id: column(r, 0), session: column(r, 1), made: number(r, 2), changed: number(r, 3), data: column(r, 4),
		})
		return true
	})
	image.Rows(roots["part"], func(r sqlitefile.Row) bool {
		p := openCodeRow{id: column(r, 0), of: column(r, 1), session: column(r, 2), made: number(r, 3), changed: number(r, 4), data: column(r, 5)}
		base.parts[p.of] = append(base.parts[p.of], p)
		return true
	})
	first := map[string]int64{}
	for _, m := range base.messages {
		if at, known := first[m.session]; !known || m.made < at {
			first[m.session] = m.made
		}
	}
	slices.SortStableFunc(base.messages, func(a, b openCodeRow) int {
		return cmp.Or(cmp.Compare(first[a.session], first[b.session]), cmp.Compare(a.session, b.session), cmp.Compare(a.made, b.made), cmp.Compare(a.id, b.id))
	})
	for _, parts := range base.parts {
		slices.SortStableFunc(parts, func(a, b openCodeRow) int {
			return cmp.Or(cmp.Compare(a.made, b.made), cmp.Compare(a.id, b.id))
		})
	}
	return base, true
}

func column(r sqlitefile.Row, i int) string {
	if i >= len(r.Values) {
		return ""
	}
	switch v := r.Values[i].(type) {
	case string:
		return validColumn(v)
	case []byte:
		return validColumn(string(v))
	}
	return ""
}

// validColumn converts a column's text to valid UTF-8 without NUL, so that it can be parsed as
// JSON and stored.
func validColumn(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

func number(r sqlitefile.Row, i int) int64 {
	if i >= len(r.Values) {
		return 0
	}
	n, _ := r.Values[i].(int64)
	return n
}

// openCodeChat is the state while reading a session.
type openCodeChat struct {
	agentTranscript
	open int
}

// emit yields the events of one session's messages. Messages of a subagent's session belong to the
// session that started it.
func (b *openCodeBase) emit(messages []openCodeRow, o TranscriptOptions, report *TranscriptReport, yield func(observation.Event) error) error {
	c := &openCodeChat{agentTranscript: newAgentTranscript(openCode, observation.MatchID, o, report, yield)}
	s := b.sessions[messages[0].session]
	c.session, c.cwd = s.id, s.folder
	for range 100 {
		parent, ok := b.sessions[s.parent]
		if !ok {
			break
		}
		c.session, c.agent, s = parent.id, messages[0].session, parent
	}
	for _, m := range messages {
		if err := c.message(m, b.parts[m.id]); err != nil {
			return err
		}
	}
	return c.finish(c.open)
}

func (c *openCodeChat) message(m openCodeRow, parts []openCodeRow) error {
	info := []byte(m.data)
	if c.at = time.UnixMilli(m.made); m.made <= 0 || !isObject(c.decoder, info) {
		c.skip(badLine)
		return nil
	}
	f := pick(info, "role", "summary", "path")
	c.cwd = firstNonBlank(text(get(f[2], "cwd")), c.cwd)
	if c.incomplete() {
		return nil
	}
	if text(f[0]) == "user" {
		return c.user(m, parts)
	}
	if isTrue(f[1]) {
		c.skip(metaLine)
		return nil
	}
	for _, p := range parts {
		if err := c.part(m, p); err != nil {
			return err
		}
	}
	return nil
}

func (c *openCodeChat) user(m openCodeRow, parts []openCodeRow) error {
	if c.agent != "" {
		return nil // an agent's text to its subagent is not a prompt
	}
	var said []string
	for _, p := range parts {
		raw := []byte(p.data)
		if !isObject(c.decoder, raw) {
			continue
		}
		f := pick(raw, "type", "text", "synthetic", "ignored")
		if text(f[0]) == "text" && !isTrue(f[2]) && !isTrue(f[3]) {
			said = append(said, text(f[1]))
		}
	}
	prompt := typed(strings.Join(said, "\n"))
	if strings.TrimSpace(prompt) == "" {
		c.skip(machinePrompt)
		return nil
	}
	if err := c.endTurn(); err != nil {
		return err
	}
	p := c.newEvent(observation.Prompt, onPrompt, m.id)
	p.Text, p.PromptID = prompt, m.id
	return c.yield(p)
}

func (c *openCodeChat) part(m openCodeRow, p openCodeRow) error {
	raw := []byte(p.data)
	if !isObject(c.decoder, raw) {
		c.skip(badLine)
		return nil
	}
	if p.changed > 0 {
		c.at = time.UnixMilli(p.changed)
	}
	f := pick(raw, "type", "text", "tool", "callID", "state")
	switch text(f[0]) {
	case "text":
		if said := text(f[1]); strings.TrimSpace(said) != "" {
			c.says(said, m.id)
		}
	case "tool":
		return c.call(text(f[3]), text(f[2]), f[4])
	}
	return nil
}

func (c *openCodeChat) call(id, tool string, state []byte) error {
	f := pick(state, "status", "input", "output", "error", "metadata")
	c.acted = true
	status := text(f[0])
	if status != "completed" && status != "error" {
		c.open++
		return nil
	}
	calls := openCodeCalls(id, tool, f[1])
	meta := pick(f[4], "exit", "exists", "sessionId")
	r := openCodeResult{said: text(f[2]), exit: meta[0], exists: meta[1], spawned: text(meta[2]), failed: status == "error", complaint: text(f[3])}
	why := neverRefused
	if r.failed {
		why = openCodeRefusal(r.complaint)
	}
	switch {
	case strings.HasPrefix(tool, "cairn_"):
		c.skip(ownTool)
		return nil
	case why != neverRefused:
		c.skip(why)
		return nil
	}
	source := onToolUse
	if r.failed {
		source = onToolFailure
	}
	for i := range calls {
		r.apply(&calls[i], f[1])
	}
	e := c.newEvent(observation.Tool, source, "")
	e.Calls = calls
	return c.yield(e)
}
