package cairn

import (
	"context"
	"errors"
	"strings"

	"cairn/internal/citation"
	"cairn/internal/fault"
	"cairn/internal/observation"
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

// book opens the records and completes who calls.
func (r Records) book(ctx context.Context, caller *record.Caller) (*record.Book, error) {
	return r.opened(ctx, caller, false)
}

// changing does a command that stores something. While there is no store it is
// first tried over nothing, so that one that is refused makes none.
func changing[T any](ctx context.Context, r Records, caller *record.Caller, do func(*record.Book) (T, error)) (out T, err error) {
	b, err := r.book(ctx, caller)
	if err != nil {
		return out, err
	}
	if !b.Exists() {
		if out, err = do(b); err != nil {
			return out, err
		}
		if b, err = r.opened(ctx, caller, true); err != nil {
			return out, err
		}
	}
	return do(b)
}

func (r Records) opened(ctx context.Context, caller *record.Caller, make bool) (*record.Book, error) {
	c := r.cairn
	s, err := c.opened(ctx, make)
	if err != nil {
		return nil, unusable(err)
	}
	if caller.Project == "" {
		caller.Place = c.place // the zero one without a working directory
	}
	if caller.SessionID == "" && caller.Ancestors == nil {
		caller.Ancestors = project.Ancestors()
	}
	return record.New(s, c.recordConfig()), nil
}

// judge tells which citations of what is shown have drifted; see why.Service.Judge.
func (r Records) judge(ctx context.Context, caller record.Caller, at string, all why.Shown) error {
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
	return changing(ctx, r, &record.Caller{}, func(b *record.Book) (record.Project, error) { return b.CreateProject(ctx, a) })
}

// ListProjects lists every project, the one changed last first.
func (r Records) ListProjects(ctx context.Context) ([]record.ProjectSummary, error) {
	b, err := r.book(ctx, &record.Caller{})
	if err != nil {
		return nil, err
	}
	return b.ListProjects(ctx)
}

// GetProject is one project.
func (r Records) GetProject(ctx context.Context, a record.GetProjectArgs) (record.Project, error) {
	b, err := r.book(ctx, &a.Caller)
	if err != nil {
		return record.Project{}, err
	}
	return b.GetProject(ctx, a)
}

// Overview is where a project stands.
func (r Records) Overview(ctx context.Context, a record.OverviewArgs) (record.Overview, error) {
	b, err := r.book(ctx, &a.Caller)
	if err != nil {
		return record.Overview{}, err
	}
	out, err := b.Overview(ctx, a)
	if err != nil {
		return out, err
	}
	var all why.Shown
	all.Refs(out.RootRecords)
	all.Refs(out.OpenRecords)
	all.Refs(out.LaterRecords)
	err = r.judge(ctx, a.Caller, a.At, all)
	return out, err
}

// Search finds records by their words.
func (r Records) Search(ctx context.Context, a record.SearchArgs) (record.SearchResult, error) {
	b, err := r.book(ctx, &a.Caller)
	if err != nil {
		return record.SearchResult{}, err
	}
	out, err := b.Search(ctx, a)
	if err != nil {
		return out, err
	}
	var all why.Shown
	for i := range out.Results {
		all.Ref(&out.Results[i].Ref)
	}
	err = r.judge(ctx, a.Caller, a.At, all)
	return out, err
}

// List lists records, parents first.
func (r Records) List(ctx context.Context, a record.ListArgs) ([]record.Ref, error) {
	b, err := r.book(ctx, &a.Caller)
	if err != nil {
		return nil, err
	}
	out, err := b.List(ctx, a)
	if err != nil {
		return out, err
	}
	var all why.Shown
	all.Refs(out)
	err = r.judge(ctx, a.Caller, a.At, all)
	return out, err
}

// GetRef is a record without its body.
func (r Records) GetRef(ctx context.Context, a record.GetRefArgs) (record.Ref, error) {
	b, err := r.book(ctx, &a.Caller)
	if err != nil {
		return record.Ref{}, err
	}
	out, err := b.GetRef(ctx, a)
	if err != nil {
		return out, err
	}
	var all why.Shown
	all.Ref(&out)
	err = r.judge(ctx, a.Caller, a.At, all)
	return out, err
}

// Get is a whole record, without loading it into a session.
func (r Records) Get(ctx context.Context, a record.GetRefArgs) (record.Record, error) {
	b, err := r.book(ctx, &a.Caller)
	if err != nil {
		return record.Record{}, err
	}
	out, err := b.Get(ctx, a)
	if err != nil {
		return out, err
	}
	var all why.Shown
	all.Record(&out)
	err = r.judge(ctx, a.Caller, a.At, all)
	return out, err
}

// Activate loads a record and what is needed to reason with it.
func (r Records) Activate(ctx context.Context, a record.ActivateArgs) (record.Activated, error) {
	out, err := changing(ctx, r, &a.Caller, func(b *record.Book) (record.Activated, error) { return b.Activate(ctx, a) })
	if err != nil {
		return out, err
	}
	var all why.Shown
	all.Bundle(&out.Context)
	err = r.judge(ctx, a.Caller, "", all)
	return out, err
}

// Sync is what other sessions did since the last time.
func (r Records) Sync(ctx context.Context, a record.SyncArgs) (record.Synced, error) {
	out, err := changing(ctx, r, &a.Caller, func(b *record.Book) (record.Synced, error) { return b.Sync(ctx, a) })
	if err != nil {
		return out, err
	}
	var all why.Shown
	for i := range out.Changes {
		if ref, ok := out.Changes[i].NewValue.(record.Ref); ok {
			all.Ref(&ref)
			out.Changes[i].NewValue = &ref
		}
	}
	err = r.judge(ctx, a.Caller, "", all)
	return out, err
}

// Create stores a new record.
func (r Records) Create(ctx context.Context, a record.CreateArgs) (record.Created, error) {
	out, err := changing(ctx, r, &a.Caller, func(b *record.Book) (out record.Created, err error) {
		if a.Cited, err = r.cite(ctx, a.Caller, a.Body, record.Record{}); err != nil {
			return out, err
		}
		return b.Create(ctx, a)
	})
	if err != nil {
		return out, err
	}
	var all why.Shown
	all.Record(&out.Record)
	err = r.judge(ctx, a.Caller, "", all)
	return out, err
}

// Update changes a record's content.
func (r Records) Update(ctx context.Context, a record.UpdateArgs) (record.Updated, error) {
	out, err := changing(ctx, r, &a.Caller, func(b *record.Book) (out record.Updated, err error) {
		if a.Cited, err = r.citeAnew(ctx, b, a); err != nil {
			return out, err
		}
		return b.Update(ctx, a)
	})
	if err != nil {
		return out, err
	}
	var all why.Shown
	all.Record(&out.Record)
	if out.Conflict != nil {
		all.Record(&out.Conflict.OtherVersion)
		all.Record(&out.Conflict.YourVersion)
	}
	err = r.judge(ctx, a.Caller, "", all)
	return out, err
}

// citeAnew keeps what the new body of a record cites.
func (r Records) citeAnew(ctx context.Context, b *record.Book, a record.UpdateArgs) ([]record.Cited, error) {
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
	out, err := changing(ctx, r, &a.Caller, func(b *record.Book) (record.Transitioned, error) { return b.Transition(ctx, a) })
	if err != nil {
		return out, err
	}
	var all why.Shown
	all.Record(&out.Record)
	if out.CascadeWarning != nil {
		all.Refs(out.CascadeWarning.OpenChildren)
	}
	err = r.judge(ctx, a.Caller, "", all)
	return out, err
}

// Save marks what the session did so far.
func (r Records) Save(ctx context.Context, a record.SaveArgs) (record.Saved, error) {
	return changing(ctx, r, &a.Caller, func(b *record.Book) (record.Saved, error) { return b.Save(ctx, a) })
}

// Close ends a session's work on the project.
func (r Records) Close(ctx context.Context, a record.SaveArgs) (record.Closed, error) {
	return changing(ctx, r, &a.Caller, func(b *record.Book) (record.Closed, error) { return b.Close(ctx, a) })
}

// History lists a record's stored changes, newest first.
func (r Records) History(ctx context.Context, a record.HistoryArgs) ([]record.HistoryItem, error) {
	b, err := r.book(ctx, &a.Caller)
	if err != nil {
		return nil, err
	}
	return b.History(ctx, a)
}

// Diff compares two versions of a record.
func (r Records) Diff(ctx context.Context, a record.DiffArgs) (record.VersionDiff, error) {
	b, err := r.book(ctx, &a.Caller)
	if err != nil {
		return record.VersionDiff{}, err
	}
	out, err := b.Diff(ctx, a)
	if err != nil {
		return out, err
	}
	var now, then why.Shown
	now.Record(&out.ToVersion)
	then.Record(&out.FromVersion)
	err = errors.Join(r.judge(ctx, a.Caller, a.To, now), r.judge(ctx, a.Caller, a.From, then))
	return out, err
}

// ActiveSessions lists the sessions that hold a record.
func (r Records) ActiveSessions(ctx context.Context, a record.ActiveSessionsArgs) ([]record.ActiveSession, error) {
	b, err := r.book(ctx, &a.Caller)
	if err != nil {
		return nil, err
	}
	return b.ActiveSessions(ctx, a)
}

// RecentActivity lists what happened, newest first.
func (r Records) RecentActivity(ctx context.Context, a record.ActivityArgs) ([]record.Activity, error) {
	b, err := r.book(ctx, &a.Caller)
	if err != nil {
		return nil, err
	}
	return b.RecentActivity(ctx, a)
}

// maxOpenRecords is how many records a new session is told of (records §3).
const maxOpenRecords = 5

// openRecords is what a session that starts in a project is told of its records:
// the OPEN ones that the last session had active.
func (c *Cairn) openRecords(ctx context.Context, s *store.Store, projectID string) (observation.Section, error) {
	section := observation.Section{Title: "Open"}
	if c.journal.Limits.Off {
		return section, nil
	}
	refs, err := record.New(s, c.recordConfig()).LastActive(ctx, record.Caller{Project: projectID}, maxOpenRecords)
	for _, r := range refs {
		section.Lines = append(section.Lines, r.ID+" "+r.Type+": "+r.Title)
	}
	return section, err
}
