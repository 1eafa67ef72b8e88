//go:build !testhooks

package cli

import (
	"context"
	"net"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/hub"
)

// hooks is what a test does to a server: nothing in this build (memories §15).
type hooks struct{}

func (hooks) clock() func() time.Time                     { return nil }
func (hooks) life(ctx context.Context) context.Context    { return ctx }
func (hooks) serving(*cairn.Cairn, net.Addr) error        { return nil }
func (hooks) hub(_ *hub.Hub, l net.Listener) net.Listener { return l }
func hookCommands(*Process) []*cobra.Command              { return nil }

// hooked makes a server refuse to start where test hooks are asked for, which this
// build has none of: a test must not take it for one that has (memories §15).
func (p *Process) hooked(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.Flags().String("test-hooks", "", "")
	_ = cmd.Flags().MarkHidden("test-hooks") // it is there
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("test-hooks") || p.Getenv("CAIRN_TEST_HOOKS") != "" {
			return fault.New(fault.Invalid, "usage", "test hooks are not in this build")
		}
		return run(cmd, args)
	}
}
