package mail

import (
	"context"
	"database/sql"
	"encoding/json"
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

// ActingAs names the agents of a project as which the caller's session acts, the one
// that was bound first first; none without a session that is known.
//
// Errors: NOT_FOUND for the project; INVALID_ARGUMENT if the process above has several
// sessions, so that the caller's is unknown.
func (o *Service) ActingAs(ctx context.Context, c Caller, projectKey string) (names []string, err error) {
	err = o.readIn(ctx, c, projectKey, func(ctx context.Context, s *callTx) error {
		session, _, ok, err := s.knownSession(ctx)
		if err != nil {
			return err
		}
		if !ok {
			several, err := project.ProcessSessions(ctx, s.tx, c.Ancestors)
			if err == nil && len(several) > 1 {
				err = invalid("session_id", "", "the process above this one has several sessions, so the agent of this one is unknown")
			}
			return err
		}
		all, err := bonded(ctx, s.tx, session.Key, s.p.ID)
		for _, a := range all {
			names = append(names, a.Name)
		}
		return err
	})
	return names, err
}

// Binding says as which agent a session acts.
type Binding struct {
	Session string // its id; it must be known
	Agent   string
	Source  string // one of the sources
}

// Bind notes that a session acts as an agent of a project, as CAIRN_AGENT in a hook's environment
// says; Witness is what a hook does with a call. A session may act as several.
// Repeating changes nothing. An unknown session changes nothing either.
//
// Errors: NOT_FOUND; CAPABILITY_DENIED for who cannot act, and for a protected agent
// without its token.
func (o *Service) Bind(ctx context.Context, c Caller, q project.Project, b Binding) error {
	switch b.Source {
	case SourceEnvironment, SourceServer, SourceArgument, SourceCall, SourceEdit:
	default:
		return toFault(invalid("source", b.Source, "%s is no source of a bond", quoted(b.Source)))
	}
	return o.writeTo(ctx, c, targetOf(q), func(ctx context.Context, s *callTx) error { return s.bond(ctx, b) })
}

// bond binds a session to an agent of the project, whatever the caller's session.
func (s *callTx) bond(ctx context.Context, b Binding) error {
	a, err := s.reader(ctx, b.Agent)
	if err == nil {
		err = s.checkAlive(a)
	}
	if err != nil {
		return err
	}
	session, ok, err := project.FindSession(ctx, s.tx, b.Session)
	if err != nil || !ok {
		return err
	}
	return bind(ctx, s.tx, session.Key, a.ID, b.Source, s.now)
}

const selectKept = `SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM mail_sessions WHERE session_key = value)
OR EXISTS (SELECT 1 FROM mail_notices WHERE session_key = value) OR value IN (SELECT session_key FROM mail_reservations WHERE session_key NOTNULL)`

// Kept returns which of the sessions, named by their keys, have acted as an agent, were
// shown a notice or hold a reservation.
func Kept(ctx context.Context, tx *store.Tx, sessions []int64) ([]int64, error) {
	list, err := json.Marshal(sessions)
	if err != nil {
		return nil, err
	}
	return tx.Keys(ctx, selectKept, string(list))
}
