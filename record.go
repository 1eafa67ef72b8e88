package cairn

import (
	"context"

	"cairn/internal/observation"
	"cairn/internal/project"
)

// Recorded is what became of a hook's event.
type Recorded struct {
	observation.Recorded
	Context string // what the session is to be told, "" if nothing
	Warning error  // why there is no context, though there should be; the event is stored
}

// Record stores one event of a harness and, when a session of the main agent
// starts, sweeps a little and builds its context from what is then stored. An event in an excluded
// folder is dropped without opening the store. c must have been opened with the
// event's working directory.
func (c *Cairn) Record(ctx context.Context, e observation.Event, process project.Process) (Recorded, error) {
	if e.Kind == observation.Ignored || c.settings.excludes(e.Cwd) {
		return Recorded{}, nil
	}
	j, err := c.writing(ctx)
	if err != nil {
		return Recorded{}, err
	}
	done, err := j.Record(ctx, e, c.place, process)
	if err != nil || e.Kind != observation.SessionStart || e.AgentID != "" {
		return Recorded{Recorded: done}, err
	}
	// What cannot be swept now is swept at another start.
	_, _ = j.Sweep(ctx, observation.SweepArgs{Limit: hookSweepRows, Budget: hookSweepTime})
	told, err := j.Context(ctx, done.Project, e.Text)
	return Recorded{Recorded: done, Context: told.Text, Warning: err}, nil
}
