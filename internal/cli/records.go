package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/record"
	"cairn/internal/store"
)

func recordsCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "records",
		Short: "Keep and read design reasoning: questions, conclusions, notes",
		Long: `records is for reasoning that outlives a chat: a tree of questions, conclusions and
notes for each project, every one OPEN, LATER, RESOLVED or DISCARDED. Agents work
with the same records through the MCP tools of cairn serve.

Reading needs nothing. Whoever changes a record or adds below it first activates
it in a session, so that nobody overwrites what he has not seen. The session is
the one of the agent that runs the command, else a new one; its name is printed,
and --session goes on in it.`,
		Example: `  cairn records tree
  cairn records create --type question --title "Where do refunds expire?"
  cairn records activate R001
  cairn records transition R001 LATER --reason "after the release" --session S-…
  cairn records list --state OPEN --at 2026-05-01T00:00:00Z`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		recordsTreeCommand(p), recordsListCommand(p), recordsShowCommand(p), recordsSearchCommand(p),
		recordsActivateCommand(p), recordsCreateCommand(p), recordsUpdateCommand(p), recordsTransitionCommand(p),
		recordsHistoryCommand(p), recordsDiffCommand(p), recordsActivityCommand(p),
	)
	return cmd
}

// recordFlags are the flags that commands of records share.
type recordFlags struct {
	project, session, at string
	asJSON               bool

	process *Process
	fresh   string // the session that the command makes if it needs one
}

// recording are the flags of a command that changes something, reading those of
// one that looks, also at the past.
func (f *recordFlags) recording(cmd *cobra.Command) *cobra.Command {
	f.common(cmd)
	cmd.Flags().StringVar(&f.session, "session", "", "the session instead of the current one")
	return cmd
}

func (f *recordFlags) reading(cmd *cobra.Command) *cobra.Command {
	f.common(cmd)
	cmd.Flags().StringVar(&f.at, "at", "", "as it was: an RFC 3339 time, or tick:N")
	return cmd
}

func (f *recordFlags) common(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return inTerminal(run(cmd, args)) }
	cmd.Flags().StringVar(&f.project, "project", "", "the project (id or alias) instead of the one here (CAIRN_PROJECT)")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
}

// caller says who reads.
func (f *recordFlags) caller() record.Caller {
	name := f.project
	if name == "" {
		name = f.process.Getenv("CAIRN_PROJECT")
	}
	return record.Caller{Project: name, SessionID: f.session}
}

// writer says who writes: without a session that is known, in one of its own.
func (f *recordFlags) writer(ctx context.Context, c *cairn.Cairn) (record.Caller, error) {
	caller := f.caller()
	if f.session != "" {
		return caller, nil
	}
	current, err := c.CurrentSession(ctx)
	if err == nil && current == "" {
		f.fresh = cairn.NewSessionID()
		caller.Transport = f.fresh
	}
	return caller, err
}

// done names the session that the command made.
func (f *recordFlags) done() error {
	if f.fresh == "" {
		return nil
	}
	_, err := fmt.Fprintf(f.process.Err, "cairn: in the new session %s; --session %s goes on in it\n", f.fresh, f.fresh)
	return err
}

// inTerminal says in the words of commands what the hints of records say in those
// of tools.
func inTerminal(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	switch f.Code {
	case record.CodeNotActivated, record.CodeParentNotActivated:
		return f.WithHint("`cairn records activate` loads it; --session then names that session")
	case record.CodeNotFound:
		return f.WithHint("`cairn records tree` shows what there is")
	case record.CodeProjectNotFound:
		return f.WithHint("`cairn project list` shows them, `cairn project create` makes one")
	case record.CodeSessionNotFound:
		return f.WithHint("--session names one, `cairn session list` shows the open ones, `cairn records activate` opens one")
	}
	return err
}

// show prints a result, as JSON or as text; a list is never null.
func show[T any](f *recordFlags, v T, text func(io.Writer, T) error) error {
	if f.asJSON {
		return printJSON(f.process.Out, v)
	}
	return text(f.process.Out, v)
}

func recordsTreeCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var kept []string
	cmd := &cobra.Command{
		Use:   "tree [ID]",
		Short: "Draw the records of a project, or one and all below it",
		Args:  cobra.MaximumNArgs(1),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			refs, err := treeOf(cmd.Context(), c.Records(), &f, args)
			if err != nil {
				return err
			}
			states, err := statesOf(kept)
			if err != nil {
				return err
			}
			return show(&f, withStates(refs, states), drawTree)
		}),
	}
	stateFlag(cmd, &kept, "only records in these states, and those above them")
	return f.reading(cmd)
}

// treeOf lists a project's records, or one with all below it, parents first.
func treeOf(ctx context.Context, r cairn.Records, f *recordFlags, args []string) ([]record.Ref, error) {
	if len(args) == 0 {
		return r.List(ctx, record.ListArgs{Caller: f.caller(), At: f.at})
	}
	top, err := r.GetRef(ctx, record.GetRefArgs{Caller: f.caller(), ID: args[0], At: f.at})
	if err != nil {
		return nil, err
	}
	below, err := r.List(ctx, record.ListArgs{Caller: f.caller(), ParentID: top.ID, Depth: allLevels, At: f.at})
	return append([]record.Ref{top}, below...), err
}

// allLevels is deeper than any tree of records.
const allLevels = 1 << 16

func recordsListCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var a record.ListArgs
	var kept []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List records, parents first",
		Args:  cobra.NoArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (err error) {
			if a.Roots && a.ParentID != "" {
				return fault.New(fault.Invalid, "usage", "takes --parent or --roots, not both")
			}
			if a.States, err = statesOf(kept); err != nil {
				return err
			}
			a.Caller, a.At = f.caller(), f.at
			refs, err := c.Records().List(cmd.Context(), a)
			if err != nil {
				return err
			}
			return show(&f, notNil(refs), printRefs)
		}),
	}
	stateFlag(cmd, &kept, "only records in these states")
	cmd.Flags().StringSliceVar(&a.Types, "type", nil, "only records of these types")
	cmd.Flags().StringVar(&a.ParentID, "parent", "", "only what is below this record")
	cmd.Flags().BoolVar(&a.Roots, "roots", false, "only roots")
	cmd.Flags().IntVar(&a.Depth, "depth", 1, "levels, with --parent or --roots")
	return f.reading(cmd)
}

func recordsShowCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Print a whole record",
		Args:  exactArgs(1, "one record's id"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			r, err := c.Records().Get(cmd.Context(), record.GetRefArgs{Caller: f.caller(), ID: args[0], At: f.at})
			if err != nil {
				return err
			}
			return show(&f, r, printRecord)
		}),
	}
	return f.reading(cmd)
}

func recordsSearchCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var a record.SearchArgs
	var kept []string
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find records by their words",
		Long: `search finds records that hold any of the words, the best first; also: AND, NOT,
"a phrase", prefix* and parentheses. Titles weigh more than summaries, and those
more than bodies.`,
		Args: exactArgs(1, "one query; put quotes around several words"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (err error) {
			if a.States, err = statesOf(kept); err != nil {
				return err
			}
			a.Caller, a.Query, a.At = f.caller(), args[0], f.at
			found, err := c.Records().Search(cmd.Context(), a)
			if err != nil {
				return err
			}
			found.Results = notNil(found.Results)
			if err := show(&f, found, printHitsOfRecords); err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Err, "cairn: %d of %d results for %q\n", len(found.Results), found.Total, a.Query)
			return err
		}),
	}
	stateFlag(cmd, &kept, "only records in these states")
	cmd.Flags().StringSliceVar(&a.Types, "type", nil, "only records of these types")
	cmd.Flags().StringVar(&a.ParentID, "parent", "", "only this record and all below it")
	cmd.Flags().IntVar(&a.Limit, "limit", 20, "most results, 1 to 500")
	return f.reading(cmd)
}

func recordsHistoryCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var a record.HistoryArgs
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "Show what was stored of a record, newest first",
		Args:  exactArgs(1, "one record's id"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			a.Caller, a.ID, a.At = f.caller(), args[0], f.at
			items, err := c.Records().History(cmd.Context(), a)
			if err != nil {
				return err
			}
			return show(&f, notNil(items), printHistory)
		}),
	}
	cmd.Flags().StringVar(&a.Since, "since", "", "only from this RFC 3339 time on")
	cmd.Flags().IntVar(&a.Limit, "limit", 50, "most entries, 1 to 500")
	return f.reading(cmd)
}

func recordsDiffCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var a record.DiffArgs
	cmd := &cobra.Command{
		Use:   "diff ID --from VERSION",
		Short: "Compare two versions of a record",
		Long: `diff compares versions, each given as v3, tick:17, an RFC 3339 time or last_save;
--to left out means now.`,
		Example: "  cairn records diff R001 --from v1\n  cairn records diff R001 --from last_save --session S-…",
		Args:    exactArgs(1, "one record's id"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			a.Caller, a.ID = f.caller(), args[0]
			d, err := c.Records().Diff(cmd.Context(), a)
			if err != nil {
				return err
			}
			return show(&f, d, printDiff)
		}),
	}
	cmd.Flags().StringVar(&a.From, "from", "", "the older version")
	cmd.Flags().StringVar(&a.To, "to", "", "the newer version (default now)")
	return f.recording(cmd)
}

func recordsActivityCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var a record.ActivityArgs
	cmd := &cobra.Command{
		Use:   "activity",
		Short: "Show what happened in the project, newest first",
		Args:  cobra.NoArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			a.Caller, a.At = f.caller(), f.at
			list, err := c.Records().RecentActivity(cmd.Context(), a)
			if err != nil {
				return err
			}
			return show(&f, notNil(list), printActivity)
		}),
	}
	cmd.Flags().StringVar(&a.Since, "since", "", "only from this RFC 3339 time on")
	cmd.Flags().IntVar(&a.Limit, "limit", 50, "most entries, 1 to 500")
	cmd.Flags().StringSliceVar(&a.Types, "type", nil, "only these, such as record_created or state_transition")
	cmd.Flags().StringVar(&a.RecordID, "record", "", "only of this record")
	return f.reading(cmd)
}

func stateFlag(cmd *cobra.Command, kept *[]string, help string) {
	cmd.Flags().StringSliceVar(kept, "state", nil, help+": OPEN, LATER, RESOLVED, DISCARDED")
}

// stateOf reads a state in any case; what is none stays as it is and is refused
// later.
func stateOf(s string) record.State { return record.State(strings.ToUpper(s)) }

func statesOf(names []string) (states []record.State, err error) {
	for _, name := range names {
		switch s := stateOf(name); s {
		case record.Open, record.Later, record.Resolved, record.Discarded:
			states = append(states, s)
		default:
			return nil, fault.Newf(fault.Invalid, "usage", "there is no state %q", name).
				WithHint("OPEN, LATER, RESOLVED or DISCARDED")
		}
	}
	return states, nil
}

// notNil is list, empty where it is nil, so that it is [] in JSON.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
