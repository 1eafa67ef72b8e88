package record

import (
	"cmp"
	"context"
	"math"
	"time"

	"cairn/internal/project"
	"cairn/internal/store"
)

const defaultProject = "default"

const selectClock = `SELECT tick, ifnull(records_stream, 'records/' || id) FROM projects WHERE key = ?`

// CallTx is one transaction of one call on one project.
type CallTx struct {
	*Kernel
	Tx      *store.Tx       // its rows
	Log     *store.Tx       // its changes: Tx itself, except for a replay
	Until   int64           // seq of the last visible change
	Then    *store.Moment   // moment that it shows, for a past state
	Project project.Project // Key is 0 if the project has no row yet
	Tick    int64
	Stream  string // of the change log
}

// Read runs fn on the caller's project, in its present state or as of a moment. A past state
// is a replay of the log, so it also contains sessions and searchable words.
func (b *Kernel) Read(ctx context.Context, c Caller, at string, fn func(ctx context.Context, s *CallTx) error) error {
	return b.readState(ctx, c, at, (*CallTx).replayed, fn)
}

// ReadRecords is Read for an fn that reads only records and the log. It replays nothing.
func (b *Kernel) ReadRecords(ctx context.Context, c Caller, at string, fn func(ctx context.Context, s *CallTx) error) error {
	return b.readState(ctx, c, at, (*CallTx).asOf, fn)
}

// readState runs fn on the caller's project. For a past moment, past runs it.
func (b *Kernel) readState(ctx context.Context, c Caller, at string,
	past func(s *CallTx, ctx context.Context, at *Point, fn func(ctx context.Context, s *CallTx) error) error,
	fn func(ctx context.Context, s *CallTx) error,
) error {
	now := time.Now
	if b.Store != nil {
		now = b.Store.Now
	}
	moment, err := parseMoment("at", at, now)
	if err != nil {
		return err
	}
	if b.Store == nil {
		return b.readNothing(ctx, c, moment, fn)
	}
	return ToFault(b.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.scope(ctx, tx, c, false)
		switch {
		case err != nil:
			return err
		case moment == nil:
			return fn(ctx, s)
		case s.Project.Key == 0:
			return s.atNothing(ctx, moment, fn)
		}
		return past(s, ctx, moment, fn)
	}))
}

// atNothing runs fn on a project without a row, as of a moment, or nil for now. Such a
// project existed at any time, but only at tick 0.
func (s *CallTx) atNothing(ctx context.Context, at *Point, fn func(ctx context.Context, s *CallTx) error) error {
	if at != nil && at.isTick {
		if _, err := s.SeqOfTick(ctx, at.field, at.tick); err != nil {
			return err
		}
	}
	return fn(ctx, s)
}

// readNothing runs fn if there is no store yet.
func (b *Kernel) readNothing(ctx context.Context, c Caller, at *Point, fn func(ctx context.Context, s *CallTx) error) error {
	if c.ProjectID != "" {
		return projectNotFound(c.ProjectID)
	}
	return ToFault(store.Scratch(ctx, time.Now(), func(ctx context.Context, tx *store.Tx) error {
		s, err := b.scope(ctx, tx, c, false)
		if err == nil {
			err = s.atNothing(ctx, at, fn)
		}
		return err
	}))
}

// Write runs fn in a transaction on the caller's project, which it creates if necessary.
// If fn fails, nothing is stored.
func (b *Kernel) Write(ctx context.Context, c Caller, fn func(ctx context.Context, s *CallTx) error) error {
	return b.Change(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.scope(ctx, tx, c, true)
		if err != nil {
			return err
		}
		return fn(ctx, s)
	})
}

// Change runs fn in a transaction. If there is no store yet, it uses an in-memory store,
// which is discarded.
func (b *Kernel) Change(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if b.Store == nil {
		return ToFault(store.Scratch(ctx, time.Unix(0, 0), fn))
	}
	return ToFault(b.Store.Write(ctx, store.Full, fn))
}

func (b *Kernel) scope(ctx context.Context, tx *store.Tx, c Caller, make bool) (*CallTx, error) {
	p, err := findProject(ctx, tx, c, make)
	if err != nil {
		return nil, err
	}
	return b.ScopeOf(ctx, tx, p)
}

// ScopeOf returns the transaction of a call on a project, which may have no row.
func (b *Kernel) ScopeOf(ctx context.Context, tx *store.Tx, p project.Project) (*CallTx, error) {
	s := &CallTx{Kernel: b, Tx: tx, Log: tx, Until: math.MaxInt64, Project: p}
	if p.Key == 0 {
		return s, nil
	}
	return s, tx.Get(ctx, []any{&s.Tick, &s.Stream}, selectClock, p.Key)
}

// findProject returns the caller's project (records §1, current project). Without make, a
// project without a row is returned without a key.
func findProject(ctx context.Context, tx *store.Tx, c Caller, make bool) (p project.Project, err error) {
	if c.Remote && c.ProjectID == "" && c.Project == "" {
		p, ok, err := project.OfSession(ctx, tx, cmp.Or(c.SessionID, c.Transport))
		switch {
		case err != nil || ok:
			return p, err
		case make:
			return p, project.Required(ctx, tx)
		}
	}
	name := c.Project
	switch {
	case c.ProjectID != "":
		p, ok, err := project.Find(ctx, tx, c.ProjectID)
		if err == nil && !ok {
			err = projectNotFound(c.ProjectID)
		}
		return p, err
	case name != "":
	case c.Place.Cwd == "":
		name = defaultProject
	case make:
		return project.Resolve(ctx, tx, c.Place)
	default:
		p, ok, err := project.Current(ctx, tx, c.Place)
		if err != nil || ok {
			return p, err
		}
		name = c.Place.Slug
		if c.Place.Identity != "" { // another project may have its slug
			return project.Project{ID: name, Name: c.Place.Name}, nil
		}
	}
	if make {
		return project.Ensure(ctx, tx, name)
	}
	p, ok, err := project.Find(ctx, tx, name)
	if err == nil && !ok {
		p = project.Project{ID: name, Name: name}
	}
	return p, err
}
