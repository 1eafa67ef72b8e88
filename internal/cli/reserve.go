package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"

	"github.com/spf13/cobra"
)

func reserveCommand(p *Process) *cobra.Command {
	f := mailing(p)
	var a reservations.ReserveArgs
	var ttl string
	cmd := answering(&f, cobra.Command{
		Use:   "reserve PATH…",
		Short: "Reserve files, so that other agents do not edit them",
		Long: `reserve gives an agent files for a while: paths or globs from the root of the
repository, a folder with all that is below it. What nobody else holds is granted;
what somebody does is shown with its holder, is not granted, and makes the exit code
1. Shared reservations do not stand in each other's way. An advisory one is granted
all the same and keeps nobody from editing.`,
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
		g, err = done(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (reservations.GrantedReservations, error) {
			return o.FileReservationPaths(ctx, who, a)
		})
		f.no = len(g.Conflicts) > 0
		for _, w := range g.Warnings {
			f.say("%s", w)
		}
		return g, err
	}, printGranted)
	cmd.Flags().StringVar(&ttl, "ttl", "", "for how long: seconds, or a duration such as 90m (default 1h, at least 1m)")
	cmd.Flags().BoolVar(&a.Shared, "shared", false, "others may hold the same files shared, too")
	cmd.Flags().BoolVar(&a.Advisory, "advisory", false, "grant it whoever else holds the files, and keep nobody away")
	cmd.Flags().StringVar(&a.Reason, "reason", "", "what for")
	cmd.Flags().StringVar(&a.IdempotencyKey, "key", "", "repeating a command with the same key changes nothing")
	return f.acting(cmd)
}

// someArgs wants at least one argument and says what they are.
func someArgs(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fault.New(fault.Invalid, "usage", "takes "+what).WithHint(seeHelp(cmd))
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
		lines = append(lines, row("granted\t%s\t#%d, %s, until %s", printable(r.PathPattern), r.ID, exclusivity(r.Exclusive), upTo(r.Expires)))
	}
	for _, k := range g.Conflicts {
		for _, h := range k.Holders {
			lines = append(lines, row("held\t%s\tby %s: %s, %s, until %s", printable(k.Path), printable(h.Agent), printable(h.PathPattern), exclusivity(h.Exclusive), upTo(h.Expires)))
		}
	}
	return rows(w, lines)
}

func releaseCommand(p *Process) *cobra.Command {
	f := mailing(p)
	var ids []string
	var force, quiet bool
	var note string
	cmd := answering(&f, cobra.Command{
		Use:   "release [PATH…]",
		Short: "Release reserved files",
		Long: `release ends reservations of an agent: those of the paths and numbers that are
given, or all. With --force it ends one of another agent that is stale (its holder is
silent and nothing happens to the files) or has expired, and writes to the holder;
HumanOverseer may end any.`,
		Example: `  cairn release --as BlueLake
  cairn release internal/ledger --id 12 --as BlueLake
  cairn release --id 7 --force --as BlueLake --note "you were gone for hours"`,
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out any, err error) {
		numbers, err := numbersOf(ids)
		if err != nil {
			return nil, err
		}
		if force && (len(numbers) != 1 || len(args) > 0) {
			return nil, fault.New(fault.Invalid, "usage", "--force requires one --id and no path").WithHint(seeHelp(cmd))
		}
		who, err := f.actor(cmd.Context(), c)
		if err != nil {
			return nil, err
		}
		return done(cmd, c, func(ctx context.Context, o *service.Mail, caller mail.Caller) (any, error) {
			if force {
				return o.ForceReleaseFileReservation(ctx, caller, reservations.ForceArgs{ProjectKey: f.key(c), AgentName: who, ID: numbers[0], Quiet: quiet, Note: note})
			}
			return o.ReleaseFileReservations(ctx, caller, reservations.ReleaseArgs{ProjectKey: f.key(c), AgentName: who, Paths: args, IDs: numbers})
		})
	}, printReleased)
	cmd.Flags().StringSliceVar(&ids, "id", nil, "those with these numbers")
	cmd.Flags().BoolVar(&force, "force", false, "end another agent's")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "do not write to its holder, with --force")
	cmd.Flags().StringVar(&note, "note", "", "a word to its holder, with --force")
	return f.acting(cmd)
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
		_, err = fmt.Fprintf(w, "%s released\n", counted(r.Released, "reservation"))
	case reservations.ForceReleased:
		if r.Already || r.Reservation == nil {
			_, err = fmt.Fprintf(w, "it was released at %s\n", upTo(r.At))
			break
		}
		told := ""
		if r.Reservation.Notified {
			told = ", who got a message"
		}
		_, err = fmt.Fprintf(w, "#%d %s released, of %s%s\n", r.Reservation.ID, printable(r.Reservation.PathPattern), printable(r.Reservation.Agent), told)
	}
	return err
}

func renewCommand(p *Process) *cobra.Command {
	f := mailing(p)
	var ids []string
	var lasting string
	var a reservations.RenewArgs
	cmd := answering(&f, cobra.Command{
		Use:   "renew [PATH…]",
		Short: "Extend reservations",
		Long: `renew lets reservations of an agent last longer: those of the paths and numbers that
are given, or all. One that has expired is renewed if nobody else holds its files.`,
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
		return done(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (reservations.Renewed, error) {
			return o.RenewFileReservations(ctx, who, a)
		})
	}, func(w io.Writer, r reservations.Renewed) error {
		var lines [][]string
		for _, k := range r.Reservations {
			lines = append(lines, row("#%d\t%s\tuntil %s", k.ID, printable(k.PathPattern), upTo(k.New)))
		}
		return rows(w, lines)
	})
	cmd.Flags().StringSliceVar(&ids, "id", nil, "those with these numbers")
	cmd.Flags().StringVar(&lasting, "for", "", "how much longer: seconds, or a duration such as 90m (default 30m)")
	cmd.Flags().StringVar(&a.Until, "until", "", "until a time, such as 2026-03-01T18:00:00Z, instead of --for")
	cmd.MarkFlagsMutuallyExclusive("for", "until")
	return f.acting(cmd)
}

func reservationsCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reservations",
		Short: "Show which files are reserved, and by whom",
		Long: `reservations shows who holds which files. cairn reserve takes some, cairn release
gives them back.`,
		Example: "  cairn reservations list\n  cairn reservations check internal/ledger/post.go\n  cairn reservations list --at \"2h ago\"",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(reservationsListCommand(p), reservationsCheckCommand(p))
	return cmd
}

func reservationsListCommand(p *Process) *cobra.Command {
	f := mailing(p)
	var all bool
	var at string
	cmd := answering(&f, cobra.Command{
		Use:   "list",
		Short: "List the reservations of a project",
		Long: `list prints a line per reservation: its number, holder, files, until when, and what
for. A stale one, whose holder is silent and to whose files nothing happens, may be
ended by others (cairn release --force). --at lists those that were active at a moment.`,
		Example: "  cairn reservations list\n  cairn reservations list --all --json\n  cairn reservations list --at \"2026-11-20 14:00\"",
		Args:    noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (any, error) {
		if at != "" {
			return pastOf(asked(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (mail.Past[[]reservations.ListedReservation], error) {
				return o.FileReservationsAt(ctx, who, f.key(c), all, at)
			}))(&f.answers)
		}
		return asked(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) ([]reservations.ListedReservation, error) {
			return o.FileReservations(ctx, who, f.key(c), all)
		})
	}, nowOrThen(printReservations))
	cmd.Flags().BoolVar(&all, "all", false, "also those that have ended")
	atFlag(cmd, &at)
	return f.reading(cmd)
}

func printReservations(w io.Writer, list []reservations.ListedReservation) error {
	var lines [][]string
	for _, r := range list {
		state := "until " + upTo(r.Expires)
		switch {
		case r.Released != 0:
			state = "released " + upTo(r.Released)
			if r.Ended {
				state += " (its session had ended)"
			}
		case r.Stale:
			state += ", stale"
		}
		lines = append(lines, row("#%d\t%s\t%s\t%s, %s\t%s", r.ID, printable(r.Agent), printable(r.PathPattern), exclusivity(r.Exclusive), state, oneLine(r.Reason)))
	}
	return rows(w, lines)
}

func reservationsCheckCommand(p *Process) *cobra.Command {
	f := mailing(p)
	var a reservations.CheckArgs
	cmd := answering(&f, cobra.Command{
		Use:   "check PATH…",
		Short: "Check whether files are free, or who holds them",
		Long: `check prints for each path whether it could be reserved now, or who stands in the
way, since when and what for; if anybody does, the exit code is 1. With --as the
agent's own reservations do not count.`,
		Example: "  cairn reservations check internal/ledger/post.go --as BlueLake",
		Args:    someArgs("paths or globs"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (reservations.Checked, error) {
		a.ProjectKey, a.Paths, a.AgentName = f.key(c), args, f.as
		if a.AgentName == "" {
			a.AgentName = p.Getenv("CAIRN_AGENT")
		}
		found, err := asked(cmd, c, func(ctx context.Context, o *service.Mail, who mail.Caller) (reservations.Checked, error) {
			return o.CheckFileReservationConflicts(ctx, who, a)
		})
		f.no = len(found.Conflicts) > 0
		return found, err
	}, printChecked)
	cmd.Flags().BoolVar(&a.Shared, "shared", false, "whether they could be reserved shared")
	return f.acting(cmd)
}

func printChecked(w io.Writer, found reservations.Checked) error {
	var lines [][]string
	for _, path := range found.Free {
		lines = append(lines, row("free\t%s", printable(path)))
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
				where = " on " + text(h.Branch)
			}
			lines = append(lines, row("held\t%s\tby %s%s: #%d %s, %s, %s to %s\t%s", printable(k.Path), printable(h.Agent), where, h.ID,
				printable(h.PathPattern), strings.Join(words, ", "), upTo(h.Created), upTo(h.Expires), oneLine(h.Reason)))
		}
	}
	return rows(w, lines)
}
