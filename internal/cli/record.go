package cli

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

func recordCommand(p *Process) *cobra.Command {
	var from string
	var assist bool
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

CAIRN_DISABLE=1 makes it do nothing.`,
		Example: `  echo '{"session_id":"s1","cwd":"/tmp","hook_event_name":"UserPromptSubmit","prompt":"hello"}' | cairn record`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.isOff() {
				return p.stayOut(from)
			}
			if len(args) > 0 {
				return noRecordHere(args[0])
			}
			// One thing after the other: more processors would only wake threads for it.
			runtime.GOMAXPROCS(1)
			return p.record(cmd, from, assist)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if p.isOff() {
			return nil
		}
		return p.misused(flagError(cmd, err))
	})
	cmd.Flags().StringVar(&from, "from", "auto", "the agent that sends the event: auto or "+strings.Join(harness.Names(), ", "))
	cmd.Flags().BoolVar(&assist, "assist", false, "also help with prompts and before tool calls")
	return cmd
}

// noRecordHere is the usage error of `cairn record R001`. No hook passes an argument, so
// that exit code 2 is no veto here (records §3).
func noRecordHere(arg string) error {
	return fault.Newf(fault.Invalid, "usage", "takes no argument, not %.40q", arg).
		WithHint("usage: `cairn record < PAYLOAD` as a hook; to work with records, use `cairn records`, as in `cairn records show R001`")
}

// stayOut does nothing but tell a harness so for which no answer would be a refusal.
func (p *Process) stayOut(from string) error {
	if h, ok := harness.Of(from); !ok || !h.NeedsAnswer {
		return nil
	}
	payload, err := harness.ReadPayload(p.In)
	if err != nil {
		return nil
	}
	e, err := harness.Hook(payload, from, p.home())
	if err != nil {
		return nil
	}
	said, err := harness.Answer(e, "", harness.Verdict{})
	if err == nil {
		_, err = fmt.Fprint(p.Out, said)
	}
	return err
}

// isOff reports whether nothing is to be recorded.
func (p *Process) isOff() bool { return p.Getenv("CAIRN_DISABLE") == "1" }

// misused reports wrong usage, which in a hook is no reason for a veto either.
func (p *Process) misused(err error) error {
	report(p.Err, "record", err)
	return exitError(1)
}

// A payload between these sizes, in bytes, makes some garbage that the process ends before
// it is worth collecting. Above, memory matters more than time.
const (
	largePayload = 256 << 10
	hugePayload  = 4 << 20
)

// record stores one event and turns failures into the exit codes of a hook.
func (p *Process) record(cmd *cobra.Command, from string, assist bool) error {
	payload, err := harness.ReadPayload(p.In)
	if err != nil {
		return p.hookFailed(cmd, observation.Event{}, err)
	}
	if n := len(payload); n > largePayload && n < hugePayload {
		debug.SetGCPercent(400)
	}
	e, err := harness.Hook(payload, from, p.home())
	if err != nil {
		return p.hookFailed(cmd, e, err)
	}
	done, failed := p.recordEvent(cmd, e, assist)
	said, err := harness.Answer(e, done.Told, done.Verdict)
	if err == nil {
		_, err = fmt.Fprint(p.Out, said)
	}
	if harness.RefusesByTwo(e, done.Verdict) {
		fmt.Fprintln(p.Err, done.Verdict.Reason)
		return exitError(2)
	}
	if failed != nil {
		code := p.hookFailed(cmd, e, failed)
		if (done.Told != "" || done.Verdict.Decision != "") && said != "" && err == nil {
			return nil // with another code hosts do not read what was said
		}
		return code
	}
	if err := errors.Join(done.Warning, err); err != nil {
		report(p.Err, "record", fmt.Errorf("the event is stored, but %w", err))
	}
	return nil
}

func (p *Process) recordEvent(cmd *cobra.Command, e observation.Event, assist bool) (done cairn.Recorded, err error) {
	if e.Kind == observation.Ignored {
		return done, nil
	}
	config, err := p.config(cmd)
	if err != nil {
		return done, err
	}
	config.Cwd, config.Role = e.Cwd, store.Hook
	if e.Kind == observation.SessionEnd {
		config.Wait = 500 * time.Millisecond // its host allows 1.5 s in all
	}
	c, err := cairn.Open(config)
	if err != nil {
		return done, err
	}
	done, err = c.Record(cmd.Context(), e, project.HarnessProcess(), assist)
	return done, errors.Join(err, c.Close())
}

// hookFailed reports and logs why an event was not stored. A hook's exit code 2 is shown
// to the user only on events where it is no veto (contract observations §4.1);
// everything else is 1.
func (p *Process) hookFailed(cmd *cobra.Command, e observation.Event, err error) error {
	report(p.Err, "record", err)
	if config, cerr := p.config(cmd); cerr == nil {
		logError(config.Dir, "record", err)
	}
	if fault.HasCode(err, store.CodeCorrupt) && harness.ShowsError(e) {
		return exitError(2)
	}
	return exitError(1)
}
