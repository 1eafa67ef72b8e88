package mail

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Rows made in bulk: 100,000 messages among 50 agents, every tenth of them in one
// thread, a hundredth urgent. Words are as uneven as those of prose.
const (
	bulkAgents = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49)
INSERT INTO mail_agents (project_id, name, program, model, task_description, inception_ts, last_active_ts, attachments_policy, contact_policy)
SELECT ?1, 'Bulk' || i, 'p', 'm', '', 1, 1, 'auto', 'auto' FROM n`
	bulkMessages = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1)
INSERT INTO mail_messages (uid, project_id, sender_id, thread_id, subject, body_md, importance, ack_required, created_ts, seq, ordinal, archive_path)
SELECT 'bulk' || i, ?1, (SELECT id FROM mail_agents WHERE name = 'Bulk' || (i % 50)),
    CASE WHEN i % 10 = 0 THEN 'big' WHEN i % 10 < 5 THEN 'T-' || (i / 50) END,
    'about step ' || (i % 1000) || ' of plan ' || (i % 17),
    'the build of part ' || (i % 333) || ' failed when we ran test ' || i || ' again and the log says word' || (i % 4999) || ' near line ' || (i % 100)
        || '; please look at it and tell me what you see, the deploy waits for release number ' || (i % 71),
    CASE WHEN i % 100 = 0 THEN 'urgent' ELSE 'normal' END, i % 20 = 0, 1600000000000000000 + i * 1000000000, 1, i + 1, 'messages/x/' || i FROM n`
	bulkRecipients = `INSERT INTO mail_recipients (message_id, agent_id, kind, position, importance, ack_required, created_ts, read_ts)
SELECT m.id, (SELECT id FROM mail_agents WHERE name = 'Bulk' || ((m.id * 7 + 3) % 50)), 'to', 0, m.importance, m.ack_required, m.created_ts,
    CASE WHEN m.id % 4 > 0 THEN m.created_ts + 1000 END FROM mail_messages m WHERE m.uid LIKE 'bulk%'`
)

// fill puts n messages into the project.
func (s *street) fill(n int) {
	s.Helper()
	p := s.ensure(s.app)
	err := s.store.Write(s.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		for _, step := range []struct {
			query string
			args  []any
		}{{bulkAgents, []any{p.ID}}, {bulkMessages, []any{p.ID, n}}, {bulkRecipients, nil}} {
			if _, err := tx.Exec(ctx, step.query, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

// BenchmarkAmongManyMessages prints what calls cost at 100,000 messages (mail §11);
// cairn-bench holds its figures to the contract.
func BenchmarkAmongManyMessages(b *testing.B) {
	s := newStreet(b, Config{})
	s.fill(100_000)
	ctx, c := b.Context(), Caller{}
	run := func(name string, call func(i int) error) {
		b.Run(name, func(b *testing.B) {
			var all []time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				if err := call(i); err != nil {
					b.Fatal(err)
				}
				all = append(all, time.Since(began))
			}
			report(b, all)
		})
	}
	inbox := func(a InboxArgs) func(i int) error {
		return func(i int) error {
			a.ProjectKey, a.AgentName = s.app, fmt.Sprint("Bulk", i%50)
			_, err := s.FetchInbox(ctx, c, a)
			return err
		}
	}
	run("inbox", inbox(InboxArgs{}))
	run("inbox-unread", inbox(InboxArgs{UnreadOnly: true}))
	run("inbox-urgent", inbox(InboxArgs{UrgentOnly: true, UnreadOnly: true}))
	run("inbox-bodies", inbox(InboxArgs{IncludeBodies: true}))
	search := func(q string, a SearchArgs) func(i int) error {
		return func(i int) error {
			a.ProjectKey, a.Query = s.app, strings.ReplaceAll(q, "#", fmt.Sprint(i%4999))
			_, err := s.SearchMessages(ctx, c, a)
			return err
		}
	}
	run("search-rare", search("word#", SearchArgs{}))
	run("search-two", search("release deploy", SearchArgs{}))
	run("search-two-common", search("build deploy", SearchArgs{}))
	run("search-common", search("build", SearchArgs{}))
	run("search-common-sender", search("build", SearchArgs{Sender: "Bulk3"}))
	run("search-common-thread", search("build", SearchArgs{ThreadID: "T-77"}))
	run("search-common-recency", search("build", SearchArgs{Ranking: "recency"}))
	run("search-prefix", search("bu*", SearchArgs{}))
	run("search-nothing", search("zzz", SearchArgs{}))
	run("search-substring", search("(((uil#", SearchArgs{}))
	run("summary", func(int) error {
		_, err := s.SummarizeThread(ctx, c, SummarizeArgs{ProjectKey: s.app, ThreadID: "big", IncludeExamples: true})
		return err
	})
	run("thread", func(int) error {
		_, err := s.ThreadOf(ctx, c, s.app, "T-5", true)
		return err
	})
	run("read", func(i int) error {
		n := int64(4 + 4*(i%25_000)) // unread
		_, err := s.MarkMessageRead(ctx, c, s.app, fmt.Sprint("Bulk", (n*7+3)%50), n)
		return err
	})
	run("send", func(i int) error {
		_, err := s.send(SendArgs{Subject: "hello", Body: "the build failed", ThreadID: "big"})
		return err
	})
	careful := s.with(Config{NoFirstContact: true})
	run("send-asking", func(i int) error {
		_, err := careful.SendMessage(ctx, c, SendArgs{ProjectKey: s.app, SenderName: "Bulk1", To: []string{"Bulk2"}, Subject: "hello", ThreadID: "big"})
		if fault.HasCode(err, CodeContactRequired) {
			return nil
		}
		return err
	})
}
