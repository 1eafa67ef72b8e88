package agents

import (
	"context"
	"encoding/json"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/project"
)

// ObservedCall is a successful call of a mail tool, as reported by a hook of the harness. None
// of it is trusted.
type ObservedCall struct {
	Session  string           // the id of the session that made the call
	Place    project.Location // of the session's working directory
	Tool     string           // as in the list of tools, without a server's name
	Argument func(name string) string
	Result   string // JSON, as the tool returned it
}

// BindObservedCall binds a session to the agent that a call registered or acted as (mail §4).
// Reading as an agent is not acting. q is the session's project. The agent must belong to it,
// and the call must refer to it.
//
// A protected agent is bound only by a call that contains its token, in the arguments or in
// the result that issued it. A payload can be forged, and a binding shows the agent's mail to
// the session.
//
// A call that binds nothing is not an error, creates neither project nor agent, and changes
// nothing. BindObservedCall is idempotent. A call of a subagent binds the session that the
// subagent belongs to. The same applies when the server itself sees the session.
//
// Errors: those of the store.
func (o *Agents) BindObservedCall(ctx context.Context, q project.Project, c ObservedCall) error {
	name, token := c.actor()
	if name == "" {
		return nil
	}
	caller := mail.Caller{Token: token, Place: c.Place}
	t, err := caller.Target(firstOf(c.Argument, "project_key", "human_key"))
	if err == nil {
		err = o.WriteTo(ctx, caller, mail.TargetOf(q), func(ctx context.Context, s *mail.CallTx) error {
			meant, err := t.Find(ctx, s.Tx)
			if err != nil || meant == nil || meant.ID != s.Project.ID {
				return err
			}
			return BindSession(ctx, s, Binding{Session: c.Session, Agent: name, Source: mail.SourceCall})
		})
	}
	err = mail.Fault(err)
	switch fault.KindOf(err) {
	case fault.Invalid, fault.NotFound, fault.Denied:
		return nil
	}
	return err
}

// actor returns the name of a call's agent and the token that the call contains. The name is
// "" for a failed call, and for a call without an agent.
func (c *ObservedCall) actor() (name, token string) {
	var result struct {
		Error json.RawMessage `json:"error"`
		Name  string          `json:"name"`
		Token string          `json:"registration_token"`
		Agent json.RawMessage `json:"agent"`
	}
	if !strings.HasPrefix(c.Result, "{") || json.Unmarshal([]byte(c.Result), &result) != nil || result.Error != nil {
		return "", ""
	}
	token = c.Argument("registration_token")
	switch c.Tool {
	case "register_agent", "create_agent_identity":
		mail.Default(&token, result.Token)
		return result.Name, token
	case "macro_start_session", "macro_prepare_thread":
		var agent struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(result.Agent, &agent) // else there is no name
		return agent.Name, token
	}
	return firstOf(c.Argument, actorParameters(c.Tool)...), token
}

// actorParameters returns the names of the parameters that contain the agent that a tool acts
// as; none for a tool that only reads.
func actorParameters(tool string) []string {
	switch tool {
	case "send_message", "reply_message":
		return []string{"sender_name"}
	case "mark_message_read", "acknowledge_message", "create_contact", "set_contact_policy", "file_reservation_paths",
		"release_file_reservations", "renew_file_reservations", "force_release_file_reservation", "macro_file_reservation_cycle":
		return []string{"agent_name"}
	case "request_contact":
		return []string{"from_agent"}
	case "respond_contact":
		return []string{"to_agent"}
	case "macro_contact_handshake":
		return []string{"requester", "agent_name"}
	}
	return nil
}

// firstOf returns the first of some arguments that is not empty, "" if there is none.
func firstOf(argument func(string) string, names ...string) string {
	for _, name := range names {
		if v := argument(name); v != "" {
			return v
		}
	}
	return ""
}
