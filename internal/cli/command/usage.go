package command

import (
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/fault"
)

// NameOf returns a command's name for messages: the words after cairn.
func NameOf(cmd *cobra.Command) string {
	if _, name, ok := strings.Cut(cmd.CommandPath(), " "); ok {
		return name
	}
	return "command line"
}

// SeeHelp returns the hint that names a command's help.
func SeeHelp(cmd *cobra.Command) string { return "see `" + cmd.CommandPath() + " --help`" }

// ExactArgs requires n arguments; what describes them in the error.
func ExactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fault.New(fault.Invalid, "usage", "requires "+what).WithHint(SeeHelp(cmd))
		}
		return nil
	}
}

// AtLeastOne requires one argument or more; what describes them in the error.
func AtLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fault.New(fault.Invalid, "usage", "requires "+what).WithHint(SeeHelp(cmd))
		}
		return nil
	}
}

// AtMostOne accepts no argument or one; what describes it in the error.
func AtMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fault.New(fault.Invalid, "usage", "accepts at most one "+what).WithHint(SeeHelp(cmd))
		}
		return nil
	}
}

// NoArgs accepts no argument. For a command with subcommands, the error suggests one.
func NoArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasSubCommands():
		return fault.Newf(fault.Invalid, "usage", "accepts no argument, but got %.40q", args[0]).WithHint(SeeHelp(cmd))
	}
	hint := SeeHelp(cmd)
	cmd.SuggestionsMinimumDistance = 2 // in letters; with 0 cobra suggests nothing
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		hint = "did you mean " + strings.Join(like, ", ") + "? " + hint
	}
	return fault.Newf(fault.Invalid, "usage", "unknown command %.40q", args[0]).WithHint(hint)
}

// RefuseBlank rejects filters that are set but blank. An empty variable in a script must
// not widen what a command changes.
func RefuseBlank(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return fault.Newf(fault.Invalid, "usage", "--%s is blank", name).WithHint("give it a value, or leave it out")
		}
	}
	return nil
}

// RequireFlags returns an error if one of the required flags is not set.
func RequireFlags(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			return fault.New(fault.Invalid, "usage", "requires --"+strings.Join(names, " and --")).WithHint(SeeHelp(cmd))
		}
	}
	return nil
}
