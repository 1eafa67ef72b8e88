package reservations

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"cairn/internal/mail"
	"cairn/internal/pathpattern"
)

// activeReservation is an active reservation with details of its holder.
type activeReservation struct {
	*mail.Reservation
	pattern          pathpattern.Pattern
	branch, worktree *string
	lastActive       mail.Time
	sessionKey       int64 // the session that created it; 0 for none
}

const heldColumns = `r.id, r.uid, a.name, r.path_pattern, r.exclusive, r.advisory, r.source, r.reason, r.created_ts, r.expires_ts,
r.renewals, ifnull(r.released_ts, 0), r.agent_id, r.project_id, a.branch, a.worktree, a.last_active_ts,
ifnull(r.session_key, 0), r.release_kind `

const (
	heldWhere = `r.project_id = ?1 AND r.released_ts IS NULL AND r.expires_ts > ?2 `

	// The active reservations whose literal prefix is one of the given prefixes.
	selectHeldAt = `SELECT ` + heldColumns + `FROM json_each(?3) j CROSS JOIN mail_reservations r CROSS JOIN mail_agents a
ON a.id = r.agent_id WHERE ` + heldWhere + `AND r.lit_prefix = j.value`
	// The active reservations whose literal prefix is inside one of the given ranges.
	selectHeldBelow = `SELECT ` + heldColumns + `FROM json_each(?3) j CROSS JOIN mail_reservations r CROSS JOIN mail_agents a
ON a.id = r.agent_id WHERE ` + heldWhere + `AND r.lit_prefix > j.value ->> 0 AND r.lit_prefix < j.value ->> 1`
)

// endOfText sorts after every path.
const endOfText = "\U0010FFFF\U0010FFFF"

// OverlapCandidates lists the active reservations that may overlap the given patterns, each once.
// It selects by literal prefix (pathpattern.Pattern.Prefixes), so the caller must still check each
// candidate.
func OverlapCandidates(ctx context.Context, s *mail.CallTx, all []RequestedPath) ([]*activeReservation, error) {
	seen, prefixes, ranges := map[string]bool{}, []string{}, [][2]string{}
	for _, w := range all {
		prefix := w.Pattern.LiteralPrefix()
		chain := w.Pattern.Prefixes()
		for _, p := range chain {
			if !seen[p] {
				seen[p] = true
				prefixes = append(prefixes, p)
			}
		}
		if below := "below " + prefix; !seen[below] {
			seen[below] = true
			if prefix == "" {
				ranges = append(ranges, [2]string{"", endOfText})
			} else {
				ranges = append(ranges, [2]string{prefix + "/", prefix + "0"})
			}
		}
	}
	found := map[int64]bool{}
	var out []*activeReservation
	for _, q := range [...]struct {
		query string
		list  any
	}{{selectHeldAt, prefixes}, {selectHeldBelow, ranges}} {
		list, err := json.Marshal(q.list)
		if err != nil {
			return nil, err
		}
		err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
			h, err := scanHeld(s, rows)
			if err == nil && !found[h.ID] {
				found[h.ID] = true
				out = append(out, h)
			}
			return err
		}, q.query, s.Project.ID, s.Now, string(list))
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func scanHeld(s *mail.CallTx, rows *sql.Rows) (*activeReservation, error) {
	h := &activeReservation{Reservation: &mail.Reservation{ProjectUID: s.Project.UID}}
	return h, rows.Scan(&h.ID, &h.UID, &h.Agent, &h.PathPattern, &h.Exclusive, &h.Advisory, &h.Source, &h.Reason, &h.Created, &h.Expires,
		&h.Renewals, &h.Released, &h.AgentID, &h.ProjectID, &h.branch, &h.worktree, &h.lastActive, &h.sessionKey, &h.ReleaseKind)
}

// overlaps reports whether a reservation and a pattern have a path in common.
func (h *activeReservation) overlaps(p pathpattern.Pattern, foldCase bool) bool {
	if h.pattern.String() == "" {
		h.pattern = StoredPattern(h.PathPattern, foldCase)
	}
	return pathpattern.Overlap(h.pattern, p)
}

// StoredPattern parses a stored pattern. A pattern that today's limits no longer allow covers
// nothing.
func StoredPattern(text string, foldCase bool) pathpattern.Pattern {
	p, err := pathpattern.Parse(text, pathpattern.Options{FoldCase: foldCase})
	if err != nil {
		return pathpattern.Pattern{}
	}
	return p
}

// AdvanceClock sets the call's time to the later of the clock and the last write. A clock that was
// set back can then neither revive expired reservations nor grant them twice (mail §14).
func AdvanceClock(ctx context.Context, s *mail.CallTx) error {
	last, err := s.Tx.LastWrite(ctx)
	s.Now = max(s.Now, mail.TimeOf(time.Unix(0, last)))
	return err
}
