package carecmd

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/copies"
	"cairn/internal/store"
)

func backupCommand(p *command.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Write the store and the archive to one file",
		Long: `backup writes one compressed tar file with metadata.json, a consistent copy of the
store and a Git bundle of each project's archive. It reads the file back and checks it
before it reports success. Agents can continue to work meanwhile. Two backups of
unchanged data are equal, byte for byte.

Without FILE the backup goes to the folder backups next to the store. Its name is the
time (UTC), and only you can read it. A purge deletes the backups in that folder,
because they contain purged data. It cannot delete backups that you keep elsewhere.

The copy of an encrypted store is encrypted with the same key. The backup does not
contain the key or the settings, so keep the key in another place. Archives are in
plain text.

To restore a backup, run ` + "`cairn restore FILE`" + `.`,
		Example: `  cairn backup
  cairn backup /mnt/disk/cairn.tar.gz
  cairn backup list
  cairn backup verify /mnt/disk/cairn.tar.gz`,
		Args: cobra.MaximumNArgs(1),
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			a := copies.BackupArgs{Version: p.Version, Progress: p.AfterASecond()}
			if len(args) > 0 {
				a.File = args[0]
			}
			r, err := c.Backup(cmd.Context(), a)
			switch {
			case err != nil:
				return err
			case asJSON:
				return command.PrintJSON(p.Out, r)
			}
			_, err = fmt.Fprintf(p.Out, "backed up to %s: %s, %s, %s\n", r.File, bytesOf(r.Bytes),
				command.Counted(int(r.Changes), "change"), command.Counted(bundles(r.Info), "archive"))
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(backupListCommand(p), backupVerifyCommand(p))
	return cmd
}

func bytesOf(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// bundles returns the number of repositories in a backup.
func bundles(b copies.Info) (n int) {
	for _, m := range b.Members {
		if strings.HasSuffix(m.Name, ".bundle") {
			n++
		}
	}
	return n
}

// AsOf returns the time of the last change in a backup, for people.
func AsOf(b copies.Info) string {
	if b.As == nil {
		return "empty"
	}
	return b.As.Local().Format(time.DateTime)
}

func backupListCommand(p *command.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the backups in the folder backups, newest first",
		Args:  command.NoArgs,
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			all, err := c.Backups().List(cmd.Context())
			switch {
			case err != nil:
				return err
			case asJSON:
				return command.PrintJSON(p.Out, all)
			case len(all) == 0:
				_, err = fmt.Fprintf(p.Out, "there are no backups in %s\n", c.Backups().Folder())
				return err
			}
			for _, b := range all {
				what := AsOf(b.Info)
				if b.Format == 0 {
					what = "cannot be read"
				}
				fmt.Fprintf(p.Out, "%-20s %10s  %s\n", what, bytesOf(b.Bytes), b.File)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func backupVerifyCommand(p *command.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check a whole backup; exit code 1 if it is damaged",
		Args:  cobra.ExactArgs(1),
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			v, err := c.Backups().Verify(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				err = command.PrintJSON(p.Out, v)
			} else if v.OK {
				_, err = fmt.Fprintf(p.Out, "%s is intact: as of %s, %s, %s\n", v.File, AsOf(v.Info),
					command.Counted(int(v.Changes), "change"), command.Counted(bundles(v.Info), "archive"))
				if !v.Content && err == nil {
					_, err = fmt.Fprintln(p.Out, "its store is encrypted and no matching key was found, so its content was not checked")
				}
			} else {
				_, err = fmt.Fprintf(p.Out, "%s: %s\n", v.File, command.Printable(v.Problem))
			}
			if err == nil && !v.OK {
				return command.ExitError(1)
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func restoreCommand(p *command.Process) *cobra.Command {
	var a copies.RestoreArgs
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace the store and the archive by a backup",
		Long: `restore checks a whole backup and then replaces the present store and archive by it.
The present data is not deleted: it is renamed, to names that end in .backup-TIME. No
agent and no server may have the store open. restore is atomic and safe to retry: after
an interruption there is either the present store or the restored one.

New ids start 100,000 above those of the backup, so no id from after the backup is used
again. If the store has changes that the backup does not have, restore fails, unless
you use --force. A missing or damaged store is replaced without --force. Afterwards
` + "`cairn import`" + ` can recover what is still in the transcripts.`,
		Example: `  cairn restore --dry-run ~/.cairn/backups/cairn-20260302T101500.000Z.tar.gz
  cairn restore --force /mnt/disk/cairn.tar.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := p.Config(cmd)
			if err != nil {
				return err
			}
			if config.Cwd, err = os.Getwd(); err != nil {
				config.Cwd = "" // gone; then no repository's settings count
			}
			a.File, a.Progress = args[0], p.AfterASecond()
			r, err := cairn.RestoreBackup(cmd.Context(), config, a)
			switch {
			case err != nil:
				return err
			case asJSON:
				return command.PrintJSON(p.Out, r)
			}
			printBackupRestore(p, r)
			return nil
		},
	}
	cmd.Flags().BoolVar(&a.DryRun, "dry-run", false, "check the backup, print what would be done, and change nothing")
	cmd.Flags().BoolVar(&a.Force, "force", false, "restore even if the store has changes that the backup does not have")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printBackupRestore(p *command.Process, r copies.Restored) {
	verb := "restored"
	if r.DryRun {
		verb = "would restore"
	}
	fmt.Fprintf(p.Out, "%s %s: as of %s, %s, %s\n", verb, r.File, AsOf(r.Info), command.Counted(int(r.Changes), "change"), command.Counted(r.Archives, "archive"))
	if r.Later > 0 {
		fmt.Fprintf(p.Out, "%s of the present store are not in the backup\n", command.Counted(int(r.Later), "change"))
	}
	for _, m := range r.Moved {
		fmt.Fprintf(p.Out, "the former data is in %s\n", m)
	}
}
