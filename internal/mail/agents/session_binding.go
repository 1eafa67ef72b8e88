package agents

import (
	"context"
	"encoding/json"

	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

// ActingAs returns the names of the agents of a project that the caller's session acts as, in
// the order of mail.BoundAgents. It returns none if the session is unknown.
//
// Errors: NOT_FOUND for the project; INVALID_ARGUMENT if the process above has several
// sessions, so that the caller's is unknown.
func (o *Agents) ActingAs(ctx context.Context, c mail.Caller, projectKey string) (names []string, err error) {
	err = o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		session, _, ok, err := s.KnownSession(ctx)
		if err != nil {
			return err
		}
		if !ok {
			several, err := project.ProcessSessions(ctx, s.Tx, c.Ancestors)
			if err == nil && len(several) > 1 {
				err = mail.InvalidArgument("session_id", "", "the process above this one has several sessions, so the agent of this one is unknown")
			}
			return err
		}
		all, err := mail.BoundAgents(ctx, s.Tx, session.Key, s.Project.ID)
		for _, a := range all {
			names = append(names, a.Name)
		}
		return err
	})
	return names, err
}

// Binding is the agent that a session acts as.
type Binding struct {
	Session string // the session's id
	Agent   string
	Source  string // one of the Source constants of mail
}

// Bind records that a session acts as an agent of a project, for example because CAIRN_AGENT
// is set in a hook's environment. For a call that a hook observed, use BindObservedCall. A
// session may act as several agents. Bind is idempotent and ignores an unknown session.
//
// Errors: NOT_FOUND; INVALID_ARGUMENT for an unknown source; CAPABILITY_DENIED for an agent
// that cannot act, and for a protected agent without its token.
func (o *Agents) Bind(ctx context.Context, c mail.Caller, q project.Project, b Binding) error {
	switch b.Source {
	case mail.SourceEnvironment, mail.SourceServer, mail.SourceArgument, mail.SourceCall, mail.SourceEdit:
	default:
		return mail.Fault(mail.InvalidArgument("source", b.Source, "%s is no source of a bond", mail.Quoted(b.Source)))
	}
	return o.WriteTo(ctx, c, mail.TargetOf(q), func(ctx context.Context, s *mail.CallTx) error { return BindSession(ctx, s, b) })
}

// BindSession binds the session b.Session to an agent of the project, independently of the
// caller's session.
func BindSession(ctx context.Context, s *mail.CallTx, b Binding) error {
	a, err := s.ReadAs(ctx, b.Agent)
	if err == nil {
		err = s.CheckAlive(a)
	}
	if err != nil {
		return err
	}
	session, ok, err := project.FindSession(ctx, s.Tx, b.Session)
	if err != nil || !ok {
		return err
	}
	return mail.Bind(ctx, s.Tx, session.Key, a.ID, b.Source, s.Now)
}

const selectKept = `SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM mail_sessions WHERE session_key = value)
OR EXISTS (SELECT 1 FROM mail_notices WHERE session_key = value) OR value IN (SELECT session_key FROM mail_reservations WHERE session_key NOTNULL)`

// Kept returns the given keys of sessions that have acted as an agent, were shown a notice or
// hold a reservation.
func Kept(ctx context.Context, tx *store.Tx, sessions []int64) ([]int64, error) {
	list, err := json.Marshal(sessions)
	if err != nil {
		return nil, err
	}
	return tx.Keys(ctx, selectKept, string(list))
}
