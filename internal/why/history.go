package why

import (
	"cmp"
	"context"
	"slices"

	"cairn/internal/observation/origin"
)

// FileChange is a change of a file: edits of one prompt, or a commit. Exactly one of
// Session and Commit is set.
type FileChange struct {
	At      int64    `json:"at"` // Unix seconds; for edits, the time of the last one
	Session *Session `json:"session,omitempty"`
	Edits   int      `json:"edits,omitempty"`
	Commit  *Commit  `json:"commit,omitempty"`
}

// maxFileCommits is the maximum number of commits that History lists.
const maxFileCommits = 100

// History lists the edits and commits of a file across sessions, newest first. It reads at
// most 200 edits and 100 commits. Consecutive edits of one prompt are one change. missing
// lists what could not be read. Errors are those of Ask.
func (s *Service) History(ctx context.Context, path string) (list []FileChange, missing []Missing, err error) {
	f, err := s.find(ctx, Args{File: path})
	if err != nil {
		return nil, nil, err
	}
	q := question{Service: s, file: f, answer: &Answer{}}
	if err := q.logChanges(ctx, &list); err != nil {
		return nil, nil, err
	}
	edits, err := origin.EditOrigins(ctx, s.Journal, origin.EditsArgs{Files: q.names(""), Cwd: f.place.Cwd, Limit: maxEdits})
	if err != nil {
		return nil, nil, err
	}
	list = append(list, changesOf(edits)...)
	slices.SortStableFunc(list, func(a, b FileChange) int { return cmp.Compare(b.At, a.At) })
	return list, q.answer.Missing, nil
}

// logChanges adds the commits of the file.
func (q *question) logChanges(ctx context.Context, list *[]FileChange) error {
	repo, ok := q.repository()
	if !ok {
		return nil
	}
	commits, err := repo.Log(ctx, q.file.rel, "", maxFileCommits)
	if err != nil {
		return q.gitFailed(ctx, err)
	}
	hashes := []string{}
	for _, c := range commits {
		hashes = append(hashes, c.Hash)
	}
	made, err := origin.CommitOrigins(ctx, q.Journal, q.file.place.Cwd, hashes)
	if err != nil {
		return err
	}
	for _, found := range commits {
		c := madeBy(found)
		c.Subject, _ = q.Filter.Head(c.Subject, maxText)
		c.SessionID = made[c.Hash].SessionID
		*list = append(*list, FileChange{At: found.Committed.Unix(), Commit: &c})
	}
	return nil
}

// changesOf joins neighbouring edits of one prompt in a session. edits is ordered newest
// first.
func changesOf(edits []origin.Origin) (list []FileChange) {
	prompt := func(o origin.Origin) int64 {
		if o.Prompt == nil {
			return 0
		}
		return o.Prompt.ID
	}
	for i, e := range edits {
		if i > 0 && e.SessionID == edits[i-1].SessionID && prompt(e) == prompt(edits[i-1]) {
			list[len(list)-1].Edits++
			continue
		}
		s := sessionOf(e, "edit")
		s.edited(e)
		s.Summary = nil
		list = append(list, FileChange{At: e.Timestamp, Session: &s, Edits: 1})
	}
	return list
}
