//go:build !testhooks

package command

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

// Clock returns nil, for the system's clock.
func (hooks) Clock() func() time.Time { return nil }

// ProcessContext returns ctx.
func (hooks) ProcessContext(ctx context.Context) context.Context { return ctx }

// Attach does nothing.
func (hooks) Attach(*cairn.Cairn, net.Addr) error { return nil }

// Hub returns l.
func (hooks) Hub(_ *hub.Hub, l net.Listener) net.Listener { return l }

// HookCommands returns no commands.
func HookCommands(*Process) []*cobra.Command { return nil }

// AddTestHooks makes a server fail to start if test hooks are requested. A test must not
// mistake this build for one that has them (memories §15).
func (p *Process) AddTestHooks(cmd *cobra.Command) {
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
