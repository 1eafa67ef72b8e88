package cairn

import (
	"context"
	"errors"
	"strings"

	"cairn/internal/citation"
	"cairn/internal/fault"
	"cairn/internal/observation/sessionstart"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/store"
	"cairn/internal/why"
)

// Records are the commands of records (records §2), for callers of this process.
// Of a Caller only what the caller said need be set: the working directory and,
// unless Ancestors is an empty list, the processes above this one are added here.
// Errors are those of the Book's method of the same name; a store that cannot be
// opened is record.CodeUnavailable too. Neither reading nor a command that is
// refused makes a store.
type Records struct{ cairn *Cairn }

// Records are the record commands over the store.
func (c *Cairn) Records() Records { return Records{c} }

// NewSessionID is an id for a session that no harness knows (records §1).
func NewSessionID() string { return "S-" + strings.ToUpper(store.NewID()) }

// opened opens the records and completes who calls; there is false where they are over
// nothing.
func (r Records) opened(ctx context.Context, caller *record.Caller, make bool) (b *record.Service, there bool, err error) {
	c := r.cairn
	s, err := c.opened(ctx, make)
	if err != nil {
		return nil, false, unusable(err)
	}
	if caller.Project == "" {
		caller.Place = c.place // the zero one without a working directory
	}
	if caller.SessionID == "" && caller.Ancestors == nil {
		caller.Ancestors = project.Ancestors()
	}
	return record.New(s, c.recordConfig()), s != nil, nil
}

// show adds to what is shown of an answer; nil for an answer without records.
type show[T any] func(all *why.Shown, out *T)

// asking asks something at a moment, "" for now, and judges the citations of what is
// shown.
func asking[T any](ctx context.Context, r Records, caller *record.Caller, at string, ask func(*record.Service) (T, error), shown show[T]) (out T, err error) {
	b, _, err := r.opened(ctx, caller, false)
	if err != nil {
		return out, err
	}
	out, err = ask(b)
	return withDrift(ctx, r, caller, at, out, err, shown)
}

// changing does a command that stores something; see tried.
func changing[T any](ctx context.Context, r Records, caller *record.Caller, do func(*record.Service) (T, error), shown show[T]) (out T, err error) {
	err = tried(func(make bool) (*record.Service, bool, error) { return r.opened(ctx, caller, make) }, func(b *record.Service) error {
		out, err = do(b)
		return err
	})
	return withDrift(ctx, r, caller, "", out, err, shown)
}

// withDrift is an answer whose citations are withDrift.
func withDrift[T any](ctx context.Context, r Records, caller *record.Caller, at string, out T, err error, shown show[T]) (T, error) {
	if err != nil || shown == nil {
		return out, err
	}
	var all why.Shown
	shown(&all, &out)
	err = r.checkDrift(ctx, *caller, at, all) // in out, which all refers to
	return out, err
}

// judge reports which citations of what is shown have drifted; see why.Service.Judge.
func (r Records) checkDrift(ctx context.Context, caller record.Caller, at string, all why.Shown) error {
	s, err := r.cairn.why(ctx)
	if err != nil {
		return err
	}
	return s.Judge(ctx, caller, at, all)
}

// cite keeps what a body cites; see why.Service.Cite.
func (r Records) cite(ctx context.Context, caller record.Caller, body string, old record.Record) ([]record.Cited, error) {
	s, err := r.cairn.why(ctx)
	if err != nil {
		return nil, err
	}
	return s.Cite(ctx, caller, body, old)
}

// unusable gives the reason why a store cannot be opened the code of records
// (records §6), with its own words and hint.
func unusable(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Unavailable && f.Code != store.CodeCorrupt {
		return err
	}
	e := fault.Wrap(err, fault.Unavailable, record.CodeUnavailable, "the store cannot be opened: "+f.Message).WithHint(f.Hint)
	e.Details = map[string]any{"cause": f.Code}
	return e
}

func (c *Cairn) recordConfig() record.Config {
	own := c.settings.records
	config := record.Config{Filter: c.journal.Filter}
	if own.StaleAfter != nil {
		config.StaleAfter = *own.StaleAfter
	}
	if own.MaxDepth != nil {
		config.MaxDepth = *own.MaxDepth
	}
	return config
}

// CreateProject makes a project.
func (r Records) CreateProject(ctx context.Context, a record.CreateProjectArgs) (record.Project, error) {
	return changing(ctx, r, &record.Caller{}, func(b *record.Service) (record.Project, error) { return b.CreateProject(ctx, a) }, nil)
}

// ListProjects lists every project, the one changed last first.
func (r Records) ListProjects(ctx context.Context) ([]record.ProjectSummary, error) {
	return asking(ctx, r, &record.Caller{}, "", func(b *record.Service) ([]record.ProjectSummary, error) { return b.ListProjects(ctx) }, nil)
}

// GetProject is one project.
func (r Records) GetProject(ctx context.Context, a record.GetProjectArgs) (record.Project, error) {
	return asking(ctx, r, &a.Caller, "", func(b *record.Service) (record.Project, error) { return b.GetProject(ctx, a) }, nil)
}

// Overview is where a project stands.
func (r Records) Overview(ctx context.Context, a record.OverviewArgs) (record.Overview, error) {
	return asking(ctx, r, &a.Caller, a.At, func(b *record.Service) (record.Overview, error) { return b.Overview(ctx, a) },
		func(all *why.Shown, out *record.Overview) {
			all.Refs(out.RootRecords)
			all.Refs(out.OpenRecords)
			all.Refs(out.LaterRecords)
		})
}

// Search finds records by their words.
func (r Records) Search(ctx context.Context, a record.SearchArgs) (record.SearchResult, error) {
	return asking(ctx, r, &a.Caller, a.At, func(b *record.Service) (record.SearchResult, error) { return b.Search(ctx, a) },
		func(all *why.Shown, out *record.SearchResult) {
			for i := range out.Results {
				all.Ref(&out.Results[i].Ref)
			}
		})
}

// List lists records, parents first.
func (r Records) List(ctx context.Context, a record.ListArgs) ([]record.Ref, error) {
	return asking(ctx, r, &a.Caller, a.At, func(b *record.Service) ([]record.Ref, error) { return b.List(ctx, a) },
		func(all *why.Shown, out *[]record.Ref) { all.Refs(*out) })
}

// CountStates counts the records of a project by state.
func (r Records) CountStates(ctx context.Context, c record.Caller) (map[record.State]int, error) {
	return asking(ctx, r, &c, "", func(b *record.Service) (map[record.State]int, error) { return b.CountStates(ctx, c) }, nil)
}

// OpenQuestions lists the open questions of a project, those that come last in its tree first.
func (r Records) OpenQuestions(ctx context.Context, c record.Caller, n int) ([]record.Ref, error) {
	return asking(ctx, r, &c, "", func(b *record.Service) ([]record.Ref, error) { return b.OpenQuestions(ctx, c, n) }, nil)
}

// GetRef is a record without its body.
func (r Records) GetRef(ctx context.Context, a record.GetRefArgs) (record.Ref, error) {
	return asking(ctx, r, &a.Caller, a.At, func(b *record.Service) (record.Ref, error) { return b.GetRef(ctx, a) },
		func(all *why.Shown, out *record.Ref) { all.Ref(out) })
}

// Get is a whole record, without loading it into a session.
func (r Records) Get(ctx context.Context, a record.GetRefArgs) (record.Record, error) {
	return asking(ctx, r, &a.Caller, a.At, func(b *record.Service) (record.Record, error) { return b.Get(ctx, a) },
		func(all *why.Shown, out *record.Record) { all.Record(out) })
}

// OfSession lists the records of a project that a session changed, and then those that it
// only activated.
func (r Records) OfSession(ctx context.Context, projectID, session string) ([]record.Touched, error) {
	return asking(ctx, r, &record.Caller{}, "", func(b *record.Service) ([]record.Touched, error) {
		return b.Touched(ctx, project.Project{ID: projectID}, session)
	}, nil)
}

// Activate loads a record and what is needed to reason with it.
func (r Records) Activate(ctx context.Context, a record.ActivateArgs) (record.Activated, error) {
	return changing(ctx, r, &a.Caller, func(b *record.Service) (record.Activated, error) { return b.Activate(ctx, a) },
		func(all *why.Shown, out *record.Activated) { all.Bundle(&out.Context) })
}

// Sync is what other sessions did since the last time.
func (r Records) Sync(ctx context.Context, a record.SyncArgs) (record.Synced, error) {
	return changing(ctx, r, &a.Caller, func(b *record.Service) (record.Synced, error) { return b.Sync(ctx, a) },
		func(all *why.Shown, out *record.Synced) {
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
	return changing(ctx, r, &a.Caller, func(b *record.Service) (out record.Created, err error) {
		if a.Cited, err = r.cite(ctx, a.Caller, a.Body, record.Record{}); err != nil {
			return out, err
		}
		return b.Create(ctx, a)
	}, func(all *why.Shown, out *record.Created) { all.Record(&out.Record) })
}

// Update changes a record's content.
func (r Records) Update(ctx context.Context, a record.UpdateArgs) (record.Updated, error) {
	return changing(ctx, r, &a.Caller, func(b *record.Service) (out record.Updated, err error) {
		if a.Cited, err = r.citeAnew(ctx, b, a); err != nil {
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

// citeAnew keeps what the new body of a record cites.
func (r Records) citeAnew(ctx context.Context, b *record.Service, a record.UpdateArgs) ([]record.Cited, error) {
	if a.Body == nil || len(citation.Parse(*a.Body)) == 0 {
		return nil, nil
	}
	old, err := b.Get(ctx, record.GetRefArgs{Caller: a.Caller, ID: a.ID})
	if err != nil && fault.KindOf(err) != fault.NotFound { // which Update says better
		return nil, err
	}
	return r.cite(ctx, a.Caller, *a.Body, old)
}

// Transition changes a record's state.
func (r Records) Transition(ctx context.Context, a record.TransitionArgs) (record.Transitioned, error) {
	return changing(ctx, r, &a.Caller, func(b *record.Service) (record.Transitioned, error) { return b.Transition(ctx, a) },
		func(all *why.Shown, out *record.Transitioned) {
			all.Record(&out.Record)
			if out.CascadeWarning != nil {
				all.Refs(out.CascadeWarning.OpenChildren)
			}
		})
}

// Save marks what the session did so far.
func (r Records) Save(ctx context.Context, a record.SaveArgs) (record.Saved, error) {
	return changing(ctx, r, &a.Caller, func(b *record.Service) (record.Saved, error) { return b.Save(ctx, a) }, nil)
}

// Close ends a session's work on the project.
func (r Records) Close(ctx context.Context, a record.SaveArgs) (record.Closed, error) {
	return changing(ctx, r, &a.Caller, func(b *record.Service) (record.Closed, error) { return b.Close(ctx, a) }, nil)
}

// History lists a record's stored changes, newest first.
func (r Records) History(ctx context.Context, a record.HistoryArgs) ([]record.HistoryItem, error) {
	return asking(ctx, r, &a.Caller, "", func(b *record.Service) ([]record.HistoryItem, error) { return b.History(ctx, a) }, nil)
}

// Diff compares two versions of a record.
func (r Records) Diff(ctx context.Context, a record.DiffArgs) (record.VersionDiff, error) {
	out, err := asking(ctx, r, &a.Caller, a.To, func(b *record.Service) (record.VersionDiff, error) { return b.Diff(ctx, a) },
		func(all *why.Shown, out *record.VersionDiff) { all.Record(&out.ToVersion) })
	return withDrift(ctx, r, &a.Caller, a.From, out, err, func(all *why.Shown, out *record.VersionDiff) { all.Record(&out.FromVersion) })
}

// ActiveSessions lists the sessions that hold a record.
func (r Records) ActiveSessions(ctx context.Context, a record.ActiveSessionsArgs) ([]record.ActiveSession, error) {
	return asking(ctx, r, &a.Caller, "", func(b *record.Service) ([]record.ActiveSession, error) { return b.ActiveSessions(ctx, a) }, nil)
}

// RecentActivity lists what happened, newest first.
func (r Records) RecentActivity(ctx context.Context, a record.ActivityArgs) ([]record.Activity, error) {
	return asking(ctx, r, &a.Caller, "", func(b *record.Service) ([]record.Activity, error) { return b.RecentActivity(ctx, a) }, nil)
}

// maxOpenRecords is how many records a new session is told of (records §3).
const maxOpenRecords = 5

// openRecords is what a session that starts in a project is told of its records:
// the OPEN ones that the last session had active.
func (c *Cairn) openRecords(ctx context.Context, s *store.Store, projectID string) (sessionstart.Section, error) {
	section := sessionstart.Section{Title: "Open"}
	if c.journal.Limits.Off {
		return section, nil
	}
	refs, err := record.New(s, c.recordConfig()).LastActive(ctx, record.Caller{Project: projectID}, maxOpenRecords)
	for _, r := range refs {
		section.Lines = append(section.Lines, r.ID+" "+r.Type+": "+r.Title)
	}
	return section, err
}
