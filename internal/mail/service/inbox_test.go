package service

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
	"cairn/internal/store/storetest"
)

func ids(items []messages.Item) (out string) {
	for _, i := range items {
		out += mail.Decimal(i.ID) + " "
	}
	return strings.TrimSpace(out)
}

func TestAnInboxIsFilteredAndNewestFirst(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	var times []mail.Time
	for i, importance := range []string{"low", "normal", "high", "urgent", "normal", "urgent"} {
		p := s.sent(messages.SendArgs{Importance: importance, Topic: []string{"", "build"}[i%2], Body: "b"})
		times = append(times, p.Created)
	}
	mailtest.Must(s.MarkMessageRead(t.Context(), mail.Caller{}, s.app, "BlueDog", 4))(t)
	two := 2
	for what, c := range map[string]struct {
		args messages.InboxArgs
		want string
	}{
		"all":                       {messages.InboxArgs{}, "6 5 4 3 2 1"},
		"two":                       {messages.InboxArgs{Limit: &two}, "6 5"},
		"unread":                    {messages.InboxArgs{UnreadOnly: true}, "6 5 3 2 1"},
		"urgent":                    {messages.InboxArgs{UrgentOnly: true}, "6 4 3"},
		"both":                      {messages.InboxArgs{UrgentOnly: true, UnreadOnly: true}, "6 3"},
		"topic":                     {messages.InboxArgs{Topic: "build"}, "6 4 2"},
		"topic unread":              {messages.InboxArgs{Topic: "build", UnreadOnly: true}, "6 2"},
		"topic urgent":              {messages.InboxArgs{Topic: "build", UrgentOnly: true}, "6 4"},
		"another topic":             {messages.InboxArgs{Topic: "Build"}, ""},
		"since":                     {messages.InboxArgs{Since: times[3].String()}, "6 5"},
		"since, with a zone":        {messages.InboxArgs{Since: strings.Replace(times[4].String(), "+00:00", "Z", 1)}, "6"},
		"since, topic":              {messages.InboxArgs{Since: times[3].String(), Topic: "build"}, "6"},
		"since a day to come":       {messages.InboxArgs{Since: "2200-01-01"}, ""},
		"since a day gone, no zone": {messages.InboxArgs{Since: "2000-01-01T00:00:00"}, "6 5 4 3 2 1"},
	} {
		c.args.ProjectKey, c.args.AgentName = s.app, "bluedog"
		got := mailtest.Must(s.FetchInbox(t.Context(), mail.Caller{}, c.args))(t)
		mailtest.Want(t, what, ids(got), c.want)
		if got == nil || len(got) > 0 && got[0].Body != nil {
			t.Errorf("%s: %v", what, got)
		}
		c.args.IncludeBodies = true
		out := mailtest.Must(s.Inbox(t.Context(), mail.Caller{}, c.args))(t)
		mailtest.Want(t, what, out.Count, len(got))
		mailtest.WantFields(t, what, out, "project", "agent", "count", "messages")
		for i, m := range out.Messages {
			mailtest.Want(t, what, m.ID, got[i].ID)
			mailtest.Want(t, what, *m.Body, "b")
		}
	}
	zero := 0
	for code, a := range map[string]messages.InboxArgs{
		mail.CodeLimit: {Limit: &zero}, mail.CodeTimestamp: {Since: "yesterday"}, mail.CodeTopic: {Topic: "a b"}, mail.CodeNotFound: {AgentName: "GoldHawk"},
	} {
		a.ProjectKey = s.app
		mail.Default(&a.AgentName, "BlueDog")
		_, err := s.FetchInbox(t.Context(), mail.Caller{}, a)
		wantError(t, code, err, code)
	}
	_, err := s.FetchInbox(t.Context(), mail.Caller{}, messages.InboxArgs{ProjectKey: s.path("nowhere"), AgentName: "BlueDog"})
	wantError(t, "no project", err, mail.CodeNotFound)
}

func TestReadsWriteNothing(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	p := s.sent(messages.SendArgs{AckRequired: true, Importance: "urgent", ThreadID: "T", Body: "- [ ] do it"})
	dump := func() (text string) {
		s.query(&text, `SELECT (SELECT group_concat(message_id || ':' || agent_id || ':' || ifnull(shown_ts, '') || ':' || ifnull(read_ts, '')) FROM mail_recipients)
|| (SELECT group_concat(last_active_ts) FROM mail_agents) || (SELECT max(seq) FROM changes)`)
		return text
	}
	before := dump()
	ctx, c := t.Context(), mail.Caller{}
	s.inboxOf("BlueDog")
	for what, err := range map[string]error{
		"inbox":    second(s.Inbox(ctx, c, messages.InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"})),
		"outbox":   second(s.Outbox(ctx, c, messages.InboxArgs{ProjectKey: s.app, AgentName: "GreenLake"})),
		"message":  second(s.MessageOf(ctx, c, s.app, p.ID)),
		"thread":   second(s.ThreadOf(ctx, c, s.app, "T", true)),
		"search":   second(s.SearchMessages(ctx, c, messages.SearchArgs{ProjectKey: s.app, Query: "do"})),
		"summary":  second(s.SummarizeThread(ctx, c, messages.SummarizeArgs{ProjectKey: s.app, ThreadID: "T"})),
		"receipt":  second(s.GetDeliveryReceipt(ctx, c, s.app, "GreenLake", p.ID)),
		"contacts": second(s.ListContacts(ctx, c, s.app, "BlueDog", "both")),
		"view":     second(s.ViewOf(ctx, c, ViewArgs{ProjectKey: s.app, AgentName: "BlueDog", View: ViewUrgentUnread})),
		"projects": second(s.Projects(ctx)),
		"project":  second(s.ProjectOf(ctx, c, s.app)),
		"agents":   second(s.AgentsOf(ctx, c, s.app)),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	mailtest.Want(t, "rows", dump(), before)
}

func TestReadingAndAcknowledgingCountOnceForRecipientsOnly(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	p := s.sent(messages.SendArgs{To: []string{"BlueDog"}, BCC: []string{"RedFox"}, AckRequired: true})
	ctx, c := t.Context(), mail.Caller{}
	ack := mailtest.Must(s.AcknowledgeMessage(ctx, c, s.app, "RedFox", p.ID))(t)
	mailtest.Want(t, "acknowledging reads", ack.Read, ack.At)
	s.clock.Move(time.Minute)
	mailtest.Want(t, "read after it", mailtest.Must(s.MarkMessageRead(ctx, c, s.app, "RedFox", p.ID))(t).At, ack.At)
	before := s.changes()
	mailtest.Want(t, "twice", mailtest.Must(s.AcknowledgeMessage(ctx, c, s.app, "RedFox", p.ID))(t), ack)
	mailtest.Want(t, "changes", s.changes(), before)
	for _, id := range []int64{0, -1, 1<<63 - 1, 77} {
		_, err := s.AcknowledgeMessage(ctx, c, s.app, "BlueDog", id)
		wantError(t, mail.Decimal(id), err, mail.CodeNotFound, "not found", `"message_id":`+mail.Decimal(id))
	}
	_, err := s.AcknowledgeMessage(ctx, c, s.app, "GreenLake", p.ID)
	wantError(t, "the sender", err, mail.CodeNotFound)
	other := s.mkdir(s.path("other"))
	s.register(other, "BlueDog")
	_, err = s.AcknowledgeMessage(ctx, c, other, "BlueDog", p.ID)
	wantError(t, "another project's", err, mail.CodeNotFound)
	late := s.sent(messages.SendArgs{AckRequired: true})
	mailtest.Must(s.AcknowledgeMessage(ctx, c, s.app, "BlueDog", late.ID))(t)
	mailtest.Must(s.AcknowledgeMessage(ctx, c, s.app, "BlueDog", p.ID))(t)
	s.rebuilt()
}

func TestABlindCopyIsKnownToSenderAndRecipientAlone(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	s.register(s.app, "GoldHawk")
	ctx, c := t.Context(), mail.Caller{}
	p := s.sent(messages.SendArgs{To: []string{"BlueDog"}, CC: []string{"RedFox"}, BCC: []string{"GoldHawk"}, Subject: "plan", Body: "the plan", ThreadID: "T", AckRequired: true})
	mailtest.Must(s.AcknowledgeMessage(ctx, c, s.app, "GoldHawk", p.ID))(t)
	mailtest.Want(t, "the sender sees it", strings.Join(p.BCC, ","), "GoldHawk")
	mailtest.Want(t, "kind", s.inboxOf("GoldHawk")[0].Kind, "bcc")
	reply := mailtest.Must(s.ReplyMessage(ctx, c, messages.ReplyArgs{ProjectKey: s.app, MessageID: p.ID, SenderName: "BlueDog", CC: []string{"RedFox"}}))(t)
	prepared := mailtest.Must(s.MacroPrepareThread(ctx, c, PrepareThreadArgs{ProjectKey: s.app, ThreadID: "T", Program: "p", Model: "m", AgentName: "RedFox", IncludeBodies: true}))(t)
	for what, v := range map[string]any{
		"reply": reply, "prepared": prepared, "inbox": s.inboxOf("BlueDog"), "inbox of cc": s.inboxOf("RedFox"),
		"resource":          mailtest.Must(s.Inbox(ctx, c, messages.InboxArgs{ProjectKey: s.app, AgentName: "BlueDog", IncludeBodies: true}))(t),
		"message":           mailtest.Must(s.MessageOf(ctx, c, s.app, p.ID))(t),
		"thread":            mailtest.Must(s.ThreadOf(ctx, c, s.app, "T", true))(t),
		"search":            mailtest.Must(s.SearchMessages(ctx, c, messages.SearchArgs{ProjectKey: s.app, Query: "plan"}))(t),
		"summary":           mailtest.Must(s.SummarizeThread(ctx, c, messages.SummarizeArgs{ProjectKey: s.app, ThreadID: "T", IncludeExamples: true}))(t),
		"view":              mailtest.Must(s.ViewOf(ctx, c, ViewArgs{ProjectKey: s.app, AgentName: "BlueDog", View: ViewAckRequired}))(t),
		"outbox of another": mailtest.Must(s.Outbox(ctx, c, messages.InboxArgs{ProjectKey: s.app, AgentName: "BlueDog", IncludeBodies: true}))(t),
	} {
		if text := mailtest.JSON(t, v); strings.Contains(text, "GoldHawk") {
			t.Errorf("%s tells of the blind copy: %s", what, text)
		}
	}
	_, err := s.GetDeliveryReceipt(ctx, c, s.app, "BlueDog", p.ID)
	wantError(t, "receipt", err, mail.CodeDenied)
	if strings.Contains(err.Error()+mailtest.JSON(t, err), "GoldHawk") {
		t.Error(err)
	}
	hits := mailtest.Must(s.SearchMessages(ctx, c, messages.SearchArgs{ProjectKey: s.app, Query: "GoldHawk"}))(t)
	mailtest.Want(t, "found by name", len(hits.Result), 0)
	ops, files := s.rendered()
	for path, text := range files {
		if strings.Contains(text, "GoldHawk") && !strings.HasPrefix(path, "agents/GoldHawk/") {
			t.Errorf("%s tells of it", path)
		}
	}
	for _, line := range ops {
		if strings.Contains(line, "GoldHawk") && !strings.HasPrefix(line, "agent: profile") {
			t.Errorf("a commit says %q", line)
		}
	}
}

func TestAReceiptShowsTheSenderWhatHasBecomeOfAMessage(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	s.register(s.app, "GoldHawk")
	p := s.sent(messages.SendArgs{To: []string{"BlueDog", "GoldHawk"}, BCC: []string{"RedFox"}})
	ctx, c := t.Context(), mail.Caller{}
	read := mailtest.Must(s.MarkMessageRead(ctx, c, s.app, "BlueDog", p.ID))(t)
	ack := mailtest.Must(s.AcknowledgeMessage(ctx, c, s.app, "RedFox", p.ID))(t)
	via := "UserPromptSubmit"
	mailtest.Must(0, s.WriteIn(ctx, c, s.app, func(ctx context.Context, s *mail.CallTx) error {
		a, err := s.ActAs(ctx, "GoldHawk")
		if err != nil {
			return err
		}
		m, err := messages.FindMessage(ctx, s, p.ID)
		if err != nil {
			return err
		}
		d, err := mail.DeliveryOf(ctx, s.Tx, m.UID, s.Project.UID, a.Name)
		if err != nil {
			return err
		}
		d.Shown, d.ShownVia = s.Now, &via
		return s.Put(ctx, d)
	}))(t)
	r := mailtest.Must(s.GetDeliveryReceipt(ctx, c, s.app, "GreenLake", p.ID))(t)
	mailtest.WantFields(t, "receipt", r, "message_id", "recipients", "counts")
	mailtest.WantFields(t, "recipient", r.Recipients[0], "agent", "kind", "status", "queued_ts", "shown_ts", "shown_via", "read_ts", "ack_ts")
	got := ""
	for _, x := range r.Recipients {
		got += x.Agent + " " + x.Kind + " " + x.Status + "; "
		mailtest.Want(t, "queued", x.Queued, p.Created)
	}
	mailtest.Want(t, "recipients", got, "BlueDog to read; GoldHawk to shown; RedFox bcc acknowledged; ")
	mailtest.Want(t, "counts", r.Counts, messages.ReceiptsByState{Shown: 1, Read: 1, Acknowledged: 1})
	mailtest.Want(t, "read", r.Recipients[0].Read, read.At)
	mailtest.Want(t, "ack", r.Recipients[2].Ack, ack.At)
	mailtest.Want(t, "via", *r.Recipients[1].ShownVia, via)
	_, err := s.GetDeliveryReceipt(ctx, c, s.app, "GreenLake", 99)
	wantError(t, "no message", err, mail.CodeNotFound)
	s.rebuilt()
}

func TestAProtectedInboxNeedsItsToken(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	p := s.sent(messages.SendArgs{})
	token := mailtest.Must(s.RotateToken(t.Context(), mail.Caller{Owner: true}, s.app, "BlueDog"))(t).Token
	ctx := t.Context()
	for _, c := range []mail.Caller{{}, {Token: "x"}, {HeaderToken: "x"}} {
		for what, err := range map[string]error{
			"inbox":   second(s.FetchInbox(ctx, c, messages.InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"})),
			"outbox":  second(s.Outbox(ctx, c, messages.InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"})),
			"view":    second(s.ViewOf(ctx, c, ViewArgs{ProjectKey: s.app, AgentName: "BlueDog", View: ViewAckRequired})),
			"read":    second(s.MarkMessageRead(ctx, c, s.app, "BlueDog", p.ID)),
			"ack":     second(s.AcknowledgeMessage(ctx, c, s.app, "BlueDog", p.ID)),
			"send":    second(s.SendMessage(ctx, c, messages.SendArgs{ProjectKey: s.app, SenderName: "BlueDog", To: []string{"RedFox"}})),
			"reply":   second(s.ReplyMessage(ctx, c, messages.ReplyArgs{ProjectKey: s.app, SenderName: "BlueDog", MessageID: p.ID})),
			"policy":  second(s.SetContactPolicy(ctx, c, s.app, "BlueDog", "open")),
			"respond": second(s.RespondContact(ctx, c, messages.RespondArgs{ProjectKey: s.app, ToAgent: "BlueDog", FromAgent: "RedFox"})),
			"receipt": second(s.GetDeliveryReceipt(ctx, c, s.app, "BlueDog", p.ID)),
		} {
			wantError(t, what, err, mail.CodeDenied)
		}
	}
	mailtest.Must(s.FetchInbox(ctx, mail.Caller{HeaderToken: token}, messages.InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"}))(t)
	mailtest.Must(s.AcknowledgeMessage(ctx, mail.Caller{Token: token}, s.app, "BlueDog", p.ID))(t)
}

func TestGoroutinesThatSendAndAcknowledgeLoseNothing(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	const n = 20
	var wg sync.WaitGroup
	failed := make(chan error, 4*n)
	for _, name := range []string{"GreenLake", "RedFox"} {
		for range n {
			wg.Go(func() {
				out, err := s.SendMessage(t.Context(), mail.Caller{}, messages.SendArgs{ProjectKey: s.app, SenderName: name, To: []string{"BlueDog"}, ThreadID: "T", AckRequired: true})
				if err == nil {
					_, err = s.AcknowledgeMessage(t.Context(), mail.Caller{}, s.app, "BlueDog", out.Deliveries[0].Payload.ID)
				}
				failed <- err
			})
		}
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	s.orderly(2 * n)
	var due int
	s.query(&due, "SELECT ack_due + unread FROM mail_agents WHERE name = 'BlueDog'")
	mailtest.Want(t, "due", due, 0)
	s.rebuilt()
}

// orderly checks that n messages have increasing numbers, times and ordinals.
func (s *street) orderly(n int) {
	s.Helper()
	var text string
	s.query(&text, `SELECT count(*) || ' ' || count(DISTINCT created_ts) || ' ' || max(id) || ' '
|| (SELECT count(*) FROM mail_messages a JOIN mail_messages b ON b.id = a.id + 1 AND b.created_ts <= a.created_ts) || ' '
|| (SELECT count(*) FROM (SELECT strftime('%Y%m', created_ts / 1000000000, 'unixepoch') AS month FROM mail_messages
    GROUP BY month HAVING max(ordinal) <> count(*) OR count(DISTINCT ordinal) <> count(*))) FROM mail_messages`)
	mailtest.Want(s, "messages", text, fmt.Sprintf("%d %d %d 0 0", n, n, n))
}

// sendMany runs in child processes: it sends ten messages from the named agent and acknowledges
// each.
func sendMany(ctx context.Context, o *Mail, name string) error {
	storetest.Tell("ready")
	storetest.Hear(bufio.NewReader(os.Stdin))
	for range 10 {
		out, err := o.SendMessage(ctx, mail.Caller{}, messages.SendArgs{ProjectKey: "1", SenderName: name, To: []string{"BlueDog"}, AckRequired: true})
		if err != nil {
			return err
		}
		ack, err := o.AcknowledgeMessage(ctx, mail.Caller{}, "1", "BlueDog", out.Deliveries[0].Payload.ID)
		again, err2 := o.AcknowledgeMessage(ctx, mail.Caller{}, "1", "BlueDog", 1)
		if err = errors.Join(err, err2); err != nil {
			return err
		}
		storetest.Tell(fmt.Sprint(ack.MessageID, " ", again.At))
	}
	return nil
}

func TestProcessesThatSendAndAcknowledgeAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	p := s.sent(messages.SendArgs{AckRequired: true})
	ack := mailtest.Must(s.AcknowledgeMessage(t.Context(), mail.Caller{}, s.app, "BlueDog", p.ID))(t)
	var all []*storetest.Process
	for _, name := range []string{"GreenLake", "RedFox", "BlueDog"} {
		c := child(t, s.yard, "send", name)
		c.Expect(t, "ready")
		all = append(all, c)
	}
	for _, c := range all {
		c.Send("go")
	}
	var lines []string
	for _, c := range all {
		more, err := c.Wait(t)
		if err != nil {
			t.Error(err)
		}
		lines = append(lines, more...)
	}
	slices.Sort(lines)
	mailtest.Want(t, "acknowledged, each once", len(slices.Compact(lines)), 30)
	for _, line := range lines {
		mailtest.Want(t, "the first acknowledgement stays", strings.HasSuffix(line, " "+ack.At.String()), true)
	}
	s.orderly(31)
}

func TestNoQueryOfAResourceScansATable(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	s.fill(500)
	mailtest.NoScans(t, s.Store, map[string]string{
		"thread resource": selectThreadMessages, "outbox": selectOutbox, "urgent outbox": selectOutboxUrgent, "residents": selectResidents,
		"unread and urgent": messages.SelectUnreadUrgent, "due": messages.SelectDue, "overdue": messages.SelectOverdue, "contacts": messages.SelectContactCount,
	})
	if plan := strings.Join(mailtest.Plan(t, s.Store, selectOutbox), "\n"); !strings.Contains(plan, "mail_messages_by_sender") || strings.Contains(plan, "TEMP B-TREE FOR ORDER BY") {
		t.Error(plan)
	}
}
