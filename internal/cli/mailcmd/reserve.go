package mailcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
)

func reserveCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	var a reservations.ReserveArgs
	var ttl string
	cmd := command.New(&f, cobra.Command{
		Use:   "reserve PATH…",
		Short: "Reserve files, so that other agents do not edit them",
		Long: `reserve reserves files for an agent for a limited time. PATH is a path or glob, relative
to the root of the repository; a folder includes everything below it. Files that another
agent has reserved are not granted. They are printed with their holder, and the exit code
is 1. Shared reservations do not conflict with each other. An advisory reservation is
always granted and does not block edits.`,
		Example: `  cairn reserve internal/ledger --as BlueLake --reason "splitting the package"
  cairn reserve 'docs/**/*.md' README.md --ttl 30m --shared --as BlueLake`,
		Args: someArgs("paths or globs"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (g reservations.GrantedReservations, err error) {
		if a.TTLSeconds, err = lifetimeOf("ttl", ttl); err != nil {
			return g, err
		}
		if a.AgentName, err = f.actor(cmd.Context(), c); err != nil {
			return g, err
		}
		a.ProjectKey, a.Paths = f.key(c), args
		g, err = writeMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (reservations.GrantedReservations, error) {
			return o.FileReservationPaths(ctx, who, a)
		})
		f.No = len(g.Conflicts) > 0
		for _, w := range g.Warnings {
			f.Note("%s", w)
		}
		return g, err
	}, printGranted)
	cmd.Flags().StringVar(&ttl, "ttl", "", "the lifetime: seconds, or a duration such as 90m (default 1h, at least 1m)")
	cmd.Flags().BoolVar(&a.Shared, "shared", false, "allow other agents to reserve the same files as shared")
	cmd.Flags().BoolVar(&a.Advisory, "advisory", false, "reserve the files even if another agent holds them, without blocking edits")
	cmd.Flags().StringVar(&a.Reason, "reason", "", "the reason")
	cmd.Flags().StringVar(&a.IdempotencyKey, "key", "", "idempotency key: a command with a key used before changes nothing")
	return f.actFlags(cmd)
}

// someArgs requires at least one argument; what describes them in the error.
func someArgs(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fault.New(fault.Invalid, "usage", "requires "+what).WithHint(command.SeeHelp(cmd))
		}
		return nil
	}
}

func exclusivity(exclusive bool) string {
	if exclusive {
		return "exclusive"
	}
	return "shared"
}

func printGranted(w io.Writer, g reservations.GrantedReservations) error {
	var lines [][]string
	for _, r := range g.Granted {
		lines = append(lines, command.Row("granted\t%s\t#%d, %s, until %s", command.Printable(r.PathPattern), r.ID, exclusivity(r.Exclusive), formatTime(r.Expires)))
	}
	for _, k := range g.Conflicts {
		for _, h := range k.Holders {
			lines = append(lines, command.Row("held\t%s\tby %s: %s, %s, until %s", command.Printable(k.Path), command.Printable(h.Agent), command.Printable(h.PathPattern), exclusivity(h.Exclusive), formatTime(h.Expires)))
		}
	}
	return command.Rows(w, lines)
}

func releaseCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	var ids []string
	var force, quiet bool
	var note string
	cmd := command.New(&f, cobra.Command{
		Use:   "release [PATH…]",
		Short: "Release reserved files",
		Long: `release ends an agent's reservations: the given paths and numbers, or all. With --force
it ends a stale or expired reservation of another agent, and writes to the holder. A
reservation is stale if its holder is inactive and the files do not change. HumanOverseer
can end any reservation.`,
		Example: `  cairn release --as BlueLake
  cairn release internal/ledger --id 12 --as BlueLake
  cairn release --id 7 --force --as BlueLake --note "you were gone for hours"`,
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out any, err error) {
		numbers, err := numbersOf(ids)
		if err != nil {
			return nil, err
		}
		if force && (len(numbers) != 1 || len(args) > 0) {
			return nil, fault.New(fault.Invalid, "usage", "--force requires one --id and no path").WithHint(command.SeeHelp(cmd))
		}
		who, err := f.actor(cmd.Context(), c)
		if err != nil {
			return nil, err
		}
		return writeMail(cmd, c, func(ctx context.Context, o *service.Mail, caller mail.Caller) (any, error) {
			if force {
				return o.ForceReleaseFileReservation(ctx, caller, reservations.ForceArgs{ProjectKey: f.key(c), AgentName: who, ID: numbers[0], Quiet: quiet, Note: note})
			}
			return o.ReleaseFileReservations(ctx, caller, reservations.ReleaseArgs{ProjectKey: f.key(c), AgentName: who, Paths: args, IDs: numbers})
		})
	}, printReleased)
	cmd.Flags().StringSliceVar(&ids, "id", nil, "the reservations with these numbers")
	cmd.Flags().BoolVar(&force, "force", false, "end another agent's reservation")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "with --force: do not write to the holder")
	cmd.Flags().StringVar(&note, "note", "", "with --force: a note to the holder")
	return f.actFlags(cmd)
}

func numbersOf(ids []string) (all []int64, err error) {
	for _, id := range ids {
		n, err := numberOf("reservation", id)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func printReleased(w io.Writer, out any) (err error) {
	switch r := out.(type) {
	case reservations.ReleasedReservations:
		_, err = fmt.Fprintf(w, "%s released\n", command.Counted(r.Released, "reservation"))
	case reservations.ForceReleased:
		if r.Already || r.Reservation == nil {
			_, err = fmt.Fprintf(w, "it was already released at %s\n", formatTime(r.At))
			break
		}
		notified := ""
		if r.Reservation.Notified {
			notified = ", and its holder was notified"
		}
		_, err = fmt.Fprintf(w, "#%d %s of %s released%s\n", r.Reservation.ID, command.Printable(r.Reservation.PathPattern), command.Printable(r.Reservation.Agent), notified)
	}
	return err
}

func renewCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	var ids []string
	var lasting string
	var a reservations.RenewArgs
	cmd := command.New(&f, cobra.Command{
		Use:   "renew [PATH…]",
		Short: "Extend reservations",
		Long: `renew extends an agent's reservations: the given paths and numbers, or all. An expired
reservation is renewed if no other agent holds its files.`,
		Example: "  cairn renew --as BlueLake\n  cairn renew internal/ledger --for 2h --as BlueLake",
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (r reservations.Renewed, err error) {
		if a.IDs, err = numbersOf(ids); err != nil {
			return r, err
		}
		if a.ExtendSeconds, err = lifetimeOf("for", lasting); err != nil {
			return r, err
		}
		if a.AgentName, err = f.actor(cmd.Context(), c); err != nil {
			return r, err
		}
		a.ProjectKey, a.Paths = f.key(c), args
		return writeMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (reservations.Renewed, error) {
			return o.RenewFileReservations(ctx, who, a)
		})
	}, func(w io.Writer, r reservations.Renewed) error {
		var lines [][]string
		for _, k := range r.Reservations {
			lines = append(lines, command.Row("#%d\t%s\tuntil %s", k.ID, command.Printable(k.PathPattern), formatTime(k.New)))
		}
		return command.Rows(w, lines)
	})
	cmd.Flags().StringSliceVar(&ids, "id", nil, "the reservations with these numbers")
	cmd.Flags().StringVar(&lasting, "for", "", "the additional time: seconds, or a duration such as 90m (default 30m)")
	cmd.Flags().StringVar(&a.Until, "until", "", "the new end, such as 2026-03-01T18:00:00Z, instead of --for")
	cmd.MarkFlagsMutuallyExclusive("for", "until")
	return f.actFlags(cmd)
}

func reservationsCommand(p *command.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reservations",
		Short: "Show which files are reserved, and by whom",
		Long: `reservations shows which agent holds which files. To reserve files use cairn reserve, to
release them cairn release.`,
		Example: "  cairn reservations list\n  cairn reservations check internal/ledger/post.go\n  cairn reservations list --at \"2h ago\"",
		Args:    command.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(reservationsListCommand(p), reservationsCheckCommand(p))
	return cmd
}

func reservationsListCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	var all bool
	var at string
	cmd := command.New(&f, cobra.Command{
		Use:   "list",
		Short: "List the reservations of a project",
		Long: `list prints a line per reservation: number, holder, files, end and reason. A reservation
is stale if its holder is inactive and the files do not change; other agents can end it
with cairn release --force. --at lists the reservations that were active at a past moment.`,
		Example: "  cairn reservations list\n  cairn reservations list --all --json\n  cairn reservations list --at \"2026-11-20 14:00\"",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (any, error) {
		if at != "" {
			return pastOf(readMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (mail.Past[[]reservations.ListedReservation], error) {
				return o.FileReservationsAt(ctx, who, f.key(c), all, at)
			}))(&f.Printer)
		}
		return readMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) ([]reservations.ListedReservation, error) {
			return o.FileReservations(ctx, who, f.key(c), all)
		})
	}, nowOrThen(printReservations))
	cmd.Flags().BoolVar(&all, "all", false, "also ended reservations")
	command.AtFlag(cmd, &at)
	return f.readFlags(cmd)
}

func printReservations(w io.Writer, list []reservations.ListedReservation) error {
	var lines [][]string
	for _, r := range list {
		state := "until " + formatTime(r.Expires)
		switch {
		case r.Released != 0:
			state = "released " + formatTime(r.Released)
			if r.Ended {
				state += " (its session had ended)"
			}
		case r.Stale:
			state += ", stale"
		}
		lines = append(lines, command.Row("#%d\t%s\t%s\t%s, %s\t%s", r.ID, command.Printable(r.Agent), command.Printable(r.PathPattern), exclusivity(r.Exclusive), state, command.OneLine(r.Reason)))
	}
	return command.Rows(w, lines)
}

func reservationsCheckCommand(p *command.Process) *cobra.Command {
	f := newMailFlags(p)
	var a reservations.CheckArgs
	cmd := command.New(&f, cobra.Command{
		Use:   "check PATH…",
		Short: "Check whether files are free, or who holds them",
		Long: `check prints for each path whether it can be reserved now. If another agent holds it,
check prints the holder, the time and the reason, and exits 1. With --as it ignores the
agent's own reservations.`,
		Example: "  cairn reservations check internal/ledger/post.go --as BlueLake",
		Args:    someArgs("paths or globs"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (reservations.Checked, error) {
		a.ProjectKey, a.Paths, a.AgentName = f.key(c), args, f.as
		if a.AgentName == "" {
			a.AgentName = p.Getenv("CAIRN_AGENT")
		}
		found, err := readMail(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (reservations.Checked, error) {
			return o.CheckFileReservationConflicts(ctx, who, a)
		})
		f.No = len(found.Conflicts) > 0
		return found, err
	}, printChecked)
	cmd.Flags().BoolVar(&a.Shared, "shared", false, "check for a shared reservation")
	return f.actFlags(cmd)
}

func printChecked(w io.Writer, found reservations.Checked) error {
	var lines [][]string
	for _, path := range found.Free {
		lines = append(lines, command.Row("free\t%s", command.Printable(path)))
	}
	for _, k := range found.Conflicts {
		for _, h := range k.Holders {
			words := []string{exclusivity(h.Exclusive)}
			if h.Advisory {
				words = append(words, "advisory")
			}
			if h.Stale {
				words = append(words, "stale")
			}
			where := ""
			if h.Branch != nil {
				where = " on " + optionalText(h.Branch)
			}
			lines = append(lines, command.Row("held\t%s\tby %s%s: #%d %s, %s, %s to %s\t%s", command.Printable(k.Path), command.Printable(h.Agent), where, h.ID,
				command.Printable(h.PathPattern), strings.Join(words, ", "), formatTime(h.Created), formatTime(h.Expires), command.OneLine(h.Reason)))
		}
	}
	return command.Rows(w, lines)
}
