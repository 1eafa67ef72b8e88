package cairn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/gitread"
	"cairn/internal/observation"
	"cairn/internal/record"
)

// WhyArgs are a question for Why.
type WhyArgs struct {
	File string // absolute, or relative to the working directory, else to its repository's root
	Line int    // counted from 1; 0 for the file as a whole

	// Whose records are meant, and if it has another root than the working
	// directory's project, what File is relative to. An explicit id or alias must
	// exist; that of --project or CAIRN_PROJECT need not yet. Both "": the project of
	// the file.
	ProjectID, Project string
}

// Why is where a line, or a file, comes from: as much of the way from commit to
// session, prompt and records as there is, and what is missing of it (contract
// records §4.2). Lists are never nil.
type Why struct {
	File string `json:"file"` // relative to its working tree, in slashes; absolute outside of one
	Line int    `json:"line,omitempty"`
	Text string `json:"text,omitempty"` // of the line, at most 200 characters

	// Of a line, how sure its first session is; see the constants. "" of a file.
	Confidence string `json:"confidence,omitempty"`

	Commit   *WhyCommit   `json:"commit"`   // that wrote the line
	Commits  []WhyCommit  `json:"commits"`  // of a file: the newest 10 that changed it
	Sessions []WhySession `json:"sessions"` // the one that wrote the line first; of a file the last to edit it first
	Records  []WhyRecord  `json:"records"`
	Missing  []WhyMissing `json:"missing"`
}

// Known tells whether anything was found.
func (w *Why) Known() bool {
	return w.Commit != nil || len(w.Commits) > 0 || len(w.Sessions) > 0 || len(w.Records) > 0
}

// WhyCommit is a commit that changed the file.
type WhyCommit struct {
	Hash      string      `json:"hash"`
	Author    string      `json:"author"`
	Authored  record.Time `json:"authored"`
	Committed record.Time `json:"committed"`
	Subject   string      `json:"subject"`
	File      string      `json:"file,omitempty"`       // its name then, of a line
	Line      int         `json:"line,omitempty"`       // its number then
	SessionID string      `json:"session_id,omitempty"` // that is known to have made it

	message string
}

// WhySession is a session that made the commit or edited the file.
type WhySession struct {
	SessionID string      `json:"session_id"`
	Project   string      `json:"project"`
	Harness   string      `json:"harness,omitempty"`
	Started   record.Time `json:"started"`
	Via       string      `json:"via"` // commit: it made that very commit; edit: it edited the file before
	Intent    string      `json:"intent,omitempty"`

	Commit  *WhyRow         `json:"commit,omitempty"` // its row that made the commit
	Edit    *WhyRow         `json:"edit,omitempty"`   // its last edit of the file up to then
	Prompt  *WhyPrompt      `json:"prompt,omitempty"` // behind the edit, else behind the commit
	Summary json.RawMessage `json:"summary"`          // its digest, or null
}

// WhyRow is an observation.
type WhyRow struct {
	ID        int64       `json:"id"`
	Timestamp record.Time `json:"timestamp"`
	File      string      `json:"file,omitempty"` // that an edit changed, if the line is in another file today
}

// The values of Why.Confidence, the surest first.
const (
	// WhyCommitText: the session's edit wrote the text of the line, and the session made
	// the line's commit.
	WhyCommitText = "commit"
	// WhyText: the session's edit wrote the text of the line.
	WhyText = "text"
	// WhyHistory: the text of the line is not known from an edit. The session made the
	// commit, or edited the file at that time.
	WhyHistory = "history"
	// WhyUnknown: no recorded edit wrote the line, or the line is too common to tell. A
	// session that is shown made the commit, no more.
	WhyUnknown = "none"
)

// WhyPrompt is what a user asked for, with the observation that holds it.
type WhyPrompt struct {
	WhyRow
	Content string `json:"content"`
}

// WhyMissing is a link that cannot be followed.
type WhyMissing struct {
	Link string `json:"link"` // line, commit, session, prompt, records
	Why  string `json:"why"`
}

const (
	whyCommits  = 10
	whySessions = 10
	whyEdits    = 200
	// whyLastEdits is how many sessions are told of a line whose commit is unknown.
	whyLastEdits = 3
)

// Why follows a line of the working tree, or a file, back to what was wanted.
// Nothing is written. Errors: NotFound for an unknown project and, with the code
// no_such_line, for a line that the file does not have; Invalid for a folder, a
// blank name, a line below 0, and a relative one without a working directory; those
// of the store. Whatever else fails, git included, is a link that is missing.
func (c *Cairn) Why(ctx context.Context, a WhyArgs) (Why, error) {
	w := Why{
		Line: a.Line, Commits: []WhyCommit{}, Sessions: []WhySession{}, Records: []WhyRecord{}, Missing: []WhyMissing{},
	}
	if a.Line < 0 {
		return w, fault.New(fault.Invalid, "invalid_argument", "lines are counted from 1").
			WithHint("leave the line out to ask about the whole file")
	}
	f, err := c.whyFile(ctx, a)
	if err != nil {
		return w, err
	}
	w.File = f.name()
	j, err := c.Journal(ctx)
	if err != nil {
		return w, err
	}
	q := whyQuestion{cairn: c, journal: j, file: f, why: &w}
	if err := q.ask(ctx); err != nil {
		return w, err
	}
	for i := range w.Commits {
		w.Commits[i].Subject, _ = c.journal.Filter.Head(w.Commits[i].Subject, maxWhyText)
	}
	if w.Line > 0 && w.Confidence == "" {
		if w.Confidence = WhyUnknown; len(w.Sessions) > 0 {
			w.Confidence = WhyHistory
		}
	}
	if w.Commit != nil {
		w.Commit.Subject, _ = c.journal.Filter.Head(w.Commit.Subject, maxWhyText)
	}
	return w, q.findRecords(ctx, a)
}

// maxWhyText is how many characters of a line and of a commit's subject are shown.
const maxWhyText = 200

// whyQuestion is a question on its way.
type whyQuestion struct {
	cairn   *Cairn
	journal *observation.Journal
	file    whyFile
	why     *Why
	line    fileLine
	history []gitread.Commit // the file's newest two up to the line's
}

func (q *whyQuestion) missing(link, why string) {
	q.why.Missing = append(q.why.Missing, WhyMissing{link, why})
}

// ask fills in commits and sessions.
func (q *whyQuestion) ask(ctx context.Context) error {
	w := q.why
	line := w.Line
	if line > 0 && q.file.rel != "" {
		found, why, err := q.file.line(ctx, line)
		if err != nil {
			return err
		}
		q.line = found
		if why != "" {
			q.missing("line", why)
			line = 0
		}
		w.Text, _ = q.cairn.journal.Filter.Head(found.text(), maxWhyText)
	}
	repo, ok := q.repository()
	switch {
	case ok && line > 0:
		if err := q.blame(ctx, repo); err != nil {
			return err
		}
	case ok:
		if err := q.log(ctx, repo); err != nil {
			return err
		}
	}
	if !q.journal.Exists() {
		q.missing("session", "there is no store yet: `cairn import` fills one")
		return nil
	}
	switch {
	case line > 0 && q.file.rel != "":
		return q.author(ctx, repo, ok)
	default:
		return q.lastEdits(ctx, line)
	}
}

// repository is the file's, if git can be asked about it.
func (q *whyQuestion) repository() (gitread.Repository, bool) {
	if q.file.rel == "" {
		q.missing("commit", "the file is in no Git working tree")
		return gitread.Repository{}, false
	}
	repo, err := gitread.Open(q.file.place.Root)
	if err != nil {
		q.missing("commit", err.Error())
		return repo, false
	}
	return repo, true
}

// blame finds the commit of the line.
func (q *whyQuestion) blame(ctx context.Context, repo gitread.Repository) error {
	b, err := repo.Blame(ctx, q.file.rel, q.why.Line)
	if err == nil && b.Hash == "" {
		q.missing("commit", "the line is not committed yet")
		return nil
	}
	var found gitread.Commit
	if err == nil {
		found, err = q.commitOf(ctx, repo, b)
	}
	if fault.HasCode(err, gitread.CodeFailed) && strings.Contains(fault.As(err).Message, "no such path") {
		q.missing("commit", "the file is not committed yet")
		return nil
	}
	if err != nil {
		return q.gitFailed(ctx, err)
	}
	known := whyCommit(found)
	known.File, known.Line = b.Path, b.Line
	q.why.Commit = &known
	if b.Boundary && gitread.IsCutOff(q.file.place.Identity, b.Hash) {
		q.missing("commit", "the clone is shallow: the line may be older than the oldest commit it has, which is shown")
	}
	return nil
}

// commitOf returns the commit of a line. It also keeps the file's commit before that one;
// edits of any age count if git cannot say.
func (q *whyQuestion) commitOf(ctx context.Context, repo gitread.Repository, b gitread.Blame) (gitread.Commit, error) {
	list, err := repo.Log(ctx, b.Path, b.Hash, 2)
	if err == nil {
		q.history = list
	}
	if i := slices.IndexFunc(list, func(c gitread.Commit) bool { return c.Hash == b.Hash }); i >= 0 {
		return list[i], nil
	}
	return repo.Commit(ctx, b.Hash)
}

// log lists the commits of the file.
func (q *whyQuestion) log(ctx context.Context, repo gitread.Repository) error {
	list, err := repo.Log(ctx, q.file.rel, "", whyCommits)
	if err != nil {
		return q.gitFailed(ctx, err)
	}
	if len(list) == 0 {
		q.missing("commit", "no commit has changed the file")
	}
	hashes := []string{}
	for _, found := range list {
		q.why.Commits = append(q.why.Commits, whyCommit(found))
		hashes = append(hashes, found.Hash)
	}
	made, err := q.journal.CommitOrigins(ctx, q.file.place.Cwd, hashes)
	for i := range q.why.Commits {
		q.why.Commits[i].SessionID = made[q.why.Commits[i].Hash].SessionID
	}
	return err
}

// gitFailed notes why git did not answer; only the end of ctx ends the question.
func (q *whyQuestion) gitFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	q.missing("commit", fault.As(err).Message)
	return nil
}

// lastEdits are the sessions that edited the file last: of a file as a whole, and
// of a line whose commit is not known.
func (q *whyQuestion) lastEdits(ctx context.Context, line int) error {
	edits, err := q.journal.EditOrigins(ctx, observation.EditsArgs{
		Files: q.names(""), Cwd: cmp.Or(q.file.place.Cwd, q.cairn.config.Cwd), Limit: whyEdits, UnknownText: line > 0,
	})
	if err != nil {
		return err
	}
	limit := whySessions
	if line > 0 {
		limit = whyLastEdits
	}
	w := q.why
	for _, e := range edits {
		known := slices.ContainsFunc(w.Sessions, func(s WhySession) bool { return s.SessionID == e.SessionID })
		if !known && len(w.Sessions) < limit {
			s := whySession(e, "edit")
			s.edited(e)
			w.Sessions = append(w.Sessions, s)
		}
	}
	if len(w.Sessions) == 0 {
		q.missing("session", "no recorded session edited the file")
	}
	return nil
}

func whyCommit(c gitread.Commit) WhyCommit {
	return WhyCommit{
		Hash: c.Hash, Author: c.Author, Authored: record.Time(c.Authored.UnixNano()),
		Committed: record.Time(c.Committed.UnixNano()), Subject: c.Subject(), message: c.Message,
	}
}

func seconds(t record.Time) int64 { return int64(t) / int64(time.Second) }

func whySession(o observation.Origin, via string) WhySession {
	s := WhySession{
		SessionID: o.SessionID, Project: o.Project, Harness: o.Harness, Started: atSecond(o.StartedAt), Via: via,
		Summary: o.Digest, Prompt: whyPrompt(o),
	}
	if via == "commit" {
		s.Commit = &WhyRow{ID: o.ObservationID, Timestamp: atSecond(o.Timestamp)}
	}
	var digest observation.Digest
	if json.Unmarshal(o.Digest, &digest) == nil {
		s.Intent = digest.Intent
	}
	return s
}

// edited adds the session's edit of the file; its prompt tells more than that of
// the commit.
func (s *WhySession) edited(o observation.Origin) {
	s.Edit = &WhyRow{ID: o.ObservationID, Timestamp: atSecond(o.Timestamp)}
	if p := whyPrompt(o); p != nil {
		s.Prompt = p
	}
}

func whyPrompt(o observation.Origin) *WhyPrompt {
	if o.Prompt == nil {
		return nil
	}
	return &WhyPrompt{WhyRow{ID: o.Prompt.ID, Timestamp: atSecond(o.Prompt.Timestamp)}, o.Prompt.Content}
}

func atSecond(t int64) record.Time { return record.Time(t * int64(time.Second)) }

// ParseWhy reads FILE, FILE:LINE, FILE:LINE:COLUMN or FILE#L12 (a range counts
// from its first line). Where more than one of them could be meant, it is the one
// whose file is there. A number that is no line's is -1, which Why refuses.
func (c *Cairn) ParseWhy(arg string) (file string, line int) {
	type reading struct {
		file string
		line int
	}
	readings := []reading{{arg, 0}}
	if name, lines, ok := strings.Cut(arg, "#L"); ok {
		if n, ok := leadingNumber(lines); ok {
			readings = append(readings, reading{name, n})
		}
	}
	if name, n, ok := cutNumber(arg); ok {
		readings = append(readings, reading{name, n})
		if first, m, ok := cutNumber(name); ok { // n is the column
			readings = append(readings, reading{first, m})
		}
	}
	for _, r := range readings {
		for _, dir := range []string{c.config.Cwd, c.place.Root} {
			path := r.file
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			if exists(path) {
				return r.file, r.line
			}
		}
	}
	last := readings[len(readings)-1]
	return last.file, last.line
}

// cutNumber cuts a number and the colon before it off the end. One below 1 is -1,
// one that is too large the largest.
func cutNumber(s string) (rest string, n int, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return s, 0, false
	}
	n, err := strconv.Atoi(s[i+1:])
	if n < 1 {
		n = -1
	}
	return s[:i], n, err == nil || errors.Is(err, strconv.ErrRange)
}

// leadingNumber reads the positive number that a text begins with.
func leadingNumber(s string) (n int, ok bool) {
	digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0
}
