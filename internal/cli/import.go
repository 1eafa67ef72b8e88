package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/store"
)

func importCommand(p *Process) *cobra.Command {
	var a cairn.ImportArgs
	var since string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import [PATH...]",
		Short: "Read old sessions from transcripts, or what cairn has exported",
		Long: `import reads transcripts of past sessions into the store: files, or folders with
everything below them, of any agent that cairn knows. Without a path it looks
where the agents keep them:

` + transcriptPlaces() + `
A file that ` + "`cairn export`" + ` has made is recognised and imported: its projects,
sessions, observations, records and mail. It is taken whole or, if it is torn or
altered or its project's records and those here have gone different ways, not at all.

--merge takes records that have gone different ways together, such as those of two
clones. Nothing is overwritten: what is here stays as it is, records from the file whose
number is taken get the next one, and a version made without knowing the newest here is
kept beside it, with a merged text where both go together. cairn records history shows
both; an update that knows both ends the conflict.

Importing again adds nothing, also when hooks recorded the same session live.
Secrets are redacted before anything is stored.`,
		Example: `  cairn import
  cairn import shop.jsonl
  cairn import --merge shop-of-the-other-clone.jsonl
  cairn import --since 2026-01-01 --dry-run`,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (err error) {
			if a.Since, err = parseDate(since); err != nil {
				return err
			}
			if a.Paths = args; len(args) == 0 {
				var looked []string
				if a.Paths, looked = p.transcriptFolders(); len(a.Paths) == 0 {
					return fault.New(fault.NotFound, "no_transcripts", "no agent keeps transcripts in "+strings.Join(looked, ", ")).
						WithHint("name their files or folders: cairn import PATH")
				}
			}
			a.Progress, a.LineProgress = p.progress("files"), p.progress("lines")
			r, err := c.Import(cmd.Context(), a)
			if err != nil && cmd.Context().Err() != nil {
				return fault.Wrap(err, fault.Unavailable, codeStopped, "stopped by a signal; what was imported stays").
					WithHint("import again to go on")
			}
			if err != nil {
				return err
			}
			return p.printImport(r, a.DryRun, asJSON)
		}),
	}
	cmd.Flags().StringVar(&since, "since", "", "only events from this day on (YYYY-MM-DD, local) or Unix second")
	cmd.Flags().StringVar(&a.Project, "project", "", "only events of this project (id or alias)")
	cmd.Flags().BoolVar(&a.DryRun, "dry-run", false, "count, and store nothing")
	cmd.Flags().BoolVar(&a.Merge, "merge", false, "take records over that have gone another way than those here")
	cmd.Flags().BoolVar(&a.IncludePurged, "include-purged", false, "store also what was purged before")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// transcriptPlaces lists where each agent usually keeps its sessions, for help.
func transcriptPlaces() string {
	var b strings.Builder
	for _, f := range harness.TranscriptFolders(harness.Homes{User: "~"}) {
		h, _ := harness.Of(f.Harness)
		fmt.Fprintf(&b, "    %-12s  %s\n", h.Title, filepath.ToSlash(f.Path))
	}
	return b.String()
}

// codeStopped is the code of an import that a signal ended.
const codeStopped = "stopped"

// transcriptFolders are the folders in which the user's agents keep their
// transcripts: those that are there, and the names of all.
func (p *Process) transcriptFolders() (there, all []string) {
	for _, f := range harness.TranscriptFolders(harness.Homes{User: p.home(), Getenv: p.Getenv}) {
		all = append(all, p.short(f.Path))
		if _, err := os.Stat(f.Path); !errors.Is(err, fs.ErrNotExist) {
			there = append(there, f.Path)
		}
	}
	return there, all
}

// short is a path as people write it, with ~ for their home directory.
func (p *Process) short(path string) string {
	if rest, ok := strings.CutPrefix(path, p.home()+string(filepath.Separator)); ok && p.home() != "" {
		return filepath.Join("~", rest)
	}
	return path
}

// parseDate reads YYYY-MM-DD as local midnight, or Unix seconds; "" is no date.
func parseDate(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.Unix(n, 0), nil
	}
	t, err := time.ParseInLocation(time.DateOnly, s, time.Local)
	if err != nil {
		return t, fault.Newf(fault.Invalid, "usage", "%q is neither YYYY-MM-DD nor a Unix second", s)
	}
	return t, nil
}

// progress tells on standard error how many of what are done, at most twice a
// second and only after the first second. A total of 0 is not known.
func (p *Process) progress(what string) func(done, total int) {
	last := time.Now().Add(time.Second / 2)
	return func(done, total int) {
		if time.Since(last) < time.Second/2 {
			return
		}
		last = time.Now()
		if total == 0 {
			fmt.Fprintf(p.Err, "cairn: %d %s\n", done, what)
			return
		}
		fmt.Fprintf(p.Err, "cairn: %d of %d %s\n", done, total, what)
	}
}

func (p *Process) printImport(r cairn.ImportReport, dryRun, asJSON bool) error {
	if asJSON {
		if err := printJSON(p.Out, r); err != nil {
			return err
		}
	} else {
		p.printReport(r, dryRun)
	}
	if len(r.Unreadable) > 0 {
		return exitError(1)
	}
	return nil
}

func (p *Process) printReport(r cairn.ImportReport, dryRun bool) {
	verb := "imported"
	if dryRun {
		verb = "would import"
	}
	w := p.Out
	for _, e := range r.Restored {
		p.printExportImport(e, dryRun)
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

// filesOf reports how many files each harness had, "claude 3, codex 2; ".
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
