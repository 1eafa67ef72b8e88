package mailcmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/githook"
	"cairn/internal/guard"
	"cairn/internal/store"
)

func guardCommand(p *command.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Block commits and pushes of files that other agents have reserved",
		Long: `guard is for repositories in which several agents work. Before each commit its hook
checks whether another agent has reserved a committed file exclusively. If so, it blocks
the commit and prints the holder and the end of the reservation. People are only warned.

CAIRN_AGENT (or AGENT_NAME) names the agent that commits. Without it, the session that
runs the commit decides. CAIRN_GUARD_MODE=warn only warns agents too, and off checks
nothing; guard.mode in config.toml sets the same permanently. CAIRN_GUARD_BYPASS=1 lets
one command pass unchecked. If cairn cannot check, for instance without a store, it
warns and allows the commit; with CAIRN_GUARD_STRICT=1 (guard.strict) it blocks.`,
		Example: `  cairn guard install --pre-push
  cairn guard status
  CAIRN_AGENT=BlueLake cairn guard check
  cairn guard uninstall`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(guardInstallCommand(p), guardUninstallCommand(p), guardStatusCommand(p), guardCheckCommand(p))
	return cmd
}

// guardFlags are the common flags of the guard commands.
type guardFlags struct {
	process *command.Process
	args    guard.Args
	asJSON  bool
}

func (f *guardFlags) json(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

// repository sets the repository: the argument, else --project if it is a path, else
// the current one.
func (f *guardFlags) repository(c *cairn.Cairn, args []string) (err error) {
	f.args.Repository = c.Cwd()
	switch {
	case len(args) > 0:
		f.args.Repository, err = filepath.Abs(args[0])
	case filepath.IsAbs(f.args.Project):
		f.args.Repository = f.args.Project
	}
	return err
}

func guardInstallCommand(p *command.Process) *cobra.Command {
	f := guardFlags{process: p}
	cmd := &cobra.Command{
		Use:   "install [REPOSITORY]",
		Short: "Install the guard into the hooks of a repository",
		Long: `install adds the guard to the hooks that git runs in a repository: its own, or those of
core.hooksPath. An existing hook is kept as pre-commit.orig and runs after the guard.
Further programs can be added in hooks.d/pre-commit. All worktrees share one set of
hooks, so one installation is enough. install is idempotent.`,
		Example: "  cairn guard install\n  cairn guard install ../shop --pre-push",
		Args:    command.AtMostOne("repository"),
	}
	cmd.RunE = p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		if err := f.repository(c, args); err != nil {
			return err
		}
		place, err := p.AgentPaths(cmd)
		if err != nil {
			return err
		}
		f.args.Program = place.Program
		g, err := c.Guard().Install(cmd.Context(), f.args)
		if err != nil {
			return err
		}
		if g.Shared {
			fmt.Fprintf(p.Err, "cairn: other repositories use %s too (core.hooksPath); those that cairn does not know pass unchecked\n", quoted(filepath.Dir(g.Hook)))
		}
		if f.asJSON {
			return command.PrintJSON(p.Out, g)
		}
		fmt.Fprintf(p.Out, "commits are guarded by %s\n", quoted(g.Hook))
		if f.args.PrePush {
			fmt.Fprintf(p.Out, "pushes are guarded by %s\n", quoted(filepath.Join(filepath.Dir(g.Hook), githook.PrePush)))
		}
		return nil
	})
	cmd.Flags().BoolVar(&f.args.PrePush, "pre-push", false, "also check pushes")
	cmd.Flags().StringVar(&f.args.Project, "project", "", "the project (path, slug or id) whose reservations are checked (default: the repository's own); a path also replaces a missing REPOSITORY")
	return f.json(cmd)
}

func guardUninstallCommand(p *command.Process) *cobra.Command {
	f := guardFlags{process: p}
	cmd := &cobra.Command{
		Use:   "uninstall [REPOSITORY]",
		Short: "Remove the guard and restore the hooks",
		Long: `uninstall removes the guard from commits and pushes, and restores the original hooks,
byte for byte. A hook that was changed after the installation, or that also runs other
programs of hooks.d, stays without the guard.`,
		Example: "  cairn guard uninstall\n  cairn guard uninstall --pre-push     # only at push",
		Args:    command.AtMostOne("repository"),
	}
	cmd.RunE = p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		if err := f.repository(c, args); err != nil {
			return err
		}
		g, err := c.Guard().Uninstall(cmd.Context(), f.args)
		for _, line := range g.Kept {
			fmt.Fprintln(p.Err, "cairn: "+quoted(line))
		}
		switch {
		case err != nil:
			return err
		case f.asJSON:
			return command.PrintJSON(p.Out, g)
		case g.Removed:
			fmt.Fprintln(p.Out, "the guard was removed")
		default:
			fmt.Fprintln(p.Out, "no guard was installed")
		}
		return nil
	})
	cmd.Flags().BoolVar(&f.args.PrePush, "pre-push", false, "remove only the guard of pushes")
	cmd.Flags().StringVar(&f.args.Project, "project", "", "the repository, as the path of its project")
	return f.json(cmd)
}

func guardStatusCommand(p *command.Process) *cobra.Command {
	f := guardFlags{process: p}
	cmd := &cobra.Command{
		Use:   "status [REPOSITORY]",
		Short: "Show which hooks a repository has and what they would check",
		Long: `status shows the folder of the repository's hooks, the state of each hook (none,
foreign, guarded, changed, replaced or broken), the effect of a conflict, the agent
that would commit, and the number of staged files.`,
		Example: "  cairn guard status --json",
		Args:    command.AtMostOne("repository"),
	}
	cmd.RunE = p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		if err := f.repository(c, args); err != nil {
			return err
		}
		s, err := c.Guard().Status(cmd.Context(), f.args.Repository)
		if err != nil {
			return err
		}
		rules := readGuardRules(p)
		rules.complete(c)
		status := struct {
			guard.Status
			Mode   string `json:"mode"`
			Strict bool   `json:"strict"`
			Agent  string `json:"agent"`
		}{s, rules.mode, rules.strict, guardAgent(p)}
		if f.asJSON {
			return command.PrintJSON(p.Out, status)
		}
		return printGuardStatus(p.Out, status.Status, rules, status.Agent)
	})
	cmd.Flags().StringVar(&f.args.Project, "project", "", "the repository, as the path of its project")
	return f.json(cmd)
}

func printGuardStatus(w io.Writer, s guard.Status, rules guardRules, agent string) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s "+format+"\n", append([]any{name}, args...)...)
	}
	row("repository", "%s", quoted(s.Repository))
	switch {
	case s.Problem != "":
		row("project", "unknown: %s", quoted(s.Problem))
	case s.Project == nil:
		row("project", "none yet, so nothing is reserved here")
	default:
		row("project", "%s", quoted(*s.Project))
	}
	shared := ""
	if s.Shared {
		shared = " (other repositories use it too)"
	}
	row("hooks", "%s%s", quoted(s.Hooks), shared)
	for _, g := range s.Guards {
		row(g.Hook, "%s", describeGuard(g))
	}
	strict := ""
	if rules.strict {
		strict = ", strict"
	}
	row("mode", "%s%s", rules.mode, strict)
	if agent == "" {
		agent = "the agent of the session that commits; people are only warned"
	}
	row("agent", "%s", quoted(agent))
	row("staged", "%s", command.Counted(len(s.Staged), "file"))
	_, err := io.WriteString(w, b.String())
	return err
}

func describeGuard(g githook.HookStatus) string {
	text := map[githook.State]string{
		githook.None: "no hook", githook.Foreign: "a hook, not guarded", githook.Guarded: "guarded",
		githook.Changed:  "guarded, but the hook was edited",
		githook.Replaced: "not guarded: the hook was replaced; `cairn guard install` restores the guard",
		githook.Broken:   "not guarded: hooks.d lost the guard; `cairn guard install` restores it",
	}[g.State]
	if g.Kept != "" {
		text += "; then runs " + quoted(filepath.Base(g.Kept))
	}
	if len(g.Others) > 0 {
		text += "; with " + quoted(strings.Join(g.Others, ", "))
	}
	return text
}

func guardCheckCommand(p *command.Process) *cobra.Command {
	f := guardCheckFlags{process: p}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether files about to be committed are reserved by others",
		Long: `check is the command that the hooks run. It checks the staged files. With --stdin-nul
it checks the files named on standard input, each ended by a NUL character: plain, or in
the format of git diff --name-status -z. With --pre-push it checks the commits that git
gives to its pre-push hook on standard input. In a merge only files that differ from
every parent count. Names are relative to the root of the worktree.

The exit code is 1 if other agents have reserved the files. See ` + "`cairn guard --help`" + `
for the agent that commits and for the other effects of a conflict.`,
		Example: `  CAIRN_AGENT=BlueLake cairn guard check
  printf 'src/cart.go\0' | cairn guard check --stdin-nul --json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if !f.push {
			return command.NoArgs(cmd, args)
		}
		return command.AtMostOne("remote")(cmd, args)
	}
	cmd.Flags().BoolVar(&f.nul, "stdin-nul", false, "check the files named on standard input, each ended by NUL")
	cmd.Flags().BoolVar(&f.push, "pre-push", false, "check the commits on standard input, in the format of git's pre-push hook")
	cmd.Flags().StringVar(&f.args.Project, "project", "", "the project (path, slug or id) whose reservations are checked (default: the repository's own)")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("stdin-nul", "pre-push")
	return cmd
}

// readGuardRules are the settings of a guard.
type guardRules struct {
	mode   string // "" until it is known
	strict bool
	bypass string // the variable that lets everything pass, "" if none is set
	fixed  bool   // the environment sets strict
}

// readGuardRules reads the settings in the environment, before anything can fail.
func readGuardRules(p *command.Process) (r guardRules) {
	for _, name := range [...]string{"CAIRN_GUARD_BYPASS", "AGENT_MAIL_BYPASS"} {
		if isYes(p.Getenv(name)) {
			r.bypass = name
			break
		}
	}
	for _, name := range [...]string{"CAIRN_GUARD_MODE", "AGENT_MAIL_GUARD_MODE"} {
		if text := strings.ToLower(strings.TrimSpace(p.Getenv(name))); text != "" && r.mode == "" {
			r.mode = guardMode(text)
		}
	}
	if text := p.Getenv("CAIRN_GUARD_STRICT"); text != "" {
		r.strict, r.fixed = isYes(text), true
	}
	return r
}

// guardMode parses a mode. An unknown mode means block.
func guardMode(text string) string {
	switch text {
	case "warn", "advisory", "adv":
		return guard.Warn
	case "off":
		return guard.Off
	}
	return guard.Block
}

func isYes(text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "1", "t", "true", "y", "yes", "on":
		return true
	}
	return false
}

// complete adds the settings that the environment does not give. At commits the default
// is to block.
func (r *guardRules) complete(c *cairn.Cairn) {
	mode, strict := c.GuardSettings()
	if r.mode == "" {
		r.mode = mode
	}
	if r.mode == "" {
		r.mode = guard.Block
	}
	if !r.fixed {
		r.strict = strict
	}
}

// guardAgent returns the agent that the environment names, "" if it names none.
func guardAgent(p *command.Process) string {
	if name := strings.TrimSpace(p.Getenv("CAIRN_AGENT")); name != "" {
		return name
	}
	return strings.TrimSpace(p.Getenv("AGENT_NAME"))
}

// guardCheckFlags are the flags of cairn guard check.
type guardCheckFlags struct {
	process   *command.Process
	args      guard.CheckArgs
	nul, push bool
	asJSON    bool
}

// guardWait is how long a commit waits for a store that other processes use.
const guardWait = 2 * time.Second

// maxNames limits the input from standard input, in bytes.
const maxNames = 64 << 20

func (f *guardCheckFlags) run(cmd *cobra.Command, args []string) error {
	p, rules := f.process, readGuardRules(f.process)
	switch {
	case rules.bypass != "":
		fmt.Fprintf(p.Err, "cairn: guard: bypassed by %s; nothing was checked\n", rules.bypass)
		return nil
	case rules.mode == guard.Off:
		return nil
	}
	found, err := f.lookUp(cmd, args, &rules)
	if rules.mode == guard.Off {
		return nil
	}
	if err != nil {
		command.Report(p.Err, "guard", fmt.Errorf("nothing was checked: %w", err))
		if rules.strict && rules.mode != guard.Warn {
			return command.ExitError(1)
		}
		return nil
	}
	if f.asJSON {
		if err := command.PrintJSON(p.Out, found); err != nil {
			return err
		}
	} else {
		printGuarded(p.Err, found)
	}
	if len(found.Conflicts) == 0 || rules.mode == guard.Warn || found.IsPerson() && !rules.strict {
		return nil
	}
	return command.ExitError(1)
}

// lookUp reads the names to check and finds their conflicts. It completes rules from
// the settings.
func (f *guardCheckFlags) lookUp(cmd *cobra.Command, args []string, rules *guardRules) (found guard.Checked, err error) {
	p := f.process
	f.args.Agent, f.args.Given, f.args.AtPush = guardAgent(p), f.nul, f.push
	if len(args) > 0 {
		f.args.Remote = args[0]
	}
	if f.nul || f.push {
		text, err := io.ReadAll(io.LimitReader(p.In, maxNames+1))
		if err != nil || len(text) > maxNames {
			return found, fault.New(fault.Invalid, "guard_input", "standard input cannot be read")
		}
		f.args.Names, f.args.Push = text, text
	}
	config, err := p.Config(cmd)
	if err != nil {
		return found, err
	}
	if config.Cwd, err = os.Getwd(); err != nil {
		return found, fault.Wrap(err, fault.Unavailable, "no_cwd", "the working directory is gone")
	}
	config.Setting = nil // rules already contain the environment
	config.Wait = guardWait
	c, err := cairn.Open(config)
	if err != nil {
		return found, err
	}
	rules.complete(c)
	if rules.mode == guard.Off {
		return found, c.Close()
	}
	found, err = c.Guard().Check(cmd.Context(), f.args)
	return found, errors.Join(err, c.Close())
}

// maxConflicts is the maximum number of listed conflicts.
const maxConflicts = 10

func printGuarded(w io.Writer, found guard.Checked) {
	if len(found.Conflicts) == 0 {
		return
	}
	fmt.Fprintln(w, "Exclusive file_reservation conflicts detected")
	for _, c := range found.Conflicts[:min(len(found.Conflicts), maxConflicts)] {
		fmt.Fprintf(w, "- %s matches %s (holder: %s, until %s)\n", quoted(c.Path), quoted(c.Pattern), quoted(c.Holder), c.Until.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	if more := len(found.Conflicts) - maxConflicts; more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	switch {
	case found.IsPerson():
		fmt.Fprintln(w, "cairn: guard: no agent is named, so this is only a warning; set CAIRN_AGENT=NAME to commit as an agent")
	case len(found.Names) > 0:
		fmt.Fprintf(w, "cairn: guard: you are %s; leave these files out, or ask the holder (cairn mail send); a person may pass with CAIRN_GUARD_BYPASS=1\n", quoted(strings.Join(found.Names, " and ")))
	default:
		fmt.Fprintf(w, "cairn: guard: leave these files out, or ask the holder (cairn mail send); a person may pass with CAIRN_GUARD_BYPASS=1\n")
	}
}

// quoted returns a text for a terminal, in quotes if it contains invisible characters.
func quoted(text string) string {
	if command.Printable(text) != text || strings.ToValidUTF8(text, "") != text {
		return strconv.Quote(text)
	}
	return text
}
