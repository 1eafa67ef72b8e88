package mail

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"cairn/internal/store"
)

const (
	maxYouPatterns = 3 // that a line lists

	selectYou = `SELECT a.id, a.name, a.unread, a.ack_due FROM sessions s CROSS JOIN mail_sessions b ON b.session_key = s.key
CROSS JOIN mail_agents a ON a.id = b.agent_id
WHERE s.id = ? AND b.ended_ts IS NULL AND a.retired_ts IS NULL ORDER BY b.source = '` + SourceEdit + `', b.bound_ts, a.id`
	selectYourPatterns = `SELECT r.path_pattern FROM mail_reservations r WHERE r.project_id = (SELECT project_id FROM mail_agents WHERE id = ?1)
AND r.agent_id = ?1 AND r.released_ts IS NULL AND r.expires_ts > ?2 ORDER BY r.id`
	// Those that would still be held if they had not been released.
	selectYourLosses = `SELECT r.path_pattern FROM mail_reservations r WHERE r.project_id = (SELECT project_id FROM mail_agents WHERE id = ?1)
AND r.agent_id = ?1 AND r.release_kind = '` + releasedSession + `' AND r.source <> '` + ReservedByEdit + `' AND r.expires_ts > ?2
AND NOT EXISTS (SELECT 1 FROM mail_reservations o WHERE o.project_id = r.project_id AND o.agent_id = ?1 AND o.path_pattern = r.path_pattern
    AND o.released_ts IS NULL AND o.expires_ts > ?2) ORDER BY r.id`
)

// You describes the agents as which a session acts, for the context at its start
// (amendments §A.5, §B.8): for each agent a line with its name and its mail, and a line
// with its reservations if it has any. It returns no lines for a session without agents.
//
// Errors: those of reading.
func (o *Office) You(ctx context.Context, session string) (lines []string, err error) {
	if o.store == nil {
		return nil, nil
	}
	err = o.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var bound bool
		if err := tx.Get(ctx, []any{&bound}, selectBondOpen, session); err != nil || !bound {
			return err
		}
		type agent struct {
			id          int64
			name        string
			unread, due int
		}
		var all []agent
		err := tx.Each(ctx, func(rows *sql.Rows) error {
			var a agent
			err := rows.Scan(&a.id, &a.name, &a.unread, &a.due)
			all = append(all, a)
			return err
		}, selectYou, session)
		if err != nil {
			return err
		}
		s := &scope{Office: o, tx: tx, now: now(tx)}
		if err := s.settle(ctx); err != nil {
			return err
		}
		for _, a := range all {
			lines = append(lines, fmt.Sprintf("you are %s: %d unread, %d to acknowledge", a.name, a.unread, a.due))
			for _, q := range [...]struct{ query, format string }{
				{selectYourPatterns, "%s holds %s"}, {selectYourLosses, "%s no longer holds %s: its session had ended"},
			} {
				patterns, err := s.patterns(ctx, q.query, a.id)
				if err != nil {
					return err
				}
				if patterns != "" {
					lines = append(lines, fmt.Sprintf(q.format, a.name, patterns))
				}
			}
		}
		return nil
	})
	return lines, err
}

// patterns lists the patterns that a query finds for an agent, the first three by name.
func (s *scope) patterns(ctx context.Context, query string, agentID int64) (string, error) {
	var all []string
	err := s.tx.Each(ctx, func(rows *sql.Rows) error {
		var pattern string
		err := rows.Scan(&pattern)
		all = append(all, pattern)
		return err
	}, query, agentID, s.now)
	if len(all) <= maxYouPatterns {
		return strings.Join(all, ", "), err
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxYouPatterns], ", "), len(all)-maxYouPatterns), err
}
