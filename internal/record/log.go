package record

import (
	"context"
	"encoding/json"

	"cairn/internal/project"
	"cairn/internal/store"
)

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
	Sources    []Cited `json:"cited,omitempty"` // Record.Cited, which its own JSON leaves out
	CreatedNS  int64   `json:"created_ns"`
	ModifiedNS int64   `json:"modified_ns"`
	Tick       int64   `json:"tick"`
	Event      string  `json:"event"` // RecordCreated, RecordUpdated, StateTransition or ConflictDetected
	FromState  State   `json:"from_state,omitempty"`
	Reason     string  `json:"reason,omitempty"`
	Forced     bool    `json:"forced,omitempty"` // it overrode another session's version
	SyncTick   int64   `json:"last_sync_tick"`   // the session's, afterwards
	Base       int     `json:"base_version"`     // the session's base version of the record, afterwards
	Other      *Other  `json:"other,omitempty"`  // ConflictDetected: the version that the record did not become
	Origin     *Origin `json:"origin,omitempty"` // of one that was made elsewhere and is not here as it was there
}

// Other is a version from elsewhere that was made without knowing the newest here. It
// is kept beside that one.
type Other struct {
	Record
	Sources []Cited `json:"cited,omitempty"`       // Record.Cited
	Base    int     `json:"base_version"`          // the newest version here that its maker knew
	Merged  *string `json:"merged_body,omitempty"` // both bodies in one, if they go together
}

// Origin reports what a change was where it was made.
type Origin struct {
	SHA256 string `json:"sha256"`       // of what it said there, in hex
	ID     string `json:"id,omitempty"` // the record's id there
}

// Event is the document of a change of kind KindEvent: what happened, and what
// it made of the session.
type Event struct {
	Type     string   `json:"type"` // an activity type or one that the activity does not show
	RecordID string   `json:"record_id,omitempty"`
	Summary  string   `json:"summary,omitempty"`
	Tick     int64    `json:"tick,omitempty"`         // SessionSaved: the tick that it cost
	Base     int      `json:"base_version,omitempty"` // what loads a record: the version
	Holders  []string `json:"holders,omitempty"`      // of a record: the other sessions that have it
	Settled  bool     `json:"settled,omitempty"`      // the session has been told to go on all the same
	Parent   string   `json:"parent_session,omitempty"`
	SyncTick int64    `json:"last_sync_tick"`    // the session's, afterwards
	Records  []string `json:"records,omitempty"` // SessionSaved: the saved; SessionClosed: those it gave up
	Origin   *Origin  `json:"origin,omitempty"`  // of one that was made elsewhere and is not here as it was there
}

// entry stores a version of a record: the next tick, the change, the rows.
func (s *callTx) entry(ctx context.Context, m *member, e *Entry) error {
	e.Sources, e.CreatedNS, e.ModifiedNS = e.Cited, int64(e.Created), int64(e.Modified)
	e.Tick = s.advance(m)
	e.SyncTick = m.syncTick
	doc, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.append(ctx, m, store.Change{Kind: KindRecord, ID: e.ID, Doc: doc}, func(seq, at int64) error {
		return s.applyEntry(ctx, m, e, seq, at)
	})
}

// event stores what happened to a session. One that costs a tick has Tick set.
func (s *callTx) event(ctx context.Context, m *member, e Event) error {
	e.SyncTick = m.syncTick
	doc, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.append(ctx, m, store.Change{Kind: KindEvent, ID: m.id, Doc: doc}, func(seq, at int64) error {
		return s.applyEvent(ctx, m, &e, seq, at)
	})
}

// advance moves the project's clock on by one, and the session with it if it has
// seen everything before (records §2, own writes and the clock).
func (s *callTx) advance(m *member) int64 {
	if m.syncTick == s.tick {
		m.syncTick++
	}
	s.tick++
	return s.tick
}

// append makes the session's row if there is none, logs a change and brings the
// rows to it.
func (s *callTx) append(ctx context.Context, m *member, c store.Change, apply func(seq, at int64) error) error {
	if m.key == 0 {
		row, err := project.NewSession(ctx, s.tx, m.id, s.p)
		if err != nil {
			return err
		}
		m.key = row.Key
	}
	c.Project, c.Stream, c.Op, c.Session = s.p.ID, s.stream, store.OpPut, m.id
	if c.At == 0 {
		c.At = s.tx.Now().UnixNano()
	}
	seq, err := s.tx.Append(ctx, c)
	if err != nil {
		return err
	}
	m.activity = c.At
	return apply(seq, c.At)
}
