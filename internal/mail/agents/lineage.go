package agents

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

// An agent belongs to a project and to a lineage: a harness in a checkout (amendments
// §B.7). When a session of the lineage begins and none that acts as the agent is live, the
// session takes over the agent: its name, its mail and its reservations. What nobody takes
// over is released after Config.OrphanGrace.

const (
	selectAnyBond = `SELECT EXISTS (SELECT 1 FROM mail_sessions)`

	// The agents that may be handed on, of the bonds of some sessions, in their order. A
	// protected agent is not: a payload can be made up, and its token cannot.
	selectInheritable = `SELECT b.session_key, b.agent_id FROM json_each(?) j CROSS JOIN mail_sessions b ON b.session_key = j.value
CROSS JOIN mail_agents a ON a.id = b.agent_id CROSS JOIN sessions s ON s.key = b.session_key
WHERE a.retired_ts IS NULL AND (s.checkout IS NOT NULL OR a.worktree IS NULL) AND a.home IS NULL AND a.token_sha256 IS NULL AND a.name <> '` + mail.Overseer + `' ORDER BY j.key, b.bound_ts, b.agent_id`

	selectOwnBonds = `SELECT b.agent_id, b.source, b.ended_ts IS NOT NULL FROM mail_sessions b JOIN mail_agents a ON a.id = b.agent_id
WHERE b.session_key = ? AND a.retired_ts IS NULL`
)

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

// takeover is what a session that begins takes over.
type takeover struct {
	session project.Session
	agents  []int64
}

// findTakeover finds the agents of a session that begins: those it had, unless another live
// session acts as them by now, else, unless it is named already, those of its predecessor.
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

// BeginSession gives a session of a harness that starts, is resumed or was compacted the
// agents that it had, or those of the session that it continues (amendments §B.7). named
// says that CAIRN_AGENT names its agent: then it takes over none. Until it acts as one of
// them, registering without a name returns that agent. For a session without agents and
// without a predecessor it changes nothing, and so does repeating.
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

// inherited returns the agent that the caller's session took over and has not used yet, or
// takes one over if the session does not act as any agent. It returns nil if there is no
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

// unused is the first agent that the session took over and may act as.
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
