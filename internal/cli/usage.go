package cli

import (
	"io"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"cairn/internal/fault"
)

// nameOf returns a command's name for messages: the words after cairn.
func nameOf(cmd *cobra.Command) string {
	if _, name, ok := strings.Cut(cmd.CommandPath(), " "); ok {
		return name
	}
	return "command line"
}

func seeHelp(cmd *cobra.Command) string { return "see `" + cmd.CommandPath() + " --help`" }

// exactArgs requires n arguments; what describes them in the error.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fault.New(fault.Invalid, "usage", "requires "+what).WithHint(seeHelp(cmd))
		}
		return nil
	}
}

// atLeastOne requires one argument or more; what describes them in the error.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fault.New(fault.Invalid, "usage", "requires "+what).WithHint(seeHelp(cmd))
		}
		return nil
	}
}

// atMostOne accepts no argument or one; what describes it in the error.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fault.New(fault.Invalid, "usage", "accepts at most one "+what).WithHint(seeHelp(cmd))
		}
		return nil
	}
}

// noArgs accepts no argument. For a command with subcommands, the error suggests one.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasSubCommands():
		return fault.Newf(fault.Invalid, "usage", "accepts no argument, but got %.40q", args[0]).WithHint(seeHelp(cmd))
	}
	hint := seeHelp(cmd)
	cmd.SuggestionsMinimumDistance = 2 // in letters; with 0 cobra suggests nothing
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		hint = "did you mean " + strings.Join(like, ", ") + "? " + hint
	}
	return fault.Newf(fault.Invalid, "usage", "unknown command %.40q", args[0]).WithHint(hint)
}

// helpCommand prints the help of the command that its arguments name.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, left, err := cmd.Root().Find(args)
			if err != nil || len(left) > 0 {
				return noArgs(cmd.Root(), args)
			}
			return about.Help()
		},
	}
}

// flagError returns the error of an invalid flag, without the details of strconv.
func flagError(cmd *cobra.Command, err error) error {
	why, _, _ := strings.Cut(err.Error(), " flag: strconv.")
	return fault.New(fault.Invalid, "usage", why).WithHint(seeHelp(cmd))
}

// refuseBlank rejects filters that are set but blank. An empty variable in a script must
// not widen what a command changes.
func refuseBlank(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return fault.Newf(fault.Invalid, "usage", "--%s is blank", name).WithHint("give it a value, or leave it out")
		}
	}
	return nil
}

// requireFlags returns an error if one of the required flags is not set.
func requireFlags(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			return fault.New(fault.Invalid, "usage", "requires --"+strings.Join(names, " and --")).WithHint(seeHelp(cmd))
		}
	}
	return nil
}

// output remembers the first write error, so that commands need not check each one. A
// command whose output cannot be written fails. Safe for concurrent use, because a
// server may still write while it ends.
type output struct {
	io.WriteCloser
	first atomic.Pointer[error]
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.WriteCloser.Write(p)
	if err != nil {
		o.first.CompareAndSwap(nil, &err)
	}
	return n, err
}

// failed returns the first write error, nil if there is none.
func (o *output) failed() error {
	if err := o.first.Load(); err != nil {
		return *err
	}
	return nil
}
