package memorycmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/httpapi"
	"cairn/internal/hub"
	"cairn/internal/hub/database"
)

// hubFlags are the flags of the hub's commands and of its server.
type hubFlags struct {
	database, replica string
	pool              int
	listen            string
	cert, key         string
	insecure          bool
}

func hubCommand(p *command.Process) *cobra.Command {
	var f hubFlags
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Run a hub, the server through which devices share memories",
		Long: `hub runs the server through which the devices of one or many users share memories. All
devices must be able to reach it. Its database is a SQLite file or PostgreSQL (also
databases with the same protocol). It runs until it is stopped:

    cairn hub --listen 127.0.0.1:8766
    cairn hub --listen :8766 --tls-cert hub.pem --tls-key hub-key.pem \
        --database 'postgres://cairn@db.example/cairn?sslmode=verify-full'

Every device needs a token. The token decides whose memories the device shares:

    cairn hub token create --user new --device desk

Any number of hubs can use one PostgreSQL database, behind a load balancer. If
PostgreSQL can fail over to another server (Patroni, repmgr …), name all its servers.
The hub then uses the writable one:

    cairn hub --database 'postgres://cairn@db1,db2,db3/cairn?target_session_attrs=read-write'

With synchronous replication of PostgreSQL no acknowledged write is lost in a failover
(Patroni: synchronous_mode, and watchdog mode required).

Without TLS the hub listens only on addresses of this machine. --insecure-http allows
others, for instance behind a proxy that encrypts. Set an address with a password in
CAIRN_HUB_DATABASE, because other users can read the command line.`,
		Example: "  cairn hub --listen 127.0.0.1:8766\n  cairn hub token create --user new --device laptop\n  cairn hub token list",
		Args:    command.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return serveHub(p, cmd, f) },
	}
	p.AddTestHooks(cmd)
	all := cmd.PersistentFlags()
	all.StringVar(&f.database, "database", "", "`ADDRESS` of the hub's database: sqlite:PATH or postgres://… (CAIRN_HUB_DATABASE; default: hub.db in the data directory)")
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8766", "listen on `ADDR` (HOST:PORT; port 0 means a free port)")
	flags.StringVar(&f.cert, "tls-cert", "", "serve HTTPS with the certificate in this PEM `FILE`")
	flags.StringVar(&f.key, "tls-key", "", "the certificate's key, a PEM `FILE`")
	flags.BoolVar(&f.insecure, "insecure-http", false, "allow an ADDR that other machines can reach without TLS; tokens and texts are sent unencrypted")
	flags.IntVar(&f.pool, "db-pool", 0, "maximum number of database connections (default: 4 for each processor, at most 32)")
	flags.StringVar(&f.replica, "read-database", "", "`URL` of a PostgreSQL replica for requests that only read")
	cmd.AddCommand(hubInitCommand(p, &f), hubRestoredCommand(p, &f), hubTokenCommand(p, &f), hubJoinCommand(p), hubLeaveCommand(p))
	return cmd
}

// openHub opens the hub's database.
func openHub(p *command.Process, cmd *cobra.Command, f hubFlags) (*hub.Hub, error) {
	address, err := p.HubDatabase(cmd, f.database)
	if err != nil {
		return nil, err
	}
	if f.pool < 0 || f.pool > 1000 {
		return nil, fault.New(fault.Invalid, "usage", "--db-pool must be between 1 and 1000").WithHint(command.SeeHelp(cmd))
	}
	c := hub.Config{Database: address, ReadDatabase: f.replica, Pool: f.pool, Clock: p.Hooks.Clock()}
	if text := p.Setting("memory.max_context_chars"); text != "" {
		if c.MaxContext, err = strconv.Atoi(text); err != nil || c.MaxContext < 1 {
			return nil, fault.New(fault.Invalid, "usage", "CAIRN_MEMORY_MAX_CONTEXT_CHARS must be a number above 0")
		}
	}
	c.Log = slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return hub.Open(cmd.Context(), c)
}

// serveHub serves until it is stopped.
func serveHub(p *command.Process, cmd *cobra.Command, f hubFlags) (err error) {
	if err := command.RefuseBlank(cmd, "listen", "tls-cert", "tls-key", "database", "read-database"); err != nil {
		return err
	}
	var secure *tls.Config
	switch {
	case (f.cert == "") != (f.key == ""):
		return fault.New(fault.Invalid, "usage", "--tls-cert and --tls-key require each other").WithHint(command.SeeHelp(cmd))
	case f.cert != "":
		if secure, err = hub.TLS(f.cert, f.key); err != nil {
			return err
		}
	}
	l, err := httpapi.Listen(cmd.Context(), f.listen, f.insecure || secure != nil)
	if fault.HasCode(err, "not_loopback") {
		return fault.As(err).WithHint("give --tls-cert and --tls-key, or --insecure-http if something in front of it encrypts")
	}
	if err != nil {
		return err
	}
	h, err := openHub(p, cmd, f)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	scheme := "http"
	if secure != nil {
		scheme = "https"
	}
	signal.Ignore(syscall.SIGPIPE)
	context.AfterFunc(cmd.Context(), func() { signal.Reset(os.Interrupt, syscall.SIGTERM) }) // a second one ends at once
	fmt.Fprintf(p.Err, "cairn: hub at %s://%s\n", scheme, l.Addr())
	return h.Serve(cmd.Context(), p.Hooks.Hub(h, l), p.Version, secure)
}

func hubInitCommand(p *command.Process, f *hubFlags) *cobra.Command {
	var partitions int
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create the hub's tables, divided into partitions",
		Long: `init creates the tables in an empty database. A hub also does that at its first start,
but only init can choose the number of partitions of the entry tables, which cannot be
changed later. For PostgreSQL choose 1 for up to about a hundred million entries, else
64. init is idempotent.`,
		Example: "  cairn hub init --partitions 64 --database postgres://cairn@db.example/cairn",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, err := p.HubDatabase(cmd, f.database)
			if err != nil {
				return err
			}
			if err := database.Init(cmd.Context(), address, partitions); err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Out, "the hub's tables exist, partitions: %d\n", partitions)
			return err
		},
	}
	cmd.Flags().IntVar(&partitions, "partitions", 1, "divide the tables of entries by memory into `N`; PostgreSQL only")
	return cmd
}

func hubRestoredCommand(p *command.Process, f *hubFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "restored",
		Short: "Tell devices that an older backup of the hub was restored",
		Long: `restored increases the hub's epoch. Run it once after you have restored a backup of the
hub's database. Devices then send again what the hub no longer has, under the old keys
and ids. Only data that no device has is lost.

Devices detect an older database automatically. They stop until you run restored or
restore a newer backup; cairn replication status and cairn doctor report hub_restored.`,
		Args: command.NoArgs,
		RunE: onHub(p, f, func(cmd *cobra.Command, h *hub.Hub, _ []string) error {
			epoch, err := h.Restored(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Out, "epoch %d: devices will send missing data again\n", epoch)
			return err
		}),
	}
}

// onHub returns a command's function that opens the hub's database, calls run and
// closes it.
func onHub(p *command.Process, f *hubFlags, run func(*cobra.Command, *hub.Hub, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		h, err := openHub(p, cmd, *f)
		if err != nil {
			return err
		}
		return errors.Join(run(cmd, h, args), h.Close())
	}
}

func hubTokenCommand(p *command.Process, f *hubFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke the tokens of devices",
		Args:  command.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(hubTokenCreateCommand(p, f), hubTokenListCommand(p, f), hubTokenRevokeCommand(p, f))
	return cmd
}

func hubTokenCreateCommand(p *command.Process, f *hubFlags) *cobra.Command {
	var a hub.TokenArgs
	var level string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create --user UUID|new",
		Short: "Create a token and print it, once",
		Long: `create creates a token for one device of a user and prints it. The hub stores only its
hash. --user is the UUID that was printed with an earlier token, or new for a new user.
The token decides whose memories the device shares.`,
		Example: "  cairn hub token create --user new --device desk\n  cairn hub token create --user 5f0c… --device ci --level read --expires 720h",
		Args:    command.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(command.RequireFlags(cmd, "user"), command.RefuseBlank(cmd, "user", "level"))
		},
		RunE: onHub(p, f, func(cmd *cobra.Command, h *hub.Hub, _ []string) error {
			a.Level = hub.Level(level)
			t, secret, err := h.CreateToken(cmd.Context(), a)
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(p.Out, struct {
					Secret string `json:"token"`
					hub.Token
				}{secret, t})
			}
			fmt.Fprintf(p.Err, "cairn: token %s of user %s, level %s\n", t.ID, t.UserID, t.Level)
			_, err = fmt.Fprintln(p.Out, secret)
			return err
		}),
	}
	cmd.Flags().StringVar(&a.UserID, "user", "", "the token's user: a `UUID`, or new")
	cmd.Flags().StringVar(&a.Device, "device", "", "a `NAME` that identifies the device in the list")
	cmd.Flags().StringVar(&level, "level", string(hub.LevelAdmin), "permissions: read, write (all except delete) or admin")
	cmd.Flags().DurationVar(&a.Expires, "expires", 0, "time until the token expires, such as 720h (default: never)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the user")
	return cmd
}

func hubTokenListCommand(p *command.Process, f *hubFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without the secrets",
		Args:  command.NoArgs,
		RunE: onHub(p, f, func(cmd *cobra.Command, h *hub.Hub, _ []string) error {
			tokens, err := h.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(p.Out, map[string]any{"tokens": tokens, "count": len(tokens)})
			}
			t := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "ID\tUSER\tDEVICE\tLEVEL\tCREATED\tLAST USED\tSTATE")
			for _, k := range tokens {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.UserID, command.Printable(k.Device), k.Level, k.Created.Format(time.DateOnly), k.LastUsed, tokenState(k))
			}
			return t.Flush()
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// tokenState describes whether a token is valid.
func tokenState(k hub.Token) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked " + k.Revoked.Format(time.DateOnly)
	case k.Expires.IsZero():
		return "valid"
	case time.Now().After(k.Expires):
		return "expired " + k.Expires.Format(time.DateOnly)
	}
	return "valid until " + k.Expires.Format(time.DateOnly)
}

func hubTokenRevokeCommand(p *command.Process, f *hubFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a token; running hubs refuse it within a minute",
		Example: "  cairn hub token list\n  cairn hub token revoke 3fa4c1d20b77",
		Args:    command.ExactArgs(1, "the id of a token"),
		RunE: onHub(p, f, func(cmd *cobra.Command, h *hub.Hub, args []string) error {
			t, err := h.Revoke(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Out, "revoked %s of user %s\n", t.ID, t.UserID)
			return err
		}),
	}
}
