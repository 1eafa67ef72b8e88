package contents

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// Entry is the JSON form of a committed entry. Absent fields are omitted.
type Entry struct {
	EntryID          string            `json:"entryId"`
	ActorID          string            `json:"actorId"` // its owner
	VaultID          string            `json:"vaultId"`
	MemoryID         string            `json:"memoryId"`
	RawEntry         string            `json:"rawEntry"`
	Summary          string            `json:"summary"`
	Tags             map[string]string `json:"tags"` // never nil
	Metadata         json.RawMessage   `json:"metadata,omitempty"`
	SessionID        string            `json:"sessionId,omitempty"`
	CreationTime     memory.Time       `json:"creationTime"` // canonical: unique and ascending in its memory
	CapturedTime     memory.Time       `json:"capturedTime"` // when its device wrote it
	CorrectionTime   memory.Time       `json:"correctionTime,omitzero"`
	CorrectedEntryID string            `json:"correctedEntryId,omitempty"`
	CorrectionReason string            `json:"correctionReason,omitempty"`
}

// NewEntry contains the arguments of AddEntry.
type NewEntry struct {
	MemoryID  string            `json:"-" arg:"memory_id,required,nonempty" lean:"default: this project's."` // a UUID or DefaultMemory
	RawEntry  string            `json:"rawEntry" arg:"raw_entry,required" about:"The text to keep, at most 9,000 characters." lean:"The text."`
	Summary   string            `json:"summary" arg:"summary,required" about:"The content in one line of at most 512 characters."`
	Tags      map[string]string `json:"tags" arg:"tags" about:"Words to filter by: an object of texts, such as {\"topic\":\"billing\"}."`
	Metadata  json.RawMessage   `json:"metadata,omitempty" arg:"metadata" about:"Other data to keep with it, at most 16 KiB of JSON."`        // an object; nil for none
	SessionID string            `json:"sessionId" arg:"session_id,nonempty" about:"Id of the writing session, as recall and search show it."` // a UUID or a product session
}

// EntryRow is a row of the entries.
type EntryRow struct {
	Entry
	Key         int64
	CreationNS  memory.Time // the time given here
	Idempotency string
	BodyHash    []byte
	HubKey      string
	HubSeq      int64
	Trace       string
	Synced      bool
	Seq         int64 // of its put in the log
	Deleting    int64
}

// EntryDoc is the document of a put, here and at the hub.
type EntryDoc struct {
	Key              string            `json:"key"`
	LocalID          string            `json:"localId,omitempty"`
	EntryID          string            `json:"entryId,omitempty"`
	RawEntry         string            `json:"rawEntry"`
	Summary          string            `json:"summary"`
	Tags             map[string]string `json:"tags"`
	Metadata         json.RawMessage   `json:"metadata,omitempty"`
	SessionID        string            `json:"sessionId,omitempty"`
	CapturedTime     memory.Time       `json:"capturedTime"`
	CreationTime     memory.Time       `json:"creationTime,omitzero"` // only in documents of a hub or an export
	CorrectionTime   memory.Time       `json:"correctionTime,omitzero"`
	CorrectedEntryID string            `json:"correctedEntryId,omitempty"`
	CorrectionReason string            `json:"correctionReason,omitempty"`
	Trace            string            `json:"traceparent,omitempty"`
}

const (
	EntryColumns = `SELECT e.key, ifnull(e.entry_id, ''), e.user_id, e.vault_id, e.memory_id, e.raw_entry, e.summary, e.tags, e.metadata,
ifnull(e.session_id, ''), e.creation_ns, ifnull(e.canonical_ns, e.creation_ns), e.captured_ns, ifnull(e.correction_ns, 0),
ifnull(e.corrected_entry_id, ''), ifnull(e.correction_reason, ''), ifnull(e.idempotency_key, ''), e.body_hash, ifnull(e.hub_key, ''),
ifnull(e.hub_seq, 0), ifnull(e.trace_id, ''), e.synced, e.seq, ifnull(e.deleting_seq, 0) FROM memory_entries e `
	selectByID  = EntryColumns + `WHERE e.entry_id = ?`
	selectByRow = EntryColumns + `WHERE e.key = ?`
	selectByHub = EntryColumns + `WHERE e.hub_key = ?`

	insertEntry = `INSERT INTO memory_entries (user_id, vault_id, memory_id, entry_id, creation_ns, canonical_ns, captured_ns, raw_entry, summary,
tags, metadata, session_id, idempotency_key, body_hash, hub_key, hub_seq, trace_id, synced, synced_ns, seq, correction_ns, corrected_entry_id,
correction_reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateSeq   = `UPDATE memory_entries SET seq = ? WHERE key = ?`
	updateTimes = `UPDATE memory_streams SET last_ns = max(last_ns, ?2), last_canonical_ns = max(last_canonical_ns, ?3) WHERE stream = ?1`
)

// ScanEntry reads a row of EntryColumns.
func ScanEntry(scan func(...any) error) (e EntryRow, err error) {
	var tags string
	var metadata sql.NullString
	err = scan(&e.Key, &e.EntryID, &e.ActorID, &e.VaultID, &e.MemoryID, &e.RawEntry, &e.Summary, &tags, &metadata, &e.SessionID,
		&e.CreationNS, &e.CreationTime, &e.CapturedTime, &e.CorrectionTime, &e.CorrectedEntryID, &e.CorrectionReason,
		&e.Idempotency, &e.BodyHash, &e.HubKey, &e.HubSeq, &e.Trace, &e.Synced, &e.Seq, &e.Deleting)
	if err != nil {
		return e, err
	}
	if metadata.Valid {
		e.Metadata = json.RawMessage(metadata.String)
	}
	e.Tags = map[string]string{}
	return e, json.Unmarshal([]byte(tags), &e.Tags)
}

// EntryByID finds the row of an entry by its id.
func EntryByID(ctx context.Context, s *memory.CallTx, id string) (EntryRow, bool, error) {
	return entry(ctx, s, selectByID, id)
}

// EntryByRow finds a row by its number.
func EntryByRow(ctx context.Context, s *memory.CallTx, key int64) (EntryRow, bool, error) {
	return entry(ctx, s, selectByRow, key)
}

// EntryByHubKey finds a row by its hub key.
func EntryByHubKey(ctx context.Context, s *memory.CallTx, key string) (EntryRow, bool, error) {
	return entry(ctx, s, selectByHub, key)
}

// EntryNamed finds the row of an entry by an entryId or a localId.
func EntryNamed(ctx context.Context, s *memory.CallTx, name string) (EntryRow, bool, error) {
	if key, err := ParseLocalID(name); err == nil {
		return EntryByRow(ctx, s, key)
	}
	return EntryByID(ctx, s, name)
}

// entry reads one row. found is false if there is none.
func entry(ctx context.Context, s *memory.CallTx, query string, args ...any) (e EntryRow, found bool, err error) {
	e, err = ScanEntry(func(dest ...any) error { return s.Tx.Get(ctx, dest, query, args...) })
	if errors.Is(err, sql.ErrNoRows) {
		return e, false, nil
	}
	return e, err == nil, err
}

// Entries reads entries.
func Entries(ctx context.Context, s *memory.CallTx, query string, args ...any) (out []EntryRow, err error) {
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		e, err := ScanEntry(rows.Scan)
		out = append(out, e)
		return err
	}, query, args...)
	return out, err
}

// LocalID returns the name of an entry's row: `pending-` and its number (memories P7).
func LocalID(key int64) string { return "pending-" + strconv.FormatInt(key, 10) }

// ParseLocalID parses a localId. CodeLocalID for any other text, and for a number that a row
// cannot have (memories §5.3).
func ParseLocalID(text string) (int64, error) {
	digits, ok := strings.CutPrefix(text, "pending-")
	if !ok || digits == "" || digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
		return 0, badLocalID()
	}
	key, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, badLocalID()
	}
	return key, nil
}

func badLocalID() error {
	return rules.Failure(fault.Invalid, memory.CodeLocalID, "pass the localId as add_entry or list_inflight_entries returned it",
		"local_id is not of the form pending-N", "field", "local_id")
}

// IsLocalID reports whether a text is a localId.
func IsLocalID(text string) bool {
	_, err := ParseLocalID(text)
	return err == nil
}

// EntryArg parses the name of an entry: a UUID or a localId.
func EntryArg(text string) (string, error) {
	if IsLocalID(text) {
		return text, nil
	}
	id, err := rules.UUIDArg("entry_id", text)
	if err != nil && text != "" {
		err = rules.Invalid("entry_id", "entry_id is neither a UUID nor a localId")
	}
	return id, err
}

// Validate checks an entry (memories §5.1) and compacts its metadata.
func (a *NewEntry) Validate() (err error) {
	a.Metadata, err = rules.ValidateEntry(a.RawEntry, a.Summary, a.Tags, a.Metadata)
	return err
}

// NextTime returns the time of a new entry of the scope's memory, later than all others.
func NextTime(s *memory.CallTx, committed bool) memory.Time {
	at := max(memory.Time(s.Tx.Now().UnixNano()), memory.Time(s.Memory.LastNS)+1)
	if committed {
		at = max(at, memory.Time(s.Memory.LastCanonicalNS)+1)
	}
	return at
}

// AddEntry stores a row and logs it as a change of this device.
func AddEntry(ctx context.Context, s *memory.CallTx, e *EntryRow) error {
	if err := InsertEntry(ctx, s, e); err != nil {
		return err
	}
	id := e.EntryID
	if !e.Synced {
		id = LocalID(e.Key)
	}
	seq, err := s.Log(ctx, memory.KindEntry, id, store.OpPut, e.Doc())
	if err == nil {
		e.Seq = seq
		err = SetSeq(ctx, s, e.Key, seq)
	}
	return err
}

// SetSeq stores which change of the log is the put of a row.
func SetSeq(ctx context.Context, s *memory.CallTx, key, seq int64) error {
	return s.Exec(ctx, updateSeq, seq, key)
}

// InsertEntry stores a row and sets its number, indexes it, and stores its times.
func InsertEntry(ctx context.Context, s *memory.CallTx, e *EntryRow) error {
	if err := InsertEntryRow(ctx, s, e); err != nil {
		return err
	}
	s.Memory.LastNS = max(s.Memory.LastNS, int64(e.CreationNS))
	if e.Synced {
		s.Memory.LastCanonicalNS = max(s.Memory.LastCanonicalNS, int64(e.CreationTime))
		if err := indexEntry(ctx, s, e); err != nil {
			return err
		}
	}
	return noteTimes(ctx, s)
}

// InsertEntryRow stores a row and sets its number.
func InsertEntryRow(ctx context.Context, s *memory.CallTx, e *EntryRow) error {
	tags, err := json.Marshal(e.Tags)
	if err != nil {
		return err
	}
	if e.Tags == nil {
		tags = []byte("{}")
	}
	var canonical, synced any
	if e.Synced {
		canonical, synced = e.CreationTime, s.Tx.Now().UnixNano()
	}
	res, err := s.Tx.Exec(ctx, insertEntry, e.ActorID, e.VaultID, e.MemoryID, memory.Nullable(e.EntryID), e.CreationNS, canonical, e.CapturedTime,
		e.RawEntry, e.Summary, string(tags), memory.Nullable(string(e.Metadata)), memory.Nullable(e.SessionID), memory.Nullable(e.Idempotency), e.BodyHash,
		memory.Nullable(e.HubKey), memory.Number(e.HubSeq), memory.Nullable(e.Trace), e.Synced, synced, e.Seq, memory.Number(int64(e.CorrectionTime)),
		memory.Nullable(e.CorrectedEntryID), memory.Nullable(e.CorrectionReason))
	if err != nil {
		return err
	}
	e.Key, err = res.LastInsertId()
	return err
}

// noteTimes stores the newest times of the memory.
func noteTimes(ctx context.Context, s *memory.CallTx) error {
	return s.Exec(ctx, updateTimes, s.Memory.MemoryID, s.Memory.LastNS, s.Memory.LastCanonicalNS)
}

// Doc returns the document of the put of a row.
func (e *EntryRow) Doc() EntryDoc {
	tags := e.Tags
	if tags == nil {
		tags = map[string]string{}
	}
	return EntryDoc{
		Key: e.HubKey, LocalID: LocalID(e.Key), EntryID: e.EntryID, RawEntry: e.RawEntry, Summary: e.Summary, Tags: tags, Metadata: e.Metadata,
		SessionID: e.SessionID, CapturedTime: e.CapturedTime, CorrectionTime: e.CorrectionTime, CorrectedEntryID: e.CorrectedEntryID,
		CorrectionReason: e.CorrectionReason, Trace: e.Trace,
	}
}

// In returns the entry of a document, in a memory of an owner.
func (d *EntryDoc) In(m memory.Memory, owner string) Entry {
	return Entry{
		EntryID: d.EntryID, ActorID: owner, VaultID: m.VaultID, MemoryID: m.MemoryID, RawEntry: d.RawEntry, Summary: d.Summary, Tags: d.Tags,
		Metadata: d.Metadata, SessionID: d.SessionID, CreationTime: d.CreationTime, CapturedTime: d.CapturedTime,
		CorrectionTime: d.CorrectionTime, CorrectedEntryID: d.CorrectedEntryID, CorrectionReason: d.CorrectionReason,
	}
}
