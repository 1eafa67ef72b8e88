//go:build testhooks

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/hub"
	"cairn/internal/settings"
	"cairn/internal/testhooks"
)

// hooks lets tests control a server (memories §15). Without --test-hooks and
// CAIRN_TEST_HOOKS it does nothing, as in other builds.
type hooks struct {
	device *testhooks.Device
	center *testhooks.Hub
	cmd    *cobra.Command  // the serving command
	root   context.Context // of the process; a restarted server keeps it
}

// Clock returns the clock of the store or hub, nil for the system's.
func (h *hooks) Clock() func() time.Time {
	switch {
	case h.device != nil:
		return h.device.Now
	case h.center != nil:
		return h.center.Now
	}
	return nil
}

// ProcessContext returns the context that ends with the process. ctx ends with one server.
func (h *hooks) ProcessContext(ctx context.Context) context.Context {
	if h.root != nil {
		return h.root
	}
	return ctx
}

// Attach connects the control listener to a device's server at an address. A restarted
// server listens at the same address.
func (h *hooks) Attach(c *cairn.Cairn, at net.Addr) error {
	if h.device == nil {
		return nil
	}
	h.device.Serving(c)
	return h.cmd.Flags().Set("http", at.String())
}

// Hub returns the listener that a hub must use.
func (h *hooks) Hub(served *hub.Hub, l net.Listener) net.Listener {
	if h.center == nil {
		return l
	}
	return h.center.Opened(served, l)
}

// AddTestHooks adds a control listener to a server, if both the flag and the variable
// request one.
func (p *Process) AddTestHooks(cmd *cobra.Command) {
	run := cmd.RunE
	addr := cmd.Flags().String("test-hooks", "", "let tests control this process at `ADDR`, with CAIRN_TEST_HOOKS=1")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *addr == "" || p.Getenv("CAIRN_TEST_HOOKS") != "1" {
			return run(cmd, args)
		}
		p.Hooks.cmd, p.Hooks.root = cmd, cmd.Context()
		ctx, cancel := context.WithCancel(cmd.Context())
		defer cancel()
		if cmd.Name() == "hub" {
			return p.runHubWithHooks(ctx, *addr, func() error { return run(cmd, args) })
		}
		if !cmd.Flags().Changed("http") {
			return fault.New(fault.Invalid, "usage", "--test-hooks requires --http")
		}
		return p.runDeviceWithHooks(ctx, *addr, func(ctx context.Context) error {
			cmd.SetContext(ctx)
			return run(cmd, args)
		})
	}
}

func (p *Process) runDeviceWithHooks(ctx context.Context, addr string, run func(context.Context) error) error {
	config, err := p.Config(p.Hooks.cmd)
	if err != nil {
		return err
	}
	if config.DB == "" {
		config.DB = filepath.Join(config.Dir, "cairn.db")
	}
	getenv := p.Getenv
	config.Setting = func(key string) string { return getenv(settings.EnvName(key)) }
	d, err := testhooks.NewDevice(config)
	if err != nil {
		return err
	}
	p.Hooks.device = d
	p.Getenv = func(name string) string {
		if text, ok := d.Setting(name); ok {
			return text
		}
		return getenv(name)
	}
	if err := d.Listen(ctx, addr, p.Err); err != nil {
		return err
	}
	return d.Run(ctx, run)
}

func (p *Process) runHubWithHooks(ctx context.Context, addr string, run func() error) error {
	named, err := p.Hooks.cmd.Flags().GetString("database")
	if err != nil {
		return err
	}
	at, err := p.HubDatabase(p.Hooks.cmd, named)
	if err != nil {
		return err
	}
	path, isFile := strings.CutPrefix(at, "sqlite:")
	if !isFile {
		config, err := p.Config(p.Hooks.cmd)
		if err != nil {
			return err
		}
		path = filepath.Join(config.Dir, "hub.db")
	}
	if p.Hooks.center, err = testhooks.NewHub(path); err != nil {
		return err
	}
	if err := p.Hooks.center.Listen(ctx, addr, p.Err); err != nil {
		return err
	}
	return run()
}

// HookCommands returns the commands that only test builds have.
func HookCommands(p *Process) []*cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "testctl --url URL VERB [JSON]",
		Short: "Inject faults into a server of a test build, and read its state",
		Long: `testctl sends a verb to the control listener of a server and prints the response. The
server prints the listener's URL in the line "test-hooks: URL". A verb is a path below
/test/, such as state or backend/entries?memory=ID. Verbs that only read accept their
query as JSON.`,
		Example: "  cairn testctl --url http://127.0.0.1:9001 crash-point '{\"at\":\"after_lease\"}'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return fault.New(fault.Invalid, "usage", "requires a verb, and optionally its JSON")
			}
			return nil
		},
		PreRunE: func(cmd *cobra.Command, _ []string) error { return RequireFlags(cmd, "url") },
		RunE: func(cmd *cobra.Command, args []string) error {
			method, target, body, err := controlRequest(at, append(args, "")[0], append(args, "")[1])
			if err != nil {
				return err
			}
			var out json.RawMessage
			if err := testhooks.Call(cmd.Context(), method, target, body, &out); err != nil {
				return errors.Join(PrintEnvelope(p.Err, err), ExitError(ExitCode(err)))
			}
			_, err = fmt.Fprintf(p.Out, "%s\n", out)
			return err
		},
	}
	cmd.Flags().StringVar(&at, "url", "", "the control listener's `URL`")
	return []*cobra.Command{cmd}
}

// controlRequest returns the HTTP request for a verb.
func controlRequest(at, verb, text string) (method, target string, body any, err error) {
	target = strings.TrimSuffix(at, "/") + "/test/" + strings.TrimPrefix(strings.TrimPrefix(verb, "/"), "test/")
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(verb, "/"), "test/"), "?")
	looks := slices.Contains([]string{"state", "counts", "context-rows", "job", "backend/entries", "backend/ops", "backend/attempts"}, name)
	if !looks && (name != "crash-point" || text != "") {
		if text == "" {
			text = "{}"
		}
		return http.MethodPost, target, json.RawMessage(text), nil
	}
	if text == "" {
		return http.MethodGet, target, nil, nil
	}
	var given map[string]any
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return "", "", nil, fault.Wrap(err, fault.Invalid, "usage", "the arguments are not a JSON object")
	}
	q := url.Values{}
	for k, v := range given {
		q.Set(k, fmt.Sprint(v))
	}
	return http.MethodGet, target + "?" + q.Encode(), nil, nil
}
