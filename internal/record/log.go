package record

import (
	"bytes"
	"context"
	"encoding/json"

	"cairn/internal/project"
	"cairn/internal/store"
)

// StreamPrefix is the prefix of the streams of records.
const StreamPrefix = "records/"

// Kinds of the changes of this part, all on the stream records/<project id>.
const (
	// KindRecord is one stored version of a record: id R001, op put, doc Entry.
	KindRecord = "record"
	// KindEvent is any other change: the session's id, op put, doc Event.
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
	SessionSynced  = "session_synced"
	RecordReloaded = "record_reloaded"
)

// Entry is the document of a change of kind KindRecord: the complete record after the
// change, and the event.
type Entry struct {
	Record
	Sources    []Cited `json:"cited,omitempty"` // Record.Cited, which its own JSON omits
	CreatedNS  int64   `json:"created_ns"`
	ModifiedNS int64   `json:"modified_ns"`
	Tick       int64   `json:"tick"`
	Event      string  `json:"event"` // RecordCreated, RecordUpdated, StateTransition or ConflictDetected
	FromState  State   `json:"from_state,omitempty"`
	Reason     string  `json:"reason,omitempty"`
	Forced     bool    `json:"forced,omitempty"` // it overrode another session's version
	SyncTick   int64   `json:"last_sync_tick"`   // sync tick of the session after the change
	Base       int     `json:"base_version"`     // the session's base version of the record after the change
	Other      *Other  `json:"other,omitempty"`  // ConflictDetected: the version that the record did not become
	Origin     *Origin `json:"origin,omitempty"` // for a change from elsewhere that was changed here
}

// Other is a version from elsewhere whose author did not know the newest here. It is kept
// next to the newest.
type Other struct {
	Record
	Sources []Cited `json:"cited,omitempty"`       // Record.Cited
	Base    int     `json:"base_version"`          // the newest version here that its author knew
	Merged  *string `json:"merged_body,omitempty"` // both bodies merged, if possible
}

// Origin describes a change where it was made.
type Origin struct {
	SHA256 string `json:"sha256"`       // hash of its document there, in hex
	ID     string `json:"id,omitempty"` // the record's id there
}

// Event is the document of a change of kind KindEvent: an event and the resulting state
// of the session.
type Event struct {
	Type     string   `json:"type"` // an activity type, or a type that the activity does not show
	RecordID string   `json:"record_id,omitempty"`
	Summary  string   `json:"summary,omitempty"`
	Tick     int64    `json:"tick,omitempty"`         // SessionSaved: its tick
	Base     int      `json:"base_version,omitempty"` // for an activation: the loaded version
	Holders  []string `json:"holders,omitempty"`      // other sessions that have the record active
	Settled  bool     `json:"settled,omitempty"`      // the caller overrode the warning
	Parent   string   `json:"parent_session,omitempty"`
	SyncTick int64    `json:"last_sync_tick"`    // sync tick of the session after the change
	Records  []string `json:"records,omitempty"` // SessionSaved: saved records; SessionClosed: records that were active
	Origin   *Origin  `json:"origin,omitempty"`  // for a change from elsewhere that was changed here
}

// PutEntry stores a version of a record: the next tick, the change, the rows.
func (s *CallTx) PutEntry(ctx context.Context, m *Session, e *Entry) error {
	e.Sources, e.CreatedNS, e.ModifiedNS = e.Cited, int64(e.Created), int64(e.Modified)
	e.Tick = s.Advance(m)
	e.SyncTick = m.SyncTick
	doc, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.Append(ctx, m, store.Change{Kind: KindRecord, ID: e.ID, Doc: doc}, func(seq, at int64) error {
		return s.applyEntry(ctx, m, e, seq, at)
	})
}

// PutEvent stores an event of a session. An event that costs a tick has Tick set.
func (s *CallTx) PutEvent(ctx context.Context, m *Session, e Event) error {
	e.SyncTick = m.SyncTick
	doc, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.Append(ctx, m, store.Change{Kind: KindEvent, ID: m.ID, Doc: doc}, func(seq, at int64) error {
		return s.applyEvent(ctx, m, &e, seq, at)
	})
}

// Advance increments the project's clock. It also advances the session if that has seen
// all earlier ticks (records §2, own writes and the clock).
func (s *CallTx) Advance(m *Session) int64 {
	if m.SyncTick == s.Tick {
		m.SyncTick++
	}
	s.Tick++
	return s.Tick
}

// Append creates the session's row if necessary, logs a change and updates the rows.
func (s *CallTx) Append(ctx context.Context, m *Session, c store.Change, apply func(seq, at int64) error) error {
	if m.Key == 0 {
		row, err := project.NewSession(ctx, s.Tx, m.ID, s.Project)
		if err != nil {
			return err
		}
		m.Key = row.Key
	}
	c.Project, c.Stream, c.Op, c.Session = s.Project.ID, s.Stream, store.OpPut, m.ID
	if c.At == 0 {
		c.At = s.Tx.Now().UnixNano()
	}
	seq, err := s.Tx.Append(ctx, c)
	if err != nil {
		return err
	}
	m.activity = c.At
	return apply(seq, c.At)
}

// PlainJSON encodes a value in the spelling of rows and of agents: unlike the log, it
// does not escape HTML characters.
func PlainJSON(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// Canonical returns a JSON text in the spelling of rows. Invalid JSON is returned
// unchanged.
func Canonical(text json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if len(text) == 0 || dec.Decode(&v) != nil {
		return text
	}
	out, err := PlainJSON(v)
	if err != nil {
		return text
	}
	return out
}

// DecodeObject returns the members of a JSON object, nil for an empty text. Numbers keep
// their spelling.
func DecodeObject(data json.RawMessage) (object map[string]any, err error) {
	if len(data) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return object, d.Decode(&object)
}
