package reservations

import (
	"context"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
)

// ForceArgs are the arguments of force_release_file_reservation.
type ForceArgs struct {
	ProjectKey string `arg:"project_key,required"`
	AgentName  string `arg:"agent_name,required"`
	ID         int64  `arg:"file_reservation_id,required" about:"Id of the reservation: that of a holder in check_file_reservation_conflicts."`
	Quiet      bool   `arg:"notify_previous,not" about:"Whether the holder is notified by a message."`
	Note       string `arg:"note,default=" about:"Additional text of the message."`
}

// ForceReleased is the result of force_release_file_reservation.
type ForceReleased struct {
	Released    int         `json:"released"` // 0 or 1
	At          mail.Time   `json:"released_at"`
	Reservation *ForcedFrom `json:"reservation,omitempty"`
	Already     bool        `json:"already_released,omitempty"`
}

// ForcedFrom is the reservation that was released by force.
type ForcedFrom struct {
	ID          int64     `json:"id"`
	Agent       string    `json:"agent"`
	PathPattern string    `json:"path_pattern"`
	Exclusive   bool      `json:"exclusive"`
	Reason      string    `json:"reason"`
	Created     mail.Time `json:"created_ts"`
	Expires     mail.Time `json:"expires_ts"`
	Released    mail.Time `json:"released_ts"`
	HolderActivity
	Notified bool `json:"notified"` // the holder got a message
}

// ForceReleaseFileReservation releases another agent's reservation if it is stale or has expired.
// HumanOverseer may release any reservation; only the store's owner may act as HumanOverseer. The
// holder gets a message, unless Quiet is set or the agent does not accept mail. A repeated call
// reports that the reservation is already released.
//
// Errors: NOT_FOUND; RESERVATION_ACTIVE for a reservation that is neither stale nor expired; those
// of acting as the agent.
func (o *Reservations) ForceReleaseFileReservation(ctx context.Context, c mail.Caller, a ForceArgs) (out ForceReleased, err error) {
	t, err := c.Target(a.ProjectKey)
	if err != nil {
		return out, mail.Fault(err)
	}
	// Files and commits are inspected before the write transaction, which reads the rows again.
	watch := &watch{found: map[int64]*watched{}}
	err = o.ReadFrom(ctx, c, t, func(ctx context.Context, s *mail.CallTx) error {
		if err := AdvanceClock(ctx, s); err != nil {
			return err
		}
		watch.of(s)
		return watch.addByID(ctx, a.ID)
	})
	if err == nil {
		err = watch.look(ctx, c)
	}
	if err != nil && !fault.HasCode(err, mail.CodeNotFound) {
		return out, mail.Fault(err)
	}
	err = o.WriteTo(ctx, c, t, func(ctx context.Context, s *mail.CallTx) error {
		if err := forcing(ctx, s, a.AgentName); err != nil {
			return err
		}
		out, err = force(ctx, s, a, watch.found[a.ID])
		return err
	})
	return out, err
}

func (w *watch) addByID(ctx context.Context, id int64) error {
	r, err := mail.QueryReservation(ctx, w.tx, mail.SelectReservationByID, id)
	if err != nil || r == nil || r.ProjectID != w.p.ID {
		return err
	}
	holder, err := mail.QueryAgent(ctx, w.tx, mail.SelectAgentByID, r.AgentID)
	if err != nil || holder == nil {
		return err
	}
	return w.add(ctx, r, holder.LastActive, holder.Worktree)
}

// forcing sets the actor. The store's owner may act as HumanOverseer.
func forcing(ctx context.Context, s *mail.CallTx, name string) error {
	if s.Caller.Owner && strings.EqualFold(strings.TrimSpace(name), mail.Overseer) {
		_, err := agents.Overseer(ctx, s)
		return err
	}
	_, err := s.ActAs(ctx, name)
	return err
}

// force releases a reservation. seen is its observed activity, nil if unknown.
func force(ctx context.Context, s *mail.CallTx, a ForceArgs, seen *watched) (out ForceReleased, err error) {
	if err := AdvanceClock(ctx, s); err != nil {
		return out, err
	}
	r, err := mail.QueryReservation(ctx, s.Tx, mail.SelectReservationByID, a.ID)
	switch {
	case err != nil:
		return out, err
	case r == nil || r.ProjectID != s.Project.ID:
		return out, mail.NotFound("reservation", a.ID).Suggest(checkCall(s.ProjectKey, ".")).Hint("cairn reservations list shows the numbers")
	case r.Released != 0:
		return ForceReleased{At: r.Released, Already: true}, nil
	}
	holder, err := mail.QueryAgent(ctx, s.Tx, mail.SelectAgentByID, r.AgentID)
	if err != nil {
		return out, err
	}
	w := &watched{filesBusy: true, gitBusy: true} // unknown activity counts as activity
	if seen != nil {
		w = seen
	}
	if w.mail, err = mailActivity(ctx, s.Tx, holder.ID); err != nil {
		return out, err
	}
	w.agent, w.ended = holder.LastActive, false
	stale, signs := signs(s.Kernel, w, s.Now)
	if !stale && r.Expires > s.Now && s.Me.Name != mail.Overseer {
		return out, stillActive(s, r, signs)
	}
	if _, err := Release(ctx, s, []*mail.Reservation{r}, releasedByForce); err != nil {
		return out, err
	}
	from := &ForcedFrom{
		r.ID, r.Agent, r.PathPattern, r.Exclusive, r.Reason, r.Created, r.Expires, r.Released, signs, false,
	}
	if !a.Quiet && holder.ID != s.Me.ID {
		from.Notified, err = tellHolder(ctx, s, holder, from, a.Note)
	}
	return ForceReleased{Released: 1, At: r.Released, Reservation: from}, err
}

// stillActive returns the error for a reservation whose holder may still be working.
func stillActive(s *mail.CallTx, r *mail.Reservation, signs HolderActivity) error {
	help := mail.Call{Tool: "send_message", Arguments: map[string]any{
		"project_key": s.ProjectKey, "sender_name": s.Me.Name, "to": []string{r.Agent},
		"subject": "Reservation of " + mail.Clip(r.PathPattern, mail.MaxSubject), "body_md": "Could you release " + r.PathPattern + "?",
	}}
	hint := "write to the holder, or wait until the reservation is stale or has expired"
	if r.Agent == s.Me.Name {
		hint = "it is your own: release_file_reservations ends it"
		help = mail.Call{Tool: "release_file_reservations", Arguments: map[string]any{
			"project_key": s.ProjectKey, "agent_name": s.Me.Name, "file_reservation_ids": []int64{r.ID},
		}}
	}
	return mail.Errorf(mail.CodeReserved, "%s still holds %s, until %s", r.Agent, mail.Quoted(r.PathPattern), r.Expires).
		With("holder", r.Agent).With("expires_ts", r.Expires).With("stale_reasons", signs.Reasons).Suggest(help).Hint(hint)
}

// tellHolder sends a message to the former holder. It returns false if this agent does not accept
// mail.
func tellHolder(ctx context.Context, s *mail.CallTx, holder *mail.Agent, r *ForcedFrom, note string) (bool, error) {
	if holder.Retired != 0 || holder.ContactPolicy == "block_all" || s.RequireDiskSpace() != nil {
		return false, nil
	}
	body := s.Me.Name + " released the reservation of " + r.PathPattern + ", which was yours until " + r.Expires.String() + ".\n"
	if len(r.Reasons) > 0 {
		body += "\nSigns: " + strings.Join(r.Reasons, ", ") + ".\n"
	}
	if note = strings.TrimSpace(note); note != "" {
		body += "\n" + note + "\n"
	}
	d, err := messages.Draft(s.Kernel, mail.Clip("[file-reservations] Released stale lock on "+r.PathPattern, messages.MaxSubjectInput), body, "")
	if err != nil {
		return false, err
	}
	_, err = messages.Deliver(ctx, s, s.Me, d, []messages.Recipient{{Agent: holder, Project: s.Project, Field: messages.FieldTo}})
	return err == nil, err
}

func checkCall(projectKey string, paths ...string) mail.Call {
	return mail.Call{Tool: "check_file_reservation_conflicts", Arguments: map[string]any{"project_key": projectKey, "paths": paths}}
}
