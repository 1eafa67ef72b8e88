package mail

import (
	"context"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/store"
)

// CodeBothHaveMail is the code of the error (Conflict) for merging two projects that both have
// mail.
const CodeBothHaveMail = "mail_in_both"

const (
	selectMailOf = `SELECT (SELECT uid FROM mail_projects WHERE project_key = ?1), EXISTS (SELECT 1 FROM mail_projects WHERE project_key = ?2)`
	moveMail     = `UPDATE mail_projects SET project_key = ?2 WHERE project_key = ?1`
)

// MoveRows moves the mail of a project to another project, with its numbers, uid, slug and
// archive. project.Merge uses it. Agent names and the archive belong to one project, so two
// projects that both have mail cannot be merged.
//
// Errors: Conflict with CodeBothHaveMail.
func MoveRows(ctx context.Context, tx *store.Tx, archive Archive, from, into project.Project) error {
	var uid *string
	var ours bool
	if err := tx.Get(ctx, []any{&uid, &ours}, selectMailOf, from.Key, into.Key); err != nil || uid == nil {
		return err
	}
	if ours {
		return fault.Newf(fault.Conflict, CodeBothHaveMail, "%s and %s both have mail, whose agents and archives would collide", from.ID, into.ID).
			WithHint("keep both projects: agents write across projects, see `request_contact`")
	}
	if _, err := tx.Exec(ctx, moveMail, from.Key, into.Key); err != nil {
		return err
	}
	if err := archive.move(ctx, tx, from.Key, into.Key); err != nil {
		return err
	}
	p, err := ProjectByUID(ctx, tx, *uid)
	if err != nil {
		return err
	}
	return Put(ctx, tx, Actor{}, p.ProductID, p)
}
