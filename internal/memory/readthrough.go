package memory

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// HubQuery is a query to a hub for entries of a memory that were purged here (memories §10.7).
type HubQuery struct {
	Memory        string // the hub's id
	Entry         string // the id of a single entry; the other fields are for lists
	Limit         int
	Before, After Time     // 0 for none
	Tags          []string // KEY:VALUE
	SessionID     string
}

// Unreachable is the Reason of a list that is truncated because the hub could not be asked.
const Unreachable = "hub_unreachable"

// isPurged reports whether entries of the scope's memory are only at the hub, and can be read
// there.
func (s *callTx) isPurged() bool { return s.m.purgedNS > 0 && s.u.hub() && s.config.ReadThrough != nil }

// hubQuery returns a query about the scope's memory.
func (s *callTx) hubQuery() *HubQuery {
	q := &HubQuery{Memory: s.m.MemoryID}
	if s.m.remoteID != "" {
		q.Memory = s.m.remoteID
	}
	return q
}

// readThrough returns the hub's entries for a query, as entries of the memory here. Errors:
// CodeNotFound, CodeHubUnavailable.
func (b *Service) readThrough(ctx context.Context, in memoryRow, owner string, q *HubQuery) ([]Entry, error) {
	docs, err := b.config.ReadThrough(ctx, owner, *q)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(docs))
	for _, text := range docs {
		var d entryDoc
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, hubUnavailable()
		}
		e := d.in(in.Memory, owner)
		if e.Tags == nil {
			e.Tags = map[string]string{}
		}
		out = append(out, e)
	}
	return out, nil
}

// through returns the query for the purged entries that a list may lack; nil if the list is
// complete.
func (s *callTx) through(out *Listed, low, high Time, session string, tags []string) *HubQuery {
	purged := Time(s.m.purgedNS)
	up := low != math.MinInt64
	switch {
	case !s.isPurged(), up && low >= purged, !up && out.Count == out.AppliedLimit && out.Entries[out.Count-1].CreationTime >= purged:
		return nil
	}
	q := s.hubQuery()
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
func (b *Service) merge(ctx context.Context, in memoryRow, owner string, q *HubQuery, out *Listed) error {
	more, err := b.readThrough(ctx, in, owner, q)
	if fault.HasCode(err, CodeHubUnavailable) {
		out.Truncated, out.Reason = true, Unreachable
		out.Entries = slices.DeleteFunc(out.Entries, func(e Entry) bool {
			return (q.After == 0) && e.CreationTime < Time(in.purgedNS) // entries between them may be missing
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
	more = slices.DeleteFunc(more, func(e Entry) bool { return have[e.EntryID] })
	if more, err = b.visible(ctx, in, owner, more); err != nil {
		return err
	}
	out.Entries = append(out.Entries, more...)
	slices.SortFunc(out.Entries, func(a, b Entry) int { return int(max(-1, min(1, int64(b.CreationTime-a.CreationTime)))) })
	if n := len(out.Entries); n > out.AppliedLimit && q.After != 0 {
		out.Entries = out.Entries[n-out.AppliedLimit:]
	} else if n > out.AppliedLimit {
		out.Entries = out.Entries[:out.AppliedLimit]
	}
	out.number()
	return nil
}

// visible removes entries that were deleted, or are being deleted, here.
func (b *Service) visible(ctx context.Context, in memoryRow, owner string, all []Entry) (out []Entry, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s := &callTx{Service: b, tx: tx, u: user{ID: owner}, m: in}
		out = nil
		for _, e := range all {
			deleted, err := s.wasDeleted(ctx, e.EntryID)
			if err != nil {
				return err
			}
			row, found, err := s.entry(ctx, selectByID, e.EntryID)
			if err != nil {
				return err
			}
			if !deleted && (!found || row.deleting == 0) {
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
