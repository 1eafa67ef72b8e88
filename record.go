package cairn

import (
	"context"
	"fmt"

	"cairn/internal/observation"
	"cairn/internal/project"
)

// Recorded is what became of a hook's event.
type Recorded struct {
	observation.Recorded
	Told    string // what the session is to be told, "" if nothing
	Warning error  // why something that goes with the event failed; the event is stored
}

// Record stores one event of a harness and finds what the session is to be told
// then: at the start of a session of the main agent, after sweeping a little, its
// context, and with assist what helps with a prompt or with a call that is about to
// be made. What is told is entered in the ledger; a failure of that, like one of the
// help, is a Warning. An event in an excluded folder is dropped without opening the
// store. c must have been opened with the event's working directory.
func (c *Cairn) Record(ctx context.Context, e observation.Event, process project.Process, assist bool) (Recorded, error) {
	if e.Kind == observation.Ignored || c.settings.excludes(e.Cwd) {
		return Recorded{}, nil
	}
	j, err := c.writing(ctx)
	if err != nil {
		return Recorded{}, err
	}
	if e.KeepsBranch() {
		e.Branch = c.place.Branch()
	}
	done, err := j.Record(ctx, e, c.place, process)
	if err != nil {
		return Recorded{Recorded: done}, err
	}
	r := Recorded{Recorded: done}
	if err := j.NoteUse(ctx, e, done); err != nil {
		r.Warning = fmt.Errorf("the use of what was told is not in the ledger: %w", err)
	}
	var told observation.Context
	switch {
	case e.Kind == observation.SessionStart && e.AgentID == "":
		// What cannot be swept now is swept at another start.
		_, _ = j.Sweep(ctx, observation.SweepArgs{Limit: hookSweepRows, Budget: hookSweepTime})
		open, oerr := c.openRecords(ctx, c.store, done.Project.ID)
		if oerr != nil {
			r.Warning = fmt.Errorf("the open records were not told: %w", oerr)
		}
		told, err = j.Context(ctx, done.Project, e.Text, e.Branch, open)
	case assist:
		told, err = j.Assist(ctx, e, c.place, done)
	}
	if err != nil {
		r.Warning = fmt.Errorf("what to tell is not available: %w", err)
		return r, nil
	}
	r.Told = told.Text
	if err := j.Inject(ctx, e, done, told.Items); err != nil {
		r.Warning = fmt.Errorf("what was told is not in the ledger: %w", err)
	}
	return r, nil
}
