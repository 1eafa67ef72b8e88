package findcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/observation"
	"cairn/internal/why"
)

func whyCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var a why.Args
	cmd := command.New(&f, cobra.Command{
		Use:   "why FILE[:LINE]",
		Short: "Show which commit, session and prompt wrote a line, and the records about it",
		Long: `why traces a line of the working tree to the edit that wrote it. It shows the
commit of the line, the session and the prompt behind the edit, and the records
that cite the line, are named in the commit's message (R007), or were active in that
session. Without a line it shows the same of the whole file, newest first. LINE may
be LINE:COLUMN, as compilers print it, or be given as FILE#L12.

why finds the edit by the text of the line and of the lines near it, so a rebase, a
squash, a rename, a formatter or a moved block does not hide it. The row "sure" is
  commit   an edit wrote the line, and its session made the commit
  text     an edit wrote the line
  history  the text of the edits is not known (older rows, see cairn import): the
           session made the commit, or edited the file at that time
  none     no recorded edit wrote the line, or the line is too common to decide
Rows "missing" give the reasons why something was not found. The exit code is 1 if
nothing is known.

Follow up with the ids shown: ` + "`cairn show`" + ` prints rows and sessions,
` + "`cairn records show`" + ` records.`,
		Example: `  cairn why internal/cart/total.go:42
  cairn why README.md --json`,
		Args: command.ExactArgs(1, "a file, or a file and a line"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (why.Answer, error) {
		a.File, a.Line = c.ParseWhy(args[0])
		a.Project = p.Getenv("CAIRN_PROJECT")
		w, err := c.Why(cmd.Context(), a)
		f.No = !w.Known()
		return w, err
	}, printWhy)
	cmd.Flags().StringVar(&a.ProjectID, "project", "", "the project (id or alias) of the records, and of FILE (default: CAIRN_PROJECT, else the current one)")
	return f.JSONFlag(cmd)
}

// whyWidth is the number of characters of a prompt or text that a line shows.
const whyWidth = 100

func printWhy(out io.Writer, w why.Answer) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-8s "+format+"\n", append([]any{name}, args...)...)
	}
	b.WriteString(command.OneLine(w.File))
	if w.Line > 0 {
		fmt.Fprintf(&b, ":%d", w.Line)
	}
	if text := strings.TrimSpace(w.Text); text != "" {
		b.WriteString("  " + brief(text))
	}
	b.WriteByte('\n')
	if w.Confidence != "" {
		row("sure", "%s", whyConfidence(w.Confidence))
	}
	if w.Commit != nil {
		row("commit", "%s", commitLine(*w.Commit))
		if w.Commit.File != w.File || w.Commit.Line != w.Line {
			row("", "at that commit %s:%d", command.OneLine(w.Commit.File), w.Commit.Line)
		}
	}
	for _, c := range w.Commits {
		row("commit", "%s", commitLine(c))
	}
	for _, s := range w.Sessions {
		printWhySession(row, s)
	}
	for _, r := range w.Records {
		drifted := ""
		if r.Drifted {
			drifted = ", drifted"
		}
		row("record", "%s %s (%s%s): %s", r.ID, r.State, brief(r.Type), drifted, brief(r.Title))
		row("", "%s", command.OneLine(strings.Join(r.Because, "; ")))
	}
	for _, m := range w.Missing {
		row("missing", "%s: %s", m.Link, command.OneLine(m.Why))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// whyConfidence explains a value of Why.Confidence.
func whyConfidence(c string) string {
	switch c {
	case why.ByCommit:
		return "commit: the session's edit wrote the line, and it made the commit"
	case why.ByText:
		return "text: the session's edit wrote the line"
	case why.ByHistory:
		return "history: only by the time of edits and commits; the text of the edits is not known"
	}
	return c + ": the author is not known"
}

func commitLine(c why.Commit) string {
	line := fmt.Sprintf("%s  %s  %s: %s", c.Hash[:12], command.FormatMinute(c.Authored), brief(c.Author), brief(c.Subject))
	if c.SessionID != "" {
		line += "  (session " + brief(c.SessionID) + ")"
	}
	return line
}

func printWhySession(row func(name, format string, args ...any), s why.Session) {
	how := "edited the file"
	if s.Via == "commit" {
		how = "made the commit"
	}
	harness := ""
	if s.Harness != "" {
		harness = ", " + s.Harness
	}
	row("session", "%s  %s%s, %s", brief(s.SessionID), command.FormatMinute(s.Started), brief(harness), how)
	if s.Intent != "" && (s.Prompt == nil || !strings.HasPrefix(s.Prompt.Content, s.Intent)) {
		row("", "about: %s", brief(s.Intent))
	}
	if s.Prompt != nil {
		row("prompt", "#%d  %s  %s", s.Prompt.ID, command.FormatMinute(s.Prompt.Timestamp), brief(s.Prompt.Content))
	}
	if s.Edit != nil {
		line := fmt.Sprintf("#%d  %s", s.Edit.ID, command.FormatMinute(s.Edit.Timestamp))
		if s.Edit.File != "" {
			line += "  of " + command.OneLine(s.Edit.File)
		}
		row("edit", "%s", line)
	}
	var digest observation.Digest
	if json.Unmarshal(s.Summary, &digest) != nil {
		return
	}
	for _, list := range []struct {
		what     string
		commands []string
	}{{"fixed", digest.Fixed}, {"left failing", digest.Failing}} {
		if len(list.commands) > 0 {
			row("", "%s: %s", list.what, brief(strings.Join(list.commands, "; ")))
		}
	}
}

// brief returns the beginning of a text, on one line.
func brief(s string) string {
	s = command.OneLine(s)
	if runes := []rune(s); len(runes) > whyWidth {
		s = string(runes[:whyWidth-1]) + "…"
	}
	return s
}
