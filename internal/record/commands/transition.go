package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/record"
)

const selectOpenChildren = `SELECT ` + record.RefColumns + ` FROM records r INDEXED BY records_by_parent
WHERE r.project_key = ? AND r.parent = ? AND r.state = 'OPEN' ORDER BY r.number`

// NextStates returns the states that a record may move to from a state (seed,
// transition).
func NextStates(from record.State) []record.State {
	switch from {
	case record.Open:
		return []record.State{record.Later, record.Resolved, record.Discarded}
	case record.Later:
		return []record.State{record.Open, record.Discarded}
	case record.Resolved, record.Discarded:
		return []record.State{record.Open}
	}
	return []record.State{}
}

// Transition moves an active record to another state (records §2, transition). It costs a
// tick. The children of a record that is no longer OPEN stay unchanged; the result lists
// the OPEN ones.
//
// Errors: CodeInvalid for a missing reason or resolved_by, CodeNotFound, also for
// resolved_by, CodeNotActivated, CodeInvalidTransition, also for the present state,
// CodeConflict if another session has changed the state since this session loaded the
// record; activating it again loads the present state.
func (b *Commands) Transition(ctx context.Context, a record.TransitionArgs) (out record.Transitioned, err error) {
	if err := record.CheckState("to_state", a.ToState); err != nil {
		return out, err
	}
	a.Reason = strings.TrimSpace(a.Reason)
	if err := checkText("reason", a.Reason, maxReason); err != nil {
		return out, err
	}
	err = b.Write(ctx, a.Caller, func(ctx context.Context, s *record.CallTx) error {
		r, m, base, err := activeRecord(ctx, s, a.Caller, a.ID)
		if err != nil {
			return err
		}
		if err := checkTransition(ctx, s, m, r, base, a.ToState); err != nil {
			return err
		}
		e := &record.Entry{Record: r.Record, Event: record.StateTransition, FromState: r.State, Reason: s.Line(a.Reason, maxReason)}
		if err := moveState(ctx, s, e, r.Number, &a); err != nil {
			return err
		}
		e.Version, e.Modified = r.Version+1, record.Time(s.Tx.Now().UnixNano())
		if base == r.Version {
			e.Base = e.Version
		}
		out = record.Transitioned{Record: e.Record}
		if r.State == record.Open {
			children, err := s.Refs(ctx, selectOpenChildren, s.Project.Key, r.Number)
			if err != nil {
				return err
			}
			if len(children) > 0 {
				out.CascadeWarning = &record.CascadeWarning{OpenChildren: children, Message: stillOpen(len(children), r.ID)}
			}
		}
		return s.PutEntry(ctx, m, e)
	})
	return out, err
}

func stillOpen(children int, of string) string {
	if children == 1 {
		return "1 child of " + of + " is still OPEN; it stays so"
	}
	return fmt.Sprintf("%d children of %s are still OPEN; they stay so", children, of)
}

// anyOf lists states for a sentence: A, B or C.
func anyOf(states []record.State) string {
	var text strings.Builder
	for i, s := range states {
		switch {
		case i > 0 && i == len(states)-1:
			text.WriteString(" or ")
		case i > 0:
			text.WriteString(", ")
		}
		text.WriteString(string(s))
	}
	return text.String()
}

func checkTransition(ctx context.Context, s *record.CallTx, m *record.Session, r record.Stored, base int, to record.State) error {
	by, err := s.StateChangedBy(ctx, m, r, base)
	if err != nil {
		return err
	}
	if by != "" {
		return record.Fail(fault.Conflict, record.CodeConflict, fmt.Sprintf("session %s has moved %s to %s since this session loaded it", by, r.ID, r.State),
			"call activate with "+r.ID+" to see the present state, or sync_session, and decide again", map[string]any{"from_state": r.State, "by_session": by})
	}
	if list := NextStates(r.State); !slices.Contains(list, to) {
		return record.Fail(fault.Conflict, record.CodeInvalidTransition, fmt.Sprintf("%s cannot go from %s to %s", r.ID, r.State, to),
			fmt.Sprintf("from %s a record can go to %s", r.State, anyOf(list)), map[string]any{"from": r.State, "to": to, "allowed": list})
	}
	return nil
}

// moveState sets what a transition changes.
func moveState(ctx context.Context, s *record.CallTx, e *record.Entry, number int64, a *record.TransitionArgs) (err error) {
	var reason any
	if e.Reason != "" && a.ToState != record.Open {
		reason = e.Reason
	}
	e.State, e.ResolvedBy = a.ToState, ""
	switch a.ToState {
	case record.Later, record.Discarded:
		if reason == nil {
			return record.Invalid("reason", "a reason is required for "+string(a.ToState))
		}
	case record.Resolved:
		if a.ResolvedBy == "" {
			return record.Invalid("resolved_by", "resolved_by, the record that resolves it, is required for RESOLVED")
		}
		by, err := s.MustExist(ctx, a.ResolvedBy)
		if err != nil {
			return err
		}
		if by == number {
			return record.Invalid("resolved_by", "a record cannot resolve itself")
		}
		e.ResolvedBy = record.FormatID(by)
	}
	e.Metadata, err = withReason(e.Metadata, reason)
	return err
}
