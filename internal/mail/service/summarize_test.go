package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
)

func TestThreadsAreSummarizedOneByOneAndTogether(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	for i := range 5 {
		s.sent(messages.SendArgs{Subject: fmt.Sprint("s", i), Body: fmt.Sprintf("- point %d\n@RedFox", i), ThreadID: "T"})
	}
	begun := s.sent(messages.SendArgs{Subject: "start", Body: "TODO begin\n- point 1"})
	mailtest.Must(s.ReplyMessage(t.Context(), mail.Caller{}, messages.ReplyArgs{ProjectKey: s.app, MessageID: begun.ID, SenderName: "BlueDog", Body: "- [x] begun @RedFox @GreenLake"}))(t)
	sum := func(a messages.SummarizeArgs) messages.Summarized {
		t.Helper()
		a.ProjectKey = s.app
		return mailtest.Must(s.SummarizeThread(t.Context(), mail.Caller{}, a))(t)
	}
	one := sum(messages.SummarizeArgs{ThreadID: " T ", IncludeExamples: true})
	mailtest.WantFields(t, "one", one, "thread_id", "summary", "examples")
	mailtest.WantFields(t, "example", (*one.One.Examples)[0], "id", "subject", "from", "created_ts")
	mailtest.Want(t, "examples", mailtest.JSON(t, (*one.One.Examples)[2].Subject)+fmt.Sprint(len(*one.One.Examples)), `"s2"3`)
	mailtest.Want(t, "total", one.One.Summary.TotalMessages, 5)
	mailtest.Want(t, "no examples", strings.HasSuffix(mailtest.JSON(t, sum(messages.SummarizeArgs{ThreadID: "T"})), `"examples":[]}`), true)
	two := 2
	few := sum(messages.SummarizeArgs{ThreadID: "T", PerThreadLimit: &two}).One.Summary
	mailtest.Want(t, "the newest", strings.Join(few.KeyPoints, ","), "point 3,point 4")
	mailtest.Want(t, "total", few.TotalMessages, 5)

	decimalID := sum(messages.SummarizeArgs{ThreadID: mail.Decimal(begun.ID)}).One.Summary
	mailtest.Want(t, "with its beginning", decimalID.TotalMessages, 2)
	mailtest.Want(t, "participants", strings.Join(decimalID.Participants, ","), "BlueDog,GreenLake")

	several := sum(messages.SummarizeArgs{ThreadID: "T, " + mail.Decimal(begun.ID) + ",T,", IncludeExamples: true})
	mailtest.WantFields(t, "several", several, "threads", "aggregate")
	mailtest.WantFields(t, "thread", several.Threads[0], "thread_id", "summary")
	mailtest.WantFields(t, "aggregate", several.Aggregate, "top_mentions", "action_items", "key_points")
	mailtest.Want(t, "threads", len(several.Threads), 2)
	mailtest.Want(t, "aggregate", mailtest.JSON(t, several.Aggregate), `{"top_mentions":[{"name":"RedFox","count":6},{"name":"GreenLake","count":1}],`+
		`"action_items":["TODO begin","begun @RedFox @GreenLake"],"key_points":["point 0","point 1","point 2","point 3","point 4"]}`)
	mailtest.Want(t, "blank", mailtest.JSON(t, sum(messages.SummarizeArgs{ThreadID: " , "})), `{"threads":[],"aggregate":{"top_mentions":[],"action_items":[],"key_points":[]}}`)
	for code, id := range map[string]string{mail.CodeNotFound: "none", mail.CodeThreadID: "a/b"} {
		_, err := s.SummarizeThread(t.Context(), mail.Caller{}, messages.SummarizeArgs{ProjectKey: s.app, ThreadID: "T," + id})
		wantError(t, id, err, code, id)
	}
}

func TestAThreadIsPreparedInOneTransaction(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	s.sent(messages.SendArgs{ThreadID: "T", Subject: "s", Body: "- p"})
	prepare := func(a PrepareThreadArgs) (PreparedThread, error) {
		a.ProjectKey, a.Program, a.Model = s.app, "p", "m"
		mail.Default(&a.ThreadID, "T")
		return s.MacroPrepareThread(t.Context(), mail.Caller{}, a)
	}
	out := mailtest.Must(prepare(PrepareThreadArgs{AgentName: "BlueDog", IncludeBodies: true}))(t)
	mailtest.WantFields(t, "prepared", out, "project", "agent", "thread", "inbox")
	mailtest.WantFields(t, "project", out.Project, "id", "slug", "human_key", "created_at")
	mailtest.WantFields(t, "thread", out.Thread, "thread_id", "summary", "examples", "total_messages")
	mailtest.Want(t, "agent stays as it was", out.Agent.Name+" "+out.Agent.Program, "BlueDog claude-code")
	mailtest.Want(t, "inbox", *out.Inbox[0].Body, "- p")
	mailtest.Want(t, "total", out.Thread.Total+len(out.Thread.Examples), 2)
	fresh := mailtest.Must(prepare(PrepareThreadArgs{AgentName: "GoldHawk", ThreadID: "new", NoExamples: true, TaskDescription: "t"}))(t)
	mailtest.Want(t, "registered", fresh.Agent.Name+" "+fresh.Agent.Program+" "+fresh.Agent.TaskDescription, "GoldHawk p t")
	mailtest.Want(t, "a new thread", mailtest.JSON(t, fresh.Thread.Examples)+fmt.Sprint(fresh.Thread.Total)+mailtest.JSON(t, fresh.Inbox), "[]0[]")
	mailtest.Want(t, "generated", mailtest.Must(prepare(PrepareThreadArgs{}))(t).Agent.Name != "", true)
	before := s.changes()
	zero := 0
	for code, a := range map[string]PrepareThreadArgs{
		mail.CodeNotFound: {AgentName: "WhiteOwl", NoRegister: true}, mail.CodeMissing: {NoRegister: true}, mail.CodeThreadID: {ThreadID: "a/b"}, mail.CodeLimit: {InboxLimit: &zero},
	} {
		_, err := prepare(a)
		wantError(t, code, err, code)
	}
	mailtest.Want(t, "changes", s.changes(), before)
	s.rebuilt()
}

func TestResourcesShowWhatThereIs(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	ctx, c := t.Context(), mail.Caller{}
	first := s.sent(messages.SendArgs{Subject: "a", Importance: "urgent", AckRequired: true, Body: "b", BCC: []string{"RedFox"}, To: []string{"BlueDog"}})
	mailtest.Must(s.ReplyMessage(ctx, c, messages.ReplyArgs{ProjectKey: s.app, MessageID: first.ID, SenderName: "BlueDog"}))(t)
	s.clock.Move(31 * time.Minute)
	second := s.sent(messages.SendArgs{Subject: "c", AckRequired: true})
	commit := mail.Commit{SHA: "abc", Summary: "mail: GreenLake -> BlueDog | a", Authored: first.Created}
	s.exec("INSERT INTO archive_commits (project_key, first_seq, last_seq, hexsha, summary, authored_ts) SELECT p.project_key, m.seq, m.seq + 1, ?, ?, ? FROM mail_messages m, mail_projects p WHERE m.id = ?",
		commit.SHA, commit.Summary, commit.Authored, first.ID)

	in := mailtest.Must(s.Inbox(ctx, c, messages.InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"}))(t)
	mailtest.WantFields(t, "message", in.Messages[0], "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from", "kind", "commit")
	mailtest.Want(t, "pending", in.Messages[0].Commit == nil, true)
	mailtest.Want(t, "commit", *in.Messages[1].Commit, commit)
	out := mailtest.Must(s.Outbox(ctx, c, messages.InboxArgs{ProjectKey: s.app, AgentName: "GreenLake"}))(t)
	mailtest.WantFields(t, "outbox", out, "project", "agent", "count", "messages")
	mailtest.WantFields(t, "sent", out.Messages[1], "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from", "to", "cc", "bcc", "commit")
	mailtest.Want(t, "own blind copy", strings.Join(out.Messages[1].BCC, ","), "RedFox")
	mailtest.Want(t, "urgent", mailtest.Must(s.Outbox(ctx, c, messages.InboxArgs{ProjectKey: s.app, AgentName: "GreenLake", UrgentOnly: true, IncludeBodies: true}))(t).Count, 1)
	m := mailtest.Must(s.MessageOf(ctx, c, s.app, first.ID))(t)
	mailtest.WantFields(t, "message", m, "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from", "body_md")
	th := mailtest.Must(s.ThreadOf(ctx, c, s.app, mail.Decimal(first.ID), false))(t)
	mailtest.WantFields(t, "thread", th, "project", "thread_id", "messages")
	mailtest.WantFields(t, "message", th.Messages[0], "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from")
	mailtest.Want(t, "oldest first", th.Messages[0].Subject+th.Messages[1].Subject, "aRe: a")
	for _, id := range []int64{0, -1, 1<<63 - 1} {
		_, err := s.MessageOf(ctx, c, s.app, id)
		wantError(t, "no message", err, mail.CodeNotFound)
	}
	for id, code := range map[string]string{"none": mail.CodeNotFound, "99": mail.CodeNotFound, "01": mail.CodeNotFound, "a b": mail.CodeThreadID, "": mail.CodeMissing} {
		_, err := s.ThreadOf(ctx, c, s.app, id, true)
		wantError(t, id, err, code)
	}

	view := func(a ViewArgs) string {
		t.Helper()
		a.ProjectKey, a.AgentName = s.app, "BlueDog"
		v := mailtest.Must(s.ViewOf(ctx, c, a))(t)
		fields := []string{"project", "agent", "count", "messages"}
		if a.View == ViewAcksStale {
			fields = slices.Insert(fields, 2, "ttl_seconds")
		}
		mailtest.WantFields(t, a.View, v, fields...)
		mailtest.Want(t, "count", v.Count, len(v.Messages))
		return ids(v.Messages)
	}
	both := mail.Decimal(second.ID) + " " + mail.Decimal(first.ID)
	hour, none, past := int64(3600), int64(0), int64(-5)
	mailtest.Want(t, "urgent", view(ViewArgs{View: ViewUrgentUnread}), mail.Decimal(first.ID))
	mailtest.Want(t, "required", view(ViewArgs{View: ViewAckRequired}), both)
	mailtest.Want(t, "stale", view(ViewArgs{View: ViewAcksStale}), mail.Decimal(first.ID))
	mailtest.Want(t, "overdue", view(ViewArgs{View: ViewAckOverdue}), "")
	mailtest.Want(t, "stale after an hour", view(ViewArgs{View: ViewAcksStale, TTLSeconds: &hour}), "")
	mailtest.Want(t, "at once", view(ViewArgs{View: ViewAckOverdue, TTLSeconds: &none}), both)
	mailtest.Want(t, "below 0", view(ViewArgs{View: ViewAckOverdue, TTLSeconds: &past}), both)
	mailtest.Must(s.AcknowledgeMessage(ctx, c, s.app, "BlueDog", first.ID))(t)
	mailtest.Want(t, "read", view(ViewArgs{View: ViewUrgentUnread}), "")
	mailtest.Want(t, "given", view(ViewArgs{View: ViewAckRequired}), mail.Decimal(second.ID))
	_, err := s.ViewOf(ctx, c, ViewArgs{ProjectKey: s.app, AgentName: "BlueDog", View: "other"})
	wantError(t, "another view", err, mail.CodeNotFound)

	mailtest.WantFields(t, "project", mailtest.Must(s.ProjectOf(ctx, c, s.app))(t), "id", "slug", "human_key", "created_at", "agents")
	a := mailtest.Must(s.AgentsOf(ctx, c, s.app))(t)
	mailtest.WantFields(t, "agents", a, "project", "agents")
	mailtest.Want(t, "unread", fmt.Sprint(a.Agents[0].Name, a.Agents[0].Unread), "BlueDog1")
	mailtest.Want(t, "projects", len(mailtest.Must(s.Projects(ctx))(t)), 1)
	mailtest.Want(t, "of no store", mailtest.JSON(t, mailtest.Must(New(nil, mail.Config{}).Projects(ctx))(t)), "[]")
}
