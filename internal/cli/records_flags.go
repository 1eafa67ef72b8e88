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

// recordFlags are the common flags of the commands for records.
type recordFlags struct {
	project, session, at string
	resultPrinter
}

// resultPrinter prints the result of a command.
type resultPrinter struct {
	process *Process
	asJSON  bool
	notes   []string // lines for standard error, printed after the result
	no      bool     // the result is a "no": exit code 1
}

// commandFlags are the flags of a group of commands.
type commandFlags interface {
	printer() *resultPrinter

	// cliHint replaces an error's hint about MCP tools by one about commands.
	cliHint(cmd *cobra.Command, err error) error
}

func (f *resultPrinter) printer() *resultPrinter { return f }

// resultCommand completes a command. ask returns the result, which is printed with text,
// or as JSON with --json.
func resultCommand[T any](flags commandFlags, cmd cobra.Command, ask func(cmd *cobra.Command, c *cairn.Cairn, args []string) (T, error), text func(io.Writer, T) error) *cobra.Command {
	f := flags.printer()
	p := f.process
	cmd.RunE = p.withCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		v, err := ask(cmd, c, args)
		switch {
		case err != nil:
			return flags.cliHint(cmd, err)
		case f.asJSON:
			err = printJSON(p.Out, v)
		default:
			err = text(p.Out, v)
		}
		for _, line := range f.notes {
			fmt.Fprintln(p.Err, "cairn: "+line)
		}
		if err == nil && f.no {
			err = exitError(1)
		}
		return err
	})
	return &cmd
}

// note adds a line for standard error, printed after the result.
func (f *resultPrinter) note(format string, args ...any) {
	f.notes = append(f.notes, printable(fmt.Sprintf(format, args...)))
}

// listOf returns a list for resultCommand; nil becomes [] in JSON.
func listOf[T any](list []T, err error) ([]T, error) { return notNil(list), err }

// writeFlags adds the flags of a command that writes. readFlags adds those of a command
// that reads, also the past.
func (f *recordFlags) writeFlags(cmd *cobra.Command) *cobra.Command {
	f.common(cmd)
	cmd.Flags().StringVar(&f.session, "session", "", "the session instead of the current one")
	return cmd
}

func (f *recordFlags) readFlags(cmd *cobra.Command) *cobra.Command {
	f.common(cmd)
	cmd.Flags().StringVar(&f.at, "at", "", atUsage+", or tick:N of the project")
	return cmd
}

func (f *recordFlags) common(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.project, "project", "", "the project (id or alias; default: CAIRN_PROJECT, else the current one)")
	f.json(cmd)
}

func (f *resultPrinter) json(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

// caller returns the caller of a read.
func (f *recordFlags) caller() record.Caller {
	name := f.project
	if name == "" {
		name = f.process.Getenv("CAIRN_PROJECT")
	}
	return record.Caller{Project: name, SessionID: f.session}
}

// named returns the caller for the project that an argument names, which must exist, or
// else for the current project.
func (f *recordFlags) named(args []string) record.Caller {
	c := f.caller()
	if len(args) > 0 {
		c.ProjectID = args[0]
	}
	return c
}

// writer returns the caller of a write. If no session is known, it starts a new one and
// notes its name.
func (f *recordFlags) writer(ctx context.Context, c *cairn.Cairn) (record.Caller, error) {
	caller := f.caller()
	if f.session != "" {
		return caller, nil
	}
	current, err := c.CurrentSession(ctx)
	if err == nil && current == "" {
		caller.Transport = cairn.NewSessionID()
		f.note("in the new session %s; --session %s continues it", caller.Transport, caller.Transport)
	}
	return caller, err
}

// cliHint replaces hints about MCP tools by hints about commands.
func (f *recordFlags) cliHint(cmd *cobra.Command, err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	switch e.Code {
	case record.CodeInvalid:
		return e.WithHint(seeHelp(cmd))
	case record.CodeNotActivated:
		return e.WithHint(f.activateFirst(e.Details["id"]))
	case record.CodeParentNotActivated:
		return e.WithHint(f.activateFirst(e.Details["parent_id"]))
	case record.CodeConflict:
		return e.WithHint("activate it again to see the current version, then decide again")
	case record.CodeNotFound:
		return e.WithHint("`cairn records tree` shows the records")
	case record.CodeExists:
		return e.WithHint("choose another --id; `cairn project list` shows those in use")
	case record.CodeProjectNotFound:
		return e.WithHint("`cairn project list` shows the projects, `cairn project create` creates one")
	case record.CodeSessionNotFound:
		return e.WithHint("--session names one, `cairn session list` shows the open ones, `cairn records activate` opens one")
	}
	return err
}

// activateFirst returns the hint for a record that the session has not loaded.
func (f *recordFlags) activateFirst(id any) string {
	if f.session != "" {
		return fmt.Sprintf("`cairn records activate %v --session %s` loads it", id, f.session)
	}
	return fmt.Sprintf("`cairn records activate %v` loads it and prints a session; then run this again with --session", id)
}

func stateFlag(cmd *cobra.Command, kept *[]string, help string) {
	cmd.Flags().StringSliceVar(kept, "state", nil, help+": OPEN, LATER, RESOLVED, DISCARDED")
}

// stateOf parses a state in upper or lower case. It does not check it; an invalid state
// is rejected later.
func stateOf(s string) record.State { return record.State(strings.ToUpper(s)) }

func statesOf(names []string) (states []record.State, err error) {
	for _, name := range names {
		switch s := stateOf(name); s {
		case record.Open, record.Later, record.Resolved, record.Discarded:
			states = append(states, s)
		default:
			return nil, fault.Newf(fault.Invalid, "usage", "invalid state %q", name).
				WithHint("the states are OPEN, LATER, RESOLVED and DISCARDED")
		}
	}
	return states, nil
}

// notNil returns list, or an empty list instead of nil, so that JSON has [].
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
