package archive

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// Commit is a commit of a project's archive.
type Commit struct {
	SHA      string
	Summary  string
	Authored int64 // Unix nanoseconds
}

const (
	selectCommitOf = `SELECT first_seq, hexsha, summary, authored_ts FROM archive_commits WHERE project_key = ? AND last_seq >= ?
ORDER BY last_seq LIMIT 1`

	// Among the newest 1,000 commits of the project.
	selectCommitsBy = `SELECT hexsha, summary, authored_ts FROM
(SELECT * FROM archive_commits WHERE project_key = ?1 ORDER BY last_seq DESC LIMIT 1000) k
WHERE EXISTS (SELECT 1 FROM changes c WHERE c.stream = (SELECT id FROM symbols WHERE text = ?2) AND c.doc IS NOT NULL
    AND c.seq BETWEEN k.first_seq AND k.last_seq AND c.agent IN (SELECT id FROM symbols WHERE text IN (SELECT value FROM json_each(?3))))
ORDER BY last_seq DESC LIMIT +?4`

	buryCommits = `UPDATE archive_commits SET summary = substr(summary, 1, instr(summary, ' | ')) || '| (purged)'
WHERE project_key = ?1 AND first_seq <= ?2 AND last_seq >= ?2 AND summary LIKE 'mail: %' AND instr(summary, ' | ') > 0`

	selectID    = `SELECT id FROM projects WHERE key = ?`
	moveCommits = `UPDATE OR REPLACE archive_commits SET project_key = ?2 WHERE project_key = ?1`
)

// CommitOf returns the commit that contains the change seq of a project, which is given
// by its key. ok is false if the change is not committed.
func CommitOf(ctx context.Context, tx *store.Tx, project, seq int64) (c Commit, ok bool, err error) {
	var first int64
	err = tx.Get(ctx, []any{&first, &c.SHA, &c.Summary, &c.Authored}, selectCommitOf, project, seq)
	if errors.Is(err, sql.ErrNoRows) {
		return Commit{}, false, nil
	}
	return c, err == nil && first <= seq, err
}

// CommitsBy returns at most limit commits, newest first, with changes to a stream by one
// of the agents. It searches the newest 1,000 commits of the project.
func CommitsBy(ctx context.Context, tx *store.Tx, project int64, stream string, agents []string, limit int) (out []Commit, err error) {
	names, err := json.Marshal(agents)
	if err != nil {
		return nil, err
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var c Commit
		err := r.Scan(&c.SHA, &c.Summary, &c.Authored)
		out = append(out, c)
		return err
	}, selectCommitsBy, project, stream, string(names), limit)
	return out, err
}

// ForgetSubject deletes the subject of a purged message from the stored summary of the
// commit that contains the change seq. It is idempotent.
func ForgetSubject(ctx context.Context, tx *store.Tx, project, seq int64) error {
	_, err := tx.Exec(ctx, buryCommits, project, seq)
	return err
}

// MoveRows assigns the archive rows of one project to another and deletes the other's
// own; for project.Merge. It is idempotent.
func MoveRows(ctx context.Context, tx *store.Tx, from, into int64) error {
	var ids [2]string
	for i, key := range [...]int64{from, into} {
		if err := tx.Get(ctx, []any{&ids[i]}, selectID, key); err != nil {
			return err
		}
	}
	if err := follow.MoveLane(ctx, tx, FollowerName, ids[0], ids[1]); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, moveCommits, from, into)
	return err
}

// Repair deletes the archive's rows of projects that a salvage has lost. It is
// idempotent.
func Repair(ctx context.Context, tx *store.Tx) error {
	kept, err := tx.Texts(ctx, `SELECT id FROM projects`)
	if err == nil {
		err = follow.KeepLanes(ctx, tx, FollowerName, kept)
	}
	if err == nil {
		_, err = tx.Exec(ctx, `DELETE FROM archive_commits WHERE project_key NOT IN (SELECT key FROM projects)`)
	}
	return err
}
