package hook

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"cairn/internal/cputime"
	"cairn/internal/guard"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/settings"
)

// guardEdits checks the edits that an event announces against the reservations of other
// agents (mail §8). For a harness that can only be warned after the tool, it checks the
// completed edits. The decision is zero for other events and without a conflict. It
// changes nothing. Its time limit does not include opening the store.
func (w recorder) guardEdits(ctx context.Context, e *observation.Event) harness.GuardDecision {
	paths := editedFiles(e)
	mode := w.Settings.Work.Guard.ModeOrDefault()
	if e.Source != "PreToolUse" && !harnesses.WarnsAfter(*e) || len(paths) == 0 || mode == guard.Off {
		return harness.GuardDecision{}
	}
	found, err := w.reservationConflicts(ctx, e, paths)
	switch {
	case err != nil || !found.Managed:
		if !settings.Value(w.Settings.Work.Guard.Strict) {
			return harness.GuardDecision{}
		}
		return harness.GuardDecision{Decision: harness.Ask, Reason: "cairn could not check whether other agents have reserved these files; guard.strict is set."}
	case len(found.Obstacles) == 0:
		return harness.GuardDecision{}
	}
	v := harness.GuardDecision{Decision: harness.Ask, Reason: reservations.GuardText(found.Obstacles, w.Location, found.Names...)}
	if mode == guard.Block {
		v.Decision = harness.Deny
	}
	return v
}

// guardWallLimit is added to the CPU limit of the guard, by the clock, for a machine under load.
const guardWallLimit = 100 * time.Millisecond

// reservationConflicts returns the reservations of other agents that cover the paths.
func (w recorder) reservationConflicts(ctx context.Context, e *observation.Event, paths []string) (reservations.Guarded, error) {
	s, err := w.Opened(ctx, false)
	if err != nil || s == nil {
		return reservations.Guarded{}, err
	}
	limit := w.Settings.Work.Guard.TimeFor(len(paths))
	limited, stop := cputime.WithLimit(ctx, limit, limit+guardWallLimit)
	defer stop()
	return w.MailService(s).Guard(limited, reservations.GuardArgs{Session: e.Session, Agent: w.Config.Agent, Place: w.Location, Paths: paths})
}

// editedFiles returns the files that an event's calls change.
func editedFiles(e *observation.Event) (paths []string) {
	for i := range e.Calls {
		if call := &e.Calls[i]; (call.Action == observation.Edit || call.Action == observation.Write) && call.Path != "" {
			paths = append(paths, call.Path)
		}
	}
	return paths
}

// runMail updates the bindings and leases of the session of a stored event, and returns
// the notices for its agents. starts means that the event begins its session.
func (w recorder) runMail(ctx context.Context, e *observation.Event, q project.Project, v harness.GuardDecision, starts bool) (text string, err error) {
	o := w.MailService(w.Current())
	switch {
	case e.Kind == observation.SessionEnd:
		_, err = o.EndSession(ctx, e.Session)
		return "", err
	case starts:
		if err := w.beginSession(ctx, o, e); err != nil {
			return "", err
		}
	case e.Source == "PreToolUse":
		return "", w.lease(ctx, o, e, v)
	}
	if e.Source != "SessionStart" && e.Source != "UserPromptSubmit" && e.Source != "PostToolUse" {
		return "", nil
	}
	often := e.Source == "PostToolUse"
	if err := w.bind(ctx, o, e, q); err != nil {
		return "", err
	}
	if settings.IsOff(w.Settings.Work.Mail.Notices) {
		return "", nil
	}
	return o.Notices(ctx, service.NoticeArgs{
		Session: e.Session, Event: e.Source, Often: often, Mute: e.AgentID != "" || !harnesses.Listens(*e),
	})
}

// beginSession gives a session the agents of its lineage, and releases the reservations
// that no session has taken over.
func (w recorder) beginSession(ctx context.Context, o *service.Mail, e *observation.Event) error {
	if err := o.BeginSession(ctx, e.Session, w.Config.Agent != ""); err != nil {
		return err
	}
	_, err := o.ReleaseOrphans(ctx)
	return err
}

// bind binds a session to the agent of CAIRN_AGENT. After a call of a mail tool it binds
// the session to the agent of the call.
func (w recorder) bind(ctx context.Context, o *service.Mail, e *observation.Event, q project.Project) error {
	if e.Source != "PostToolUse" {
		if w.Config.Agent == "" {
			return nil
		}
		return o.Bind(ctx, mail.Caller{Place: w.Location}, q, agents.Binding{Session: e.Session, Agent: w.Config.Agent, Source: mail.SourceEnvironment})
	}
	if e.Kind != observation.Touch || len(e.Calls) != 1 || e.Calls[0].Failed || e.Calls[0].Result == "" {
		return nil
	}
	call := &e.Calls[0]
	return o.BindObservedCall(ctx, q, agents.ObservedCall{
		Session: e.Session, Place: w.Location, Tool: call.Method, Result: call.Result,
		Argument: func(name string) string {
			i := slices.IndexFunc(call.Args, func(a observation.Arg) bool { return a.Name == name })
			if i < 0 {
				return ""
			}
			return call.Args[i].Value
		},
	})
}

// lease reserves the files of an announced edit, if the setting is on and no other agent
// has reserved them.
func (w recorder) lease(ctx context.Context, o *service.Mail, e *observation.Event, v harness.GuardDecision) error {
	paths := editedFiles(e)
	if !settings.Value(w.Settings.Work.Guard.AutoReserve) || v.Decision != "" || len(paths) == 0 {
		return nil
	}
	for i, p := range paths {
		paths[i] = filepath.Clean(w.Location.Absolute(p))
	}
	_, err := o.Lease(ctx, reservations.LeaseArgs{
		Session: e.Session, Program: programOf(e.Harness), Model: e.Model, Agent: w.Config.Agent, Place: w.Location, Paths: paths,
		TTL: w.Settings.Work.Guard.LeaseTime(),
	})
	return err
}

// programOf returns the program name of agents of a harness.
func programOf(name string) string {
	if h, ok := harnesses.Of(name); ok {
		return h.Program
	}
	return name
}
