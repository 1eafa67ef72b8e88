package service

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// street is a yard with a project "app" of three agents.
type street struct {
	*yard
	app string
}

func newStreet(t testing.TB, c mail.Config) *street {
	t.Helper()
	y := newYard(t, c)
	s := &street{y, y.mkdir(y.path("app"))}
	for _, name := range []string{"GreenLake", "BlueDog", "RedFox"} {
		s.register(s.app, name)
	}
	return s
}

// send sends a message from GreenLake, to BlueDog if no recipient is given.
func (s *street) send(a messages.SendArgs) (messages.Sent, error) {
	s.Helper()
	mail.Default(&a.ProjectKey, s.app)
	mail.Default(&a.SenderName, "GreenLake")
	if a.To == nil && a.CC == nil && a.BCC == nil && !a.Broadcast {
		a.To = []string{"BlueDog"}
	}
	return s.SendMessage(s.Context(), mail.Caller{}, a)
}

func (s *street) sent(a messages.SendArgs) messages.Payload {
	s.Helper()
	return mailtest.Must(s.send(a))(s).Deliveries[0].Payload
}

func (s *street) inboxOf(name string) []messages.Item {
	s.Helper()
	return mailtest.Must(s.FetchInbox(s.Context(), mail.Caller{Owner: true}, messages.InboxArgs{ProjectKey: s.app, AgentName: name, IncludeBodies: true}))(s)
}

func TestAMessageReachesItsRecipientsAndNobodyElse(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	out := mailtest.Must(s.send(messages.SendArgs{To: []string{"bluedog", "BlueDog"}, CC: []string{"BlueDog", "RedFox"}, Subject: " Plan\nB ", Body: "one\r\n---\n", AckRequired: true, ThreadID: "FEAT-1"}))(t)
	mailtest.WantFields(t, "sent", out, "deliveries", "count", "attachments")
	mailtest.WantFields(t, "delivery", out.Deliveries[0], "project", "payload")
	p := out.Deliveries[0].Payload
	mailtest.WantFields(t, "payload", p, "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from",
		"body_md", "to", "cc", "bcc")
	mailtest.Want(t, "to", strings.Join(p.To, ","), "BlueDog")
	mailtest.Want(t, "cc", strings.Join(p.CC, ","), "RedFox")
	mailtest.Want(t, "subject", p.Subject, "Plan B")
	mailtest.Want(t, "project", out.Deliveries[0].Project, s.app)
	got := s.inboxOf("BlueDog")
	mailtest.Want(t, "in BlueDog's inbox", len(got), 1)
	mailtest.WantFields(t, "item", got[0], "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from",
		"kind", "body_md")
	mailtest.Want(t, "body", *got[0].Body, "one\r\n---\n")
	mailtest.Want(t, "kind of RedFox", s.inboxOf("RedFox")[0].Kind, "cc")
	mailtest.Want(t, "in the sender's inbox", len(s.inboxOf("GreenLake")), 0)

	reply := mailtest.Must(s.ReplyMessage(t.Context(), mail.Caller{}, messages.ReplyArgs{ProjectKey: s.app, MessageID: p.ID, SenderName: "BlueDog", Body: "yes"}))(t)
	mailtest.WantFields(t, "reply", reply, "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from",
		"body_md", "to", "cc", "bcc", "reply_to", "deliveries", "count")
	mailtest.Want(t, "reply", reply.Subject+" "+*reply.ThreadID+" "+strings.Join(reply.To, ","), "Re: Plan B FEAT-1 GreenLake")
	mailtest.Want(t, "reply_to", reply.ReplyTo, p.ID)

	read := mailtest.Must(s.MarkMessageRead(t.Context(), mail.Caller{}, s.app, "BlueDog", p.ID))(t)
	mailtest.WantFields(t, "read", read, "message_id", "read", "read_at")
	s.clock.Move(time.Hour)
	ack := mailtest.Must(s.AcknowledgeMessage(t.Context(), mail.Caller{}, s.app, "BlueDog", p.ID))(t)
	mailtest.WantFields(t, "acknowledged", ack, "message_id", "acknowledged", "acknowledged_at", "read_at")
	mailtest.Want(t, "first time read", ack.Read, read.At)
	again := mailtest.Must(s.AcknowledgeMessage(t.Context(), mail.Caller{}, s.app, "BlueDog", p.ID))(t)
	mailtest.Want(t, "again", again, ack)
	_, err := s.MarkMessageRead(t.Context(), mail.Caller{}, s.app, "GreenLake", p.ID)
	wantError(t, "a message of others", err, mail.CodeNotFound)
	if text, err := json.Marshal(out); err != nil || !strings.Contains(string(text), `"attachments":[]`) {
		t.Errorf("%s %v", text, err)
	}
	s.rebuilt()
}

func TestWhatCannotBeSentIsRefusedAndNothingIsStored(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	s.ensure(s.mkdir(s.path("other")))
	s.exec(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
INSERT INTO mail_agents (project_id, name, program, model, task_description, inception_ts, last_active_ts, attachments_policy, contact_policy)
SELECT 1, 'Bulk' || i, 'p', 'm', '', 1, 1, 'auto', 'auto' FROM n`)
	crowd := make([]string, 201)
	for i := range crowd {
		crowd[i] = fmt.Sprint("Bulk", i)
	}
	before := s.changes()
	many := make([]string, 201)
	for i := range many {
		many[i] = "GreenLake@" + s.app
	}
	for what, c := range map[string]struct {
		args    messages.SendArgs
		code    string
		details []string
	}{
		"201 recipients":     {messages.SendArgs{To: crowd}, mail.CodeInvalid, []string{"at most 200"}},
		"1,001 names":        {messages.SendArgs{To: make([]string, 1001)}, mail.CodeInvalid, []string{"at most 200"}},
		"nobody":             {messages.SendArgs{To: []string{}}, mail.CodeInvalid, []string{"At least one recipient"}},
		"an empty name":      {messages.SendArgs{To: []string{" "}}, mail.CodeInvalid, nil},
		"a broadcast to one": {messages.SendArgs{To: []string{"BlueDog"}, Broadcast: true}, mail.CodeInvalid, nil},
		"a broadcast to cc":  {messages.SendArgs{CC: []string{"BlueDog"}, Broadcast: true}, mail.CodeInvalid, nil},
		"importance":         {messages.SendArgs{Importance: "high!"}, mail.CodeInvalid, []string{"importance"}},
		"capitals":           {messages.SendArgs{Importance: "High"}, mail.CodeInvalid, []string{"importance"}},
		"a long subject":     {messages.SendArgs{Subject: strings.Repeat("s", 2<<10)}, mail.CodeTooLarge, []string{`"field":"subject"`, `"bytes":2048`, `"max":1024`}},
		"a long body":        {messages.SendArgs{Body: strings.Repeat("b", 1<<20+1)}, mail.CodeTooLarge, []string{`"field":"body_md"`, `"bytes":1048577`, `"max":1048576`}},
		"NUL in a subject":   {messages.SendArgs{Subject: "a\x00b"}, mail.CodeInvalid, nil},
		"NUL in a body":      {messages.SendArgs{Body: "a\x00b"}, mail.CodeInvalid, nil},
		"broken UTF-8":       {messages.SendArgs{Body: "a\xffb"}, mail.CodeInvalid, nil},
		"a lone surrogate":   {messages.SendArgs{Subject: "a\xed\xa0\x80b"}, mail.CodeInvalid, nil},
		"all":                {messages.SendArgs{To: []string{"all"}}, mail.CodeBroadcast, nil},
		"@everyone":          {messages.SendArgs{CC: []string{"@Everyone"}}, mail.CodeBroadcast, nil},
		"an e-mail address":  {messages.SendArgs{To: []string{"a@b.example"}}, mail.CodeEmail, nil},
		"no project":         {messages.SendArgs{To: []string{"BlueDog@nowhere"}}, mail.CodeNotFound, []string{"nowhere"}},
		"no project either":  {messages.SendArgs{To: []string{"project:nowhere#BlueDog"}}, mail.CodeNotFound, []string{"nowhere"}},
		"a placeholder":      {messages.SendArgs{To: []string{"AGENT_NAME"}}, mail.CodeConfiguration, nil},
		"nobody's name": {messages.SendArgs{To: []string{"BleuDog", "BlueDog"}}, mail.CodeRecipient,
			[]string{"local recipients BleuDog are not registered in project", `"unknown_local":["BleuDog"]`, `"name":"BlueDog"`, "list_agents", `"hint":`}},
		"a program's name":      {messages.SendArgs{To: []string{"codex"}}, mail.CodeRecipient, []string{`"mistake":"PROGRAM_NAME_AS_AGENT"`}},
		"nobody elsewhere":      {messages.SendArgs{To: []string{"BlueDog@other", "BlueDog@" + s.path("other")}}, mail.CodeRecipient, []string{"other"}},
		"a folder as a thread":  {messages.SendArgs{ThreadID: "../../x"}, mail.CodeThreadID, []string{"Invalid thread_id: '../../x'.", `"examples":[`}},
		"a dot as a thread":     {messages.SendArgs{ThreadID: "."}, mail.CodeThreadID, nil},
		"a smile as a thread":   {messages.SendArgs{ThreadID: "😀"}, mail.CodeThreadID, nil},
		"200 é as a thread":     {messages.SendArgs{ThreadID: strings.Repeat("é", 200)}, mail.CodeThreadID, nil},
		"a thread too long":     {messages.SendArgs{ThreadID: strings.Repeat("a", 129)}, mail.CodeThreadID, nil},
		"a topic with a blank":  {messages.SendArgs{Topic: "a b"}, mail.CodeTopic, []string{"Invalid topic: 'a b'."}},
		"a topic too long":      {messages.SendArgs{Topic: strings.Repeat("a", 65)}, mail.CodeTopic, nil},
		"no sender":             {messages.SendArgs{SenderName: "NobodyHere"}, mail.CodeNotFound, nil},
		"an idempotency key":    {messages.SendArgs{IdempotencyKey: "a b"}, mail.CodeInvalid, []string{"idempotency_key"}},
		"the person":            {messages.SendArgs{SenderName: "HumanOverseer"}, mail.CodeNotFound, nil},
		"no file":               {messages.SendArgs{AttachmentPaths: []string{"none.txt"}}, mail.CodeInvalid, []string{"none.txt"}},
		"a file of another one": {messages.SendArgs{AttachmentPaths: []string{"../other/x"}}, mail.CodePath, nil},
	} {
		_, err := s.send(c.args)
		wantError(t, what, err, c.code, c.details...)
	}
	mailtest.Want(t, "changes", s.changes(), before)
	mailtest.Must(s.send(messages.SendArgs{To: many, Subject: strings.Repeat("x", 1<<10), Body: strings.Repeat("b", 1<<20), ThreadID: strings.Repeat("a", 128), Topic: strings.Repeat("a", 64)}))(t)
}

func TestASubjectIsOneLineOf200CharactersAndABodyStaysByteForByte(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	marks := "a" + strings.Repeat("\u0301", 500)
	for given, stored := range map[string]string{
		"":                              "",
		"a\nb\r\x1b[31mc\u2028d":        "a b  [31mc d",
		strings.Repeat("é", 300):        strings.Repeat("é", 200),
		marks:                           "a" + strings.Repeat("\u0301", 199),
		"con":                           "con",
		strings.Repeat("\U0001F600", 5): strings.Repeat("\U0001F600", 5),
	} {
		p := s.sent(messages.SendArgs{Subject: given})
		mailtest.Want(t, "subject", p.Subject, stored)
		var path string
		s.query(&path, "SELECT archive_path FROM mail_messages WHERE id = ?", p.ID)
		if strings.ContainsFunc(path, func(r rune) bool { return r > 'z' || r < '-' }) || len(path) > 160 {
			t.Errorf("path %q", path)
		}
	}
	for _, body := range []string{"---json\n---\n\n", "a\r\nb", "````\n```", "<script>x</script>", strings.Repeat("x", 1<<20), "", " \n"} {
		p := s.sent(messages.SendArgs{Body: body})
		mailtest.Want(t, "body of the answer", *p.Body == body, true)
		mailtest.Want(t, "body", *s.inboxOf("BlueDog")[0].Body == body, true)
	}
	s.rebuilt()
}

func TestSecretsNeverReachTheStore(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	secret := "ghp_" + strings.Repeat("Ab3x", 9)
	s.write(s.path("app", "notes.txt"), "hello")
	mailtest.Must(s.send(messages.SendArgs{Subject: "use " + secret, Body: "token " + secret + " please"}))(t)
	mailtest.Must(s.RequestContact(t.Context(), mail.Caller{}, messages.RequestArgs{ProjectKey: s.app, FromAgent: "BlueDog", ToAgent: "RedFox", Reason: "my token is " + secret}))(t)
	for _, c := range storetest.Changes(t, s.Store) {
		if strings.Contains(string(c.Doc), secret) {
			t.Errorf("%s holds the secret", c.Kind)
		}
	}
	mailtest.Want(t, "subject", strings.Contains(s.inboxOf("BlueDog")[0].Subject, "REDACTED"), true)
}

func TestTimesGrowAndNumbersAndOrdinalsGoUpAlsoWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	other := s.mkdir(s.path("other"))
	s.register(other, "GreenLake")
	s.register(other, "BlueDog")
	var last messages.Payload
	for i := range 6 {
		key := s.app
		if i%2 == 1 {
			key = other
		}
		p := s.sent(messages.SendArgs{ProjectKey: key})
		if p.ID <= last.ID || p.Created <= last.Created {
			t.Errorf("message %d at %v follows %d at %v", p.ID, p.Created, last.ID, last.Created)
		}
		last = p
		s.clock.Move(-time.Hour)
	}
	mailtest.Want(t, "newest first", s.inboxOf("BlueDog")[0].ID, last.ID-1)
	ordinals := func() (text string) {
		s.query(&text, "SELECT group_concat(project_id || ':' || ordinal, ' ') FROM (SELECT * FROM mail_messages ORDER BY id)")
		return text
	}
	mailtest.Want(t, "ordinals", ordinals(), "1:1 2:1 1:2 2:2 1:3 2:3")
	s.clock.Move(40 * 24 * time.Hour)
	s.sent(messages.SendArgs{})
	mailtest.Want(t, "ordinals of a new month", ordinals(), "1:1 2:1 1:2 2:2 1:3 2:3 1:1")
	s.rebuilt()
}

func TestAReplyGoesToTheSenderOrToTheFirstRecipientsAndKeepsItsThread(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	reply := func(a messages.ReplyArgs) messages.Reply {
		t.Helper()
		a.ProjectKey = s.app
		return mailtest.Must(s.ReplyMessage(t.Context(), mail.Caller{}, a))(t)
	}
	first := s.sent(messages.SendArgs{To: []string{"BlueDog"}, CC: []string{"RedFox"}, Subject: "plan", Importance: "urgent", AckRequired: true})
	r := reply(messages.ReplyArgs{MessageID: first.ID, SenderName: "BlueDog"})
	mailtest.Want(t, "thread", *r.ThreadID, mail.Decimal(first.ID))
	mailtest.Want(t, "inherited", r.Importance, "urgent")
	mailtest.Want(t, "inherited", r.AckRequired, true)
	mailtest.Want(t, "to", strings.Join(r.To, ","), "GreenLake")
	own := reply(messages.ReplyArgs{MessageID: first.ID, SenderName: "GreenLake"})
	mailtest.Want(t, "to the first recipients", strings.Join(own.To, ","), "BlueDog")
	outsider := reply(messages.ReplyArgs{MessageID: r.ID, SenderName: "RedFox", CC: []string{"BlueDog", "GreenLake"}})
	mailtest.Want(t, "once", outsider.Subject, "Re: plan")
	mailtest.Want(t, "to", strings.Join(outsider.To, ",")+" "+strings.Join(outsider.CC, ","), "BlueDog GreenLake")
	mailtest.Want(t, "thread", *outsider.ThreadID, mail.Decimal(first.ID))
	prefix, none := "AW:", ""
	mailtest.Want(t, "prefix", reply(messages.ReplyArgs{MessageID: first.ID, SenderName: "BlueDog", SubjectPrefix: &prefix}).Subject, "AW: plan")
	mailtest.Want(t, "no prefix", reply(messages.ReplyArgs{MessageID: first.ID, SenderName: "BlueDog", SubjectPrefix: &none}).Subject, "plan")
	lower := s.sent(messages.SendArgs{Subject: "RE: plan"})
	mailtest.Want(t, "case", reply(messages.ReplyArgs{MessageID: lower.ID, SenderName: "BlueDog"}).Subject, "RE: plan")
	given := reply(messages.ReplyArgs{MessageID: first.ID, SenderName: "BlueDog", To: []string{"RedFox"}, BCC: []string{"BlueDog"}})
	mailtest.Want(t, "given", strings.Join(given.To, ",")+" "+strings.Join(given.BCC, ","), "RedFox BlueDog")
	hidden := s.sent(messages.SendArgs{BCC: []string{"RedFox"}})
	mailtest.Want(t, "to the sender of a blind copy", strings.Join(reply(messages.ReplyArgs{MessageID: hidden.ID, SenderName: "RedFox"}).To, ","), "GreenLake")
	_, err := s.ReplyMessage(t.Context(), mail.Caller{}, messages.ReplyArgs{ProjectKey: s.app, MessageID: hidden.ID, SenderName: "GreenLake"})
	wantError(t, "to nobody", err, mail.CodeInvalid, "At least one recipient")
	for _, id := range []int64{0, -1, 1<<63 - 1, 999} {
		_, err := s.ReplyMessage(t.Context(), mail.Caller{}, messages.ReplyArgs{ProjectKey: s.app, MessageID: id, SenderName: "BlueDog"})
		wantError(t, "no message", err, mail.CodeNotFound, "not found", "message_id")
	}
	s.rebuilt()
}

func TestABroadcastReachesWhoIsActiveAndWilling(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	s.clock.Move(31 * 24 * time.Hour)
	for _, name := range []string{"GreenLake", "BlueDog", "WhiteOwl", "BlackWolf", "GoldHawk"} {
		s.register(s.app, name)
	}
	mailtest.Must(s.SetContactPolicy(t.Context(), mail.Caller{}, s.app, "WhiteOwl", "block_all"))(t)
	mailtest.Must(s.SetContactPolicy(t.Context(), mail.Caller{}, s.app, "GoldHawk", "contacts_only"))(t)
	mailtest.Must(s.RetireAgent(t.Context(), mail.Caller{}, agents.RetireArgs{ProjectKey: s.app, AgentName: "BlackWolf"}))(t)
	out := mailtest.Must(s.send(messages.SendArgs{Broadcast: true, Subject: "hello", AutoContact: true}))(t)
	mailtest.WantFields(t, "broadcast", out, "deliveries", "count", "attachments", "skipped")
	mailtest.Want(t, "to", strings.Join(out.Deliveries[0].Payload.To, ","), "BlueDog")
	mailtest.Want(t, "skipped", strings.Join(out.Skipped, ","), "GoldHawk,WhiteOwl")
	var links int
	s.query(&links, "SELECT count(*) FROM mail_contacts")
	mailtest.Want(t, "requests", links, 0)
	mailtest.Must(s.SetContactPolicy(t.Context(), mail.Caller{}, s.app, "BlueDog", "block_all"))(t)
	_, err := s.send(messages.SendArgs{Broadcast: true})
	wantError(t, "nobody left", err, mail.CodeInvalid)
}

func TestAnIdempotencyKeyGivesTheFirstMessageAgain(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	s.write(s.path("app", "a.txt"), "one")
	args := messages.SendArgs{Subject: "x", BCC: []string{"RedFox"}, AttachmentPaths: []string{"a.txt"}, IdempotencyKey: "k:1"}
	first := mailtest.Must(s.send(args))(t)
	if err := os.Remove(s.path("app", "a.txt")); err != nil {
		t.Fatal(err)
	}
	again := mailtest.Must(s.send(args))(t)
	mailtest.Want(t, "again", mailtest.JSON(t, again), mailtest.JSON(t, first))
	mailtest.Want(t, "messages", len(s.inboxOf("RedFox")), 1)
	args.Subject = "y"
	_, err := s.send(args)
	wantError(t, "other arguments", err, mail.CodeIdempotency, "first_used_ts")
	reply := messages.ReplyArgs{ProjectKey: s.app, MessageID: first.Deliveries[0].Payload.ID, SenderName: "RedFox", Body: "b", IdempotencyKey: "k:1"}
	one := mailtest.Must(s.ReplyMessage(t.Context(), mail.Caller{}, reply))(t)
	mailtest.Want(t, "reply again", mailtest.JSON(t, mailtest.Must(s.ReplyMessage(t.Context(), mail.Caller{}, reply))(t)), mailtest.JSON(t, one))
	s.clock.Move(25 * time.Hour)
	if later := mailtest.Must(s.ReplyMessage(t.Context(), mail.Caller{}, reply))(t); later.ID == one.ID {
		t.Error("a key is kept for ever")
	}
}

func TestAFullDiskTakesNothingNewButCanBeReadAndAcknowledged(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	p := s.sent(messages.SendArgs{AckRequired: true})
	full := *s
	full.yard = s.with(mail.Config{DiskLevel: func() mail.DiskLevel { return mail.DiskFatal }})
	_, err := full.send(messages.SendArgs{})
	wantError(t, "send", err, mail.CodeDiskFull)
	_, err = full.ReplyMessage(t.Context(), mail.Caller{}, messages.ReplyArgs{ProjectKey: s.app, MessageID: p.ID, SenderName: "BlueDog"})
	wantError(t, "reply", err, mail.CodeDiskFull)
	_, err = full.RequestContact(t.Context(), mail.Caller{}, messages.RequestArgs{ProjectKey: s.app, FromAgent: "BlueDog", ToAgent: "RedFox"})
	wantError(t, "request", err, mail.CodeDiskFull)
	_, err = full.Overseer(t.Context(), mail.Caller{Owner: true}, messages.OverseerArgs{ProjectKey: s.app, To: []string{"BlueDog"}})
	wantError(t, "overseer", err, mail.CodeDiskFull)
	mailtest.Must(full.AcknowledgeMessage(t.Context(), mail.Caller{}, s.app, "BlueDog", p.ID))(t)
	mailtest.Must(full.RespondContact(t.Context(), mail.Caller{}, messages.RespondArgs{ProjectKey: s.app, ToAgent: "BlueDog", FromAgent: "RedFox"}))(t)
}

func TestThePersonWritesToAnybodyWithinLimits(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{NoFirstContact: true})
	mailtest.Must(s.SetContactPolicy(t.Context(), mail.Caller{}, s.app, "BlueDog", "block_all"))(t)
	write := func(owner bool, a messages.OverseerArgs) (messages.Sent, error) {
		a.ProjectKey = s.app
		return s.Overseer(t.Context(), mail.Caller{Owner: owner}, a)
	}
	out := mailtest.Must(write(true, messages.OverseerArgs{To: []string{"BlueDog"}, Subject: strings.Repeat("é", 200), Body: strings.Repeat("é", 50_000)}))(t)
	p := out.Deliveries[0].Payload
	mailtest.Want(t, "from", p.From+" "+p.Importance, "HumanOverseer high")
	mailtest.Want(t, "body", *s.inboxOf("BlueDog")[0].Body, strings.Repeat("é", 50_000))
	_, err := write(false, messages.OverseerArgs{To: []string{"BlueDog"}})
	wantError(t, "an agent", err, mail.CodeDenied)
	_, err = write(true, messages.OverseerArgs{To: []string{"BlueDog"}, Subject: strings.Repeat("x", 201)})
	wantError(t, "subject", err, mail.CodeTooLarge)
	_, err = write(true, messages.OverseerArgs{To: []string{"BlueDog"}, Body: strings.Repeat("x", 50_001)})
	wantError(t, "body", err, mail.CodeTooLarge)
	_, err = write(true, messages.OverseerArgs{To: make([]string, 101)})
	wantError(t, "recipients", err, mail.CodeInvalid)
	_, err = write(true, messages.OverseerArgs{})
	wantError(t, "nobody", err, mail.CodeInvalid)
	mailtest.Must(s.ReplyMessage(t.Context(), mail.Caller{}, messages.ReplyArgs{ProjectKey: s.app, MessageID: p.ID, SenderName: "BlueDog", Body: "yes"}))(t)
	s.rebuilt()
}

// exec runs a statement outside mail's calls.
func (s *street) exec(query string, args ...any) {
	s.Helper()
	err := s.Store.Write(s.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
}
