package opencode

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
	"cairn/internal/regular"
	"cairn/internal/sqlitefile"
)

// OpenCode stores all sessions in one SQLite file, with rows for sessions, messages and parts of
// messages. Messages and parts are JSON. cairn reads the file and its write-ahead log page by
// page, without SQLite, so it never blocks a running OpenCode.

// unknownForm counts databases whose tables differ from those of version 1.18.
const unknownForm = "database of an unknown form"

// isDatabaseFile reports whether a file name belongs to a database of OpenCode. Builds other than
// releases add a channel's name.
func isDatabaseFile(name string) bool {
	return strings.HasPrefix(name, "opencode") && strings.HasSuffix(name, ".db")
}

func isDatabase(head []byte) bool { return bytes.HasPrefix(head, []byte("SQLite format 3\x00")) }

// session is the row of a session.
type session struct {
	id, parent, folder string
}

// row is the row of a message or of a part of a message.
type row struct {
	id, of, session string // of: the message of a part
	made, changed   int64  // milliseconds
	data            string
}

// base is the content of a database.
type base struct {
	sessions map[string]session
	messages []row
	parts    map[string][]row // by message id
}

// readDatabase reads a whole database (Resume is the start), because existing messages may grow.
func readDatabase(ctx context.Context, r io.Reader, o harness.TranscriptOptions, yield func(observation.Event) error) (harness.TranscriptReport, error) {
	report := harness.NewReport(o)
	report.Resume = 0
	db, done, err := databaseAt(o.Path, r)
	if err != nil {
		return report, harness.Unreadable(err)
	}
	defer done()
	base, ok := readBase(db[0], db[1])
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
		whole, err := io.ReadAll(io.LimitReader(r, harness.MaxLine))
		files[0] = sqlitefile.File{ReaderAt: bytes.NewReader(whole), Size: int64(len(whole))}
		return files, done, err
	}
	var closing []io.Closer
	done = func() {
		for _, c := range closing {
			_ = c.Close()
		}
	}
	for i, name := range [...]string{path, path + log} {
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

func readBase(db, log sqlitefile.File) (base base, ok bool) {
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
	base.sessions, base.parts = map[string]session{}, map[string][]row{}
	image.Rows(roots["session"], func(r sqlitefile.Row) bool {
		if s := (session{column(r, 0), column(r, 3), column(r, 5)}); s.id != "" {
			base.sessions[s.id] = s
		}
		return true
	})
	image.Rows(roots["message"], func(r sqlitefile.Row) bool {
		base.messages = append(base.messages, row{
			id: column(r, 0), session: column(r, 1), made: number(r, 2), changed: number(r, 3), data: column(r, 4),
		})
		return true
	})
	image.Rows(roots["part"], func(r sqlitefile.Row) bool {
		p := row{id: column(r, 0), of: column(r, 1), session: column(r, 2), made: number(r, 3), changed: number(r, 4), data: column(r, 5)}
		base.parts[p.of] = append(base.parts[p.of], p)
		return true
	})
	first := map[string]int64{}
	for _, m := range base.messages {
		if at, known := first[m.session]; !known || m.made < at {
			first[m.session] = m.made
		}
	}
	slices.SortStableFunc(base.messages, func(a, b row) int {
		return cmp.Or(cmp.Compare(first[a.session], first[b.session]), cmp.Compare(a.session, b.session), cmp.Compare(a.made, b.made), cmp.Compare(a.id, b.id))
	})
	for _, parts := range base.parts {
		slices.SortStableFunc(parts, func(a, b row) int {
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

// chat is the state while reading a session.
type chat struct {
	harness.AgentTranscript
	open int
}

// emit yields the events of one session's messages. Messages of a subagent's session belong to the
// session that started it.
func (b *base) emit(messages []row, o harness.TranscriptOptions, report *harness.TranscriptReport, yield func(observation.Event) error) error {
	c := &chat{AgentTranscript: harness.NewAgentTranscript(name, observation.MatchID, o, report, yield)}
	s := b.sessions[messages[0].session]
	c.Session, c.Cwd = s.id, s.folder
	for range 100 {
		parent, ok := b.sessions[s.parent]
		if !ok {
			break
		}
		c.Session, c.Agent, s = parent.id, messages[0].session, parent
	}
	for _, m := range messages {
		if err := c.message(m, b.parts[m.id]); err != nil {
			return err
		}
	}
	return c.Finish(c.open)
}

func (c *chat) message(m row, parts []row) error {
	info := lazyjson.Value(m.data)
	if c.At = time.UnixMilli(m.made); m.made <= 0 || !c.Checker.IsObject(info) {
		c.Skip(harness.BadLine)
		return nil
	}
	f := info.Pick("role", "summary", "path")
	c.Cwd = lazyjson.FirstNonBlank(f[2].Get("cwd").Text(), c.Cwd)
	if c.Incomplete() {
		return nil
	}
	if f[0].Text() == "user" {
		return c.user(m, parts)
	}
	if f[1].IsTrue() {
		c.Skip(harness.MetaLine)
		return nil
	}
	for _, p := range parts {
		if err := c.part(m, p); err != nil {
			return err
		}
	}
	return nil
}

func (c *chat) user(m row, parts []row) error {
	if c.Agent != "" {
		return nil // an agent's text to its subagent is not a prompt
	}
	var said []string
	for _, p := range parts {
		raw := lazyjson.Value(p.data)
		if !c.Checker.IsObject(raw) {
			continue
		}
		f := raw.Pick("type", "text", "synthetic", "ignored")
		if f[0].Text() == "text" && !f[2].IsTrue() && !f[3].IsTrue() {
			said = append(said, f[1].Text())
		}
	}
	prompt := harness.Typed(strings.Join(said, "\n"))
	if strings.TrimSpace(prompt) == "" {
		c.Skip(harness.MachinePrompt)
		return nil
	}
	if err := c.EndTurn(); err != nil {
		return err
	}
	p := c.NewEvent(observation.Prompt, harness.OnPrompt, m.id)
	p.Text, p.PromptID = prompt, m.id
	return c.Yield(p)
}

func (c *chat) part(m row, p row) error {
	raw := lazyjson.Value(p.data)
	if !c.Checker.IsObject(raw) {
		c.Skip(harness.BadLine)
		return nil
	}
	if p.changed > 0 {
		c.At = time.UnixMilli(p.changed)
	}
	f := raw.Pick("type", "text", "tool", "callID", "state")
	switch f[0].Text() {
	case "text":
		if said := f[1].Text(); strings.TrimSpace(said) != "" {
			c.Says(said, m.id)
		}
	case "tool":
		return c.call(f[3].Text(), f[2].Text(), f[4])
	}
	return nil
}

func (c *chat) call(id, tool string, state lazyjson.Value) error {
	f := state.Pick("status", "input", "output", "error", "metadata")
	c.Acted = true
	status := f[0].Text()
	if status != "completed" && status != "error" {
		c.open++
		return nil
	}
	calls := calls(id, tool, f[1])
	meta := f[4].Pick("exit", "exists", "sessionId")
	r := result{said: f[2].Text(), exit: meta[0], exists: meta[1], spawned: meta[2].Text(), failed: status == "error", complaint: f[3].Text()}
	why := harness.NeverRefused
	if r.failed {
		why = refusal(r.complaint)
	}
	switch {
	case strings.HasPrefix(tool, "cairn_"):
		c.Skip(harness.OwnTool)
		return nil
	case why != harness.NeverRefused:
		c.Skip(why)
		return nil
	}
	for i := range calls {
		r.apply(&calls[i], f[1])
	}
	return c.YieldCalls(calls, r.failed)
}
