package web

import (
	"context"
	"net/http"

	"cairn/internal/mail"
	"cairn/internal/mail/service"
)

// perPage is the maximum number of messages in a list.
const perPage = 50

func (s *Site) projects(r *http.Request, v Visitor, _ place) (Response, error) {
	all, err := ask(r.Context(), s, func(ctx context.Context, o *service.Mail, _ mail.Caller) ([]service.ProjectShort, error) {
		return o.Projects(ctx)
	})
	if err != nil {
		return Response{}, err
	}
	return s.show(r, v, "projects", "Mail", all)
}

func (s *Site) mailbox(r *http.Request, v Visitor, at place) (Response, error) {
	before, given := int64(0), r.URL.Query().Get("before")
	if given != "" {
		var err error
		if before, err = number("message", given); err != nil {
			return Response{}, err
		}
	}
	d, err := s.desk(r.Context(), at, before, perPage)
	if err != nil {
		return Response{}, err
	}
	return s.show(r, v, "mailbox", "Mail of "+d.Project.HumanKey, &mailbox{d, at.key, before})
}

// mailbox is a page of the messages of a project, newest first, and its agents.
type mailbox struct {
	service.ProjectOverview
	Key    string `json:"-"`
	Before int64  `json:"before,omitempty"` // id of the message that the page starts after, 0 for the newest
}

func (p *mailbox) live() bool { return p.Before == 0 }

func (s *Site) desk(ctx context.Context, at place, before int64, n int) (service.ProjectOverview, error) {
	return ask(ctx, s, func(ctx context.Context, o *service.Mail, c mail.Caller) (service.ProjectOverview, error) {
		return o.ProjectOverview(ctx, c, at.key, before, n)
	})
}

func (s *Site) letter(r *http.Request, v Visitor, at place) (Response, error) {
	id, err := number("message", at.id)
	if err != nil {
		return Response{}, err
	}
	m, err := ask(r.Context(), s, func(ctx context.Context, o *service.Mail, c mail.Caller) (service.MessageDetail, error) {
		return o.MessageDetail(ctx, c, at.key, id)
	})
	if err != nil {
		return Response{}, err
	}
	var thread []service.ThreadMessage
	if m.ThreadID != nil {
		t, err := s.messages(r.Context(), at.key, *m.ThreadID, false)
		if err != nil {
			return Response{}, err
		}
		thread = t.Messages
	}
	waiting, err := s.waits(r.Context(), m.Project.ProductID, id)
	if err != nil {
		return Response{}, err
	}
	a, err := s.page("letter", m.Subject, v, struct {
		service.MessageDetail
		Key     string
		Thread  []service.ThreadMessage
		Waiting *service.OverseerMessage // nil unless it waits for the user
	}{m, at.key, thread, waiting})
	a.Forms = waiting != nil
	return a, err
}

// waits returns a message that waits for the user, or nil if it does not wait.
func (s *Site) waits(ctx context.Context, projectID string, id int64) (*service.OverseerMessage, error) {
	all, err := ask(ctx, s, func(ctx context.Context, o *service.Mail, _ mail.Caller) ([]service.OverseerMessage, error) {
		return o.WaitingForOverseer(ctx, projectID)
	})
	for i := range all {
		if all[i].ID == id {
			return &all[i], err
		}
	}
	return nil, err
}

// acknowledge acknowledges a message as the user and marks it as read. A GET request
// redirects to the message. It is idempotent.
func (s *Site) acknowledge(r *http.Request, _ Visitor, at place) (Response, error) {
	id, err := number("message", at.id)
	if err == nil && r.Method == http.MethodPost {
		err = s.mail.Write(r.Context(), ownerCaller(), func(ctx context.Context, o *service.Mail, c mail.Caller) error {
			_, err := o.AcknowledgeMessage(ctx, c, at.key, mail.Overseer, id)
			return err
		})
	}
	return Response{To: under(at.key, "mail", at.id)}, err
}

func (s *Site) messages(ctx context.Context, key, thread string, bodies bool) (service.ThreadResource, error) {
	return ask(ctx, s, func(ctx context.Context, o *service.Mail, c mail.Caller) (service.ThreadResource, error) {
		return o.ThreadOf(ctx, c, key, thread, bodies)
	})
}

func (s *Site) thread(r *http.Request, v Visitor, at place) (Response, error) {
	t, err := s.messages(r.Context(), at.key, at.id, false)
	if err != nil {
		return Response{}, err
	}
	return s.page("thread", "Thread "+t.ThreadID, v, struct {
		service.ThreadResource
		Key string
	}{t, at.key})
}

func (s *Site) file(r *http.Request, _ Visitor, at place) (Response, error) {
	id, err := number("message", at.id)
	if err != nil {
		return Response{}, err
	}
	n, err := number("attachment", at.file)
	if err != nil {
		return Response{}, err
	}
	e, err := ask(r.Context(), s, func(ctx context.Context, o *service.Mail, c mail.Caller) (service.AttachmentContent, error) {
		return o.AttachmentContent(ctx, c, at.key, id, int(min(n, 1<<20)))
	})
	// The sender's media type is not passed on, because no browser may execute the
	// content.
	return Response{Type: "application/octet-stream", Body: e.Data, SaveAs: e.Name}, err
}
