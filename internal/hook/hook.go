// Package hook is what an agent program calls at its events: it takes one payload, stores
// what happened and prints what the agent should know. The programs `cairn-hook` and
// `cairn record` are the same function of this package; the first links nothing else, so
// that it starts in half the time.
//
// Exit codes: 0 for done, 1 for a failure, and 2 in two cases alone: a refused edit, where
// the agent program takes 2 as the refusal, and a damaged store, on events where 2 shows
// the message to the user and stops nothing (contract observations §4.1).
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

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

// Process is what a hook gets from its process.
type Process struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string

	// Open opens cairn: cairn.Open, or cairn.OpenWithDriver in the program cairn-hook.
	Open func(cairn.Config) (*cairn.Cairn, error)
	// HandOver, if set, lets another program record a payload whose store this one cannot
	// open: a newer cairn has written it, or it is encrypted. It returns false where that
	// cannot be done.
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
// nothing, and answers only an agent program that takes silence as a refusal.
func (p *Process) Record(ctx context.Context, o Options) (code int) {
	if p.IsOff() {
		return p.answerNothing(o)
	}
	// One thing after the other: more processors would only wake threads for it.
	runtime.GOMAXPROCS(1)
	payload, err := harness.ReadPayload(p.In)
	if err != nil {
		return p.failed(o, observation.Event{}, err)
	}
	if n := len(payload); n > largePayload && n < hugePayload {
		debug.SetGCPercent(400)
	}
	e, err := harness.Hook(payload, o.From, cairn.HomeOf(p.Getenv))
	if err != nil {
		return p.failed(o, e, err)
	}
	done, failed := p.store(ctx, o, e)
	if p.HandOver != nil && (fault.HasCode(failed, store.CodeNewer) || fault.HasCode(failed, store.CodeDriver)) {
		if code, done := p.HandOver(payload); done {
			return code
		}
	}
	return p.answer(o, e, done, failed)
}

// A payload between these sizes, in bytes, makes some garbage that the process ends before
// it is worth collecting. Above, memory matters more than time.
const (
	largePayload = 256 << 10
	hugePayload  = 4 << 20
)

// answerNothing stores nothing. Agent programs for which no answer would be a refusal get
// one.
func (p *Process) answerNothing(o Options) (code int) {
	if h, ok := harness.Of(o.From); !ok || !h.NeedsAnswer {
		return 0
	}
	payload, err := harness.ReadPayload(p.In)
	if err != nil {
		return 0
	}
	e, err := harness.Hook(payload, o.From, cairn.HomeOf(p.Getenv))
	if err != nil {
		return 0
	}
	said, err := harness.HookOutput(e, "", harness.GuardDecision{})
	if err == nil {
		_, err = fmt.Fprint(p.Out, said)
	}
	if err != nil {
		return p.Fail(err)
	}
	return 0
}

// store opens the store in the event's folder and records the event.
func (p *Process) store(ctx context.Context, o Options, e observation.Event) (done cairn.RecordResult, err error) {
	if e.Kind == observation.Ignored {
		return done, nil
	}
	config, err := cairn.ConfigOf(p.Getenv, o.DB)
	if err != nil {
		return done, err
	}
	config.Cwd, config.Role = e.Cwd, store.Hook
	if e.Kind == observation.SessionEnd {
		config.Wait = 500 * time.Millisecond // its host allows 1.5 s in all
	}
	c, err := p.Open(config)
	if err != nil {
		return done, err
	}
	done, err = c.Record(ctx, e, project.HarnessProcess(), o.Assist)
	return done, errors.Join(err, c.Close())
}

// answer prints the result of an event for the agent program. failed is the reason why the
// event was not stored.
func (p *Process) answer(o Options, e observation.Event, done cairn.RecordResult, failed error) (code int) {
	said, err := harness.HookOutput(e, done.Context, done.Guard)
	if err == nil {
		_, err = fmt.Fprint(p.Out, said)
	}
	if harness.RefusesByTwo(e, done.Guard) {
		fmt.Fprintln(p.Err, done.Guard.Reason)
		return 2
	}
	if failed != nil {
		code := p.failed(o, e, failed)
		if (done.Context != "" || done.Guard.Decision != "") && said != "" && err == nil {
			return 0 // with another code hosts do not read what was said
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
	if config, cerr := cairn.ConfigOf(p.Getenv, o.DB); cerr == nil {
		logError(config.Dir, "record", err)
	}
	if fault.HasCode(err, store.CodeCorrupt) && harness.ShowsError(e) {
		return 2
	}
	return 1
}

// Fail reports an error on Err and returns exit code 1, as for wrong usage: 2 could be
// taken as a refusal.
func (p *Process) Fail(err error) (code int) {
	p.report(err)
	return 1
}

func (p *Process) report(err error) { fmt.Fprintln(p.Err, "cairn: "+fault.Line("record", err)) }

// TakesNoArgument is the usage error of `cairn record R001`. No agent program passes an
// argument, so exit code 2 is no refusal there (records §3).
func TakesNoArgument(arg string) error {
	return fault.Newf(fault.Invalid, "usage", "accepts no argument, but got %.40q", arg).
		WithHint("usage: `cairn record < PAYLOAD` as a hook; to work with records, use `cairn records`, as in `cairn records show R001`")
}

// Sources are the values of --from, for help texts.
func Sources() string { return "auto or " + strings.Join(harness.Names(), ", ") }
