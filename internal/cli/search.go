package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/observation/search"
	"cairn/internal/recall"
	"cairn/internal/store"
	"cairn/internal/words"
)

func searchCommand(p *Process) *cobra.Command {
	var a search.SearchArgs
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

Best matches come first: in a terminal a line for each, with the words that matched in
bold, else a JSON array. cairn show prints a row whole. For a question, use cairn recall.

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
			rows, err := search.Find(cmd.Context(), j, search.FindArgs{SearchArgs: a, Asker: asker, Each: ids})
			if err != nil {
				return err
			}
			if err := p.printRows(cmd, j, rows, a.Query, full, ids); err != nil {
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
	f.Bool("json", false, "print JSON; without it too where the output is no terminal, except with --all")
	for _, other := range []string{"type", "offset", "order-by", "full", "ids"} {
		cmd.MarkFlagsMutuallyExclusive("all", other)
	}
	return cmd
}

// fullRow is a row that was found, with all its fields.
type fullRow struct {
	search.FoundRow
	SourceEvent string  `json:"source_event"`
	ToolName    *string `json:"tool_name"`
	Content     string  `json:"content"`
	Metadata    any     `json:"metadata"`
	Output      string  `json:"output,omitempty"`
}

func (p *Process) printRows(cmd *cobra.Command, j *observation.Service, found []search.FoundRow, query string, full, ids bool) error {
	if ids {
		for _, row := range found {
			if _, err := fmt.Fprintln(p.Out, row.ID); err != nil {
				return err
			}
		}
		return nil
	}
	if asJSON, _ := cmd.Flags().GetBool("json"); p.printsToTerminal() && !asJSON {
		return p.printFound(cmd, j, found, query, full)
	}
	if !full {
		return printJSON(p.Out, found)
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
	return printJSON(p.Out, out)
}

// printFound prints rows for people: a line for each or, if they are to be full, whole.
func (p *Process) printFound(cmd *cobra.Command, j *observation.Service, found []search.FoundRow, query string, full bool) error {
	var b strings.Builder
	on, off := p.marks()
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
		fmt.Fprintf(&b, "#%d  %s  %s  %s: %s", row.ID, second(row.Timestamp), oneLine(row.Project), row.ObsType, recall.Marked(finder, oneLine(row.Excerpt), on, off))
		if row.Count > 1 {
			fmt.Fprintf(&b, "  (%d times)", row.Count)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(p.Out, b.String())
	return err
}
