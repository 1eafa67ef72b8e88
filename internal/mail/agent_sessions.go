package mail

import (
	"context"
	"database/sql"
	"slices"

	"cairn/internal/project"
	"cairn/internal/store"
)

// AgentSessions holds the sessions of harnesses that act, or acted, as an agent. It omits
// sessions that no harness reported, since their end is unknown.
type AgentSessions struct {
	Acting []ActingSession // those whose binding has not ended
	Newest project.Session // the session seen last; Key 0 if there is none
	left   Time            // when the last binding or session ended, 0 if none has
}

type ActingSession struct {
	project.Session
	source string // of its binding
}

const selectAgentSessions = `SELECT b.session_key, b.source, ifnull(b.ended_ts, 0) FROM mail_sessions b CROSS JOIN sessions s ON s.key = b.session_key
WHERE b.agent_id = ? AND s.harness IS NOT NULL ORDER BY b.ended_ts IS NOT NULL, s.last_seen DESC LIMIT +100`

// SessionsOfAgent returns the sessions of an agent, at most 100.
func SessionsOfAgent(ctx context.Context, tx *store.Tx, agentID int64) (t AgentSessions, err error) {
	var keys []int64
	sources := map[int64]string{} // of the bindings that have not ended
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
		if s.LastSeen > t.Newest.LastSeen || s.LastSeen == t.Newest.LastSeen && s.Key > t.Newest.Key {
			t.Newest = s
		}
		if source, ok := sources[s.Key]; ok {
			t.Acting = append(t.Acting, ActingSession{s, source})
		}
		t.left = max(t.left, Time(s.ClosedAt*1e9))
	}
	return t, err
}

// IsLive reports whether a session other than except acts as the agent and has not ended.
func (t *AgentSessions) IsLive(except int64) bool {
	return slices.ContainsFunc(t.Acting, func(a ActingSession) bool { return a.Key != except && !a.HasEnded() })
}

// Unclosed returns the keys of ended sessions whose end is not recorded because their harness
// was killed.
func (t *AgentSessions) Unclosed() (keys []int64) {
	for _, a := range t.Acting {
		if a.ClosedAt == 0 && a.HasEnded() {
			keys = append(keys, a.Key)
		}
	}
	return keys
}

// IsOrphaned reports whether the agent's sessions ended at least the grace period ago, and the
// agent has not been active since. It returns false for an agent without known sessions.
func (o *Kernel) IsOrphaned(t *AgentSessions, active, now Time) bool {
	if t.Newest.Key == 0 || t.IsLive(0) || len(t.Unclosed()) > 0 {
		return false
	}
	return now-max(t.left, active) >= Time(o.Config.OrphanGrace)
}

// IsFormer reports whether session s may take over the agent. They must share a lineage, and
// no other live session may act as the agent. It returns false if s already acts as the agent
// by more than a takeover.
func (t *AgentSessions) IsFormer(s *project.Session) bool {
	l := s.Lineage()
	if !l.IsKnown() || t.Newest.Key == 0 || t.Newest.Lineage() != l || t.IsLive(s.Key) {
		return false
	}
	return !slices.ContainsFunc(t.Acting, func(a ActingSession) bool { return a.Key == s.Key && a.source != SourceLineage })
}

const insertTakeover = `INSERT INTO mail_sessions (session_key, agent_id, source, bound_ts) VALUES (?, ?, '` + SourceLineage + `', ?)
ON CONFLICT (session_key, agent_id) DO UPDATE SET ended_ts = NULL, source = '` + SourceLineage + `'`

const endBond = `UPDATE mail_sessions SET ended_ts = ? WHERE agent_id = ? AND session_key = ? AND ended_ts IS NULL`

// TakeOver binds a session to agents of its lineage. It ends the bindings of these agents to
// ended sessions.
func TakeOver(ctx context.Context, tx *store.Tx, session int64, agents []int64, at Time) error {
	for _, id := range agents {
		if _, err := tx.Exec(ctx, insertTakeover, session, id, at); err != nil {
			return err
		}
		t, err := SessionsOfAgent(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, a := range t.Acting {
			if a.Key == session || !a.HasEnded() {
				continue
			}
			if _, err := tx.Exec(ctx, endBond, at, id, a.Key); err != nil {
				return err
			}
		}
	}
	return nil
}
