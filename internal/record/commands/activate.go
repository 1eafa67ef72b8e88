package commands

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/lookup"
)

const (
	selectActivation = `SELECT base_version, ifnull(holders, ''), settled FROM activations
WHERE project_key = ? AND number = ? AND session_key = ?`

	selectOpenBodies = `SELECT ` + record.RecordColumns + ` FROM records r INDEXED BY records_by_parent
WHERE r.project_key = ? AND r.parent = ? AND r.state = 'OPEN' ORDER BY r.number`
	selectOtherChildren = `SELECT ` + record.RefColumns + ` FROM records r INDEXED BY records_by_parent
WHERE r.project_key = ? AND r.parent = ? AND r.state <> 'OPEN' ORDER BY r.number`
	selectGrandchildren = `SELECT ` + record.RefColumns + ` FROM records p INDEXED BY records_by_parent
CROSS JOIN records r INDEXED BY records_by_parent ON r.project_key = p.project_key AND r.parent = p.number
WHERE p.project_key = ? AND p.parent = ? ORDER BY r.number`

	selectCreator = `SELECT s.id FROM sessions s JOIN record_sessions r ON r.session_key = s.key
WHERE s.key = ?1 AND r.project_key = ?2 AND r.closed = 0`
)

// loaded describes what a session knows of a record before it activates it.
type loaded struct {
	already bool
	base    int
	holders []string // other holders that it was warned about
	settled bool     // it continued despite the warning
}

// Activate loads a record and its context and makes it active in the caller's session,
// which it creates if necessary (records §2, activate, branching). It warns about other
// sessions that hold the record but does not block. Activating again reloads the record
// and moves the base version to the newest.
//
// Errors: CodeNotFound; CodeInvalid for an invalid session id.
func (b *Commands) Activate(ctx context.Context, a record.ActivateArgs) (out record.Activated, err error) {
	var known *record.Record // the version that the session had loaded, if it is not the newest
	err = b.Write(ctx, a.Caller, func(ctx context.Context, s *record.CallTx) error {
		out, known = record.Activated{}, nil
		r, err := s.MustFind(ctx, a.ID)
		if err != nil {
			return err
		}
		m, err := s.Open(ctx, a.Caller)
		if err != nil {
			return err
		}
		if err := branch(ctx, s, m, r); err != nil {
			return err
		}
		before, err := activation(ctx, s, m, r.Number)
		if err != nil {
			return err
		}
		out.SessionID, out.AlreadyLoaded = m.ID, before.already
		if out.Context, err = bundle(ctx, s, r); err != nil {
			return err
		}
		warnStale(s, m, &out.Context)
		if err := load(ctx, s, m, r, before, a.Override, &out); err != nil {
			return err
		}
		if before.already && before.base < r.Version {
			old, err := s.Version(ctx, r.ID, before.base)
			if err != nil {
				return err
			}
			known = &old
		}
		return nil
	})
	if err == nil && known != nil { // may take seconds, so it runs outside the transaction
		now := &out.Context.Target
		out.Changed = &record.Reloaded{FromVersion: known.Version, ToVersion: now.Version, Diff: lookup.DiffOf(known, now)}
	}
	return out, err
}

// branch makes the open session that created a record the parent of a session that begins
// with the record.
func branch(ctx context.Context, s *record.CallTx, m *record.Session, r record.Stored) error {
	if !m.OpenedHere || r.Creator == m.Key {
		return nil
	}
	var parent string
	err := s.Tx.Get(ctx, []any{&parent}, selectCreator, r.Creator, s.Project.Key)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.PutEvent(ctx, m, record.Event{
		Type: record.SessionBranched, RecordID: r.ID, Parent: parent, Summary: fmt.Sprintf("branched from %s with %s", parent, r.ID),
	})
}

func activation(ctx context.Context, s *record.CallTx, m *record.Session, number int64) (l loaded, err error) {
	var holders string
	err = s.Tx.Get(ctx, []any{&l.base, &holders, &l.settled}, selectActivation, s.Project.Key, number, m.Key)
	if errors.Is(err, sql.ErrNoRows) {
		return loaded{}, nil
	}
	l.already = true
	return l, errors.Join(err, record.UnpackList(holders, &l.holders))
}

// load logs the activation and warns about other holders. A repetition is only logged,
// because the activity shows an activation and a conflict once.
func load(ctx context.Context, s *record.CallTx, m *record.Session, r record.Stored, before loaded, override bool, out *record.Activated) error {
	all, err := lookup.Holders(ctx, s, r.Number, m.ID)
	if err != nil {
		return err
	}
	others, err := otherHolders(ctx, s, all, m)
	if err != nil {
		return err
	}
	var holders []string
	for _, h := range others {
		holders = append(holders, h.SessionID)
	}
	slices.Sort(holders)
	news := len(holders) > 0 && (!slices.Equal(holders, before.holders) || override && !before.settled)
	e := record.Event{
		Type: record.RecordActivation, RecordID: r.ID, Base: r.Version, Holders: holders, Settled: override || before.settled && !news,
		Summary: "activated " + r.ID + ": " + r.Title,
	}
	if before.already {
		e.Type, e.Summary = record.RecordReloaded, ""
	}
	if err := s.PutEvent(ctx, m, e); err != nil || len(others) == 0 {
		return err
	}
	c := &record.Holder{SessionID: others[0].SessionID, LastActivity: others[0].LastActivity}
	c.Message = fmt.Sprintf("%s is active in session %s too", r.ID, c.SessionID)
	if len(others) > 1 {
		c.Message = fmt.Sprintf("%s is active in %d other sessions too, most recently in %s", r.ID, len(others), c.SessionID)
	}
	if news {
		n := record.Event{Type: record.ConflictDetected, RecordID: r.ID, Holders: holders, Summary: c.Message}
		if override {
			n.Type, n.Summary = record.ConflictResolved, c.Message+"; continuing anyway"
		}
		if err := s.PutEvent(ctx, m, n); err != nil {
			return err
		}
	}
	if !override {
		out.Conflict = c
		w := record.Warning{Type: "conflict", Message: c.Message + "; ask the user before changing it", Details: map[string]any{}}
		lookup.AddIDs(w.Details, "sessions", holders)
		out.Context.Warnings = append([]record.Warning{w}, out.Context.Warnings...)
	}
	return nil
}

// bundle reads the context of a record.
func bundle(ctx context.Context, s *record.CallTx, r record.Stored) (b record.Bundle, err error) {
	b.Target = r.Record
	if r.Parent != 0 {
		parent, err := s.Find(ctx, r.Parent)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			b.Warnings = append(b.Warnings, record.Warning{
				Type: "orphan", Message: fmt.Sprintf("the parent of %s, %s, was purged", r.ID, record.FormatID(r.Parent)),
				Details: map[string]any{"parent_id": record.FormatID(r.Parent)},
			})
		case err != nil:
			return b, err
		default:
			b.Parent = &parent.Record
		}
	}
	if b.Children.Open, err = s.Records(ctx, selectOpenBodies, s.Project.Key, r.Number); err != nil {
		return b, err
	}
	if b.Children.Other, err = s.Refs(ctx, selectOtherChildren, s.Project.Key, r.Number); err != nil {
		return b, err
	}
	b.Grandchildren, err = s.Refs(ctx, selectGrandchildren, s.Project.Key, r.Number)
	return b, err
}

// isStale reports whether a session is too far behind (records §2, staleness).
func isStale(s *record.CallTx, m *record.Session) bool {
	return s.Tick-m.SyncTick > int64(s.Config.StaleAfter)
}

func warnStale(s *record.CallTx, m *record.Session, b *record.Bundle) {
	if !isStale(s, m) {
		return
	}
	gap := s.Tick - m.SyncTick
	b.Warnings = append(b.Warnings, record.Warning{
		Type: "stale", Message: missed(gap) + "; call sync_session", Details: map[string]any{"tick_gap": gap},
	})
}

// missed returns how far behind a session is, in the words of records §2, also for 1.
func missed(gap int64) string { return fmt.Sprintf("%d writes occurred since your last sync", gap) }

// otherHolders returns the sessions other than the caller's and than ended sessions of
// its lineage, which it continues (amendments §B.7).
func otherHolders(ctx context.Context, s *record.CallTx, all []record.ActiveSession, m *record.Session) (others []record.ActiveSession, err error) {
	others = slices.DeleteFunc(all, func(h record.ActiveSession) bool { return h.SessionID == m.ID })
	if len(others) == 0 {
		return nil, nil
	}
	own, _, err := project.FindSession(ctx, s.Tx, m.ID)
	if err != nil || !own.Lineage().IsKnown() {
		return others, err
	}
	var out []record.ActiveSession
	for _, h := range others {
		other, ok, err := project.FindSession(ctx, s.Tx, h.SessionID)
		if err != nil {
			return nil, err
		}
		if !ok || other.Lineage() != own.Lineage() || !other.HasEnded() {
			out = append(out, h)
		}
	}
	return out, nil
}
