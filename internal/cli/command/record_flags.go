package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/record"
)

// RecordFlags are the common flags of the commands for records.
type RecordFlags struct {
	project, session, At string
	Printer
}

// WriteFlags adds the flags of a command that writes.
func (f *RecordFlags) WriteFlags(cmd *cobra.Command) *cobra.Command {
	f.common(cmd)
	cmd.Flags().StringVar(&f.session, "session", "", "the session instead of the current one")
	return cmd
}

// ReadFlags adds the flags of a command that reads, also the past.
func (f *RecordFlags) ReadFlags(cmd *cobra.Command) *cobra.Command {
	f.common(cmd)
	cmd.Flags().StringVar(&f.At, "at", "", atUsage+", or tick:N of the project")
	return cmd
}

func (f *RecordFlags) common(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.project, "project", "", "the project (id or alias; default: CAIRN_PROJECT, else the current one)")
	f.JSONFlag(cmd)
}

// Caller returns the caller of a read.
func (f *RecordFlags) Caller() record.Caller {
	name := f.project
	if name == "" {
		name = f.Process.Getenv("CAIRN_PROJECT")
	}
	return record.Caller{Project: name, SessionID: f.session}
}

// Named returns the caller for the project that an argument names, which must exist, or
// else for the current project.
func (f *RecordFlags) Named(args []string) record.Caller {
	c := f.Caller()
	if len(args) > 0 {
		c.ProjectID = args[0]
	}
	return c
}

// Writer returns the caller of a write. If no session is known, it starts a new one and
// notes its name.
func (f *RecordFlags) Writer(ctx context.Context, c *cairn.Cairn) (record.Caller, error) {
	caller := f.Caller()
	if f.session != "" {
		return caller, nil
	}
	current, err := c.CurrentSession(ctx)
	if err == nil && current == "" {
		caller.Transport = cairn.NewSessionID()
		f.Note("in the new session %s; --session %s continues it", caller.Transport, caller.Transport)
	}
	return caller, err
}

// Hint replaces hints about MCP tools by hints about commands.
func (f *RecordFlags) Hint(cmd *cobra.Command, err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	switch e.Code {
	case record.CodeInvalid:
		return e.WithHint(SeeHelp(cmd))
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
func (f *RecordFlags) activateFirst(id any) string {
	if f.session != "" {
		return fmt.Sprintf("`cairn records activate %v --session %s` loads it", id, f.session)
	}
	return fmt.Sprintf("`cairn records activate %v` loads it and prints a session; then run this again with --session", id)
}
