package agents

import (
	"context"
	"encoding/json"

	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

// ActingAs names the agents of a project as which the caller's session acts, the one
// that was bound first first; none without a session that is known.
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
func (o *Agents) Bind(ctx context.Context, c mail.Caller, q project.Project, b Binding) error {
	switch b.Source {
	case mail.SourceEnvironment, mail.SourceServer, mail.SourceArgument, mail.SourceCall, mail.SourceEdit:
	default:
		return mail.Fault(mail.InvalidArgument("source", b.Source, "%s is no source of a bond", mail.Quoted(b.Source)))
	}
	return o.WriteTo(ctx, c, mail.TargetOf(q), func(ctx context.Context, s *mail.CallTx) error { return BindSession(ctx, s, b) })
}

// BindSession binds a session to an agent of the project, whatever the caller's session.
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

// Kept returns which of the sessions, named by their keys, have acted as an agent, were
// shown a notice or hold a reservation.
func Kept(ctx context.Context, tx *store.Tx, sessions []int64) ([]int64, error) {
	list, err := json.Marshal(sessions)
	if err != nil {
		return nil, err
	}
	return tx.Keys(ctx, selectKept, string(list))
}
