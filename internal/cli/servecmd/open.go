package servecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/cli/setupcmd"
	"cairn/internal/doctor"
	"cairn/internal/fault"
	"cairn/internal/httpapi"
	"cairn/internal/store"
	"cairn/internal/web"
)

// defaultAddress is the address at which open looks for a server, or else starts one.
const defaultAddress = "127.0.0.1:8765"

func openCommand(p *command.Process) *cobra.Command {
	var addr string
	var printed bool
	cmd := &cobra.Command{
		Use:   "open [PAGE]",
		Short: "Show what agents do and did, in the browser",
		Long: `open shows the pages of cairn in your browser. It signs you in with a link that works
once, within a minute. PAGE is one of
  ` + pageNames() + `
or the path of a page, such as "/search?q=refunds". The default is today.

If a server of this store listens at the address, open uses it. Otherwise it serves the
pages itself until you stop it with Ctrl-C. Nothing runs in the background.`,
		Example: "  cairn open\n  cairn open records\n  cairn open --print   # only print the link",
		Args:    cobra.MaximumNArgs(1),
		RunE: p.WithCairn(store.Server, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			page, err := pageNamed(append(args, "today")[0])
			if err != nil {
				return err
			}
			if err := command.RefuseBlank(cmd, "http"); err != nil {
				return err
			}
			show := func(ctx context.Context, at string) error { return showPage(p, ctx, c.Dir(), at, page, printed) }
			if isServing(cmd.Context(), addr) {
				return show(cmd.Context(), addr)
			}
			ready := func(at string) {
				go func() { // some browsers only return when they are closed
					if err := show(cmd.Context(), at); err != nil {
						fmt.Fprintln(p.Err, "cairn:", fault.Line("open", err))
					}
				}()
			}
			check := func(ctx context.Context) (doctor.Diagnosis, error) {
				return setupcmd.Diagnose(p, ctx, cmd, doctor.Args{})
			}
			return serve(p, cmd.Context(), c, serveOptions{web: listener{addr: addr, ready: ready, doctor: check}})
		}),
	}
	cmd.Flags().StringVar(&addr, "http", defaultAddress, "the `ADDR` of the server")
	cmd.Flags().BoolVar(&printed, "print", false, "print the link instead of opening it")
	return cmd
}

// pageNamed returns the path of a page, given by its name or path.
func pageNamed(name string) (string, error) {
	if u, err := url.ParseRequestURI(name); err == nil && strings.HasPrefix(name, "/") && web.Covers(u.EscapedPath()) {
		return name, nil
	}
	for _, s := range web.Sections() {
		if strings.EqualFold(s.Name, name) {
			return s.Path, nil
		}
	}
	return "", fault.Newf(fault.Invalid, "usage", "there is no page %.40q", name).
		WithHint("the pages are " + pageNames() + "; a path begins with /")
}

// pageNames lists the pages that have a name.
func pageNames() string {
	var names []string
	for _, s := range web.Sections() {
		names = append(names, strings.ToLower(s.Name))
	}
	return strings.Join(names, ", ")
}

// isServing reports whether a cairn server responds at an address.
func isServing(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/health", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	var health struct{ Version, Schema any }
	return json.NewDecoder(answer.Body).Decode(&health) == nil && health.Version != nil && health.Schema != nil
}

// showPage opens a page in the browser. It prints the link instead if printed is set or
// there is no browser.
func showPage(p *command.Process, ctx context.Context, dir, addr, page string, printed bool) error {
	path, err := httpapi.SignInLink(dir, page, time.Now())
	if err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fault.Wrap(err, fault.Invalid, "usage", "the address has no port")
	}
	link := "http://" + addr + path
	if !printed {
		if err := openBrowser(p, ctx, link); err == nil {
			_, err = fmt.Fprintf(p.Err, "cairn: http://%s%s is open in your browser\n", addr, page)
			return err
		}
		fmt.Fprintln(p.Err, "cairn: no browser could be started; open this link within a minute:")
	}
	_, err = fmt.Fprintln(p.Out, link)
	return err
}

// openBrowser opens a link with the user's browser: BROWSER, else the system's default.
func openBrowser(p *command.Process, ctx context.Context, link string) error {
	program, args := "xdg-open", []string{link}
	switch {
	case p.Getenv("BROWSER") != "":
		program = p.Getenv("BROWSER")
	case runtime.GOOS == "darwin":
		program = "open"
	case runtime.GOOS == "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", link}
	}
	return exec.CommandContext(ctx, program, args...).Run()
}
