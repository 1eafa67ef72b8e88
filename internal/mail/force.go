package mail

import (
	"context"
	"strings"

	"cairn/internal/fault"
)

// ForceArgs are the arguments of force_release_file_reservation.
type ForceArgs struct {
	ProjectKey string `arg:"project_key,required"`
	AgentName  string `arg:"agent_name,required"`
	ID         int64  `arg:"file_reservation_id,required" about:"The reservation: id of a holder that check_file_reservation_conflicts tells."`
	Quiet      bool   `arg:"notify_previous,not" about:"Whether the holder gets a message about it."`
	Note       string `arg:"note,default=" about:"What the message says besides."`
}

// ForceReleased is what force_release_file_reservation answers.
type ForceReleased struct {
	Released    int         `json:"released"` // 0 or 1
	At          Time        `json:"released_at"`
	Reservation *ForcedFrom `json:"reservation,omitempty"`
	Already     bool        `json:"already_released,omitempty"`
}

// ForcedFrom is the reservation that was taken from its holder.
type ForcedFrom struct {
	ID          int64  `json:"id"`
	Agent       string `json:"agent"`
	PathPattern string `json:"path_pattern"`
	Exclusive   bool   `json:"exclusive"`
	Reason      string `json:"reason"`
	Created     Time   `json:"created_ts"`
	Expires     Time   `json:"expires_ts"`
	Released    Time   `json:"released_ts"`
	HolderActivity
	Notified bool `json:"notified"` // the holder got a message
}

// ForceReleaseFileReservation ends a reservation of another agent which is stale or
// has expired; HumanOverseer, for whom the file's owner alone may act, ends any.
// The holder gets a message, unless Quiet is set or it takes none. Repeating
// answers that it has been released.
//
// Errors: NOT_FOUND; RESERVATION_ACTIVE for one that is neither; those of acting as
// the agent.
func (o *Service) ForceReleaseFileReservation(ctx context.Context, c Caller, a ForceArgs) (out ForceReleased, err error) {
	t, err := c.target(a.ProjectKey)
	if err != nil {
		return out, toFault(err)
	}
	// What files and commits tell is found out before the transaction, which asks
	// the rows once more.
	watch := &watch{found: map[int64]*watched{}}
	err = o.readFrom(ctx, c, t, func(ctx context.Context, s *callTx) error {
		if err := s.settle(ctx); err != nil {
			return err
		}
		watch.of(s)
		return watch.addByID(ctx, a.ID)
	})
	if err == nil {
		err = watch.look(ctx, c)
	}
	if err != nil && !fault.HasCode(err, CodeNotFound) {
		return out, toFault(err)
	}
	err = o.writeTo(ctx, c, t, func(ctx context.Context, s *callTx) error {
		if err := s.forcing(ctx, a.AgentName); err != nil {
			return err
		}
		out, err = s.force(ctx, a, watch.found[a.ID])
		return err
	})
	return out, err
}

func (w *watch) addByID(ctx context.Context, id int64) error {
	r, err := findReservation(ctx, w.tx, selectReservationByID, id)
	if err != nil || r == nil || r.projectID != w.p.ID {
		return err
	}
	holder, err := findAgent(ctx, w.tx, selectAgentByID, r.agentID)
	if err != nil || holder == nil {
		return err
	}
	return w.add(ctx, r, holder.LastActive, holder.Worktree)
}

// forcing finds the actor, who may be the person at this machine.
func (s *callTx) forcing(ctx context.Context, name string) error {
	if s.caller.Owner && strings.EqualFold(strings.TrimSpace(name), Overseer) {
		_, err := s.overseer(ctx)
		return err
	}
	_, err := s.actor(ctx, name)
	return err
}

// force ends a reservation; seen is what was found out about it, nil for nothing.
func (s *callTx) force(ctx context.Context, a ForceArgs, seen *watched) (out ForceReleased, err error) {
	if err := s.settle(ctx); err != nil {
		return out, err
	}
	r, err := findReservation(ctx, s.tx, selectReservationByID, a.ID)
	switch {
	case err != nil:
		return out, err
	case r == nil || r.projectID != s.p.ID:
		return out, notFound("reservation", a.ID).suggest(checkCall(s.key, ".")).hint("cairn reservations list shows the numbers")
	case r.Released != 0:
		return ForceReleased{At: r.Released, Already: true}, nil
	}
	holder, err := findAgent(ctx, s.tx, selectAgentByID, r.agentID)
	if err != nil {
		return out, err
	}
	w := &watched{filesBusy: true, gitBusy: true} // nothing is known
	if seen != nil {
		w = seen
	}
	if w.mail, err = mailActivity(ctx, s.tx, holder.ID); err != nil {
		return out, err
	}
	w.agent, w.ended = holder.LastActive, false
	stale, signs := s.signs(w, s.now)
	if !stale && r.Expires > s.now && s.me.Name != Overseer {
		return out, s.stillActive(r, signs)
	}
	if _, err := s.release(ctx, []*Reservation{r}, releasedByForce); err != nil {
		return out, err
	}
	from := &ForcedFrom{
		r.ID, r.Agent, r.PathPattern, r.Exclusive, r.Reason, r.Created, r.Expires, r.Released, signs, false,
	}
	if !a.Quiet && holder.ID != s.me.ID {
		from.Notified, err = s.tellHolder(ctx, holder, from, a.Note)
	}
	return ForceReleased{Released: 1, At: r.Released, Reservation: from}, err
}

// stillActive is the error for a reservation whose holder may be at work.
func (s *callTx) stillActive(r *Reservation, signs HolderActivity) error {
	help := Call{Tool: "send_message", Arguments: map[string]any{
		"project_key": s.key, "sender_name": s.me.Name, "to": []string{r.Agent},
		"subject": "Reservation of " + clip(r.PathPattern, maxSubject), "body_md": "Could you release " + r.PathPattern + "?",
	}}
	hint := "write to the holder, or wait until the reservation is stale or has expired"
	if r.Agent == s.me.Name {
		hint = "it is your own: release_file_reservations ends it"
		help = Call{Tool: "release_file_reservations", Arguments: map[string]any{
			"project_key": s.key, "agent_name": s.me.Name, "file_reservation_ids": []int64{r.ID},
		}}
	}
	return problemf(CodeReserved, "%s still holds %s, until %s", r.Agent, quoted(r.PathPattern), r.Expires).
		with("holder", r.Agent).with("expires_ts", r.Expires).with("stale_reasons", signs.Reasons).suggest(help).hint(hint)
}

// tellHolder writes to who held a reservation; false if this agent takes no mail.
func (s *callTx) tellHolder(ctx context.Context, holder *Agent, r *ForcedFrom, note string) (bool, error) {
	if holder.Retired != 0 || holder.ContactPolicy == "block_all" || s.needRoom() != nil {
		return false, nil
	}
	body := s.me.Name + " released the reservation of " + r.PathPattern + ", which was yours until " + r.Expires.String() + ".\n"
	if len(r.Reasons) > 0 {
		body += "\nSigns: " + strings.Join(r.Reasons, ", ") + ".\n"
	}
	if note = strings.TrimSpace(note); note != "" {
		body += "\n" + note + "\n"
	}
	d, err := s.draft(clip("[file-reservations] Released stale lock on "+r.PathPattern, maxSubjectInput), body, "")
	if err != nil {
		return false, err
	}
	_, err = s.deliver(ctx, s.me, d, []recipient{{holder, s.p, fieldTo}})
	return err == nil, err
}

func checkCall(projectKey string, paths ...string) Call {
	return Call{Tool: "check_file_reservation_conflicts", Arguments: map[string]any{"project_key": projectKey, "paths": paths}}
}
