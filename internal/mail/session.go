package mail

import (
	"context"
	"database/sql"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/project"
	"cairn/internal/store"
)

// Sources of the binding of a session to an agent, in the order in which they are checked
// (mail §4).
const (
	SourceEnvironment = "environment" // CAIRN_AGENT
	SourceServer      = "server"      // the session of the stdio server that was called
	SourceArgument    = "argument"    // session_id
	SourceCall        = "call"        // a hook saw a successful call of a mail tool
	SourceEdit        = "edit"        // generated at the first edit
	SourceLineage     = "lineage"     // taken over from an earlier session, until the session acts as the agent
)

const (
	insertBond = `INSERT INTO mail_sessions (session_key, agent_id, source, bound_ts) VALUES (?, ?, ?, ?)
ON CONFLICT (session_key, agent_id) DO UPDATE SET ended_ts = NULL, source = CASE source WHEN '` + SourceLineage + `' THEN excluded.source ELSE source END
WHERE ended_ts IS NOT NULL OR source = '` + SourceLineage + `'`
	endBonds     = `UPDATE mail_sessions SET ended_ts = ? WHERE session_key = ? AND ended_ts IS NULL`
	selectBonded = AgentColumns + `JOIN mail_sessions s ON s.agent_id = a.id
WHERE s.session_key = ? AND s.ended_ts IS NULL AND a.project_id = ? AND a.retired_ts IS NULL
ORDER BY s.source = '` + SourceEdit + `', s.bound_ts, a.id`
)

// Bind records that a session acts as an agent. A binding is not a change of the log. The
// first source is kept, except that any source replaces SourceLineage.
func Bind(ctx context.Context, tx *store.Tx, sessionKey, agentID int64, source string, at Time) error {
	_, err := tx.Exec(ctx, insertBond, sessionKey, agentID, source, at)
	return err
}

// Unbind ends all bindings of a session.
func Unbind(ctx context.Context, tx *store.Tx, sessionKey int64, at Time) error {
	_, err := tx.Exec(ctx, endBonds, at, sessionKey)
	return err
}

// BoundAgents returns the agents of a project that a session acts as, without retired ones.
// The earliest binding is first; an agent that was generated for edits is last.
func BoundAgents(ctx context.Context, tx *store.Tx, sessionKey, projectID int64) (all []*Agent, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		a := &Agent{}
		all = append(all, a)
		return rows.Scan(a.Columns()...)
	}, selectBonded, sessionKey, projectID)
	return all, err
}

const maxSessionID = 200 // characters

// findSession finds the session that the call belongs to. It creates an unknown session that
// the call or the server names. There may be no session.
func (s *CallTx) findSession(ctx context.Context) error {
	var ok bool
	var err error
	s.Session, s.SessionSource, ok, err = s.KnownSession(ctx)
	if err != nil || ok {
		return err
	}
	id := s.Caller.Session
	s.SessionSource = SourceArgument
	if id == "" {
		id, s.SessionSource = s.Caller.Transport, SourceServer
	}
	if id == "" {
		return nil
	}
	if strings.TrimSpace(id) == "" || !utf8.ValidString(id) || utf8.RuneCountInString(id) > maxSessionID || strings.ContainsFunc(id, unicode.IsControl) {
		return InvalidArgument("session_id", Printable(id), "session_id is one line of 1 to 200 characters")
	}
	row, err := project.Ensure(ctx, s.Tx, s.Project.ProductID)
	if err == nil {
		s.Session, err = project.NewSession(ctx, s.Tx, id, row)
	}
	return err
}

// KnownSession returns the session that the call belongs to, and how it was found. The first
// choice is the session of a harness that the call names. The second is the only open session
// of the harness above this process (amendments §B.7). The last is another session that the
// call or the server names. ok is false if there is none.
func (s *CallTx) KnownSession(ctx context.Context) (found project.Session, source string, ok bool, err error) {
	named, known := project.Session{}, false
	if id := s.Caller.Session; id != "" {
		named, known, err = project.FindSession(ctx, s.Tx, id)
		if err != nil || known && named.Harness != "" {
			return named, SourceArgument, known, err
		}
	}
	if len(s.Caller.Ancestors) > 0 {
		found, ok, err = project.CurrentSession(ctx, s.Tx, s.Caller.Ancestors)
		if err != nil || ok {
			return found, SourceServer, ok, err
		}
	}
	if s.Caller.Session != "" || s.Caller.Transport == "" {
		return named, SourceArgument, known, nil
	}
	found, ok, err = project.FindSession(ctx, s.Tx, s.Caller.Transport)
	return found, SourceServer, ok, err
}
