package messages

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/mail"
)

// Summary is a summary of the texts of a thread, created without a model (mail §5).
type Summary struct {
	Participants   []string  `json:"participants"` // the senders, sorted
	KeyPoints      []string  `json:"key_points"`
	ActionItems    []string  `json:"action_items"`
	TotalMessages  int       `json:"total_messages"`
	OpenActions    int       `json:"open_actions"`
	DoneActions    int       `json:"done_actions"`
	Mentions       []Mention `json:"mentions"`
	CodeReferences []string  `json:"code_references,omitempty"`
}

// Mention is the number of times that @Name occurs in the texts.
type Mention struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Example is one of the first messages of a thread.
type Example struct {
	ID      int64     `json:"id"`
	Subject string    `json:"subject"`
	From    string    `json:"from"`
	Created mail.Time `json:"created_ts"`
}

// ThreadSummary is the summary of a thread. Examples is nil, and omitted, if there are several
// threads.
type ThreadSummary struct {
	ThreadID string     `json:"thread_id"`
	Summary  Summary    `json:"summary"`
	Examples *[]Example `json:"examples,omitempty"`
}

// Aggregate is the common summary of several threads.
type Aggregate struct {
	TopMentions []Mention `json:"top_mentions"`
	ActionItems []string  `json:"action_items"`
	KeyPoints   []string  `json:"key_points"`
}

// Summarized is the result of summarize_thread. For one thread, One is set. For several
// threads or none, Threads and Aggregate are set. JSON contains only one of the two forms.
type Summarized struct {
	One       *ThreadSummary
	Threads   []ThreadSummary
	Aggregate Aggregate
}

// MarshalJSON writes One if it is set, else Threads and Aggregate.
func (s Summarized) MarshalJSON() ([]byte, error) {
	if s.One != nil {
		return json.Marshal(s.One)
	}
	return json.Marshal(struct {
		Threads   []ThreadSummary `json:"threads"`
		Aggregate Aggregate       `json:"aggregate"`
	}{s.Threads, s.Aggregate})
}

// SummarizeArgs are the arguments of summarize_thread.
type SummarizeArgs struct {
	ProjectKey      string `arg:"project_key,required"`
	ThreadID        string `arg:"thread_id,required" about:"One thread, or several, separated by commas."`
	IncludeExamples bool   `arg:"include_examples" about:"Include the first three messages (one thread only)."`
	PerThreadLimit  *int   `arg:"per_thread_limit,default=50,min=1,max=1000" about:"Maximum number of messages read per thread, newest first."`
}

const (
	PerSummary    = 50
	maxPoints     = 10
	maxPointChars = 200
	maxExamples   = 3
)

// SummarizeThread summarizes threads.
//
// Errors: NOT_FOUND for the project and for a thread without messages, INVALID_THREAD_ID,
// INVALID_LIMIT.
func (o *Messages) SummarizeThread(ctx context.Context, c mail.Caller, a SummarizeArgs) (out Summarized, err error) {
	n, err := mail.CheckLimit(a.PerThreadLimit, PerSummary)
	if err != nil {
		return out, mail.Fault(err)
	}
	var ids []string
	for given := range strings.SplitSeq(a.ThreadID, ",") {
		id, err := mail.ThreadID(given)
		if err != nil {
			return out, mail.Fault(err)
		}
		if id != nil && !slices.Contains(ids, *id) {
			ids = append(ids, *id)
		}
	}
	if len(ids) > maxRecipients {
		return out, mail.Fault(mail.InvalidArgument("thread_id", len(ids), "at most %d threads are summarized at once, not %d", maxRecipients, len(ids)))
	}
	err = o.ReadIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		out, err = summarize(ctx, s, ids, n, a.IncludeExamples)
		return err
	})
	return out, err
}

func summarize(ctx context.Context, s *mail.CallTx, ids []string, n int, examples bool) (out Summarized, err error) {
	all := summaryBuilder{}
	out.Threads = []ThreadSummary{}
	for _, id := range ids {
		t, err := ReadThread(ctx, s, id, n, examples || len(ids) > 1)
		if err != nil {
			return out, err
		}
		if t.Summary.TotalMessages == 0 {
			return out, ThreadNotFound(s, id)
		}
		if len(ids) == 1 {
			out.One = &t.ThreadSummary
			return out, nil
		}
		t.Examples = nil
		out.Threads = append(out.Threads, t.ThreadSummary)
		all.join(&t.gist)
	}
	points := all.summary()
	out.Aggregate = Aggregate{points.Mentions, points.ActionItems, points.KeyPoints}
	return out, nil
}

func ThreadNotFound(s *mail.CallTx, id string) error {
	return mail.NotFound("thread", id).With("thread_id", id).Hint("search_messages and fetch_inbox show the thread_id of messages")
}

// A thread with a decimal id also contains the message of that number, if that message started
// it.
const (
	// The numbers of ?4 messages from one end of the thread ?2 of the project ?1,
	// and the message ?3 that started it.
	threadEnd = `SELECT id FROM (SELECT id FROM mail_messages WHERE project_id = ?1 AND thread_id = ?2 ORDER BY created_ts `
	threadBeg = `LIMIT +?4) UNION ALL SELECT id FROM mail_messages WHERE id = ?3 AND project_id = ?1 AND thread_id IS NULL`
	NewestIn  = `(SELECT * FROM mail_messages WHERE id IN (` + threadEnd + `DESC, id DESC ` + threadBeg + `) ORDER BY created_ts DESC, id DESC LIMIT +?4) m
JOIN mail_agents a ON a.id = m.sender_id ORDER BY m.created_ts, m.id`
	oldestIn = `(SELECT * FROM mail_messages WHERE id IN (` + threadEnd + `, id ` + threadBeg + `) ORDER BY created_ts, id LIMIT +?4) m
JOIN mail_agents a ON a.id = m.sender_id ORDER BY m.created_ts, m.id`

	selectInThread = `SELECT (SELECT count(*) FROM mail_messages WHERE project_id = ?1 AND thread_id = ?2)
    + (SELECT count(*) FROM mail_messages WHERE id = ?3 AND project_id = ?1 AND thread_id IS NULL)`
	selectOfThread  = `SELECT m.id, m.subject, a.name, m.created_ts, m.body_md FROM ` + NewestIn
	selectFirstOnes = `SELECT m.id, m.subject, a.name, m.created_ts FROM ` + oldestIn
)

// threadDigest is the summary of a thread and the content that it was built from.
type threadDigest struct {
	ThreadSummary
	gist summaryBuilder
}

// ReadThread summarizes a thread; TotalMessages is 0 for a thread without messages.
func ReadThread(ctx context.Context, s *mail.CallTx, id string, n int, examples bool) (out threadDigest, err error) {
	begun := mail.Beginning(&id)
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var e Example
		var body string
		if err := rows.Scan(&e.ID, &e.Subject, &e.From, &e.Created, &body); err != nil {
			return err
		}
		out.gist.from(e.From)
		out.gist.read(body)
		return nil
	}, selectOfThread, s.Project.ID, id, begun, n)
	if err != nil {
		return out, err
	}
	out.ThreadID, out.Summary, out.Examples = id, out.gist.summary(), &[]Example{}
	if err := s.Tx.Get(ctx, []any{&out.Summary.TotalMessages}, selectInThread, s.Project.ID, id, begun); err != nil || !examples {
		return out, err
	}
	return out, s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var e Example
		err := rows.Scan(&e.ID, &e.Subject, &e.From, &e.Created)
		*out.Examples = append(*out.Examples, e)
		return err
	}, selectFirstOnes, s.Project.ID, id, begun, maxExamples)
}

// summaryBuilder collects the content of texts.
type summaryBuilder struct {
	senders, points, actions, code []string
	open, done                     int
	mentions                       map[string]int
}

func (g *summaryBuilder) from(sender string) {
	if !slices.Contains(g.senders, sender) {
		g.senders = append(g.senders, sender)
	}
}

// add appends a text that the list does not contain yet, unless the list is full. Texts are
// truncated to one short line.
func add(all []string, text string) []string {
	text = mail.Truncate(oneLineOf(text), maxPointChars)
	if text == "" || len(all) >= maxPoints || slices.Contains(all, text) {
		return all
	}
	return append(all, text)
}

// oneLineOf returns a text as one trimmed line.
func oneLineOf(text string) string { return strings.TrimSpace(mail.Flat(text)) }

func (g *summaryBuilder) join(other *summaryBuilder) {
	for _, p := range other.points {
		g.points = add(g.points, p)
	}
	for _, p := range other.actions {
		g.actions = add(g.actions, p)
	}
	for name, n := range other.mentions {
		g.mention(name, n)
	}
}

func (g *summaryBuilder) mention(name string, n int) {
	if g.mentions == nil {
		g.mentions = map[string]int{}
	}
	g.mentions[name] += n
}

func (g *summaryBuilder) summary() Summary {
	slices.Sort(g.senders)
	s := Summary{
		Participants: mail.NonNil(g.senders), KeyPoints: mail.NonNil(g.points), ActionItems: mail.NonNil(g.actions),
		OpenActions: g.open, DoneActions: g.done, Mentions: []Mention{}, CodeReferences: g.code,
	}
	for name, n := range g.mentions {
		s.Mentions = append(s.Mentions, Mention{name, n})
	}
	slices.SortFunc(s.Mentions, func(a, b Mention) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	s.Mentions = s.Mentions[:min(len(s.Mentions), maxPoints)]
	return s
}

// read collects the content of one text. It skips code fences and quoted lines.
func (g *summaryBuilder) read(body string) {
	fence := ""
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if mark := fenceOf(line); mark != "" {
			switch {
			case fence == "":
				fence = mark
			case strings.HasPrefix(mark, fence) && strings.Trim(line, mark[:1]) == "":
				fence = ""
			}
			continue
		}
		if fence == "" && line != "" && line[0] != '>' {
			g.line(line)
		}
	}
}

// fenceOf returns the marks at the beginning of a line that opens or closes a code fence, ""
// for other lines.
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		run := line[:len(line)-len(strings.TrimLeft(line, mark))]
		if len(run) >= 3 && (mark == "~" || !strings.Contains(line[len(run):], mark)) {
			return run
		}
	}
	return ""
}

func (g *summaryBuilder) line(line string) {
	text, listed := listItem(line)
	rest, box := checkBox(text)
	switch {
	case box != 0:
		if g.actions = add(g.actions, rest); box == ' ' {
			g.open++
		} else {
			g.done++
		}
	case isAction(text):
		g.actions = add(g.actions, text)
	case listed:
		g.points = add(g.points, text)
	}
	g.mentionsIn(line)
	g.codeIn(line)
}

// listItem returns the text after the mark of a list item, or the line itself.
func listItem(line string) (text string, listed bool) {
	for _, mark := range [...]string{"- ", "* ", "+ ", "• "} {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			return strings.TrimSpace(rest), true
		}
	}
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	if digits > 0 && digits <= 9 && len(line) > digits+1 && (line[digits] == '.' || line[digits] == ')') && line[digits+1] == ' ' {
		return strings.TrimSpace(line[digits+2:]), true
	}
	return line, false
}

// checkBox returns the text after a check box and its state: ' ' if open, 'x' if done, 0
// without a check box.
func checkBox(text string) (rest string, box byte) {
	if len(text) < 3 || text[0] != '[' || text[2] != ']' {
		return text, 0
	}
	switch text[1] {
	case ' ':
		return strings.TrimSpace(text[3:]), ' '
	case 'x', 'X':
		return strings.TrimSpace(text[3:]), 'x'
	}
	return text, 0
}

// isAction reports whether a text contains one of the words that mark actions, as a separate
// word in capitals.
func isAction(text string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }) {
		switch word {
		case "TODO", "ACTION", "NEXT", "BLOCKED", "FIXME":
			return true
		}
	}
	return false
}

// mentionsIn counts each @Name in a line that does not continue a word.
func (g *summaryBuilder) mentionsIn(line string) {
	for at, r := range line {
		if r != '@' {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(line[:at])
		name := line[at+1:]
		if end := strings.IndexFunc(name, func(r rune) bool { return !isNameRune(r) }); end >= 0 {
			name = name[:end]
		}
		name = strings.TrimRight(name, "-_")
		first, _ := utf8.DecodeRuneInString(name)
		if unicode.IsLetter(first) && len(name) <= mail.MaxName && before != '.' && before != '@' && !isNameRune(before) {
			g.mention(name, 1)
		}
	}
}

func isNameRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_'
}

// codeIn collects texts between backquotes that look like a path or a call.
func (g *summaryBuilder) codeIn(line string) {
	for {
		_, rest, found := strings.Cut(line, "`")
		if !found {
			return
		}
		code, after, closed := strings.Cut(rest, "`")
		if !closed {
			return
		}
		if strings.ContainsAny(code, "/.(") {
			g.code = add(g.code, code)
		}
		line = after
	}
}
