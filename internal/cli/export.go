package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/copies"
	"cairn/internal/fault"
	"cairn/internal/store"
)

func exportCommand(p *Process) *cobra.Command {
	var a copies.ExportArgs
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a project to a file that another cairn can import",
		Long: `export writes a project with everything that cairn knows of it: its names, sessions,
observations with pins and digests, records with their whole history, mail with
attachments, contacts and reservations, memories with their contexts, and what was
purged or deleted and must not come back. ` + "`cairn import FILE`" + ` makes an equal project
of it, in another store or on another machine. --all writes every project of the store
and the memories that belong to no project.

The file is JSON Lines: one object per line with its kind, readable with jq and
every other program. Its last line tells a torn or altered file from a whole one.
Without --out it goes to standard output; with it, the file appears when it is
complete, and only you can read it.

Secrets were redacted before anything was stored, and keys are never in an export;
but an export is not encrypted, also that of an encrypted store. A later purge does
not reach it.`,
		Example: `  cairn export --out shop.jsonl
  cairn export --all --out everything.jsonl
  cairn export --project shop | jq -r 'select(.kind == "record") | .doc.title'`,
		Args: cobra.NoArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (err error) {
			toFile := out != "" && out != "-"
			switch {
			case a.All && a.Project != "":
				return fault.New(fault.Invalid, "usage", "--all and --project exclude each other")
			case asJSON && !toFile:
				return fault.New(fault.Invalid, "usage", "--json prints a report about the file; name one with --out")
			}
			a.Version, a.Progress = p.Version, p.progress("lines")
			if !toFile {
				_, err = c.Export(cmd.Context(), p.Out, a)
				return err
			}
			r, err := c.ExportTo(cmd.Context(), out, a)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(p.Out, r)
			}
			_, err = fmt.Fprintf(p.Out, "exported %s to %s in %.1f s: %s\n",
				strings.Join(r.Projects, ", "), out, r.Seconds, kindsOf(r.Counts))
			return err
		}),
	}
	f := cmd.Flags()
	f.StringVar(&a.Project, "project", "", "the project, by id or alias (default: the one of this folder)")
	f.BoolVar(&a.All, "all", false, "every project")
	f.StringVar(&out, "out", "-", "the file to write; - for standard output")
	f.BoolVar(&asJSON, "json", false, "print a report as JSON")
	return cmd
}

// kindsOf reports how many lines there are of each kind, "3 observation, 1 session".
func kindsOf(counts map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// printExportImport reports what became of an export.
func (p *Process) printExportImport(r copies.Imported, dryRun bool) {
	verb := "imported"
	if dryRun {
		verb = "would import"
	}
	fmt.Fprintf(p.Out, "%s %s from %s: %d observations, %d sessions, %d records (%d changes), %d messages, %d memory entries\n",
		verb, strings.Join(r.Projects, ", "), r.File, r.Rows.Added, r.Rows.Sessions, r.Records.Records, r.Records.Added, r.Mail.Messages,
		r.Memories.Entries)
	for _, part := range []struct {
		n    int
		what string
	}{
		{r.Rows.Known, "observations known already"},
		{r.Records.Known, "changes of records known already"},
		{r.Records.Renumbered, "records got a new number, theirs were taken"},
		{r.Records.Conflicts, "versions of records are kept beside the newest: see `cairn records history`"},
		{r.Rows.NewIDs, "observations got a new id, theirs were taken"},
		{r.Rows.Purged, "observations were purged here before and stay out"},
		{r.Rows.Redacted, "observations held a secret that is redacted now"},
		{r.Mail.Known, "agents, messages and other mail known already"},
		{r.Mail.NewIDs, "agents, messages and reservations got a new number, theirs was taken"},
		{r.Mail.Redacted, "messages and other mail held a secret that is redacted now"},
		{r.Memories.Contexts, "versions of context documents"},
		{r.Memories.Known, "memory entries and contexts known already"},
		{r.Memories.Deleted, "memory entries and contexts were deleted here before and stay out"},
		{r.Memories.Redacted, "memory entries and contexts held a secret that is redacted now"},
		{r.Left, "aliases lead elsewhere here and were left"},
	} {
		if part.n > 0 {
			fmt.Fprintf(p.Out, "  %7d  %s\n", part.n, part.what)
		}
	}
}
