package mailtest

import (
	"context"
	"testing"

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

// Fill adds 50 agents and n messages to a project.
func Fill(t testing.TB, s *store.Store, projectID int64, n int) {
	t.Helper()
	err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		for _, step := range []struct {
			query string
			args  []any
		}{{bulkAgents, []any{projectID}}, {bulkMessages, []any{projectID, n}}, {bulkRecipients, nil}} {
			if _, err := tx.Exec(ctx, step.query, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
