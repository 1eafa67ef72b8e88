package mail

import (
	"context"
	"time"
)

// HandshakeArgs are the arguments of macro_contact_handshake.
type HandshakeArgs struct {
	ProjectKey      string  `arg:"project_key,required"`
	Requester       string  `arg:"requester,required,or=agent_name" about:"Who asks: your own name."`
	Target          string  `arg:"target,required,or=to_agent" about:"Whom it wants to write to."`
	ToProject       string  `arg:"to_project"`
	Reason          string  `arg:"reason,default=" about:"Why, for the message that asks."`
	TTLSeconds      *int64  `arg:"ttl_seconds,default=604800,min=60" about:"Seconds for which the approval holds, or the request waits."`
	AutoAccept      bool    `arg:"auto_accept" about:"Accept for the target too, where its policy is open or auto."`
	WelcomeSubject  *string `arg:"welcome_subject" about:"Subject of the first message."` // a message is sent if this or the body is there
	WelcomeBody     *string `arg:"welcome_body" about:"The first message, in Markdown. Without it and a subject none is sent."`
	ThreadID        string  `arg:"thread_id" about:"The thread of the first message."`
	NoRegister      bool    `arg:"register_if_missing,not" about:"Register the agent that asks if it does not exist and program and model are given."`
	Program         string  `arg:"program"`
	Model           string  `arg:"model"`
	TaskDescription string  `arg:"task_description" about:"What the registered agent works on."`
}

// Handshake is what macro_contact_handshake answers.
type Handshake struct {
	Request  Link     `json:"request"`
	Response *Link    `json:"response"`        // nil where the target has yet to answer
	Welcome  *Payload `json:"welcome_message"` // nil where none was wanted, or it may not be sent yet
}

// MacroContactHandshake asks for contact and, where the caller may speak for the target
// too, grants it (mail §6); then it sends a first message, if the target takes it.
// Contact that is granted at once is not asked for by a message.
//
// Errors: those of RequestContact and, for the message, of SendMessage but for
// those about contact.
func (o *Service) MacroContactHandshake(ctx context.Context, c Caller, a HandshakeArgs) (out Handshake, err error) {
	reason, err := o.line("reason", a.Reason, maxReason)
	if err != nil {
		return out, toFault(err)
	}
	away, err := c.awayFrom(a.ToProject)
	if err != nil {
		return out, toFault(err)
	}
	d, err := o.welcome(a)
	if err != nil {
		return out, toFault(err)
	}
	ttl := lifetime(a.TTLSeconds, defaultRequestTTL)
	err = o.writeIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *callTx) error {
		out = Handshake{}
		me, to, err := s.pair(ctx, RequestArgs{
			FromAgent: a.Requester, ToAgent: a.Target, NoRegister: a.NoRegister, Program: a.Program, Model: a.Model, TaskDescription: a.TaskDescription,
		}, away)
		if err != nil {
			return err
		}
		if err := s.shake(ctx, me, to, reason, ttl, a.AutoAccept, &out); err != nil || d == nil {
			return err
		}
		return s.greet(ctx, me, to, d, &out)
	})
	return out, err
}

// welcome is the first message of a handshake, nil for none.
func (o *Service) welcome(a HandshakeArgs) (d *draft, err error) {
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
	if d, err = o.draft(subject, body, ""); err != nil {
		return nil, err
	}
	d.thread, err = threadID(a.ThreadID)
	return d, err
}

// shake asks for contact and grants it where the caller may.
func (s *callTx) shake(ctx context.Context, me *Agent, to recipient, reason string, ttl time.Duration, accept bool, out *Handshake) error {
	speaks := accept && s.speaksFor(to)
	open := to.p.ID == s.p.ID && to.Retired == 0 && (to.ContactPolicy == "open" || to.ContactPolicy == "auto")
	grants := accept && (speaks || open)
	k, err := s.request(ctx, me, to, reason, ttl, !grants)
	if err != nil {
		return err
	}
	from := recipient{Agent: me, p: s.p}
	out.Request = linkOf(k, from, to)
	switch {
	case accept && k.Status == approvedLink: // it stands
		response := out.Request
		out.Response = &response
		return nil
	case !grants, k.Status == blockedLink && !speaks: // only the target ends a block
		return nil
	}
	if k, err = s.respond(ctx, from, to, true, nil, defaultLinkTTL); err != nil {
		return err
	}
	response := linkOf(k, from, to)
	out.Response = &response
	return nil
}

// speaksFor reports whether the caller has shown that it may act as an agent: by its
// token, or as the file's owner.
func (s *callTx) speaksFor(to recipient) bool {
	if s.caller.Owner {
		return true
	}
	return to.TokenSHA256 != nil && s.config.Tokens != TokensOff && s.checkToken(to.Agent) == nil
}

// greet sends the first message, if it may be sent.
func (s *callTx) greet(ctx context.Context, me *Agent, to recipient, d *draft, out *Handshake) error {
	to.kind = fieldTo
	leave, err := s.decide(ctx, me, to, d)
	if err != nil || leave != granted {
		return err
	}
	sent, err := s.deliver(ctx, me, d, []recipient{to})
	if err == nil {
		out.Welcome = &sent[0].Payload
	}
	return err
}
