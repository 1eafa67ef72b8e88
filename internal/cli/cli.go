// Package cli is the command line of cairn. It reads arguments and the environment,
// calls the façade and turns results and faults into text and exit codes.
//
// Exit code 0 means success. 1 means that the answer is no, or that only a part was
// done. 2 means wrong usage or a failure. The command record has its own exit codes
// (contract observations §1 and §4.1).
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"cairn/internal/cli/carecmd"
	"cairn/internal/cli/command"
	"cairn/internal/cli/findcmd"
	"cairn/internal/cli/mailcmd"
	"cairn/internal/cli/memorycmd"
	"cairn/internal/cli/projectcmd"
	"cairn/internal/cli/recordcmd"
	"cairn/internal/cli/servecmd"
	"cairn/internal/cli/setupcmd"
	"cairn/internal/fault"
	"cairn/internal/store"
)

// Run runs one command and returns its exit code.
func Run(p command.Process) (code int) {
	ctx := context.Background()
	defer func() {
		if defect := recover(); defect != nil {
			command.Report(p.Err, "defect", fault.Panic(defect))
			code = 2
			if isHook(p.Args) {
				code = 1 // 2 would be a veto
			}
		}
	}()
	if !isHook(p.Args) { // a hook ends without cleaning up, and needs no thread for signals
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	out := &command.Output{WriteCloser: p.Out}
	p.Out = out
	root := Root(&p)
	root.SetArgs(p.Args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if name := cmd.Name(); name != "serve" && name != "record" {
		if failed := out.Failed(); failed != nil {
			err = fmt.Errorf("the output cannot be written: %w", failed)
		}
	}
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[command.ExitError](err); ok {
		return int(code)
	}
	if cmd.Annotations[command.Enveloped] == "" || !slices.Contains(p.Args, "--json") || command.PrintEnvelope(p.Err, err) != nil {
		command.Report(p.Err, command.NameOf(cmd), err)
	}
	return command.ExitCode(err)
}

// isHook reports whether an agent's hook started the program.
func isHook(args []string) bool { return len(args) > 0 && args[0] == "record" }

// Root returns the command cairn with all its subcommands, for Run and for the generator of
// the man pages. For a hook it contains only record, because building the others takes time.
func Root(p *command.Process) *cobra.Command {
	root := &cobra.Command{
		Use:   "cairn",
		Short: "A memory for coding agents that outlives their sessions",
		Long: `cairn remembers what coding agents do. Hooks record it, an MCP server answers
questions about it, and each new session starts with what matters.

Everything is in one file, ~/.cairn/cairn.db. cairn needs no service, and nothing
leaves your machine unless you join a hub. Start with these commands:

    cairn init                       connect your agents and import their old sessions
    cairn recall "why did it fail"   ask a question in plain words
    cairn search "failing test"      find rows by their words
    cairn context                    show the context that the next session would get
    cairn open                       show everything in the browser`,
		Version:       p.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          command.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("cairn {{.Version}} (" + store.Driver + ")\n")
	root.PersistentFlags().String("db", "", "the database file (default: CAIRN_DB, else cairn.db in the data directory)")
	root.SetHelpCommand(helpCommand())
	if isHook(p.Args) {
		root.AddCommand(recordCommand(p))
		return root
	}
	for _, g := range groups(p) {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(recordCommand(p), versionCommand(p))
	root.AddCommand(command.HookCommands(p)...)
	return root
}

// group is a list of commands under one heading of the help.
type group struct {
	title    string
	commands []*cobra.Command
}

// groups returns all commands for people, in the order of the help.
func groups(p *command.Process) []group {
	return []group{
		{"Set up", setupcmd.Commands(p)},
		{"Find and look", findcmd.Commands(p)},
		{"Decisions", recordcmd.Commands(p)},
		{"Several agents", mailcmd.Commands(p)},
		{"Memories and devices", memorycmd.Commands(p)},
		{"Servers", servecmd.Commands(p)},
		{"Sessions and projects", projectcmd.Commands(p)},
		{"Forget, back up, repair", carecmd.Commands(p)},
	}
}
