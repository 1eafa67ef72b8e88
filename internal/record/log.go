package record

// Kinds of the changes of this part, all on the stream records/<project id>.
const (
	// KindRecord is one stored version of a record: id R001, op put, doc Entry.
	KindRecord = "record"
	// KindEvent is anything else: id is the session's, op put, doc Event.
	KindEvent = "record_event"
)

// The activity types of the seed.
const (
	RecordCreated    = "record_created"
	RecordUpdated    = "record_updated"
	StateTransition  = "state_transition"
	SessionStarted   = "session_started"
	SessionSaved     = "session_saved"
	SessionClosed    = "session_closed"
	SessionBranched  = "session_branched"
	RecordActivation = "activation"
	ConflictDetected = "conflict_detected"
	ConflictResolved = "conflict_resolved"
)

// Events that the log needs and the activity does not show.
const (
	sessionSynced  = "session_synced"
	recordReloaded = "record_reloaded"
)

// Entry is the document of a change of kind KindRecord: the whole record as it
// stands after the change, and what happened.
type Entry struct {
	Record
	Cited      []Cited `json:"cited,omitempty"`
	CreatedNS  int64   `json:"created_ns"`
	ModifiedNS int64   `json:"modified_ns"`
	Tick       int64   `json:"tick"`
	Event      string  `json:"event"` // RecordCreated, RecordUpdated, StateTransition
	FromState  State   `json:"from_state,omitempty"`
	Reason     string  `json:"reason,omitempty"`
	Forced     bool    `json:"forced,omitempty"` // it overrode another session's version
	SyncTick   int64   `json:"last_sync_tick"`   // the session's, afterwards
	Base       int     `json:"base_version"`     // the session's base version of the record, afterwards
}

// Event is the document of a change of kind KindEvent: what happened, and the
// session as it stands afterwards.
type Event struct {
	Type     string   `json:"type"` // an activity type or one that the activity does not show
	RecordID string   `json:"record_id,omitempty"`
	Summary  string   `json:"summary,omitempty"`
	Tick     int64    `json:"tick,omitempty"`         // of SessionSaved
	Base     int      `json:"base_version,omitempty"` // of what loads a record
	Holders  []string `json:"holders,omitempty"`      // of conflicts: the other sessions
	Parent   string   `json:"parent_session,omitempty"`
	SyncTick int64    `json:"last_sync_tick"`
	Records  []string `json:"records,omitempty"` // SessionSaved: the saved; SessionClosed: the deactivated
}
