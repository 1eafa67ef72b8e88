package commands

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"cairn/internal/record"
)

const (
	maxChanges     = 500     // in one sync
	maxChangeBytes = 8 << 20 // bytes of its changes in JSON, unless the first one is larger

	selectChanges = `SELECT t.tick, s.text, c.doc, ` + record.PreviousDoc + `
FROM record_ticks t CROSS JOIN changes c ON c.seq = t.seq CROSS JOIN symbols k ON k.id = c.kind CROSS JOIN symbols s ON s.id = c.session
WHERE t.project_key = ?1 AND t.tick > ?2 AND k.text = '` + record.KindRecord + `' AND s.text <> ?3 AND c.doc IS NOT NULL
ORDER BY t.tick LIMIT +?4`
)

// Sync returns other sessions' changes of the project's records since the session's last
// sync, oldest first (records §2, sync_session). It moves the session's clock to the
// project's. After 500 changes or 8 MiB it stops and moves the clock to the last change,
// so the next sync continues there.
//
// Errors: CodeSessionNotFound for a session that has not opened a record of the
// project, or was closed.
func (b *Commands) Sync(ctx context.Context, a record.SyncArgs) (out record.SyncResult, err error) {
	err = b.Write(ctx, a.Caller, func(ctx context.Context, s *record.CallTx) error {
		m, err := openMember(ctx, s, a.Caller)
		if err != nil {
			return err
		}
		out = record.SyncResult{
			ProjectTick: s.Tick, SessionTickBefore: m.SyncTick, TickGap: s.Tick - m.SyncTick, Changes: []record.Change{}, SessionStatus: "active",
		}
		if isStale(s, m) {
			out.SessionStatus = "stale"
		}
		if out.TickGap > 0 {
			out.Warning = missed(out.TickGap)
		}
		if err := addChanges(ctx, s, m, &out); err != nil {
			return err
		}
		m.SyncTick = s.Tick
		if out.Truncated {
			m.SyncTick = out.Changes[len(out.Changes)-1].AtTick
		}
		return s.PutEvent(ctx, m, record.Event{Type: record.SessionSynced})
	})
	return out, err
}

// openMember returns the caller's session if it is open.
func openMember(ctx context.Context, s *record.CallTx, c record.Caller) (*record.Session, error) {
	m, err := s.Member(ctx, c)
	if err == nil && !m.IsOpen() {
		err = sessionNotFound(m.ID)
	}
	return m, err
}

// addChanges adds the changes of a sync, and whether there are more.
func addChanges(ctx context.Context, s *record.CallTx, m *record.Session, out *record.SyncResult) error {
	newest := map[string]*record.Entry{} // newest version read so far, by record
	size := 0
	return s.Log.Each(ctx, func(rows *sql.Rows) error {
		if out.Truncated = out.Truncated || len(out.Changes) == maxChanges; out.Truncated {
			return nil
		}
		var c record.Change
		var doc, before string
		if err := rows.Scan(&c.AtTick, &c.BySession, &doc, &before); err != nil {
			return err
		}
		e, err := record.DecodeEntry([]byte(doc))
		if err != nil {
			return err
		}
		old := newest[e.ID]
		if old == nil || old.Version != e.Version-1 {
			old = &record.Entry{}
			if before != "" {
				if old, err = record.DecodeEntry([]byte(before)); err != nil {
					return err
				}
			}
		}
		newest[e.ID] = e
		describe(&c, old, e)
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
	}, selectChanges, s.Project.Key, m.SyncTick, m.ID, maxChanges+1)
}

// describe adds what a version changed.
func describe(c *record.Change, old, e *record.Entry) {
	c.RecordID = e.ID
	switch e.Event {
	case record.RecordCreated:
		c.ChangeType = "created"
		c.NewValue = record.Ref{
			ID: e.ID, Type: e.Type, Title: e.Title, Summary: e.Summary, State: e.State, ParentID: e.ParentID, Cited: e.Cited,
		}
		return
	case record.ConflictDetected:
		c.ChangeType, c.OldValue, c.NewValue = "conflict", map[string]any{"title": e.Title, "body": e.Body}, e.Other
		return
	case record.StateTransition:
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
