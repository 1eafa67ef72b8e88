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

// hooks lets tests control a server. In this build it does nothing (memories §15).
type hooks struct{}

func (hooks) clock() func() time.Time                            { return nil }
func (hooks) processContext(ctx context.Context) context.Context { return ctx }
func (hooks) attach(*cairn.Cairn, net.Addr) error                { return nil }
func (hooks) hub(_ *hub.Hub, l net.Listener) net.Listener        { return l }
func hookCommands(*Process) []*cobra.Command                     { return nil }

// addTestHooks makes a server fail to start if test hooks are requested. A test must not
// mistake this build for one that has them (memories §15).
func (p *Process) addTestHooks(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.Flags().String("test-hooks", "", "")
	_ = cmd.Flags().MarkHidden("test-hooks") // fails only if the flag does not exist
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("test-hooks") || p.Getenv("CAIRN_TEST_HOOKS") != "" {
			return fault.New(fault.Invalid, "usage", "test hooks are not in this build")
		}
		return run(cmd, args)
	}
}
