package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
)

const (
	maxChanges     = 500     // in one sync
	maxChangeBytes = 8 << 20 // bytes of its changes in JSON, unless the first one is larger

	selectChanges = `SELECT t.tick, s.text, c.doc, ` + previousDoc + `
FROM record_ticks t CROSS JOIN changes c ON c.seq = t.seq CROSS JOIN symbols k ON k.id = c.kind CROSS JOIN symbols s ON s.id = c.session
WHERE t.project_key = ?1 AND t.tick > ?2 AND k.text = '` + KindRecord + `' AND s.text <> ?3 AND c.doc IS NOT NULL
ORDER BY t.tick LIMIT +?4`
)

// Sync returns other sessions' changes of the project's records since the session's last
// sync, oldest first (records §2, sync_session). It moves the session's clock to the
// project's. After 500 changes or 8 MiB it stops and moves the clock to the last change,
// so the next sync continues there.
//
// Errors: CodeSessionNotFound for a session that has not opened a record of the
// project, or was closed.
func (b *Service) Sync(ctx context.Context, a SyncArgs) (out SyncResult, err error) {
	err = b.write(ctx, a.Caller, func(ctx context.Context, s *callTx) error {
		m, err := s.openMember(ctx, a.Caller)
		if err != nil {
			return err
		}
		out = SyncResult{
			ProjectTick: s.tick, SessionTickBefore: m.syncTick, TickGap: s.tick - m.syncTick, Changes: []Change{}, SessionStatus: "active",
		}
		if s.isStale(m) {
			out.SessionStatus = "stale"
		}
		if out.TickGap > 0 {
			out.Warning = missed(out.TickGap)
		}
		if err := s.changes(ctx, m, &out); err != nil {
			return err
		}
		m.syncTick = s.tick
		if out.Truncated {
			m.syncTick = out.Changes[len(out.Changes)-1].AtTick
		}
		return s.event(ctx, m, Event{Type: sessionSynced})
	})
	return out, err
}

// openMember returns the caller's session if it is open.
func (s *callTx) openMember(ctx context.Context, c Caller) (*sessionState, error) {
	m, err := s.member(ctx, c)
	if err == nil && !m.isOpen() {
		err = sessionNotFound(m.id)
	}
	return m, err
}

// changes adds the changes of a sync, and whether there are more.
func (s *callTx) changes(ctx context.Context, m *sessionState, out *SyncResult) error {
	newest := map[string]*Entry{} // newest version read so far, by record
	size := 0
	return s.log.Each(ctx, func(rows *sql.Rows) error {
		if out.Truncated = out.Truncated || len(out.Changes) == maxChanges; out.Truncated {
			return nil
		}
		var c Change
		var doc, before string
		if err := rows.Scan(&c.AtTick, &c.BySession, &doc, &before); err != nil {
			return err
		}
		e, err := decodeEntry([]byte(doc))
		if err != nil {
			return err
		}
		old := newest[e.ID]
		if old == nil || old.Version != e.Version-1 {
			old = &Entry{}
			if before != "" {
				if old, err = decodeEntry([]byte(before)); err != nil {
					return err
				}
			}
		}
		newest[e.ID] = e
		c.describe(old, e)
		told, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if size += len(told); size > maxChangeBytes && len(out.Changes) > 0 {
			out.Truncated = true
			return nil
		}
		out.Changes = append(out.Changes, c)
		return nil
	}, selectChanges, s.p.Key, m.syncTick, m.id, maxChanges+1)
}

// describe adds what a version changed.
func (c *Change) describe(old, e *Entry) {
	c.RecordID = e.ID
	switch e.Event {
	case RecordCreated:
		c.ChangeType = "created"
		c.NewValue = Ref{
			ID: e.ID, Type: e.Type, Title: e.Title, Summary: e.Summary, State: e.State, ParentID: e.ParentID, Cited: e.Cited,
		}
		return
	case ConflictDetected:
		c.ChangeType, c.OldValue, c.NewValue = "conflict", map[string]any{"title": e.Title, "body": e.Body}, e.Other
		return
	case StateTransition:
		c.ChangeType = "state_changed"
	default:
		c.ChangeType = "modified"
	}
	before, after := map[string]any{}, map[string]any{}
	differ := func(name string, a, b any, same bool) {
		if !same {
			before[name], after[name] = a, b
		}
	}
	differ("title", old.Title, e.Title, old.Title == e.Title)
	differ("summary", old.Summary, e.Summary, old.Summary == e.Summary)
	differ("body", old.Body, e.Body, old.Body == e.Body)
	differ("state", old.State, e.State, old.State == e.State)
	differ("resolved_by", textOrNil(old.ResolvedBy), textOrNil(e.ResolvedBy), old.ResolvedBy == e.ResolvedBy)
	differ("related", listOf(old.Related), listOf(e.Related), slices.Equal(old.Related, e.Related))
	differ("metadata", objectOf(old.Metadata), objectOf(e.Metadata), string(old.Metadata) == string(e.Metadata))
	c.OldValue, c.NewValue = before, after
}

func textOrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func listOf(ids []string) []string { return append([]string{}, ids...) }

func objectOf(data json.RawMessage) json.RawMessage {
	if len(data) == 0 {
		return json.RawMessage("{}")
	}
	return data
}
