package entries

import (
	"cmp"
	"context"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
)

// The states of an added entry.
const (
	Committed = "committed"
	Enqueued  = "enqueued"
)

// Added is the result of AddEntry: HTTP 201 for Committed, 202 for Enqueued.
type Added struct {
	LocalID      string      `json:"localId"`
	EntryID      string      `json:"entryId,omitempty"` // only with Committed
	Status       string      `json:"status"`
	CreationTime memory.Time `json:"creationTime"`
}

// AddEntry stores an entry. Without a hub it is committed immediately, else it is inflight until
// the hub confirms it (memories §4). When AddEntry returns, the entry is durable.
//
// Errors: CodeInvalid, CodeEntryTooLarge, CodeNotFound for a memory that is not the user's,
// CodeMismatch, CodeQueueFull, CodeStopping and those of the store. It is idempotent for calls
// with the same key.
func (b *Entries) AddEntry(ctx context.Context, c memory.Caller, a contents.NewEntry) (out Added, r memory.WriteInfo, err error) {
	defer func(began time.Time) { b.Acked(began, err) }(time.Now())
	memoryID, err := memory.MemoryArg(a.MemoryID)
	session, badSession := rules.SessionArg(a.SessionID, false)
	if err = cmp.Or(err, badSession); err != nil {
		return out, r, err
	}
	shard, err := b.ShardKey(ctx, c, memoryID)
	if err != nil {
		return out, r, err
	}
	a.SessionID = session
	invalidArg := a.Validate()
	if invalidArg == nil {
		a = contents.Redacted(b.Kernel, a)
	}
	return memory.Mutate(ctx, b.Kernel, c, memory.Call{Body: a, Shard: shard}, func(ctx context.Context, s *memory.CallTx) (memory.Step[Added], error) {
		err := s.OpenToWrite(ctx, memoryID, func() error { return cmp.Or(s.Caller.May(memory.Write), invalidArg) })
		return memory.Step[Added]{
			Route:   memory.Route{Method: "POST", Path: s.Path("entries")},
			Earlier: func(n memory.Issued) (Added, bool, error) { return addedEarlier(ctx, s, n) },
			Do:      func(n memory.Issued) (Added, error) { return add(ctx, s, a, n) },
		}, err
	})
}

// add stores and logs a new entry of the scope's memory.
func add(ctx context.Context, s *memory.CallTx, a contents.NewEntry, n memory.Issued) (out Added, err error) {
	e := contents.EntryRow{HubKey: n.Hub, BodyHash: n.Hash, Trace: s.Caller.Trace, Idempotency: n.Key, Synced: !s.User.IsJoined()}
	e.Entry = contents.Entry{
		ActorID: s.User.UserID, VaultID: s.Memory.VaultID, MemoryID: s.Memory.MemoryID, RawEntry: a.RawEntry, Summary: a.Summary, Tags: a.Tags,
		Metadata: a.Metadata, SessionID: a.SessionID, CreationTime: contents.NextTime(s, e.Synced),
	}
	if e.Synced {
		e.EntryID = rules.NewID()
	}
	e.CreationNS, e.CapturedTime = e.CreationTime, e.CreationTime
	err = contents.AddEntry(ctx, s, &e)
	return added(&e), err
}

func added(e *contents.EntryRow) Added {
	out := Added{LocalID: contents.LocalID(e.Key), EntryID: e.EntryID, Status: Committed, CreationTime: e.CreationTime}
	if !e.Synced {
		out.Status = Enqueued
	}
	return out
}

// addedEarlier returns the result from the row that a call with the same key created.
func addedEarlier(ctx context.Context, s *memory.CallTx, n memory.Issued) (out Added, found bool, err error) {
	e, found, err := contents.EntryByHubKey(ctx, s, n.Hub)
	if err == nil && !found {
		var deleted bool
		if deleted, err = s.WasDeleted(ctx, n.Hub); deleted {
			err = rules.Failure(fault.NotFound, memory.CodeNotFound, "use a new key for a new entry", "the entry of this idempotency key was deleted")
		}
	}
	if !found || err != nil {
		return out, false, err
	}
	if string(e.BodyHash) != string(n.Hash) {
		return out, false, memory.Mismatch()
	}
	return added(&e), true, nil
}
