package web

import (
	"context"
	"net/http"

	"cairn/internal/mail"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/service"
)

// maxInbox is the maximum number of messages on an inbox page.
const maxInbox = 100

// inboxPage lists the messages of an agent, now or at a past moment.
type inboxPage struct {
	asOf
	Key    string          `json:"-"`
	Agent  string          `json:"agent"`
	Unread bool            `json:"unread_only,omitempty"`
	Items  []messages.Item `json:"messages"` // newest first
	More   bool            `json:"more,omitempty"`
	All    string          `json:"-"` // URLs of the same page with all and with unread messages
	News   string          `json:"-"`
}

func (p *inboxPage) live() bool { return p.At == "" }

// inbox shows the messages of an agent.
func (s *Site) inbox(r *http.Request, v Visitor, at place) (Response, error) {
	p := &inboxPage{asOf: s.readAsOf(r), Key: at.key, Agent: at.id, Unread: r.URL.Query().Get("unread") != "", All: with(r.URL, "unread", ""), News: with(r.URL, "unread", "yes")}
	n := maxInbox + 1
	args := messages.InboxArgs{ProjectKey: at.key, AgentName: at.id, Limit: &n, UnreadOnly: p.Unread, At: p.At}
	var err error
	p.Items, err = ask(r.Context(), s, func(ctx context.Context, o *service.Mail, c mail.Caller) ([]messages.Item, error) {
		if p.At == "" {
			return o.FetchInbox(ctx, c, args)
		}
		past, err := o.InboxAt(ctx, c, args)
		p.found(past.At)
		return past.Result, err
	})
	if err != nil {
		return Response{}, err
	}
	if p.More = len(p.Items) > maxInbox; p.More {
		p.Items = p.Items[:maxInbox]
	}
	return s.show(r, v, "inbox", "Inbox of "+at.id, p)
}
