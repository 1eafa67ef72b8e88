package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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

func recordsActivateCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var override bool
	cmd := &cobra.Command{
		Use:   "activate ID",
		Short: "Load a record into the session, with its parent and children",
		Args:  exactArgs(1, "one record's id"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			caller, err := f.writer(cmd.Context(), c)
			if err != nil {
				return err
			}
			a, err := c.Records().Activate(cmd.Context(), record.ActivateArgs{Caller: caller, ID: args[0], Override: override})
			if err != nil {
				return err
			}
			for _, w := range a.Context.Warnings {
				fmt.Fprintf(p.Err, "cairn: %s: %s\n", w.Type, printable(w.Message))
			}
			if err := show(&f, a, printBundle); err != nil {
				return err
			}
			return f.done()
		}),
	}
	cmd.Flags().BoolVar(&override, "override", false, "though another session has it active")
	return f.recording(cmd)
}

// texts are the flags with a record's content.
type texts struct {
	title, summary, body, bodyFile, metadata string
	related                                  []string
}

func (t *texts) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.title, "title", "", "one line of 1 to 200 characters")
	cmd.Flags().StringVar(&t.summary, "summary", "", "1-2 sentences, at most 1,000 characters")
	cmd.Flags().StringVar(&t.body, "body", "", "the text, at most 1 MiB")
	cmd.Flags().StringVar(&t.bodyFile, "body-file", "", "the file with the text, - for standard input")
	cmd.Flags().StringSliceVar(&t.related, "related", nil, "ids of related records")
	cmd.Flags().StringVar(&t.metadata, "metadata", "", "a JSON object of at most 64 KiB")
	cmd.MarkFlagsMutuallyExclusive("body", "body-file")
}

// maxBodyRead is more than a body may have, so that too much is noticed.
const maxBodyRead = 2 << 20

// readBody is the body that the flags give, nil if they give none.
func (t *texts) readBody(cmd *cobra.Command, p *Process) (*string, error) {
	switch {
	case cmd.Flags().Changed("body"):
		return &t.body, nil
	case !cmd.Flags().Changed("body-file"):
		return nil, nil
	}
	in := p.In
	if t.bodyFile != "-" {
		file, err := os.Open(t.bodyFile)
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "usage", "the body cannot be read: "+err.Error())
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxBodyRead))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "usage", "the body cannot be read: "+err.Error())
	}
	return new(string(data)), nil
}

// object is the metadata that the flags give, nil if they give none.
func (t *texts) object(cmd *cobra.Command) json.RawMessage {
	if !cmd.Flags().Changed("metadata") {
		return nil
	}
	return json.RawMessage(t.metadata)
}

func recordsCreateCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var t texts
	var parent, state string
	var a record.CreateArgs
	cmd := &cobra.Command{
		Use:   "create --type TYPE --title TITLE",
		Short: "Store a new record and print its id",
		Long: `create stores a record and activates it. Below --parent only if that record is
active in the session. The type is any word: question, conclusion, note…`,
		Example: `  cairn records create --type question --title "Where do refunds expire?" --body-file notes.md
  git log -3 | cairn records create --type note --title "What moved" --body-file - --parent R001 --session S-…`,
		Args: cobra.NoArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (err error) {
			body, err := t.readBody(cmd, p)
			if err != nil {
				return err
			}
			if body != nil {
				a.Body = *body
			}
			if cmd.Flags().Changed("parent") {
				a.ParentID = &parent
			}
			a.Title, a.Summary, a.Related, a.Metadata, a.State = t.title, t.summary, t.related, t.object(cmd), stateOf(state)
			if a.Caller, err = f.writer(cmd.Context(), c); err != nil {
				return err
			}
			created, err := c.Records().Create(cmd.Context(), a)
			if err != nil {
				return err
			}
			err = show(&f, created, func(w io.Writer, v record.Created) error {
				_, err := fmt.Fprintln(w, v.Record.ID)
				return err
			})
			if err != nil {
				return err
			}
			return f.done()
		}),
	}
	t.flags(cmd)
	cmd.Flags().StringVar(&a.Type, "type", "", "what it is, 1 to 64 characters")
	cmd.Flags().StringVar(&parent, "parent", "", "the record it stands below")
	cmd.Flags().StringVar(&state, "state", "", "OPEN (default), LATER, RESOLVED or DISCARDED")
	return f.recording(cmd)
}

func recordsUpdateCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var t texts
	var a record.UpdateArgs
	cmd := &cobra.Command{
		Use:   "update ID",
		Short: "Change a record's content",
		Long: `update changes what its flags give and leaves the rest. If another session stored a
version that this one has not loaded, nothing is stored, both versions are shown
and the exit code is 1; --force then stores this one, and the other stays in the
history.`,
		Args: exactArgs(1, "one record's id"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (err error) {
			if a.Body, err = t.readBody(cmd, p); err != nil {
				return err
			}
			if cmd.Flags().Changed("title") {
				a.Title = &t.title
			}
			if cmd.Flags().Changed("summary") {
				a.Summary = &t.summary
			}
			if cmd.Flags().Changed("related") {
				a.Related = notNil(t.related)
			}
			a.ID, a.Metadata, a.Caller = args[0], t.object(cmd), f.caller()
			updated, err := c.Records().Update(cmd.Context(), a)
			if err != nil {
				return err
			}
			if err := show(&f, updated, printUpdated); err != nil {
				return err
			}
			if updated.Conflict != nil {
				fmt.Fprintf(p.Err, "cairn: update: %s\n", printable(updated.Conflict.Message))
				return exitError(1)
			}
			return nil
		}),
	}
	t.flags(cmd)
	cmd.Flags().BoolVar(&a.Force, "force", false, "store it over another session's version")
	return f.recording(cmd)
}

func recordsTransitionCommand(p *Process) *cobra.Command {
	f := recordFlags{process: p}
	var a record.TransitionArgs
	cmd := &cobra.Command{
		Use:   "transition ID STATE",
		Short: "Change a record's state",
		Long: `transition moves a record to OPEN, LATER, RESOLVED or DISCARDED. LATER and DISCARDED
want a --reason, RESOLVED wants --resolved-by with the record that answers this one.
From LATER it goes to OPEN or DISCARDED, from RESOLVED and DISCARDED to OPEN.`,
		Example: "  cairn records transition R001 RESOLVED --resolved-by R007 --session S-…",
		Args:    exactArgs(2, "a record's id and a state"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			a.Caller, a.ID, a.ToState = f.caller(), args[0], stateOf(args[1])
			moved, err := c.Records().Transition(cmd.Context(), a)
			if err != nil {
				return err
			}
			if w := moved.CascadeWarning; w != nil {
				fmt.Fprintf(p.Err, "cairn: %s\n", printable(w.Message))
			}
			return show(&f, moved, func(w io.Writer, v record.Transitioned) error {
				_, err := fmt.Fprintf(w, "%s %s\n", v.Record.ID, v.Record.State)
				return err
			})
		}),
	}
	cmd.Flags().StringVar(&a.Reason, "reason", "", "why, 1 to 1,000 characters")
	cmd.Flags().StringVar(&a.ResolvedBy, "resolved-by", "", "the record with the answer")
	return f.recording(cmd)
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
