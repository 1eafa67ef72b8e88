package record

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/fault"
)

const selectOpenChildren = `SELECT ` + refColumns + ` FROM records r INDEXED BY records_by_parent
WHERE r.project_key = ? AND r.parent = ? AND r.state = 'OPEN' ORDER BY r.number`

// NextStates returns the states that a record may move to from a state (seed,
// transition).
func NextStates(from State) []State {
	switch from {
	case Open:
		return []State{Later, Resolved, Discarded}
	case Later:
		return []State{Open, Discarded}
	case Resolved, Discarded:
		return []State{Open}
	}
	return []State{}
}

// Transition moves an active record to another state (records §2, transition). It costs a
// tick. The children of a record that is no longer OPEN stay unchanged; the result lists
// the OPEN ones.
//
// Errors: CodeInvalid for a missing reason or resolved_by, CodeNotFound, also for
// resolved_by, CodeNotActivated, CodeInvalidTransition, also for the present state,
// CodeConflict if another session has changed the state since this session loaded the
// record; activating it again loads the present state.
func (b *Service) Transition(ctx context.Context, a TransitionArgs) (out Transitioned, err error) {
	if err := checkState("to_state", a.ToState); err != nil {
		return out, err
	}
	a.Reason = strings.TrimSpace(a.Reason)
	if err := checkText("reason", a.Reason, maxReason); err != nil {
		return out, err
	}
	err = b.write(ctx, a.Caller, func(ctx context.Context, s *callTx) error {
		r, m, base, err := s.active(ctx, a.Caller, a.ID)
		if err != nil {
			return err
		}
		if err := s.checkTransition(ctx, m, r, base, a.ToState); err != nil {
			return err
		}
		e := &Entry{Record: r.Record, Event: StateTransition, FromState: r.State, Reason: s.line(a.Reason, maxReason)}
		if err := s.moveState(ctx, e, r.number, &a); err != nil {
			return err
		}
		e.Version, e.Modified = r.Version+1, Time(s.tx.Now().UnixNano())
		if base == r.Version {
			e.Base = e.Version
		}
		out = Transitioned{Record: e.Record}
		if r.State == Open {
			children, err := s.refs(ctx, selectOpenChildren, s.p.Key, r.number)
			if err != nil {
				return err
			}
			if len(children) > 0 {
				out.CascadeWarning = &CascadeWarning{children, stillOpen(len(children), r.ID)}
			}
		}
		return s.entry(ctx, m, e)
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
func anyOf(states []State) string {
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

func (s *callTx) checkTransition(ctx context.Context, m *sessionState, r stored, base int, to State) error {
	by, err := s.stateChangedBy(ctx, m, r, base)
	if err != nil {
		return err
	}
	if by != "" {
		return fail(fault.Conflict, CodeConflict, fmt.Sprintf("session %s has moved %s to %s since this session loaded it", by, r.ID, r.State),
			"call activate with "+r.ID+" to see the present state, or sync_session, and decide again", map[string]any{"from_state": r.State, "by_session": by})
	}
	if list := NextStates(r.State); !slices.Contains(list, to) {
		return fail(fault.Conflict, CodeInvalidTransition, fmt.Sprintf("%s cannot go from %s to %s", r.ID, r.State, to),
			fmt.Sprintf("from %s a record can go to %s", r.State, anyOf(list)), map[string]any{"from": r.State, "to": to, "allowed": list})
	}
	return nil
}

// moveState sets what a transition changes.
func (s *callTx) moveState(ctx context.Context, e *Entry, number int64, a *TransitionArgs) (err error) {
	var reason any
	if e.Reason != "" && a.ToState != Open {
		reason = e.Reason
	}
	e.State, e.ResolvedBy = a.ToState, ""
	switch a.ToState {
	case Later, Discarded:
		if reason == nil {
			return invalid("reason", "a reason is required for "+string(a.ToState))
		}
	case Resolved:
		if a.ResolvedBy == "" {
			return invalid("resolved_by", "resolved_by, the record that resolves it, is required for RESOLVED")
		}
		by, err := s.mustExist(ctx, a.ResolvedBy)
		if err != nil {
			return err
		}
		if by == number {
			return invalid("resolved_by", "a record cannot resolve itself")
		}
		e.ResolvedBy = formatID(by)
	}
	e.Metadata, err = withReason(e.Metadata, reason)
	return err
}
