package mail

import (
	"context"
	"database/sql"
	"slices"

	"cairn/internal/project"
	"cairn/internal/store"
)

// agentSessions holds the sessions of harnesses that act, or acted, as an agent. Sessions
// that no harness reported are left out: their end is unknown.
type agentSessions struct {
	acting []actingSession // those whose bond has not ended
	newest project.Session // the one seen last; Key 0 without one
	left   Time            // when the last bond or session ended, 0 if none has
}

type actingSession struct {
	project.Session
	source string // of its bond
}

const selectAgentSessions = `SELECT b.session_key, b.source, ifnull(b.ended_ts, 0) FROM mail_sessions b CROSS JOIN sessions s ON s.key = b.session_key
WHERE b.agent_id = ? AND s.harness IS NOT NULL ORDER BY b.ended_ts IS NOT NULL, s.last_seen DESC LIMIT +100`

// sessionsOfAgent reads the sessions of an agent, at most 100.
func sessionsOfAgent(ctx context.Context, tx *store.Tx, agentID int64) (t agentSessions, err error) {
	var keys []int64
	sources := map[int64]string{} // of the bonds that have not ended
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var key int64
		var source string
		var ended Time
		err := rows.Scan(&key, &source, &ended)
		if keys = append(keys, key); ended == 0 {
			sources[key] = source
		}
		t.left = max(t.left, ended)
		return err
	}, selectAgentSessions, agentID)
	if err != nil {
		return t, err
	}
	all, err := project.SessionsByKey(ctx, tx, keys)
	for _, s := range all {
		if s.LastSeen > t.newest.LastSeen || s.LastSeen == t.newest.LastSeen && s.Key > t.newest.Key {
			t.newest = s
		}
		if source, ok := sources[s.Key]; ok {
			t.acting = append(t.acting, actingSession{s, source})
		}
		t.left = max(t.left, Time(s.ClosedAt*1e9))
	}
	return t, err
}

// isLive reports whether a session other than one acts as the agent and goes on.
func (t *agentSessions) isLive(except int64) bool {
	return slices.ContainsFunc(t.acting, func(a actingSession) bool { return a.Key != except && !a.HasEnded() })
}

// unclosed are the keys of ended sessions whose end is not recorded: their harness was
// killed.
func (t *agentSessions) unclosed() (keys []int64) {
	for _, a := range t.acting {
		if a.ClosedAt == 0 && a.HasEnded() {
			keys = append(keys, a.Key)
		}
	}
	return keys
}

// isOrphaned reports whether the sessions of the agent ended longer than the grace period
// ago, and the agent has done nothing since.
func (o *Service) isOrphaned(t *agentSessions, active, now Time) bool {
	if t.newest.Key == 0 || t.isLive(0) || len(t.unclosed()) > 0 {
		return false
	}
	return now-max(t.left, active) >= Time(o.config.OrphanGrace)
}

// isFormer reports whether the agent is what a session was before: it belongs to the
// lineage of the session, and no session acts as it but the given one, which has taken it
// over and not used it.
func (t *agentSessions) isFormer(s *project.Session) bool {
	l := s.Lineage()
	if !l.IsKnown() || t.newest.Key == 0 || t.newest.Lineage() != l || t.isLive(s.Key) {
		return false
	}
	return !slices.ContainsFunc(t.acting, func(a actingSession) bool { return a.Key == s.Key && a.source != SourceLineage })
}
