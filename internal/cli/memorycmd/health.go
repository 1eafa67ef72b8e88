package memorycmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
)

func healthCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	return f.json(command.New(&f, cobra.Command{
		Use: "health", Short: "Check that memories can be used, and the connection to the hub",
		Long: `health exits 1 if the store cannot be opened. An unreachable hub does not count as a
failure: memories are stored on this device meanwhile. cairn doctor checks more.`,
		Example: "  cairn health --json",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (cairn.MemoryHealth, error) {
		h := c.Memories().Health(cmd.Context(), p.Version, true)
		f.No = h.Status != cairn.Healthy
		return h, nil
	}, func(w io.Writer, h cairn.MemoryHealth) error {
		line := h.Status
		if h.Cause != "" {
			line += ": " + h.Cause
		}
		if h.Hub == "" {
			_, err := fmt.Fprintln(w, line+", no hub")
			return err
		}
		_, err := fmt.Fprintf(w, "%s, %s: %s, %d pending, %d refused\n", line, h.Hub, h.Replication.State, h.Replication.Pending, h.Replication.Failed)
		return err
	}))
}
