package mail

import (
	"context"
	"encoding/json"
	"slices"

	"cairn/internal/store"
)

const (
	selectLastTime = `SELECT ifnull(max(created_ts), 0) FROM mail_messages`
)

// message finds a message of this project with its recipients.
//
// Errors: NOT_FOUND, for those of other projects too.
func (s *callTx) message(ctx context.Context, id int64) (*Message, error) {
	m, err := findMessage(ctx, s.tx, selectMessageByID, id)
	if err == nil && (m == nil || m.projectID != s.p.ID) {
		return nil, s.noMessage(id)
	}
	return m, err
}

func (s *callTx) noMessage(id int64) error {
	return notFound("message", id).with("message_id", id).with("project", s.p.HumanKey).
		hint("fetch_inbox and search_messages show the messages of the project")
}

// deliver stores a message once in each project that it goes to, the sender's own
// first, the others in the order of their recipients, of whom there is at least one.
// In another project it comes from the sender's mirror there (mail §6).
//
// Errors: those of attaching its files.
func (s *callTx) deliver(ctx context.Context, me *Agent, d *draft, all []recipient) (out []Delivered, err error) {
	attached, err := s.attach(me, d)
	if err != nil {
		return nil, err
	}
	projects := []*Project{s.p}
	for _, r := range all {
		if !slices.ContainsFunc(projects, func(p *Project) bool { return p.ID == r.p.ID }) {
			projects = append(projects, r.p)
		}
	}
	for _, p := range projects {
		there := slices.DeleteFunc(slices.Clone(all), func(r recipient) bool { return r.p.ID != p.ID })
		if len(there) == 0 {
			continue
		}
		in, from := s, me
		if p.ID != s.p.ID {
			in = s.other(p)
			if from, err = in.mirror(ctx, me); err != nil {
				return nil, err
			}
		}
		m, err := in.post(ctx, from, d, attached, there)
		if err != nil {
			return nil, err
		}
		out = append(out, Delivered{p.HumanKey, m.payload()})
	}
	return out, nil
}

// attachments are files as the documents hold them.
type attachments struct {
	text  json.RawMessage // a JSON array
	blobs []*Blob
}

// post stores a message of an agent of this project for agents of this project,
// whoever they are; it checks nothing. Its time is later than that of every message
// of the store.
func (s *callTx) post(ctx context.Context, from *Agent, d *draft, attached attachments, to []recipient) (*Message, error) {
	m := &Message{
		UID: store.NewID(), ProjectUID: s.p.UID, From: from.Name, To: []string{}, CC: []string{}, BCC: []string{},
		ThreadID: d.thread, Topic: d.topic, Importance: d.importance, AckRequired: d.ackRequired, Subject: d.subject, Body: d.body,
		Attachments: attached.text, senderID: from.ID, projectID: s.p.ID,
	}
	if d.replyTo != nil {
		m.ReplyTo, m.ReplyToUID = &d.replyTo.ID, &d.replyTo.UID
	}
	for _, r := range to {
		switch r.kind {
		case fieldTo:
			m.To = append(m.To, r.Name)
		case fieldCC:
			m.CC = append(m.CC, r.Name)
		default:
			m.BCC = append(m.BCC, r.Name)
		}
	}
	slices.Sort(m.BCC) // no file of the archive tells their order
	if err := s.number(ctx, m); err != nil {
		return nil, err
	}
	for _, b := range attached.blobs {
		blob := *b
		blob.ProjectUID = s.p.UID
		if err := s.put(ctx, &blob); err != nil {
			return nil, err
		}
	}
	return m, s.put(ctx, m)
}

// number gives a message its number, its time and its place in the archive.
func (s *callTx) number(ctx context.Context, m *Message) (err error) {
	if m.ID, err = nextID(ctx, s.tx, "mail_messages"); err != nil {
		return err
	}
	var last Time
	if err := s.tx.Get(ctx, []any{&last}, selectLastTime); err != nil {
		return err
	}
	m.Created = max(s.now, last+1000)
	if m.Ordinal, err = nextOrdinal(ctx, s.tx, s.p.ID, month(m.Created)); err != nil {
		return err
	}
	m.ArchivePath = messagePath(m.Created, m.Subject, m.ID, m.Ordinal)
	return nil
}

// mirror is the agent of this project that stands for one of another project, made
// if need be: under its name or, where that is somebody else's, with some digits
// behind it (mail §6). An agent of the same name, program and model is taken for the
// same one, unless it is protected or retired.
func (s *callTx) mirror(ctx context.Context, of *Agent) (*Agent, error) {
	if of.Name == Overseer {
		return s.other(s.p).overseer(ctx)
	}
	home := of.ProjectUID + "/" + of.Name
	for digits := 0; digits <= 40; digits += 4 {
		name := of.Name
		if digits > 0 {
			name += "-" + hexOf(home, digits)
		}
		a, err := agentByName(ctx, s.tx, s.p.ID, name)
		switch {
		case err != nil:
			return nil, err
		case a == nil:
			a = s.newAgent(name)
			a.Program, a.Model, a.Home = of.Program, of.Model, &home
			return s.added(ctx, a)
		case a.Home != nil && *a.Home == home, digits == 0 && s.isSame(a, of):
			return a, nil
		}
	}
	return nil, problemf(CodeAgentName, "there is no name left for the mirror of %s", quoted(of.Name)).hint("register under another name")
}

func (s *callTx) isSame(a, of *Agent) bool {
	return a.Home == nil && a.Program == of.Program && a.Model == of.Model && a.Retired == 0 && !s.isProtected(a)
}
