package record

import (
	"encoding/json"

	"cairn/internal/store"
)

// Project is a project as this part shows it.
type Project struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Created     Time   `json:"created"` // the time of the call for a project that has no row yet
	Tick        int64  `json:"tick"`    // the project's logical clock

	At *store.Moment `json:"at,omitempty"` // of a project as it was
}

// ProjectSummary is a project in a list.
type ProjectSummary struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Description  string `json:"description,omitempty"`
	Tick         int64  `json:"tick"`
	OpenSessions int    `json:"open_sessions"` // not closed
	OpenRecords  int    `json:"open_records"`
}

// CreateProjectArgs are the arguments of CreateProject.
type CreateProjectArgs struct {
	ID          string // "" for a generated one
	Name        string // 1 to 200 characters
	Description string // at most 2,000
}

// GetProjectArgs are the arguments of GetProject.
type GetProjectArgs struct {
	Caller
	At string // as-of: "" for now, tick:N, or what words.ParseMoment reads
}

// OverviewArgs are the arguments of Overview.
type OverviewArgs struct {
	Caller
	At          string
	AllSessions bool // that are open, else the 50 last active
}

// Overview is where a project stands.
type Overview struct {
	Project        OverviewProject `json:"project"`
	OpenSessions   []OpenSession   `json:"open_sessions"`   // last active first; at most 50 unless all are asked for
	RootRecords    []Ref           `json:"root_records"`    // this and the next two: at most 50, in tree order
	OpenRecords    []Ref           `json:"open_records"`    //
	LaterRecords   []Ref           `json:"later_records"`   //
	Totals         Totals          `json:"totals"`          // before the cut
	RecentActivity []Activity      `json:"recent_activity"` // the newest 20
	At             *store.Moment   `json:"at,omitempty"`    // of an overview of the past
}

// OverviewProject is the project of an overview.
type OverviewProject struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Tick        int64  `json:"tick"`
}

// OpenSession is a session that was not closed.
type OpenSession struct {
	ID            string   `json:"id"`
	ActiveRecords []string `json:"active_records"` // in the order of activation
	LastSyncTick  int64    `json:"last_sync_tick"`
	TickGap       int64    `json:"tick_gap"`
}

// Totals are the counts of a project's records.
type Totals struct {
	Roots int `json:"roots"`
	Open  int `json:"open"`
	Later int `json:"later"`

	Sessions int `json:"sessions,omitempty"` // open ones; 0 if all of them are listed
}

// SearchArgs are the arguments of Search.
type SearchArgs struct {
	Caller
	Query    string
	Types    []string // any of them; none for all
	States   []State  // any of them; none for all
	ParentID string   // that record and all below it; "" for everywhere
	Limit    int      // 0 for 20; kept within 1 to 500
	At       string
	AsIs     bool // unknown words are not corrected

	Everywhere bool // in all projects, as they are now; Caller still needs one that exists. Without filters
}

// SearchResult is what a search found.
type SearchResult struct {
	Results []Hit `json:"results"` // best first
	Total   int   `json:"total"`   // before the limit

	Corrected map[string]string `json:"corrected,omitempty"` // words that no record holds, and the words that replaced them
	Hint      string            `json:"hint,omitempty"`      // of an empty result: what was tried, and what to try
	At        *store.Moment     `json:"at,omitempty"`        // of a search in the past
}

// Hit is a record that a search found.
type Hit struct {
	Ref
	Relevance float64 `json:"relevance"`            // the best of the result is 1.0; three decimals
	Snippet   string  `json:"snippet"`              // at most 200 characters, matches in **
	SessionID string  `json:"session_id,omitempty"` // of the session that created the record
	Matched   string  `json:"matched,omitempty"`    // MatchedSome, or "" for a hit that holds all words of a plain query

	Project string `json:"-"` // id
}

// MatchedSome marks a hit that holds some words of a query, not all (amendments §A.1).
const MatchedSome = "some"

// ListArgs are the arguments of List.
type ListArgs struct {
	Caller
	States   []State
	Types    []string
	ParentID string // what is below this record
	Roots    bool   // what is below nothing (parent_id null); neither: the whole project
	Depth    int    // levels below ParentID or of the roots, 0 or less for 1, math.MaxInt for all; else ignored
	Limit    int    // maximum number of records, 0 for all
	At       string
}

// GetRefArgs are the arguments of GetRef and Get.
type GetRefArgs struct {
	Caller
	ID string
	At string
}

// ActivateArgs are the arguments of Activate.
type ActivateArgs struct {
	Caller
	ID       string
	Override bool
}

// Activated is what an activation loaded.
type Activated struct {
	SessionID     string    `json:"session_id"`
	Context       Bundle    `json:"context"`
	AlreadyLoaded bool      `json:"already_loaded"`
	Conflict      *Holder   `json:"conflict,omitempty"`
	Changed       *Reloaded `json:"changed_since_loaded,omitempty"`
}

// Bundle is what is needed to reason with a record. Lists are in the order of
// creation and never nil.
type Bundle struct {
	Target        Record    `json:"target"`
	Parent        *Record   `json:"parent"` // nil for a root, and for one that was purged, with a warning
	Children      Children  `json:"children"`
	Grandchildren []Ref     `json:"grandchildren"`
	Warnings      []Warning `json:"warnings,omitempty"`
}

// Children are a record's direct children.
type Children struct {
	Open  []Record `json:"open"`
	Other []Ref    `json:"other"`
}

// Warning is something to know about a bundle.
type Warning struct {
	Type    string         `json:"type"` // conflict, stale, orphan
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// Holder is another session that holds the record.
type Holder struct {
	SessionID    string `json:"session_id"`
	LastActivity Time   `json:"last_activity"`
	Message      string `json:"message"`
}

// Reloaded says that a record was changed since its session loaded it.
type Reloaded struct {
	FromVersion int  `json:"from_version"`
	ToVersion   int  `json:"to_version"`
	Diff        Diff `json:"diff"`
}

// SyncArgs are the arguments of Sync.
type SyncArgs struct{ Caller }

// Synced is what other sessions did.
type Synced struct {
	ProjectTick       int64    `json:"project_tick"`
	SessionTickBefore int64    `json:"session_tick_before"`
	TickGap           int64    `json:"tick_gap"`
	Changes           []Change `json:"changes"`        // oldest first, at most 500 and 8 MiB, but one at least
	SessionStatus     string   `json:"session_status"` // active or stale, before the sync
	Warning           string   `json:"warning,omitempty"`
	Truncated         bool     `json:"truncated,omitempty"` // there is more; sync again
}

// Change is one change that another session made.
type Change struct {
	RecordID   string `json:"record_id"`
	ChangeType string `json:"change_type"` // created, modified, state_changed, conflict, deleted
	OldValue   any    `json:"old_value,omitempty"`
	NewValue   any    `json:"new_value,omitempty"`
	BySession  string `json:"by_session"`
	AtTick     int64  `json:"at_tick"`
}

// CreateArgs are the arguments of Create.
type CreateArgs struct {
	Caller
	ParentID *string // nil for a root
	Type     string
	Title    string
	Summary  string
	Body     string
	State    State // "" for OPEN
	Related  []string
	Metadata json.RawMessage // a JSON object; nil for none
	Cited    []Cited         // what the body cites, as it now is
}

// Created is a new record.
type Created struct {
	Record        Record `json:"record"`
	AutoActivated bool   `json:"auto_activated"` // always true
}

// UpdateArgs are the arguments of Update; what is nil stays as it is.
type UpdateArgs struct {
	Caller
	ID       string
	Title    *string
	Summary  *string
	Body     *string
	Related  []string // empty, not nil, for none
	Metadata json.RawMessage
	Force    bool
	Cited    []Cited // goes with Body
}

// Updated is the stored record after an update; with a conflict nothing was
// stored.
type Updated struct {
	Record   Record    `json:"record"`
	Conflict *Conflict `json:"conflict,omitempty"`
}

// Conflict says that another session stored a version that this one has not
// loaded.
type Conflict struct {
	Message      string  `json:"message"`
	OtherVersion Record  `json:"other_version"`         // the stored one
	YourVersion  Record  `json:"your_version"`          // as it would have been stored
	BaseVersion  int     `json:"base_version"`          // which version this session had loaded
	MergedBody   *string `json:"merged_body,omitempty"` // both sides' changes of the body, if they do not touch
}

// TransitionArgs are the arguments of Transition.
type TransitionArgs struct {
	Caller
	ID         string
	ToState    State
	Reason     string // required for LATER and DISCARDED
	ResolvedBy string // required for RESOLVED
}

// Transitioned is the record in its new state.
type Transitioned struct {
	Record         Record          `json:"record"`
	CascadeWarning *CascadeWarning `json:"cascade_warning,omitempty"`
}

// CascadeWarning names the OPEN children of a record that is OPEN no more.
type CascadeWarning struct {
	OpenChildren []Ref  `json:"open_children"`
	Message      string `json:"message"`
}

// SaveArgs are the arguments of Save and Close.
type SaveArgs struct {
	Caller
	Summary string // for the activity, ≤ 1,000 characters
}

// Saved is what a save covers.
type Saved struct {
	Success      bool     `json:"success"`
	SavedRecords []string `json:"saved_records"` // in the order of their first change
	LastSave     Time     `json:"last_save"`
}

// Closed is what closing a session gave up.
type Closed struct {
	Success            bool     `json:"success"`
	DeactivatedRecords []string `json:"deactivated_records"`
	UnsavedWarning     string   `json:"unsaved_warning,omitempty"`
}

// HistoryArgs are the arguments of History.
type HistoryArgs struct {
	Caller
	ID    string
	Since string // RFC 3339, inclusive
	Limit int    // 0 for 50; kept within 1 to 500
	At    string
}

// HistoryItem is one stored change of a record.
type HistoryItem struct {
	Timestamp  Time   `json:"timestamp"`
	SessionID  string `json:"session_id"`
	ChangeType string `json:"change_type"` // record_created, record_updated, state_transition, conflict_detected
	Summary    string `json:"summary"`
	Diff       string `json:"diff,omitempty"`  // unified, of the body; of a conflict from the newest to the other
	Other      *Other `json:"other,omitempty"` // of a conflict: the version from elsewhere that is kept beside the newest
	Version    int    `json:"version"`
	Tick       int64  `json:"tick"`
}

// DiffArgs are the arguments of Diff. From and To are RFC 3339 times, last_save,
// vN or tick:N.
type DiffArgs struct {
	Caller
	ID   string
	From string
	To   string // "" for now
}

// VersionDiff compares two versions of a record.
type VersionDiff struct {
	FromVersion Record `json:"from_version"`
	ToVersion   Record `json:"to_version"`
	Diff        Diff   `json:"diff"`
}

// Diff is what differs; what does not is absent.
type Diff struct {
	Title   *Pair  `json:"title,omitempty"`
	Summary *Pair  `json:"summary,omitempty"`
	Body    string `json:"body,omitempty"` // unified
	State   *Pair  `json:"state,omitempty"`
}

// Pair is a text before and after.
type Pair struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// ActiveSessionsArgs are the arguments of ActiveSessions.
type ActiveSessionsArgs struct {
	Caller
	RecordID string
	At       string
}

// ActiveSession is a session that holds a record.
type ActiveSession struct {
	SessionID    string `json:"session_id"`
	LastActivity Time   `json:"last_activity"`
	IsCurrent    bool   `json:"is_current"`
}

// ActivityArgs are the arguments of RecentActivity.
type ActivityArgs struct {
	Caller
	Limit    int // 0 for 50; kept within 1 to 500
	Since    string
	Types    []string // any of ActivityTypes; none for all
	RecordID string
	At       string
}

// Activity is one event of a project.
type Activity struct {
	Timestamp Time           `json:"timestamp"`
	Type      string         `json:"type"` // of ActivityTypes
	SessionID string         `json:"session_id"`
	RecordID  string         `json:"record_id,omitempty"`
	Summary   string         `json:"summary"` // never empty
	Details   map[string]any `json:"details,omitempty"`
}
