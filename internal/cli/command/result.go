package command

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/store"
)

// PrintJSON writes a result as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// NoteCorrected adds notes about replaced words of a query, and the hint of an empty
// result.
func (f *Printer) NoteCorrected(corrected map[string]string, hint string) {
	for _, word := range slices.Sorted(maps.Keys(corrected)) {
		f.Note("%q was searched for as %q", word, corrected[word])
	}
	if hint != "" {
		f.Note("%s", hint)
	}
}

// Printer prints the result of a command.
type Printer struct {
	Process *Process
	AsJSON  bool
	notes   []string // lines for standard error, printed after the result
	No      bool     // the result is a "no": exit code 1
}

// Flags are the flags of a group of commands.
type Flags interface {
	printer() *Printer

	// Hint replaces an error's hint about MCP tools by one about commands.
	Hint(cmd *cobra.Command, err error) error
}

func (f *Printer) printer() *Printer { return f }

// New completes a command. ask returns the result, which is printed with text,
// or as JSON with --json.
func New[T any](flags Flags, cmd cobra.Command, ask func(cmd *cobra.Command, c *cairn.Cairn, args []string) (T, error), text func(io.Writer, T) error) *cobra.Command {
	f := flags.printer()
	p := f.Process
	cmd.RunE = p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		v, err := ask(cmd, c, args)
		switch {
		case err != nil:
			return flags.Hint(cmd, err)
		case f.AsJSON:
			err = PrintJSON(p.Out, v)
		default:
			err = text(p.Out, v)
		}
		for _, line := range f.notes {
			fmt.Fprintln(p.Err, "cairn: "+line)
		}
		if err == nil && f.No {
			err = ExitError(1)
		}
		return err
	})
	return &cmd
}

// Note adds a line for standard error, printed after the result.
func (f *Printer) Note(format string, args ...any) {
	f.notes = append(f.notes, Printable(fmt.Sprintf(format, args...)))
}

// ListOf returns a list for New; nil becomes [] in JSON.
func ListOf[T any](list []T, err error) ([]T, error) { return NotNil(list), err }

// JSONFlag adds the flag --json.
func (f *Printer) JSONFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&f.AsJSON, "json", false, "print JSON")
	return cmd
}

// NotNil returns list, or an empty list instead of nil, so that JSON has [].
func NotNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
