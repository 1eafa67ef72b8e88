package mcp

import (
	"context"
	"reflect"

	"cairn"
	"cairn/internal/mail"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/service"
	"cairn/internal/mcp/toolargs"
)

// MailResources returns the mail resources (contract mail §5). Reading them changes
// nothing.
func MailResources(m cairn.Mail, o MailOptions) []Resource {
	t := newMailTools(m, o)
	all := append(t.projectResources(), t.boxResources()...)
	for i := range all {
		r := &all[i]
		r.params, r.do = toolargs.ParamsOf(r.in, r.common), t.withRecover(r.Name, r.do)
		for j := range r.params {
			r.params[j].Style = toolargs.MailStyle
		}
	}
	return all
}

// queryActor is for resources: the token is an unlisted argument of the query.
type queryActor struct {
	Token string `arg:"registration_token,unlisted"`
}

func (a queryActor) credentials() (token, session string) { return a.Token, "" }

// mailResource returns a resource that is read by a method.
func mailResource[A, T any](t *mailTools, r Resource, read method[A, T]) Resource {
	r.in, r.common, r.do = reflect.TypeFor[A](), reflect.TypeFor[queryActor](), t.handler(true, read.untyped())
	return r
}

// The arguments of resources. The last part of the address comes after the query's.
type (
	projectAddress struct {
		Key string `arg:"key,last"`
	}
	agentsAddress struct {
		Project string `arg:"project_key,last"`
	}
	messageAddress struct {
		Project string `arg:"project,required"`
		ID      int64  `arg:"id,last"`
	}
	threadAddress struct {
		Project       string `arg:"project,required"`
		IncludeBodies bool   `arg:"include_bodies"`
		ID            string `arg:"id,last"`
	}
	reservationsAddress struct {
		Ended bool   `arg:"active_only,not"`
		At    string `arg:"at"`
		Slug  string `arg:"slug,last"`
	}
	boxAddress struct {
		Project       string `arg:"project,required"`
		Limit         *int   `arg:"limit"`
		Since         string `arg:"since_ts,or=since"`
		UrgentOnly    bool   `arg:"urgent_only"`
		UnreadOnly    bool   `arg:"unread_only"`
		IncludeBodies bool   `arg:"include_bodies"`
		Topic         string `arg:"topic"`
		At            string `arg:"at"`
		Agent         string `arg:"agent,last"`
	}
	viewAddress struct {
		Project string `arg:"project,required"`
		Limit   *int   `arg:"limit"`
		Agent   string `arg:"agent,last"`
	}
	staleAddress struct {
		viewAddress
		TTL *int64 `arg:"ttl_seconds"`
	}
	overdueAddress struct {
		viewAddress
		TTL *int64 `arg:"ttl_minutes"`
	}
)

func (t *mailTools) projectResources() []Resource {
	return []Resource{
		mailResource(t, Resource{Name: "projects", Address: "projects", Description: "All projects."},
			func(o *service.Mail, ctx context.Context, _ mail.Caller, _ struct{}) ([]service.ProjectShort, error) {
				return o.Projects(ctx)
			}),
		mailResource(t, Resource{Name: "project", Address: "project/", Description: "A project and its agents."},
			func(o *service.Mail, ctx context.Context, c mail.Caller, a projectAddress) (service.ProjectResource, error) {
				return o.ProjectOf(ctx, c, a.Key)
			}),
		mailResource(t, Resource{Name: "agents", Address: "agents/", Description: "The agents of a project."},
			func(o *service.Mail, ctx context.Context, c mail.Caller, a agentsAddress) (service.AgentsResource, error) {
				return o.AgentsOf(ctx, c, a.Project)
			}),
		mailResource(t, Resource{Name: "message", Address: "message/", Description: "A whole message."},
			func(o *service.Mail, ctx context.Context, c mail.Caller, a messageAddress) (service.ThreadMessage, error) {
				return o.MessageOf(ctx, c, a.Project, a.ID)
			}),
		mailResource(t, Resource{Name: "thread", Address: "thread/", Description: "A thread, oldest message first."},
			func(o *service.Mail, ctx context.Context, c mail.Caller, a threadAddress) (service.ThreadResource, error) {
				return o.ThreadOf(ctx, c, a.Project, a.ID, a.IncludeBodies)
			}),
		mailResource(t, Resource{Name: "file_reservations", Address: "file_reservations/", Description: "The reserved files and their holders."},
			func(o *service.Mail, ctx context.Context, c mail.Caller, a reservationsAddress) (any, error) {
				if a.At != "" {
					return o.FileReservationsAt(ctx, c, a.Slug, a.Ended, a.At)
				}
				return o.FileReservations(ctx, c, a.Slug, a.Ended)
			}),
	}
}

func (t *mailTools) boxResources() []Resource {
	inbox := func(o *service.Mail, ctx context.Context, c mail.Caller, a boxAddress) (service.InboxResource, error) {
		return o.Inbox(ctx, c, a.box())
	}
	return []Resource{
		mailResource(t, Resource{Name: "inbox", Address: "inbox/", Description: "Messages to an agent, newest first."}, inbox),
		mailResource(t, Resource{Name: "mailbox", Address: "mailbox/", Description: "The same as inbox."}, inbox),
		mailResource(t, Resource{Name: "outbox", Address: "outbox/", Description: "Messages from an agent, newest first."},
			func(o *service.Mail, ctx context.Context, c mail.Caller, a boxAddress) (service.OutboxResource, error) {
				return o.Outbox(ctx, c, a.box())
			}),
		viewResource[viewAddress](t, service.ViewUrgentUnread, "Unread messages of high or urgent importance."),
		viewResource[viewAddress](t, service.ViewAckRequired, "Messages to acknowledge."),
		viewResource[staleAddress](t, service.ViewAcksStale, "Messages not acknowledged for a while."),
		viewResource[overdueAddress](t, service.ViewAckOverdue, "Messages not acknowledged for a long time."),
	}
}

func (a boxAddress) box() messages.InboxArgs {
	return messages.InboxArgs{
		ProjectKey: a.Project, AgentName: a.Agent, Limit: a.Limit, UnreadOnly: a.UnreadOnly, UrgentOnly: a.UrgentOnly,
		IncludeBodies: a.IncludeBodies, Since: a.Since, Topic: a.Topic, At: a.At,
	}
}

// viewResource returns a resource that shows a view of an inbox.
func viewResource[A interface{ view() service.ViewArgs }](t *mailTools, name, description string) Resource {
	return mailResource(t, Resource{Name: name, Address: "views/" + name + "/", Description: description},
		func(o *service.Mail, ctx context.Context, c mail.Caller, a A) (service.View, error) {
			q := a.view()
			q.View = name
			return o.ViewOf(ctx, c, q)
		})
}

func (a viewAddress) view() service.ViewArgs {
	return service.ViewArgs{ProjectKey: a.Project, AgentName: a.Agent, Limit: a.Limit}
}

func (a staleAddress) view() service.ViewArgs {
	q := a.viewAddress.view()
	q.TTLSeconds = a.TTL
	return q
}

func (a overdueAddress) view() service.ViewArgs {
	q := a.viewAddress.view()
	if a.TTL != nil {
		q.TTLSeconds = new(min(*a.TTL, maxMinutes) * 60)
	}
	return q
}

// maxMinutes prevents an overflow when minutes are converted to seconds.
const maxMinutes = 1 << 40
