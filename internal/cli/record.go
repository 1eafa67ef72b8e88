package cli

import (
	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/hook"
)

func recordCommand(p *Process) *cobra.Command {
	var o hook.Options
	h := &hook.Process{In: p.In, Out: p.Out, Err: p.Err, Getenv: p.Getenv, Open: cairn.Open}
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Hook entry: record one event from standard input",
		Long: `record reads one hook payload, a JSON object, from standard input and stores what
it tells. Agents call it through their hooks; at the start of a session it prints
what the session should know. With --assist it also prints, when a prompt is
submitted or a tool is about to run, what earlier sessions know about it; [assist]
off = true in the settings turns that off. Before an edit it has you asked, or
denies it, where another agent has reserved the file ([guard] mode = off, warn or
block), and it tells the agents of a session their mail. It never starts a process, uses the network or
writes into your project.

The program cairn-hook does the same and starts faster; init uses it where it lies
beside cairn. CAIRN_DISABLE=1 makes both do nothing.`,
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

// exitWith ends the process with an exit code, after what there was to say has been said.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return exitError(code)
}
