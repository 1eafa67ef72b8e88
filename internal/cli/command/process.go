package command

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/hook"
	"cairn/internal/settings"
	"cairn/internal/store"
	"cairn/internal/wiring"
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

	Hooks hooks
}

// WithCairn returns a command's function that opens cairn for the working directory,
// calls run and closes it.
func (p *Process) WithCairn(role store.Role, run func(*cobra.Command, *cairn.Cairn, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		config, err := p.Config(cmd)
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

// Config reads the environment.
func (p *Process) Config(cmd *cobra.Command) (cairn.Config, error) {
	db, err := cmd.Flags().GetString("db")
	if err != nil {
		return cairn.Config{}, err
	}
	c, err := workspace.ConfigOf(p.Getenv, db)
	c.Clock = p.Hooks.Clock()
	return c, err
}

// Setting returns the environment's value for a key of the settings, such as
// CAIRN_GUARD_MODE for guard.mode; "" if it is not set.
func (p *Process) Setting(key string) string {
	return p.Getenv(settings.EnvName(key))
}

// Home returns the user's home directory, "" if it is unknown.
func (p *Process) Home() string { return workspace.HomeOf(p.Getenv) }

// AgentPaths returns the directories of the agents and the path of cairn's program.
func (p *Process) AgentPaths(cmd *cobra.Command) (wiring.Paths, error) {
	config, err := p.Config(cmd)
	if err != nil {
		return wiring.Paths{}, err
	}
	executable, err := os.Executable()
	if err != nil {
		return wiring.Paths{}, fault.Wrap(err, fault.Unavailable, "no_program", "the path of cairn's program is unknown")
	}
	if config.Home == "" {
		return wiring.Paths{}, fault.New(fault.Unavailable, "no_home", "the home directory is unknown").WithHint("set HOME")
	}
	windows := os.PathSeparator == '\\'
	program := wiring.Program(p.Program, executable, p.Getenv("PATH"), windows)
	return wiring.Paths{
		Home: config.Home, Getenv: p.Getenv, DataDir: config.Dir, Path: p.Getenv("PATH"), Windows: windows,
		Program: program, Hook: wiring.HookProgram(cmd.Context(), program, hook.VersionLine(p.Version), windows),
	}, nil
}
