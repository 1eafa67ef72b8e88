// Package cli is the command line of cairn. It reads arguments and the environment,
// calls the façade and turns results and faults into text and exit codes.
//
// Exit code 0 means success. 1 means that the answer is no, or that only a part was
// done. 2 means wrong usage or a failure. The command record has its own exit codes
// (contract observations §1 and §4.1).
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/settings"
	"cairn/internal/store"
	"cairn/internal/workspace"
)

// Process is the part of the operating system's process that commands use: arguments,
// streams and environment.
type Process struct {
	Args    []string
	Program string // the path of the called program
	Version string
	In      io.ReadCloser
	Out     io.WriteCloser
	Err     io.Writer
	Getenv  func(string) string

	hooks hooks
}

// exitError carries an exit code through cobra. Its message is already printed.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// Run runs one command and returns its exit code.
func Run(p Process) (code int) {
	ctx := context.Background()
	defer func() {
		if defect := recover(); defect != nil {
			report(p.Err, "defect", fault.Panic(defect))
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
	out := &output{WriteCloser: p.Out}
	p.Out = out
	root := Root(&p)
	root.SetArgs(p.Args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if name := cmd.Name(); name != "serve" && name != "record" {
		if failed := out.failed(); failed != nil {
			err = fmt.Errorf("the output cannot be written: %w", failed)
		}
	}
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	if cmd.Annotations[enveloped] == "" || !slices.Contains(p.Args, "--json") || printEnvelope(p.Err, err) != nil {
		report(p.Err, nameOf(cmd), err)
	}
	return exitCode(err)
}

// enveloped is the annotation of commands that print errors as an envelope with --json.
const enveloped = "enveloped"

func printEnvelope(w io.Writer, err error) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(fault.EnvelopeOf(err))
}

// isHook reports whether an agent's hook started the program.
func isHook(args []string) bool { return len(args) > 0 && args[0] == "record" }

// exitCode maps a fault to an exit code: 1 if the answer is no, else 2.
func exitCode(err error) int {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return 2
	}
	switch {
	case f.Code == store.CodeMissing:
		return 2
	case f.Code == memory.CodeAwaitTimeout:
		return 1
	case f.Code == codeStopped:
		return 1 // only a part was done
	case f.Kind == fault.NotFound, f.Kind == fault.Conflict, f.Kind == fault.Denied:
		return 1
	}
	return 2
}

// report prints one line: what failed, why, and what to do about it.
func report(w io.Writer, what string, err error) { fmt.Fprintln(w, "cairn: "+fault.Line(what, err)) }

// Root returns the command cairn with all its subcommands, for Run and for the generator of
// the man pages. For a hook it contains only record, because building the others takes time.
func Root(p *Process) *cobra.Command {
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
		Args:          noArgs,
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
	root.AddCommand(hookCommands(p)...)
	return root
}

// group is a list of commands under one heading of the help.
type group struct {
	title    string
	commands []*cobra.Command
}

// groups returns all commands for people, in the order of the help.
func groups(p *Process) []group {
	return []group{
		{"Set up", setupCommands(p)},
		{"Find and look", findCommands(p)},
		{"Decisions", recordCommands(p)},
		{"Several agents", mailCommands(p)},
		{"Memories and devices", memoryCommands(p)},
		{"Servers", serveCommands(p)},
		{"Sessions and projects", projectCommands(p)},
		{"Forget, back up, repair", careCommands(p)},
	}
}

// withCairn returns a command's function that opens cairn for the working directory,
// calls run and closes it.
func (p *Process) withCairn(role store.Role, run func(*cobra.Command, *cairn.Cairn, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		config, err := p.config(cmd)
		if err != nil {
			return err
		}
		config.Role = role
		if config.Cwd, err = os.Getwd(); err != nil {
			return fault.Wrap(err, fault.Unavailable, "no_cwd", "the working directory no longer exists")
		}
		c, err := cairn.Open(config)
		if err != nil {
			return err
		}
		return errors.Join(run(cmd, c, args), c.Close())
	}
}

// config reads the environment.
func (p *Process) config(cmd *cobra.Command) (cairn.Config, error) {
	db, err := cmd.Flags().GetString("db")
	if err != nil {
		return cairn.Config{}, err
	}
	c, err := workspace.ConfigOf(p.Getenv, db)
	c.Clock = p.hooks.clock()
	return c, err
}

// setting returns the environment's value for a key of the settings, such as
// CAIRN_GUARD_MODE for guard.mode; "" if it is not set.
func (p *Process) setting(key string) string {
	return p.Getenv(settings.EnvName(key))
}

func (p *Process) home() string { return workspace.HomeOf(p.Getenv) }

// printJSON writes a result as indented JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
