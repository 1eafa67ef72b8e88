package mail

import (
	"context"

	"cairn/internal/store"
)

// Archive holds the functions of a project's archive that mail needs. They identify the
// project by its key in the store. The zero value is an archive without commits.
type Archive struct {
	// CommitOf returns the commit that contains a change, nil if there is none.
	CommitOf func(ctx context.Context, tx *store.Tx, project, seq int64) (*Commit, error)

	// CommitsBy returns at most limit commits with changes by one of the agents to a
	// stream, newest first.
	CommitsBy func(ctx context.Context, tx *store.Tx, project int64, stream string, agents []string, limit int) ([]Commit, error)

	// Bury deletes the subject of a purged message from the summary of the commit that
	// contains the message's change.
	Bury func(ctx context.Context, tx *store.Tx, project, seq int64) error

	// Move assigns the archive of one project to another and deletes the other's own.
	Move func(ctx context.Context, tx *store.Tx, from, into int64) error
}

func (a Archive) FindCommit(ctx context.Context, tx *store.Tx, project, seq int64) (*Commit, error) {
	if a.CommitOf == nil {
		return nil, nil
	}
	return a.CommitOf(ctx, tx, project, seq)
}

func (a Archive) ListCommits(ctx context.Context, tx *store.Tx, project int64, stream string, agents []string, limit int) ([]Commit, error) {
	if a.CommitsBy == nil {
		return nil, nil
	}
	return a.CommitsBy(ctx, tx, project, stream, agents, limit)
}

func (a Archive) DeleteSubject(ctx context.Context, tx *store.Tx, project, seq int64) error {
	if a.Bury == nil {
		return nil
	}
	return a.Bury(ctx, tx, project, seq)
}

func (a Archive) move(ctx context.Context, tx *store.Tx, from, into int64) error {
	if a.Move == nil {
		return nil
	}
	return a.Move(ctx, tx, from, into)
}

// Commit is a commit of the archive.
type Commit struct {
	SHA      string `json:"hexsha"`
	Summary  string `json:"summary"`
	Authored Time   `json:"authored_ts"`
}
