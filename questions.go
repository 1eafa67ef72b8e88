package cairn

import (
	"context"
	"path/filepath"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/memory"
	"cairn/internal/observation"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/sessionstart"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/store"
)

// Here is the id of the project that the working directory, or name if given,
// means. "" means no project: a filesystem root, or no working directory. A
// project that has no row yet keeps the id that it would get, or its name.
func (c *Cairn) Here(ctx context.Context, name string) (string, error) {
	id, find := c.place.Slug, func(ctx context.Context, tx *store.Tx) (project.Project, bool, error) {
		return project.Current(ctx, tx, c.place)
	}
	switch {
	case name != "":
		id, find = name, func(ctx context.Context, tx *store.Tx) (project.Project, bool, error) {
			return project.Find(ctx, tx, name)
		}
	case c.config.Cwd == "" || filepath.Dir(c.place.Cwd) == c.place.Cwd:
		return "", nil
	}
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return id, err
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		p, ok, err := find(ctx, tx)
		if ok {
			id = p.ID
		}
		return err
	})
	return id, err
}

// CurrentSession is the session whose agent started this process, directly or
// through others; "" if there is none (records §1), and if the agent's process has
// several open sessions.
func (c *Cairn) CurrentSession(ctx context.Context) (id string, err error) {
	ids, err := c.processSessions(ctx)
	if err != nil || len(ids) != 1 {
		return "", err
	}
	return ids[0], nil
}

// AskingSession returns the id of the open session whose agent started this process; ""
// if there is none, if it has ended, and if the agent's process has several.
func (c *Cairn) AskingSession(ctx context.Context) (id string, err error) {
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return "", err
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, ok, err := project.CurrentSession(ctx, tx, project.Ancestors())
		if ok && !found.HasEnded() {
			id = found.ID
		}
		return err
	})
	return id, err
}

// processSessions are the ids of the sessions of the agent that started this process, see
// project.ProcessSessions.
func (c *Cairn) processSessions(ctx context.Context) (ids []string, err error) {
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return nil, err
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		all, err := project.ProcessSessions(ctx, tx, project.Ancestors())
		for _, found := range all {
			ids = append(ids, found.ID)
		}
		return err
	})
	return ids, err
}

// Context is what a session of a project would be told now: of the named one,
// or of the working directory's. An unknown name is NotFound.
func (c *Cairn) Context(ctx context.Context, name, source string) (ledger.Injection, error) {
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return ledger.Injection{}, err
	}
	var p project.Project
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		var ok bool
		if name == "" {
			p, ok, err = project.Current(ctx, tx, c.place)
		} else {
			p, ok, err = project.Find(ctx, tx, name)
		}
		if err == nil && !ok && name != "" {
			err = project.NotFound(name)
		}
		return err
	})
	if err != nil {
		return ledger.Injection{}, err
	}
	if p.ID == "" {
		p.ID = c.place.Slug // other projects' rows may still have something to say
	}
	branch := ""
	if name == "" {
		branch = c.place.Branch()
	}
	open, err := c.openRecords(ctx, s, p.ID)
	if err != nil {
		return ledger.Injection{}, err
	}
	return sessionstart.BuildForProject(ctx, c.over(s), p, source, branch, open)
}

// Ledger sums up what the sessions of the named project, or of all (""), were told
// in the last days and used; see ledger.Summarize.
func (c *Cairn) Ledger(ctx context.Context, name string, days int) (ledger.Report, error) {
	j, err := c.Observations(ctx)
	if err != nil {
		return ledger.Report{}, err
	}
	return ledger.Summarize(ctx, j, observation.Scope{Project: name}, days)
}

// Mark stores a person's note; see capture.Mark.
func (c *Cairn) Mark(ctx context.Context, a capture.MarkArgs) (int64, error) {
	a.Cwd = c.config.Cwd
	j, err := c.Observations(ctx)
	if err == nil && !j.Exists() { // one that is refused makes no store
		if _, err = capture.Mark(ctx, j, a); err == nil {
			j, err = c.writing(ctx)
		}
	}
	if err != nil {
		return 0, err
	}
	return capture.Mark(ctx, j, a)
}

// Pin pins or unpins rows; see capture.Pin. Without a store every
// target is unknown.
func (c *Cairn) Pin(ctx context.Context, a capture.PinArgs) (int64, error) {
	s, err := c.opened(ctx, false)
	if err != nil {
		return 0, err
	}
	if s == nil {
		return 0, fault.New(fault.NotFound, store.CodeMissing, "there is no store yet")
	}
	a.Cwd = c.config.Cwd
	return capture.Pin(ctx, c.over(s), a)
}

// Projects lists the projects, the one seen last first; none without a store.
func (c *Cairn) Projects(ctx context.Context) (list []project.Summary, err error) {
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return nil, err
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = project.List(ctx, tx)
		return err
	})
	return list, err
}

// AddAlias makes alias mean the project id (observations §2).
func (c *Cairn) AddAlias(ctx context.Context, alias, id string) error {
	return c.changeKnown(ctx, func(ctx context.Context, tx *store.Tx) error {
		return project.AddAlias(ctx, tx, alias, id)
	})
}

// changeKnown changes something about projects that are there; without a store
// there are none, and fn says so.
func (c *Cairn) changeKnown(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	s, err := c.opened(ctx, false)
	switch {
	case err != nil:
		return err
	case s == nil:
		return store.Scratch(ctx, time.Unix(0, 0), fn)
	}
	return s.Write(ctx, store.Full, fn)
}

// Merge moves everything of one project to another, which also answers to its
// name and receives its repository's events from then on (observations §2).
func (c *Cairn) Merge(ctx context.Context, from, into string) error {
	return c.changeKnown(ctx, func(ctx context.Context, tx *store.Tx) error {
		return project.Merge(ctx, tx, from, into, moveRows)
	})
}

// LinkCheckout moves the checkout that holds a path into another project, with the
// sessions that began there; see project.Link. Where its own project has nothing else,
// all of that moves, unless both have records or mail that cannot be joined: these stay.
func (c *Cairn) LinkCheckout(ctx context.Context, path, into string) (project.Decision, error) {
	d, err := c.decide(ctx, path, func(ctx context.Context, tx *store.Tx, at project.Location, sessions []int64) (project.Decision, error) {
		return project.Link(ctx, tx, at, into, sessions, observation.MoveSessions, moveRows)
	})
	if fault.KindOf(err) != fault.Conflict {
		return d, err
	}
	return c.decide(ctx, path, func(ctx context.Context, tx *store.Tx, at project.Location, sessions []int64) (project.Decision, error) {
		return project.Link(ctx, tx, at, into, sessions, observation.MoveSessions, nil)
	})
}

// SplitCheckout makes the checkout that holds a path a project of its own, with the
// sessions that began there; see project.Split. Records, mail and memories stay.
func (c *Cairn) SplitCheckout(ctx context.Context, path, id string) (project.Decision, error) {
	return c.decide(ctx, path, func(ctx context.Context, tx *store.Tx, at project.Location, sessions []int64) (project.Decision, error) {
		return project.Split(ctx, tx, at, id, sessions, observation.MoveSessions)
	})
}

// decide runs what a person decided about the checkout that holds a path.
func (c *Cairn) decide(ctx context.Context, path string, fn func(context.Context, *store.Tx, project.Location, []int64) (project.Decision, error)) (d project.Decision, err error) {
	at, err := project.Locate(filepath.Join(c.config.Cwd, path), c.config.Home)
	if filepath.IsAbs(path) {
		at, err = project.Locate(path, c.config.Home)
	}
	if err != nil {
		return d, err
	}
	err = c.changeKnown(ctx, func(ctx context.Context, tx *store.Tx) error {
		sessions, err := project.SessionsAt(ctx, tx, at)
		if err != nil {
			return err
		}
		d, err = fn(ctx, tx, at, sessions)
		return err
	})
	return d, err
}

// moveRows moves what the parts have of a project that is merged into another.
func moveRows(ctx context.Context, tx *store.Tx, from, into project.Project) error {
	if err := record.MoveRows(ctx, tx, from, into); err != nil {
		return err
	}
	if err := mail.MoveRows(ctx, tx, mailArchive(), from, into); err != nil {
		return err
	}
	if err := memory.MoveRows(ctx, tx, from, into); err != nil {
		return err
	}
	return observation.MoveRows(ctx, tx, from, into)
}
