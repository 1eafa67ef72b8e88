// Package why finds the origin of a line of code. It returns the commit that wrote the
// line, the session and the prompt of that commit or edit, and the records that cite the
// line. It also stores the citations of records and reports which have drifted.
//
// A commit's hash leads to a session, and that session's last edit of the file leads to
// the prompt. For a rewritten commit it uses the edits before its author date. Git runs
// with all settings disabled that start a program which a repository names.
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
	"cairn/internal/observation/origin"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// Service answers queries about one store and one working directory. Its methods write
// nothing.
type Service struct {
	Store   *store.Store         // nil before a store exists
	Journal *observation.Service // over the store
	Records *commands.Commands   // over the store; nil before a store exists
	Filter  *redact.Filter
	Place   project.Location // location of the working directory
	Cwd     string           // the working directory, "" if it is unknown
	Home    string           // the user's home directory, "" if unknown
}

// Args are the arguments of Ask.
type Args struct {
	File string `arg:"file,required" about:"Absolute, or relative to the working directory or the repository."` // else to the root of its repository
	Line int    `arg:"line,min=1" about:"The line's number, from 1. Omitted: the whole file."`                  // 0 for the whole

	// The project whose records are requested. If its root differs from that of the
	// working directory's project, File is relative to it. An explicit id or alias must
	// exist. The project of --project or CAIRN_PROJECT need not exist yet. If both are "",
	// the file's project is used.
	ProjectID string `arg:"project_id" about:"The project, by its id. Omitted: the current project."`
	Project   string
}

// Answer is the origin of a line or a file (contract records §4.2). It contains the
// commit, session, prompt and records that were found, and the links that are missing.
// Lists are never nil.
type Answer struct {
	File string `json:"file"` // relative to its working tree, with slashes; absolute outside a working tree
	Line int    `json:"line,omitempty"`
	Text string `json:"text,omitempty"` // text of the line, at most 200 characters

	// Confidence of a line's first session; see the constants. "" for a file.
	Confidence string `json:"confidence,omitempty"`

	Commit   *Commit   `json:"commit"`   // the commit that wrote the line
	Commits  []Commit  `json:"commits"`  // for a file: the newest 10 commits that changed it
	Sessions []Session `json:"sessions"` // for a line: the session that wrote it comes first; for a file: most recent edit first
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
	File      string      `json:"file,omitempty"`       // for a line: its file name in that commit
	Line      int         `json:"line,omitempty"`       // its line number in that commit
	SessionID string      `json:"session_id,omitempty"` // the session known to have made the commit

	message string
}

// Session is a session that made the commit or edited the file.
type Session struct {
	SessionID string      `json:"session_id"`
	Project   string      `json:"project"`
	Harness   string      `json:"harness,omitempty"`
	Started   record.Time `json:"started"`
	Via       string      `json:"via"` // commit: it made that commit; edit: it edited the file before
	Intent    string      `json:"intent,omitempty"`

	Commit  *Row            `json:"commit,omitempty"` // row of the session that made the commit
	Edit    *Row            `json:"edit,omitempty"`   // its last edit of the file up to that commit
	Prompt  *Prompt         `json:"prompt,omitempty"` // prompt of the edit, else of the commit
	Summary json.RawMessage `json:"summary"`          // its digest, or null
}

// Row is an observation.
type Row struct {
	ID        int64       `json:"id"`
	Timestamp record.Time `json:"timestamp"`
	File      string      `json:"file,omitempty"` // file that the edit changed, if the line is in another file now
}

// The values of Answer.Confidence, from highest to lowest.
const (
	// ByCommit: the session's edit wrote the text of the line, and the session made
	// the line's commit.
	ByCommit = "commit"
	// ByText: the session's edit wrote the text of the line.
	ByText = "text"
	// ByHistory: the text of the line is not known from an edit. The session made the
	// commit, or edited the file at that time.
	ByHistory = "history"
	// Unknown: no recorded edit wrote the line, or the line is too common to identify an
	// edit. A listed session only made the commit.
	Unknown = "none"
)

// Prompt is a user's prompt, with the observation that contains it.
type Prompt struct {
	Row
	Content string `json:"content"`
}

// Missing is a link that could not be followed.
type Missing struct {
	Link string `json:"link"` // line, commit, session, prompt, records
	Why  string `json:"why"`
}

const (
	maxCommits  = 10
	maxSessions = 10
	maxEdits    = 200
	// maxLastEdits is the maximum number of sessions listed for a line whose commit is
	// unknown.
	maxLastEdits = 3
)

// Ask traces a line of the working tree, or a file, back to its commit, session, prompt
// and records. It writes nothing. Errors: NotFound for an unknown project; NotFound with
// code no_such_line for a line number after the end of the file; Invalid for a folder, a
// blank name, a line below 0, and a relative name without a working directory; those of
// the store. All other failures, including git's, are missing links.
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

// maxText is the maximum number of characters shown of a line or of a commit's subject.
const maxText = 200

// question is the state of one query.
type question struct {
	*Service
	file    file
	answer  *Answer
	line    fileLine
	history []gitread.Commit // the file's newest two commits up to the line's commit
}

func (q *question) missing(link, why string) {
	q.answer.Missing = append(q.answer.Missing, Missing{link, why})
}

// ask sets commits and sessions.
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

// repository returns the file's repository. The second result is false if git cannot be
// used for it.
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

// isUncommitted reports whether git failed because the file, or the whole repository, has
// no commit.
func isUncommitted(err error) bool {
	if !fault.HasCode(err, gitread.CodeFailed) {
		return false
	}
	said := fault.As(err).Message
	return strings.Contains(said, "no such path") || strings.Contains(said, "no such ref: HEAD")
}

// commitOf returns the commit of a line. It also stores the file's previous commit. If git
// cannot find that one, edits of any age count.
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
	made, err := origin.CommitOrigins(ctx, q.Journal, q.file.place.Cwd, hashes)
	for i := range q.answer.Commits {
		q.answer.Commits[i].SessionID = made[q.answer.Commits[i].Hash].SessionID
	}
	return err
}

// gitFailed records why git failed. It returns an error only if ctx has ended.
func (q *question) gitFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	q.missing("commit", fault.As(err).Message)
	return nil
}

// lastEdits adds the sessions that last edited the file. It is used for a whole file, and
// for a line whose commit is not known.
func (q *question) lastEdits(ctx context.Context, line int) error {
	edits, err := origin.EditOrigins(ctx, q.Journal, origin.EditsArgs{
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

func sessionOf(o origin.Origin, via string) Session {
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

// edited sets the session's edit of the file. The prompt of the edit is more specific than
// the prompt of the commit.
func (s *Session) edited(o origin.Origin) {
	s.Edit = &Row{ID: o.ObservationID, Timestamp: atSecond(o.Timestamp)}
	if p := promptOf(o); p != nil {
		s.Prompt = p
	}
}

func promptOf(o origin.Origin) *Prompt {
	if o.Prompt == nil {
		return nil
	}
	return &Prompt{Row{ID: o.Prompt.ID, Timestamp: atSecond(o.Prompt.Timestamp)}, o.Prompt.Content}
}

func atSecond(t int64) record.Time { return record.Time(t * int64(time.Second)) }

// Parse parses FILE, FILE:LINE, FILE:LINE:COLUMN or FILE#L12. For a range it returns the
// first line. If several forms match, it chooses the form whose file exists. An invalid
// line number is returned as -1, which Ask rejects.
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

// cutNumber removes a number and its preceding colon from the end. A number below 1 is
// returned as -1, a number that is too large as the largest int.
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

// leadingNumber parses the positive number at the start of a text.
func leadingNumber(s string) (n int, ok bool) {
	digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0
}
