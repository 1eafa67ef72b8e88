// Package why finds the origin of a line of code: the commit that wrote it, the session and
// the prompt behind that commit or edit, and the records that cite the line. It also stores
// what records cite and reports which citations have drifted.
//
// A commit's hash leads to a session, and that session's last edit of the file to the
// prompt; for a rewritten commit the edits before its author date do. Git runs without
// anything that starts a program which a repository names.
package why

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
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// Service answers questions about one store and one working directory. Its methods write
// nothing.
type Service struct {
	Store   *store.Store         // nil while there is none
	Journal *observation.Service // over the store
	Records *record.Service      // over the store, nil while there is none
	Filter  *redact.Filter
	Place   project.Location // of the working directory
	Cwd     string           // the working directory, "" if there is none to speak of
	Home    string           // the user's home directory, "" if unknown
}

// Args are a question for Ask.
type Args struct {
	File string `arg:"file,required" about:"Absolute, or relative to the working directory or the repository."` // else to the root of its repository
	Line int    `arg:"line,min=1" about:"The line's number, from 1. Omitted: the whole file."`                  // 0 for the whole

	// Whose records are meant, and if it has another root than the working
	// directory's project, what File is relative to. An explicit id or alias must
	// exist; that of --project or CAIRN_PROJECT need not yet. Both "": the project of
	// the file.
	ProjectID string `arg:"project_id" about:"The project, by its id. Omitted: the current project."`
	Project   string
}

// Answer is where a line, or a file, comes from: as much of the way from commit to
// session, prompt and records as there is, and what is missing of it (contract
// records §4.2). Lists are never nil.
type Answer struct {
	File string `json:"file"` // relative to its working tree, in slashes; absolute outside of one
	Line int    `json:"line,omitempty"`
	Text string `json:"text,omitempty"` // of the line, at most 200 characters

	// Of a line, how sure its first session is; see the constants. "" of a file.
	Confidence string `json:"confidence,omitempty"`

	Commit   *Commit   `json:"commit"`   // that wrote the line
	Commits  []Commit  `json:"commits"`  // of a file: the newest 10 that changed it
	Sessions []Session `json:"sessions"` // the one that wrote the line first; of a file the last to edit it first
	Records  []Record  `json:"records"`
	Missing  []Missing `json:"missing"`
}

// Known reports whether anything was found.
func (a *Answer) Known() bool {
	return a.Commit != nil || len(a.Commits) > 0 || len(a.Sessions) > 0 || len(a.Records) > 0
}

// Commit is a commit that changed the file.
type Commit struct {
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

// Session is a session that made the commit or edited the file.
type Session struct {
	SessionID string      `json:"session_id"`
	Project   string      `json:"project"`
	Harness   string      `json:"harness,omitempty"`
	Started   record.Time `json:"started"`
	Via       string      `json:"via"` // commit: it made that very commit; edit: it edited the file before
	Intent    string      `json:"intent,omitempty"`

	Commit  *Row            `json:"commit,omitempty"` // its row that made the commit
	Edit    *Row            `json:"edit,omitempty"`   // its last edit of the file up to then
	Prompt  *Prompt         `json:"prompt,omitempty"` // behind the edit, else behind the commit
	Summary json.RawMessage `json:"summary"`          // its digest, or null
}

// Row is an observation.
type Row struct {
	ID        int64       `json:"id"`
	Timestamp record.Time `json:"timestamp"`
	File      string      `json:"file,omitempty"` // that an edit changed, if the line is in another file today
}

// The values of Answer.Confidence, the surest first.
const (
	// ByCommit: the session's edit wrote the text of the line, and the session made
	// the line's commit.
	ByCommit = "commit"
	// ByText: the session's edit wrote the text of the line.
	ByText = "text"
	// ByHistory: the text of the line is not known from an edit. The session made the
	// commit, or edited the file at that time.
	ByHistory = "history"
	// Unknown: no recorded edit wrote the line, or the line is too common to tell. A
	// session that is shown made the commit, no more.
	Unknown = "none"
)

// Prompt is what a user asked for, with the observation that holds it.
type Prompt struct {
	Row
	Content string `json:"content"`
}

// Missing is a link that cannot be followed.
type Missing struct {
	Link string `json:"link"` // line, commit, session, prompt, records
	Why  string `json:"why"`
}

const (
	maxCommits  = 10
	maxSessions = 10
	maxEdits    = 200
	// maxLastEdits is how many sessions are told of a line whose commit is unknown.
	maxLastEdits = 3
)

// Ask follows a line of the working tree, or a file, back to what was wanted.
// Nothing is written. Errors: NotFound for an unknown project and, with the code
// no_such_line, for a line that the file does not have; Invalid for a folder, a
// blank name, a line below 0, and a relative one without a working directory; those
// of the store. Whatever else fails, git included, is a link that is missing.
func (s *Service) Ask(ctx context.Context, a Args) (Answer, error) {
	w := Answer{
		Line: a.Line, Commits: []Commit{}, Sessions: []Session{}, Records: []Record{}, Missing: []Missing{},
	}
	if a.Line < 0 {
		return w, fault.New(fault.Invalid, "invalid_argument", "lines are counted from 1").
			WithHint("leave the line out to ask about the whole file")
	}
	f, err := s.find(ctx, a)
	if err != nil {
		return w, err
	}
	w.File = f.name()
	q := question{Service: s, file: f, answer: &w}
	if err := q.ask(ctx); err != nil {
		return w, err
	}
	for i := range w.Commits {
		w.Commits[i].Subject, _ = s.Filter.Head(w.Commits[i].Subject, maxText)
	}
	if w.Line > 0 && w.Confidence == "" {
		if w.Confidence = Unknown; len(w.Sessions) > 0 {
			w.Confidence = ByHistory
		}
	}
	if w.Commit != nil {
		w.Commit.Subject, _ = s.Filter.Head(w.Commit.Subject, maxText)
	}
	return w, q.findRecords(ctx, a)
}

// maxText is how many characters of a line and of a commit's subject are shown.
const maxText = 200

// question is a question under way.
type question struct {
	*Service
	file    file
	answer  *Answer
	line    fileLine
	history []gitread.Commit // the file's newest two up to the line's
}

func (q *question) missing(link, why string) {
	q.answer.Missing = append(q.answer.Missing, Missing{link, why})
}

// ask fills in commits and sessions.
func (q *question) ask(ctx context.Context) error {
	w := q.answer
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
		w.Text, _ = q.Filter.Head(found.text(), maxText)
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
	if !q.Journal.Exists() {
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
func (q *question) repository() (gitread.Repository, bool) {
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
func (q *question) blame(ctx context.Context, repo gitread.Repository) error {
	b, err := repo.Blame(ctx, q.file.rel, q.answer.Line)
	if err == nil && b.Hash == "" {
		q.missing("commit", "the line is not committed yet")
		return nil
	}
	var found gitread.Commit
	if err == nil {
		found, err = q.commitOf(ctx, repo, b)
	}
	if isUncommitted(err) {
		q.missing("commit", "the file is not committed yet")
		return nil
	}
	if err != nil {
		return q.gitFailed(ctx, err)
	}
	known := madeBy(found)
	known.File, known.Line = b.Path, b.Line
	q.answer.Commit = &known
	if b.Boundary && gitread.IsCutOff(q.file.place.Identity, b.Hash) {
		q.missing("commit", "the clone is shallow: the line may be older than the oldest commit it has, which is shown")
	}
	return nil
}

// isUncommitted reports whether git refused because the file is not committed, or nothing is.
func isUncommitted(err error) bool {
	if !fault.HasCode(err, gitread.CodeFailed) {
		return false
	}
	said := fault.As(err).Message
	return strings.Contains(said, "no such path") || strings.Contains(said, "no such ref: HEAD")
}

// commitOf returns the commit of a line. It also keeps the file's commit before that one;
// edits of any age count if git cannot say.
func (q *question) commitOf(ctx context.Context, repo gitread.Repository, b gitread.Blame) (gitread.Commit, error) {
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
func (q *question) log(ctx context.Context, repo gitread.Repository) error {
	list, err := repo.Log(ctx, q.file.rel, "", maxCommits)
	if err != nil {
		return q.gitFailed(ctx, err)
	}
	if len(list) == 0 {
		q.missing("commit", "no commit has changed the file")
	}
	hashes := []string{}
	for _, found := range list {
		q.answer.Commits = append(q.answer.Commits, madeBy(found))
		hashes = append(hashes, found.Hash)
	}
	made, err := q.Journal.CommitOrigins(ctx, q.file.place.Cwd, hashes)
	for i := range q.answer.Commits {
		q.answer.Commits[i].SessionID = made[q.answer.Commits[i].Hash].SessionID
	}
	return err
}

// gitFailed notes why git did not answer; only the end of ctx ends the question.
func (q *question) gitFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	q.missing("commit", fault.As(err).Message)
	return nil
}

// lastEdits are the sessions that edited the file last: of a file as a whole, and
// of a line whose commit is not known.
func (q *question) lastEdits(ctx context.Context, line int) error {
	edits, err := q.Journal.EditOrigins(ctx, observation.EditsArgs{
		Files: q.names(""), Cwd: cmp.Or(q.file.place.Cwd, q.Cwd), Limit: maxEdits, UnknownText: line > 0,
	})
	if err != nil {
		return err
	}
	limit := maxSessions
	if line > 0 {
		limit = maxLastEdits
	}
	w := q.answer
	for _, e := range edits {
		known := slices.ContainsFunc(w.Sessions, func(s Session) bool { return s.SessionID == e.SessionID })
		if !known && len(w.Sessions) < limit {
			s := sessionOf(e, "edit")
			s.edited(e)
			w.Sessions = append(w.Sessions, s)
		}
	}
	if len(w.Sessions) == 0 {
		q.missing("session", "no recorded session edited the file")
	}
	return nil
}

func madeBy(c gitread.Commit) Commit {
	return Commit{
		Hash: c.Hash, Author: c.Author, Authored: record.Time(c.Authored.UnixNano()),
		Committed: record.Time(c.Committed.UnixNano()), Subject: c.Subject(), message: c.Message,
	}
}

func seconds(t record.Time) int64 { return int64(t) / int64(time.Second) }

func sessionOf(o observation.Origin, via string) Session {
	s := Session{
		SessionID: o.SessionID, Project: o.Project, Harness: o.Harness, Started: atSecond(o.StartedAt), Via: via,
		Summary: o.Digest, Prompt: promptOf(o),
	}
	if via == "commit" {
		s.Commit = &Row{ID: o.ObservationID, Timestamp: atSecond(o.Timestamp)}
	}
	var digest observation.Digest
	if json.Unmarshal(o.Digest, &digest) == nil {
		s.Intent = digest.Intent
	}
	return s
}

// edited adds the session's edit of the file; its prompt tells more than that of
// the commit.
func (s *Session) edited(o observation.Origin) {
	s.Edit = &Row{ID: o.ObservationID, Timestamp: atSecond(o.Timestamp)}
	if p := promptOf(o); p != nil {
		s.Prompt = p
	}
}

func promptOf(o observation.Origin) *Prompt {
	if o.Prompt == nil {
		return nil
	}
	return &Prompt{Row{ID: o.Prompt.ID, Timestamp: atSecond(o.Prompt.Timestamp)}, o.Prompt.Content}
}

func atSecond(t int64) record.Time { return record.Time(t * int64(time.Second)) }

// Parse reads FILE, FILE:LINE, FILE:LINE:COLUMN or FILE#L12 (a range counts
// from its first line). Where more than one of them could be meant, it is the one
// whose file is there. A number that is not a line's is -1, which Ask refuses.
func (s *Service) Parse(arg string) (file string, line int) {
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
		for _, dir := range []string{s.Cwd, s.Place.Root} {
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
