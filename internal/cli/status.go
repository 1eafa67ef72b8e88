package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/followers"
	"cairn/internal/observation/browse"
	"cairn/internal/store"
)

// status is what cairn holds and where.
type status struct {
	Version   string             `json:"version"`
	Driver    string             `json:"driver"`
	Store     string             `json:"store"`
	Exists    bool               `json:"exists"`
	Bytes     int64              `json:"bytes"`     // of the file and its write-ahead log
	Encrypted bool               `json:"encrypted"` // it is encrypted at rest
	Project   string             `json:"project"`
	Session   string             `json:"session"` // whose agent runs this command, "" if none does
	Counts    browse.Stats       `json:"counts"`
	Wired     []string           `json:"harnesses"` // whose settings call cairn
	Device    cairn.DeviceStatus `json:"device"`
	followers.Account
}

func statusCommand(p *Process) *cobra.Command {
	var asJSON, line bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show version, store, counts, the last event and the connected agents",
		Long: `status shows which cairn this is, where its store lies and what it holds, which
project the working directory belongs to, the session that runs this command, and
which agents' settings call cairn. It judges nothing; cairn doctor does.

Followers read what is written to the store: the archive of each project, the vectors
of memories, the replication to a hub. status shows how many changes wait for each,
which follower fails, since when and why, and which changes are set aside. cairn retry
makes them try again at once.

With --line it prints one line about the session, for the status line of an agent
program: its project, agent, unread mail and reservations. The session is that of
the JSON object on standard input, as Claude Code passes it, else the one that runs
this command. cairn init sets it in Claude Code, unless there is another one or
--no-status-line is given. By hand, in ~/.claude/settings.json:

  "statusLine": {"type": "command", "command": "cairn status --line"}`,
		Example: "  cairn status\n  cairn status --json\n  cairn status --line",
		Args:    noArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			if line {
				return p.statusLine(cmd, c, asJSON)
			}
			s, err := p.status(cmd, c)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(p.Out, s)
			}
			return p.printStatus(s)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&line, "line", false, "print one line about the session, for a status line")
	return cmd
}

func (p *Process) status(cmd *cobra.Command, c *cairn.Cairn) (status, error) {
	ctx := cmd.Context()
	s := status{Version: p.Version, Driver: store.Driver, Store: c.Path(), Wired: p.wiredHarnesses(cmd)}
	var err error
	if s.Project, err = c.Here(ctx, ""); err != nil {
		return s, err
	}
	if s.Session, err = c.CurrentSession(ctx); err != nil {
		return s, err
	}
	j, err := c.Observations(ctx)
	if err != nil {
		return s, err
	}
	s.Exists = j.Exists()
	if s.Counts, err = browse.CountStored(ctx, j); err != nil {
		return s, err
	}
	if s.Encrypted, err = c.Encrypted(ctx); err != nil {
		return s, err
	}
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(s.Store + suffix); err == nil {
			s.Bytes += info.Size()
		}
	}
	if s.Device, err = c.Device(ctx); err != nil {
		return s, err
	}
	s.Account, err = c.Followers(ctx)
	return s, err
}

func (p *Process) printStatus(s status) error {
	w := p.Out
	fmt.Fprintf(w, "cairn %s (%s)\n", s.Version, s.Driver)
	if wired := strings.Join(s.Wired, ", "); wired != "" {
		fmt.Fprintf(w, "wired    %s\n", wired)
	} else {
		fmt.Fprintln(w, "wired    no agent (`cairn init` does that)")
	}
	if !s.Exists {
		_, err := fmt.Fprintf(w, "store    %s (not there yet: `cairn import` fills it)\n", s.Store)
		return err
	}
	n := s.Counts
	how := ""
	if s.Encrypted {
		how = ", encrypted"
	}
	fmt.Fprintf(w, "store    %s, %.1f MB%s\n", s.Store, float64(s.Bytes)/1e6, how)
	fmt.Fprintf(w, "holds    %s, %d prompts and answers, %s, %s\n", counted(int(n.Observations), "observation"), n.Prompts,
		counted(int(n.Sessions), "session"), counted(int(n.Projects), "project"))
	if s.Project != "" {
		fmt.Fprintf(w, "project  %s\n", s.Project)
	}
	if s.Session != "" {
		fmt.Fprintf(w, "session  %s\n", s.Session)
	}
	if l := n.LastEvent; l != nil {
		fmt.Fprintf(w, "last     #%d %s in %s, %s\n", l.ID, l.ObsType, l.Project, time.Unix(l.Timestamp, 0).UTC().Format(time.RFC3339))
	}
	if s.Device.Note != "" {
		fmt.Fprintf(w, "device   %s\n", printable(s.Device.Note))
	}
	printFollowers(w, s.Account)
	return nil
}
