package cli

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
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/replica"
)

func replicationCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replication",
		Short: "Show and control the replication with a hub",
		Long: `replication is about the hub that cairn hub join has joined. Servers (cairn serve) send
what is written and bring what other devices wrote; without one, cairn replication
drain does it once.`,
		Example: "  cairn replication status\n  cairn replication drain\n  cairn replication retry pending-12",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		replicationStatusCommand(p), replicationPauseCommand(p, true), replicationPauseCommand(p, false),
		replicationFailedCommand(p, "retry [LOCAL-ID…]", "Send again what the hub has refused", (*memory.Service).Retry),
		replicationFailedCommand(p, "discard LOCAL-ID…", "Discard permanently what the hub has refused", (*memory.Service).Discard),
		replicationDrainCommand(p),
	)
	return cmd
}

func replicationStatusCommand(p *Process) *cobra.Command {
	f := remembering(p)
	return f.common(answering(&f, cobra.Command{
		Use: "status", Short: "Show the replication status",
		Long: `status asks the hub, and lists what waits for it and what it has refused for good.`,
		Args: noArgs,
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
		line += ", the oldest since " + when(s.OldestPending)
	}
	if s.Why != "" {
		line += "; " + printable(s.Why)
	}
	fmt.Fprintln(w, line)
	for _, m := range s.Waiting {
		fmt.Fprintf(w, "  memory %s %s after %d attempts: %s\n", m.MemoryID, m.State, m.Attempts, firstOf(m.Error, 120))
	}
	if s.Hint != "" {
		fmt.Fprintf(w, "  do: %s\n", s.Hint)
	}
	if s.Device.Note != "" {
		fmt.Fprintf(w, "  device: %s\n", printable(s.Device.Note))
	}
	for _, x := range s.Failures {
		fmt.Fprintf(w, "  refused %s of memory %s: %d %s: %s\n", x.LocalID, x.Stream, x.Status, printable(x.Code), firstOf(x.Message, 120))
	}
	if len(s.Failures) > 0 {
		fmt.Fprintln(w, "  do: remove the reason and run `cairn replication retry`, or run `cairn replication discard`")
	}
	for _, x := range s.Conflicts {
		fmt.Fprintf(w, "  a context of memory %s lost against another device's: `cairn memory get-context --memory %s --history` shows both\n", x.MemoryID, x.MemoryID)
	}
	return nil
}

func replicationPauseCommand(p *Process, pause bool) *cobra.Command {
	f := remembering(p)
	use, short, said := "pause", "Pause replication, also after restarts, until resume", "paused"
	if !pause {
		use, short, said = "resume", "Resume replication", "resumed"
	}
	return f.common(answering(&f, cobra.Command{Use: use, Short: short, Args: noArgs},
		func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (map[string]bool, error) {
			return kept(cmd, c, &f, func(ctx context.Context, b *memory.Service, _ memory.Caller) (map[string]bool, memory.WriteInfo, error) {
				return map[string]bool{"paused": pause}, memory.WriteInfo{}, b.SetPaused(ctx, pause)
			})
		}, func(w io.Writer, _ map[string]bool) error {
			_, err := fmt.Fprintln(w, said)
			return err
		}))
}

func replicationFailedCommand(p *Process, use, short string, do func(*memory.Service, context.Context, memory.Caller, []string) (int, error)) *cobra.Command {
	f := remembering(p)
	var all bool
	discards := strings.HasPrefix(use, "discard")
	cmd := answering(&f, cobra.Command{
		Use: use, Short: short,
		Example: "  cairn replication status\n  cairn replication " + strings.Fields(use)[0] + " pending-12",
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (map[string]int, error) {
		if discards && len(args) == 0 && !all {
			return nil, fault.New(fault.Invalid, "usage", "takes what to give up, or --all").WithHint("`cairn replication status` lists it")
		}
		return recalled(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (map[string]int, error) {
			n, err := do(b, ctx, who, args)
			if err == nil && n == 0 && len(args) > 0 {
				err = fault.New(fault.NotFound, memory.CodeNotFound, "nothing of that was refused")
			}
			return map[string]int{"changes": n}, err
		})
	}, func(w io.Writer, n map[string]int) error {
		_, err := fmt.Fprintf(w, "%d changes\n", n["changes"])
		return err
	})
	if discards {
		cmd.Flags().BoolVar(&all, "all", false, "everything that was refused")
	}
	return f.common(cmd)
}

func replicationDrainCommand(p *Process) *cobra.Command {
	f := remembering(p)
	return f.common(answering(&f, cobra.Command{
		Use: "drain", Short: "Send waiting changes and fetch new ones, once",
		Long: `drain does at once what a server does all the time. The exit code is 1 if something
still waits afterwards, because the hub refused it or asked to wait.`,
		Args: noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (cairn.ReplicationStatus, error) {
		log := slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: slog.LevelError}))
		if err := c.Replication().Drain(cmd.Context(), f.caller(), log); err != nil {
			return cairn.ReplicationStatus{}, err
		}
		s, err := c.Replication().Status(cmd.Context(), f.caller(), false)
		f.no = s.Pending > 0
		return s, err
	}, printReplication))
}

func hubJoinCommand(p *Process) *cobra.Command {
	f := remembering(p)
	var a cairn.JoinArgs
	var upload string
	cmd := answering(&f, cobra.Command{
		Use:   "join URL",
		Short: "Share memories with your other devices through a hub",
		Long: `join reads a token from standard input, which cairn hub token create made at the hub,
keeps it in a file that only you can read, and from then on sends memories to the hub
and brings those of your other devices. What is here already is sent, too, unless
--upload none says otherwise.`,
		Example: "  cairn hub join https://hub.example:8766 < token\n  cairn replication status",
		Args:    exactArgs(1, "the hub's URL, such as https://hub.example:8766"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (hubJoined, error) {
		if a.URL, a.Upload = args[0], upload == "all"; upload != "all" && upload != "none" {
			return hubJoined{}, fault.New(fault.Invalid, "usage", "--upload takes all or none").WithHint(seeHelp(cmd))
		}
		var err error
		if a.Token, err = p.tokenLine(); err != nil {
			return hubJoined{}, err
		}
		user, who, err := c.Replication().Join(cmd.Context(), a)
		return hubJoined{user, who}, err
	}, func(w io.Writer, j hubJoined) error {
		_, err := fmt.Fprintf(w, "joined %s as user %s\n", j.HubURL, j.Hub.UserID)
		return err
	})
	cmd.Flags().StringVar(&a.User, "user", "", "the local user (default: the device's own)")
	cmd.Flags().StringVar(&upload, "upload", "all", "what is here already: all, or none of it")
	cmd.Flags().BoolVar(&a.Insecure, "insecure-http", false, "let URL be plain HTTP to another machine; the token and all text cross the network in the clear")
	return f.json(cmd)
}

// hubJoined is the answer of hub join.
type hubJoined struct {
	memory.User
	Hub replica.Whoami `json:"hub"`
}

// tokenLine reads a token from standard input.
func (p *Process) tokenLine() (string, error) {
	if f, ok := p.In.(*os.File); ok && isTerminal(f) {
		fmt.Fprint(p.Err, "cairn: paste the token, then Enter: ")
	}
	line, err := bufio.NewReader(io.LimitReader(p.In, 4096)).ReadString('\n')
	if token := strings.TrimSpace(line); token != "" {
		return token, nil
	}
	if err == nil || err == io.EOF {
		err = fault.New(fault.Invalid, "usage", "there is no token on standard input").WithHint("`cairn hub token create` at the hub prints one")
	}
	return "", err
}

func hubLeaveCommand(p *Process) *cobra.Command {
	f := remembering(p)
	var force bool
	cmd := answering(&f, cobra.Command{
		Use:   "leave",
		Short: "Stop sharing; the local data stays",
		Long: `leave ends the replication and deletes the token. It is refused while entries are
inflight; --force commits them here instead, under new ids.`,
		Args: noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (memory.User, error) {
		return c.Replication().Leave(cmd.Context(), f.caller(), force)
	}, func(w io.Writer, u memory.User) error {
		_, err := fmt.Fprintf(w, "left %s\n", u.HubURL)
		return err
	})
	cmd.Flags().BoolVar(&force, "force", false, "commit here what the hub has not got")
	return f.json(cmd)
}
