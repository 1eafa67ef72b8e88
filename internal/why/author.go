package why

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/gitread"
	"cairn/internal/observation/origin"
)

// author finds the sessions of a line. The session whose edit wrote its text comes first.
// The session that made its commit follows, if git names a commit. If the text of edits is
// not known, it uses the times of edits and commits.
func (q *question) author(ctx context.Context, repo gitread.Repository, git bool) error {
	maker, made, err := q.findMaker(ctx)
	if err != nil {
		return err
	}
	times := q.times()
	found, err := q.findAuthor(ctx, repo, git, times)
	if err != nil {
		return err
	}
	return q.credit(ctx, found, times, maker, made)
}

// credit adds the sessions of a line. found is the edit that wrote it. maker is the row
// that made its commit, if made is true.
func (q *question) credit(ctx context.Context, found origin.Author, times lineTimes, maker origin.Origin, made bool) error {
	w := q.answer
	switch found.State {
	case origin.AuthorFound:
		q.wrote(found, maker, made)
	case origin.AuthorUnknown:
		return q.byHistory(ctx, times, maker, made)
	case origin.AuthorCommon:
		w.Confidence = Unknown
		q.missing("line", "the line and the lines near it are too common to tell which edit wrote them")
	default:
		w.Confidence = Unknown
		q.missing("session", "no recorded edit wrote the text of the line: it comes from a person, a command or a formatter")
	}
	if found.State != origin.AuthorFound && made {
		w.Sessions = append(w.Sessions, sessionOf(maker, "commit"))
	}
	return nil
}

// wrote adds the session whose edit wrote the line. It also adds the session that made the
// commit, if that is a different one.
func (q *question) wrote(found origin.Author, maker origin.Origin, made bool) {
	w := q.answer
	w.Confidence = ByText
	s := sessionOf(found.Origin, "edit")
	if made && maker.SessionID == found.SessionID {
		w.Confidence = ByCommit
		s = sessionOf(maker, "commit")
	}
	s.edited(found.Origin)
	if filepath.ToSlash(found.Path) != q.file.rel {
		s.Edit.File = filepath.ToSlash(found.Path)
	}
	w.Sessions = append(w.Sessions, s)
	if made && maker.SessionID != found.SessionID {
		w.Sessions = append(w.Sessions, sessionOf(maker, "commit"))
	}
	if s.Prompt == nil {
		q.missing("prompt", "no prompt is known behind the session's edit or commit")
	}
}

// findMaker calls maker for the line's commit alone.
func (q *question) findMaker(ctx context.Context) (origin.Origin, bool, error) {
	c := q.answer.Commit
	if c == nil {
		return origin.Origin{}, false, nil
	}
	known, err := origin.CommitOrigins(ctx, q.Journal, q.file.place.Cwd, []string{c.Hash})
	if err != nil {
		return origin.Origin{}, false, err
	}
	return q.maker(ctx, known)
}

// maker returns the row that made the line's commit. It uses the rows in known, by the
// hash that git printed, or else the commit's time and subject. made is false without a
// commit, or if no session is known to have made it.
func (q *question) maker(ctx context.Context, known map[string]origin.Origin) (maker origin.Origin, made bool, err error) {
	c := q.answer.Commit
	if c == nil {
		return maker, false, nil
	}
	if maker, made = known[c.Hash]; !made {
		maker, made, err = origin.CommitMaker(ctx, q.Journal, q.file.place.Cwd, origin.CommitTime{
			Hash: c.Hash, Subject: firstLine(c.message), Authored: seconds(c.Authored), Committed: seconds(c.Committed),
		})
	}
	switch {
	case err != nil:
		return maker, false, err
	case made:
		c.SessionID = maker.SessionID
	default:
		q.missing("session", "no recorded session made commit "+c.Hash[:12]+
			" (made outside of agents, or rewritten since, as a rebase does)")
	}
	return maker, made, nil
}

func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return strings.TrimSpace(line)
}

// lineTimes bounds the time in which the changes of a line's commit were written.
type lineTimes struct {
	after           *int64 // author time of the file's previous commit, nil if there is none
	authored, until *int64 // nil without a commit
}

// times reads when the file changed before the line's commit. Rebasing keeps the author
// time, while amending a commit adds later edits.
func (q *question) times() (t lineTimes) {
	commit := q.answer.Commit
	if commit == nil {
		return t
	}
	history := slices.DeleteFunc(slices.Clone(q.history), func(h gitread.Commit) bool { return h.Hash == commit.Hash })
	authored, committed := seconds(commit.Authored), seconds(commit.Committed)
	t.authored, t.until = &authored, new(max(authored, committed))
	if len(history) > 0 && history[0].Authored.Unix() < authored {
		t.after = new(history[0].Authored.Unix())
	}
	return t
}

// findAuthor searches for the edit that wrote the line. It searches first under the file's
// current name and its name in the commit. Then it searches under earlier names and in
// other files.
func (q *question) findAuthor(ctx context.Context, repo gitread.Repository, git bool, times lineTimes) (origin.Author, error) {
	then := ""
	if q.answer.Commit != nil {
		then = q.answer.Commit.File
	}
	a := origin.AuthorArgs{
		Lines: q.line.near, At: q.line.at, Files: q.names(then), Cwd: cmp.Or(q.file.place.Cwd, q.Cwd),
		After: times.after, Until: times.until,
	}
	if strings.EqualFold(filepath.Ext(q.file.rel), ".ipynb") {
		a.Lines = notebookLines(a.Lines)
	}
	found, err := origin.FindAuthor(ctx, q.Journal, a)
	if err != nil || !found.Beyond {
		return found, err // listing the file's names takes git longer than all other steps
	}
	if git {
		names, err := repo.Names(ctx, q.file.rel)
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		if err == nil { // on an error, continue without the earlier names
			for _, name := range names {
				a.Files = append(a.Files, filepath.Join(q.file.place.Root, filepath.FromSlash(name)))
			}
		}
	}
	a.Elsewhere = true
	return origin.FindAuthor(ctx, q.Journal, a)
}

// notebookLines returns the lines of a notebook as a cell shows them. Each line in the
// file is a JSON string.
func notebookLines(lines []string) []string {
	out := slices.Clone(lines)
	for i, line := range out {
		var text string
		if line = strings.TrimSuffix(strings.TrimSpace(line), ","); json.Unmarshal([]byte(line), &text) == nil {
			out[i] = strings.TrimSuffix(text, "\n")
		}
	}
	return out
}

// byHistory finds the sessions of a line if the text of edits is not known. The first
// candidate is the session that made the commit. If it did not edit the file, or is not
// known, the session of the last earlier edit is added.
func (q *question) byHistory(ctx context.Context, times lineTimes, maker origin.Origin, made bool) error {
	w := q.answer
	w.Confidence = ByHistory
	if w.Commit == nil {
		return q.lastEdits(ctx, w.Line)
	}
	edits, err := q.editsBefore(ctx, times, made)
	if err != nil {
		return err
	}
	last := slices.IndexFunc(edits, func(o origin.Origin) bool { return !made || o.SessionID == maker.SessionID })
	if made {
		s := sessionOf(maker, "commit")
		if last >= 0 {
			s.edited(edits[last])
		}
		w.Sessions = append(w.Sessions, s)
	}
	if (!made || last < 0) && len(edits) > 0 {
		s := sessionOf(edits[0], "edit")
		s.edited(edits[0])
		w.Sessions = append(w.Sessions, s)
	}
	switch {
	case len(w.Sessions) == 0:
		w.Confidence = Unknown
		q.missing("session", "no recorded session edited the file between the commit before and this one")
	case !slices.ContainsFunc(w.Sessions, func(s Session) bool { return s.Prompt != nil }):
		q.missing("prompt", "no prompt is known behind the session's edit or commit")
	}
	return nil
}

// editsBefore returns the edits of the file that the commit can contain and whose text is
// not known, newest first. They are edits after the previous commit of the file. It first
// searches up to the author time. Edits that a session made before its own commit always
// count.
func (q *question) editsBefore(ctx context.Context, times lineTimes, made bool) ([]origin.Origin, error) {
	a := origin.EditsArgs{
		Files: q.names(q.answer.Commit.File), Cwd: q.file.place.Cwd, Limit: maxEdits, UnknownText: true, After: times.after,
	}
	if !made {
		a.Until = times.authored
		if edits, err := origin.EditOrigins(ctx, q.Journal, a); err != nil || len(edits) > 0 {
			return edits, err
		}
	}
	a.Until = times.until
	return origin.EditOrigins(ctx, q.Journal, a)
}

// names returns the file's current name and its name in a commit.
func (q *question) names(then string) []string {
	names := []string{q.file.abs}
	if then != "" && then != q.file.rel {
		names = append(names, filepath.Join(q.file.place.Root, filepath.FromSlash(then)))
	}
	return names
}
