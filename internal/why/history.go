package why

import (
	"cmp"
	"context"
	"slices"

	"cairn/internal/observation"
)

// FileChange is what happened to a file at a time: edits of one prompt, or a commit. One of
// Session and Commit is set.
type FileChange struct {
	At      int64    `json:"at"` // Unix seconds; of edits, of the last
	Session *Session `json:"session,omitempty"`
	Edits   int      `json:"edits,omitempty"`
	Commit  *Commit  `json:"commit,omitempty"`
}

// maxFileCommits is how many commits History lists.
const maxFileCommits = 100

// History lists the edits and commits of a file across sessions, the newest first: at most
// 200 edits, of which those of one prompt in a row are one change, and 100 commits. missing
// says what could not be read. Errors are those of Ask.
func (s *Service) History(ctx context.Context, path string) (list []FileChange, missing []Missing, err error) {
	f, err := s.find(ctx, Args{File: path})
	if err != nil {
		return nil, nil, err
	}
	q := question{Service: s, file: f, answer: &Answer{}}
	if err := q.logChanges(ctx, &list); err != nil {
		return nil, nil, err
	}
	edits, err := s.Journal.EditOrigins(ctx, observation.EditsArgs{Files: q.names(""), Cwd: f.place.Cwd, Limit: maxEdits})
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
	made, err := q.Journal.CommitOrigins(ctx, q.file.place.Cwd, hashes)
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

// changesOf joins neighbouring edits of one prompt of a session, given the newest first.
func changesOf(edits []observation.Origin) (list []FileChange) {
	prompt := func(o observation.Origin) int64 {
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
