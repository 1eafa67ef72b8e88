package cli

import (
	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
	"cairn/internal/hook"
	"cairn/internal/store"
)

func recordCommand(p *command.Process) *cobra.Command {
	var o hook.Options
	h := &hook.Process{In: p.In, Out: p.Out, Err: p.Err, Getenv: p.Getenv, OpenStore: store.Open}
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Hook entry: record one event from standard input",
		Long: `record reads one hook payload, a JSON object, from standard input and stores its
event. Agents call it through their hooks. At the start of a session it prints the
context of the session. With --assist it also prints what earlier sessions know about
a submitted prompt or a tool call; [assist] off = true in the settings turns that off.

Before an edit it checks reservations. If another agent has reserved the file, you are
asked to confirm, or the edit is denied ([guard] mode = off, warn or block). It also
prints the mail of the session's agents. It never starts a process, uses the network
or writes into your project.

The program cairn-hook does the same and starts faster. init uses it if it is next to
cairn. CAIRN_DISABLE=1 turns both off.`,
		Example: `  echo '{"session_id":"s1","cwd":"/tmp","hook_event_name":"UserPromptSubmit","prompt":"hello"}' | cairn record`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 0 && !h.IsOff() {
				return hook.TakesNoArgument(args[0])
			}
			if o.DB, err = cmd.Flags().GetString("db"); err != nil {
				return err
			}
			return exitWith(h.Record(cmd.Context(), o))
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if h.IsOff() {
			return nil
		}
		return exitWith(h.Fail(flagError(cmd, err)))
	})
	cmd.Flags().StringVar(&o.From, "from", "auto", "the agent that sends the event: "+hook.Sources())
	cmd.Flags().BoolVar(&o.Assist, "assist", false, "also help with prompts and before tool calls")
	return cmd
}

// exitWith returns the error that makes the process exit with code. Everything is
// already printed.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return command.ExitError(code)
}
