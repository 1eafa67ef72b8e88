package carecmd

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/archive"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/store"
)

func archiveCommand(p *command.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "Archive mail and records as readable files in Git",
		Long: `The archive keeps mail, reservations and records also as readable files. Each project
has one Git repository, in the folder archive of the data directory
(~/.cairn/archive/PROJECT). Clone it, read it, or run git log in it, as in any other.

A running server (cairn serve) archives every write within a moment. No command waits
for the archive. If it cannot be written, it catches up later automatically.`,
		Example: `  cairn archive status
  cairn archive sync
  git -C ~/.cairn/archive/shop log`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(archiveStatusCommand(p), archiveSyncCommand(p), archiveVerifyCommand(p), reconcileCommand(p))
	return cmd
}

// onArchive completes a command that works on the archive of one project or of all.
func onArchive(p *command.Process, cmd *cobra.Command, run func(cmd *cobra.Command, c *cairn.Cairn, a cairn.ArchiveArgs, asJSON bool) error) *cobra.Command {
	var a cairn.ArchiveArgs
	var asJSON bool
	cmd.Args = command.NoArgs
	cmd.RunE = p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
		a.Progress = p.AfterASecond()
		return run(cmd, c, a, asJSON)
	})
	cmd.Flags().StringVar(&a.Project, "project", "", "only this project (id or alias)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func archiveStatusCommand(p *command.Process) *cobra.Command {
	return onArchive(p, &cobra.Command{
		Use:   "status",
		Short: "Show the progress of each project's archive",
		Long: `status shows the latest archived commit of each project and the number of changes that
are not archived yet. It also lists changes that cannot be archived, with the reason.
They do not delay other changes. status does not read the files of the archive; to
compare them with the store, use cairn reconcile --check.`,
		Example: "  cairn archive status\n  cairn archive status --project shop --json",
	}, func(cmd *cobra.Command, c *cairn.Cairn, a cairn.ArchiveArgs, asJSON bool) error {
		statuses, err := c.ArchiveStatus(cmd.Context(), a)
		if err != nil {
			return err
		}
		if asJSON {
			return command.PrintJSON(p.Out, map[string]any{"dir": c.ArchiveDir(), "projects": statuses})
		}
		fmt.Fprintln(p.Out, c.ArchiveDir())
		printStatuses(p.Out, statuses)
		return nil
	})
}

func printStatuses(w io.Writer, statuses []archive.Status) {
	for _, s := range statuses {
		head := "no commit yet"
		if s.Head != "" {
			head = s.Head[:min(len(s.Head), 12)]
		}
		fmt.Fprintf(w, "  %-30s %-13s %s behind\n", s.Project, head, command.Counted(int(s.Lag), "change"))
		for _, aside := range s.Aside {
			fmt.Fprintf(w, "      set aside: change %d, tried %s: %s\n", aside.Seq, command.Counted(aside.Attempts, "time"), command.Printable(aside.Error))
		}
	}
	if len(statuses) == 0 {
		fmt.Fprintln(w, "  nothing to archive")
	}
}

func archiveSyncCommand(p *command.Process) *cobra.Command {
	return onArchive(p, &cobra.Command{
		Use:   "sync",
		Short: "Archive now what is not archived yet",
		Long: `sync archives everything that was written until now. It works with and without a
running server. If the archive of a project cannot be written, sync continues with the
others and exits 1.`,
		Example: "  cairn archive sync",
	}, func(cmd *cobra.Command, c *cairn.Cairn, a cairn.ArchiveArgs, asJSON bool) error {
		done, err := c.SyncArchive(cmd.Context(), a)
		if err != nil {
			return err
		}
		if asJSON {
			err = command.PrintJSON(p.Out, done)
		} else {
			fmt.Fprintf(p.Out, "archived %s\n", command.Counted(len(done.Projects)-len(done.Failed), "project"))
		}
		for _, project := range slices.Sorted(maps.Keys(done.Failed)) {
			fmt.Fprintf(p.Err, "cairn: archive sync: %s: %s\n", command.Printable(project), command.Printable(done.Failed[project]))
		}
		if err == nil && len(done.Failed) > 0 {
			return command.ExitError(1)
		}
		return err
	})
}

func archiveVerifyCommand(p *command.Process) *cobra.Command {
	return onArchive(p, &cobra.Command{
		Use:   "verify",
		Short: "Have git check every object of the archives",
		Long: `verify runs git fsck --strict on each project's archive and changes nothing. The exit
code is 1 if an archive is damaged. To compare the content of the files with the store,
use cairn reconcile --check.`,
		Example: "  cairn archive verify --project shop",
	}, func(cmd *cobra.Command, c *cairn.Cairn, a cairn.ArchiveArgs, asJSON bool) error {
		found, err := c.VerifyArchive(cmd.Context(), a)
		if err != nil {
			return err
		}
		if asJSON {
			err = command.PrintJSON(p.Out, found)
		}
		bad := false
		for _, v := range found {
			if bad = bad || !v.OK; asJSON {
				continue
			}
			says := "intact"
			if !v.OK {
				says = command.Printable(v.Says)
			}
			fmt.Fprintf(p.Out, "  %-30s %s\n", v.Project, says)
		}
		if err == nil && bad {
			return command.ExitError(1)
		}
		return err
	})
}

func reconcileCommand(p *command.Process) *cobra.Command {
	var check, rebuild, reindex, dryRun bool
	cmd := onArchive(p, &cobra.Command{
		Use:   "reconcile --check | --rebuild | --reindex",
		Short: "Compare the store with its archives, and restore either from the other",
		Long: `reconcile compares the store with the archives (see cairn archive), or restores one
from the other.

--check    compares every message, agent, reservation and so on with its file and
           with the last commit, and changes nothing. Exit code 1 if they differ.
           Recent writes that are not archived yet count as pending.
--rebuild  writes missing and different files of the archives from the store, and
           commits them. It does not touch your own files.
--reindex  reads the archives into the store. Missing items are inserted under their
           old numbers, with all times and states; existing items do not change.
           If the store is lost, a new one is created.

--dry-run prints what --rebuild or --reindex would do.`,
		Example: `  cairn reconcile --check
  cairn reconcile --rebuild --project shop
  cairn reconcile --reindex --dry-run`,
	}, func(cmd *cobra.Command, c *cairn.Cairn, a cairn.ArchiveArgs, asJSON bool) error {
		a.DryRun = dryRun
		if check && dryRun {
			return fault.New(fault.Invalid, "usage", "--check cannot be combined with --dry-run: it changes nothing anyway").WithHint(command.SeeHelp(cmd))
		}
		switch {
		case rebuild:
			return rebuildArchive(p, cmd, c, a, asJSON)
		case reindex:
			return reindexArchive(p, cmd, c, a, asJSON)
		case check:
			return checkArchive(p, cmd, c, a, asJSON)
		}
		return fault.New(fault.Invalid, "usage", "requires one of --check, --rebuild and --reindex").WithHint(command.SeeHelp(cmd))
	})
	cmd.Flags().BoolVar(&check, "check", false, "compare only")
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "write the archives from the store")
	cmd.Flags().BoolVar(&reindex, "reindex", false, "read the archives into the store")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be done, and change nothing")
	cmd.MarkFlagsMutuallyExclusive("check", "rebuild", "reindex")
	return cmd
}

func checkArchive(p *command.Process, cmd *cobra.Command, c *cairn.Cairn, a cairn.ArchiveArgs, asJSON bool) error {
	found, err := c.CheckArchive(cmd.Context(), a)
	if err != nil {
		return withoutKind(err)
	}
	if asJSON {
		err = command.PrintJSON(p.Out, found)
	} else {
		printCheck(p, found)
	}
	if err == nil && !found.Consistent {
		return command.ExitError(1)
	}
	return err
}

func printCheck(p *command.Process, found cairn.ArchiveCheck) {
	w := p.Out
	for _, list := range []struct {
		what  string
		files []archive.Finding
	}{{"missing", found.Missing}, {"different", found.Mismatched}, {"orphan", found.Orphans}, {"double", found.DuplicateIDs}} {
		for i, f := range list.files {
			if i == 10 {
				fmt.Fprintf(w, "%-10s … and %d more\n", list.what, len(list.files)-i)
				break
			}
			fmt.Fprintf(w, "%-10s %s/%s\n", list.what, f.Project, command.Printable(f.Path))
		}
	}
	for _, s := range found.SetAside {
		fmt.Fprintf(w, "%-10s change %d: %s\n", "set aside", s.Seq, command.Printable(s.Error))
	}
	if found.Uncommitted > 0 {
		fmt.Fprintf(w, "%s written and not committed\n", command.Counted(found.Uncommitted, "file"))
	}
	if found.Pending > 0 {
		fmt.Fprintf(w, "%s not archived yet\n", command.Counted(found.Pending, "change"))
	}
	fmt.Fprintf(w, "%s in the store, %s in the archive\n", command.Counted(found.DBMessages, "message"), command.Counted(found.ArchiveMessages, "message"))
	if found.Consistent {
		fmt.Fprintln(w, "store and archive agree")
		return
	}
	fmt.Fprintln(w, "store and archive differ; `cairn reconcile --rebuild` writes what the archive lacks, `--reindex` what the store lacks")
}

func rebuildArchive(p *command.Process, cmd *cobra.Command, c *cairn.Cairn, a cairn.ArchiveArgs, asJSON bool) error {
	done, err := c.RebuildArchive(cmd.Context(), a)
	switch {
	case err != nil:
		return withoutKind(err)
	case asJSON:
		return command.PrintJSON(p.Out, done)
	}
	wrote := "wrote"
	if a.DryRun {
		wrote = "would write"
	}
	fmt.Fprintf(p.Out, "%s %s in %s; %d were right\n", wrote, command.Counted(done.Written, "file"), command.Counted(done.Commits, "commit"), done.Skipped)
	return nil
}

func reindexArchive(p *command.Process, cmd *cobra.Command, c *cairn.Cairn, a cairn.ArchiveArgs, asJSON bool) error {
	done, err := c.ReindexArchive(cmd.Context(), a)
	switch {
	case err != nil:
		return withoutKind(err)
	case asJSON:
		return command.PrintJSON(p.Out, done)
	}
	w, inserted := p.Out, "inserted"
	if a.DryRun {
		inserted = "would insert"
	}
	fmt.Fprintln(w, inserted+":")
	printCounts(w, done.Inserted)
	for _, u := range done.Conflicts {
		fmt.Fprintf(w, "conflict   %s/%s: %s\n", u.Project, command.Printable(u.Path), command.Printable(u.Reason))
	}
	for _, u := range done.Unparseable {
		fmt.Fprintf(w, "unusable   %s/%s: %s\n", u.Project, command.Printable(u.Path), command.Printable(u.Reason))
	}
	for _, what := range done.NotRecoverable {
		fmt.Fprintf(w, "not kept   %s\n", what)
	}
	return nil
}

// withoutKind makes an error of a comparison exit 2: exit code 1 means that store and
// archive differ.
func withoutKind(err error) error {
	f := fault.As(err)
	if f.Kind == fault.NotFound || f.Kind == fault.Conflict || f.Kind == fault.Denied {
		return fault.Wrap(err, fault.Unavailable, f.Code, f.Message).WithHint(f.Hint)
	}
	return err
}
