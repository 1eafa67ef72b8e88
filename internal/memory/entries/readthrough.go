package entries

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/store"
)

// Unreachable is the Reason of a list that is truncated because the hub could not be asked.
const Unreachable = "hub_unreachable"

// isPurged reports whether entries of the scope's memory are only at the hub, and can be read
// there.
func isPurged(s *memory.CallTx) bool {
	return s.Memory.PurgedNS > 0 && s.User.IsJoined() && s.Config.ReadThrough != nil
}

// hubQuery returns a query about the scope's memory.
func hubQuery(s *memory.CallTx) *memory.HubQuery {
	q := &memory.HubQuery{Memory: s.Memory.MemoryID}
	if s.Memory.RemoteID != "" {
		q.Memory = s.Memory.RemoteID
	}
	return q
}

// readThrough returns the hub's entries for a query, as entries of the memory here. Errors:
// CodeNotFound, CodeHubUnavailable.
func (b *Entries) readThrough(ctx context.Context, in memory.MemoryRow, owner string, q *memory.HubQuery) ([]contents.Entry, error) {
	docs, err := b.Config.ReadThrough(ctx, owner, *q)
	if err != nil {
		return nil, err
	}
	out := make([]contents.Entry, 0, len(docs))
	for _, text := range docs {
		var d contents.EntryDoc
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, memory.HubUnavailable()
		}
		e := d.In(in.Memory, owner)
		if e.Tags == nil {
			e.Tags = map[string]string{}
		}
		out = append(out, e)
	}
	return out, nil
}

// through returns the query for the purged entries that a list may lack; nil if the list is
// complete.
func through(s *memory.CallTx, out *Listed, low, high memory.Time, session string, tags []string) *memory.HubQuery {
	purged := memory.Time(s.Memory.PurgedNS)
	up := low != math.MinInt64
	switch {
	case !isPurged(s), up && low >= purged, !up && out.Count == out.AppliedLimit && out.Entries[out.Count-1].CreationTime >= purged:
		return nil
	}
	q := hubQuery(s)
	q.Limit, q.Tags, q.SessionID = out.AppliedLimit, tags, session
	if up {
		q.After = low
	} else if high != math.MaxInt64 {
		q.Before = high
	}
	return q
}

// merge adds the hub's entries to a list. If the hub cannot be asked, it truncates the list where
// rows may be missing.
func (b *Entries) merge(ctx context.Context, in memory.MemoryRow, owner string, q *memory.HubQuery, out *Listed) error {
	more, err := b.readThrough(ctx, in, owner, q)
	if fault.HasCode(err, memory.CodeHubUnavailable) {
		out.Truncated, out.Reason = true, Unreachable
		out.Entries = slices.DeleteFunc(out.Entries, func(e contents.Entry) bool {
			return (q.After == 0) && e.CreationTime < memory.Time(in.PurgedNS) // entries between them may be missing
		})
		out.number()
		return nil
	}
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, e := range out.Entries {
		have[e.EntryID] = true
	}
	more = slices.DeleteFunc(more, func(e contents.Entry) bool { return have[e.EntryID] })
	if more, err = b.visible(ctx, in, owner, more); err != nil {
		return err
	}
	out.Entries = append(out.Entries, more...)
	slices.SortFunc(out.Entries, func(a, b contents.Entry) int { return int(max(-1, min(1, int64(b.CreationTime-a.CreationTime)))) })
	if n := len(out.Entries); n > out.AppliedLimit && q.After != 0 {
		out.Entries = out.Entries[n-out.AppliedLimit:]
	} else if n > out.AppliedLimit {
		out.Entries = out.Entries[:out.AppliedLimit]
	}
	out.number()
	return nil
}

// visible removes entries that were deleted, or are being deleted, here.
func (b *Entries) visible(ctx context.Context, in memory.MemoryRow, owner string, all []contents.Entry) (out []contents.Entry, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s := &memory.CallTx{Kernel: b.Kernel, Tx: tx, User: memory.User{UserID: owner}, Memory: in}
		out = nil
		for _, e := range all {
			deleted, err := s.WasDeleted(ctx, e.EntryID)
			if err != nil {
				return err
			}
			row, found, err := contents.EntryByID(ctx, s, e.EntryID)
			if err != nil {
				return err
			}
			if !deleted && (!found || row.Deleting == 0) {
				out = append(out, e)
			}
		}
		return nil
	})
	return out, err
}

// number sets the count and the cursors of a page.
func (l *Listed) number() {
	l.NextBefore, l.NextAfter = nil, nil
	if l.Count = len(l.Entries); l.Count > 0 {
		newest, oldest := l.Entries[0].CreationTime, l.Entries[l.Count-1].CreationTime
		l.NextBefore, l.NextAfter = &oldest, &newest
	}
}
