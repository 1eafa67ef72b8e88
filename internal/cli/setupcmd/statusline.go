package setupcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
)

// maxStatusInput limits the standard input of `status --line`, in bytes.
const maxStatusInput = 1 << 20

// inputSession returns the session that the agent program names on standard input, "" if
// it names none.
func inputSession(p *command.Process) string {
	if f, ok := p.In.(*os.File); ok && command.IsTerminal(f) {
		return ""
	}
	var asked struct {
		Session string `json:"session_id"`
	}
	text, err := io.ReadAll(io.LimitReader(p.In, maxStatusInput))
	if err != nil || json.Unmarshal(text, &asked) != nil {
		return ""
	}
	return asked.Session
}

func statusLine(p *command.Process, cmd *cobra.Command, c *cairn.Cairn, asJSON bool) error {
	line, err := c.StatusLine(cmd.Context(), inputSession(p))
	if err != nil {
		return err
	}
	if asJSON {
		return command.PrintJSON(p.Out, line)
	}
	_, err = fmt.Fprintln(p.Out, command.Printable(statusText(line)))
	return err
}

// statusText formats the status line.
func statusText(s cairn.StatusLine) string {
	parts := []string{strings.TrimSpace("cairn " + s.Project)}
	for _, a := range s.Agents {
		said := a.Name
		if a.Unread > 0 {
			said += fmt.Sprintf(", %d unread", a.Unread)
		}
		if a.Due > 0 {
			said += fmt.Sprintf(", %d to acknowledge", a.Due)
		}
		if a.Holds != "" {
			said += ", holds " + a.Holds
		}
		parts = append(parts, said)
	}
	switch {
	case s.Rows > 0:
		parts = append(parts, command.Counted(int(s.Rows), "observation"))
	case len(s.Agents) == 0:
		parts = append(parts, "nothing recorded in this session yet")
	}
	return strings.Join(parts, " · ")
}
