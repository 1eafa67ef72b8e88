package setupcmd

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/carecmd"
	"cairn/internal/cli/command"
	"cairn/internal/followers"
	"cairn/internal/observation/browse"
	"cairn/internal/store"
)

// status describes cairn's store and its content.
type status struct {
	Version   string             `json:"version"`
	Driver    string             `json:"driver"`
	Store     string             `json:"store"`
	Exists    bool               `json:"exists"`
	Bytes     int64              `json:"bytes"`     // size of the file and its write-ahead log
	Encrypted bool               `json:"encrypted"` // encrypted on disk
	Project   string             `json:"project"`
	Session   string             `json:"session"` // the session that runs this command, "" if none does
	Counts    browse.Stats       `json:"counts"`
	Connected []string           `json:"harnesses"` // harnesses whose settings call cairn
	Device    cairn.DeviceStatus `json:"device"`
	followers.Account
}

func statusCommand(p *command.Process) *cobra.Command {
	var asJSON, line bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show version, store, counts, the last event and the connected agents",
		Long: `status shows cairn's version, the path and content of the store, the project of the
working directory, the session that runs the command, and the connected agents. It does
not check anything; to find problems, use cairn doctor.

Followers read every change of the store: the archive of each project, the vectors of
memories, the replication to a hub. status shows how many changes wait for each follower,
which followers fail, since when and why, and which changes are set aside. cairn retry
makes them try again immediately.

--line prints one line about the session for the status line of an agent program: project,
agent, unread mail and reservations. The session is that of the JSON object on standard
input, as Claude Code passes it, else the session that runs the command. cairn init adds
the line to Claude Code, unless it has another one or you use --no-status-line. To add it
yourself, in ~/.claude/settings.json:

  "statusLine": {"type": "command", "command": "cairn status --line"}`,
		Example: "  cairn status\n  cairn status --json\n  cairn status --line",
		Args:    command.NoArgs,
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			if line {
				return statusLine(p, cmd, c, asJSON)
			}
			s, err := statusOf(p, cmd, c)
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(p.Out, s)
			}
			return printStatus(p, s)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&line, "line", false, "print one line about the session for a status line")
	return cmd
}

func statusOf(p *command.Process, cmd *cobra.Command, c *cairn.Cairn) (status, error) {
	ctx := cmd.Context()
	s := status{Version: p.Version, Driver: store.Driver, Store: c.Path(), Connected: connectedHarnesses(p, cmd)}
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

func printStatus(p *command.Process, s status) error {
	w := p.Out
	fmt.Fprintf(w, "cairn %s (%s)\n", s.Version, s.Driver)
	if connected := strings.Join(s.Connected, ", "); connected != "" {
		fmt.Fprintf(w, "agents   %s\n", connected)
	} else {
		fmt.Fprintln(w, "agents   none connected (`cairn init` connects them)")
	}
	if !s.Exists {
		_, err := fmt.Fprintf(w, "store    %s (does not exist yet: `cairn import` creates it)\n", s.Store)
		return err
	}
	n := s.Counts
	how := ""
	if s.Encrypted {
		how = ", encrypted"
	}
	fmt.Fprintf(w, "store    %s, %.1f MB%s\n", s.Store, float64(s.Bytes)/1e6, how)
	fmt.Fprintf(w, "holds    %s, %d prompts and answers, %s, %s\n", command.Counted(int(n.Observations), "observation"), n.Prompts,
		command.Counted(int(n.Sessions), "session"), command.Counted(int(n.Projects), "project"))
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
		fmt.Fprintf(w, "device   %s\n", command.Printable(s.Device.Note))
	}
	carecmd.PrintFollowers(w, s.Account)
	return nil
}
