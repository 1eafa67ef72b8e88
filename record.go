package cairn

import (
	"context"
	"fmt"

	"cairn/internal/harness"
	"cairn/internal/observation"
	"cairn/internal/project"
)

// Recorded is what became of a hook's event.
type Recorded struct {
	observation.Recorded
	Told    string                // what the session is to be told, "" if nothing
	Verdict harness.GuardDecision // on the edits that the event announces, also when it could not be stored
	Warning error                 // why something that goes with the event failed; the event is stored
}

// Record judges the edits that an event announces by the reservations of others
// (mail §8), before anything else and in excluded folders too, stores the event and
// finds what the session is to be told then: at the start of a session of the main agent, after sweeping a little, its
// context, and with assist what helps with a prompt or with a call that is about to
// be made, and what mail has for its agents (mail §9). What is told is entered in the ledger; a failure of that, like one of the
// help, is a Warning. An event in an excluded folder is dropped without opening the
// store. c must have been opened with the event's working directory.
func (c *Cairn) Record(ctx context.Context, e observation.Event, process project.Process, assist bool) (Recorded, error) {
	if e.Kind == observation.Ignored {
		return Recorded{}, nil
	}
	r := Recorded{Verdict: c.guardEdits(ctx, &e)}
	if c.settings.excludes(e.Cwd) {
		return r, nil
	}
	j, err := c.writing(ctx)
	if err != nil {
		return r, err
	}
	if e.KeepsBranch() {
		e.Branch = c.place.Branch()
	}
	if e.Transcript != "" {
		if err := settle(ctx, j, e); err != nil {
			r.Warning = fmt.Errorf("how the calls of the turn ended was not read: %w", err)
		}
	}
	done, err := j.Record(ctx, e, c.place, process)
	r.Recorded = done
	if err != nil {
		return r, err
	}
	if done.Unnoted != nil {
		r.Warning = fmt.Errorf("the use of injected context was not stored: %w", done.Unnoted)
	}
	starts := e.AgentID == "" && (e.Kind == observation.SessionStart || done.First && harness.StartsLate(e))
	tells := starts && (e.Kind != observation.SessionStart || harness.Listens(e))
	notices, err := c.correspond(ctx, &e, done.Project, r.Verdict, starts)
	if err != nil {
		r.Warning = fmt.Errorf("the mail of the session was not looked after: %w", err)
	}
	if err := c.tell(ctx, j, &r, e, tells, assist); err != nil {
		r.Warning = err
	}
	r.Told += notices
	return r, nil
}

// settle corrects the rows of calls that have ended badly, as the session's transcript
// says, and adds those of which no hook told.
func settle(ctx context.Context, j *observation.Service, e observation.Event) error {
	told, err := harness.Settled(ctx, e.Transcript, e.Session, e.TurnEnds)
	if err != nil {
		return err
	}
	open, err := j.Unsettled(ctx, e.Session, told)
	if err != nil || len(open) == 0 {
		return err
	}
	preparer, importer := j.Preparer(), j.Importer(observation.ImportOptions{})
	for _, e := range open {
		p, err := preparer.Prepare(e)
		if err != nil {
			return err
		}
		if err := importer.Add(ctx, p); err != nil {
			return err
		}
	}
	_, err = importer.EndFile(ctx, observation.ImportedFile{}, false)
	return err
}

// tell finds what a session is to be told on an event that is stored, and enters
// it in the ledger. starts says that the event brings the context of its session.
func (c *Cairn) tell(ctx context.Context, j *observation.Service, r *Recorded, e observation.Event, starts, assist bool) (err error) {
	done := r.Recorded
	var told observation.Context
	switch {
	case starts:
		source := "startup"
		if e.Kind == observation.SessionStart {
			source = e.Text
		}
		// What cannot be swept now is swept at another start.
		_, _ = j.Sweep(ctx, observation.SweepArgs{Limit: hookSweepRows, Budget: hookSweepTime})
		open, oerr := c.openRecords(ctx, c.store, done.Project.ID)
		if oerr != nil {
			r.Warning = fmt.Errorf("the open records were not told: %w", oerr)
		}
		you, yerr := c.you(ctx, e.Session)
		if yerr != nil {
			r.Warning = fmt.Errorf("the agents of the session were not named: %w", yerr)
		}
		told, err = j.SessionContext(ctx, observation.ContextArgs{
			Project: done.Project, Session: e.Session, Source: source, Branch: e.Branch,
		}, you, open)
	case assist && harness.TakesHelp(e):
		told, err = j.Assist(ctx, e, c.place, done)
	}
	if err != nil {
		return fmt.Errorf("the context is not available: %w", err)
	}
	r.Told = told.Text
	if err := j.Inject(ctx, e, done, told.Items); err != nil {
		return fmt.Errorf("the injected context was not stored: %w", err)
	}
	return nil
}

// you is the section of the session's agents in its context.
func (c *Cairn) you(ctx context.Context, session string) (observation.Section, error) {
	section := observation.Section{Title: "You", First: true}
	if c.journal.Limits.Off {
		return section, nil
	}
	all, err := c.office(c.store).Acting(ctx, session)
	for _, a := range all {
		section.Lines = append(section.Lines, a.Lines()...)
	}
	return section, err
}
