package record

import (
	"context"
	"errors"

	"cairn/internal/project"
	"cairn/internal/store"
)

var errNotYet = errors.New("not written yet")

// CreateProject makes a project (seed, create_project).
func (b *Book) CreateProject(ctx context.Context, a CreateProjectArgs) (Project, error) {
	return Project{}, errNotYet
}

// ListProjects lists all projects, the one last changed first.
func (b *Book) ListProjects(ctx context.Context) ([]ProjectSummary, error) { return nil, errNotYet }

// GetProject returns a project; one without a row has tick 0 and no creation time.
func (b *Book) GetProject(ctx context.Context, a GetProjectArgs) (Project, error) {
	return Project{}, errNotYet
}

// Overview returns where the project stands. It creates nothing.
func (b *Book) Overview(ctx context.Context, a OverviewArgs) (Overview, error) {
	return Overview{}, errNotYet
}

// Search finds records by their words.
func (b *Book) Search(ctx context.Context, a SearchArgs) (SearchResult, error) {
	return SearchResult{}, errNotYet
}

// List lists records, parents first, siblings by creation.
func (b *Book) List(ctx context.Context, a ListArgs) ([]Ref, error) { return nil, errNotYet }

// GetRef returns one record's reference.
func (b *Book) GetRef(ctx context.Context, a GetRefArgs) (Ref, error) { return Ref{}, errNotYet }

// Get returns one whole record without activating it, for people.
func (b *Book) Get(ctx context.Context, a GetRefArgs) (Record, error) { return Record{}, errNotYet }

// Activate loads a record for a session.
func (b *Book) Activate(ctx context.Context, a ActivateArgs) (Activated, error) {
	return Activated{}, errNotYet
}

// Sync tells what other sessions did since the session's last sync.
func (b *Book) Sync(ctx context.Context, a SyncArgs) (Synced, error) { return Synced{}, errNotYet }

// Create stores a new record.
func (b *Book) Create(ctx context.Context, a CreateArgs) (Created, error) {
	return Created{}, errNotYet
}

// Update changes an active record.
func (b *Book) Update(ctx context.Context, a UpdateArgs) (Updated, error) {
	return Updated{}, errNotYet
}

// Transition moves an active record to another state.
func (b *Book) Transition(ctx context.Context, a TransitionArgs) (Transitioned, error) {
	return Transitioned{}, errNotYet
}

// Save notes that the session's changes up to here are saved.
func (b *Book) Save(ctx context.Context, a SaveArgs) (Saved, error) { return Saved{}, errNotYet }

// Close ends the session in the project.
func (b *Book) Close(ctx context.Context, a SaveArgs) (Closed, error) { return Closed{}, errNotYet }

// History lists a record's stored changes, newest first.
func (b *Book) History(ctx context.Context, a HistoryArgs) ([]HistoryItem, error) {
	return nil, errNotYet
}

// Diff compares two versions of a record.
func (b *Book) Diff(ctx context.Context, a DiffArgs) (VersionDiff, error) {
	return VersionDiff{}, errNotYet
}

// ActiveSessions lists the sessions that hold a record.
func (b *Book) ActiveSessions(ctx context.Context, a ActiveSessionsArgs) ([]ActiveSession, error) {
	return nil, errNotYet
}

// RecentActivity lists a project's events, newest first.
func (b *Book) RecentActivity(ctx context.Context, a ActivityArgs) ([]Activity, error) {
	return nil, errNotYet
}

// Citing lists the records whose bodies cite a path, for why; nothing else of
// the project's row or sessions is touched.
func (b *Book) Citing(ctx context.Context, c Caller, path string) ([]Record, error) {
	return nil, errNotYet
}

// LastActive lists the OPEN records that the project's last session had active,
// at most limit, for the injected context: those of an open session, or those a
// closed one gave up.
func (b *Book) LastActive(ctx context.Context, c Caller, limit int) ([]Ref, error) {
	return nil, errNotYet
}

// Apply takes over a change of kind KindRecord or KindEvent that comes from
// elsewhere (import, archive, hub): it appends it to this store's log, with its
// own time and session, and brings the rows to it. Changes of a project must come
// in the order of their log; one that is there already changes nothing. Its
// project and session are made if they are missing.
func Apply(ctx context.Context, tx *store.Tx, c store.Change) error { return errNotYet }

// MoveRows moves the records of a project that is merged into another; for
// project.Merge.
func MoveRows(ctx context.Context, tx *store.Tx, from, into project.Project) error {
	return errNotYet
}
