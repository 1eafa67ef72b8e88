package projectcmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/copies"
	"cairn/internal/fault"
	"cairn/internal/store"
)

func exportCommand(p *command.Process) *cobra.Command {
	var a copies.ExportArgs
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a project to a file that another cairn can import",
		Long: `export writes everything that cairn stores about a project: names, sessions,
observations with pins and digests, records with their whole history, mail with
attachments, contacts and reservations, memories with their contexts. It also lists
what was purged or deleted, so that an import does not restore it. ` + "`cairn import FILE`" + `
creates an equal project in another store or on another machine. --all writes every
project of the store and the memories that belong to no project.

The file is JSON Lines: one object per line with its kind, which jq and other programs
can read. The last line contains a checksum, by which an incomplete or changed file is
detected. Without --out the export goes to standard output. With --out the file appears
when it is complete, and only you can read it.

An export contains no keys, and secrets were redacted before they were stored. But it
is not encrypted, even if the store is. A later purge does not change it.`,
		Example: `  cairn export --out shop.jsonl
  cairn export --all --out everything.jsonl
  cairn export --project shop | jq -r 'select(.kind == "record") | .doc.title'`,
		Args: cobra.NoArgs,
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (err error) {
			toFile := out != "" && out != "-"
			switch {
			case a.All && a.Project != "":
				return fault.New(fault.Invalid, "usage", "--all cannot be combined with --project")
			case asJSON && !toFile:
				return fault.New(fault.Invalid, "usage", "--json requires --out: it prints a report about the file")
			}
			a.Version, a.Progress = p.Version, p.Progress("lines")
			if !toFile {
				_, err = c.Export(cmd.Context(), p.Out, a)
				return err
			}
			r, err := c.ExportTo(cmd.Context(), out, a)
			switch {
			case err != nil:
				return err
			case asJSON:
				return command.PrintJSON(p.Out, r)
			}
			_, err = fmt.Fprintf(p.Out, "exported %s to %s in %.1f s: %s\n",
				strings.Join(r.Projects, ", "), out, r.Seconds, kindsOf(r.Counts))
			return err
		}),
	}
	f := cmd.Flags()
	f.StringVar(&a.Project, "project", "", "the project (id or alias) instead of the current one")
	f.BoolVar(&a.All, "all", false, "every project")
	f.StringVar(&out, "out", "-", "the file to write; - for standard output")
	f.BoolVar(&asJSON, "json", false, "print a report as JSON")
	return cmd
}

// kindsOf returns the number of lines of each kind, "3 observation, 1 session".
func kindsOf(counts map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// printExportImport prints the result of importing an export.
func printExportImport(p *command.Process, r copies.Imported, dryRun bool) {
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
		{r.Rows.Known, "observations were already known"},
		{r.Records.Known, "changes of records were already known"},
		{r.Records.Renumbered, "records got a new number, because theirs was taken"},
		{r.Records.Conflicts, "versions of records are kept next to the newest: see `cairn records history`"},
		{r.Rows.NewIDs, "observations got a new id, because theirs was taken"},
		{r.Rows.Purged, "observations were purged here before and are not imported"},
		{r.Rows.Redacted, "observations contained a secret that is redacted now"},
		{r.Mail.Known, "agents, messages and other mail were already known"},
		{r.Mail.NewIDs, "agents, messages and reservations got a new number, because theirs was taken"},
		{r.Mail.Redacted, "messages and other mail contained a secret that is redacted now"},
		{r.Memories.Contexts, "versions of context documents"},
		{r.Memories.Known, "memory entries and contexts were already known"},
		{r.Memories.Deleted, "memory entries and contexts were deleted here before and are not imported"},
		{r.Memories.Redacted, "memory entries and contexts contained a secret that is redacted now"},
		{r.Left, "aliases belong to other projects here and were not changed"},
	} {
		if part.n > 0 {
			fmt.Fprintf(p.Out, "  %7d  %s\n", part.n, part.what)
		}
	}
}
