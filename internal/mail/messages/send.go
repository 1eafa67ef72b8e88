package messages

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
)

// Header is a message in lists (mail §5, shapes).
type Header struct {
	ID          int64           `json:"id"`
	ProjectID   int64           `json:"project_id"`
	SenderID    int64           `json:"sender_id"`
	ThreadID    *string         `json:"thread_id"`
	Subject     string          `json:"subject"`
	Importance  string          `json:"importance"`
	AckRequired bool            `json:"ack_required"`
	Created     mail.Time       `json:"created_ts"`
	Attachments json.RawMessage `json:"attachments"` // a JSON array
	From        string          `json:"from"`
}

// Payload is a message as its sender sees it, with the recipients of blind copies.
type Payload struct {
	Header
	Body *string  `json:"body_md,omitempty"` // nil if bodies were not requested
	To   []string `json:"to"`
	CC   []string `json:"cc"`
	BCC  []string `json:"bcc"`
}

func HeaderOf(m *mail.Message) Header {
	return Header{
		m.ID, m.ProjectID, m.SenderID, m.ThreadID, m.Subject, m.Importance, m.AckRequired, m.Created, m.AttachmentsJSON(), m.From,
	}
}

func PayloadOf(m *mail.Message) Payload {
	return Payload{HeaderOf(m), &m.Body, mail.NonNil(m.To), mail.NonNil(m.CC), mail.NonNil(m.BCC)}
}

// SendArgs are the arguments of send_message. Recipients are names, Name@project or
// project:slug#Name.
type SendArgs struct {
	ProjectKey      string   `arg:"project_key,required" lean:"The repository's path."`
	SenderName      string   `arg:"sender_name,required" about:"Your own agent name in the project."`
	To              []string `arg:"to,required,names" about:"List of the recipients' names; empty with broadcast."`
	Subject         string   `arg:"subject,required" about:"One line, at most 200 characters."`                        // at most 1 KiB; 200 characters are kept
	Body            string   `arg:"body_md,required" about:"The message in Markdown, at most 1 MiB." lean:"Markdown."` // at most Config.MaxBody
	CC              []string `arg:"cc,names"`
	BCC             []string `arg:"bcc,names"`
	AttachmentPaths []string `arg:"attachment_paths" about:"Files to attach, each up to 10 MiB: absolute, or relative to the repository."`
	Importance      string   `arg:"importance,default=normal,enum=low|normal|high|urgent" about:"The importance of the message."`
	AckRequired     bool     `arg:"ack_required" about:"Ask the recipients to acknowledge the message." lean:""`
	ThreadID        string   `arg:"thread_id" about:"The thread of the message, such as TKT-7: letters, digits, dots, hyphens, underscores." lean:""`
	Topic           string   `arg:"topic" about:"A label for filtering inboxes: up to 64 letters, digits, dots, hyphens, underscores."`
	Broadcast       bool     `arg:"broadcast" about:"Write to every agent of the project that was active within 30 days; to is an empty list then, without cc and bcc."`
	AutoContact     bool     `arg:"auto_contact_if_blocked" about:"If recipients require approval, ask them for it instead of only refusing the message."`
	IdempotencyKey  string   `arg:"idempotency_key"`
}

// Delivered is a message as stored in one project.
type Delivered struct {
	Project string  `json:"project"` // human_key
	Payload Payload `json:"payload"`
}

// Sent is the result of send_message.
type Sent struct {
	Deliveries  []Delivered     `json:"deliveries"` // one per project, the sender's first
	Count       int             `json:"count"`      // of deliveries
	Attachments json.RawMessage `json:"attachments"`
	Skipped     []string        `json:"skipped,omitempty"` // recipients of a broadcast that accept no mail from the sender
}

const (
	MaxSubjectInput = 1 << 10 // bytes
)

// draft is a message before it has recipients and a number.
type draft struct {
	subject, body string
	importance    string // "" for normal
	ackRequired   bool
	thread, topic *string
	replyTo       *mail.Message
	files         []file
	noFiles       error // the error of reading the files
	autoContact   bool
}

// Draft checks the text of a message and removes secrets.
//
// Errors: INVALID_ARGUMENT, MESSAGE_TOO_LARGE, INVALID_THREAD_ID, INVALID_TOPIC.
func Draft(o *mail.Kernel, subject, body, importance string) (d *draft, err error) {
	d = &draft{importance: importance}
	mail.Default(&d.importance, "normal")
	switch {
	case len(subject) > MaxSubjectInput:
		return nil, tooLarge("subject", len(subject), MaxSubjectInput)
	case len(body) > o.Config.MaxBody:
		return nil, tooLarge("body_md", len(body), o.Config.MaxBody)
	case !isImportance(d.importance):
		return nil, badImportance(importance)
	}
	if d.subject, err = o.Line("subject", subject, mail.MaxSubject); err != nil {
		return nil, err
	}
	d.body, err = o.Text("body_md", body)
	return d, err
}

func tooLarge(field string, bytes, most int) *mail.Error {
	return mail.Errorf(mail.CodeTooLarge, "%s has %d bytes; at most %d are taken", field, bytes, most).
		With("field", field).With("bytes", bytes).With("max", most).Hint("shorten it, or put the text into a file and attach that")
}

func isImportance(word string) bool {
	return word == "low" || word == "normal" || word == "high" || word == "urgent"
}

func badImportance(given string) error {
	return mail.InvalidArgument("importance", given, "importance is low, normal, high or urgent, not %s", mail.Quoted(given))
}

// SendMessage sends a message to agents of this project or of others (mail §6). Either all
// recipients get it or, on any error, none. Each call creates a new message, unless the
// idempotency key returns an earlier one.
//
// Errors: those of acting as the sender; INVALID_ARGUMENT, MESSAGE_TOO_LARGE,
// INVALID_THREAD_ID, INVALID_TOPIC, INVALID_PATH; RECIPIENT_NOT_FOUND, BROADCAST_ATTEMPT,
// EMAIL_AS_AGENT, NOT_FOUND for recipients; CONTACT_BLOCKED and CONTACT_REQUIRED;
// IDEMPOTENCY_CONFLICT; DISK_FULL. After CONTACT_REQUIRED with AutoContact, the contact
// requests that the details name are stored.
func (o *Messages) SendMessage(ctx context.Context, c mail.Caller, a SendArgs) (out Sent, err error) {
	d, to, err := prepared(o.Kernel, &c, a)
	if err != nil {
		return out, mail.Fault(err)
	}
	t, err := c.Target(a.ProjectKey)
	if err != nil {
		return out, mail.Fault(err)
	}
	d.files, d.noFiles = readFiles(ctx, o.Kernel, t, a.AttachmentPaths)
	counted := a
	counted.ProjectKey, counted.SenderName, counted.IdempotencyKey = "", "", ""
	var refused error
	err = o.WriteTo(ctx, c, t, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ActAs(ctx, a.SenderName)
		if err != nil {
			return err
		}
		out, err = mail.RunOnce(ctx, s, "send_message", a.IdempotencyKey, counted, func() (Sent, error) {
			return send(ctx, s, me, d, to, a.Broadcast)
		})
		refused, err = filedOr(err)
		return err
	})
	if err == nil {
		err = refused
	}
	return out, err
}

// errorAfterCommit is an error after which the transaction is committed, since contact
// requests are stored.
type errorAfterCommit struct{ error }

// filedOr separates an error that keeps the transaction from one that rolls it back.
func filedOr(err error) (stays, ends error) {
	if f, ok := err.(errorAfterCommit); ok {
		return mail.Fault(f.error), nil
	}
	return nil, err
}

// prepared checks the arguments of send_message that do not need the store.
func prepared(o *mail.Kernel, c *mail.Caller, a SendArgs) (d *draft, to []address, err error) {
	if d, err = Draft(o, a.Subject, a.Body, a.Importance); err != nil {
		return nil, nil, err
	}
	d.ackRequired, d.autoContact = a.AckRequired, a.AutoContact
	if d.thread, err = mail.ThreadID(a.ThreadID); err != nil {
		return nil, nil, err
	}
	if d.topic, err = mail.TopicOf(a.Topic); err != nil {
		return nil, nil, err
	}
	to, err = allAddresses(c, a.To, a.CC, a.BCC)
	switch {
	case err != nil:
		return nil, nil, err
	case a.Broadcast && len(to) > 0:
		return nil, nil, mail.InvalidArgument("broadcast", true, "a broadcast goes to everybody and excludes to, cc and bcc")
	case !a.Broadcast && len(to) == 0:
		return nil, nil, noRecipient()
	}
	return d, to, nil
}

func noRecipient() error {
	return mail.InvalidArgument(FieldTo, []string{}, "At least one recipient is needed in to, cc or bcc")
}

// maxNamed is the maximum number of names in all fields together, including duplicates.
const maxNamed = 5 * maxRecipients

func allAddresses(c *mail.Caller, to, cc, bcc []string) (out []address, err error) {
	if n := len(to) + len(cc) + len(bcc); n > maxNamed {
		return nil, mail.InvalidArgument(FieldTo, n, "a message has at most %d recipients, not %d", maxRecipients, n)
	}
	for _, field := range [...]struct {
		kind string
		list []string
	}{{FieldTo, to}, {fieldCC, cc}, {fieldBCC, bcc}} {
		more, err := addresses(c, field.kind, field.list)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// send is SendMessage inside a call.
func send(ctx context.Context, s *mail.CallTx, me *mail.Agent, d *draft, to []address, broadcast bool) (out Sent, err error) {
	if err := s.RequireDiskSpace(); err != nil {
		return out, err
	}
	var all []Recipient
	if broadcast {
		all, out.Skipped, err = broadcastRecipients(ctx, s, me, d)
	} else {
		all, err = allowedRecipients(ctx, s, me, d, to)
	}
	if err != nil {
		return out, err
	}
	if out.Deliveries, err = Deliver(ctx, s, me, d, all); err != nil {
		return out, err
	}
	out.Count, out.Attachments = len(out.Deliveries), out.Deliveries[0].Payload.Attachments
	return out, nil
}

// broadcastRecipients returns the recipients of a broadcast, and the names of those that
// accept no mail from the sender.
func broadcastRecipients(ctx context.Context, s *mail.CallTx, me *mail.Agent, d *draft) (all []Recipient, skipped []string, err error) {
	everybody, err := broadcastCandidates(ctx, s, me)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range everybody {
		switch leave, err := decide(ctx, s, me, r, d); {
		case err != nil:
			return nil, nil, err
		case leave == contactAllowed:
			all = append(all, r)
		default:
			skipped = append(skipped, r.Name)
		}
	}
	if len(all) == 0 {
		return nil, nil, mail.InvalidArgument("broadcast", true, "there is nobody whom a broadcast would reach").With("skipped", mail.NonNil(skipped))
	}
	return all, skipped, nil
}

// allowedRecipients returns the recipients of addresses, or an error if one of them accepts no
// mail from the sender.
func allowedRecipients(ctx context.Context, s *mail.CallTx, me *mail.Agent, d *draft, to []address) ([]Recipient, error) {
	all, err := recipients(ctx, s, to)
	if err != nil {
		return nil, err
	}
	var asked []Recipient
	for _, r := range all {
		switch leave, err := decide(ctx, s, me, r, d); {
		case err != nil:
			return nil, err
		case leave == contactBlocked:
			return nil, blockedContact()
		case leave == contactRequired:
			asked = append(asked, r)
		}
	}
	if len(asked) > 0 {
		return nil, contactNeeded(ctx, s, me, d, asked)
	}
	return all, nil
}

// ReplyArgs are the arguments of reply_message.
type ReplyArgs struct {
	ProjectKey      string   `arg:"project_key,required"`
	MessageID       int64    `arg:"message_id,required" about:"Id of the message to answer, a number."`
	SenderName      string   `arg:"sender_name,required" about:"Your own agent name in the project."`
	Body            string   `arg:"body_md,required" about:"The answer in Markdown."`
	To              []string `arg:"to,names" about:"Names of the recipients, if not the sender."` // nil: the sender of the message, or its recipients if the caller sent it
	CC              []string `arg:"cc,names"`
	BCC             []string `arg:"bcc,names"`
	SubjectPrefix   *string  `arg:"subject_prefix,default=Re:" about:"Prefix of the subject, added if it is missing."`
	AttachmentPaths []string `arg:"attachment_paths" about:"Files to attach: absolute, or relative to the repository."`
	IdempotencyKey  string   `arg:"idempotency_key"`
}

// Reply is the result of reply_message: the first delivery, and all of them.
type Reply struct {
	Payload
	ReplyTo    int64       `json:"reply_to"`
	Deliveries []Delivered `json:"deliveries"`
	Count      int         `json:"count"`
}

// ReplyMessage replies to a message, in its thread or in a new one named by its number. The
// reply has the message's importance and ack_required (mail §6).
//
// Errors: those of SendMessage; NOT_FOUND for the message.
func (o *Messages) ReplyMessage(ctx context.Context, c mail.Caller, a ReplyArgs) (out Reply, err error) {
	d, err := Draft(o.Kernel, "", a.Body, "")
	if err != nil {
		return out, mail.Fault(err)
	}
	prefix := "Re:"
	if a.SubjectPrefix != nil {
		if prefix, err = o.Line("subject_prefix", *a.SubjectPrefix, mail.MaxSubject); err != nil {
			return out, mail.Fault(err)
		}
	}
	to, err := allAddresses(&c, a.To, a.CC, a.BCC)
	if err != nil {
		return out, mail.Fault(err)
	}
	t, err := c.Target(a.ProjectKey)
	if err != nil {
		return out, mail.Fault(err)
	}
	d.files, d.noFiles = readFiles(ctx, o.Kernel, t, a.AttachmentPaths)
	counted := a
	counted.ProjectKey, counted.SenderName, counted.IdempotencyKey = "", "", ""
	err = o.WriteTo(ctx, c, t, func(ctx context.Context, s *mail.CallTx) error {
		me, err := s.ActAs(ctx, a.SenderName)
		if err != nil {
			return err
		}
		out, err = mail.RunOnce(ctx, s, "reply_message", a.IdempotencyKey, counted, func() (Reply, error) {
			m, err := FindMessage(ctx, s, a.MessageID)
			if err != nil {
				return Reply{}, err
			}
			all := to
			if len(a.To) == 0 {
				all = append(answerTo(m, me), to...)
			}
			return reply(ctx, s, me, d.answers(m, prefix), all)
		})
		return err
	})
	return out, err
}

// answers returns a draft as the reply to a message.
func (d draft) answers(m *mail.Message, prefix string) *draft {
	d.replyTo, d.importance, d.ackRequired = m, m.Importance, m.AckRequired
	d.thread = m.ThreadID
	if d.thread == nil {
		d.thread = mail.OrNil(mail.Decimal(m.ID))
	}
	d.subject = m.Subject
	if begins := len(d.subject) >= len(prefix) && strings.EqualFold(mail.Clip(d.subject, len(prefix)), prefix); !begins {
		d.subject = mail.Truncate(strings.TrimSpace(prefix+" "+m.Subject), mail.MaxSubject)
	}
	return &d
}

// answerTo returns the default recipients of a reply.
func answerTo(m *mail.Message, me *mail.Agent) []address {
	names := []string{m.From}
	if m.SenderID == me.ID {
		names = m.To
	}
	var out []address
	for _, name := range names {
		out = append(out, address{kind: FieldTo, given: name, name: name})
	}
	return out
}

func reply(ctx context.Context, s *mail.CallTx, me *mail.Agent, d *draft, to []address) (out Reply, err error) {
	if len(to) == 0 {
		return out, noRecipient()
	}
	sent, err := send(ctx, s, me, d, to, false)
	if err != nil {
		return out, err
	}
	return Reply{sent.Deliveries[0].Payload, d.replyTo.ID, sent.Deliveries, sent.Count}, nil
}

// OverseerArgs are the arguments of Overseer.
type OverseerArgs struct {
	ProjectKey     string
	To             []string // at most 100
	Subject        string   // at most 200 characters
	Body           string   // at most 50,000 characters
	ThreadID       string   // "" for none
	AckRequired    bool
	IdempotencyKey string
}

const (
	maxOverseerTo   = 100
	maxOverseerBody = 50_000
)

// Overseer sends mail of high importance from the human overseer. It does not require contact.
// The caller must have proved to be the overseer and states so by c.Owner (mail §4).
//
// Errors: CAPABILITY_DENIED without c.Owner, else those of SendMessage.
func (o *Messages) Overseer(ctx context.Context, c mail.Caller, a OverseerArgs) (out Sent, err error) {
	switch {
	case !c.Owner:
		err = mail.Errorf(mail.CodeDenied, "only the person who oversees the agents writes as %s", mail.Overseer).Hint("write as an agent of your own with send_message")
	case len(a.To) > maxOverseerTo:
		err = mail.InvalidArgument(FieldTo, len(a.To), "%s writes to at most %d agents at once, not %d", mail.Overseer, maxOverseerTo, len(a.To))
	case utf8.RuneCountInString(a.Subject) > mail.MaxSubject:
		err = tooLarge("subject", len(a.Subject), mail.MaxSubject)
	case utf8.RuneCountInString(a.Body) > maxOverseerBody:
		err = tooLarge("body_md", len(a.Body), maxOverseerBody)
	}
	if err != nil {
		return out, mail.Fault(err)
	}
	d, to, err := prepared(o.Kernel, &c, SendArgs{To: a.To, Subject: a.Subject, Body: a.Body, Importance: "high", AckRequired: a.AckRequired, ThreadID: a.ThreadID})
	if err != nil {
		return out, mail.Fault(err)
	}
	counted := a
	counted.ProjectKey, counted.IdempotencyKey = "", ""
	err = o.WriteIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := agents.Overseer(ctx, s)
		if err != nil {
			return err
		}
		out, err = mail.RunOnce(ctx, s, "overseer", a.IdempotencyKey, counted, func() (Sent, error) {
			return send(ctx, s, me, d, to, false)
		})
		return err
	})
	return out, err
}
