// Package hook records one event of an agent program: it reads one payload, stores the
// event and prints the text for the agent. `cairn-hook` and `cairn record` run the same
// function of this package. cairn-hook links nothing else, so it starts in half the time.
//
// Exit code 0 means success, 1 a failure. 2 is used in two cases only: for a denied edit, if
// the agent program treats 2 as a denial; and for a damaged store, on events where 2 shows
// the message to the user and blocks nothing (contract observations §4.1).
package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/hooktimes"
	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/workspace"
)

// Process contains the streams, environment and functions that a hook needs.
type Process struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string

	// OpenStore opens a store: store.Open, or store.OpenWithDriver in the program cairn-hook.
	OpenStore func(context.Context, store.Config) (*store.Store, error)
	// HandOver, if set, passes the payload to another program. It is called for a store that
	// this program cannot open, because a newer cairn has written it or it is encrypted. It
	// returns false if that is not possible.
	HandOver func(payload []byte) (code int, done bool)
}

// Options are the flags of a hook.
type Options struct {
	From   string // the agent program that sends the payload, or "auto"
	Assist bool   // also help with prompts and before tool calls
	DB     string // the database file, "" for the environment's
}

// IsOff reports whether CAIRN_DISABLE turns the hook off.
func (p *Process) IsOff() bool { return p.Getenv("CAIRN_DISABLE") == "1" }

// Record reads one payload, stores its event, prints the answer and returns the exit code.
// Failures are one line on Err and one in cairn.log. With CAIRN_DISABLE=1 it stores
// nothing, and prints an answer only for agent programs that treat silence as a denial.
func (p *Process) Record(ctx context.Context, o Options) (code int) {
	if p.IsOff() {
		return p.answerNothing(o)
	}
	began := time.Now()
	// A hook works sequentially: more processors would only cost waking threads.
	runtime.GOMAXPROCS(1)
	payload, err := lazyjson.ReadPayload(p.In)
	if err != nil {
		return p.failed(o, observation.Event{}, err)
	}
	if n := len(payload); n > largePayload && n < hugePayload {
		debug.SetGCPercent(400)
	}
	e, err := harnesses.Hook(payload, o.From, workspace.HomeOf(p.Getenv))
	if err != nil {
		return p.failed(o, e, err)
	}
	done, failed := p.store(ctx, o, e)
	if p.HandOver != nil && (fault.HasCode(failed, store.CodeNewer) || fault.HasCode(failed, store.CodeDriver)) {
		if code, done := p.HandOver(payload); done {
			return code
		}
	}
	code = p.answer(o, e, done, failed)
	if e.Kind != observation.Ignored && failed == nil {
		p.keepTime(o, e, began)
	}
	return code
}

// keepTime stores how long the hook of an event took until its answer.
func (p *Process) keepTime(o Options, e observation.Event, began time.Time) {
	if config, err := workspace.ConfigOf(p.Getenv, o.DB); err == nil {
		end := time.Now()
		hooktimes.Add(config.Dir, e.Source, end, end.Sub(began))
	}
}

// For a payload between these sizes, in bytes, garbage is not collected: the process ends
// before that is worth its time. For larger payloads memory matters more than time.
const (
	largePayload = 256 << 10
	hugePayload  = 4 << 20
)

// answerNothing stores nothing. It prints an answer for agent programs that treat silence
// as a denial.
func (p *Process) answerNothing(o Options) (code int) {
	if h, ok := harnesses.Of(o.From); !ok || !h.NeedsAnswer {
		return 0
	}
	payload, err := lazyjson.ReadPayload(p.In)
	if err != nil {
		return 0
	}
	e, err := harnesses.Hook(payload, o.From, workspace.HomeOf(p.Getenv))
	if err != nil {
		return 0
	}
	said, err := harnesses.HookOutput(e, "", harness.GuardDecision{})
	if err == nil {
		_, err = fmt.Fprint(p.Out, said)
	}
	if err != nil {
		return p.Fail(err)
	}
	return 0
}

// store opens the store in the event's folder and records the event.
func (p *Process) store(ctx context.Context, o Options, e observation.Event) (done RecordResult, err error) {
	if e.Kind == observation.Ignored {
		return done, nil
	}
	config, err := workspace.ConfigOf(p.Getenv, o.DB)
	if err != nil {
		return done, err
	}
	config.Cwd, config.Role = e.Cwd, store.Hook
	if e.Kind == observation.SessionEnd {
		config.Wait = 500 * time.Millisecond // the host allows 1.5 s in total
	}
	w, err := workspace.Open(config, workspace.Options{OpenStore: p.OpenStore})
	if err != nil {
		return done, err
	}
	done, err = Record(ctx, w, e, project.HarnessProcess(), o.Assist)
	if e.TurnEnds || e.Kind == observation.SessionEnd {
		return done, errors.Join(err, w.Close()) // while the agent waits, everything is in one file
	}
	return done, errors.Join(err, w.Leave())
}

// answer prints the result of an event for the agent program. failed is the error because of
// which the event was not stored.
func (p *Process) answer(o Options, e observation.Event, done RecordResult, failed error) (code int) {
	said, err := harnesses.HookOutput(e, done.Context, done.Guard)
	if err == nil {
		_, err = fmt.Fprint(p.Out, said)
	}
	if harnesses.RefusesByTwo(e, done.Guard) {
		fmt.Fprintln(p.Err, done.Guard.Reason)
		return 2
	}
	if failed != nil {
		code := p.failed(o, e, failed)
		if (done.Context != "" || done.Guard.Decision != "") && said != "" && err == nil {
			return 0 // with another code hosts ignore the output
		}
		return code
	}
	if err := errors.Join(done.Warning, err); err != nil {
		p.report(fmt.Errorf("the event is stored, but %w", err))
	}
	return 0
}

// failed reports and logs why an event was not stored.
func (p *Process) failed(o Options, e observation.Event, err error) (code int) {
	p.report(err)
	if config, cerr := workspace.ConfigOf(p.Getenv, o.DB); cerr == nil {
		logError(config.Dir, "record", err)
	}
	if fault.HasCode(err, store.CodeCorrupt) && harnesses.ShowsError(e) {
		return 2
	}
	return 1
}

// Fail prints an error on Err and returns exit code 1, also for wrong usage: 2 could mean a
// denial.
func (p *Process) Fail(err error) (code int) {
	p.report(err)
	return 1
}

func (p *Process) report(err error) { fmt.Fprintln(p.Err, "cairn: "+fault.Line("record", err)) }

// TakesNoArgument is the usage error of `cairn record R001`. No agent program passes an
// argument, so exit code 2 does not mean a denial there (records §3).
func TakesNoArgument(arg string) error {
	return fault.Newf(fault.Invalid, "usage", "accepts no argument, but got %.40q", arg).
		WithHint("usage: `cairn record < PAYLOAD` as a hook; to work with records, use `cairn records`, as in `cairn records show R001`")
}

// Sources are the values of --from, for help texts.
func Sources() string { return "auto or " + strings.Join(harnesses.Names(), ", ") }
