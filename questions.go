package cairn

import (
	"context"
	"path/filepath"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/memory/vaults"
	"cairn/internal/observation"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/sessionstart"
	"cairn/internal/project"
	"cairn/internal/record/histories"
	"cairn/internal/store"
	"cairn/internal/workspace"
)

// Here returns the id of the project name, or of the working directory's project if name is
// "". It returns "" for a filesystem root and without a working directory. For a project
// without a row it returns the id that the project would get, or its name.
func (c *Cairn) Here(ctx context.Context, name string) (string, error) {
	id, find := c.Location.Slug, func(ctx context.Context, tx *store.Tx) (project.Project, bool, error) {
		return project.Current(ctx, tx, c.Location)
	}
	switch {
	case name != "":
		id, find = name, func(ctx context.Context, tx *store.Tx) (project.Project, bool, error) {
			return project.Find(ctx, tx, name)
		}
	case c.Config.Cwd == "" || filepath.Dir(c.Location.Cwd) == c.Location.Cwd:
		return "", nil
	}
	s, err := c.Opened(ctx, false)
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

// CurrentSession returns the session whose agent started this process, directly or through
// other processes. It returns "" if there is none (records §1), or if the agent's process
// has several open sessions.
func (c *Cairn) CurrentSession(ctx context.Context) (id string, err error) {
	ids, err := c.processSessions(ctx)
	if err != nil || len(ids) != 1 {
		return "", err
	}
	return ids[0], nil
}

// CallerSession returns the open session whose agent started this process. It returns ""
// if there is none, if it has ended, or if the agent's process has several.
func (c *Cairn) CallerSession(ctx context.Context) (id string, err error) {
	s, err := c.Opened(ctx, false)
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

// processSessions returns the sessions of the agent that started this process; see
// project.ProcessSessions.
func (c *Cairn) processSessions(ctx context.Context) (ids []string, err error) {
	s, err := c.Opened(ctx, false)
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

// Context returns the context that a session would get now, in the named project or in the
// working directory's. An unknown name is NotFound.
func (c *Cairn) Context(ctx context.Context, name, source string) (ledger.Injection, error) {
	s, err := c.Opened(ctx, false)
	if err != nil || s == nil {
		return ledger.Injection{}, err
	}
	var p project.Project
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		var ok bool
		if name == "" {
			p, ok, err = project.Current(ctx, tx, c.Location)
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
		p.ID = c.Location.Slug // rows of other projects may still be in the context
	}
	branch := ""
	if name == "" {
		branch = c.Location.Branch()
	}
	open, err := c.OpenRecords(ctx, s, p.ID)
	if err != nil {
		return ledger.Injection{}, err
	}
	return sessionstart.BuildForProject(ctx, c.ObservationsOver(s), p, source, branch, open)
}

// Ledger summarises which context the sessions of a project, or of all (""), got and used
// in the last days; see observation.Service.Ledger.
func (c *Cairn) Ledger(ctx context.Context, name string, days int) (ledger.Report, error) {
	j, err := c.Observations(ctx)
	if err != nil {
		return ledger.Report{}, err
	}
	return ledger.Summarize(ctx, j, observation.Scope{Project: name}, days)
}

// Mark stores a user's note; see observation.Service.Mark.
func (c *Cairn) Mark(ctx context.Context, a capture.MarkArgs) (int64, error) {
	a.Cwd = c.Config.Cwd
	j, err := c.Observations(ctx)
	if err == nil && !j.Exists() { // a rejected mark does not create a store
		if _, err = capture.Mark(ctx, j, a); err == nil {
			j, err = c.WritableObservations(ctx)
		}
	}
	if err != nil {
		return 0, err
	}
	return capture.Mark(ctx, j, a)
}

// Pin pins or unpins rows; see observation.Service.Pin. Without a store every
// target is unknown.
func (c *Cairn) Pin(ctx context.Context, a capture.PinArgs) (int64, error) {
	s, err := c.Opened(ctx, false)
	if err != nil {
		return 0, err
	}
	if s == nil {
		return 0, fault.New(fault.NotFound, store.CodeMissing, "there is no store yet")
	}
	a.Cwd = c.Config.Cwd
	return capture.Pin(ctx, c.ObservationsOver(s), a)
}

// Projects lists the projects, last used first. It is empty without a store.
func (c *Cairn) Projects(ctx context.Context) (list []project.Summary, err error) {
	s, err := c.Opened(ctx, false)
	if err != nil || s == nil {
		return nil, err
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = project.List(ctx, tx)
		return err
	})
	return list, err
}

// AddAlias adds alias as a name of the project id (observations §2).
func (c *Cairn) AddAlias(ctx context.Context, alias, id string) error {
	return c.changeKnown(ctx, func(ctx context.Context, tx *store.Tx) error {
		return project.AddAlias(ctx, tx, alias, id)
	})
}

// changeKnown runs fn, which changes existing projects. Without a store there are none, and
// fn returns its error.
func (c *Cairn) changeKnown(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	s, err := c.Opened(ctx, false)
	switch {
	case err != nil:
		return err
	case s == nil:
		return store.Scratch(ctx, time.Unix(0, 0), fn)
	}
	return s.Write(ctx, store.Full, fn)
}

// Merge moves everything of one project to another. The other project gets the first project's
// name as an alias, and the new events of its repository (observations §2).
func (c *Cairn) Merge(ctx context.Context, from, into string) error {
	return c.changeKnown(ctx, func(ctx context.Context, tx *store.Tx) error {
		return project.Merge(ctx, tx, from, into, moveRows)
	})
}

// LinkCheckout moves the checkout that contains a path to another project, with the
// sessions that started there; see project.Link. If its own project has no other checkout,
// all of its data moves. Records and mail stay if both projects have some that cannot be
// merged.
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

// SplitCheckout moves the checkout that contains a path to a new project, with the sessions
// that started there; see project.Split. Records, mail and memories stay.
func (c *Cairn) SplitCheckout(ctx context.Context, path, id string) (project.Decision, error) {
	return c.decide(ctx, path, func(ctx context.Context, tx *store.Tx, at project.Location, sessions []int64) (project.Decision, error) {
		return project.Split(ctx, tx, at, id, sessions, observation.MoveSessions)
	})
}

// decide runs the user's decision about the checkout that contains a path.
func (c *Cairn) decide(ctx context.Context, path string, fn func(context.Context, *store.Tx, project.Location, []int64) (project.Decision, error)) (d project.Decision, err error) {
	at, err := project.Locate(filepath.Join(c.Config.Cwd, path), c.Config.Home)
	if filepath.IsAbs(path) {
		at, err = project.Locate(path, c.Config.Home)
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

// moveRows moves the rows of all parts when a project is merged into another.
func moveRows(ctx context.Context, tx *store.Tx, from, into project.Project) error {
	if err := histories.MoveRows(ctx, tx, from, into); err != nil {
		return err
	}
	if err := mail.MoveRows(ctx, tx, workspace.MailArchive(), from, into); err != nil {
		return err
	}
	if err := vaults.MoveRows(ctx, tx, from, into); err != nil {
		return err
	}
	return observation.MoveRows(ctx, tx, from, into)
}
