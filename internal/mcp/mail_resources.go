package mcp

import (
	"context"

	"cairn"
	"cairn/internal/mail"
)

// MailResources are the resources of mail (contract mail §5). Reading them changes
// nothing.
func MailResources(m cairn.Mail, o MailOptions) []Resource {
	t := newMailTools(m, o)
	all := append(t.projectResources(), t.boxResources()...)
	for i := range all {
		r := &all[i]
		r.Query = append(r.Query, untold(String, "registration_token")...)
		r.Call = t.guarded(r.Name, r.Call)
		r.Last.manner, r.Last.Required = mailed, true
		for j := range r.Query {
			r.Query[j].manner = mailed
		}
	}
	return all
}

func (t *mailTools) projectResources() []Resource {
	project := func(a Args) string { return a.String("project") }
	of := func(name string) func(Args) string {
		return func(a Args) string { return a.String(name) }
	}
	return []Resource{
		{
			Name: "projects", Address: "projects", Description: "All projects.",
			Call: reads(t, func(o *mail.Service, ctx context.Context, _ mail.Caller, _ struct{}) ([]mail.ProjectShort, error) {
				return o.Projects(ctx)
			}, func(Args) (none struct{}) { return none }),
		},
		{
			Name: "project", Address: "project/", Last: may("key", "").of(String), Description: "A project and its agents.",
			Call: reads(t, (*mail.Service).ProjectOf, of("key")),
		},
		{
			Name: "agents", Address: "agents/", Last: may("project_key", "").of(String), Description: "Who is in a project.",
			Call: reads(t, (*mail.Service).AgentsOf, of("project_key")),
		},
		{
			Name: "message", Address: "message/", Last: may("id", "").of(Integer), Query: params(must("project", "")), Description: "A whole message.",
			Call: reads(t, func(o *mail.Service, ctx context.Context, c mail.Caller, a Args) (mail.ThreadMessage, error) {
				return o.MessageOf(ctx, c, project(a), *a.Int64("id"))
			}, same),
		},
		{
			Name: "thread", Address: "thread/", Last: may("id", "").of(String), Query: params(must("project", ""), may("include_bodies", "").of(Boolean)),
			Description: "A thread, oldest message first.",
			Call: reads(t, func(o *mail.Service, ctx context.Context, c mail.Caller, a Args) (mail.ThreadResource, error) {
				return o.ThreadOf(ctx, c, project(a), a.String("id"), a.Bool("include_bodies"))
			}, same),
		},
		{
			Name: "file_reservations", Address: "file_reservations/", Last: may("slug", "").of(String), Query: params(may("active_only", "").of(Boolean), may("at", "").of(String)),
			Description: "Who holds which files.",
			Call: reads(t, func(o *mail.Service, ctx context.Context, c mail.Caller, a Args) (any, error) {
				if at := a.String("at"); at != "" {
					return o.FileReservationsAt(ctx, c, a.String("slug"), a.IsFalse("active_only"), at)
				}
				return o.FileReservations(ctx, c, a.String("slug"), a.IsFalse("active_only"))
			}, same),
		},
	}
}

func same(a Args) Args { return a }

func (t *mailTools) boxResources() []Resource {
	box := params(
		must("project", ""), may("limit", "").of(Integer), may("since_ts", "").of(String).or("since"), may("urgent_only", "").of(Boolean),
		may("unread_only", "").of(Boolean), may("include_bodies", "").of(Boolean), may("topic", "").of(String),
		may("at", "").of(String),
	)
	args := func(a Args) mail.InboxArgs {
		q := inboxArgs(a)
		q.ProjectKey, q.AgentName = a.String("project"), a.String("agent")
		return q
	}
	agent := may("agent", "").of(String)
	inbox := reads(t, (*mail.Service).Inbox, args)
	all := []Resource{
		{Name: "inbox", Address: "inbox/", Last: agent, Query: box, Description: "What an agent has got, newest first.", Call: inbox},
		{Name: "mailbox", Address: "mailbox/", Last: agent, Query: box, Description: "The same as inbox.", Call: inbox},
		{
			Name: "outbox", Address: "outbox/", Last: agent, Query: box, Description: "What an agent has sent, newest first.",
			Call: reads(t, (*mail.Service).Outbox, args),
		},
	}
	for _, v := range []struct{ name, ttl, description string }{
		{mail.ViewUrgentUnread, "", "Unread, and high or urgent."},
		{mail.ViewAckRequired, "", "To be acknowledged."},
		{mail.ViewAcksStale, "ttl_seconds", "To be acknowledged for a while."},
		{mail.ViewAckOverdue, "ttl_minutes", "To be acknowledged for long."},
	} {
		query := params(must("project", ""), may("limit", "").of(Integer))
		if v.ttl != "" {
			query = append(query, may(v.ttl, "").of(Integer))
		}
		all = append(all, Resource{
			Name: v.name, Address: "views/" + v.name + "/", Last: agent, Query: query, Description: v.description,
			Call: reads(t, (*mail.Service).ViewOf, func(a Args) mail.ViewArgs {
				q := mail.ViewArgs{ProjectKey: a.String("project"), AgentName: a.String("agent"), View: v.name, Limit: a.Int("limit")}
				if q.TTLSeconds = a.Int64(v.ttl); q.TTLSeconds != nil && v.ttl == "ttl_minutes" {
					q.TTLSeconds = new(min(*q.TTLSeconds, maxMinutes) * 60)
				}
				return q
			}),
		})
	}
	return all
}

// maxMinutes keeps minutes from overflowing when they become seconds.
const maxMinutes = 1 << 40
