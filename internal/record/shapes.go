package record

import (
	"encoding/json"

	"cairn/internal/store"
)

// Project is a project as the commands of records show it.
type Project struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Created     Time   `json:"created"` // time of the call for a project without a row
	Tick        int64  `json:"tick"`    // the project's logical clock

	At *store.Moment `json:"at,omitempty"` // for a past state of the project
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
	ID          string `arg:"id" about:"At most 64 lower-case letters, digits, dots, hyphens, underscores. Omitted: one is generated."`
	Name        string `arg:"name,required" about:"Name for people, at most 200 characters."`
	Description string `arg:"description" about:"The subject, at most 2,000 characters."`
}

// GetProjectArgs are the arguments of GetProject.
type GetProjectArgs struct {
	Caller
	At string // as-of: "" for now, tick:N, or what words.ParseMoment reads
}

// OverviewArgs are the arguments of Overview.
type OverviewArgs struct {
	Caller      `arg:"project_id"`
	At          string `arg:"at"`
	AllSessions bool   // that are open, else the 50 last active
}

// Overview is the state of a project.
type Overview struct {
	Project        OverviewProject `json:"project"`
	OpenSessions   []OpenSession   `json:"open_sessions"`   // last active first; at most 50 unless all are requested
	RootRecords    []Ref           `json:"root_records"`    // this and the next two: at most 50, in tree order
	OpenRecords    []Ref           `json:"open_records"`    //
	LaterRecords   []Ref           `json:"later_records"`   //
	Totals         Totals          `json:"totals"`          // before the cut
	RecentActivity []Activity      `json:"recent_activity"` // the newest 20
	At             *store.Moment   `json:"at,omitempty"`    // for an overview of the past
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
	Query    string   `arg:"query,required" about:"Words, any of them; also \"phrase\", prefix*, AND, NOT, parentheses."`
	Types    []string `arg:"types"`
	States   []State  `arg:"states,enum=OPEN|LATER|RESOLVED|DISCARDED"`
	ParentID string   `arg:"parent_id" about:"Only this record and what is below it."`
	Limit    int      `arg:"limit,default=20,min=1,max=500,raised" about:"Maximum number of hits."` // 0 for 20; kept within 1 to 500
	Caller   `arg:"project_id"`
	At       string `arg:"at"`
	AsIs     bool   // unknown words are not corrected

	Everywhere bool // in all projects, as they are now; Caller still needs one that exists. Without filters
}

// SearchResult is what a search found.
type SearchResult struct {
	Results []Hit `json:"results"` // best first
	Total   int   `json:"total"`   // before the limit

	Corrected map[string]string `json:"corrected,omitempty"` // words that no record contains, and their replacements
	Hint      string            `json:"hint,omitempty"`      // for an empty result: what was tried, and what to try next
	At        *store.Moment     `json:"at,omitempty"`        // for a search in the past
}

// Hit is a record that a search found.
type Hit struct {
	Ref
	Relevance float64 `json:"relevance"`            // 1.0 for the best hit; three decimals
	Snippet   string  `json:"snippet"`              // at most 200 characters, matches in **
	SessionID string  `json:"session_id,omitempty"` // of the session that created the record
	Matched   string  `json:"matched,omitempty"`    // MatchedSome, or "" for a hit with all words of a plain query

	Project string `json:"-"` // id
}

// MatchedSome marks a hit with some words of a query, not all (amendments §A.1).
const MatchedSome = "some"

// ListArgs are the arguments of List.
type ListArgs struct {
	States   []State  `arg:"states,enum=OPEN|LATER|RESOLVED|DISCARDED"`
	Types    []string `arg:"types"`
	ParentID string   `arg:"parent_id,nullable" about:"Only children of this record; null: the roots. Omitted: all records."`
	Roots    bool     `arg:"parent_id,null"` // only roots
	// Depth counts levels below ParentID or of the roots: 0 or less for 1, math.MaxInt for all.
	Depth  int `arg:"depth,default=1,min=1,max=32" about:"Number of levels below parent_id."`
	Limit  int // maximum number of records, 0 for all
	Caller `arg:"project_id"`
	At     string `arg:"at"`
}

// GetRefArgs are the arguments of GetRef and Get.
type GetRefArgs struct {
	ID     string `arg:"id,required"`
	Caller `arg:"project_id"`
	At     string `arg:"at"`
}

// ActivateArgs are the arguments of Activate.
type ActivateArgs struct {
	ID       string `arg:"id,required"`
	Override bool   `arg:"override" about:"Activate it although another session has it active." lean:""`
	Caller   `arg:"project_id,session_id"`
}

// Activated is the result of an activation.
type Activated struct {
	SessionID     string    `json:"session_id"`
	Context       Bundle    `json:"context"`
	AlreadyLoaded bool      `json:"already_loaded"`
	Conflict      *Holder   `json:"conflict,omitempty"`
	Changed       *Reloaded `json:"changed_since_loaded,omitempty"`
}

// Bundle is a record with its context. Lists are in the order of creation and never nil.
type Bundle struct {
	Target        Record    `json:"target"`
	Parent        *Record   `json:"parent"` // nil for a root, and with a warning if the parent was purged
	Children      Children  `json:"children"`
	Grandchildren []Ref     `json:"grandchildren"`
	Warnings      []Warning `json:"warnings,omitempty"`
}

// Children are a record's direct children.
type Children struct {
	Open  []Record `json:"open"`
	Other []Ref    `json:"other"`
}

// Warning is a warning about a bundle.
type Warning struct {
	Type    string         `json:"type"` // conflict, stale, orphan
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// Holder is another session that has the record active.
type Holder struct {
	SessionID    string `json:"session_id"`
	LastActivity Time   `json:"last_activity"`
	Message      string `json:"message"`
}

// Reloaded reports that a record was changed since its session loaded it.
type Reloaded struct {
	FromVersion int  `json:"from_version"`
	ToVersion   int  `json:"to_version"`
	Diff        Diff `json:"diff"`
}

// SyncArgs are the arguments of Sync.
type SyncArgs struct {
	Caller `arg:"project_id,session_id"`
}

// SyncResult contains the changes of other sessions.
type SyncResult struct {
	ProjectTick       int64    `json:"project_tick"`
	SessionTickBefore int64    `json:"session_tick_before"`
	TickGap           int64    `json:"tick_gap"`
	Changes           []Change `json:"changes"`        // oldest first, at most 500 and 8 MiB, but at least one
	SessionStatus     string   `json:"session_status"` // active or stale, before the sync
	Warning           string   `json:"warning,omitempty"`
	Truncated         bool     `json:"truncated,omitempty"` // there are more changes; sync again
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
	ParentID *string         `arg:"parent_id,nullable" about:"The active parent record; null or omitted: a root." lean:"An active record."`
	Type     string          `arg:"type,required" about:"Any word for the kind of record, such as question, conclusion, note."`
	Title    string          `arg:"title,required" about:"One line, at most 200 characters."`
	Summary  string          `arg:"summary,required" about:"The content in at most 1,000 characters."`
	Body     string          `arg:"body,required" about:"The whole text in Markdown. Cite code as path#L10-L20: then changes of that code are noticed."`
	State    State           `arg:"state,default=OPEN,enum=OPEN|LATER|RESOLVED|DISCARDED" about:"The state of the record."` // "" for OPEN
	Related  []string        `arg:"related"`
	Metadata json.RawMessage `arg:"metadata"` // a JSON object; nil for none
	Caller   `arg:"project_id,session_id"`
	Cited    []Cited // the cited code in its present state
}

// Created is a new record.
type Created struct {
	Record        Record `json:"record"`
	AutoActivated bool   `json:"auto_activated"` // always true
}

// UpdateArgs are the arguments of Update. Fields that are nil stay unchanged.
type UpdateArgs struct {
	ID       string          `arg:"id,required"`
	Title    *string         `arg:"title" about:"The new title." lean:""`
	Summary  *string         `arg:"summary" about:"The new summary." lean:""`
	Body     *string         `arg:"body" about:"The whole new body." lean:""`
	Related  []string        `arg:"related"` // empty, not nil, for none
	Metadata json.RawMessage `arg:"metadata"`
	Force    bool            `arg:"force" about:"Store this version even if another session changed the record." lean:""`
	Caller   `arg:"project_id,session_id"`
	Cited    []Cited // the code cited in Body
}

// Updated is the stored record after an update. With a conflict nothing was stored.
type Updated struct {
	Record   Record    `json:"record"`
	Conflict *Conflict `json:"conflict,omitempty"`
}

// Conflict reports that another session stored a version that this session has not
// loaded.
type Conflict struct {
	Message      string  `json:"message"`
	OtherVersion Record  `json:"other_version"`         // the stored one
	YourVersion  Record  `json:"your_version"`          // as it would have been stored
	BaseVersion  int     `json:"base_version"`          // which version this session had loaded
	MergedBody   *string `json:"merged_body,omitempty"` // the body with both sides' changes, if they do not overlap
}

// TransitionArgs are the arguments of Transition.
type TransitionArgs struct {
	ID         string `arg:"id,required"`
	ToState    State  `arg:"to_state,required,enum=OPEN|LATER|RESOLVED|DISCARDED" about:"The new state."`
	Reason     string `arg:"reason" about:"The reason. Required for LATER and DISCARDED."`
	ResolvedBy string `arg:"resolved_by" about:"Id of the record that holds the answer. Required for RESOLVED."`
	Caller     `arg:"project_id,session_id"`
}

// Transitioned is the record in its new state.
type Transitioned struct {
	Record         Record          `json:"record"`
	CascadeWarning *CascadeWarning `json:"cascade_warning,omitempty"`
}

// CascadeWarning lists the OPEN children of a record that is no longer OPEN.
type CascadeWarning struct {
	OpenChildren []Ref  `json:"open_children"`
	Message      string `json:"message"`
}

// SaveArgs are the arguments of Save and Close.
type SaveArgs struct {
	Summary string `arg:"summary" about:"What was done, in a sentence or two."` // for the activity, ≤ 1,000 characters
	Caller  `arg:"project_id,session_id"`
}

// Saved is the result of a save.
type Saved struct {
	Success      bool     `json:"success"`
	SavedRecords []string `json:"saved_records"` // in the order of their first change
	LastSave     Time     `json:"last_save"`
}

// Closed is the result of closing a session.
type Closed struct {
	Success            bool     `json:"success"`
	DeactivatedRecords []string `json:"deactivated_records"`
	UnsavedWarning     string   `json:"unsaved_warning,omitempty"`
}

// HistoryArgs are the arguments of History.
type HistoryArgs struct {
	ID     string `arg:"id,required"`
	Since  string `arg:"since"`                                                                    // RFC 3339, inclusive
	Limit  int    `arg:"limit,default=50,min=1,max=500,raised" about:"Maximum number of changes."` // 0 for 50; kept within 1 to 500
	Caller `arg:"project_id"`
	At     string `arg:"at"`
}

// HistoryItem is one stored change of a record.
type HistoryItem struct {
	Timestamp  Time   `json:"timestamp"`
	SessionID  string `json:"session_id"`
	ChangeType string `json:"change_type"` // record_created, record_updated, state_transition, conflict_detected
	Summary    string `json:"summary"`
	Diff       string `json:"diff,omitempty"`  // unified, of the body; of a conflict from the newest to the other
	Other      *Other `json:"other,omitempty"` // for a conflict: the version from elsewhere that is kept next to the newest
	Version    int    `json:"version"`
	Tick       int64  `json:"tick"`
}

// DiffArgs are the arguments of Diff. From and To are RFC 3339 times, last_save,
// vN or tick:N.
type DiffArgs struct {
	ID     string `arg:"id,required"`
	From   string `arg:"from,required" about:"The older version: a time (RFC 3339), last_save, vN or tick:N."`
	To     string `arg:"to" about:"The newer version, in the same forms. Omitted: now."`
	Caller `arg:"project_id,session_id"`
}

// VersionDiff compares two versions of a record.
type VersionDiff struct {
	FromVersion Record `json:"from_version"`
	ToVersion   Record `json:"to_version"`
	Diff        Diff   `json:"diff"`
}

// Diff contains the fields that differ.
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
	RecordID string `arg:"record_id,required" about:"The record's id, such as R007."`
	Caller   `arg:"project_id,session_id"`
	At       string `arg:"at"`
}

// ActiveSession is a session that has a record active.
type ActiveSession struct {
	SessionID    string `json:"session_id"`
	LastActivity Time   `json:"last_activity"`
	IsCurrent    bool   `json:"is_current"`
}

// ActivityArgs are the arguments of RecentActivity.
type ActivityArgs struct {
	Limit    int      `arg:"limit,default=50,min=1,max=500,raised" about:"Maximum number of events."` // 0 for 50; kept within 1 to 500
	Since    string   `arg:"since"`
	Types    []string `arg:"types,enum=record_created|record_updated|state_transition|session_started|session_saved|session_closed|session_branched|activation|conflict_detected|conflict_resolved" about:"Only these events."`
	RecordID string   `arg:"record_id" about:"Only events of this record."`
	Caller   `arg:"project_id"`
	At       string `arg:"at"`
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
