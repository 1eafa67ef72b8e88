package cairn

import (
	"context"
	"errors"
	"strings"

	"cairn/internal/citation"
	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/record/lookup"
	"cairn/internal/store"
	"cairn/internal/why"
)

// Records provides the commands of records (records §2) for callers in this process. A
// Caller needs only the caller's own arguments. Records adds the working directory and,
// unless Ancestors is an empty list, the ancestors of this process.
//
// Errors are those of the method of commands.Commands with the same name. A store that cannot
// be opened is record.CodeUnavailable. Reads and rejected commands do not create a store.
type Records struct{ cairn *Cairn }

// Records returns the records of the store.
func (c *Cairn) Records() Records { return Records{c} }

// NewSessionID returns an id for a session without a harness (records §1).
func NewSessionID() string { return "S-" + strings.ToUpper(store.NewID()) }

// opened opens the records and completes the caller; its result there is false if there is no
// store.
func (r Records) opened(ctx context.Context, caller *record.Caller, make bool) (b *commands.Commands, there bool, err error) {
	c := r.cairn
	s, err := c.Opened(ctx, make)
	if err != nil {
		return nil, false, recordStoreFault(err)
	}
	if caller.Project == "" {
		caller.Place = c.Location // zero without a working directory
	}
	if caller.SessionID == "" && caller.Ancestors == nil {
		caller.Ancestors = project.Ancestors()
	}
	return commands.New(s, c.RecordConfig()), s != nil, nil
}

// show adds the records of a result to the shown ones; nil for results without records.
type show[T any] func(all *why.Shown, out *T)

// readRecords runs a read at a moment, "" for now, and checks the citations of the shown
// records for drift.
func readRecords[T any](ctx context.Context, r Records, caller *record.Caller, at string, ask func(*commands.Commands) (T, error), shown show[T]) (out T, err error) {
	b, _, err := r.opened(ctx, caller, false)
	if err != nil {
		return out, err
	}
	out, err = ask(b)
	return withDrift(ctx, r, caller, at, out, err, shown)
}

// changeRecords runs a command that writes; see tryThenCreate.
func changeRecords[T any](ctx context.Context, r Records, caller *record.Caller, do func(*commands.Commands) (T, error), shown show[T]) (out T, err error) {
	err = tryThenCreate(func(make bool) (*commands.Commands, bool, error) { return r.opened(ctx, caller, make) }, func(b *commands.Commands) error {
		out, err = do(b)
		return err
	})
	return withDrift(ctx, r, caller, "", out, err, shown)
}

// withDrift returns a result after checking its citations for drift.
func withDrift[T any](ctx context.Context, r Records, caller *record.Caller, at string, out T, err error, shown show[T]) (T, error) {
	if err != nil || shown == nil {
		return out, err
	}
	var all why.Shown
	shown(&all, &out)
	err = r.checkDrift(ctx, *caller, at, all) // in out, which all refers to
	return out, err
}

// checkDrift marks the drifted citations of the shown records; see why.Service.
func (r Records) checkDrift(ctx context.Context, caller record.Caller, at string, all why.Shown) error {
	s, err := r.cairn.why(ctx)
	if err != nil {
		return err
	}
	return s.Judge(ctx, caller, at, all)
}

// cite returns the citations of a body; see why.Service.Cite.
func (r Records) cite(ctx context.Context, caller record.Caller, body string, old record.Record) ([]record.Cited, error) {
	s, err := r.cairn.why(ctx)
	if err != nil {
		return nil, err
	}
	return s.Cite(ctx, caller, body, old)
}

// recordStoreFault converts the error of a store that cannot be opened to the code of
// records (records §6). It keeps the text and the hint.
func recordStoreFault(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Unavailable && f.Code != store.CodeCorrupt {
		return err
	}
	e := fault.Wrap(err, fault.Unavailable, record.CodeUnavailable, "the store cannot be opened: "+f.Message).WithHint(f.Hint)
	e.Details = map[string]any{"cause": f.Code}
	return e
}

// CreateProject creates a project.
func (r Records) CreateProject(ctx context.Context, a record.CreateProjectArgs) (record.Project, error) {
	return changeRecords(ctx, r, &record.Caller{}, func(b *commands.Commands) (record.Project, error) { return b.CreateProject(ctx, a) }, nil)
}

// ListProjects lists all projects, last changed first.
func (r Records) ListProjects(ctx context.Context) ([]record.ProjectSummary, error) {
	return readRecords(ctx, r, &record.Caller{}, "", func(b *commands.Commands) ([]record.ProjectSummary, error) { return b.ListProjects(ctx) }, nil)
}

// GetProject returns one project.
func (r Records) GetProject(ctx context.Context, a record.GetProjectArgs) (record.Project, error) {
	return readRecords(ctx, r, &a.Caller, "", func(b *commands.Commands) (record.Project, error) { return b.GetProject(ctx, a) }, nil)
}

// Overview returns the state of a project.
func (r Records) Overview(ctx context.Context, a record.OverviewArgs) (record.Overview, error) {
	return readRecords(ctx, r, &a.Caller, a.At, func(b *commands.Commands) (record.Overview, error) { return b.Overview(ctx, a) },
		func(all *why.Shown, out *record.Overview) {
			all.Refs(out.RootRecords)
			all.Refs(out.OpenRecords)
			all.Refs(out.LaterRecords)
		})
}

// Search finds records by their words.
func (r Records) Search(ctx context.Context, a record.SearchArgs) (record.SearchResult, error) {
	return readRecords(ctx, r, &a.Caller, a.At, func(b *commands.Commands) (record.SearchResult, error) { return b.Search(ctx, a) },
		func(all *why.Shown, out *record.SearchResult) {
			for i := range out.Results {
				all.Ref(&out.Results[i].Ref)
			}
		})
}

// List lists records, parents first.
func (r Records) List(ctx context.Context, a record.ListArgs) ([]record.Ref, error) {
	return readRecords(ctx, r, &a.Caller, a.At, func(b *commands.Commands) ([]record.Ref, error) { return b.List(ctx, a) },
		func(all *why.Shown, out *[]record.Ref) { all.Refs(*out) })
}

// CountStates counts the records of a project by state.
func (r Records) CountStates(ctx context.Context, c record.Caller) (map[record.State]int, error) {
	return readRecords(ctx, r, &c, "", func(b *commands.Commands) (map[record.State]int, error) { return b.CountStates(ctx, c) }, nil)
}

// OpenQuestions lists the open questions of a project, last in the tree first.
func (r Records) OpenQuestions(ctx context.Context, c record.Caller, n int) ([]record.Ref, error) {
	return readRecords(ctx, r, &c, "", func(b *commands.Commands) ([]record.Ref, error) { return b.OpenQuestions(ctx, c, n) }, nil)
}

// GetRef returns a record without its body.
func (r Records) GetRef(ctx context.Context, a record.GetRefArgs) (record.Ref, error) {
	return readRecords(ctx, r, &a.Caller, a.At, func(b *commands.Commands) (record.Ref, error) { return b.GetRef(ctx, a) },
		func(all *why.Shown, out *record.Ref) { all.Ref(out) })
}

// Get returns a whole record, without loading it into a session.
func (r Records) Get(ctx context.Context, a record.GetRefArgs) (record.Record, error) {
	return readRecords(ctx, r, &a.Caller, a.At, func(b *commands.Commands) (record.Record, error) { return b.Get(ctx, a) },
		func(all *why.Shown, out *record.Record) { all.Record(out) })
}

// OfSession lists the records of a project that a session changed, then the records that it
// only activated.
func (r Records) OfSession(ctx context.Context, projectID, session string) ([]lookup.Touched, error) {
	return readRecords(ctx, r, &record.Caller{}, "", func(b *commands.Commands) ([]lookup.Touched, error) {
		return b.Touched(ctx, project.Project{ID: projectID}, session)
	}, nil)
}

// Activate loads a record with its parent and children.
func (r Records) Activate(ctx context.Context, a record.ActivateArgs) (record.Activated, error) {
	return changeRecords(ctx, r, &a.Caller, func(b *commands.Commands) (record.Activated, error) { return b.Activate(ctx, a) },
		func(all *why.Shown, out *record.Activated) { all.Bundle(&out.Context) })
}

// Sync returns the changes of other sessions since the last sync.
func (r Records) Sync(ctx context.Context, a record.SyncArgs) (record.SyncResult, error) {
	return changeRecords(ctx, r, &a.Caller, func(b *commands.Commands) (record.SyncResult, error) { return b.Sync(ctx, a) },
		func(all *why.Shown, out *record.SyncResult) {
			for i := range out.Changes {
				if ref, ok := out.Changes[i].NewValue.(record.Ref); ok {
					all.Ref(&ref)
					out.Changes[i].NewValue = &ref
				}
			}
		})
}

// Create stores a new record.
func (r Records) Create(ctx context.Context, a record.CreateArgs) (record.Created, error) {
	return changeRecords(ctx, r, &a.Caller, func(b *commands.Commands) (out record.Created, err error) {
		if a.Cited, err = r.cite(ctx, a.Caller, a.Body, record.Record{}); err != nil {
			return out, err
		}
		return b.Create(ctx, a)
	}, func(all *why.Shown, out *record.Created) { all.Record(&out.Record) })
}

// Update changes a record's content.
func (r Records) Update(ctx context.Context, a record.UpdateArgs) (record.Updated, error) {
	return changeRecords(ctx, r, &a.Caller, func(b *commands.Commands) (out record.Updated, err error) {
		if a.Cited, err = r.citeUpdated(ctx, b, a); err != nil {
			return out, err
		}
		return b.Update(ctx, a)
	}, func(all *why.Shown, out *record.Updated) {
		all.Record(&out.Record)
		if out.Conflict != nil {
			all.Record(&out.Conflict.OtherVersion)
			all.Record(&out.Conflict.YourVersion)
		}
	})
}

// citeUpdated returns the citations of a record's new body.
func (r Records) citeUpdated(ctx context.Context, b *commands.Commands, a record.UpdateArgs) ([]record.Cited, error) {
	if a.Body == nil || len(citation.Parse(*a.Body)) == 0 {
		return nil, nil
	}
	old, err := b.Get(ctx, record.GetRefArgs{Caller: a.Caller, ID: a.ID})
	if err != nil && fault.KindOf(err) != fault.NotFound { // Update returns a better error
		return nil, err
	}
	return r.cite(ctx, a.Caller, *a.Body, old)
}

// Transition changes a record's state.
func (r Records) Transition(ctx context.Context, a record.TransitionArgs) (record.Transitioned, error) {
	return changeRecords(ctx, r, &a.Caller, func(b *commands.Commands) (record.Transitioned, error) { return b.Transition(ctx, a) },
		func(all *why.Shown, out *record.Transitioned) {
			all.Record(&out.Record)
			if out.CascadeWarning != nil {
				all.Refs(out.CascadeWarning.OpenChildren)
			}
		})
}

// Save marks the changes of the session as saved.
func (r Records) Save(ctx context.Context, a record.SaveArgs) (record.Saved, error) {
	return changeRecords(ctx, r, &a.Caller, func(b *commands.Commands) (record.Saved, error) { return b.Save(ctx, a) }, nil)
}

// Close ends a session's work on the project.
func (r Records) Close(ctx context.Context, a record.SaveArgs) (record.Closed, error) {
	return changeRecords(ctx, r, &a.Caller, func(b *commands.Commands) (record.Closed, error) { return b.Close(ctx, a) }, nil)
}

// History lists a record's stored changes, newest first.
func (r Records) History(ctx context.Context, a record.HistoryArgs) ([]record.HistoryItem, error) {
	return readRecords(ctx, r, &a.Caller, "", func(b *commands.Commands) ([]record.HistoryItem, error) { return b.History(ctx, a) }, nil)
}

// Diff compares two versions of a record.
func (r Records) Diff(ctx context.Context, a record.DiffArgs) (record.VersionDiff, error) {
	out, err := readRecords(ctx, r, &a.Caller, a.To, func(b *commands.Commands) (record.VersionDiff, error) { return b.Diff(ctx, a) },
		func(all *why.Shown, out *record.VersionDiff) { all.Record(&out.ToVersion) })
	return withDrift(ctx, r, &a.Caller, a.From, out, err, func(all *why.Shown, out *record.VersionDiff) { all.Record(&out.FromVersion) })
}

// ActiveSessions lists the sessions that have a record active.
func (r Records) ActiveSessions(ctx context.Context, a record.ActiveSessionsArgs) ([]record.ActiveSession, error) {
	return readRecords(ctx, r, &a.Caller, "", func(b *commands.Commands) ([]record.ActiveSession, error) { return b.ActiveSessions(ctx, a) }, nil)
}

// RecentActivity lists the activity of a project, newest first.
func (r Records) RecentActivity(ctx context.Context, a record.ActivityArgs) ([]record.Activity, error) {
	return readRecords(ctx, r, &a.Caller, "", func(b *commands.Commands) ([]record.Activity, error) { return b.RecentActivity(ctx, a) }, nil)
}
