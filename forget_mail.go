package cairn

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/documents"
	"cairn/internal/observation/forget"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// MailPurgeResult is the result of a purge of mail or of its dry run.
type MailPurgeResult struct {
	documents.PurgeResult
	Backups  int                      `json:"backups"`  // deleted copies of the store
	Behind   []follow.LaggingFollower `json:"behind"`   // followers that have not processed it yet
	Archives []string                 `json:"archives"` // folders whose Git history contains the files until it is rewritten
}

// PurgeMail purges messages; see service.Mail.Purge. It clears their bytes from the disk,
// as Purge does. It also updates the existing archives, so that their latest commits
// contain tombstones instead of the files. PurgeMail sets the location of the call.
//
// Errors: those of mail's Purge, and NotFound with store.CodeMissing. After errors of
// clearing the disk and of the archives, the result reports what was deleted.
func (c *Cairn) PurgeMail(ctx context.Context, a documents.PurgeArgs) (done MailPurgeResult, err error) {
	done = MailPurgeResult{PurgeResult: documents.PurgeResult{Projects: []string{}}, Behind: []follow.LaggingFollower{}, Archives: []string{}}
	s, err := c.Opened(ctx, false)
	if err == nil && s == nil {
		err = fault.New(fault.NotFound, store.CodeMissing, "there is no store yet")
	}
	if err != nil {
		return done, err
	}
	a.Note = forget.MarkUnfinished
	done.PurgeResult, err = c.MailService(s).Purge(ctx, mail.Caller{Owner: true, Place: c.Location}, a)
	if err != nil || !a.Confirm || done.Messages == 0 {
		return done, err
	}
	done.Backups, err = c.finishForgetting(ctx, s)
	if !c.skipsArchive(s) {
		err = errors.Join(err, c.archiveTombstones(ctx, &done))
	}
	behind, berr := follow.LaggingFollowers(ctx, s, done.Seq, done.Projects...)
	done.Behind = append(done.Behind, behind...)
	return done, errors.Join(err, berr)
}

// archiveTombstones updates the archives of the projects of a purge. A project without an
// archive is skipped.
func (c *Cairn) archiveTombstones(ctx context.Context, done *MailPurgeResult) error {
	statuses, err := c.ArchiveStatus(ctx, ArchiveArgs{})
	for _, status := range statuses {
		if !slices.Contains(done.Projects, status.Project) {
			continue
		}
		folder := filepath.Join(c.ArchiveDir(), status.Folder)
		if _, gone := os.Stat(folder); gone != nil {
			continue
		}
		done.Archives = append(done.Archives, folder)
		synced, serr := c.SyncArchive(ctx, ArchiveArgs{Project: status.Project})
		for _, why := range synced.Failed {
			serr = errors.Join(serr, fault.Newf(fault.Unavailable, "archive_behind", "the archive %s still has the files: %s", folder, why).
				WithHint("`cairn archive sync` deletes them"))
		}
		err = errors.Join(err, serr)
	}
	return err
}

// finishForgetting clears deleted data from the disk: the search words of mail, and the
// data of observation.Service.FinishForgetting.
func (c *Cairn) finishForgetting(ctx context.Context, s *store.Store) (backups int, err error) {
	j := c.ObservationsOver(s)
	pending, err := forget.IsUnfinished(ctx, j)
	if err != nil || !pending {
		return 0, err
	}
	if err := c.MailService(s).DropStaleWords(ctx); err != nil {
		return 0, err
	}
	return forget.Finish(ctx, j)
}
