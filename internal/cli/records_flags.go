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

// recordFlags are the flags that commands of records share.
type recordFlags struct {
	project, session, at string
	answers
}

// answers is how commands answer.
type answers struct {
	process *Process
	asJSON  bool
	said    []string // said on standard error once the answer is printed
	no      bool     // the answer is no: exit code 1
}

// asking are the flags of a group of commands.
type asking interface {
	answer() *answers

	// inTerminal says in the words of commands what hints say in those of tools.
	inTerminal(cmd *cobra.Command, err error) error
}

func (f *answers) answer() *answers { return f }

// answering completes a command: ask finds its answer, which is printed as text, or
// as JSON with --json.
func answering[T any](flags asking, cmd cobra.Command, ask func(cmd *cobra.Command, c *cairn.Cairn, args []string) (T, error), text func(io.Writer, T) error) *cobra.Command {
	f := flags.answer()
	p := f.process
	cmd.RunE = p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		v, err := ask(cmd, c, args)
		switch {
		case err != nil:
			return flags.inTerminal(cmd, err)
		case f.asJSON:
			err = printJSON(p.Out, v)
		default:
			err = text(p.Out, v)
		}
		for _, line := range f.said {
			fmt.Fprintln(p.Err, "cairn: "+line)
		}
		if err == nil && f.no {
			err = exitError(1)
		}
		return err
	})
	return &cmd
}

// say adds a line to be said on standard error after the answer.
func (f *answers) say(format string, args ...any) {
	f.said = append(f.said, printable(fmt.Sprintf(format, args...)))
}

// listed is a list for answering, which is [] in JSON where it is nil.
func listed[T any](list []T, err error) ([]T, error) { return notNil(list), err }

// recording are the flags of a command that changes something, reading those of
// one that looks, also at the past.
func (f *recordFlags) recording(cmd *cobra.Command) *cobra.Command {
	f.common(cmd)
	cmd.Flags().StringVar(&f.session, "session", "", "the session instead of the current one")
	return cmd
}

func (f *recordFlags) reading(cmd *cobra.Command) *cobra.Command {
	f.common(cmd)
	cmd.Flags().StringVar(&f.at, "at", "", atUsage+", or tick:N of the project's own clock")
	return cmd
}

func (f *recordFlags) common(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.project, "project", "", "the project (id or alias) instead of the one here (CAIRN_PROJECT)")
	f.json(cmd)
}

func (f *answers) json(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

// caller says who reads.
func (f *recordFlags) caller() record.Caller {
	name := f.project
	if name == "" {
		name = f.process.Getenv("CAIRN_PROJECT")
	}
	return record.Caller{Project: name, SessionID: f.session}
}

// named is f's caller for the project that an argument names, which must exist;
// without one for the current project.
func (f *recordFlags) named(args []string) record.Caller {
	c := f.caller()
	if len(args) > 0 {
		c.ProjectID = args[0]
	}
	return c
}

// writer says who writes: without a session that is known, in one of its own, which
// is named once something was done.
func (f *recordFlags) writer(ctx context.Context, c *cairn.Cairn) (record.Caller, error) {
	caller := f.caller()
	if f.session != "" {
		return caller, nil
	}
	current, err := c.CurrentSession(ctx)
	if err == nil && current == "" {
		caller.Transport = cairn.NewSessionID()
		f.say("in the new session %s; --session %s goes on in it", caller.Transport, caller.Transport)
	}
	return caller, err
}

// inTerminal says in the words of commands what the hints of records say in those
// of tools.
func (f *recordFlags) inTerminal(cmd *cobra.Command, err error) error {
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
		return e.WithHint("`cairn records tree` shows what there is")
	case record.CodeExists:
		return e.WithHint("choose another --id; `cairn project list` shows those in use")
	case record.CodeProjectNotFound:
		return e.WithHint("`cairn project list` shows them, `cairn project create` makes one")
	case record.CodeSessionNotFound:
		return e.WithHint("--session names one, `cairn session list` shows the open ones, `cairn records activate` opens one")
	}
	return err
}

// activateFirst is the way to a record that the session has not loaded.
func (f *recordFlags) activateFirst(id any) string {
	if f.session != "" {
		return fmt.Sprintf("`cairn records activate %v --session %s` loads it", id, f.session)
	}
	return fmt.Sprintf("`cairn records activate %v` loads it and prints a session; repeat this with --session and that name", id)
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
			return nil, fault.Newf(fault.Invalid, "usage", "the state %q does not exist", name).
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
