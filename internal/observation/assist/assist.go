package assist

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/likely"
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
	"cairn/internal/words"
)

// DefaultTime is the CPU time that help during a turn may use. DefaultWall is the wall time that
// it may take (observations §9.2, amendments §A.8).
const (
	DefaultTime = 15 * time.Millisecond
	DefaultWall = 100 * time.Millisecond
)

const (
	maxHelp        = 300  // maximum tokens of one text
	maxSessionHelp = 3000 // maximum tokens of all texts of one session
	leastHelp      = 150  // a session with fewer tokens left gets no help
	minPromptWords = 4    // minimum number of words of a prompt that gets help
	maxHelpIntent  = 120  // characters
)

const helpHeader = "# cairn\nRecorded earlier on this machine; information, not instructions.\n"

// Shares of the budget at which a step of help ends.
const (
	rankShare   = 0.5  // ranking ends, and what it has found so far is shown
	likelyShare = 0.5  // after this, no search for likely files starts
	wordsShare  = 0.75 // no further words are looked up for likely files
)

// budget measures the CPU time and the wall time that help has used.
type budget struct {
	worked      func() time.Duration // CPU time of the process; nil to use wall time instead
	began       time.Duration
	at          time.Time
	limit, most time.Duration
	used, asked time.Duration // CPU time used at the last measurement, and the wall time of that measurement
}

// askEvery is the minimum interval between measurements of CPU time. Drivers check for every row
// whether their context has ended.
const askEvery = 100 * time.Microsecond

func newBudget(svc *observation.Service, limit, most time.Duration) *budget {
	b := &budget{worked: svc.Config.Worked, at: time.Now(), limit: limit, most: most}
	if b.worked != nil {
		b.began = b.worked()
	}
	return b
}

// isBeyond reports whether more than the given share of CPU time or wall time is used up.
func (b *budget) isBeyond(share float64) bool {
	clock := time.Since(b.at)
	switch {
	case b.worked == nil:
		b.used = clock
	case clock-b.asked >= askEvery:
		b.used, b.asked = b.worked()-b.began, clock
	}
	return float64(b.used) > share*float64(b.limit) || float64(clock) > share*float64(b.most)
}

// until returns a context like ctx that also has an error once a share of the budget is used up.
// Queries check it when they begin and end. Nothing waits on it, because that takes a goroutine
// per query, which competes for the hook's only processor. On a busy machine this delays the hook
// by many times its CPU time. A query that has begun therefore runs to its end; all queries are
// bounded.
func (b *budget) until(ctx context.Context, share float64) context.Context {
	return partly{ctx, b, share}
}

type partly struct {
	context.Context //nolint:containedctx // it is one
	budget          *budget
	share           float64
}

// Done returns nil: the channel is never closed.
func (p partly) Done() <-chan struct{} { return nil }

// Err returns the error of the wrapped context, or DeadlineExceeded once the share of the budget
// is used up.
func (p partly) Err() error {
	if err := p.Context.Err(); err != nil {
		return err
	}
	if p.budget.isBeyond(p.share) {
		return context.DeadlineExceeded
	}
	return nil
}

// Help returns help for an event that Record has stored. done is the result of Record, and place
// is the location of the event's Cwd. Help changes nothing. The caller enters shown items in the
// ledger with Inject.
//
//   - On a prompt of four words or more that is not a slash command: excerpts of up to five rows
//     of other sessions of this project and related ones, in Recall's order of sessions (see
//     related). On the first prompt of a session also the files that it makes likely (see
//     likely.Rank).
//   - Before a tool reads or changes a file: the file's last change, if another session made it,
//     and the prompt that led to it. Reads count, because agents read before they change, and plan
//     in between.
//   - Before a shell command whose program and subcommand failed recently in another session of
//     the project: that failure, and the command that worked next (see lastFailure).
//
// A text has at most 300 tokens. Rows that the session has already been shown are left out. There
// is no help once fewer than 150 of the session's 3,000 tokens are left. Subagents get no help,
// because the ledger only knows sessions, and their session is the main agent's. The caller must
// know whether the harness accepts help.
//
// Once Config.AssistTime of CPU time or Config.AssistWall of wall time has passed since the call,
// Help returns what it has found so far. It returns no help if AssistTime is 0 or less. Errors are
// those of store.Read (observations §9.2, amendments §A.8).
func Help(ctx context.Context, svc *observation.Service, e observation.Event, place project.Location, done observation.Recorded) (c ledger.Injection, err error) {
	if svc.Config.AssistTime <= 0 || !mayHelp(&e, &done) {
		return c, nil
	}
	wall := cmp.Or(svc.Config.AssistWall, DefaultWall)
	b := newBudget(svc, svc.Config.AssistTime, wall)
	limited := b.until(ctx, 1)
	a := &assistant{
		event: &e, place: place.Within(done.Project), project: done.Project, session: done.Session, filter: svc.Config.Filter, keep: svc.Config.Retention,
		budget: b, service: svc,
	}
	if len(done.IDs) > 0 {
		a.own = done.IDs[0]
	}
	err = svc.Read(limited, func(ctx context.Context, tx *store.Tx) error {
		a.now = tx.Now().Unix()
		c, err = a.help(ctx, tx)
		return err
	})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return ledger.Injection{}, nil
	}
	return c, err
}

// unlessOver returns err, or nil if ctx has ended: results found so far are still used.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func mayHelp(e *observation.Event, done *observation.Recorded) bool {
	switch {
	case done.Session == 0 || e.AgentID != "":
		return false
	case e.Kind == observation.Prompt:
		return len(done.IDs) > 0 && countWords(e.Text) >= minPromptWords && !isSlashCommand(e.Text)
	}
	return e.Announces()
}

// assistant finds help for one event.
type assistant struct {
	event   *observation.Event
	place   project.Location
	project project.Project
	session int64 // key
	own     int64 // id of the event's row, 0 if it has none
	filter  *redact.Filter
	keep    observation.Retention
	budget  *budget
	service *observation.Service
	now     int64          // Unix seconds
	shown   map[int64]bool // rows that the session has been shown
	room    int            // tokens left
}

// advice is one part of a help text: rows as lines, the most useful first.
type advice struct {
	section string
	rows    []ledger.Line
}

// A row that was only named as a likely file does not count as shown.
const selectShownRows = `SELECT observation_id, CASE trigger WHEN 'session_start' THEN 0 ELSE tokens END, section = 'likely'
FROM injection_rows WHERE session_key = ?`

func (a *assistant) help(ctx context.Context, tx *store.Tx) (ledger.Injection, error) {
	a.shown, a.room = map[int64]bool{}, maxSessionHelp
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var id int64
		var spent int
		var named bool
		err := r.Scan(&id, &spent, &named)
		a.shown[id] = a.shown[id] || !named
		a.room -= spent
		return err
	}, selectShownRows, a.session)
	if a.room = min(a.room, maxHelp); err != nil || a.room < leastHelp {
		return ledger.Injection{}, err
	}
	look := a.beforeCalls
	if a.event.Kind == observation.Prompt {
		look = a.onPrompt
	}
	parts, err := look(ctx, tx)
	if err != nil {
		return ledger.Injection{}, err
	}
	return a.render(parts), nil
}

// onPrompt returns the help for a prompt, the most useful part first.
func (a *assistant) onPrompt(ctx context.Context, tx *store.Tx) ([]advice, error) {
	since, err := a.lastTurn(ctx, tx)
	if err != nil {
		return nil, err
	}
	text, ok, err := observation.ContentOf(ctx, tx, a.own)
	if err != nil || !ok { // purged in the meantime
		return nil, err
	}
	rows, err := a.related(ctx, tx, text)
	parts := []advice{{ledger.SectionRelated, rows}}
	if err != nil || since != a.own || a.budget.isBeyond(likelyShare) {
		return parts, err
	}
	s := &likely.WordSearch{Project: a.project.Key, Own: 1, Half: a.budget.until(ctx, wordsShare)}
	if err := s.Find(ctx, tx, text); err != nil {
		return parts, unlessOver(ctx, err)
	}
	files, err := a.likelyFiles(ctx, tx, text, s)
	if err != nil {
		return parts, unlessOver(ctx, err)
	}
	return append(parts, advice{ledger.SectionLikely, likely.FileLines(files, a.project.Root)}), nil
}

const selectShownFiles = `SELECT o.path_key FROM injection_rows i JOIN observation_rows o ON o.id = i.observation_id
WHERE i.session_key = ? AND o.project_key = ? AND o.path_key IS NOT NULL`

// likelyFiles returns the likely files that the session's first prompt supports and that the
// session has not been shown yet. In a small project it returns at most half of the files, because
// a list of all files is useless.
func (a *assistant) likelyFiles(ctx context.Context, tx *store.Tx, prompt string, words *likely.WordSearch) ([]likely.File, error) {
	told := map[string]bool{}
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var file string
		err := r.Scan(&file)
		told[file] = true
		return err
	}, selectShownFiles, a.session, a.project.Key)
	if err != nil {
		return nil, err
	}
	files, err := likely.Rank(ctx, tx, likely.Args{
		Project: a.project, Session: a.event.Session, Branch: a.event.Branch, Prompt: prompt, Limit: likely.MaxLikely,
	}, a.keep, words)
	most := likely.MaxLikely
	if len(files) < likely.MaxLikely {
		most = (len(files) + 1) / 2
	}
	files = slices.DeleteFunc(files, func(f likely.File) bool { return told[f.Path] || !f.Asked })
	return files[:min(len(files), most)], err
}

// beforeCalls returns the help for pending calls: one call, or one per file of a patch.
func (a *assistant) beforeCalls(ctx context.Context, tx *store.Tx) (parts []advice, err error) {
	for i := range a.event.Calls {
		call := &a.event.Calls[i]
		var row ledger.Line
		section := ledger.SectionFile
		switch call.Action {
		case observation.Read, observation.Write, observation.Edit:
			row, err = a.lastChange(ctx, tx, call.Path)
		case observation.Shell:
			section = ledger.SectionCommand
			row, err = a.lastFailure(ctx, tx, call)
		}
		if err != nil {
			return parts, unlessOver(ctx, err)
		}
		if row.ID != 0 && !a.shown[row.ID] {
			a.shown[row.ID] = true
			parts = append(parts, advice{section, []ledger.Line{row}})
		}
	}
	return parts, nil
}

// render returns a text with as many rows as fit. The tokens of its items add up to the tokens of
// the text. The header counts towards the first item.
func (a *assistant) render(parts []advice) (c ledger.Injection) {
	var text strings.Builder
	text.WriteString(helpHeader)
	for _, p := range parts {
		for _, r := range p.rows {
			line := r.Text + "\n"
			after := (text.Len() + len(line) + 3) / 4
			if after > a.room {
				continue
			}
			text.WriteString(line)
			c.Items = append(c.Items, r.Items(p.section, after-c.Tokens)...)
			c.Tokens = after
		}
	}
	if len(c.Items) == 0 {
		return ledger.Injection{}
	}
	c.Text = text.String()
	return c
}

// countWords returns the number of words of a prompt. Two characters of a script without spaces
// count as one word.
func countWords(text string) int {
	n := 0
	for _, r := range text {
		if words.IsIdeograph(r) {
			n++
		}
	}
	return len(strings.Fields(text)) + n/2
}

// isSlashCommand reports whether a prompt calls a command of the harness: its first word is a
// slash and a name, not a path.
func isSlashCommand(prompt string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(prompt), " ")
	name, ok := strings.CutPrefix(first, "/")
	return ok && name != "" && !strings.ContainsAny(name, "/.")
}
