package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/store"
)

func searchCommand(p *Process) *cobra.Command {
	var a observation.SearchArgs
	var full, ids, all bool
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find what happened",
		Long: `search looks through everything that was recorded, in all projects unless
--project names one. All words must match; also: OR, NOT, "a phrase", prefix*,
NEAR(a b, 5) and parentheses. Identifiers are found whole and by their parts.

The result is a JSON array, best match first.

--all looks through all parts of the store: observations, records, mail and the entries
of memories. It prints a line per result; --json prints an array of them.`,
		Example: `  cairn search 'getUserById'
  cairn search '"connection refused" OR timeout' --type command_error
  cairn search stale --ids | xargs cairn pin
  cairn search --all 'refund expiry'`,
		Args: exactArgs(1, "one query; put quotes around several words"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			if all {
				return p.searchAll(cmd, c, cairn.SearchAllArgs{Query: args[0], Project: a.Scope.Project, Limit: a.Limit})
			}
			j, err := c.Journal(cmd.Context())
			if err != nil {
				return err
			}
			if !j.Exists() {
				return fault.New(fault.NotFound, store.CodeMissing, "there is no store yet").
					WithHint("fill one with `cairn import`")
			}
			a.Query = args[0]
			hits, err := j.Search(cmd.Context(), a)
			if err != nil {
				return err
			}
			if err := p.printHits(cmd, j, hits, full, ids); err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Err, "cairn: %d results for %q\n", len(hits), a.Query)
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
	f.BoolVar(&all, "all", false, "look through records, mail and memories, too")
	f.Bool("json", false, "print JSON; without it too, except with --all")
	for _, other := range []string{"type", "offset", "order-by", "full", "ids"} {
		cmd.MarkFlagsMutuallyExclusive("all", other)
	}
	return cmd
}

// fullHit is a hit with every field of its row.
type fullHit struct {
	observation.Hit
	SourceEvent string  `json:"source_event"`
	ToolName    *string `json:"tool_name"`
	Content     string  `json:"content"`
	Metadata    any     `json:"metadata"`
	Output      string  `json:"output,omitempty"`
}

func (p *Process) printHits(cmd *cobra.Command, j *observation.Journal, hits []observation.Hit, full, ids bool) error {
	if ids {
		for _, h := range hits {
			if _, err := fmt.Fprintln(p.Out, h.ID); err != nil {
				return err
			}
		}
		return nil
	}
	if !full {
		return printJSON(p.Out, hits)
	}
	out := []fullHit{}
	for _, h := range hits {
		rows, err := j.Get(cmd.Context(), []int64{h.ID})
		if err != nil {
			return err
		}
		for _, o := range rows {
			out = append(out, fullHit{h, o.SourceEvent, o.ToolName, o.Content, o.Metadata, o.Output})
		}
	}
	return printJSON(p.Out, out)
}
