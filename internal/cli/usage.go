package cli

import (
	"io"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"cairn/internal/fault"
)

// nameOf is what a command is called in messages: its words behind cairn.
func nameOf(cmd *cobra.Command) string {
	if _, name, ok := strings.Cut(cmd.CommandPath(), " "); ok {
		return name
	}
	return "command line"
}

func seeHelp(cmd *cobra.Command) string { return "see `" + cmd.CommandPath() + " --help`" }

// exactArgs wants n arguments and says what they are.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fault.New(fault.Invalid, "usage", "takes "+what).WithHint(seeHelp(cmd))
		}
		return nil
	}
}

// atLeastOne wants one argument or more, and says what they are.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fault.New(fault.Invalid, "usage", "takes "+what).WithHint(seeHelp(cmd))
		}
		return nil
	}
}

// atMostOne wants no argument or one, and says what it is.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fault.New(fault.Invalid, "usage", "takes one "+what+" or none").WithHint(seeHelp(cmd))
		}
		return nil
	}
}

// noArgs wants no argument, of a command that has others below it one of those.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasSubCommands():
		return fault.Newf(fault.Invalid, "usage", "takes no argument, not %.40q", args[0]).WithHint(seeHelp(cmd))
	}
	hint := seeHelp(cmd)
	cmd.SuggestionsMinimumDistance = 2 // letters; 0 would suggest nothing
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		hint = "did you mean " + strings.Join(like, ", ") + "? " + hint
	}
	return fault.Newf(fault.Invalid, "usage", "there is no command %.40q", args[0]).WithHint(hint)
}

// helpCommand prints the help of the command that its arguments name.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, left, err := cmd.Root().Find(args)
			if err != nil || len(left) > 0 {
				return noArgs(cmd.Root(), args)
			}
			return about.Help()
		},
	}
}

// flagError says what is wrong with a flag, without what a parser of numbers adds.
func flagError(cmd *cobra.Command, err error) error {
	why, _, _ := strings.Cut(err.Error(), " flag: strconv.")
	return fault.New(fault.Invalid, "usage", why).WithHint(seeHelp(cmd))
}

// given refuses filters that are named and blank: an empty variable in a script must
// not make a command take more than was meant.
func given(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return fault.Newf(fault.Invalid, "usage", "--%s is blank", name).WithHint("give it a value, or leave it out")
		}
	}
	return nil
}

// wanted refuses a command without flags that it cannot do without.
func wanted(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			return fault.New(fault.Invalid, "usage", "requires --"+strings.Join(names, " and --")).WithHint(seeHelp(cmd))
		}
	}
	return nil
}

// output remembers the first error of writing, so that no command has to: what
// could not be printed is not done. A server that ends may still be writing.
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

// failed is the first error of writing, nil if there was none.
func (o *output) failed() error {
	if err := o.first.Load(); err != nil {
		return *err
	}
	return nil
}
