package cairn

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"cairn/internal/archive"
	"cairn/internal/fault"
	"cairn/internal/gitread"
	"cairn/internal/guard"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/project"
	"cairn/internal/store"
)

// mailService returns the mail part for a store, which may be nil.
func (c *Cairn) mailService(s *store.Store) *service.Mail {
	config := c.settings.work.mailConfig()
	config.Filter, config.DataFolder = c.observationConfig.Filter, c.config.Dir
	config.Commits, config.Archive = c.commits, mailArchive()
	config.DiskLevel = func() mail.DiskLevel {
		level, _ := c.settings.work.Disk.space().Level(c.config.DB, c.ArchiveDir())
		return mail.DiskLevel(level)
	}
	config.Edits = func(ctx context.Context, project string, since time.Time) (all []mail.Touch, err error) {
		files, err := browse.Touched(ctx, c.observationsOver(s), project, since)
		for _, f := range files {
			all = append(all, mail.Touch{Path: f.Path, At: time.Unix(f.At, 0)})
		}
		return all, err
	}
	return service.New(s, config)
}

// mailArchive returns the archive functions that the mail part needs.
func mailArchive() mail.Archive {
	return mail.Archive{
		CommitOf: func(ctx context.Context, tx *store.Tx, project, seq int64) (*mail.Commit, error) {
			k, ok, err := archive.CommitOf(ctx, tx, project, seq)
			if err != nil || !ok {
				return nil, err
			}
			return &mail.Commit{SHA: k.SHA, Summary: k.Summary, Authored: mail.Time(k.Authored)}, nil
		},
		CommitsBy: func(ctx context.Context, tx *store.Tx, project int64, stream string, agents []string, limit int) (out []mail.Commit, err error) {
			found, err := archive.CommitsBy(ctx, tx, project, stream, agents, limit)
			for _, k := range found {
				out = append(out, mail.Commit{SHA: k.SHA, Summary: k.Summary, Authored: mail.Time(k.Authored)})
			}
			return out, err
		},
		Bury: archive.ForgetSubject, Move: archive.MoveRows,
	}
}

// commits lists the files that recent commits changed in the repository at a folder. The
// list is empty without a repository or without git.
func (c *Cairn) commits(ctx context.Context, root string, since time.Time) (all []mail.Touch, err error) {
	place, err := project.Locate(root, c.config.Home)
	if err != nil || place.Root == "" || place.Gone {
		return nil, err
	}
	repository, err := gitread.Open(place.Root)
	if fault.HasCode(err, gitread.CodeNoGit) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := repository.Touched(ctx, since)
	for _, f := range files {
		all = append(all, mail.Touch{Path: f.Path, At: f.At})
	}
	return all, err
}

// Guard returns the guard of commits and pushes for the working directory.
func (c *Cairn) Guard() *guard.Service {
	return &guard.Service{
		Mail: func(ctx context.Context) (*service.Mail, bool, error) {
			s, err := c.opened(ctx, false)
			return c.mailService(s), s != nil, err
		},
		Sessions: c.processSessions, Place: c.location, Cwd: c.config.Cwd, Home: c.config.Home,
	}
}

// GuardSettings returns guard.mode, "" if it is not set, and guard.strict.
func (c *Cairn) GuardSettings() (mode string, strict bool) {
	return value(c.settings.work.Guard.Mode), value(c.settings.work.Guard.Strict)
}

// guardEdits checks the edits that an event announces against the reservations of other
// agents (mail §8). For a harness that can only be warned after the tool, it checks the
// completed edits. The decision is zero for other events and without a conflict. It
// changes nothing. Its time limit does not include opening the store.
func (c *Cairn) guardEdits(ctx context.Context, e *observation.Event) harness.GuardDecision {
	paths := editedFiles(e)
	mode := c.settings.work.Guard.mode()
	if e.Source != "PreToolUse" && !harnesses.WarnsAfter(*e) || len(paths) == 0 || mode == guard.Off {
		return harness.GuardDecision{}
	}
	found, err := c.reservationConflicts(ctx, e, paths)
	switch {
	case err != nil || !found.Managed:
		if !value(c.settings.work.Guard.Strict) {
			return harness.GuardDecision{}
		}
		return harness.GuardDecision{Decision: harness.Ask, Reason: "cairn could not check whether other agents have reserved these files; guard.strict is set."}
	case len(found.Obstacles) == 0:
		return harness.GuardDecision{}
	}
	v := harness.GuardDecision{Decision: harness.Ask, Reason: reservations.GuardText(found.Obstacles, c.location, found.Names...)}
	if mode == guard.Block {
		v.Decision = harness.Deny
	}
	return v
}

// reservationConflicts returns the reservations of other agents that cover the paths.
func (c *Cairn) reservationConflicts(ctx context.Context, e *observation.Event, paths []string) (reservations.Guarded, error) {
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return reservations.Guarded{}, err
	}
	limit := c.settings.work.Guard.time(len(paths))
	limited, stop := withCPULimit(ctx, limit, limit+guardWallLimit)
	defer stop()
	return c.mailService(s).Guard(limited, reservations.GuardArgs{Session: e.Session, Agent: c.config.Agent, Place: c.location, Paths: paths})
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
func (c *Cairn) runMail(ctx context.Context, e *observation.Event, q project.Project, v harness.GuardDecision, starts bool) (text string, err error) {
	o := c.mailService(c.store)
	switch {
	case e.Kind == observation.SessionEnd:
		_, err = o.EndSession(ctx, e.Session)
		return "", err
	case starts:
		if err := c.beginSession(ctx, o, e); err != nil {
			return "", err
		}
	case e.Source == "PreToolUse":
		return "", c.lease(ctx, o, e, v)
	}
	if e.Source != "SessionStart" && e.Source != "UserPromptSubmit" && e.Source != "PostToolUse" {
		return "", nil
	}
	often := e.Source == "PostToolUse"
	if err := c.bind(ctx, o, e, q); err != nil {
		return "", err
	}
	if isOff(c.settings.work.Mail.Notices) {
		return "", nil
	}
	return o.Notices(ctx, service.NoticeArgs{
		Session: e.Session, Event: e.Source, Often: often, Mute: e.AgentID != "" || !harnesses.Listens(*e),
	})
}

// beginSession gives a session the agents of its lineage, and releases the reservations
// that no session has taken over.
func (c *Cairn) beginSession(ctx context.Context, o *service.Mail, e *observation.Event) error {
	if err := o.BeginSession(ctx, e.Session, c.config.Agent != ""); err != nil {
		return err
	}
	_, err := o.ReleaseOrphans(ctx)
	return err
}

// bind binds a session to the agent of CAIRN_AGENT. After a call of a mail tool it binds
// the session to the agent of the call.
func (c *Cairn) bind(ctx context.Context, o *service.Mail, e *observation.Event, q project.Project) error {
	if e.Source != "PostToolUse" {
		if c.config.Agent == "" {
			return nil
		}
		return o.Bind(ctx, mail.Caller{Place: c.location}, q, agents.Binding{Session: e.Session, Agent: c.config.Agent, Source: mail.SourceEnvironment})
	}
	if e.Kind != observation.Touch || len(e.Calls) != 1 || e.Calls[0].Failed || e.Calls[0].Result == "" {
		return nil
	}
	call := &e.Calls[0]
	return o.BindObservedCall(ctx, q, agents.ObservedCall{
		Session: e.Session, Place: c.location, Tool: call.Method, Result: call.Result,
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
func (c *Cairn) lease(ctx context.Context, o *service.Mail, e *observation.Event, v harness.GuardDecision) error {
	paths := editedFiles(e)
	if !value(c.settings.work.Guard.AutoReserve) || v.Decision != "" || len(paths) == 0 {
		return nil
	}
	for i, p := range paths {
		paths[i] = filepath.Clean(c.location.Absolute(p))
	}
	_, err := o.Lease(ctx, reservations.LeaseArgs{
		Session: e.Session, Program: programOf(e.Harness), Model: e.Model, Agent: c.config.Agent, Place: c.location, Paths: paths,
		TTL: c.settings.work.Guard.lease(),
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
