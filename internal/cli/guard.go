package cli

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
	"cairn/internal/fault"
	"cairn/internal/githook"
	"cairn/internal/guard"
	"cairn/internal/store"
)

func guardCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Block commits and pushes of files that other agents have reserved",
		Long: `guard is for a repository in which several agents work. Its hook looks, before each
commit, whether a file of it is reserved exclusively by another agent, and then stops
the commit and says who holds the file until when. A person is only warned.

Who commits is told by CAIRN_AGENT (or AGENT_NAME), else by the agent's session that
the commit is made in. CAIRN_GUARD_MODE=warn lets an agent's commit pass with a
warning, off asks nothing; guard.mode in config.toml says the same for good.
CAIRN_GUARD_BYPASS=1 lets one command pass unchecked. Where cairn cannot tell, for
want of its store for instance, it warns and the commit goes on; with
CAIRN_GUARD_STRICT=1 (guard.strict) it stops.`,
		Example: `  cairn guard install --pre-push
  cairn guard status
  CAIRN_AGENT=BlueLake cairn guard check
  cairn guard uninstall`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(guardInstallCommand(p), guardUninstallCommand(p), guardStatusCommand(p), guardCheckCommand(p))
	return cmd
}

// guardFlags are the flags that commands of guard share.
type guardFlags struct {
	process *Process
	args    guard.Args
	asJSON  bool
}

func (f *guardFlags) json(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

// repository sets the repository that the arguments name, or --project if that is a
// path, or else the one here.
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

func guardInstallCommand(p *Process) *cobra.Command {
	f := guardFlags{process: p}
	cmd := &cobra.Command{
		Use:   "install [REPOSITORY]",
		Short: "Install the guard into the hooks of a repository",
		Long: `install puts the guard into the hooks that git runs here, whether they are the
repository's own or those of core.hooksPath. A hook that is there already is kept as
pre-commit.orig and run after the guard; more programs can be put beside it into
hooks.d/pre-commit. Worktrees share hooks, so once is enough. Doing it again changes
nothing.`,
		Example: "  cairn guard install\n  cairn guard install ../shop --pre-push",
		Args:    atMostOne("repository"),
	}
	cmd.RunE = p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		if err := f.repository(c, args); err != nil {
			return err
		}
		place, err := p.place(cmd)
		if err != nil {
			return err
		}
		f.args.Program = place.Program
		g, err := c.Guard().Install(cmd.Context(), f.args)
		if err != nil {
			return err
		}
		if g.Shared {
			fmt.Fprintf(p.Err, "cairn: %s serves other repositories too (core.hooksPath); those that cairn does not manage pass unchecked\n", shown(filepath.Dir(g.Hook)))
		}
		if f.asJSON {
			return printJSON(p.Out, g)
		}
		fmt.Fprintf(p.Out, "commits are guarded by %s\n", shown(g.Hook))
		if f.args.PrePush {
			fmt.Fprintf(p.Out, "pushes are guarded by %s\n", shown(filepath.Join(filepath.Dir(g.Hook), githook.PrePush)))
		}
		return nil
	})
	cmd.Flags().BoolVar(&f.args.PrePush, "pre-push", false, "also look before a push")
	cmd.Flags().StringVar(&f.args.Project, "project", "", "whose reservations count (path, slug or id), instead of the repository's own; a path is also the REPOSITORY if that is left out")
	return f.json(cmd)
}

func guardUninstallCommand(p *Process) *cobra.Command {
	f := guardFlags{process: p}
	cmd := &cobra.Command{
		Use:   "uninstall [REPOSITORY]",
		Short: "Remove the guard and restore the hooks",
		Long: `uninstall takes the guard away, at commit and at push, and puts the hooks back that
stood there, byte for byte. A hook that somebody changed after the installation, or
that runs other programs of hooks.d as well, stays, without the guard.`,
		Example: "  cairn guard uninstall\n  cairn guard uninstall --pre-push     # only at push",
		Args:    atMostOne("repository"),
	}
	cmd.RunE = p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		if err := f.repository(c, args); err != nil {
			return err
		}
		g, err := c.Guard().Uninstall(cmd.Context(), f.args)
		for _, line := range g.Kept {
			fmt.Fprintln(p.Err, "cairn: "+shown(line))
		}
		switch {
		case err != nil:
			return err
		case f.asJSON:
			return printJSON(p.Out, g)
		case g.Removed:
			fmt.Fprintln(p.Out, "the guard is gone")
		default:
			fmt.Fprintln(p.Out, "there was no guard")
		}
		return nil
	})
	cmd.Flags().BoolVar(&f.args.PrePush, "pre-push", false, "only the guard at push")
	cmd.Flags().StringVar(&f.args.Project, "project", "", "the repository, as the path of its project")
	return f.json(cmd)
}

func guardStatusCommand(p *Process) *cobra.Command {
	f := guardFlags{process: p}
	cmd := &cobra.Command{
		Use:   "status [REPOSITORY]",
		Short: "Show which hooks a repository has and what they would check",
		Long: `status shows the folder that git runs hooks from, what stands at each hook (none,
foreign, guarded, changed, replaced or broken), what a conflict does, who would be
asked for, and how many files the next commit has.`,
		Example: "  cairn guard status --json",
		Args:    atMostOne("repository"),
	}
	cmd.RunE = p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
		if err := f.repository(c, args); err != nil {
			return err
		}
		s, err := c.Guard().Status(cmd.Context(), f.args.Repository)
		if err != nil {
			return err
		}
		rules := p.guardRules()
		rules.complete(c)
		status := struct {
			guard.Status
			Mode   string `json:"mode"`
			Strict bool   `json:"strict"`
			Agent  string `json:"agent"`
		}{s, rules.mode, rules.strict, p.guardAgent()}
		if f.asJSON {
			return printJSON(p.Out, status)
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
	row("repository", "%s", shown(s.Repository))
	switch {
	case s.Problem != "":
		row("project", "cannot be told: %s", shown(s.Problem))
	case s.Project == nil:
		row("project", "none; nothing here can be reserved yet")
	default:
		row("project", "%s", shown(*s.Project))
	}
	shared := ""
	if s.Shared {
		shared = " (serves other repositories too)"
	}
	row("hooks", "%s%s", shown(s.Hooks), shared)
	for _, g := range s.Guards {
		row(g.Hook, "%s", describeGuard(g))
	}
	strict := ""
	if rules.strict {
		strict = ", strict"
	}
	row("mode", "%s%s", rules.mode, strict)
	if agent == "" {
		agent = "whose session commits; a person is warned"
	}
	row("agent", "%s", shown(agent))
	row("staged", "%s", counted(len(s.Staged), "file"))
	_, err := io.WriteString(w, b.String())
	return err
}

func describeGuard(g githook.HookStatus) string {
	text := map[githook.State]string{
		githook.None: "no hook", githook.Foreign: "a hook, not guarded", githook.Guarded: "guarded",
		githook.Changed:  "guarded, but the hook was changed by hand",
		githook.Replaced: "not guarded: the hook was replaced; `cairn guard install` puts the guard back",
		githook.Broken:   "not guarded: hooks.d lost the guard; `cairn guard install` puts it back",
	}[g.State]
	if g.Kept != "" {
		text += "; then runs " + shown(filepath.Base(g.Kept))
	}
	if len(g.Others) > 0 {
		text += "; beside " + shown(strings.Join(g.Others, ", "))
	}
	return text
}

func guardCheckCommand(p *Process) *cobra.Command {
	f := guardCheckFlags{process: p}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether files about to be committed are reserved by others",
		Long: `check is what the hooks call. It looks at the files that are staged; with --stdin-nul
at those that standard input names, each ended by a NUL character, bare or as git diff
--name-status -z prints them; with --pre-push at the commits that git's pre-push hook is
told on standard input. During a merge a file counts only if it differs from every
parent. Names count from the root of the worktree.

The exit code is 1 if an agent's files are reserved by others; see ` + "`cairn guard --help`" + `
for who asks, and what else a conflict may do.`,
		Example: `  CAIRN_AGENT=BlueLake cairn guard check
  printf 'src/cart.go\0' | cairn guard check --stdin-nul --json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if !f.push {
			return noArgs(cmd, args)
		}
		return atMostOne("remote")(cmd, args)
	}
	cmd.Flags().BoolVar(&f.nul, "stdin-nul", false, "look at the files that standard input names, each ended by NUL")
	cmd.Flags().BoolVar(&f.push, "pre-push", false, "look at the commits that standard input tells, as git does before a push")
	cmd.Flags().StringVar(&f.args.Project, "project", "", "whose reservations count (path, slug or id), instead of the repository's own")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("stdin-nul", "pre-push")
	return cmd
}

// guardRules say what a guard does.
type guardRules struct {
	mode   string // "" until it is known
	strict bool
	bypass string // the variable that lets everything pass, "" for none
	fixed  bool   // the environment decides on strict
}

// guardRules are those of the environment. They are read before anything can fail.
func (p *Process) guardRules() (r guardRules) {
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

// guardMode reads a mode; what is none blocks.
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

// complete takes from the settings what the environment leaves open. At commits a
// guard blocks unless somebody asked for less.
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

// guardAgent is the agent that the environment names, "" for none.
func (p *Process) guardAgent() string {
	if name := strings.TrimSpace(p.Getenv("CAIRN_AGENT")); name != "" {
		return name
	}
	return strings.TrimSpace(p.Getenv("AGENT_NAME"))
}

// guardCheckFlags are the flags of cairn guard check.
type guardCheckFlags struct {
	process   *Process
	args      guard.CheckArgs
	nul, push bool
	asJSON    bool
}

// guardWait is how long a commit waits for a store that others use.
const guardWait = 2 * time.Second

// maxNames bounds what is read from standard input.
const maxNames = 64 << 20

func (f *guardCheckFlags) run(cmd *cobra.Command, args []string) error {
	p, rules := f.process, f.process.guardRules()
	switch {
	case rules.bypass != "":
		fmt.Fprintf(p.Err, "cairn: guard: bypassed by %s; nothing was checked\n", rules.bypass)
		return nil
	case rules.mode == guard.Off:
		return nil
	}
	found, err := f.ask(cmd, args, &rules)
	if rules.mode == guard.Off {
		return nil
	}
	if err != nil {
		report(p.Err, "guard", fmt.Errorf("nothing was checked: %w", err))
		if rules.strict && rules.mode != guard.Warn {
			return exitError(1)
		}
		return nil
	}
	if f.asJSON {
		if err := printJSON(p.Out, found); err != nil {
			return err
		}
	} else {
		printGuarded(p.Err, found)
	}
	if len(found.Conflicts) == 0 || rules.mode == guard.Warn || found.IsPerson() && !rules.strict {
		return nil
	}
	return exitError(1)
}

// ask reads what there is to check and looks it up; rules are completed by the
// settings.
func (f *guardCheckFlags) ask(cmd *cobra.Command, args []string, rules *guardRules) (found guard.Checked, err error) {
	p := f.process
	f.args.Agent, f.args.Given, f.args.AtPush = p.guardAgent(), f.nul, f.push
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
	config, err := p.config(cmd)
	if err != nil {
		return found, err
	}
	if config.Cwd, err = os.Getwd(); err != nil {
		return found, fault.Wrap(err, fault.Unavailable, "no_cwd", "the working directory is gone")
	}
	config.Setting = nil // rules know the environment
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

// maxConflicts is how many conflicts are listed.
const maxConflicts = 10

func printGuarded(w io.Writer, found guard.Checked) {
	if len(found.Conflicts) == 0 {
		return
	}
	fmt.Fprintln(w, "Exclusive file_reservation conflicts detected")
	for _, c := range found.Conflicts[:min(len(found.Conflicts), maxConflicts)] {
		fmt.Fprintf(w, "- %s matches %s (holder: %s, until %s)\n", shown(c.Path), shown(c.Pattern), shown(c.Holder), c.Until.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	if more := len(found.Conflicts) - maxConflicts; more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	switch {
	case found.IsPerson():
		fmt.Fprintln(w, "cairn: guard: no agent was named, so this is only a warning; CAIRN_AGENT=NAME says who commits")
	case len(found.Names) > 0:
		fmt.Fprintf(w, "cairn: guard: you are %s; leave these files out, or ask the holder (cairn mail send); a person may pass with CAIRN_GUARD_BYPASS=1\n", shown(strings.Join(found.Names, " and ")))
	default:
		fmt.Fprintf(w, "cairn: guard: leave these files out, or ask the holder (cairn mail send); a person may pass with CAIRN_GUARD_BYPASS=1\n")
	}
}

// shown is a text for a terminal: quoted if it holds anything that would not be seen.
func shown(text string) string {
	if printable(text) != text || strings.ToValidUTF8(text, "") != text {
		return strconv.Quote(text)
	}
	return text
}
