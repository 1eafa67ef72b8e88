package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// street is a yard with a project "app" of three agents.
type street struct {
	*yard
	app string
}

func newStreet(t testing.TB, c Config) *street {
	t.Helper()
	y := newYard(t, c)
	s := &street{y, y.mkdir(y.path("app"))}
	for _, name := range []string{"GreenLake", "BlueDog", "RedFox"} {
		s.register(s.app, name)
	}
	return s
}

// send is a message from GreenLake, to BlueDog if to is empty.
func (s *street) send(a SendArgs) (Sent, error) {
	s.Helper()
	def(&a.ProjectKey, s.app)
	def(&a.SenderName, "GreenLake")
	if a.To == nil && a.CC == nil && a.BCC == nil && !a.Broadcast {
		a.To = []string{"BlueDog"}
	}
	return s.SendMessage(s.Context(), Caller{}, a)
}

func (s *street) sent(a SendArgs) Payload {
	s.Helper()
	return must(s.send(a))(s).Deliveries[0].Payload
}

func (s *street) inboxOf(name string) []Item {
	s.Helper()
	return must(s.FetchInbox(s.Context(), Caller{Owner: true}, InboxArgs{ProjectKey: s.app, AgentName: name, IncludeBodies: true}))(s)
}

func TestAMessageReachesItsRecipientsAndNobodyElse(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	out := must(s.send(SendArgs{To: []string{"bluedog", "BlueDog"}, CC: []string{"BlueDog", "RedFox"}, Subject: " Plan\nB ", Body: "one\r\n---\n", AckRequired: true, ThreadID: "FEAT-1"}))(t)
	wantFields(t, "sent", out, "deliveries", "count", "attachments")
	wantFields(t, "delivery", out.Deliveries[0], "project", "payload")
	p := out.Deliveries[0].Payload
	wantFields(t, "payload", p, "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from",
		"body_md", "to", "cc", "bcc")
	want(t, "to", strings.Join(p.To, ","), "BlueDog")
	want(t, "cc", strings.Join(p.CC, ","), "RedFox")
	want(t, "subject", p.Subject, "Plan B")
	want(t, "project", out.Deliveries[0].Project, s.app)
	got := s.inboxOf("BlueDog")
	want(t, "in BlueDog's inbox", len(got), 1)
	wantFields(t, "item", got[0], "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from",
		"kind", "body_md")
	want(t, "body", *got[0].Body, "one\r\n---\n")
	want(t, "kind of RedFox", s.inboxOf("RedFox")[0].Kind, "cc")
	want(t, "in the sender's inbox", len(s.inboxOf("GreenLake")), 0)

	reply := must(s.ReplyMessage(t.Context(), Caller{}, ReplyArgs{ProjectKey: s.app, MessageID: p.ID, SenderName: "BlueDog", Body: "yes"}))(t)
	wantFields(t, "reply", reply, "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from",
		"body_md", "to", "cc", "bcc", "reply_to", "deliveries", "count")
	want(t, "reply", reply.Subject+" "+*reply.ThreadID+" "+strings.Join(reply.To, ","), "Re: Plan B FEAT-1 GreenLake")
	want(t, "reply_to", reply.ReplyTo, p.ID)

	read := must(s.MarkMessageRead(t.Context(), Caller{}, s.app, "BlueDog", p.ID))(t)
	wantFields(t, "read", read, "message_id", "read", "read_at")
	s.clock.Move(time.Hour)
	ack := must(s.AcknowledgeMessage(t.Context(), Caller{}, s.app, "BlueDog", p.ID))(t)
	wantFields(t, "acknowledged", ack, "message_id", "acknowledged", "acknowledged_at", "read_at")
	want(t, "first time read", ack.Read, read.At)
	again := must(s.AcknowledgeMessage(t.Context(), Caller{}, s.app, "BlueDog", p.ID))(t)
	want(t, "again", again, ack)
	_, err := s.MarkMessageRead(t.Context(), Caller{}, s.app, "GreenLake", p.ID)
	wantError(t, "a message of others", err, CodeNotFound)
	if text, err := json.Marshal(out); err != nil || !strings.Contains(string(text), `"attachments":[]`) {
		t.Errorf("%s %v", text, err)
	}
	s.rebuilt()
}

func TestWhatCannotBeSentIsRefusedAndNothingIsStored(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
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
		args    SendArgs
		code    string
		details []string
	}{
		"201 recipients":     {SendArgs{To: crowd}, CodeInvalid, []string{"at most 200"}},
		"1,001 names":        {SendArgs{To: make([]string, 1001)}, CodeInvalid, []string{"at most 200"}},
		"nobody":             {SendArgs{To: []string{}}, CodeInvalid, []string{"At least one recipient"}},
		"an empty name":      {SendArgs{To: []string{" "}}, CodeInvalid, nil},
		"a broadcast to one": {SendArgs{To: []string{"BlueDog"}, Broadcast: true}, CodeInvalid, nil},
		"a broadcast to cc":  {SendArgs{CC: []string{"BlueDog"}, Broadcast: true}, CodeInvalid, nil},
		"importance":         {SendArgs{Importance: "high!"}, CodeInvalid, []string{"importance"}},
		"capitals":           {SendArgs{Importance: "High"}, CodeInvalid, []string{"importance"}},
		"a long subject":     {SendArgs{Subject: strings.Repeat("s", 2<<10)}, CodeTooLarge, []string{`"field":"subject"`, `"bytes":2048`, `"max":1024`}},
		"a long body":        {SendArgs{Body: strings.Repeat("b", 1<<20+1)}, CodeTooLarge, []string{`"field":"body_md"`, `"bytes":1048577`, `"max":1048576`}},
		"NUL in a subject":   {SendArgs{Subject: "a\x00b"}, CodeInvalid, nil},
		"NUL in a body":      {SendArgs{Body: "a\x00b"}, CodeInvalid, nil},
		"broken UTF-8":       {SendArgs{Body: "a\xffb"}, CodeInvalid, nil},
		"a lone surrogate":   {SendArgs{Subject: "a\xed\xa0\x80b"}, CodeInvalid, nil},
		"all":                {SendArgs{To: []string{"all"}}, CodeBroadcast, nil},
		"@everyone":          {SendArgs{CC: []string{"@Everyone"}}, CodeBroadcast, nil},
		"an e-mail address":  {SendArgs{To: []string{"a@b.example"}}, CodeEmail, nil},
		"no project":         {SendArgs{To: []string{"BlueDog@nowhere"}}, CodeNotFound, []string{"nowhere"}},
		"no project either":  {SendArgs{To: []string{"project:nowhere#BlueDog"}}, CodeNotFound, []string{"nowhere"}},
		"a placeholder":      {SendArgs{To: []string{"AGENT_NAME"}}, CodeConfiguration, nil},
		"nobody's name": {SendArgs{To: []string{"BleuDog", "BlueDog"}}, CodeRecipient,
			[]string{"local recipients BleuDog are not registered in project", `"unknown_local":["BleuDog"]`, `"name":"BlueDog"`, "list_agents", `"hint":`}},
		"a program's name":      {SendArgs{To: []string{"codex"}}, CodeRecipient, []string{`"mistake":"PROGRAM_NAME_AS_AGENT"`}},
		"nobody elsewhere":      {SendArgs{To: []string{"BlueDog@other", "BlueDog@" + s.path("other")}}, CodeRecipient, []string{"other"}},
		"a folder as a thread":  {SendArgs{ThreadID: "../../x"}, CodeThreadID, []string{"Invalid thread_id: '../../x'.", `"examples":[`}},
		"a dot as a thread":     {SendArgs{ThreadID: "."}, CodeThreadID, nil},
		"a smile as a thread":   {SendArgs{ThreadID: "😀"}, CodeThreadID, nil},
		"200 é as a thread":     {SendArgs{ThreadID: strings.Repeat("é", 200)}, CodeThreadID, nil},
		"a thread too long":     {SendArgs{ThreadID: strings.Repeat("a", 129)}, CodeThreadID, nil},
		"a topic with a blank":  {SendArgs{Topic: "a b"}, CodeTopic, []string{"Invalid topic: 'a b'."}},
		"a topic too long":      {SendArgs{Topic: strings.Repeat("a", 65)}, CodeTopic, nil},
		"no sender":             {SendArgs{SenderName: "NobodyHere"}, CodeNotFound, nil},
		"an idempotency key":    {SendArgs{IdempotencyKey: "a b"}, CodeInvalid, []string{"idempotency_key"}},
		"the person":            {SendArgs{SenderName: "HumanOverseer"}, CodeNotFound, nil},
		"no file":               {SendArgs{AttachmentPaths: []string{"none.txt"}}, CodeInvalid, []string{"none.txt"}},
		"a file of another one": {SendArgs{AttachmentPaths: []string{"../other/x"}}, CodePath, nil},
	} {
		_, err := s.send(c.args)
		wantError(t, what, err, c.code, c.details...)
	}
	want(t, "changes", s.changes(), before)
	must(s.send(SendArgs{To: many, Subject: strings.Repeat("x", 1<<10), Body: strings.Repeat("b", 1<<20), ThreadID: strings.Repeat("a", 128), Topic: strings.Repeat("a", 64)}))(t)
}

func TestASubjectIsOneLineOf200CharactersAndABodyStaysByteForByte(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	marks := "a" + strings.Repeat("\u0301", 500)
	for given, stored := range map[string]string{
		"":                              "",
		"a\nb\r\x1b[31mc\u2028d":        "a b  [31mc d",
		strings.Repeat("é", 300):        strings.Repeat("é", 200),
		marks:                           "a" + strings.Repeat("\u0301", 199),
		"con":                           "con",
		strings.Repeat("\U0001F600", 5): strings.Repeat("\U0001F600", 5),
	} {
		p := s.sent(SendArgs{Subject: given})
		want(t, "subject", p.Subject, stored)
		var path string
		s.query(&path, "SELECT archive_path FROM mail_messages WHERE id = ?", p.ID)
		if strings.ContainsFunc(path, func(r rune) bool { return r > 'z' || r < '-' }) || len(path) > 160 {
			t.Errorf("path %q", path)
		}
	}
	for _, body := range []string{"---json\n---\n\n", "a\r\nb", "````\n```", "<script>x</script>", strings.Repeat("x", 1<<20), "", " \n"} {
		p := s.sent(SendArgs{Body: body})
		want(t, "body of the answer", *p.Body == body, true)
		want(t, "body", *s.inboxOf("BlueDog")[0].Body == body, true)
	}
	s.rebuilt()
}

func TestSecretsNeverReachTheStore(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	secret := "ghp_" + strings.Repeat("Ab3x", 9)
	s.write(s.path("app", "notes.txt"), "hello")
	must(s.send(SendArgs{Subject: "use " + secret, Body: "token " + secret + " please"}))(t)
	must(s.RequestContact(t.Context(), Caller{}, RequestArgs{ProjectKey: s.app, FromAgent: "BlueDog", ToAgent: "RedFox", Reason: "my token is " + secret}))(t)
	for _, c := range storetest.Changes(t, s.store) {
		if strings.Contains(string(c.Doc), secret) {
			t.Errorf("%s holds the secret", c.Kind)
		}
	}
	want(t, "subject", strings.Contains(s.inboxOf("BlueDog")[0].Subject, "REDACTED"), true)
}

func TestTimesGrowAndNumbersAndOrdinalsGoUpAlsoWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	other := s.mkdir(s.path("other"))
	s.register(other, "GreenLake")
	s.register(other, "BlueDog")
	var last Payload
	for i := range 6 {
		key := s.app
		if i%2 == 1 {
			key = other
		}
		p := s.sent(SendArgs{ProjectKey: key})
		if p.ID <= last.ID || p.Created <= last.Created {
			t.Errorf("message %d at %v follows %d at %v", p.ID, p.Created, last.ID, last.Created)
		}
		last = p
		s.clock.Move(-time.Hour)
	}
	want(t, "newest first", s.inboxOf("BlueDog")[0].ID, last.ID-1)
	ordinals := func() (text string) {
		s.query(&text, "SELECT group_concat(project_id || ':' || ordinal, ' ') FROM (SELECT * FROM mail_messages ORDER BY id)")
		return text
	}
	want(t, "ordinals", ordinals(), "1:1 2:1 1:2 2:2 1:3 2:3")
	s.clock.Move(40 * 24 * time.Hour)
	s.sent(SendArgs{})
	want(t, "ordinals of a new month", ordinals(), "1:1 2:1 1:2 2:2 1:3 2:3 1:1")
	s.rebuilt()
}

func TestAReplyGoesToTheSenderOrToTheFirstRecipientsAndKeepsItsThread(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	reply := func(a ReplyArgs) Reply {
		t.Helper()
		a.ProjectKey = s.app
		return must(s.ReplyMessage(t.Context(), Caller{}, a))(t)
	}
	first := s.sent(SendArgs{To: []string{"BlueDog"}, CC: []string{"RedFox"}, Subject: "plan", Importance: "urgent", AckRequired: true})
	r := reply(ReplyArgs{MessageID: first.ID, SenderName: "BlueDog"})
	want(t, "thread", *r.ThreadID, decimal(first.ID))
	want(t, "inherited", r.Importance, "urgent")
	want(t, "inherited", r.AckRequired, true)
	want(t, "to", strings.Join(r.To, ","), "GreenLake")
	own := reply(ReplyArgs{MessageID: first.ID, SenderName: "GreenLake"})
	want(t, "to the first recipients", strings.Join(own.To, ","), "BlueDog")
	outsider := reply(ReplyArgs{MessageID: r.ID, SenderName: "RedFox", CC: []string{"BlueDog", "GreenLake"}})
	want(t, "once", outsider.Subject, "Re: plan")
	want(t, "to", strings.Join(outsider.To, ",")+" "+strings.Join(outsider.CC, ","), "BlueDog GreenLake")
	want(t, "thread", *outsider.ThreadID, decimal(first.ID))
	prefix, none := "AW:", ""
	want(t, "prefix", reply(ReplyArgs{MessageID: first.ID, SenderName: "BlueDog", SubjectPrefix: &prefix}).Subject, "AW: plan")
	want(t, "no prefix", reply(ReplyArgs{MessageID: first.ID, SenderName: "BlueDog", SubjectPrefix: &none}).Subject, "plan")
	lower := s.sent(SendArgs{Subject: "RE: plan"})
	want(t, "case", reply(ReplyArgs{MessageID: lower.ID, SenderName: "BlueDog"}).Subject, "RE: plan")
	given := reply(ReplyArgs{MessageID: first.ID, SenderName: "BlueDog", To: []string{"RedFox"}, BCC: []string{"BlueDog"}})
	want(t, "given", strings.Join(given.To, ",")+" "+strings.Join(given.BCC, ","), "RedFox BlueDog")
	hidden := s.sent(SendArgs{BCC: []string{"RedFox"}})
	want(t, "to the sender of a blind copy", strings.Join(reply(ReplyArgs{MessageID: hidden.ID, SenderName: "RedFox"}).To, ","), "GreenLake")
	_, err := s.ReplyMessage(t.Context(), Caller{}, ReplyArgs{ProjectKey: s.app, MessageID: hidden.ID, SenderName: "GreenLake"})
	wantError(t, "to nobody", err, CodeInvalid, "At least one recipient")
	for _, id := range []int64{0, -1, 1<<63 - 1, 999} {
		_, err := s.ReplyMessage(t.Context(), Caller{}, ReplyArgs{ProjectKey: s.app, MessageID: id, SenderName: "BlueDog"})
		wantError(t, "no message", err, CodeNotFound, "not found", "message_id")
	}
	s.rebuilt()
}

func TestABroadcastReachesWhoIsActiveAndWilling(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	s.clock.Move(31 * 24 * time.Hour)
	for _, name := range []string{"GreenLake", "BlueDog", "WhiteOwl", "BlackWolf", "GoldHawk"} {
		s.register(s.app, name)
	}
	must(s.SetContactPolicy(t.Context(), Caller{}, s.app, "WhiteOwl", "block_all"))(t)
	must(s.SetContactPolicy(t.Context(), Caller{}, s.app, "GoldHawk", "contacts_only"))(t)
	must(s.RetireAgent(t.Context(), Caller{}, RetireArgs{ProjectKey: s.app, AgentName: "BlackWolf"}))(t)
	out := must(s.send(SendArgs{Broadcast: true, Subject: "hello", AutoContact: true}))(t)
	wantFields(t, "broadcast", out, "deliveries", "count", "attachments", "skipped")
	want(t, "to", strings.Join(out.Deliveries[0].Payload.To, ","), "BlueDog")
	want(t, "skipped", strings.Join(out.Skipped, ","), "GoldHawk,WhiteOwl")
	var links int
	s.query(&links, "SELECT count(*) FROM mail_contacts")
	want(t, "requests", links, 0)
	must(s.SetContactPolicy(t.Context(), Caller{}, s.app, "BlueDog", "block_all"))(t)
	_, err := s.send(SendArgs{Broadcast: true})
	wantError(t, "nobody left", err, CodeInvalid)
}

func TestAnIdempotencyKeyGivesTheFirstMessageAgain(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	s.write(s.path("app", "a.txt"), "one")
	args := SendArgs{Subject: "x", BCC: []string{"RedFox"}, AttachmentPaths: []string{"a.txt"}, IdempotencyKey: "k:1"}
	first := must(s.send(args))(t)
	if err := os.Remove(s.path("app", "a.txt")); err != nil {
		t.Fatal(err)
	}
	again := must(s.send(args))(t)
	want(t, "again", jsonText(t, again), jsonText(t, first))
	want(t, "messages", len(s.inboxOf("RedFox")), 1)
	args.Subject = "y"
	_, err := s.send(args)
	wantError(t, "other arguments", err, CodeIdempotency, "first_used_ts")
	reply := ReplyArgs{ProjectKey: s.app, MessageID: first.Deliveries[0].Payload.ID, SenderName: "RedFox", Body: "b", IdempotencyKey: "k:1"}
	one := must(s.ReplyMessage(t.Context(), Caller{}, reply))(t)
	want(t, "reply again", jsonText(t, must(s.ReplyMessage(t.Context(), Caller{}, reply))(t)), jsonText(t, one))
	s.clock.Move(25 * time.Hour)
	if later := must(s.ReplyMessage(t.Context(), Caller{}, reply))(t); later.ID == one.ID {
		t.Error("a key is kept for ever")
	}
}

func jsonText(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAFullDiskTakesNothingNewButCanBeReadAndAcknowledged(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	p := s.sent(SendArgs{AckRequired: true})
	full := *s
	full.yard = s.with(Config{DiskLevel: func() DiskLevel { return DiskFatal }})
	_, err := full.send(SendArgs{})
	wantError(t, "send", err, CodeDiskFull)
	_, err = full.ReplyMessage(t.Context(), Caller{}, ReplyArgs{ProjectKey: s.app, MessageID: p.ID, SenderName: "BlueDog"})
	wantError(t, "reply", err, CodeDiskFull)
	_, err = full.RequestContact(t.Context(), Caller{}, RequestArgs{ProjectKey: s.app, FromAgent: "BlueDog", ToAgent: "RedFox"})
	wantError(t, "request", err, CodeDiskFull)
	_, err = full.Overseer(t.Context(), Caller{Owner: true}, OverseerArgs{ProjectKey: s.app, To: []string{"BlueDog"}})
	wantError(t, "overseer", err, CodeDiskFull)
	must(full.AcknowledgeMessage(t.Context(), Caller{}, s.app, "BlueDog", p.ID))(t)
	must(full.RespondContact(t.Context(), Caller{}, RespondArgs{ProjectKey: s.app, ToAgent: "BlueDog", FromAgent: "RedFox"}))(t)
}

func TestThePersonWritesToAnybodyWithinLimits(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{NoFirstContact: true})
	must(s.SetContactPolicy(t.Context(), Caller{}, s.app, "BlueDog", "block_all"))(t)
	write := func(owner bool, a OverseerArgs) (Sent, error) {
		a.ProjectKey = s.app
		return s.Overseer(t.Context(), Caller{Owner: owner}, a)
	}
	out := must(write(true, OverseerArgs{To: []string{"BlueDog"}, Subject: strings.Repeat("é", 200), Body: strings.Repeat("é", 50_000)}))(t)
	p := out.Deliveries[0].Payload
	want(t, "from", p.From+" "+p.Importance, "HumanOverseer high")
	want(t, "body", *s.inboxOf("BlueDog")[0].Body, strings.Repeat("é", 50_000))
	_, err := write(false, OverseerArgs{To: []string{"BlueDog"}})
	wantError(t, "an agent", err, CodeDenied)
	_, err = write(true, OverseerArgs{To: []string{"BlueDog"}, Subject: strings.Repeat("x", 201)})
	wantError(t, "subject", err, CodeTooLarge)
	_, err = write(true, OverseerArgs{To: []string{"BlueDog"}, Body: strings.Repeat("x", 50_001)})
	wantError(t, "body", err, CodeTooLarge)
	_, err = write(true, OverseerArgs{To: make([]string, 101)})
	wantError(t, "recipients", err, CodeInvalid)
	_, err = write(true, OverseerArgs{})
	wantError(t, "nobody", err, CodeInvalid)
	must(s.ReplyMessage(t.Context(), Caller{}, ReplyArgs{ProjectKey: s.app, MessageID: p.ID, SenderName: "BlueDog", Body: "yes"}))(t)
	s.rebuilt()
}

func FuzzAnAddressIsANameAndPerhapsAProject(f *testing.F) {
	for _, seed := range []string{"BlueDog", "BlueDog@app", "BlueDog@/w/@scope/app", "project:app#BlueDog", "project:#x", "project:a#", "@", "@x", "x@", "a@b@c", "project:a#b#C", " @ "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, key := splitAddress(text)
		if key == "" {
			if name != text {
				t.Errorf("%q is the name %q", text, name)
			}
			return
		}
		if strings.TrimSpace(name) == "" || name != strings.TrimSpace(name) || key != strings.TrimSpace(key) {
			t.Errorf("%q: name %q, key %q", text, name, key)
		}
		if !strings.Contains(text, name) || !strings.Contains(text, key) {
			t.Errorf("%q: name %q, key %q are not its parts", text, name, key)
		}
		for _, form := range []string{name + "@" + key, "project:" + key + "#" + name} {
			n, k := splitAddress(form)
			if !strings.HasPrefix(name, "project:") && !strings.ContainsAny(name, "@#") && (n != name || k != key) {
				t.Errorf("%q: name %q, key %q, want %q, %q", form, n, k, name, key)
			}
		}
	})
}

// exec runs a statement that is no call of ours.
func (s *street) exec(query string, args ...any) {
	s.Helper()
	err := s.store.Write(s.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
}
