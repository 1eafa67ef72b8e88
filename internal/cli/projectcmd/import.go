package projectcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/store"
)

func importCommand(p *command.Process) *cobra.Command {
	var a cairn.ImportArgs
	var since string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import [PATH...]",
		Short: "Read old sessions from transcripts, or what cairn has exported",
		Long: `import reads transcripts of past sessions into the store. PATH is a file, or a folder
that is searched completely, with transcripts of any known agent. Without PATH it reads
the folders in which the agents keep them:

` + transcriptPlaces() + `
import also recognises files of ` + "`cairn export`" + `, with projects, sessions, observations,
records and mail. It imports such a file completely or not at all. It rejects a file
that is incomplete or changed, and one whose records have diverged from those here.

--merge also imports diverged records, such as those of two clones. Nothing is
overwritten. A record whose number is taken gets the next number. A version that does
not know the newest one here is kept next to it, with a merged text if possible. cairn
records history shows both, and an update that knows both ends the conflict.

import is idempotent, also for sessions that hooks recorded live. Secrets are redacted
before anything is stored.`,
		Example: `  cairn import
  cairn import shop.jsonl
  cairn import --merge shop-of-the-other-clone.jsonl
  cairn import --since 2026-01-01 --dry-run`,
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (err error) {
			if a.Since, err = command.ParseDate(since); err != nil {
				return err
			}
			if a.Paths = args; len(args) == 0 {
				var looked []string
				if a.Paths, looked = TranscriptFolders(p); len(a.Paths) == 0 {
					return fault.New(fault.NotFound, "no_transcripts", "no transcripts found in "+strings.Join(looked, ", ")).
						WithHint("name files or folders: cairn import PATH")
				}
			}
			a.Progress, a.LineProgress = p.Progress("files"), p.Progress("lines")
			r, err := c.Import(cmd.Context(), a)
			if err != nil && cmd.Context().Err() != nil {
				return fault.Wrap(err, fault.Unavailable, command.CodeStopped, "stopped by a signal; what was imported stays").
					WithHint("run import again to continue")
			}
			if err != nil {
				return err
			}
			return printImport(p, r, a.DryRun, asJSON)
		}),
	}
	cmd.Flags().StringVar(&since, "since", "", "only events since this day (YYYY-MM-DD, local time) or Unix second")
	cmd.Flags().StringVar(&a.Project, "project", "", "only events of this project (id or alias)")
	cmd.Flags().BoolVar(&a.DryRun, "dry-run", false, "count, and store nothing")
	cmd.Flags().BoolVar(&a.Merge, "merge", false, "also import records that have diverged from those here")
	cmd.Flags().BoolVar(&a.IncludePurged, "include-purged", false, "also store what was purged before")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// transcriptPlaces lists the usual transcript folder of each agent, for the help.
func transcriptPlaces() string {
	var b strings.Builder
	for _, f := range harnesses.TranscriptFolders(harness.Homes{User: "~"}) {
		h, _ := harnesses.Of(f.Harness)
		fmt.Fprintf(&b, "    %-12s  %s\n", h.Title, filepath.ToSlash(f.Path))
	}
	return b.String()
}

// short returns a path with ~ for the home directory.
func short(p *command.Process, path string) string {
	if rest, ok := strings.CutPrefix(path, p.Home()+string(filepath.Separator)); ok && p.Home() != "" {
		return filepath.Join("~", rest)
	}
	return path
}

// TranscriptFolders returns the transcript folders of the user's agents: those that
// exist, and all names for messages.
func TranscriptFolders(p *command.Process) (there, all []string) {
	for _, f := range harnesses.TranscriptFolders(harness.Homes{User: p.Home(), Getenv: p.Getenv}) {
		all = append(all, short(p, f.Path))
		if _, err := os.Stat(f.Path); !errors.Is(err, fs.ErrNotExist) {
			there = append(there, f.Path)
		}
	}
	return there, all
}

func printImport(p *command.Process, r cairn.ImportReport, dryRun, asJSON bool) error {
	if asJSON {
		if err := command.PrintJSON(p.Out, r); err != nil {
			return err
		}
	} else {
		printReport(p, r, dryRun)
	}
	if len(r.Unreadable) > 0 {
		return command.ExitError(1)
	}
	return nil
}

func printReport(p *command.Process, r cairn.ImportReport, dryRun bool) {
	verb := "imported"
	if dryRun {
		verb = "would import"
	}
	w := p.Out
	for _, e := range r.Restored {
		printExportImport(p, e, dryRun)
	}
	if len(r.Restored) > 0 && r.Files+r.Unchanged+len(r.Unreadable) == 0 {
		return
	}
	fmt.Fprintf(w, "%s %d observations from %d files (%s%d lines, %.1f MB) in %.1f s\n",
		verb, r.Added, r.Files, filesOf(r.ByHarness), r.Lines, float64(r.Bytes)/1e6, r.Seconds)
	if r.Unchanged > 0 {
		fmt.Fprintf(w, "%d files have not changed since they were imported\n", r.Unchanged)
	}
	fmt.Fprintf(w, "already known %d, repeated reads %d", r.Known, r.Deduped)
	if r.Outside > 0 {
		fmt.Fprintf(w, ", left out by --since or --project %d", r.Outside)
	}
	if r.Purged > 0 {
		fmt.Fprintf(w, ", purged before %d", r.Purged)
	}
	fmt.Fprintln(w)
	for _, t := range r.Types() {
		fmt.Fprintf(w, "  %7d  %s\n", r.ByType[t], t)
	}
	if len(r.Skipped) > 0 {
		fmt.Fprintln(w, "skipped:")
		for _, why := range slices.Sorted(maps.Keys(r.Skipped)) {
			fmt.Fprintf(w, "  %7d  %s\n", r.Skipped[why], why)
		}
	}
	for _, u := range r.Unreadable {
		fmt.Fprintf(p.Err, "cairn: import: %s: %s\n", u.Path, u.Error)
	}
}

// filesOf returns the number of files of each harness, "claude 3, codex 2; ".
func filesOf(byHarness map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(byHarness)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, byHarness[name]))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "; "
}
