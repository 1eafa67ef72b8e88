package why

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/gitread"
	"cairn/internal/observation"
)

// author finds the sessions behind a line: first the one whose edit wrote its text, then
// the one that made its commit, if git names a commit. If the text of edits is not known,
// the times of edits and commits have to do.
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

// credit names the sessions behind a line: found is the edit that wrote it, maker the row that
// made its commit, if made.
func (q *question) credit(ctx context.Context, found observation.Author, times lineTimes, maker observation.Origin, made bool) error {
	w := q.answer
	switch found.State {
	case observation.AuthorFound:
		q.wrote(found, maker, made)
	case observation.AuthorUnknown:
		return q.byHistory(ctx, times, maker, made)
	case observation.AuthorCommon:
		w.Confidence = Unknown
		q.missing("line", "the line and the lines near it are too common to tell which edit wrote them")
	default:
		w.Confidence = Unknown
		q.missing("session", "no recorded edit wrote the text of the line: it comes from a person, a command or a formatter")
	}
	if found.State != observation.AuthorFound && made {
		w.Sessions = append(w.Sessions, sessionOf(maker, "commit"))
	}
	return nil
}

// wrote adds the session whose edit wrote the line, and the session that made the commit
// if that is another.
func (q *question) wrote(found observation.Author, maker observation.Origin, made bool) {
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

// findMaker is maker for the line's commit alone.
func (q *question) findMaker(ctx context.Context) (observation.Origin, bool, error) {
	c := q.answer.Commit
	if c == nil {
		return observation.Origin{}, false, nil
	}
	known, err := q.Journal.CommitOrigins(ctx, q.file.place.Cwd, []string{c.Hash})
	if err != nil {
		return observation.Origin{}, false, err
	}
	return q.maker(ctx, known)
}

// maker returns the row that made the line's commit: one of those known by the hash that git
// printed, else by the commit's time and subject. made is false if no session is known to have
// made it, and without a commit.
func (q *question) maker(ctx context.Context, known map[string]observation.Origin) (maker observation.Origin, made bool, err error) {
	c := q.answer.Commit
	if c == nil {
		return maker, false, nil
	}
	if maker, made = known[c.Hash]; !made {
		maker, made, err = q.Journal.CommitMaker(ctx, q.file.place.Cwd, observation.CommitTime{
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

// lineTimes bound the time in which a line's commit was worked on.
type lineTimes struct {
	after           *int64 // the author's time of the file's commit before, if there is one
	authored, until *int64 // nil without a commit
}

// times reads when the file changed before the line's commit. An author's time outlives
// rebasing; amending a commit takes in later edits.
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

// findAuthor looks for the edit of the line: under the file's name of today and that in
// the commit, then under its earlier names and in other files.
func (q *question) findAuthor(ctx context.Context, repo gitread.Repository, git bool, times lineTimes) (observation.Author, error) {
	then := ""
	if q.answer.Commit != nil {
		then = q.answer.Commit.File
	}
	a := observation.AuthorArgs{
		Lines: q.line.near, At: q.line.at, Files: q.names(then), Cwd: cmp.Or(q.file.place.Cwd, q.Cwd),
		After: times.after, Until: times.until,
	}
	if strings.EqualFold(filepath.Ext(q.file.rel), ".ipynb") {
		a.Lines = notebookLines(a.Lines)
	}
	found, err := q.Journal.Author(ctx, a)
	if err != nil || !found.Beyond {
		return found, err // git takes longer to list the file's names than all else takes
	}
	if git {
		names, err := repo.Names(ctx, q.file.rel)
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		if err == nil { // else without them
			for _, name := range names {
				a.Files = append(a.Files, filepath.Join(q.file.place.Root, filepath.FromSlash(name)))
			}
		}
	}
	a.Elsewhere = true
	return q.Journal.Author(ctx, a)
}

// notebookLines are the lines of a notebook as a cell shows them: each is a JSON string.
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

// byHistory finds the sessions of a line when the text of edits is not known: the one that
// made the commit, and if that did not edit the file, or is not known, the one that edited
// it last before.
func (q *question) byHistory(ctx context.Context, times lineTimes, maker observation.Origin, made bool) error {
	w := q.answer
	w.Confidence = ByHistory
	if w.Commit == nil {
		return q.lastEdits(ctx, w.Line)
	}
	edits, err := q.editsBefore(ctx, times, made)
	if err != nil {
		return err
	}
	last := slices.IndexFunc(edits, func(o observation.Origin) bool { return !made || o.SessionID == maker.SessionID })
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

// editsBefore are the edits of the file that the commit can hold and whose text is not
// known, the newest first: those since the commit before it that changed the file. Edits
// are first looked for up to the author's time. What a session did before its own commit
// always counts.
func (q *question) editsBefore(ctx context.Context, times lineTimes, made bool) ([]observation.Origin, error) {
	a := observation.EditsArgs{
		Files: q.names(q.answer.Commit.File), Cwd: q.file.place.Cwd, Limit: maxEdits, UnknownText: true, After: times.after,
	}
	if !made {
		a.Until = times.authored
		if edits, err := q.Journal.EditOrigins(ctx, a); err != nil || len(edits) > 0 {
			return edits, err
		}
	}
	a.Until = times.until
	return q.Journal.EditOrigins(ctx, a)
}

// names are the file's names: today's, and the one in a commit.
func (q *question) names(then string) []string {
	names := []string{q.file.abs}
	if then != "" && then != q.file.rel {
		names = append(names, filepath.Join(q.file.place.Root, filepath.FromSlash(then)))
	}
	return names
}
