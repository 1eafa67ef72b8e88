package messages

import (
	"context"
	"encoding/json"
	"slices"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/store"
)

const (
	selectLastTime = `SELECT ifnull(max(created_ts), 0) FROM mail_messages`
)

// FindMessage returns a message of this project with its recipients.
//
// Errors: NOT_FOUND, also for messages of other projects.
func FindMessage(ctx context.Context, s *mail.CallTx, id int64) (*mail.Message, error) {
	m, err := mail.QueryMessage(ctx, s.Tx, mail.SelectMessageByID, id)
	if err == nil && (m == nil || m.ProjectID != s.Project.ID) {
		return nil, noMessage(s, id)
	}
	return m, err
}

func noMessage(s *mail.CallTx, id int64) error {
	return mail.NotFound("message", id).With("message_id", id).With("project", s.Project.HumanKey).
		Hint("fetch_inbox and search_messages show the messages of the project")
}

// Deliver stores a message once in each project of its recipients. The sender's own project is
// first, the others follow in the order of their recipients. There must be at least one
// recipient. In another project the message comes from the sender's mirror there (mail §6).
//
// Errors: those of attaching its files.
func Deliver(ctx context.Context, s *mail.CallTx, me *mail.Agent, d *draft, all []Recipient) (out []Delivered, err error) {
	attached, err := attach(s, me, d)
	if err != nil {
		return nil, err
	}
	projects := []*mail.Project{s.Project}
	for _, r := range all {
		if !slices.ContainsFunc(projects, func(p *mail.Project) bool { return p.ID == r.Project.ID }) {
			projects = append(projects, r.Project)
		}
	}
	for _, p := range projects {
		there := slices.DeleteFunc(slices.Clone(all), func(r Recipient) bool { return r.Project.ID != p.ID })
		if len(there) == 0 {
			continue
		}
		in, from := s, me
		if p.ID != s.Project.ID {
			in = s.InProject(p)
			if from, err = mirror(ctx, in, me); err != nil {
				return nil, err
			}
		}
		m, err := post(ctx, in, from, d, attached, there)
		if err != nil {
			return nil, err
		}
		out = append(out, Delivered{p.HumanKey, PayloadOf(m)})
	}
	return out, nil
}

// attachments holds the files of a message as documents contain them.
type attachments struct {
	text  json.RawMessage // a JSON array
	blobs []*mail.Blob
}

// post stores a message from an agent of this project to agents of this project. It does not
// check the recipients. The message's time is later than that of every message in the store.
func post(ctx context.Context, s *mail.CallTx, from *mail.Agent, d *draft, attached attachments, to []Recipient) (*mail.Message, error) {
	m := &mail.Message{
		UID: store.NewID(), ProjectUID: s.Project.UID, From: from.Name, To: []string{}, CC: []string{}, BCC: []string{},
		ThreadID: d.thread, Topic: d.topic, Importance: d.importance, AckRequired: d.ackRequired, Subject: d.subject, Body: d.body,
		Attachments: attached.text, SenderID: from.ID, ProjectID: s.Project.ID,
	}
	if d.replyTo != nil {
		m.ReplyTo, m.ReplyToUID = &d.replyTo.ID, &d.replyTo.UID
	}
	for _, r := range to {
		switch r.Field {
		case FieldTo:
			m.To = append(m.To, r.Name)
		case fieldCC:
			m.CC = append(m.CC, r.Name)
		default:
			m.BCC = append(m.BCC, r.Name)
		}
	}
	slices.Sort(m.BCC) // no file of the archive contains their order
	if err := assignNumbers(ctx, s, m); err != nil {
		return nil, err
	}
	for _, b := range attached.blobs {
		blob := *b
		blob.ProjectUID = s.Project.UID
		if err := s.Put(ctx, &blob); err != nil {
			return nil, err
		}
	}
	return m, s.Put(ctx, m)
}

// assignNumbers sets a message's number, time, ordinal and path in the archive.
func assignNumbers(ctx context.Context, s *mail.CallTx, m *mail.Message) (err error) {
	if m.ID, err = mail.NextID(ctx, s.Tx, mail.MessageTable); err != nil {
		return err
	}
	var last mail.Time
	if err := s.Tx.Get(ctx, []any{&last}, selectLastTime); err != nil {
		return err
	}
	m.Created = max(s.Now, last+1000)
	if m.Ordinal, err = mail.NextOrdinal(ctx, s.Tx, s.Project.ID, mail.Month(m.Created)); err != nil {
		return err
	}
	m.ArchivePath = mail.MessagePath(m.Created, m.Subject, m.ID, m.Ordinal)
	return nil
}

// mirror returns the agent of this project that represents an agent of another project, and
// creates it if needed (mail §6). The mirror has the same name, with digits appended if
// another agent has that name. An agent of the same name, program and model counts as the same
// agent, unless it is protected or retired.
func mirror(ctx context.Context, s *mail.CallTx, of *mail.Agent) (*mail.Agent, error) {
	if of.Name == mail.Overseer {
		return agents.Overseer(ctx, s.InProject(s.Project))
	}
	home := of.ProjectUID + "/" + of.Name
	for digits := 0; digits <= 40; digits += 4 {
		name := of.Name
		if digits > 0 {
			name += "-" + mail.HashHex(home, digits)
		}
		a, err := mail.AgentByName(ctx, s.Tx, s.Project.ID, name)
		switch {
		case err != nil:
			return nil, err
		case a == nil:
			a = agents.NewAgent(s, name)
			a.Program, a.Model, a.Home = of.Program, of.Model, &home
			return added(ctx, s, a)
		case a.Home != nil && *a.Home == home, digits == 0 && isSame(s, a, of):
			return a, nil
		}
	}
	return nil, mail.Errorf(mail.CodeAgentName, "there is no name left for the mirror of %s", mail.Quoted(of.Name)).Hint("register under another name")
}

func isSame(s *mail.CallTx, a, of *mail.Agent) bool {
	return a.Home == nil && a.Program == of.Program && a.Model == of.Model && a.Retired == 0 && !s.IsProtected(a)
}
