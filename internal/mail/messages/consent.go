package messages

import (
	"context"
	"database/sql"
	"strings"

	"cairn/internal/mail"
	"cairn/internal/pathpattern"
)

// Whether an agent may write to another one is decided inside the transaction that delivers
// (mail §6). An error refuses the whole message.

// contactDecision is the decision whether a sender may write to a recipient.
type contactDecision int

const (
	contactRequired contactDecision = iota // the recipient must approve first
	contactAllowed
	contactBlocked // the recipient does not accept the message
)

const (
	selectLinks = `SELECT a_agent_id, status, ifnull(expires_ts, 0) FROM mail_contacts WHERE a_agent_id = ?1 AND b_agent_id = ?2
UNION ALL SELECT a_agent_id, status, ifnull(expires_ts, 0) FROM mail_contacts WHERE a_agent_id = ?2 AND b_agent_id = ?1`

	// Whether ?1 received a message from ?2 since ?3.
	selectHeard = `SELECT EXISTS (SELECT 1 FROM mail_recipients r CROSS JOIN mail_messages m ON m.id = r.message_id
WHERE r.agent_id = ?1 AND r.created_ts >= ?3 AND m.sender_id = ?2)`

	// The same in the thread ?4 of the project ?5. ?6 is the number of the message that
	// started the thread.
	selectHeardIn = `SELECT EXISTS (SELECT 1 FROM mail_recipients r CROSS JOIN mail_messages m ON m.id = r.message_id
WHERE r.agent_id = ?1 AND r.created_ts >= ?3 AND m.sender_id = ?2 AND m.project_id = ?5
AND (m.thread_id = ?4 OR m.id = ?6 AND m.thread_id IS NULL))`

	// Whether ?1 sent one of the last 500 messages of a thread, or received one openly.
	selectTakesPart = `SELECT EXISTS (SELECT 1 FROM (
    SELECT id, sender_id FROM mail_messages WHERE project_id = ?2 AND thread_id = ?3 ORDER BY created_ts DESC LIMIT 500) m
WHERE m.sender_id = ?1 OR EXISTS (SELECT 1 FROM mail_recipients r WHERE r.message_id = m.id AND r.agent_id = ?1 AND r.kind <> 'bcc'))
OR EXISTS (SELECT 1 FROM mail_messages m WHERE m.id = ?4 AND m.project_id = ?2 AND m.thread_id IS NULL AND (m.sender_id = ?1
    OR EXISTS (SELECT 1 FROM mail_recipients r WHERE r.message_id = m.id AND r.agent_id = ?1 AND r.kind <> 'bcc')))`

	selectPatterns = `SELECT path_pattern FROM mail_reservations WHERE project_id = ? AND agent_id = ? AND released_ts IS NULL AND expires_ts > ?`
)

// decide returns whether a draft of an agent of this project may be sent to a recipient. It
// checks cheap rules first.
func decide(ctx context.Context, s *mail.CallTx, from *mail.Agent, to Recipient, d *draft) (contactDecision, error) {
	switch {
	case to.ID == from.ID:
		return contactAllowed, nil
	case to.Retired != 0:
		return contactBlocked, nil
	case from.Name == mail.Overseer:
		return contactAllowed, nil
	case to.ContactPolicy == "block_all":
		return contactBlocked, nil
	}
	approved, blocked, err := linked(ctx, s, from.ID, to.ID)
	switch {
	case err != nil:
		return contactBlocked, err
	case blocked:
		return contactBlocked, nil
	case approved:
		return contactAllowed, nil
	case to.Project.ID != s.Project.ID:
		return contactRequired, nil
	case s.Config.NoContactEnforcement, to.ContactPolicy == "open":
		return contactAllowed, nil
	case to.ContactPolicy == "auto" && (!s.Config.NoFirstContact || d.autoContact):
		return contactAllowed, nil
	}
	known, err := acquainted(ctx, s, from, to.Agent, d)
	if err != nil {
		return contactBlocked, err
	}
	if known {
		return contactAllowed, nil
	}
	return contactRequired, nil
}

// linked reports whether two agents have an approved link in either direction, and whether the
// second agent has blocked the first.
func linked(ctx context.Context, s *mail.CallTx, from, to int64) (approved, blocked bool, err error) {
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var asked int64
		var status string
		var expires mail.Time
		err := rows.Scan(&asked, &status, &expires)
		approved = approved || status == approvedLink && (expires == 0 || expires > s.Now)
		blocked = blocked || status == blockedLink && asked == from
		return err
	}, selectLinks, from, to)
	return approved, blocked, err
}

// acquainted reports whether two agents of this project have been in contact recently. A
// message from the recipient in the draft's thread always counts. With policy auto, other
// messages, a common thread and overlapping reservations count, too.
func acquainted(ctx context.Context, s *mail.CallTx, from, to *mail.Agent, d *draft) (known bool, err error) {
	since := s.Now - mail.Time(s.Config.ContactWindow)
	ask := func(query string, args ...any) {
		if err == nil && !known {
			err = s.Tx.Get(ctx, []any{&known}, query, args...)
		}
	}
	if d.thread != nil {
		ask(selectHeardIn, from.ID, to.ID, since, *d.thread, s.Project.ID, mail.Beginning(d.thread))
	}
	if to.ContactPolicy != "auto" {
		return known, err
	}
	ask(selectHeard, from.ID, to.ID, since)
	ask(selectHeard, to.ID, from.ID, since)
	if d.thread != nil {
		ask(selectTakesPart, to.ID, s.Project.ID, *d.thread, mail.Beginning(d.thread))
	}
	if err != nil || known {
		return known, err
	}
	return shareFiles(ctx, s, from, to)
}

// shareFiles reports whether both agents hold reservations that overlap.
func shareFiles(ctx context.Context, s *mail.CallTx, a, b *mail.Agent) (bool, error) {
	mine, err := heldBy(ctx, s, a)
	if err != nil || len(mine) == 0 {
		return false, err
	}
	theirs, err := heldBy(ctx, s, b)
	if err != nil {
		return false, err
	}
	// Two patterns can overlap only if one prefix equals the other or is above it.
	at, below := map[string][]pathpattern.Pattern{}, map[string][]pathpattern.Pattern{}
	for _, p := range theirs {
		at[p.LiteralPrefix()] = append(at[p.LiteralPrefix()], p)
		for _, prefix := range p.Prefixes() {
			below[prefix] = append(below[prefix], p)
		}
	}
	for _, p := range mine {
		near := below[p.LiteralPrefix()]
		for _, prefix := range p.Prefixes() {
			near = append(near[:len(near):len(near)], at[prefix]...)
		}
		for _, other := range near {
			if pathpattern.Overlap(p, other) {
				return true, nil
			}
		}
	}
	return false, nil
}

func heldBy(ctx context.Context, s *mail.CallTx, a *mail.Agent) (all []pathpattern.Pattern, err error) {
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		p, err := pathpattern.Parse(text, pathpattern.Options{FoldCase: s.Project.FoldsCase})
		all = append(all, p)
		return err
	}, selectPatterns, s.Project.ID, a.ID, s.Now)
	return all, err
}

// blockedContact returns the error for a recipient that accepts no mail from the sender. It
// must not reveal the recipient or the reason.
func blockedContact() error {
	return mail.Errorf(mail.CodeContactBlocked, "Recipient is not accepting messages.").Hint("write to somebody else, or ask the person who oversees the agents")
}

// contactNeeded returns the error for recipients that must approve contact first. With
// autoContact, it also sends each of them a contact request. The requests are committed
// although the message is refused.
func contactNeeded(ctx context.Context, s *mail.CallTx, me *mail.Agent, d *draft, asked []Recipient) error {
	attempted := []string{}
	if d.autoContact {
		for _, r := range asked {
			if _, err := request(ctx, s, me, r, "", defaultRequestTTL, true); err != nil {
				return err
			}
			attempted = append(attempted, r.shown(s.Project))
		}
	}
	var names, away, blocked []string
	var calls []mail.Call
	for _, r := range asked {
		blocked = append(blocked, r.shown(s.Project))
		ask := map[string]any{"project_key": s.ProjectKey, "from_agent": me.Name, "to_agent": r.Name}
		shake := map[string]any{"project_key": s.ProjectKey, "requester": me.Name, "target": r.Name}
		if r.Project.ID == s.Project.ID {
			names = append(names, r.Name)
		} else {
			away = append(away, r.Name+" @ "+r.Project.HumanKey)
			ask["to_project"], shake["to_project"] = r.Project.Slug, r.Project.Slug
		}
		if len(calls) < 2*mail.MaxSuggestions {
			calls = append(calls, mail.Call{Tool: "macro_contact_handshake", Arguments: shake}, mail.Call{Tool: "request_contact", Arguments: ask})
		}
	}
	var text []string
	if len(names) > 0 {
		text = append(text, "Contact approval required for recipients: "+strings.Join(names, ", ")+".")
	}
	if len(away) > 0 {
		text = append(text, "external recipients missing approved contact links: "+strings.Join(away, "; "))
	}
	remedies := []string{
		"ask for contact with request_contact or macro_contact_handshake and wait until it is approved",
		"write to agents who take your mail", "let a recipient change its policy with set_contact_policy",
	}
	err := mail.Errorf(mail.CodeContactRequired, "%s", strings.Join(text, " ")).With("recipients_blocked", blocked).With("remedies", remedies).
		With("auto_contact_attempted", attempted).Suggest(calls...).Hint(remedies[0])
	if len(attempted) > 0 {
		return errorAfterCommit{err}
	}
	return err
}
