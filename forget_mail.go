package cairn

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/observation"
	"cairn/internal/store"
)

// PurgedMail is what a purge of mail took away, or would.
type PurgedMail struct {
	mail.PurgeResult
	Backups  int            `json:"backups"`  // copies of the store
	Behind   []store.LaggingFollower `json:"behind"`   // followers that do not know of it yet
	Archives []string       `json:"archives"` // folders whose Git history keeps the files until it is rewritten
}

// PurgeMail purges messages, see mail.Service.Purge, takes what they left off the
// disk, as Purge does, and brings the archives that there are up to date, so that
// their tips hold tombstones in place of the files. Place is that of the call.
//
// Errors: those of mail's Purge, NotFound with store.CodeMissing; those of clearing
// the disk and of the archives, after which PurgedMail reports what is gone.
func (c *Cairn) PurgeMail(ctx context.Context, a mail.PurgeArgs) (done PurgedMail, err error) {
	done = PurgedMail{PurgeResult: mail.PurgeResult{Projects: []string{}}, Behind: []store.LaggingFollower{}, Archives: []string{}}
	s, err := c.opened(ctx, false)
	if err == nil && s == nil {
		err = fault.New(fault.NotFound, store.CodeMissing, "there is no store yet")
	}
	if err != nil {
		return done, err
	}
	a.Note = observation.NoteForgetting
	done.PurgeResult, err = c.mailService(s).Purge(ctx, mail.Caller{Owner: true, Place: c.place}, a)
	if err != nil || !a.Confirm || done.Messages == 0 {
		return done, err
	}
	done.Backups, err = c.finishForgetting(ctx, s)
	if !c.isUnarchived(s) {
		err = errors.Join(err, c.buryFiles(ctx, &done))
	}
	behind, berr := s.LaggingFollowers(ctx, done.Seq, done.Projects...)
	done.Behind = append(done.Behind, behind...)
	return done, errors.Join(err, berr)
}

// buryFiles brings the archives of the projects of a purge up to date; one that there
// is not holds nothing.
func (c *Cairn) buryFiles(ctx context.Context, done *PurgedMail) error {
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
				WithHint("`cairn archive sync` takes them away"))
		}
		err = errors.Join(err, serr)
	}
	return err
}

// finishForgetting takes what was forgotten off the disk: the words of mail, and what
// observation.Service.FinishForgetting does.
func (c *Cairn) finishForgetting(ctx context.Context, s *store.Store) (backups int, err error) {
	j := c.over(s)
	pending, err := j.IsForgetting(ctx)
	if err != nil || !pending {
		return 0, err
	}
	if err := c.mailService(s).DropStaleWords(ctx); err != nil {
		return 0, err
	}
	return j.FinishForgetting(ctx)
}
