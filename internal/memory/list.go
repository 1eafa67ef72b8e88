package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// Bounds of lists (memories §5.1).
const (
	defaultLimit = 25
	maxLimit     = 50
	// MaxTopK and DefaultTopK bound k, topK and top_k of searches.
	DefaultTopK = 10
	MaxTopK     = 100
)

// Limit returns the effective limit of a list for a requested one. 0 and below mean none was
// requested.
func Limit(asked int64) int {
	if asked <= 0 {
		return defaultLimit
	}
	return int(min(asked, maxLimit))
}

// TopK returns the effective k of a search for a requested one.
func TopK(asked int64) int {
	if asked <= 0 {
		return DefaultTopK
	}
	return int(min(asked, MaxTopK))
}

// ListArgs are the arguments of ListEntries.
type ListArgs struct {
	MemoryID  string   `arg:"memory_id,required,nonempty"`                                            // a UUID or DefaultMemory
	Limit     int64    `arg:"limit,default=25,min=1,max=50" about:"Maximum number of entries."`       // clamped by Limit
	Before    string   `arg:"before" about:"Only what is older: a time (RFC 3339) or an entry's id."` // not with After; RFC3339(Nano) or the id of an entry of the memory
	After     string   `arg:"after" about:"The page that is newer than this: a time or an entry's id. Not with before."`
	Tags      []string `arg:"tags" about:"Only entries with all of these tags, each written KEY:VALUE."`
	SessionID string   `arg:"session_id,nonempty" about:"Only entries of this session."`
}

// Listed is a page of committed entries, always newest first (memories §5.2). The array is never
// nil. The times are null for an empty page.
type Listed struct {
	Entries      []Entry `json:"entries"`
	Count        int     `json:"count"` // of this page
	AppliedLimit int     `json:"applied_limit"`
	NextBefore   *Time   `json:"next_before"`
	NextAfter    *Time   `json:"next_after"`
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
	selectNewest = entryColumns + `WHERE ` + listFilter + `ORDER BY e.canonical_ns DESC LIMIT +?6`
	selectOldest = entryColumns + `WHERE ` + listFilter + `ORDER BY e.canonical_ns LIMIT +?6`
	selectCursor = `SELECT canonical_ns FROM memory_entries WHERE entry_id = ? AND memory_id = ? AND synced = 1 AND deleting_seq IS NULL`
)

// ListEntries lists committed entries. Errors: CodeInvalid for cursors, CodeNotFound
// for a memory that is not the user's.
func (b *Service) ListEntries(ctx context.Context, c Caller, a ListArgs) (Listed, error) {
	out := Listed{Entries: []Entry{}, AppliedLimit: Limit(a.Limit)}
	memory, err := memoryArg(a.MemoryID)
	session, badSession := rules.SessionArg(a.SessionID, false)
	if err = firstError(err, badSession, c.checkArgs()); err != nil {
		return out, err
	}
	if a.Before != "" && a.After != "" {
		return out, invalid("before", "provide only one of before or after")
	}
	var ask *HubQuery
	var in memoryRow
	var owner string
	var elsewhere bool // the cursor may be an entry that is only at the hub
	err = b.readMemory(ctx, c, memory, func(ctx context.Context, s *callTx) error {
		low, high := Time(math.MinInt64), Time(math.MaxInt64)
		query := selectNewest
		var err error
		switch {
		case a.Before != "":
			high, err = s.cursor(ctx, "before", a.Before)
		case a.After != "":
			low, err = s.cursor(ctx, "after", a.After)
			query = selectOldest
		}
		elsewhere = fault.HasCode(err, CodeInvalid) && s.isPurged()
		if err == nil {
			out.Entries = []Entry{}
			err = s.list(ctx, &out, query, low, high, session, a.Tags)
		}
		if err == nil {
			ask, in, owner = s.through(&out, low, high, session, a.Tags), s.m, s.u.ID
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
		case fault.HasCode(unknown, CodeHubUnavailable):
			err = unknown
		}
	}
	if err == nil && ask != nil {
		err = b.merge(ctx, in, owner, ask, &out)
	}
	return out, err
}

func (s *callTx) list(ctx context.Context, out *Listed, query string, low, high Time, session string, tags []string) error {
	if tags == nil {
		tags = []string{}
	}
	wanted, err := json.Marshal(tags)
	if err != nil {
		return err
	}
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		e, err := scanEntry(rows.Scan)
		out.Entries = append(out.Entries, e.Entry)
		return err
	}, query, s.m.MemoryID, low, high, session, string(wanted), out.AppliedLimit)
	if query == selectOldest {
		for i, j := 0, len(out.Entries)-1; i < j; i, j = i+1, j-1 {
			out.Entries[i], out.Entries[j] = out.Entries[j], out.Entries[i]
		}
	}
	out.number()
	return err
}

// cursor parses a cursor: a time, or an entry of the memory.
func (s *callTx) cursor(ctx context.Context, field, text string) (Time, error) {
	at, id, ok := parseCursor(text)
	if !ok {
		return 0, invalid(field, "%s is neither an RFC 3339 time nor an entry of this memory", field)
	}
	if id == "" {
		return at, nil
	}
	err := s.tx.Get(ctx, []any{&at}, selectCursor, id, s.m.MemoryID)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, invalid(field, "%s is neither an RFC 3339 time nor an entry of this memory", field)
	}
	return at, err
}

// parseCursor parses a cursor as a time or, with id, as a UUID.
func parseCursor(text string) (at Time, id string, ok bool) {
	if id, ok = rules.ParseID(text); ok {
		return 0, id, true
	}
	when, err := time.Parse(time.RFC3339Nano, text)
	return clamped(when), "", err == nil
}

// readMemory runs fn over a memory of the acting user, after every job that was submitted for it
// earlier. A default memory that was never written is empty.
func (b *Service) readMemory(ctx context.Context, c Caller, memory string, fn func(ctx context.Context, s *callTx) error) error {
	shard, err := b.shardKey(ctx, c, memory)
	if err != nil {
		return err
	}
	var asked string // the stream that must be pulled first
	var owner string
	read := func(ctx context.Context, tx *store.Tx) error {
		s, err := b.enter(ctx, tx, c, false)
		if err == nil {
			err = s.open(ctx, memory)
		}
		if err != nil {
			return err
		}
		if asked == "" && b.config.OnFirstRead != nil && s.u.hub() && s.m.exists && !s.m.subscribed {
			asked, owner = s.m.MemoryID, s.u.ID
			return nil
		}
		return fn(ctx, s)
	}
	if err = b.ordered(ctx, shard, read); err != nil || asked == "" {
		return err
	}
	b.config.OnFirstRead(ctx, owner, asked)
	return b.read(ctx, read)
}

// GetEntry returns one committed entry. An entry that was purged here is read from the hub.
// Errors: CodeNotFound for any other, CodeHubUnavailable (Unavailable) if the hub may have it and
// cannot be asked.
func (b *Service) GetEntry(ctx context.Context, c Caller, memory, id string) (out Entry, err error) {
	memory, err = memoryArg(memory)
	id, badID := rules.UUIDArg("entry_id", id)
	if err = firstError(err, badID, c.checkArgs()); err != nil {
		return out, err
	}
	var ask *HubQuery
	var in memoryRow
	var owner string
	err = b.readMemory(ctx, c, memory, func(ctx context.Context, s *callTx) error {
		e, err := s.committed(ctx, id)
		if fault.HasCode(err, CodeNotFound) && s.isPurged() {
			ask, in, owner = s.hubQuery(), s.m, s.u.ID
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
		err = notFound("entry")
	}
	if err != nil {
		return Entry{}, err
	}
	return found[0], nil
}

// committed returns a committed entry of the scope's memory. CodeNotFound for any other.
func (s *callTx) committed(ctx context.Context, id string) (entryRow, error) {
	e, found, err := s.entry(ctx, selectByID, id)
	if err == nil && (!found || e.MemoryID != s.m.MemoryID || !e.synced || e.deleting != 0) {
		err = notFound("entry")
	}
	return e, err
}
