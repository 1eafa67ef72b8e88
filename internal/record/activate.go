package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"cairn/internal/project"
)

const (
	selectActivation = `SELECT base_version, ifnull(holders, ''), settled FROM activations
WHERE project_key = ? AND number = ? AND session_key = ?`

	selectOpenBodies = `SELECT ` + recordColumns + ` FROM records r INDEXED BY records_by_parent
WHERE r.project_key = ? AND r.parent = ? AND r.state = 'OPEN' ORDER BY r.number`
	selectOtherChildren = `SELECT ` + refColumns + ` FROM records r INDEXED BY records_by_parent
WHERE r.project_key = ? AND r.parent = ? AND r.state <> 'OPEN' ORDER BY r.number`
	selectGrandchildren = `SELECT ` + refColumns + ` FROM records p INDEXED BY records_by_parent
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
func (b *Service) Activate(ctx context.Context, a ActivateArgs) (out Activated, err error) {
	var known *Record // the version that the session had loaded, if it is not the newest
	err = b.write(ctx, a.Caller, func(ctx context.Context, s *callTx) error {
		out, known = Activated{}, nil
		r, err := s.mustFind(ctx, a.ID)
		if err != nil {
			return err
		}
		m, err := s.open(ctx, a.Caller)
		if err != nil {
			return err
		}
		if err := s.branch(ctx, m, r); err != nil {
			return err
		}
		before, err := s.activation(ctx, m, r.number)
		if err != nil {
			return err
		}
		out.SessionID, out.AlreadyLoaded = m.id, before.already
		if out.Context, err = s.bundle(ctx, r); err != nil {
			return err
		}
		s.warnStale(m, &out.Context)
		if err := s.load(ctx, m, r, before, a.Override, &out); err != nil {
			return err
		}
		if before.already && before.base < r.Version {
			old, err := s.version(ctx, r.ID, before.base)
			if err != nil {
				return err
			}
			known = &old
		}
		return nil
	})
	if err == nil && known != nil { // may take seconds, so it runs outside the transaction
		now := &out.Context.Target
		out.Changed = &Reloaded{known.Version, now.Version, diffOf(known, now)}
	}
	return out, err
}

// branch makes the open session that created a record the parent of a session that begins
// with the record.
func (s *callTx) branch(ctx context.Context, m *sessionState, r stored) error {
	if !m.openedHere || r.creator == m.key {
		return nil
	}
	var parent string
	err := s.tx.Get(ctx, []any{&parent}, selectCreator, r.creator, s.p.Key)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.event(ctx, m, Event{
		Type: SessionBranched, RecordID: r.ID, Parent: parent, Summary: fmt.Sprintf("branched from %s with %s", parent, r.ID),
	})
}

func (s *callTx) activation(ctx context.Context, m *sessionState, number int64) (l loaded, err error) {
	var holders string
	err = s.tx.Get(ctx, []any{&l.base, &holders, &l.settled}, selectActivation, s.p.Key, number, m.key)
	if errors.Is(err, sql.ErrNoRows) {
		return loaded{}, nil
	}
	l.already = true
	return l, errors.Join(err, unpack(holders, &l.holders))
}

// load logs the activation and warns about other holders. A repetition is only logged,
// because the activity shows an activation and a conflict once.
func (s *callTx) load(ctx context.Context, m *sessionState, r stored, before loaded, override bool, out *Activated) error {
	all, err := s.holders(ctx, r.number, m.id)
	if err != nil {
		return err
	}
	others, err := s.otherHolders(ctx, all, m)
	if err != nil {
		return err
	}
	var holders []string
	for _, h := range others {
		holders = append(holders, h.SessionID)
	}
	slices.Sort(holders)
	news := len(holders) > 0 && (!slices.Equal(holders, before.holders) || override && !before.settled)
	e := Event{
		Type: RecordActivation, RecordID: r.ID, Base: r.Version, Holders: holders, Settled: override || before.settled && !news,
		Summary: "activated " + r.ID + ": " + r.Title,
	}
	if before.already {
		e.Type, e.Summary = recordReloaded, ""
	}
	if err := s.event(ctx, m, e); err != nil || len(others) == 0 {
		return err
	}
	c := &Holder{SessionID: others[0].SessionID, LastActivity: others[0].LastActivity}
	c.Message = fmt.Sprintf("%s is active in session %s too", r.ID, c.SessionID)
	if len(others) > 1 {
		c.Message = fmt.Sprintf("%s is active in %d other sessions too, most recently in %s", r.ID, len(others), c.SessionID)
	}
	if news {
		n := Event{Type: ConflictDetected, RecordID: r.ID, Holders: holders, Summary: c.Message}
		if override {
			n.Type, n.Summary = ConflictResolved, c.Message+"; continuing anyway"
		}
		if err := s.event(ctx, m, n); err != nil {
			return err
		}
	}
	if !override {
		out.Conflict = c
		w := Warning{Type: "conflict", Message: c.Message + "; ask the user before changing it", Details: map[string]any{}}
		addIDs(w.Details, "sessions", holders)
		out.Context.Warnings = append([]Warning{w}, out.Context.Warnings...)
	}
	return nil
}

// bundle reads the context of a record.
func (s *callTx) bundle(ctx context.Context, r stored) (b Bundle, err error) {
	b.Target = r.Record
	if r.parent != 0 {
		parent, err := s.find(ctx, r.parent)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			b.Warnings = append(b.Warnings, Warning{
				Type: "orphan", Message: fmt.Sprintf("the parent of %s, %s, was purged", r.ID, formatID(r.parent)),
				Details: map[string]any{"parent_id": formatID(r.parent)},
			})
		case err != nil:
			return b, err
		default:
			b.Parent = &parent.Record
		}
	}
	if b.Children.Open, err = s.records(ctx, selectOpenBodies, s.p.Key, r.number); err != nil {
		return b, err
	}
	if b.Children.Other, err = s.refs(ctx, selectOtherChildren, s.p.Key, r.number); err != nil {
		return b, err
	}
	b.Grandchildren, err = s.refs(ctx, selectGrandchildren, s.p.Key, r.number)
	return b, err
}

// isStale reports whether a session is too far behind (records §2, staleness).
func (s *callTx) isStale(m *sessionState) bool { return s.tick-m.syncTick > int64(s.config.StaleAfter) }

func (s *callTx) warnStale(m *sessionState, b *Bundle) {
	if !s.isStale(m) {
		return
	}
	gap := s.tick - m.syncTick
	b.Warnings = append(b.Warnings, Warning{
		Type: "stale", Message: missed(gap) + "; call sync_session", Details: map[string]any{"tick_gap": gap},
	})
}

// missed returns how far behind a session is, in the words of records §2, also for 1.
func missed(gap int64) string { return fmt.Sprintf("%d writes occurred since your last sync", gap) }

// otherHolders returns the sessions other than the caller's and than ended sessions of
// its lineage, which it continues (amendments §B.7).
func (s *callTx) otherHolders(ctx context.Context, all []ActiveSession, m *sessionState) (others []ActiveSession, err error) {
	others = slices.DeleteFunc(all, func(h ActiveSession) bool { return h.SessionID == m.id })
	if len(others) == 0 {
		return nil, nil
	}
	own, _, err := project.FindSession(ctx, s.tx, m.id)
	if err != nil || !own.Lineage().IsKnown() {
		return others, err
	}
	var out []ActiveSession
	for _, h := range others {
		other, ok, err := project.FindSession(ctx, s.tx, h.SessionID)
		if err != nil {
			return nil, err
		}
		if !ok || other.Lineage() != own.Lineage() || !other.HasEnded() {
			out = append(out, h)
		}
	}
	return out, nil
}
