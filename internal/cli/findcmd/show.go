package findcmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/store"
)

func showCommand(p *command.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID...",
		Short: "Print whole rows or sessions",
		Long: `show prints the rows and sessions that recall and search quote. A number, with or without
#, is a row: show prints its whole text, and the output of the command or tool if it is
kept. Any other ID is a session or the beginning of its id: show prints its prompts, its
answers and a line for each action.

Unknown IDs are listed at the end, and the exit code is then 1. --json prints a list, with
rows in the form of get_observations and sessions in the form of session_trace.`,
		Example: `  cairn show 8448
  cairn show '#8448' '#8451'
  cairn show 63784323-7042-4ab8-82b1-3c0b79467bf9`,
		Args: command.AtLeastOne("the numbers of rows, or ids of sessions"),
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			j, err := c.Observations(cmd.Context())
			if err != nil {
				return err
			}
			s := showRun{service: j, out: p.Out, all: []any{}}
			if err := s.read(cmd, args); err != nil {
				return err
			}
			if asJSON {
				err = command.PrintJSON(p.Out, s.all)
			} else {
				err = s.print()
			}
			if err == nil && len(s.missing) > 0 {
				err = fault.Newf(fault.NotFound, "not_found", "no row or session found for %s", strings.Join(s.missing, ", ")).
					WithHint("it may have been purged; `cairn search` finds rows, `cairn recall` finds sessions")
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// showRun is one run of cairn show.
type showRun struct {
	service *observation.Service
	out     io.Writer
	all     []any // each an observation.Observation or an browse.Trace
	missing []string
}

func (s *showRun) read(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		if id, err := strconv.ParseInt(strings.TrimPrefix(arg, "#"), 10, 64); err == nil {
			rows, err := browse.Get(cmd.Context(), s.service, []int64{id})
			if err != nil {
				return err
			}
			for _, row := range rows {
				s.all = append(s.all, row)
			}
			if len(rows) > 0 {
				continue
			}
		}
		session, err := browse.SessionBeginning(cmd.Context(), s.service, arg)
		if fault.KindOf(err) == fault.NotFound {
			s.missing = append(s.missing, arg)
			continue
		}
		if err != nil {
			return err
		}
		trace, err := browse.TraceSession(cmd.Context(), s.service, session, nil, nil)
		if err != nil {
			return err
		}
		s.all = append(s.all, trace)
	}
	return nil
}

func (s *showRun) print() error {
	var b strings.Builder
	for i, one := range s.all {
		if i > 0 {
			b.WriteByte('\n')
		}
		switch one := one.(type) {
		case observation.Observation:
			describeRow(&b, one)
		case browse.Trace:
			describeSession(&b, one)
		}
	}
	_, err := io.WriteString(s.out, b.String())
	return err
}

// describeRow writes a row with its whole text.
func describeRow(b *strings.Builder, o observation.Observation) {
	fmt.Fprintf(b, "#%d  %s  %s  %s  session %s", o.ID, command.FormatSecond(o.Timestamp), o.ObsType, command.OneLine(o.Project), command.OneLine(o.SessionID))
	if o.IsPinned {
		b.WriteString("  pinned")
	}
	b.WriteByte('\n')
	if o.FilePath != nil {
		fmt.Fprintf(b, "file: %s\n", command.OneLine(*o.FilePath))
	}
	b.WriteString(command.Indented(&o.Content))
	var meta struct{ Error string }
	if json.Unmarshal(o.Metadata, &meta) == nil && meta.Error != "" && o.Output == "" {
		b.WriteString("failed with:\n")
		b.WriteString(command.Indented(&meta.Error))
	}
	if o.Output != "" {
		b.WriteString("printed:\n")
		b.WriteString(command.Indented(&o.Output))
	}
}

// describeSession writes the prompts of a session with the actions for each.
func describeSession(b *strings.Builder, t browse.Trace) {
	fmt.Fprintf(b, "session %s  %s  %s", command.OneLine(t.SessionID), command.OneLine(t.Project), command.FormatSecond(t.StartedAt))
	if t.EndedAt != nil {
		b.WriteString(" to " + command.FormatSecond(*t.EndedAt))
	}
	b.WriteByte('\n')
	for _, p := range t.Prompts {
		if p.Content != nil {
			fmt.Fprintf(b, "\n%s  %s\n", command.FormatSecond(p.Timestamp), p.Source)
			b.WriteString(command.Indented(p.Content))
		}
		for _, row := range p.Observations {
			describeAction(b, row)
		}
	}
}

// describeAction writes a row of a session as one line, and a failure as a second line.
func describeAction(b *strings.Builder, row browse.TraceRow) {
	text := command.OneLine(row.ContentPreview)
	if row.FilePath != nil {
		text = command.OneLine(*row.FilePath)
	}
	fmt.Fprintf(b, "  #%d  %s  %s", row.ID, row.ObsType, text)
	if row.Interrupted {
		b.WriteString("  (interrupted)")
	}
	b.WriteByte('\n')
	if row.Failed {
		b.WriteString("      failed: " + cmp.Or(command.OneLine(row.Error), "the reason is not stored") + "\n")
	}
}
