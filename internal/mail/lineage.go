package mail

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"cairn/internal/project"
	"cairn/internal/store"
)

// An agent belongs to a project and to a lineage: a harness in a checkout (amendments
// §B.7). When a session of the lineage begins and none that acts as the agent is live, the
// session takes over the agent: its name, its mail and its reservations. What nobody takes
// over is released after Config.OrphanGrace.

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

// yields reports whether a reservation of another agent does not count against the caller.
// It belongs to a former self of the caller's session, or no session has taken it over in
// time.
func (s *callTx) yields(ctx context.Context, h *held) (bool, error) {
	if s.session.Key == 0 && !s.writes {
		var err error
		if s.session, _, _, err = s.knownSession(ctx); err != nil {
			return false, err
		}
	}
	t, known := s.agentUse[h.agentID]
	if !known {
		var err error
		if t, err = sessionsOfAgent(ctx, s.tx, h.agentID); err != nil {
			return false, err
		}
		if s.agentUse == nil {
			s.agentUse = map[int64]agentSessions{}
		}
		s.agentUse[h.agentID] = t
		if s.writes && !t.isLive(0) { // so that the grace period begins
			for _, key := range t.unclosed() {
				if err := project.Close(ctx, s.tx, key); err != nil {
					return false, err
				}
			}
		}
	}
	return t.isFormer(&s.session) || h.sessionKey != 0 && s.isOrphaned(&t, h.lastActive, s.now), nil
}

const (
	selectAnyBond = `SELECT EXISTS (SELECT 1 FROM mail_sessions)`

	// The agents that may be handed on, of the bonds of some sessions, in their order. A
	// protected agent is not: a payload can be made up, and its token cannot.
	selectInheritable = `SELECT b.session_key, b.agent_id FROM json_each(?) j CROSS JOIN mail_sessions b ON b.session_key = j.value
CROSS JOIN mail_agents a ON a.id = b.agent_id CROSS JOIN sessions s ON s.key = b.session_key
WHERE a.retired_ts IS NULL AND (s.checkout IS NOT NULL OR a.worktree IS NULL) AND a.home IS NULL AND a.token_sha256 IS NULL AND a.name <> '` + Overseer + `' ORDER BY j.key, b.bound_ts, b.agent_id`

	selectOwnBonds = `SELECT b.agent_id, b.source, b.ended_ts IS NOT NULL FROM mail_sessions b JOIN mail_agents a ON a.id = b.agent_id
WHERE b.session_key = ? AND a.retired_ts IS NULL`

	insertTakeover = `INSERT INTO mail_sessions (session_key, agent_id, source, bound_ts) VALUES (?, ?, '` + SourceLineage + `', ?)
ON CONFLICT (session_key, agent_id) DO UPDATE SET ended_ts = NULL, source = '` + SourceLineage + `'`
	endBond = `UPDATE mail_sessions SET ended_ts = ? WHERE agent_id = ? AND session_key = ? AND ended_ts IS NULL`
)

// takeOver makes a session act as some agents of its lineage. The bonds of ended sessions
// end with it.
func takeOver(ctx context.Context, tx *store.Tx, session int64, agents []int64, at Time) error {
	for _, id := range agents {
		if _, err := tx.Exec(ctx, insertTakeover, session, id, at); err != nil {
			return err
		}
		t, err := sessionsOfAgent(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, a := range t.acting {
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

// predecessors are the agents that a session may take over: those of the newest session of
// its lineage that has agents that no live session acts as.
func predecessors(ctx context.Context, tx *store.Tx, s project.Session) (agents []int64, err error) {
	former, err := project.LineageSessions(ctx, tx, s)
	if err != nil || len(former) == 0 {
		return nil, err
	}
	keys := []int64{}
	for _, f := range former {
		keys = append(keys, f.Key)
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	type bond struct{ session, agent int64 }
	var bonds []bond
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var b bond
		err := rows.Scan(&b.session, &b.agent)
		bonds = append(bonds, b)
		return err
	}, selectInheritable, string(list))
	if err != nil {
		return nil, err
	}
	from := int64(0)
	for _, b := range bonds {
		if from != 0 && b.session != from {
			break
		}
		t, err := sessionsOfAgent(ctx, tx, b.agent)
		if err != nil {
			return nil, err
		}
		if t.isFormer(&s) {
			from, agents = b.session, append(agents, b.agent)
		}
	}
	return agents, nil
}

// takeover is what a session that begins takes over.
type takeover struct {
	session project.Session
	agents  []int64
}

// takeover finds the agents of a session that begins: those it had, unless another live
// session acts as them by now, else, unless it is named already, those of its predecessor.
func (o *Service) takeover(ctx context.Context, tx *store.Tx, id string, named bool) (out takeover, err error) {
	var bound, ok bool
	if err := tx.Get(ctx, []any{&bound}, selectAnyBond); err != nil || !bound {
		return out, err
	}
	if out.session, ok, err = project.FindSession(ctx, tx, id); err != nil || !ok {
		return out, err
	}
	own, open := []int64{}, false
	type bond struct {
		agent  int64
		source string
		ended  bool
	}
	var bonds []bond
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var b bond
		err := rows.Scan(&b.agent, &b.source, &b.ended)
		bonds = append(bonds, b)
		return err
	}, selectOwnBonds, out.session.Key)
	if err != nil {
		return out, err
	}
	for _, b := range bonds {
		if !b.ended {
			open = true
			if b.source != SourceLineage {
				own = append(own, b.agent)
			}
			continue
		}
		t, err := sessionsOfAgent(ctx, tx, b.agent)
		if err != nil {
			return out, err
		}
		if !t.isLive(out.session.Key) {
			own = append(own, b.agent)
		}
	}
	if out.agents = own; open || len(own) > 0 || named {
		return out, nil
	}
	out.agents, err = predecessors(ctx, tx, out.session)
	return out, err
}

// BeginSession gives a session of a harness that starts, is resumed or was compacted the
// agents that it had, or those of the session that it continues (amendments §B.7). named
// says that CAIRN_AGENT names its agent: then it takes over none. Until it acts as one of
// them, registering without a name returns that agent. For a session without agents and
// without a predecessor it changes nothing, and so does repeating.
//
// Errors: those of reading and writing.
func (o *Service) BeginSession(ctx context.Context, session string, named bool) error {
	if o.store == nil {
		return nil
	}
	var found takeover
	err := o.read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		found, err = o.takeover(ctx, tx, session, named)
		return err
	})
	if err != nil || len(found.agents) == 0 {
		return err
	}
	return o.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err := o.takeover(ctx, tx, session, named)
		if err != nil {
			return err
		}
		return takeOver(ctx, tx, found.session.Key, found.agents, now(tx))
	})
}

const (
	selectInherited = agentColumns + `JOIN mail_sessions b ON b.agent_id = a.id
WHERE b.session_key = ? AND b.ended_ts IS NULL AND b.source = '` + SourceLineage + `' AND a.project_id = ? AND a.retired_ts IS NULL ORDER BY b.bound_ts, a.id`
	selectActs = `SELECT EXISTS (SELECT 1 FROM mail_sessions WHERE session_key = ? AND ended_ts IS NULL)`
)

// inherited returns the agent that the caller's session took over and has not used yet, or
// takes one over if the session does not act as any agent. It returns nil if there is no
// agent to take over, and for the file's owner.
func (s *callTx) inherited(ctx context.Context) (*Agent, error) {
	if s.session.Key == 0 || s.caller.Owner || !s.session.Lineage().IsKnown() {
		return nil, nil
	}
	a, err := s.unused(ctx)
	if a != nil || err != nil {
		return a, err
	}
	var acts bool
	if err := s.tx.Get(ctx, []any{&acts}, selectActs, s.session.Key); err != nil || acts {
		return nil, err
	}
	agents, err := predecessors(ctx, s.tx, s.session)
	if err != nil || len(agents) == 0 {
		return nil, err
	}
	if err := takeOver(ctx, s.tx, s.session.Key, agents, s.now); err != nil {
		return nil, err
	}
	return s.unused(ctx)
}

// unused is the first agent that the session took over and may act as.
func (s *callTx) unused(ctx context.Context) (found *Agent, err error) {
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		a := &Agent{}
		err := rows.Scan(a.columns()...)
		if err == nil && found == nil && s.checkToken(a) == nil {
			found = a
		}
		return err
	}, selectInherited, s.session.Key, s.p.ID)
	return found, err
}

const (
	selectReserving = `SELECT a.id, a.last_active_ts FROM mail_agents a WHERE EXISTS (SELECT 1 FROM mail_reservations r
WHERE r.project_id = a.project_id AND r.agent_id = a.id AND r.released_ts IS NULL AND r.expires_ts > ? AND r.session_key IS NOT NULL)`
	selectAbandoned = reservationColumns + `WHERE r.project_id = (SELECT project_id FROM mail_agents WHERE id = ?1) AND r.agent_id = ?1
AND r.released_ts IS NULL AND r.expires_ts > ?2 AND r.session_key IS NOT NULL ORDER BY r.id`
)

// abandoned is what ReleaseOrphans has to do.
type abandoned struct {
	killed []int64 // sessions whose end is not recorded
	due    []orphan
}

// orphan is an agent whose reservations are due, and its last session.
type orphan struct {
	agent   int64
	session string
}

func (o *Service) abandoned(ctx context.Context, tx *store.Tx, at Time) (out abandoned, err error) {
	type holder struct {
		id     int64
		active Time
	}
	var all []holder
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var h holder
		err := rows.Scan(&h.id, &h.active)
		all = append(all, h)
		return err
	}, selectReserving, at)
	for _, h := range all {
		if err != nil {
			break
		}
		var t agentSessions
		if t, err = sessionsOfAgent(ctx, tx, h.id); err != nil {
			break
		}
		if keys := t.unclosed(); !t.isLive(0) && len(keys) > 0 {
			out.killed = append(out.killed, keys...)
		} else if o.isOrphaned(&t, h.active, at) {
			out.due = append(out.due, orphan{h.id, t.newest.ID})
		}
	}
	return out, err
}

// ReleaseOrphans releases the reservations of agents whose sessions have ended, if no
// other session took the agents over within Config.OrphanGrace. The grace period of a
// killed session begins when ReleaseOrphans first notices it. Reservations that were made
// outside a session stay. It returns the number of released reservations; repeating it
// releases none.
//
// Errors: those of reading and writing.
func (o *Service) ReleaseOrphans(ctx context.Context) (released int, err error) {
	if o.store == nil {
		return 0, nil
	}
	due := false
	err = o.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err := o.abandoned(ctx, tx, now(tx))
		due = len(found.killed)+len(found.due) > 0
		return err
	})
	if err != nil || !due {
		return 0, err
	}
	err = o.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		s := &callTx{Service: o, tx: tx, now: now(tx), writes: true}
		if err := s.settle(ctx); err != nil {
			return err
		}
		found, err := o.abandoned(ctx, tx, s.now)
		if err != nil {
			return err
		}
		for _, key := range found.killed {
			if err := project.Close(ctx, tx, key); err != nil {
				return err
			}
		}
		for _, due := range found.due {
			s.by = Actor{Session: due.session}
			n, err := s.releaseFound(ctx, releasedSession, selectAbandoned, due.agent, s.now)
			if err != nil {
				return err
			}
			released += n
		}
		return nil
	})
	return released, err
}
