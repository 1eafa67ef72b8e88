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

// Sources of the bond between a session and an agent, in the order in which they
// are asked (mail §4).
const (
	SourceEnvironment = "environment" // CAIRN_AGENT
	SourceServer      = "server"      // the session of the stdio server that was called
	SourceArgument    = "argument"    // session_id
	SourceCall        = "call"        // a hook saw a call of ours that succeeded
	SourceEdit        = "edit"        // generated at the first edit
	SourceLineage     = "lineage"     // taken over from an earlier session, until the session acts as the agent
)

const (
	insertBond = `INSERT INTO mail_sessions (session_key, agent_id, source, bound_ts) VALUES (?, ?, ?, ?)
ON CONFLICT (session_key, agent_id) DO UPDATE SET ended_ts = NULL, source = CASE source WHEN '` + SourceLineage + `' THEN excluded.source ELSE source END
WHERE ended_ts IS NOT NULL OR source = '` + SourceLineage + `'`
	endBonds     = `UPDATE mail_sessions SET ended_ts = ? WHERE session_key = ? AND ended_ts IS NULL`
	selectBonded = agentColumns + `JOIN mail_sessions s ON s.agent_id = a.id
WHERE s.session_key = ? AND s.ended_ts IS NULL AND a.project_id = ? AND a.retired_ts IS NULL
ORDER BY s.source = '` + SourceEdit + `', s.bound_ts, a.id`
)

// bind notes that a session acts as an agent. The bond is no change of the log;
// the first source stays.
func bind(ctx context.Context, tx *store.Tx, sessionKey, agentID int64, source string, at Time) error {
	_, err := tx.Exec(ctx, insertBond, sessionKey, agentID, source, at)
	return err
}

// unbind ends all bonds of a session.
func unbind(ctx context.Context, tx *store.Tx, sessionKey int64, at Time) error {
	_, err := tx.Exec(ctx, endBonds, at, sessionKey)
	return err
}

// bonded lists the agents of a project that a session acts as, the one bound first
// first and one that was made for its edits last, without those that are retired.
func bonded(ctx context.Context, tx *store.Tx, sessionKey, projectID int64) (all []*Agent, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		a := &Agent{}
		all = append(all, a)
		return rows.Scan(a.columns()...)
	}, selectBonded, sessionKey, projectID)
	return all, err
}

const maxSessionID = 200 // characters

// findSession finds the session that the call belongs to, and makes one that the call or
// the server names and that is unknown. There may be none.
func (s *callTx) findSession(ctx context.Context) error {
	var ok bool
	var err error
	s.session, s.source, ok, err = s.knownSession(ctx)
	if err != nil || ok {
		return err
	}
	id := s.caller.Session
	s.source = SourceArgument
	if id == "" {
		id, s.source = s.caller.Transport, SourceServer
	}
	if id == "" {
		return nil
	}
	if strings.TrimSpace(id) == "" || !utf8.ValidString(id) || utf8.RuneCountInString(id) > maxSessionID || strings.ContainsFunc(id, unicode.IsControl) {
		return invalid("session_id", printable(id), "session_id is one line of 1 to 200 characters")
	}
	row, err := project.Ensure(ctx, s.tx, s.p.ProductID)
	if err == nil {
		s.session, err = project.NewSession(ctx, s.tx, id, row)
	}
	return err
}

// knownSession finds the session that the call belongs to, and how: the session of a
// harness that the call names, else the only open session of the harness above this
// process (amendments §B.7), else another session that the call or the server names.
func (s *callTx) knownSession(ctx context.Context) (found project.Session, source string, ok bool, err error) {
	named, known := project.Session{}, false
	if id := s.caller.Session; id != "" {
		named, known, err = project.FindSession(ctx, s.tx, id)
		if err != nil || known && named.Harness != "" {
			return named, SourceArgument, known, err
		}
	}
	if len(s.caller.Ancestors) > 0 {
		found, ok, err = project.CurrentSession(ctx, s.tx, s.caller.Ancestors)
		if err != nil || ok {
			return found, SourceServer, ok, err
		}
	}
	if s.caller.Session != "" || s.caller.Transport == "" {
		return named, SourceArgument, known, nil
	}
	found, ok, err = project.FindSession(ctx, s.tx, s.caller.Transport)
	return found, SourceServer, ok, err
}
