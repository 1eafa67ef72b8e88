package memorycmd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/replica"
)

func replicationCommand(p *command.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replication",
		Short: "Show and control the replication with a hub",
		Long: `replication shows and controls the exchange with the hub that you joined with cairn hub
join. A running server (cairn serve) sends new data and fetches the data of other
devices. Without a server, cairn replication drain does that once.`,
		Example: "  cairn replication status\n  cairn replication drain\n  cairn replication retry pending-12",
		Args:    command.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		replicationStatusCommand(p), replicationPauseCommand(p, true), replicationPauseCommand(p, false),
		replicationFailedCommand(p, "retry [LOCAL-ID…]", "Send again what the hub has refused", (*memories.Service).Retry),
		replicationFailedCommand(p, "discard LOCAL-ID…", "Discard permanently what the hub has refused", (*memories.Service).Discard),
		replicationDrainCommand(p),
	)
	return cmd
}

func replicationStatusCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	return f.common(command.New(&f, cobra.Command{
		Use: "status", Short: "Show the replication status",
		Long: `status asks the hub, and lists what waits for it and what it has refused for good.`,
		Args: command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (cairn.ReplicationStatus, error) {
		return c.Replication().Status(cmd.Context(), f.caller(), true)
	}, printReplication))
}

func printReplication(w io.Writer, s cairn.ReplicationStatus) error {
	if s.HubURL == "" {
		_, err := fmt.Fprintln(w, "no hub: entries are committed here (`cairn hub join URL` joins one)")
		return err
	}
	line := fmt.Sprintf("%s: %s, %d pending, %d refused", s.HubURL, s.State, s.Pending, s.Failed)
	if s.OldestPending != 0 {
		line += ", the oldest since " + formatMemoryTime(s.OldestPending)
	}
	if s.Why != "" {
		line += "; " + command.Printable(s.Why)
	}
	fmt.Fprintln(w, line)
	for _, m := range s.Waiting {
		fmt.Fprintf(w, "  memory %s %s after %d attempts: %s\n", m.MemoryID, m.State, m.Attempts, command.FirstOf(m.Error, 120))
	}
	if s.Hint != "" {
		fmt.Fprintf(w, "  do: %s\n", s.Hint)
	}
	if s.Device.Note != "" {
		fmt.Fprintf(w, "  device: %s\n", command.Printable(s.Device.Note))
	}
	for _, x := range s.Failures {
		fmt.Fprintf(w, "  refused %s of memory %s: %d %s: %s\n", x.LocalID, x.Stream, x.Status, command.Printable(x.Code), command.FirstOf(x.Message, 120))
	}
	if len(s.Failures) > 0 {
		fmt.Fprintln(w, "  do: remove the reason and run `cairn replication retry`, or run `cairn replication discard`")
	}
	for _, x := range s.Conflicts {
		fmt.Fprintf(w, "  a context of memory %s lost a conflict with another device: `cairn memory get-context --memory %s --history` shows both\n", x.MemoryID, x.MemoryID)
	}
	return nil
}

func replicationPauseCommand(p *command.Process, pause bool) *cobra.Command {
	f := newMemoryFlags(p)
	use, short, said := "pause", "Pause replication, also after restarts, until resume", "paused"
	if !pause {
		use, short, said = "resume", "Resume replication", "resumed"
	}
	return f.common(command.New(&f, cobra.Command{Use: use, Short: short, Args: command.NoArgs},
		func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (map[string]bool, error) {
			return writeMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, _ memory.Caller) (map[string]bool, memory.WriteInfo, error) {
				return map[string]bool{"paused": pause}, memory.WriteInfo{}, b.SetPaused(ctx, pause)
			})
		}, func(w io.Writer, _ map[string]bool) error {
			_, err := fmt.Fprintln(w, said)
			return err
		}))
}

func replicationFailedCommand(p *command.Process, use, short string, do func(*memories.Service, context.Context, memory.Caller, []string) (int, error)) *cobra.Command {
	f := newMemoryFlags(p)
	var all bool
	discards := strings.HasPrefix(use, "discard")
	cmd := command.New(&f, cobra.Command{
		Use: use, Short: short,
		Example: "  cairn replication status\n  cairn replication " + strings.Fields(use)[0] + " pending-12",
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (map[string]int, error) {
		if discards && len(args) == 0 && !all {
			return nil, fault.New(fault.Invalid, "usage", "requires the localIds to discard, or --all").WithHint("`cairn replication status` lists it")
		}
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (map[string]int, error) {
			n, err := do(b, ctx, who, args)
			if err == nil && n == 0 && len(args) > 0 {
				err = fault.New(fault.NotFound, memory.CodeNotFound, "none of these changes was refused")
			}
			return map[string]int{"changes": n}, err
		})
	}, func(w io.Writer, n map[string]int) error {
		_, err := fmt.Fprintf(w, "%d changes\n", n["changes"])
		return err
	})
	if discards {
		cmd.Flags().BoolVar(&all, "all", false, "all refused changes")
	}
	return f.common(cmd)
}

func replicationDrainCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	return f.common(command.New(&f, cobra.Command{
		Use: "drain", Short: "Send waiting changes and fetch new ones, once",
		Long: `drain exchanges data with the hub once, as a server does continuously. The exit code is
1 if changes still wait afterwards, because the hub refused them or asked to wait.`,
		Args: command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (cairn.ReplicationStatus, error) {
		log := slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: slog.LevelError}))
		if err := c.Replication().Drain(cmd.Context(), f.caller(), log); err != nil {
			return cairn.ReplicationStatus{}, err
		}
		s, err := c.Replication().Status(cmd.Context(), f.caller(), false)
		f.No = s.Pending > 0
		return s, err
	}, printReplication))
}

func hubJoinCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var a cairn.JoinArgs
	var upload string
	cmd := command.New(&f, cobra.Command{
		Use:   "join URL",
		Short: "Share memories with your other devices through a hub",
		Long: `join connects this device to a hub. It reads a token of cairn hub token create from
standard input and stores it in a file that only you can read. From then on cairn sends
memories to the hub and fetches those of your other devices. Existing memories are sent
too, unless you use --upload none.`,
		Example: "  cairn hub join https://hub.example:8766 < token\n  cairn replication status",
		Args:    command.ExactArgs(1, "the hub's URL, such as https://hub.example:8766"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (hubJoined, error) {
		if a.URL, a.Upload = args[0], upload == "all"; upload != "all" && upload != "none" {
			return hubJoined{}, fault.New(fault.Invalid, "usage", "--upload must be all or none").WithHint(command.SeeHelp(cmd))
		}
		var err error
		if a.Token, err = tokenLine(p); err != nil {
			return hubJoined{}, err
		}
		user, who, err := c.Replication().Join(cmd.Context(), a)
		return hubJoined{user, who}, err
	}, func(w io.Writer, j hubJoined) error {
		_, err := fmt.Fprintf(w, "joined %s as user %s\n", j.HubURL, j.Hub.UserID)
		return err
	})
	cmd.Flags().StringVar(&a.User, "user", "", "the local user (default: the device's own)")
	cmd.Flags().StringVar(&upload, "upload", "all", "which existing memories to send: all or none")
	cmd.Flags().BoolVar(&a.Insecure, "insecure-http", false, "allow a URL with plain HTTP to another machine; the token and all texts are sent unencrypted")
	return f.json(cmd)
}

// hubJoined is the result of hub join.
type hubJoined struct {
	memory.User
	Hub replica.Whoami `json:"hub"`
}

// tokenLine reads a token from standard input.
func tokenLine(p *command.Process) (string, error) {
	if f, ok := p.In.(*os.File); ok && command.IsTerminal(f) {
		fmt.Fprint(p.Err, "cairn: paste the token, then Enter: ")
	}
	line, err := bufio.NewReader(io.LimitReader(p.In, 4096)).ReadString('\n')
	if token := strings.TrimSpace(line); token != "" {
		return token, nil
	}
	if err == nil || err == io.EOF {
		err = fault.New(fault.Invalid, "usage", "standard input contains no token").WithHint("`cairn hub token create` at the hub prints one")
	}
	return "", err
}

func hubLeaveCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var force bool
	cmd := command.New(&f, cobra.Command{
		Use:   "leave",
		Short: "Stop sharing; the local data stays",
		Long: `leave ends the replication and deletes the token. It fails while entries are inflight.
--force commits these entries on this device instead, under new ids.`,
		Args: command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (memory.User, error) {
		return c.Replication().Leave(cmd.Context(), f.caller(), force)
	}, func(w io.Writer, u memory.User) error {
		_, err := fmt.Fprintf(w, "left %s\n", u.HubURL)
		return err
	})
	cmd.Flags().BoolVar(&force, "force", false, "commit inflight entries on this device")
	return f.json(cmd)
}
