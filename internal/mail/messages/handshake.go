package messages

import (
	"context"
	"time"

	"cairn/internal/mail"
)

// HandshakeArgs are the arguments of macro_contact_handshake.
type HandshakeArgs struct {
	ProjectKey      string  `arg:"project_key,required"`
	Requester       string  `arg:"requester,required,or=agent_name" about:"The asking agent: your own name."`
	Target          string  `arg:"target,required,or=to_agent" about:"The agent that it wants to write to."`
	ToProject       string  `arg:"to_project"`
	Reason          string  `arg:"reason,default=" about:"The reason, for the request message."`
	TTLSeconds      *int64  `arg:"ttl_seconds,default=604800,min=60" about:"Lifetime of the approval or the request in seconds."`
	AutoAccept      bool    `arg:"auto_accept" about:"Also accept for the target if its policy is open or auto."`
	WelcomeSubject  *string `arg:"welcome_subject" about:"Subject of the first message."` // a message is sent if this or the body is set
	WelcomeBody     *string `arg:"welcome_body" about:"The first message, in Markdown. No message is sent without body and subject."`
	ThreadID        string  `arg:"thread_id" about:"The thread of the first message."`
	NoRegister      bool    `arg:"register_if_missing,not" about:"Register the asking agent if it does not exist. Needs program and model."`
	Program         string  `arg:"program"`
	Model           string  `arg:"model"`
	TaskDescription string  `arg:"task_description" about:"What the registered agent works on."`
}

// Handshake is the result of macro_contact_handshake.
type Handshake struct {
	Request  Link     `json:"request"`
	Response *Link    `json:"response"`        // nil if the target has not responded yet
	Welcome  *Payload `json:"welcome_message"` // nil if none was requested, or it may not be sent yet
}

// MacroContactHandshake requests contact and approves it, if the caller may approve it for the
// target (mail §6). Then it sends a first message, if the target accepts it. A request that is
// approved immediately is not sent as a message.
//
// Errors: those of RequestContact and, for the message, those of SendMessage except those
// about contact.
func (o *Messages) MacroContactHandshake(ctx context.Context, c mail.Caller, a HandshakeArgs) (out Handshake, err error) {
	reason, err := o.Line("reason", a.Reason, mail.MaxReason)
	if err != nil {
		return out, mail.Fault(err)
	}
	away, err := awayFrom(&c, a.ToProject)
	if err != nil {
		return out, mail.Fault(err)
	}
	d, err := welcome(o.Kernel, a)
	if err != nil {
		return out, mail.Fault(err)
	}
	ttl := lifetime(a.TTLSeconds, defaultRequestTTL)
	err = o.WriteIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		out = Handshake{}
		me, to, err := pair(ctx, s, RequestArgs{
			FromAgent: a.Requester, ToAgent: a.Target, NoRegister: a.NoRegister, Program: a.Program, Model: a.Model, TaskDescription: a.TaskDescription,
		}, away)
		if err != nil {
			return err
		}
		if err := shake(ctx, s, me, to, reason, ttl, a.AutoAccept, &out); err != nil || d == nil {
			return err
		}
		return greet(ctx, s, me, to, d, &out)
	})
	return out, err
}

// welcome returns the first message of a handshake, nil if there is none.
func welcome(o *mail.Kernel, a HandshakeArgs) (d *draft, err error) {
	if a.WelcomeSubject == nil && a.WelcomeBody == nil {
		return nil, nil
	}
	subject, body := "", ""
	if a.WelcomeSubject != nil {
		subject = *a.WelcomeSubject
	}
	if a.WelcomeBody != nil {
		body = *a.WelcomeBody
	}
	if d, err = Draft(o, subject, body, ""); err != nil {
		return nil, err
	}
	d.thread, err = mail.ThreadID(a.ThreadID)
	return d, err
}

// shake requests contact and approves it if the caller may.
func shake(ctx context.Context, s *mail.CallTx, me *mail.Agent, to Recipient, reason string, ttl time.Duration, accept bool, out *Handshake) error {
	speaks := accept && speaksFor(s, to)
	open := to.Project.ID == s.Project.ID && to.Retired == 0 && (to.ContactPolicy == "open" || to.ContactPolicy == "auto")
	grants := accept && (speaks || open)
	k, err := request(ctx, s, me, to, reason, ttl, !grants)
	if err != nil {
		return err
	}
	from := Recipient{Agent: me, Project: s.Project}
	out.Request = linkOf(k, from, to)
	switch {
	case accept && k.Status == approvedLink: // it was approved before
		response := out.Request
		out.Response = &response
		return nil
	case !grants, k.Status == blockedLink && !speaks: // only the target ends a block
		return nil
	}
	if k, err = respond(ctx, s, from, to, true, nil, defaultLinkTTL); err != nil {
		return err
	}
	response := linkOf(k, from, to)
	out.Response = &response
	return nil
}

// speaksFor reports whether the caller may act as an agent: by the agent's token, or as the
// file's owner.
func speaksFor(s *mail.CallTx, to Recipient) bool {
	if s.Caller.Owner {
		return true
	}
	return to.TokenSHA256 != nil && s.Config.Tokens != mail.TokensOff && s.CheckToken(to.Agent) == nil
}

// greet sends the first message, if it may be sent.
func greet(ctx context.Context, s *mail.CallTx, me *mail.Agent, to Recipient, d *draft, out *Handshake) error {
	to.Field = FieldTo
	leave, err := decide(ctx, s, me, to, d)
	if err != nil || leave != contactAllowed {
		return err
	}
	sent, err := Deliver(ctx, s, me, d, []Recipient{to})
	if err == nil {
		out.Welcome = &sent[0].Payload
	}
	return err
}
