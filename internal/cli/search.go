package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/recall"
	"cairn/internal/store"
)

func searchCommand(p *Process) *cobra.Command {
	var a observation.SearchArgs
	var full, ids, all bool
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find what happened",
		Long: `search finds rows of everything that was recorded, in all projects unless --project
names one. Rows that hold all words come first, stop words left out. If they are fewer
than --limit, rows of turns that hold the most and the rarest of the words follow,
marked "matched": "some"; an unknown word is replaced by the nearest known one. With OR,
NOT, "a phrase", prefix*, NEAR(a b, 5) or parentheses the query is exact. Identifiers are
found whole and by their parts. Rows with equal texts are one row with a count, except
with --ids.

The result is a JSON array, best match first. For a question, use cairn recall.

--all searches all parts of the store and prints sessions: it is cairn recall.`,
		Example: `  cairn search 'getUserById'
  cairn search '"connection refused" OR timeout' --type command_error
  cairn search stale --ids | xargs cairn pin
  cairn search --all 'refund expiry'`,
		Args: exactArgs(1, "one query; put quotes around several words"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			if all {
				q := recall.Args{Query: args[0], Project: a.Scope.Project}
				if cmd.Flags().Changed("limit") {
					q.Limit = a.Limit
				}
				return p.recall(cmd, c, q)
			}
			j, err := c.Observations(cmd.Context())
			if err != nil {
				return err
			}
			if !j.Exists() {
				return fault.New(fault.NotFound, store.CodeMissing, "there is no store yet").
					WithHint("fill one with `cairn import`")
			}
			a.Query = args[0]
			asker, err := c.AskingSession(cmd.Context())
			if err != nil {
				return err
			}
			c.IndexTurns(cmd.Context())
			rows, err := j.Find(cmd.Context(), observation.FindArgs{SearchArgs: a, Asker: asker, Each: ids})
			if err != nil {
				return err
			}
			if err := p.printRows(cmd, j, rows, full, ids); err != nil {
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
	f.IntVar(&a.Limit, "limit", 20, "most results, 1 to 100")
	f.IntVar(&a.Offset, "offset", 0, "results to skip")
	f.StringVar(&a.OrderBy, "order-by", "relevance", "relevance, or blended with recency")
	f.BoolVar(&full, "full", false, "whole rows, with content and metadata")
	f.BoolVar(&ids, "ids", false, "ids only, one a line")
	f.BoolVar(&all, "all", false, "search records, mail and memories, too, as cairn recall")
	f.Bool("json", false, "print JSON; without it too, except with --all")
	for _, other := range []string{"type", "offset", "order-by", "full", "ids"} {
		cmd.MarkFlagsMutuallyExclusive("all", other)
	}
	return cmd
}

// fullRow is a row that was found, with all its fields.
type fullRow struct {
	observation.FoundRow
	SourceEvent string  `json:"source_event"`
	ToolName    *string `json:"tool_name"`
	Content     string  `json:"content"`
	Metadata    any     `json:"metadata"`
	Output      string  `json:"output,omitempty"`
}

func (p *Process) printRows(cmd *cobra.Command, j *observation.Service, found []observation.FoundRow, full, ids bool) error {
	if ids {
		for _, row := range found {
			if _, err := fmt.Fprintln(p.Out, row.ID); err != nil {
				return err
			}
		}
		return nil
	}
	if !full {
		return printJSON(p.Out, found)
	}
	out := []fullRow{}
	for _, row := range found {
		rows, err := j.Get(cmd.Context(), []int64{row.ID})
		if err != nil {
			return err
		}
		for _, o := range rows {
			out = append(out, fullRow{row, o.SourceEvent, o.ToolName, o.Content, o.Metadata, o.Output})
		}
	}
	return printJSON(p.Out, out)
}
