package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
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
	CreationTime     Time              `json:"creationTime"` // canonical: unique and ascending in its memory
	CapturedTime     Time              `json:"capturedTime"` // when its device wrote it
	CorrectionTime   Time              `json:"correctionTime,omitzero"`
	CorrectedEntryID string            `json:"correctedEntryId,omitempty"`
	CorrectionReason string            `json:"correctionReason,omitempty"`
}

// Inflight is an entry that the hub has not confirmed yet. It has exactly five fields.
type Inflight struct {
	LocalID      string            `json:"localId"`
	CreationTime Time              `json:"creationTime"`
	RawEntry     string            `json:"rawEntry"`
	Summary      string            `json:"summary"`
	Tags         map[string]string `json:"tags"` // never nil
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

// The states of an added entry.
const (
	Committed = "committed"
	Enqueued  = "enqueued"
)

// Added is the result of AddEntry: HTTP 201 for Committed, 202 for Enqueued.
type Added struct {
	LocalID      string `json:"localId"`
	EntryID      string `json:"entryId,omitempty"` // only with Committed
	Status       string `json:"status"`
	CreationTime Time   `json:"creationTime"`
}

// entryRow is a row of the entries.
type entryRow struct {
	Entry
	key         int64
	creationNS  Time // the time given here
	idempotency string
	bodyHash    []byte
	hubKey      string
	hubSeq      int64
	trace       string
	synced      bool
	seq         int64 // of its put in the log
	deleting    int64
}

// entryDoc is the document of a put, here and at the hub.
type entryDoc struct {
	Key              string            `json:"key"`
	LocalID          string            `json:"localId,omitempty"`
	EntryID          string            `json:"entryId,omitempty"`
	RawEntry         string            `json:"rawEntry"`
	Summary          string            `json:"summary"`
	Tags             map[string]string `json:"tags"`
	Metadata         json.RawMessage   `json:"metadata,omitempty"`
	SessionID        string            `json:"sessionId,omitempty"`
	CapturedTime     Time              `json:"capturedTime"`
	CreationTime     Time              `json:"creationTime,omitzero"` // only in documents of a hub or an export
	CorrectionTime   Time              `json:"correctionTime,omitzero"`
	CorrectedEntryID string            `json:"correctedEntryId,omitempty"`
	CorrectionReason string            `json:"correctionReason,omitempty"`
	Trace            string            `json:"traceparent,omitempty"`
}

const (
	entryColumns = `SELECT e.key, ifnull(e.entry_id, ''), e.user_id, e.vault_id, e.memory_id, e.raw_entry, e.summary, e.tags, e.metadata,
ifnull(e.session_id, ''), e.creation_ns, ifnull(e.canonical_ns, e.creation_ns), e.captured_ns, ifnull(e.correction_ns, 0),
ifnull(e.corrected_entry_id, ''), ifnull(e.correction_reason, ''), ifnull(e.idempotency_key, ''), e.body_hash, ifnull(e.hub_key, ''),
ifnull(e.hub_seq, 0), ifnull(e.trace_id, ''), e.synced, e.seq, ifnull(e.deleting_seq, 0) FROM memory_entries e `
	selectByID  = entryColumns + `WHERE e.entry_id = ?`
	selectByRow = entryColumns + `WHERE e.key = ?`
	selectByHub = entryColumns + `WHERE e.hub_key = ?`

	insertEntry = `INSERT INTO memory_entries (user_id, vault_id, memory_id, entry_id, creation_ns, canonical_ns, captured_ns, raw_entry, summary,
tags, metadata, session_id, idempotency_key, body_hash, hub_key, hub_seq, trace_id, synced, synced_ns, seq, correction_ns, corrected_entry_id,
correction_reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateSeq   = `UPDATE memory_entries SET seq = ? WHERE key = ?`
	updateTimes = `UPDATE memory_streams SET last_ns = max(last_ns, ?2), last_canonical_ns = max(last_canonical_ns, ?3) WHERE stream = ?1`
)

func scanEntry(scan func(...any) error) (e entryRow, err error) {
	var tags string
	var metadata sql.NullString
	err = scan(&e.key, &e.EntryID, &e.ActorID, &e.VaultID, &e.MemoryID, &e.RawEntry, &e.Summary, &tags, &metadata, &e.SessionID,
		&e.creationNS, &e.CreationTime, &e.CapturedTime, &e.CorrectionTime, &e.CorrectedEntryID, &e.CorrectionReason,
		&e.idempotency, &e.bodyHash, &e.hubKey, &e.hubSeq, &e.trace, &e.synced, &e.seq, &e.deleting)
	if err != nil {
		return e, err
	}
	if metadata.Valid {
		e.Metadata = json.RawMessage(metadata.String)
	}
	e.Tags = map[string]string{}
	return e, json.Unmarshal([]byte(tags), &e.Tags)
}

// entry reads one row. found is false if there is none.
func (s *callTx) entry(ctx context.Context, query string, args ...any) (e entryRow, found bool, err error) {
	e, err = scanEntry(func(dest ...any) error { return s.tx.Get(ctx, dest, query, args...) })
	if errors.Is(err, sql.ErrNoRows) {
		return e, false, nil
	}
	return e, err == nil, err
}

// localID returns the name of an entry's row: `pending-` and its number (memories P7).
func localID(key int64) string { return "pending-" + strconv.FormatInt(key, 10) }

// parseLocalID parses a localId. CodeLocalID for any other text, and for a number that a row
// cannot have (memories §5.3).
func parseLocalID(text string) (int64, error) {
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
	return failure(fault.Invalid, CodeLocalID, "pass the localId as add_entry or list_inflight_entries returned it",
		"local_id is not of the form pending-N", "field", "local_id")
}

func isLocalID(text string) bool {
	_, err := parseLocalID(text)
	return err == nil
}

// AddEntry stores an entry. Without a hub it is committed immediately, else it is inflight until
// the hub confirms it (memories §4). When AddEntry returns, the entry is durable.
//
// Errors: CodeInvalid, CodeEntryTooLarge, CodeNotFound for a memory that is not the user's,
// CodeMismatch, CodeQueueFull, CodeStopping and those of the store. It is idempotent for calls
// with the same key.
func (b *Service) AddEntry(ctx context.Context, c Caller, a NewEntry) (out Added, r WriteInfo, err error) {
	defer func(began time.Time) { b.acked(began, err) }(time.Now())
	memory, err := memoryArg(a.MemoryID)
	session, badSession := rules.SessionArg(a.SessionID, false)
	if err = firstError(err, badSession); err != nil {
		return out, r, err
	}
	shard, err := b.shardKey(ctx, c, memory)
	if err != nil {
		return out, r, err
	}
	a.SessionID = session
	invalidArg := a.validate()
	if invalidArg == nil {
		a = b.redacted(a)
	}
	return mutate(ctx, b, c, call{body: a, shard: shard}, func(ctx context.Context, s *callTx) (step[Added], error) {
		err := s.openToWrite(ctx, memory, func() error { return firstError(s.c.may(Write), invalidArg) })
		return step[Added]{
			route:   route{"POST", s.path("entries")},
			earlier: func(n issued) (Added, bool, error) { return s.addedEarlier(ctx, n) },
			do:      func(n issued) (Added, error) { return s.add(ctx, a, n) },
		}, err
	})
}

// path returns the canonical HTTP path of something in the memory.
func (s *callTx) path(rest string) string { return "/v1/memories/" + s.m.MemoryID + "/" + rest }

// validate checks an entry (memories §5.1) and compacts its metadata.
func (a *NewEntry) validate() (err error) {
	a.Metadata, err = rules.ValidateEntry(a.RawEntry, a.Summary, a.Tags, a.Metadata)
	return err
}

// redacted returns an entry without secrets.
func (b *Service) redacted(a NewEntry) NewEntry {
	a.RawEntry, a.Summary, a.Tags = b.redact(a.RawEntry), b.redact(a.Summary), b.redactTags(a.Tags)
	a.Metadata = b.redactJSON(a.Metadata)
	return a
}

func (b *Service) redactTags(tags map[string]string) map[string]string {
	out := make(map[string]string, len(tags))
	for k, v := range tags {
		out[b.redact(k)] = b.redact(v)
	}
	return out
}

// redactJSON removes secrets from the strings of a JSON text. A text without secrets is returned
// unchanged, byte for byte.
func (b *Service) redactJSON(raw json.RawMessage) json.RawMessage {
	if b.config.Filter == nil || raw == nil {
		return raw
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	changed := false
	v = b.redactValue(v, "", &changed)
	if !changed {
		return raw
	}
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return text
}

// redactValue redacts a JSON value recursively. name is the name of its member, which may
// indicate that the value is a secret.
func (b *Service) redactValue(v any, name string, changed *bool) any {
	switch v := v.(type) {
	case string:
		clean := b.redact(v)
		if clean == v && name != "" {
			if named := b.redact(name + ": " + v); named != name+": "+v {
				clean = strings.TrimPrefix(named, name+": ")
			}
		}
		*changed = *changed || clean != v
		return clean
	case []any:
		for i := range v {
			v[i] = b.redactValue(v[i], name, changed)
		}
	case map[string]any:
		for k, item := range v {
			v[k] = b.redactValue(item, k, changed)
		}
	}
	return v
}

// add stores and logs a new entry of the scope's memory.
func (s *callTx) add(ctx context.Context, a NewEntry, n issued) (out Added, err error) {
	e := entryRow{hubKey: n.hub, bodyHash: n.hash, trace: s.c.Trace, idempotency: n.key, synced: !s.u.hub()}
	e.Entry = Entry{
		ActorID: s.u.ID, VaultID: s.m.VaultID, MemoryID: s.m.MemoryID, RawEntry: a.RawEntry, Summary: a.Summary, Tags: a.Tags,
		Metadata: a.Metadata, SessionID: a.SessionID, CreationTime: s.nextTime(e.synced),
	}
	if e.synced {
		e.EntryID = rules.NewID()
	}
	e.creationNS, e.CapturedTime = e.CreationTime, e.CreationTime
	err = s.insertLogged(ctx, &e)
	return e.added(), err
}

// nextTime returns the time of a new entry of the scope's memory, later than all others.
func (s *callTx) nextTime(committed bool) Time {
	at := max(Time(s.tx.Now().UnixNano()), Time(s.m.lastNS)+1)
	if committed {
		at = max(at, Time(s.m.lastCanonicalNS)+1)
	}
	return at
}

// insertLogged stores a row and logs it as a change of this device.
func (s *callTx) insertLogged(ctx context.Context, e *entryRow) error {
	if err := s.insert(ctx, e); err != nil {
		return err
	}
	id := e.EntryID
	if !e.synced {
		id = localID(e.key)
	}
	seq, err := s.log(ctx, KindEntry, id, store.OpPut, e.doc())
	if err == nil {
		e.seq = seq
		_, err = s.tx.Exec(ctx, updateSeq, e.seq, e.key)
	}
	return err
}

// insert stores a row and sets its number, indexes it, and stores its times.
func (s *callTx) insert(ctx context.Context, e *entryRow) error {
	if err := s.insertRow(ctx, e); err != nil {
		return err
	}
	s.m.lastNS = max(s.m.lastNS, int64(e.creationNS))
	if e.synced {
		s.m.lastCanonicalNS = max(s.m.lastCanonicalNS, int64(e.CreationTime))
		if err := s.index(ctx, e); err != nil {
			return err
		}
	}
	return s.noteTimes(ctx)
}

// insertRow stores a row and sets its number.
func (s *callTx) insertRow(ctx context.Context, e *entryRow) error {
	tags, err := json.Marshal(e.Tags)
	if err != nil {
		return err
	}
	if e.Tags == nil {
		tags = []byte("{}")
	}
	var canonical, synced any
	if e.synced {
		canonical, synced = e.CreationTime, s.tx.Now().UnixNano()
	}
	res, err := s.tx.Exec(ctx, insertEntry, e.ActorID, e.VaultID, e.MemoryID, nullable(e.EntryID), e.creationNS, canonical, e.CapturedTime,
		e.RawEntry, e.Summary, string(tags), nullable(string(e.Metadata)), nullable(e.SessionID), nullable(e.idempotency), e.bodyHash,
		nullable(e.hubKey), number(e.hubSeq), nullable(e.trace), e.synced, synced, e.seq, number(int64(e.CorrectionTime)),
		nullable(e.CorrectedEntryID), nullable(e.CorrectionReason))
	if err != nil {
		return err
	}
	e.key, err = res.LastInsertId()
	return err
}

// noteTimes stores the newest times of the memory.
func (s *callTx) noteTimes(ctx context.Context) error {
	_, err := s.tx.Exec(ctx, updateTimes, s.m.MemoryID, s.m.lastNS, s.m.lastCanonicalNS)
	return err
}

// number returns a number for a column in which 0 is NULL.
func number(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: n != 0} }

func (e *entryRow) doc() entryDoc {
	tags := e.Tags
	if tags == nil {
		tags = map[string]string{}
	}
	return entryDoc{
		Key: e.hubKey, LocalID: localID(e.key), EntryID: e.EntryID, RawEntry: e.RawEntry, Summary: e.Summary, Tags: tags, Metadata: e.Metadata,
		SessionID: e.SessionID, CapturedTime: e.CapturedTime, CorrectionTime: e.CorrectionTime, CorrectedEntryID: e.CorrectedEntryID,
		CorrectionReason: e.CorrectionReason, Trace: e.trace,
	}
}

func (e *entryRow) added() Added {
	out := Added{LocalID: localID(e.key), EntryID: e.EntryID, Status: Committed, CreationTime: e.CreationTime}
	if !e.synced {
		out.Status = Enqueued
	}
	return out
}

// addedEarlier returns the result from the row that a call with the same key created.
func (s *callTx) addedEarlier(ctx context.Context, n issued) (out Added, found bool, err error) {
	e, found, err := s.entry(ctx, selectByHub, n.hub)
	if err == nil && !found {
		var deleted bool
		if deleted, err = s.wasDeleted(ctx, n.hub); deleted {
			err = failure(fault.NotFound, CodeNotFound, "use a new key for a new entry", "the entry of this idempotency key was deleted")
		}
	}
	if !found || err != nil {
		return out, false, err
	}
	if string(e.bodyHash) != string(n.hash) {
		return out, false, mismatch()
	}
	return e.added(), true, nil
}
