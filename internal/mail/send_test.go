package mail

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
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
	return must(s.FetchInbox(s.Context(), Caller{}, InboxArgs{ProjectKey: s.app, AgentName: name, IncludeBodies: true}))(s)
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
