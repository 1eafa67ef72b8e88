package hook

import (
	"context"
	"fmt"
	"time"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/observation"
	"cairn/internal/observation/assist"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/forget"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/sessionstart"
	"cairn/internal/project"
	"cairn/internal/workspace"
)

// RecordResult is the result of a hook's event.
type RecordResult struct {
	observation.Recorded
	Context string                // text for the session, may be ""
	Guard   harness.GuardDecision // decision about the announced edits, also if the event could not be stored
	Warning error                 // why a step after storing the event failed
}

// recorder records one event in a workspace.
type recorder struct{ *workspace.Workspace }

// Record stores one event of an agent program and returns the text for its session.
//
// First it checks announced edits against the reservations of other agents (mail §8), also in
// excluded folders. Then it stores the event. An event in an excluded folder is dropped
// without opening the store. At the start of a main agent's session, the text is the context.
// With assist it is help for a prompt or a tool call. It also contains notices of mail (mail
// §9). The ledger records the injected text. An error after the event is stored is a Warning.
// The workspace must have been opened with the event's working directory.
func Record(ctx context.Context, in *workspace.Workspace, e observation.Event, process project.Process, assist bool) (RecordResult, error) {
	w := recorder{in}
	if e.Kind == observation.Ignored {
		return RecordResult{}, nil
	}
	r := RecordResult{Guard: w.guardEdits(ctx, &e)}
	if w.Settings.Excludes(e.Cwd) {
		return r, nil
	}
	j, err := w.WritableObservations(ctx)
	if err != nil {
		return r, err
	}
	if e.KeepsBranch() {
		e.Branch = w.Location.Branch()
	}
	if e.Transcript != "" {
		if err := correctOutcomes(ctx, j, e); err != nil {
			r.Warning = fmt.Errorf("the outcomes of the turn's calls were not read: %w", err)
		}
	}
	done, err := capture.Record(ctx, j, e, w.Location, process)
	r.Recorded = done
	if err != nil {
		return r, err
	}
	if done.Unnoted != nil {
		r.Warning = fmt.Errorf("the use of injected context was not stored: %w", done.Unnoted)
	}
	starts := e.AgentID == "" && (e.Kind == observation.SessionStart || done.First && harnesses.StartsLate(e))
	tells := starts && (e.Kind != observation.SessionStart || harnesses.Listens(e))
	notices, err := w.runMail(ctx, &e, done.Project, r.Guard, starts)
	if err != nil {
		r.Warning = fmt.Errorf("the mail of the session was not processed: %w", err)
	}
	if err := w.addContext(ctx, j, &r, e, tells, assist); err != nil {
		r.Warning = err
	}
	r.Context += notices
	return r, nil
}

// correctOutcomes reads the outcomes of a session's calls from its transcript. It corrects the
// rows of failed calls and adds the calls that no hook reported.
func correctOutcomes(ctx context.Context, j *observation.Service, e observation.Event) error {
	settled, err := harnesses.Settled(ctx, e.Transcript, e.Session, e.TurnEnds)
	if err != nil {
		return err
	}
	open, err := capture.UnstoredOutcomes(ctx, j, e.Session, settled)
	if err != nil || len(open) == 0 {
		return err
	}
	preparer, importer := capture.NewPreparer(j), capture.NewImporter(j, capture.ImportOptions{})
	for _, e := range open {
		p, err := preparer.Prepare(e)
		if err != nil {
			return err
		}
		if err := importer.Add(ctx, p); err != nil {
			return err
		}
	}
	_, err = importer.EndFile(ctx, capture.ImportedFile{}, false)
	return err
}

// addContext adds to r the text for the session of a stored event, and records it in the
// ledger. With starts the text is the session's context, with helps it is help.
func (w recorder) addContext(ctx context.Context, j *observation.Service, r *RecordResult, e observation.Event, starts, helps bool) (err error) {
	done := r.Recorded
	var injection ledger.Injection
	switch {
	case starts:
		source := "startup"
		if e.Kind == observation.SessionStart {
			source = e.Text
		}
		// A sweep that is incomplete now continues at the start of another session.
		_, _ = forget.Sweep(ctx, j, forget.SweepArgs{Limit: sweepRows, Budget: sweepTime})
		open, oerr := w.OpenRecords(ctx, w.Current(), done.Project.ID)
		if oerr != nil {
			r.Warning = fmt.Errorf("the open records were not read: %w", oerr)
		}
		you, yerr := w.you(ctx, e.Session)
		if yerr != nil {
			r.Warning = fmt.Errorf("the agents of the session were not read: %w", yerr)
		}
		injection, err = sessionstart.Build(ctx, j, sessionstart.Args{
			Project: done.Project, Session: e.Session, Source: source, Branch: e.Branch,
		}, you, open)
	case helps && harnesses.TakesHelp(e):
		injection, err = assist.Help(ctx, j, e, w.Location, done)
	}
	if err != nil {
		return fmt.Errorf("the context is not available: %w", err)
	}
	r.Context = injection.Text
	if err := ledger.Inject(ctx, j, e, done.Session, injection.Items); err != nil {
		return fmt.Errorf("the injected context was not stored: %w", err)
	}
	return nil
}

// you returns the section of the session's agents in its context.
func (w recorder) you(ctx context.Context, session string) (sessionstart.Section, error) {
	section := sessionstart.Section{Title: "You", First: true}
	if w.ObservationConfig.Limits.Off {
		return section, nil
	}
	all, err := w.MailService(w.Current()).Acting(ctx, session)
	for _, a := range all {
		section.Lines = append(section.Lines, a.Lines()...)
	}
	return section, err
}

// Limits of a hook's sweep at the start of a session (observations §11.1).
const (
	sweepRows = 500
	sweepTime = 10 * time.Millisecond
)
