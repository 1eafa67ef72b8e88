package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/fault"
	"cairn/internal/httpapi"
	"cairn/internal/hub"
)

// hubFlags are what all commands of the hub need, and what its server needs.
type hubFlags struct {
	database, replica string
	pool              int
	listen            string
	cert, key         string
	insecure          bool
}

func hubCommand(p *Process) *cobra.Command {
	var f hubFlags
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Run a hub, the server through which devices share memories",
		Long: `hub is the server through which the devices of a user, or of many users, share
memories. It runs anywhere that they can reach, on its own SQLite file or on
PostgreSQL (and what speaks its protocol), until it is stopped:

    cairn hub --listen 127.0.0.1:8766
    cairn hub --listen :8766 --tls-cert hub.pem --tls-key hub-key.pem \
        --database 'postgres://cairn@db.example/cairn?sslmode=verify-full'

Every device needs a token, and its token says whose memories it shares:

    cairn hub token create --user new --device desk

Any number of hubs may serve one PostgreSQL, behind any balancer. Where PostgreSQL
fails over to another server (Patroni, repmgr …), name all of its servers; the hub
goes to the one that can be written to:

    cairn hub --database 'postgres://cairn@db1,db2,db3/cairn?target_session_attrs=read-write'

Nothing acknowledged is lost then if PostgreSQL replicates synchronously (Patroni:
synchronous_mode, and watchdog mode required).

Without TLS only addresses of this machine are listened on, unless --insecure-http
says that something in front of it encrypts. An address with a password is better
given in CAIRN_HUB_DATABASE than on the command line, which others can read.`,
		Example: "  cairn hub --listen 127.0.0.1:8766\n  cairn hub token create --user new --device laptop\n  cairn hub token list",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.hub(cmd, f) },
	}
	p.hooked(cmd)
	all := cmd.PersistentFlags()
	all.StringVar(&f.database, "database", "", "`ADDRESS` of the hub's database: sqlite:PATH or postgres://… (CAIRN_HUB_DATABASE; default: hub.db in the data directory)")
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8766", "listen on `ADDR` (HOST:PORT; port 0 takes a free one)")
	flags.StringVar(&f.cert, "tls-cert", "", "speak HTTPS with the certificate in this PEM `FILE`")
	flags.StringVar(&f.key, "tls-key", "", "the certificate's key, a PEM `FILE`")
	flags.BoolVar(&f.insecure, "insecure-http", false, "let ADDR be one that other machines can reach without TLS; tokens and texts cross the network in the clear")
	flags.IntVar(&f.pool, "db-pool", 0, "connections to the database (default: 4 for each processor, at most 32)")
	flags.StringVar(&f.replica, "read-database", "", "`URL` of a PostgreSQL replica that serves what only reads")
	cmd.AddCommand(hubInitCommand(p, &f), hubRestoredCommand(p, &f), hubTokenCommand(p, &f), hubJoinCommand(p), hubLeaveCommand(p))
	return cmd
}

// address is where the hub's database is.
func (p *Process) hubDatabase(cmd *cobra.Command, f hubFlags) (string, error) {
	if f.database == "" {
		f.database = p.setting("hub.database")
	}
	if f.database != "" {
		return f.database, nil
	}
	config, err := p.config(cmd)
	return "sqlite:" + filepath.Join(config.Dir, "hub.db"), err
}

// openHub opens the hub's database.
func (p *Process) openHub(cmd *cobra.Command, f hubFlags) (*hub.Hub, error) {
	address, err := p.hubDatabase(cmd, f)
	if err != nil {
		return nil, err
	}
	if f.pool < 0 || f.pool > 1000 {
		return nil, fault.New(fault.Invalid, "usage", "--db-pool is 1 to 1000").WithHint(seeHelp(cmd))
	}
	c := hub.Config{Database: address, ReadDatabase: f.replica, Pool: f.pool, Clock: p.hooks.clock()}
	if text := p.setting("memory.max_context_chars"); text != "" {
		if c.MaxContext, err = strconv.Atoi(text); err != nil || c.MaxContext < 1 {
			return nil, fault.New(fault.Invalid, "usage", "CAIRN_MEMORY_MAX_CONTEXT_CHARS must be a number above 0")
		}
	}
	c.Log = slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return hub.Open(cmd.Context(), c)
}

// hub serves until it is stopped.
func (p *Process) hub(cmd *cobra.Command, f hubFlags) (err error) {
	if err := given(cmd, "listen", "tls-cert", "tls-key", "database", "read-database"); err != nil {
		return err
	}
	var secure *tls.Config
	switch {
	case (f.cert == "") != (f.key == ""):
		return fault.New(fault.Invalid, "usage", "--tls-cert and --tls-key go together").WithHint(seeHelp(cmd))
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
	h, err := p.openHub(cmd, f)
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
	return h.Serve(cmd.Context(), p.hooks.hub(h, l), p.Version, secure)
}

func hubInitCommand(p *Process, f *hubFlags) *cobra.Command {
	var partitions int
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create the hub's tables, divided into partitions",
		Long: `init makes the tables in an empty database. A hub does that by itself when it
first starts; init is for choosing how many partitions the tables of entries have,
which cannot be changed later. One is right for PostgreSQL up to about a hundred
million entries, 64 above. Repeating it does nothing.`,
		Example: "  cairn hub init --partitions 64 --database postgres://cairn@db.example/cairn",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, err := p.hubDatabase(cmd, *f)
			if err != nil {
				return err
			}
			if err := hub.Init(cmd.Context(), address, partitions); err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Out, "the hub's tables are there, partitions: %d\n", partitions)
			return err
		},
	}
	cmd.Flags().IntVar(&partitions, "partitions", 1, "divide the tables of entries by memory into `N`; PostgreSQL only")
	return cmd
}

func hubRestoredCommand(p *Process, f *hubFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "restored",
		Short: "Tell devices that an older backup of the hub was restored",
		Long: `restored raises the hub's epoch. Devices that see the new one send again what they
hold beyond what the hub has, under the old keys and ids: only what no device holds
any more is lost. Run it once after restoring a backup of the hub's database. Devices
recognise an older database themselves: until the epoch rises, or the newer backup is
restored, they stop, and cairn replication status and cairn doctor report hub_restored.`,
		Args: noArgs,
		RunE: p.onHub(f, func(cmd *cobra.Command, h *hub.Hub, _ []string) error {
			epoch, err := h.Restored(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Out, "epoch %d: devices will send again what the hub lacks\n", epoch)
			return err
		}),
	}
}

// onHub makes a command's function of one that needs the hub's database.
func (p *Process) onHub(f *hubFlags, run func(*cobra.Command, *hub.Hub, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		h, err := p.openHub(cmd, *f)
		if err != nil {
			return err
		}
		return errors.Join(run(cmd, h, args), h.Close())
	}
}

func hubTokenCommand(p *Process, f *hubFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke the tokens of devices",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(hubTokenCreateCommand(p, f), hubTokenListCommand(p, f), hubTokenRevokeCommand(p, f))
	return cmd
}

func hubTokenCreateCommand(p *Process, f *hubFlags) *cobra.Command {
	var a hub.TokenArgs
	var level string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create --user UUID|new",
		Short: "Create a token and print it, once",
		Long: `create makes a token for one device of a user and prints it; the hub keeps only its
hash. The user is the UUID that an earlier token told, or new for a user of its own.
The token decides whose memories the device shares.`,
		Example: "  cairn hub token create --user new --device desk\n  cairn hub token create --user 5f0c… --device ci --level read --expires 720h",
		Args:    noArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(wanted(cmd, "user"), given(cmd, "user", "level"))
		},
		RunE: p.onHub(f, func(cmd *cobra.Command, h *hub.Hub, _ []string) error {
			a.Level = hub.Level(level)
			t, secret, err := h.CreateToken(cmd.Context(), a)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(p.Out, struct {
					Secret string `json:"token"`
					hub.Token
				}{secret, t})
			}
			fmt.Fprintf(p.Err, "cairn: token %s of user %s, level %s\n", t.ID, t.UserID, t.Level)
			_, err = fmt.Fprintln(p.Out, secret)
			return err
		}),
	}
	cmd.Flags().StringVar(&a.UserID, "user", "", "whose token it is: a `UUID`, or new")
	cmd.Flags().StringVar(&a.Device, "device", "", "a `NAME` by which you will know it again")
	cmd.Flags().StringVar(&level, "level", string(hub.LevelAdmin), "what its bearer may do: read, write (all but delete) or admin")
	cmd.Flags().DurationVar(&a.Expires, "expires", 0, "when it ends by itself, such as 720h (default: never)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the user")
	return cmd
}

func hubTokenListCommand(p *Process, f *hubFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without the secrets",
		Args:  noArgs,
		RunE: p.onHub(f, func(cmd *cobra.Command, h *hub.Hub, _ []string) error {
			tokens, err := h.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(p.Out, map[string]any{"tokens": tokens, "count": len(tokens)})
			}
			t := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "ID\tUSER\tDEVICE\tLEVEL\tCREATED\tLAST USED\tSTATE")
			for _, k := range tokens {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.UserID, printable(k.Device), k.Level, k.Created.Format(time.DateOnly), k.LastUsed, tokenState(k))
			}
			return t.Flush()
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// tokenState says in a word whether a token lets anyone in.
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

func hubTokenRevokeCommand(p *Process, f *hubFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a token; running hubs refuse it within a minute",
		Example: "  cairn hub token list\n  cairn hub token revoke 3fa4c1d20b77",
		Args:    exactArgs(1, "the id of a token"),
		RunE: p.onHub(f, func(cmd *cobra.Command, h *hub.Hub, args []string) error {
			t, err := h.Revoke(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Out, "revoked %s of user %s\n", t.ID, t.UserID)
			return err
		}),
	}
}
