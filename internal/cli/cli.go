// Package cli is the command line: it reads arguments and the environment, calls
// the façade and turns results and faults into text and exit codes.
//
// Exit codes are 0 for done, 1 when the answer is no or only a part was done, 2
// for wrong usage and failures; those of record are its own (contract
// observations §1 and §4.1).
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
	"cairn/internal/store"
)

// Process is what the command line gets from its process.
type Process struct {
	Args    []string
	Program string // by which it was called
	Version string
	In      io.ReadCloser
	Out     io.WriteCloser
	Err     io.Writer
	Getenv  func(string) string

	hooks hooks
}

// exitError carries an exit code past cobra; the message was printed already.
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
	if !isHook(p.Args) { // which needs no end, and not the thread either
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	out := &output{WriteCloser: p.Out}
	p.Out = out
	root := newRoot(&p)
	root.SetArgs(p.Args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if name := cmd.Name(); name != "serve" && name != "record" {
		if failed := out.failed(); failed != nil {
			err = fmt.Errorf("the answer cannot be printed: %w", failed)
		}
	}
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	if cmd.Annotations[enveloped] == "" || !slices.Contains(p.Args, "--json") || tellEnvelope(p.Err, err) != nil {
		report(p.Err, nameOf(cmd), err)
	}
	return exitCode(err)
}

// enveloped is the annotation of commands that tell errors with --json as the envelope.
const enveloped = "enveloped"

func tellEnvelope(w io.Writer, err error) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(fault.EnvelopeOf(err))
}

// isHook reports whether an agent's hook calls.
func isHook(args []string) bool { return len(args) > 0 && args[0] == "record" }

// exitCode maps a fault to an exit code: 1 where the answer is no, else 2.
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

func newRoot(p *Process) *cobra.Command {
	root := &cobra.Command{
		Use:   "cairn",
		Short: "A memory for coding agents that outlives their sessions",
		Long: `cairn remembers what coding agents do: hooks record it, an MCP server answers
questions about it, and the next session starts with what matters.

It keeps everything in one file, ~/.cairn/cairn.db, needs no service and talks to
nobody. Connect your agents and see what your own history holds:

    cairn init                     hooks and MCP server; reads the old sessions
    cairn recall "why did it fail" ask in plain words
    cairn search "failing test"    find rows by exact words
    cairn context                  see what the next session would be told`,
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

// group is some commands under one heading of the help.
type group struct {
	title    string
	commands []*cobra.Command
}

// groups are all commands that people call, in the order of the help.
func groups(p *Process) []group {
	return []group{
		{"Set up", []*cobra.Command{initCommand(p), uninstallCommand(p), doctorCommand(p), statusCommand(p)}},
		{"Find and look", []*cobra.Command{recallCommand(p), searchCommand(p), showCommand(p), whyCommand(p), contextCommand(p), watchCommand(p)}},
		{"Decisions", []*cobra.Command{recordsCommand(p), sessionCommand(p)}},
		{"Several agents", []*cobra.Command{
			agentsCommand(p), mailCommand(p), contactsCommand(p), reserveCommand(p), releaseCommand(p), renewCommand(p),
			reservationsCommand(p), guardCommand(p),
		}},
		{"Memories and devices", []*cobra.Command{
			memoryCommand(p), hubCommand(p), replicationCommand(p), whoamiCommand(p), healthCommand(p),
		}},
		{"Servers", []*cobra.Command{openCommand(p), serveCommand(p), toolsCommand(p), httpTokenCommand(p), tokenCommand(p)}},
		{"Sessions and projects", []*cobra.Command{
			importCommand(p), exportCommand(p), markCommand(p), pinCommand(p, false), pinCommand(p, true), projectCommand(p),
		}},
		{"Forget, back up, repair", []*cobra.Command{
			purgeCommand(p), sweepCommand(p), backupCommand(p), restoreCommand(p), encryptCommand(p), archiveCommand(p),
			reconcileCommand(p), retryCommand(p),
		}},
	}
}

// using makes a command's function of one that needs an open cairn in the current
// working directory.
func (p *Process) using(role store.Role, run func(*cobra.Command, *cairn.Cairn, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		config, err := p.config(cmd)
		if err != nil {
			return err
		}
		config.Role = role
		if config.Cwd, err = os.Getwd(); err != nil {
			return fault.Wrap(err, fault.Unavailable, "no_cwd", "the working directory is gone")
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
	c, err := cairn.ConfigOf(p.Getenv, db)
	c.Clock = p.hooks.clock()
	return c, err
}

// setting is what the environment gives a key of the settings, "" for none: of
// guard.mode it is CAIRN_GUARD_MODE.
func (p *Process) setting(key string) string {
	return p.Getenv(cairn.EnvName(key))
}

func (p *Process) home() string { return cairn.HomeOf(p.Getenv) }

// printJSON writes a result as indented JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
