package cairn

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"cairn/internal/copies"
	"cairn/internal/fault"
	"cairn/internal/gitread"
	"cairn/internal/project"
	"cairn/internal/store"
)

// rootCommitTime limits all calls of git for root commits together.
const rootCommitTime = 2 * time.Second

// identify updates the keys of a store's projects. Hooks do not call it. Projects of an
// older cairn get their keys, and a checkout without a remote gets the key of its root
// commit. The next process retries a failure; the store can be used meanwhile.
func (c *Cairn) identify(ctx context.Context, s *store.Store) {
	for _, step := range [...]func(context.Context, *store.Store) error{c.rekeyProjects, c.findRootCommits} {
		if err := step(ctx, s); err != nil && ctx.Err() == nil {
			slog.Warn("the projects of the store could not be updated", "error", err)
		}
	}
}

// rekeyProjects migrates a store in which projects were identified by name. After a backup
// of the database, clones of one remote are merged into the oldest of them and keep their
// ids as aliases. Projects that cannot be merged stay, and doctor lists them. The next
// process continues an interrupted migration.
func (c *Cairn) rekeyProjects(ctx context.Context, s *store.Store) error {
	var plan []project.KeyedProject
	needed := false
	err := s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if needed, err = project.NeedsRekey(ctx, tx); err != nil || !needed {
			return err
		}
		plan, err = project.Plan(ctx, tx, c.Config.Home)
		return err
	})
	if err != nil || !needed {
		return err
	}
	err = s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		for _, k := range plan {
			if err := project.Rekey(ctx, tx, k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.mergeClones(ctx, s, plan); err != nil {
		return err
	}
	return s.Write(ctx, store.Full, project.Rekeyed)
}

// mergeClones merges the projects of a plan that share a key with an older one.
func (c *Cairn) mergeClones(ctx context.Context, s *store.Store, plan []project.KeyedProject) error {
	backup := ""
	for _, k := range plan {
		if k.Into == "" {
			continue
		}
		if backup == "" {
			var err error
			if backup, err = c.copyBefore(ctx, s, "projects"); err != nil {
				return err
			}
			slog.Info("clones of one repository become one project", "backup", backup)
		}
		err := s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
			return project.Merge(ctx, tx, k.ID, k.Into, moveRows)
		})
		if fault.KindOf(err) == fault.Conflict {
			slog.Warn("two clones stay two projects", "project", k.ID, "other", k.Into, "key", k.Key, "why", err)
			err = s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error { return project.Undecide(ctx, tx, k) })
		} else if err == nil {
			slog.Info("merged", "project", k.ID, "into", k.Into, "key", k.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyBefore copies the database to the folder of backups before a change that cannot be
// undone. It returns the path of the copy.
func (c *Cairn) copyBefore(ctx context.Context, s *store.Store, what string) (string, error) {
	folder := c.Backups().Folder()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(folder, "before-"+what+"-"+s.Now().UTC().Format(copies.Stamp)+"-"+store.NewID()[20:]+".db")
	return path, s.CopyTo(ctx, path)
}

// findRootCommits reads the first commit of checkouts without a remote from git. A server
// reads that of all checkouts, a command that of its own checkout.
func (c *Cairn) findRootCommits(ctx context.Context, s *store.Store) error {
	if c.Config.Role != store.Server && (c.Location.Identity == "" || c.Location.Remote != "") {
		return nil
	}
	var unknown []project.Checkout
	err := s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		unknown, err = project.WithoutRoot(ctx, tx)
		return err
	})
	if err != nil || len(unknown) == 0 {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, rootCommitTime)
	defer cancel()
	for _, checkout := range unknown {
		if c.Config.Role != store.Server && checkout.Identity != c.Location.Identity {
			continue
		}
		git, err := gitread.Open(checkout.Root)
		if err != nil {
			return nil // without git the path stays the key
		}
		commit, err := git.RootCommit(asked)
		if asked.Err() != nil {
			return nil
		}
		if err != nil || commit == "" {
			continue // empty, or git cannot read it
		}
		if err := c.setRoot(ctx, s, checkout, commit); err != nil {
			return err
		}
	}
	return nil
}

// setRoot stores the root commit of a checkout, and merges its project with a project of
// the same history.
func (c *Cairn) setRoot(ctx context.Context, s *store.Store, checkout project.Checkout, commit string) error {
	err := s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		from, into, err := project.SetRoot(ctx, tx, checkout.Identity, commit)
		if err != nil || from == "" {
			return err
		}
		return project.Merge(ctx, tx, from, into, moveRows)
	})
	if fault.KindOf(err) != fault.Conflict {
		return err
	}
	return s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		return project.UndecideRoot(ctx, tx, checkout.Identity, commit)
	})
}
