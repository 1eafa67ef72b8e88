package entries

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
)

// Bounds of lists (memories §5.1).
const (
	defaultLimit = 25
	maxLimit     = 50
)

// clampLimit returns the effective limit of a list for a requested one. 0 and below mean none was
// requested.
func clampLimit(asked int64) int {
	if asked <= 0 {
		return defaultLimit
	}
	return int(min(asked, maxLimit))
}

// ListArgs are the arguments of ListEntries.
type ListArgs struct {
	MemoryID  string   `arg:"memory_id,required,nonempty"`                                            // a UUID or DefaultMemory
	Limit     int64    `arg:"limit,default=25,min=1,max=50" about:"Maximum number of entries."`       // clamped to the bounds of lists
	Before    string   `arg:"before" about:"Only what is older: a time (RFC 3339) or an entry's id."` // not with After; RFC3339(Nano) or the id of an entry of the memory
	After     string   `arg:"after" about:"The page that is newer than this: a time or an entry's id. Not with before."`
	Tags      []string `arg:"tags" about:"Only entries with all of these tags, each written KEY:VALUE."`
	SessionID string   `arg:"session_id,nonempty" about:"Only entries of this session."`
}

// Listed is a page of committed entries, always newest first (memories §5.2). The array is never
// nil. The times are null for an empty page.
type Listed struct {
	Entries      []contents.Entry `json:"entries"`
	Count        int              `json:"count"` // of this page
	AppliedLimit int              `json:"applied_limit"`
	NextBefore   *memory.Time     `json:"next_before"`
	NextAfter    *memory.Time     `json:"next_after"`
	// Truncated means that older entries are at the hub, which could not be asked. Reason is
	// Unreachable then (memories §10.7).
	Truncated bool   `json:"truncated,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

const (
	// The requested tags are a JSON array of "key:value". An entry must have all of them.
	listFilter = `e.memory_id = ?1 AND e.synced = 1 AND e.deleting_seq IS NULL AND e.canonical_ns > ?2 AND e.canonical_ns < ?3
AND (?4 = '' OR e.session_id = ?4)
AND (?5 = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(?5) w
WHERE NOT EXISTS (SELECT 1 FROM json_each(e.tags) t WHERE t.key || ':' || t.value = w.value))) `
	selectNewest = contents.EntryColumns + `WHERE ` + listFilter + `ORDER BY e.canonical_ns DESC LIMIT +?6`
	selectOldest = contents.EntryColumns + `WHERE ` + listFilter + `ORDER BY e.canonical_ns LIMIT +?6`
	selectCursor = `SELECT canonical_ns FROM memory_entries WHERE entry_id = ? AND memory_id = ? AND synced = 1 AND deleting_seq IS NULL`
)

// ListEntries lists committed entries. Errors: CodeInvalid for cursors, CodeNotFound
// for a memory that is not the user's.
func (b *Entries) ListEntries(ctx context.Context, c memory.Caller, a ListArgs) (Listed, error) {
	out := Listed{Entries: []contents.Entry{}, AppliedLimit: clampLimit(a.Limit)}
	memoryID, err := memory.MemoryArg(a.MemoryID)
	session, badSession := rules.SessionArg(a.SessionID, false)
	if err = cmp.Or(err, badSession, c.CheckArgs()); err != nil {
		return out, err
	}
	if a.Before != "" && a.After != "" {
		return out, rules.Invalid("before", "provide only one of before or after")
	}
	var ask *memory.HubQuery
	var in memory.MemoryRow
	var owner string
	var elsewhere bool // the cursor may be an entry that is only at the hub
	err = b.ReadMemory(ctx, c, memoryID, func(ctx context.Context, s *memory.CallTx) error {
		low, high := memory.Time(math.MinInt64), memory.Time(math.MaxInt64)
		query := selectNewest
		var err error
		switch {
		case a.Before != "":
			high, err = cursor(ctx, s, "before", a.Before)
		case a.After != "":
			low, err = cursor(ctx, s, "after", a.After)
			query = selectOldest
		}
		elsewhere = fault.HasCode(err, memory.CodeInvalid) && isPurged(s)
		if err == nil {
			out.Entries = []contents.Entry{}
			err = list(ctx, s, &out, query, low, high, session, a.Tags)
		}
		if err == nil {
			ask, in, owner = through(s, &out, low, high, session, a.Tags), s.Memory, s.User.UserID
		}
		return err
	})
	if id, ok := rules.ParseID(a.Before + a.After); ok && elsewhere {
		e, unknown := b.GetEntry(ctx, c, a.MemoryID, id)
		switch {
		case unknown == nil && a.Before != "":
			a.Before = e.CreationTime.String()
			return b.ListEntries(ctx, c, a)
		case unknown == nil:
			a.After = e.CreationTime.String()
			return b.ListEntries(ctx, c, a)
		case fault.HasCode(unknown, memory.CodeHubUnavailable):
			err = unknown
		}
	}
	if err == nil && ask != nil {
		err = b.merge(ctx, in, owner, ask, &out)
	}
	return out, err
}

func list(ctx context.Context, s *memory.CallTx, out *Listed, query string, low, high memory.Time, session string, tags []string) error {
	if tags == nil {
		tags = []string{}
	}
	wanted, err := json.Marshal(tags)
	if err != nil {
		return err
	}
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		e, err := contents.ScanEntry(rows.Scan)
		out.Entries = append(out.Entries, e.Entry)
		return err
	}, query, s.Memory.MemoryID, low, high, session, string(wanted), out.AppliedLimit)
	if query == selectOldest {
		for i, j := 0, len(out.Entries)-1; i < j; i, j = i+1, j-1 {
			out.Entries[i], out.Entries[j] = out.Entries[j], out.Entries[i]
		}
	}
	out.number()
	return err
}

// cursor parses a cursor: a time, or an entry of the memory.
func cursor(ctx context.Context, s *memory.CallTx, field, text string) (memory.Time, error) {
	at, id, ok := parseCursor(text)
	if !ok {
		return 0, rules.Invalid(field, "%s is neither an RFC 3339 time nor an entry of this memory", field)
	}
	if id == "" {
		return at, nil
	}
	err := s.Tx.Get(ctx, []any{&at}, selectCursor, id, s.Memory.MemoryID)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, rules.Invalid(field, "%s is neither an RFC 3339 time nor an entry of this memory", field)
	}
	return at, err
}

// parseCursor parses a cursor as a time or, with id, as a UUID.
func parseCursor(text string) (at memory.Time, id string, ok bool) {
	if id, ok = rules.ParseID(text); ok {
		return 0, id, true
	}
	when, err := time.Parse(time.RFC3339Nano, text)
	return memory.Clamped(when), "", err == nil
}

// GetEntry returns one committed entry. An entry that was purged here is read from the hub.
// Errors: CodeNotFound for any other, CodeHubUnavailable (Unavailable) if the hub may have it and
// cannot be asked.
func (b *Entries) GetEntry(ctx context.Context, c memory.Caller, memoryID, id string) (out contents.Entry, err error) {
	memoryID, err = memory.MemoryArg(memoryID)
	id, badID := rules.UUIDArg("entry_id", id)
	if err = cmp.Or(err, badID, c.CheckArgs()); err != nil {
		return out, err
	}
	var ask *memory.HubQuery
	var in memory.MemoryRow
	var owner string
	err = b.ReadMemory(ctx, c, memoryID, func(ctx context.Context, s *memory.CallTx) error {
		e, err := committed(ctx, s, id)
		if fault.HasCode(err, memory.CodeNotFound) && isPurged(s) {
			ask, in, owner = hubQuery(s), s.Memory, s.User.UserID
			ask.Entry = id
		}
		out = e.Entry
		return err
	})
	if ask == nil {
		return out, err
	}
	found, err := b.readThrough(ctx, in, owner, ask)
	if err == nil {
		found, err = b.visible(ctx, in, owner, found)
	}
	if err == nil && len(found) == 0 {
		err = memory.NotFound("entry")
	}
	if err != nil {
		return contents.Entry{}, err
	}
	return found[0], nil
}

// committed returns a committed entry of the scope's memory. CodeNotFound for any other.
func committed(ctx context.Context, s *memory.CallTx, id string) (contents.EntryRow, error) {
	e, found, err := contents.EntryByID(ctx, s, id)
	if err == nil && (!found || e.MemoryID != s.Memory.MemoryID || !e.Synced || e.Deleting != 0) {
		err = memory.NotFound("entry")
	}
	return e, err
}
