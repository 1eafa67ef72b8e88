package service

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"cairn/internal/mail"
	"cairn/internal/mail/reservations"
	"cairn/internal/store"
)

const (
	maxYouPatterns = 3 // patterns per line

	selectYou = `SELECT a.id, a.name, a.unread, a.ack_due FROM sessions s CROSS JOIN mail_sessions b ON b.session_key = s.key
CROSS JOIN mail_agents a ON a.id = b.agent_id
WHERE s.id = ? AND b.ended_ts IS NULL AND a.retired_ts IS NULL ORDER BY b.source = '` + mail.SourceEdit + `', b.bound_ts, a.id`
	selectYourPatterns = `SELECT r.path_pattern FROM mail_reservations r WHERE r.project_id = (SELECT project_id FROM mail_agents WHERE id = ?1)
AND r.agent_id = ?1 AND r.released_ts IS NULL AND r.expires_ts > ?2 ORDER BY r.id`
	// Patterns that the agent would still hold if the session's end had not released them.
	selectYourLosses = `SELECT r.path_pattern FROM mail_reservations r WHERE r.project_id = (SELECT project_id FROM mail_agents WHERE id = ?1)
AND r.agent_id = ?1 AND r.release_kind = '` + reservations.ReleasedSession + `' AND r.source <> '` + reservations.ReservedByEdit + `' AND r.expires_ts > ?2
AND NOT EXISTS (SELECT 1 FROM mail_reservations o WHERE o.project_id = r.project_id AND o.agent_id = ?1 AND o.path_pattern = r.path_pattern
    AND o.released_ts IS NULL AND o.expires_ts > ?2) ORDER BY r.id`
)

// Acting is an agent that a session acts as, with its mail counts and reservations.
type Acting struct {
	Name   string `json:"name"`
	Unread int    `json:"unread"`
	Due    int    `json:"to_acknowledge"`
	Holds  string `json:"holds,omitempty"`    // patterns of its active reservations, the first three by name
	Lost   string `json:"released,omitempty"` // patterns that were released because its session had ended
}

// Lines describes the agent for the context at a session's start (amendments §A.5, §B.8). It
// contains the name, the mail counts and, if there are any, the reservations.
func (a Acting) Lines() []string {
	lines := []string{fmt.Sprintf("you are %s: %d unread, %d to acknowledge", a.Name, a.Unread, a.Due)}
	if a.Holds != "" {
		lines = append(lines, a.Name+" holds "+a.Holds)
	}
	if a.Lost != "" {
		lines = append(lines, fmt.Sprintf("%s no longer holds %s: its session had ended", a.Name, a.Lost))
	}
	return lines
}

// Acting returns the agents that a session acts as, in any project. They are sorted by binding
// time, agents bound by edits last. The result is nil if the session is unknown or acts as no
// agent.
//
// Errors: those of reading.
func (o *Mail) Acting(ctx context.Context, session string) (all []Acting, err error) {
	if o.Store == nil {
		return nil, nil
	}
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var bound bool
		if err := tx.Get(ctx, []any{&bound}, reservations.SelectBondOpen, session); err != nil || !bound {
			return err
		}
		var ids []int64
		err := tx.Each(ctx, func(rows *sql.Rows) error {
			var id int64
			var a Acting
			err := rows.Scan(&id, &a.Name, &a.Unread, &a.Due)
			ids, all = append(ids, id), append(all, a)
			return err
		}, selectYou, session)
		if err != nil {
			return err
		}
		s := &mail.CallTx{Kernel: o.Kernel, Tx: tx, Now: mail.Now(tx)}
		if err := reservations.AdvanceClock(ctx, s); err != nil {
			return err
		}
		for i, id := range ids {
			if all[i].Holds, err = reservedPatterns(ctx, s, selectYourPatterns, id); err != nil {
				return err
			}
			if all[i].Lost, err = reservedPatterns(ctx, s, selectYourLosses, id); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// reservedPatterns returns the patterns that a query selects for an agent: the first three by name
// and the number of others.
func reservedPatterns(ctx context.Context, s *mail.CallTx, query string, agentID int64) (string, error) {
	var all []string
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var pattern string
		err := rows.Scan(&pattern)
		all = append(all, pattern)
		return err
	}, query, agentID, s.Now)
	if len(all) <= maxYouPatterns {
		return strings.Join(all, ", "), err
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxYouPatterns], ", "), len(all)-maxYouPatterns), err
}
