package findcmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/observation/search"
	"cairn/internal/recall"
	"cairn/internal/store"
	"cairn/internal/words"
)

func searchCommand(p *command.Process) *cobra.Command {
	var a search.SearchArgs
	var full, ids, all bool
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find recorded events by their words",
		Long: `search finds recorded rows by their words, in all projects unless you use --project. Rows
with all words come first; stop words are ignored. If they are fewer than --limit, rows
follow whose turns contain the most and the rarest of the words, marked "matched":
"some". An unknown word is replaced by the nearest known one. A query with OR, NOT,
"a phrase", prefix*, NEAR(a b, 5) or parentheses is exact. Identifiers are found by the
whole name and by its parts. Rows with the same text are shown once with a count, except
with --ids.

In a terminal each result is a line, best match first, with matching words in bold. Other
outputs get a JSON array. cairn show prints a whole row. To ask a question, use cairn
recall.

--all searches all parts of the store and prints sessions, as cairn recall does.`,
		Example: `  cairn search 'getUserById'
  cairn search '"connection refused" OR timeout' --type command_error
  cairn search stale --ids | xargs cairn pin
  cairn search --all 'refund expiry'`,
		Args: command.ExactArgs(1, "one query; put quotes around several words"),
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			if all {
				q := recall.Args{Query: args[0], Project: a.Scope.Project}
				if cmd.Flags().Changed("limit") {
					q.Limit = a.Limit
				}
				return printRecall(p, cmd, c, q)
			}
			j, err := c.Observations(cmd.Context())
			if err != nil {
				return err
			}
			if !j.Exists() {
				return fault.New(fault.NotFound, store.CodeMissing, "there is no store yet").
					WithHint("`cairn import` creates and fills one")
			}
			a.Query = args[0]
			asker, err := c.CallerSession(cmd.Context())
			if err != nil {
				return err
			}
			c.IndexTurns(cmd.Context())
			rows, err := search.Find(cmd.Context(), j, search.FindArgs{SearchArgs: a, Asker: asker, Each: ids})
			if err != nil {
				return err
			}
			if err := printRows(p, cmd, j, rows, a.Query, full, ids); err != nil {
				return err
			}
			if len(rows) == 0 {
				fmt.Fprintln(p.Err, "cairn: "+recall.NothingFound(a))
			}
			what := "results"
			if len(rows) == 1 {
				what = "result"
			}
			_, err = fmt.Fprintf(p.Err, "cairn: %d %s for %q\n", len(rows), what, a.Query)
			return err
		}),
	}
	f := cmd.Flags()
	f.StringVar(&a.Scope.Project, "project", "", "only this project (id or alias)")
	f.StringVar(&a.ObsType, "type", "", "only rows of this type, such as command_error or file_edit")
	f.IntVar(&a.Limit, "limit", 20, "maximum number of results (1–100)")
	f.IntVar(&a.Offset, "offset", 0, "number of results to skip")
	f.StringVar(&a.OrderBy, "order-by", "relevance", "the order: relevance, or blended (relevance and recency)")
	f.BoolVar(&full, "full", false, "print whole rows, with content and metadata")
	f.BoolVar(&ids, "ids", false, "print only ids, one per line")
	f.BoolVar(&all, "all", false, "also search records, mail and memories, as cairn recall does")
	f.Bool("json", false, "print JSON; this is the default if the output is not a terminal, except with --all")
	for _, other := range []string{"type", "offset", "order-by", "full", "ids"} {
		cmd.MarkFlagsMutuallyExclusive("all", other)
	}
	return cmd
}

// fullRow is a found row with all its fields.
type fullRow struct {
	search.FoundRow
	SourceEvent string  `json:"source_event"`
	ToolName    *string `json:"tool_name"`
	Content     string  `json:"content"`
	Metadata    any     `json:"metadata"`
	Output      string  `json:"output,omitempty"`
}

func printRows(p *command.Process, cmd *cobra.Command, j *observation.Service, found []search.FoundRow, query string, full, ids bool) error {
	if ids {
		for _, row := range found {
			if _, err := fmt.Fprintln(p.Out, row.ID); err != nil {
				return err
			}
		}
		return nil
	}
	if asJSON, _ := cmd.Flags().GetBool("json"); p.PrintsToTerminal() && !asJSON {
		return printFound(p, cmd, j, found, query, full)
	}
	if !full {
		return command.PrintJSON(p.Out, found)
	}
	out := []fullRow{}
	for _, row := range found {
		rows, err := browse.Get(cmd.Context(), j, []int64{row.ID})
		if err != nil {
			return err
		}
		for _, o := range rows {
			out = append(out, fullRow{row, o.SourceEvent, o.ToolName, o.Content, o.Metadata, o.Output})
		}
	}
	return command.PrintJSON(p.Out, out)
}

// printFound prints rows for people: a line for each, or with full the whole rows.
func printFound(p *command.Process, cmd *cobra.Command, j *observation.Service, found []search.FoundRow, query string, full bool) error {
	var b strings.Builder
	on, off := p.Marks()
	finder := words.FinderOf(query)
	for _, row := range found {
		if full {
			rows, err := browse.Get(cmd.Context(), j, []int64{row.ID})
			if err != nil {
				return err
			}
			for _, o := range rows {
				describeRow(&b, o)
			}
			continue
		}
		fmt.Fprintf(&b, "#%d  %s  %s  %s: %s", row.ID, command.FormatSecond(row.Timestamp), command.OneLine(row.Project), row.ObsType, recall.Marked(finder, command.OneLine(row.Excerpt), on, off))
		if row.Count > 1 {
			fmt.Fprintf(&b, "  (%d times)", row.Count)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(p.Out, b.String())
	return err
}
