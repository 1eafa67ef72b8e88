package recordcmd

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/record"
)

func recordsCommand(p *command.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "records",
		Short: "Keep and read design reasoning: questions, conclusions, notes",
		Long: `records keeps reasoning that outlives a chat. Each project has a tree of questions,
conclusions and notes; each record is OPEN, LATER, RESOLVED or DISCARDED. Agents use the
same records through the MCP tools of cairn serve.

Before you change a record or add one below it, activate it in a session. This prevents
you from overwriting a version that you have not seen. The session is that of the agent
that runs the command, else a new one. Its name is printed, and --session continues it.

A body can cite code as path#L10-L20. cairn remembers the content of these lines and
marks the record as drifted when the working tree no longer contains it. Each write
increases the project's tick: --at tick:N shows the project at that time.`,
		Example: `  cairn records tree
  cairn records create --type question --title "Where do refunds expire?"
  cairn records activate R001
  cairn records transition R001 LATER --reason "after the release" --session S-…
  cairn records list --state OPEN --at 2026-05-01T00:00:00Z`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		recordsTreeCommand(p), recordsListCommand(p), recordsShowCommand(p), recordsSearchCommand(p),
		recordsActivateCommand(p), recordsCreateCommand(p), recordsUpdateCommand(p), recordsTransitionCommand(p),
		recordsHistoryCommand(p), recordsDiffCommand(p), recordsActivityCommand(p),
	)
	return cmd
}

func recordsTreeCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var kept []string
	cmd := command.New(&f, cobra.Command{
		Use:   "tree [ID]",
		Short: "Print the records of a project, or of one branch, as a tree",
		Long: `tree prints each record with id, state, type and title, children below their parent.
(drifted) marks a record that cites code which the working tree no longer contains.`,
		Example: "  cairn records tree\n  cairn records tree R001 --state OPEN,LATER",
		Args:    command.AtMostOne("record's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) ([]record.Ref, error) {
		states, err := statesOf(kept)
		if err != nil {
			return nil, err
		}
		refs, err := treeOf(cmd.Context(), c.Records(), &f, args)
		return withStates(refs, states), err
	}, drawTree)
	stateFlag(cmd, &kept, "only records in these states, and their parents")
	return f.ReadFlags(cmd)
}

// treeOf lists a project's records, or a record and everything below it, parents first.
func treeOf(ctx context.Context, r cairn.Records, f *command.RecordFlags, args []string) ([]record.Ref, error) {
	if len(args) == 0 {
		return r.List(ctx, record.ListArgs{Caller: f.Caller(), At: f.At})
	}
	top, err := r.GetRef(ctx, record.GetRefArgs{Caller: f.Caller(), ID: args[0], At: f.At})
	if err != nil {
		return nil, err
	}
	below, err := r.List(ctx, record.ListArgs{Caller: f.Caller(), ParentID: top.ID, Depth: math.MaxInt, At: f.At})
	return append([]record.Ref{top}, below...), err
}

func recordsListCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var a record.ListArgs
	var kept []string
	cmd := command.New(&f, cobra.Command{
		Use:   "list",
		Short: "List records, parents first",
		Long: `list prints a line per record: id, state, type and title. Without --roots and --parent it
lists all records of the project. These flags choose one level of the tree, and --depth
adds more levels.`,
		Example: "  cairn records list --state OPEN\n  cairn records list --parent R001 --depth 2 --type question",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (list []record.Ref, err error) {
		if a.Roots && a.ParentID != "" {
			return nil, fault.New(fault.Invalid, "usage", "--parent cannot be combined with --roots")
		}
		if a.States, err = statesOf(kept); err != nil {
			return nil, err
		}
		a.Caller, a.At = f.Caller(), f.At
		return command.ListOf(c.Records().List(cmd.Context(), a))
	}, PrintRefs)
	stateFlag(cmd, &kept, "only records in these states")
	cmd.Flags().StringSliceVar(&a.Types, "type", nil, "only records of these types")
	cmd.Flags().StringVar(&a.ParentID, "parent", "", "only records below this one")
	cmd.Flags().BoolVar(&a.Roots, "roots", false, "only roots")
	cmd.Flags().IntVar(&a.Depth, "depth", 1, "number of levels, with --parent or --roots")
	return f.ReadFlags(cmd)
}

func recordsShowCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	return f.ReadFlags(command.New(&f, cobra.Command{
		Use:   "show ID",
		Short: "Print a whole record",
		Long: `show prints a record with its body, without loading it into a session. For each code
citation in the body it prints the state in the working tree: as it was, moved (now at
L4-L5), drifted (no longer there), or not compared, if there is no working tree or the
file cannot be read.`,
		Example: "  cairn records show R001\n  cairn records show R001 --at tick:17",
		Args:    command.ExactArgs(1, "one record's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (record.Record, error) {
		return c.Records().Get(cmd.Context(), record.GetRefArgs{Caller: f.Caller(), ID: args[0], At: f.At})
	}, printRecord))
}

func recordsSearchCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var a record.SearchArgs
	var kept []string
	cmd := command.New(&f, cobra.Command{
		Use:   "search QUERY",
		Short: "Find records by their words",
		Long: `search finds records by their words: first records with all words, then records with
some. An unknown word is replaced by the nearest known one. A query with AND, OR, NOT,
"a phrase", prefix* or parentheses is exact. Titles weigh more than summaries, and
summaries more than bodies. The number is the score, 1.000 for the best.`,
		Example: `  cairn records search 'refund expiry'
  cairn records search '"after 30 days" OR ledger' --state OPEN`,
		Args: command.ExactArgs(1, "one query; put quotes around several words"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (found record.SearchResult, err error) {
		if a.States, err = statesOf(kept); err != nil {
			return found, err
		}
		a.Caller, a.Query, a.At = f.Caller(), args[0], f.At
		found, err = c.Records().Search(cmd.Context(), a)
		found.Results = command.NotNil(found.Results)
		f.NoteCorrected(found.Corrected, found.Hint)
		f.Note("%d of %d results for %q", len(found.Results), found.Total, a.Query)
		return found, err
	}, printHitsOfRecords)
	stateFlag(cmd, &kept, "only records in these states")
	cmd.Flags().StringSliceVar(&a.Types, "type", nil, "only records of these types")
	cmd.Flags().StringVar(&a.ParentID, "parent", "", "only this record and everything below it")
	cmd.Flags().IntVar(&a.Limit, "limit", 20, "maximum number of results (1–500)")
	return f.ReadFlags(cmd)
}

func recordsHistoryCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var a record.HistoryArgs
	cmd := command.New(&f, cobra.Command{
		Use:   "history ID",
		Short: "Show the versions of a record, newest first",
		Long: `history prints each version of a record: number, tick, time, session, kind of change, and
the changes of the body.`,
		Example: "  cairn records history R001 --limit 3",
		Args:    command.ExactArgs(1, "one record's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) ([]record.HistoryItem, error) {
		a.Caller, a.ID, a.At = f.Caller(), args[0], f.At
		return command.ListOf(c.Records().History(cmd.Context(), a))
	}, printHistory)
	cmd.Flags().StringVar(&a.Since, "since", "", "only from this RFC 3339 time on")
	cmd.Flags().IntVar(&a.Limit, "limit", 50, "most entries, 1 to 500")
	return f.ReadFlags(cmd)
}

func recordsDiffCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var a record.DiffArgs
	cmd := command.New(&f, cobra.Command{
		Use:   "diff ID --from VERSION",
		Short: "Compare two versions of a record",
		Long: `diff compares two versions of a record. A version is v3, tick:17, an RFC 3339 time, or
last_save, the version that the session saved last. The default of --to is the current
version.`,
		Example: "  cairn records diff R001 --from v1\n  cairn records diff R001 --from last_save --session S-…",
		Args:    command.ExactArgs(1, "one record's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (record.VersionDiff, error) {
		if err := command.RequireFlags(cmd, "from"); err != nil {
			return record.VersionDiff{}, err
		}
		a.Caller, a.ID = f.Caller(), args[0]
		return c.Records().Diff(cmd.Context(), a)
	}, printDiff)
	cmd.Flags().StringVar(&a.From, "from", "", "the older version")
	cmd.Flags().StringVar(&a.To, "to", "", "the newer version (default now)")
	return f.WriteFlags(cmd)
}

func recordsActivityCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var a record.ActivityArgs
	cmd := command.New(&f, cobra.Command{
		Use:   "activity",
		Short: "Show what happened in the project, newest first",
		Long: `activity prints what happened in a project: records that were created, updated or moved
to another state; sessions that started, saved, branched or closed, and the records that
they activated; and conflicts.`,
		Example: "  cairn records activity --record R001\n  cairn records activity --type conflict_detected,conflict_resolved",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) ([]record.Activity, error) {
		a.Caller, a.At = f.Caller(), f.At
		return command.ListOf(c.Records().RecentActivity(cmd.Context(), a))
	}, PrintActivity)
	cmd.Flags().StringVar(&a.Since, "since", "", "only from this RFC 3339 time on")
	cmd.Flags().IntVar(&a.Limit, "limit", 50, "most entries, 1 to 500")
	cmd.Flags().StringSliceVar(&a.Types, "type", nil, "only activity of these types, such as record_created or state_transition")
	cmd.Flags().StringVar(&a.RecordID, "record", "", "only activity of this record")
	return f.ReadFlags(cmd)
}
