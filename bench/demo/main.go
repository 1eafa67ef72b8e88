// Command cairn-demo shows what cairn does, on generated sessions or on the user's own
// transcripts. It works in a temporary home, which it removes. It runs the built program as
// agents do: one process per hook event and an MCP client over standard input and output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

func main() {
	// A closed pipe (| head) must not prevent the removal of the folder. So SIGPIPE is handled
	// like the other signals.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := run(ctx, os.Args[1:], os.Stdout, os.Getenv)
	interrupted := ctx.Err() != nil || errors.Is(err, syscall.EPIPE)
	stop()
	switch {
	case err == nil:
		return
	case interrupted:
		fmt.Fprintln(os.Stderr, "cairn-demo: interrupted")
	default:
		fmt.Fprintln(os.Stderr, "cairn-demo:", oneLine(err.Error(), 300))
	}
	os.Exit(1)
}

// options contains the command-line options.
type options struct {
	cairn string // the program under demonstration
	mine  bool
	keep  bool
	pages bool

	pictures bool // only fill the home, for docs/pictures
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("cairn-demo", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.cairn, "cairn", filepath.Join("..", "bin", "cairn"), "the cairn `program` to show")
	f.BoolVar(&o.mine, "mine", false, "show it on your own transcripts instead of invented sessions; they are only read")
	f.BoolVar(&o.keep, "keep", false, "keep the temporary folder and print its path")
	f.BoolVar(&o.pages, "pages", false, "then show the pages over the demo's store, until Ctrl-C")
	f.BoolVar(&o.pictures, "pictures", false, "only record the sessions, with the times of a day, and keep the folder (tag pictures)")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(out)
		f.PrintDefaults()
		return o, err
	}
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, err
}

// run prints the whole demo to out and removes its files, also when ctx ends.
func run(ctx context.Context, args []string, out io.Writer, getenv func(string) string) (err error) {
	o, err := parse(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w (known: --cairn PROGRAM, --mine, --keep, --pages)", err)
	}
	program, err := findProgram(o.cairn)
	if err != nil {
		return err
	}
	h, err := newHome(ctx, program)
	if err != nil {
		return err
	}
	s := newScreen(out, getenv)
	o.keep = o.keep || o.pictures
	defer func() {
		switch {
		case o.keep:
			s.line("\nThe temporary folder stays: %s", h.dir)
			err = errors.Join(err, s.flush())
		default:
			err = errors.Join(err, os.RemoveAll(h.dir))
		}
	}()
	if o.pictures {
		return h.fillForPictures(ctx)
	}
	d := demo{screen: s, home: h}
	if err := d.show(ctx, o, getenv); err != nil {
		return err
	}
	if err := s.flush(); err != nil || !o.pages {
		return err
	}
	return h.showPages(ctx, out, getenv)
}

// showPages serves the pages over the demo's recordings until it is interrupted.
func (h *home) showPages(ctx context.Context, out io.Writer, getenv func(string) string) error {
	cmd := h.command(ctx, h.dir, "open", "--http", "127.0.0.1:0")
	for _, name := range []string{"PATH", "BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		if value := getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil // the user ends it with Ctrl-C
	}
	return err
}

// findProgram returns the absolute path of an executable file.
func findProgram(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	if err != nil && runtime.GOOS == "windows" {
		abs += ".exe"
		info, err = os.Stat(abs)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("there is no program at %s: run `make build` first, or name one with --cairn", path)
	case err != nil:
		return "", err
	case info.IsDir() || runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return "", fmt.Errorf("%s is not a program: run `make build` first, or name one with --cairn", path)
	}
	return abs, nil
}

// demo is one run of the demo.
type demo struct {
	*screen
	home    *home
	keySent int // number of hook payloads that contained the generated key
}

func (d *demo) show(ctx context.Context, o options, getenv func(string) string) error {
	d.say("cairn remembers what coding agents did and shows it to the next session. All of this is the real program at " +
		"work, in a temporary home that is removed at the end.")
	if o.mine {
		found, err := d.showMine(ctx, getenv)
		if err != nil {
			return err
		}
		if found {
			return d.howToUse(ctx)
		}
	}
	if err := d.showInvented(ctx); err != nil {
		return err
	}
	if err := d.howToUse(ctx); err != nil {
		return err
	}
	return d.showPages(ctx)
}

// showInvented replays the bundled sessions and asks about them.
func (d *demo) showInvented(ctx context.Context) error {
	key := inventedKey()
	if err := d.replay(ctx, key); err != nil {
		return err
	}
	if err := d.newSession(ctx); err != nil {
		return err
	}
	err := d.interview(ctx, d.home.repos["shop"], plan{
		question:     "Has TestRefundWindow failed before?",
		queries:      []map[string]any{{"query": "TestRefundWindow", "obs_type": "command_error"}},
		oldest:       true,
		lastQuestion: "One more: what was decided about amounts, in whatever project?",
		lastQuery:    map[string]any{"query": "decision amounts", "obs_type": "user_prompt", "project": "*"},
	})
	if err != nil {
		return err
	}
	if err := d.findKey(ctx, key); err != nil {
		return err
	}
	if err := d.forget(ctx); err != nil {
		return err
	}
	return d.connect(ctx)
}
