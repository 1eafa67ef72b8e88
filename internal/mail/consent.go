package mail

import (
	"context"
	"database/sql"
	"strings"

	"cairn/internal/pathpattern"
)

// Whether an agent may write to another one (mail §6). All of it is asked inside the
// transaction that delivers; an error there refuses everything.

// leave is the answer.
type leave int

const (
	needed  leave = iota // the recipient has to agree first
	granted              //
	barred               // never
)

const (
	selectLinks = `SELECT a_agent_id, status, ifnull(expires_ts, 0) FROM mail_contacts WHERE a_agent_id = ?1 AND b_agent_id = ?2
UNION ALL SELECT a_agent_id, status, ifnull(expires_ts, 0) FROM mail_contacts WHERE a_agent_id = ?2 AND b_agent_id = ?1`

	// A message of ?2 to ?1 since ?3.
	selectHeard = `SELECT EXISTS (SELECT 1 FROM mail_recipients r CROSS JOIN mail_messages m ON m.id = r.message_id
WHERE r.agent_id = ?1 AND r.created_ts >= ?3 AND m.sender_id = ?2)`

	// The same in the thread ?4 of the project ?5, to which the message numbered ?6
	// belongs that began it.
	selectHeardIn = `SELECT EXISTS (SELECT 1 FROM mail_recipients r CROSS JOIN mail_messages m ON m.id = r.message_id
WHERE r.agent_id = ?1 AND r.created_ts >= ?3 AND m.sender_id = ?2 AND m.project_id = ?5
AND (m.thread_id = ?4 OR m.id = ?6 AND m.thread_id IS NULL))`

	// Whether ?1 wrote one of the last 500 messages of a thread or openly got it.
	selectTakesPart = `SELECT EXISTS (SELECT 1 FROM (
    SELECT id, sender_id FROM mail_messages WHERE project_id = ?2 AND thread_id = ?3 ORDER BY created_ts DESC LIMIT 500) m
WHERE m.sender_id = ?1 OR EXISTS (SELECT 1 FROM mail_recipients r WHERE r.message_id = m.id AND r.agent_id = ?1 AND r.kind <> 'bcc'))
OR EXISTS (SELECT 1 FROM mail_messages m WHERE m.id = ?4 AND m.project_id = ?2 AND m.thread_id IS NULL AND (m.sender_id = ?1
    OR EXISTS (SELECT 1 FROM mail_recipients r WHERE r.message_id = m.id AND r.agent_id = ?1 AND r.kind <> 'bcc')))`

	selectPatterns = `SELECT path_pattern FROM mail_reservations WHERE project_id = ? AND agent_id = ? AND released_ts IS NULL AND expires_ts > ?`
)

// decide says whether a draft of an agent of this project may go to a recipient.
// The rules that grant are asked in the order of what they cost.
func (s *callTx) decide(ctx context.Context, from *Agent, to recipient, d *draft) (leave, error) {
	switch {
	case to.ID == from.ID:
		return granted, nil
	case to.Retired != 0:
		return barred, nil
	case from.Name == Overseer:
		return granted, nil
	case to.ContactPolicy == "block_all":
		return barred, nil
	}
	approved, blocked, err := s.linked(ctx, from.ID, to.ID)
	switch {
	case err != nil:
		return barred, err
	case blocked:
		return barred, nil
	case approved:
		return granted, nil
	case to.p.ID != s.p.ID:
		return needed, nil
	case s.config.NoContactEnforcement, to.ContactPolicy == "open":
		return granted, nil
	case to.ContactPolicy == "auto" && (!s.config.NoFirstContact || d.autoContact):
		return granted, nil
	}
	known, err := s.acquainted(ctx, from, to.Agent, d)
	if err != nil {
		return barred, err
	}
	if known {
		return granted, nil
	}
	return needed, nil
}

// linked reports whether two agents have agreed to write to each other, either way,
// and whether the second one has blocked the first.
func (s *callTx) linked(ctx context.Context, from, to int64) (approved, blocked bool, err error) {
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		var asked int64
		var status string
		var expires Time
		err := rows.Scan(&asked, &status, &expires)
		approved = approved || status == approvedLink && (expires == 0 || expires > s.now)
		blocked = blocked || status == blockedLink && asked == from
		return err
	}, selectLinks, from, to)
	return approved, blocked, err
}

// acquainted asks what two agents of this project have had to do with each other.
func (s *callTx) acquainted(ctx context.Context, from, to *Agent, d *draft) (known bool, err error) {
	since := s.now - Time(s.config.ContactWindow)
	ask := func(query string, args ...any) {
		if err == nil && !known {
			err = s.tx.Get(ctx, []any{&known}, query, args...)
		}
	}
	if d.thread != nil {
		ask(selectHeardIn, from.ID, to.ID, since, *d.thread, s.p.ID, beginning(d.thread))
	}
	if to.ContactPolicy != "auto" {
		return known, err
	}
	ask(selectHeard, from.ID, to.ID, since)
	ask(selectHeard, to.ID, from.ID, since)
	if d.thread != nil {
		ask(selectTakesPart, to.ID, s.p.ID, *d.thread, beginning(d.thread))
	}
	if err != nil || known {
		return known, err
	}
	return s.shareFiles(ctx, from, to)
}

// shareFiles reports whether both agents hold reservations that overlap.
func (s *callTx) shareFiles(ctx context.Context, a, b *Agent) (bool, error) {
	mine, err := s.heldBy(ctx, a)
	if err != nil || len(mine) == 0 {
		return false, err
	}
	theirs, err := s.heldBy(ctx, b)
	if err != nil {
		return false, err
	}
	// Those that may overlap: the prefix of one is that of the other or above it.
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

func (s *callTx) heldBy(ctx context.Context, a *Agent) (all []pathpattern.Pattern, err error) {
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		p, err := pathpattern.Parse(text, pathpattern.Options{FoldCase: s.p.FoldsCase})
		all = append(all, p)
		return err
	}, selectPatterns, s.p.ID, a.ID, s.now)
	return all, err
}

// blockedContact is the error where somebody takes no mail. It must not tell who or
// why.
func blockedContact() error {
	return problemf(CodeContactBlocked, "Recipient is not accepting messages.").hint("write to somebody else, or ask the person who oversees the agents")
}

// contactNeeded is the error where recipients have to agree first. Upon request each
// of them is asked, which stays although the message is refused.
func (s *callTx) contactNeeded(ctx context.Context, me *Agent, d *draft, asked []recipient) error {
	attempted := []string{}
	if d.autoContact {
		for _, r := range asked {
			if _, err := s.request(ctx, me, r, "", defaultRequestTTL, true); err != nil {
				return err
			}
			attempted = append(attempted, r.shown(s.p))
		}
	}
	var names, away, blocked []string
	var calls []Call
	for _, r := range asked {
		blocked = append(blocked, r.shown(s.p))
		ask := map[string]any{"project_key": s.key, "from_agent": me.Name, "to_agent": r.Name}
		shake := map[string]any{"project_key": s.key, "requester": me.Name, "target": r.Name}
		if r.p.ID == s.p.ID {
			names = append(names, r.Name)
		} else {
			away = append(away, r.Name+" @ "+r.p.HumanKey)
			ask["to_project"], shake["to_project"] = r.p.Slug, r.p.Slug
		}
		if len(calls) < 2*maxSuggestions {
			calls = append(calls, Call{"macro_contact_handshake", shake}, Call{"request_contact", ask})
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
	err := problemf(CodeContactRequired, "%s", strings.Join(text, " ")).with("recipients_blocked", blocked).with("remedies", remedies).
		with("auto_contact_attempted", attempted).suggest(calls...).hint(remedies[0])
	if len(attempted) > 0 {
		return filed{err}
	}
	return err
}
