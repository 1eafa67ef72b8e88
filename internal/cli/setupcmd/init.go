package setupcmd

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/cli/projectcmd"
	"cairn/internal/fault"
	"cairn/internal/observation/browse"
	"cairn/internal/store"
	"cairn/internal/wiring"
)

func initCommand(p *command.Process) *cobra.Command {
	var o wiring.Options
	var noImport, asJSON bool
	named := map[string]*bool{}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Connect your agents and read their old sessions",
		Long: `init finds the agents on this machine by their folders. It adds cairn's hooks and MCP
server to your user settings of each agent, and then imports the agents' old sessions.
Everything else in those files stays unchanged, comments and layout included. init is
idempotent, and it updates outdated entries of cairn.

The original files are kept in the data directory, and ` + "`cairn uninstall`" + ` restores them.
To see the changes first, use --dry-run.`,
		Example: `  cairn init --dry-run
  cairn init
  cairn init --claude --no-assist`,
		Args: command.NoArgs,
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			for _, h := range wiring.Harnesses() {
				if *named[h] {
					o.Harnesses = append(o.Harnesses, h)
				}
			}
			return connect(p, cmd, c, o, noImport, asJSON)
		}),
	}
	for _, h := range wiring.Harnesses() {
		named[h] = cmd.Flags().Bool(h, false, "connect "+wiring.Title(h)+", even if it is not found; only named agents are connected")
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "print the changes as diffs, and write nothing")
	cmd.Flags().BoolVar(&noImport, "no-import", false, "do not read old sessions")
	cmd.Flags().BoolVar(&o.NoAssist, "no-assist", false, "no context during a session, only at its start")
	cmd.Flags().BoolVar(&o.NoStatus, "no-status-line", false, "no status line in Claude Code; an existing one is never replaced")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a report as JSON")
	return cmd
}

func connect(p *command.Process, cmd *cobra.Command, c *cairn.Cairn, o wiring.Options, noImport, asJSON bool) error {
	place, err := p.AgentPaths(cmd)
	if err != nil {
		return err
	}
	folders, _ := projectcmd.TranscriptFolders(p)
	a := cairn.InitArgs{
		Place: place, Options: o, NoImport: noImport,
		Import: cairn.ImportArgs{Paths: folders, Progress: p.Progress("files")},
	}
	if !asJSON {
		a.OnConnected = func(r wiring.Result) { printInit(p, place, r, o.DryRun) }
	}
	w, err := c.Init(cmd.Context(), a)
	if err != nil {
		return err
	}
	if asJSON {
		if err := command.PrintJSON(p.Out, w); err != nil {
			return err
		}
	} else if len(w.Harnesses) > 0 && !o.DryRun && !noImport {
		printWelcome(p, w)
	}
	if len(w.Harnesses) == 0 {
		return noAgent(place)
	}
	if wiring.AnyFailed(w.Files) || w.Import != nil && len(w.Import.Unreadable) > 0 {
		return command.ExitError(1)
	}
	return nil
}

func noAgent(place wiring.Paths) error {
	var looked []string
	for _, h := range wiring.Harnesses() {
		looked = append(looked, tilde(place, place.Folder(h)))
	}
	return fault.New(fault.NotFound, "no_agent", "no agent found; these folders do not exist: "+strings.Join(looked, ", ")).
		WithHint("name an agent to connect it anyway, for instance --claude")
}

// printInit prints a line per file, or the diffs of a dry run.
func printInit(p *command.Process, place wiring.Paths, r wiring.Result, dryRun bool) {
	title := ""
	differs := func(c wiring.Change) bool { return c.Action != wiring.Unchanged }
	if dryRun && len(r.Files) > 0 && !slices.ContainsFunc(r.Files, differs) {
		fmt.Fprintln(p.Err, "cairn: nothing to change")
	}
	for _, c := range r.Files {
		switch {
		case c.Action == wiring.Failed:
			command.Report(p.Err, "init", fmt.Errorf("%s was not changed: %s", tilde(place, c.Path), c.Error))
			continue
		case dryRun:
			fmt.Fprint(p.Out, c.Diff)
			continue
		}
		if t := wiring.Title(c.Harness); t != title {
			title = t
			fmt.Fprintln(p.Out, title)
		}
		fmt.Fprintf(p.Out, "  %-9s  %s\n", c.Action, tilde(place, c.Path))
	}
	for _, note := range r.Notes {
		fmt.Fprintln(p.Err, "cairn: note: "+note)
	}
}

// tilde shortens a path in the home directory.
func tilde(place wiring.Paths, path string) string {
	if rest, ok := strings.CutPrefix(path, place.Home+string(filepath.Separator)); ok {
		return filepath.Join("~", rest)
	}
	return path
}

// printWelcome prints the result of the import, and a question that it can answer.
func printWelcome(p *command.Process, w cairn.InitReport) {
	if w.Import != nil {
		for _, u := range w.Import.Unreadable {
			fmt.Fprintf(p.Err, "cairn: import: %s: %s\n", u.Path, u.Error)
		}
	}
	if n := w.Imported; n.Observations > 0 {
		fmt.Fprintf(p.Out, "\nimported %s\n", totalsText(n))
	} else if w.Held.Observations > 0 {
		fmt.Fprintf(p.Out, "\nnothing new to import; the store has %s\n", totalsText(w.Held))
	} else {
		fmt.Fprintf(p.Out, "\nno old sessions to import; new sessions are recorded from now on\n")
	}
	if q := w.Question; q != nil {
		fmt.Fprintf(p.Out, "\nA question from your own history:\n  %s\n  %s\n", q.Question, q.Answer)
		fmt.Fprintf(p.Out, "  Look it up: %s\n", searchLine(q))
	}
}

// searchLine returns the command that finds the answer of a sample question. Its words
// need no other quotes in any shell.
func searchLine(q *browse.SampleQuestion) string {
	return fmt.Sprintf(`cairn search "%s" --type %s --project %s`, q.Query, q.Type, q.Project)
}

func totalsText(h browse.Totals) string {
	days := int(time.Since(time.Unix(h.Oldest, 0)).Hours() / 24)
	return fmt.Sprintf("%s, %s from %s, oldest %s", command.Counted(h.Conversations, "conversation"),
		command.Counted(h.Observations, "observation"), command.Counted(h.Projects, "project"), command.Counted(days, "day"))
}
