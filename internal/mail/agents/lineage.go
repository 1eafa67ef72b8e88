package agents

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

// An agent belongs to a project and to a lineage: a harness in a checkout (amendments §B.7). A
// new session of the lineage takes over an agent if no live session acts as it. The session
// gets the agent's name, mail and reservations. The reservations of an agent that no session
// takes over are released after Config.OrphanGrace.

const (
	selectAnyBond = `SELECT EXISTS (SELECT 1 FROM mail_sessions)`

	// The agents of some sessions that can be taken over, in the order of the sessions.
	// Protected agents cannot: a payload can be forged, and a token cannot.
	selectInheritable = `SELECT b.session_key, b.agent_id FROM json_each(?) j CROSS JOIN mail_sessions b ON b.session_key = j.value
CROSS JOIN mail_agents a ON a.id = b.agent_id CROSS JOIN sessions s ON s.key = b.session_key
WHERE a.retired_ts IS NULL AND (s.checkout IS NOT NULL OR a.worktree IS NULL) AND a.home IS NULL AND a.token_sha256 IS NULL AND a.name <> '` + mail.Overseer + `' ORDER BY j.key, b.bound_ts, b.agent_id`

	selectOwnBonds = `SELECT b.agent_id, b.source, b.ended_ts IS NOT NULL FROM mail_sessions b JOIN mail_agents a ON a.id = b.agent_id
WHERE b.session_key = ? AND a.retired_ts IS NULL`
)

// predecessors returns the agents that a session may take over. They belong to the newest
// session of its lineage that has agents without a live session.
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
		t, err := mail.SessionsOfAgent(ctx, tx, b.agent)
		if err != nil {
			return nil, err
		}
		if t.IsFormer(&s) {
			from, agents = b.session, append(agents, b.agent)
		}
	}
	return agents, nil
}

// takeover is a session that begins, with the agents that it takes over.
type takeover struct {
	session project.Session
	agents  []int64
}

// findTakeover returns the agents of a session that begins. These are the agents that it had,
// without those that another live session now acts as. If there are none and the session is
// not named, it returns those of its predecessor.
func findTakeover(ctx context.Context, o *mail.Kernel, tx *store.Tx, id string, named bool) (out takeover, err error) {
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
			if b.source != mail.SourceLineage {
				own = append(own, b.agent)
			}
			continue
		}
		t, err := mail.SessionsOfAgent(ctx, tx, b.agent)
		if err != nil {
			return out, err
		}
		if !t.IsLive(out.session.Key) {
			own = append(own, b.agent)
		}
	}
	if out.agents = own; open || len(own) > 0 || named {
		return out, nil
	}
	out.agents, err = predecessors(ctx, tx, out.session)
	return out, err
}

// BeginSession gives agents to a session of a harness that starts, is resumed or was compacted
// (amendments §B.7). They are the agents that it had, or those of the session that it
// continues. If named is set, CAIRN_AGENT names the agent and the session takes over none.
// Until the session acts as one of them, registering without a name returns that agent.
//
// BeginSession changes nothing for a session without agents and without a predecessor. It is
// idempotent.
//
// Errors: those of reading and writing.
func (o *Agents) BeginSession(ctx context.Context, session string, named bool) error {
	if o.Store == nil {
		return nil
	}
	var found takeover
	err := o.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		found, err = findTakeover(ctx, o.Kernel, tx, session, named)
		return err
	})
	if err != nil || len(found.agents) == 0 {
		return err
	}
	return o.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err := findTakeover(ctx, o.Kernel, tx, session, named)
		if err != nil {
			return err
		}
		return mail.TakeOver(ctx, tx, found.session.Key, found.agents, mail.Now(tx))
	})
}

const (
	selectInherited = mail.AgentColumns + `JOIN mail_sessions b ON b.agent_id = a.id
WHERE b.session_key = ? AND b.ended_ts IS NULL AND b.source = '` + mail.SourceLineage + `' AND a.project_id = ? AND a.retired_ts IS NULL ORDER BY b.bound_ts, a.id`
	selectActs = `SELECT EXISTS (SELECT 1 FROM mail_sessions WHERE session_key = ? AND ended_ts IS NULL)`
)

// inherited returns the agent that the caller's session took over and has not used yet. If the
// session does not act as any agent, it first takes one over. It returns nil if there is no
// agent to take over, and for the file's owner.
func inherited(ctx context.Context, s *mail.CallTx) (*mail.Agent, error) {
	if s.Session.Key == 0 || s.Caller.Owner || !s.Session.Lineage().IsKnown() {
		return nil, nil
	}
	a, err := unused(ctx, s)
	if a != nil || err != nil {
		return a, err
	}
	var acts bool
	if err := s.Tx.Get(ctx, []any{&acts}, selectActs, s.Session.Key); err != nil || acts {
		return nil, err
	}
	agents, err := predecessors(ctx, s.Tx, s.Session)
	if err != nil || len(agents) == 0 {
		return nil, err
	}
	if err := mail.TakeOver(ctx, s.Tx, s.Session.Key, agents, s.Now); err != nil {
		return nil, err
	}
	return unused(ctx, s)
}

// unused returns the first agent that the session took over, has not used yet and may act as;
// nil if there is none.
func unused(ctx context.Context, s *mail.CallTx) (found *mail.Agent, err error) {
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		a := &mail.Agent{}
		err := rows.Scan(a.Columns()...)
		if err == nil && found == nil && s.CheckToken(a) == nil {
			found = a
		}
		return err
	}, selectInherited, s.Session.Key, s.Project.ID)
	return found, err
}
