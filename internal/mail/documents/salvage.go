package documents

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

// repairs returns the statements that derive rows from other rows, in execution order.
func repairs() []string {
	return []string{
		`UPDATE mail_recipients SET importance = m.importance, ack_required = m.ack_required, created_ts = m.created_ts
FROM mail_messages m WHERE m.id = mail_recipients.message_id`,

		`UPDATE mail_agents SET received = (SELECT count(*) FROM mail_recipients WHERE agent_id = mail_agents.id),
unread = (SELECT count(*) FROM mail_recipients WHERE agent_id = mail_agents.id AND read_ts IS NULL),
ack_due = (SELECT count(*) FROM mail_recipients WHERE agent_id = mail_agents.id AND ack_required AND ack_ts IS NULL),
last_active_ts = max(last_active_ts, inception_ts, ifnull((SELECT max(created_ts) FROM mail_messages WHERE sender_id = mail_agents.id), 0))`,

		`UPDATE mail_messages SET reply_to = NULL WHERE reply_to NOTNULL AND reply_to NOT IN (SELECT id FROM mail_messages)`,

		`DELETE FROM mail_threads WHERE NOT EXISTS (SELECT 1 FROM mail_messages m
  WHERE m.project_id = mail_threads.project_id AND m.thread_id = mail_threads.thread_id)`,

		`DELETE FROM mail_notices WHERE subject_uid NOT IN (SELECT uid FROM mail_messages) AND subject_uid NOT IN (SELECT uid FROM mail_reservations)`,
		`DELETE FROM mail_idempotency WHERE NOT EXISTS (SELECT 1 FROM mail_agents a
  WHERE a.id = mail_idempotency.agent_id AND a.project_id = mail_idempotency.project_id)`,

		`INSERT INTO mail_fts (mail_fts) VALUES ('delete-all')`,
		`INSERT INTO mail_fts (rowid, subject, body) SELECT id, subject, body_md FROM mail_messages ORDER BY id`,
	}
}

const (
	selectThreadless = `SELECT m.project_id, m.thread_id FROM mail_messages m WHERE m.thread_id NOTNULL
AND NOT EXISTS (SELECT 1 FROM mail_threads t WHERE t.project_id = m.project_id AND t.thread_id = m.thread_id)
GROUP BY m.project_id, m.thread_id ORDER BY min(m.created_ts)`
	dropThreads = `DELETE FROM mail_threads WHERE NOT EXISTS (SELECT 1 FROM mail_messages m
  WHERE m.project_id = mail_threads.project_id AND m.thread_id = mail_threads.thread_id)`
	countThreads = `UPDATE mail_threads SET (messages, first_ts, last_ts) = (SELECT count(*), min(created_ts), max(created_ts)
  FROM mail_messages m WHERE m.project_id = mail_threads.project_id AND m.thread_id = mail_threads.thread_id)`
	selectUsed = `SELECT ifnull(max(id), 0) FROM `
)

// orphans returns the statements that delete rows whose parent is lost.
func orphans() []string {
	return []string{
		`DELETE FROM mail_messages WHERE project_id NOT IN (SELECT id FROM mail_projects) OR sender_id NOT IN (SELECT id FROM mail_agents)`,
		`DELETE FROM mail_recipients WHERE message_id NOT IN (SELECT id FROM mail_messages) OR agent_id NOT IN (SELECT id FROM mail_agents)`,
		`DELETE FROM mail_threads WHERE project_id NOT IN (SELECT id FROM mail_projects)`,
		`DELETE FROM mail_sessions WHERE agent_id NOT IN (SELECT id FROM mail_agents) OR session_key NOT IN (SELECT key FROM sessions)`,
		`DELETE FROM mail_contacts WHERE a_agent_id NOT IN (SELECT id FROM mail_agents) OR b_agent_id NOT IN (SELECT id FROM mail_agents)`,
		`DELETE FROM mail_reservations WHERE agent_id NOT IN (SELECT id FROM mail_agents) OR project_id NOT IN (SELECT id FROM mail_projects)`,
		`UPDATE mail_reservations SET session_key = NULL WHERE session_key NOT IN (SELECT key FROM sessions)`,
		`DELETE FROM mail_idempotency WHERE agent_id NOT IN (SELECT id FROM mail_agents) OR project_id NOT IN (SELECT id FROM mail_projects)`,
		`DELETE FROM mail_notices WHERE agent_id NOT IN (SELECT id FROM mail_agents) OR session_key NOT IN (SELECT key FROM sessions)`,
	}
}

// Repair repairs the mail that a salvage has kept. It restores lost rows from the change log, and
// logs rows that the log does not contain. Placeholder rows get the values in the log. Counters,
// threads, numbers and searchable words are derived again. It is mail's part of salvage.Run. It
// changes nothing in intact mail and is safe to retry.
func Repair(ctx context.Context, tx *store.Tx) error {
	for i, step := range []func(context.Context, *store.Tx) error{
		dropAlteredBlobs, adoptMadeUp, dropMadeUp, bringBack, statements(orphans()), mendThreads, statements(repairs()), raiseUsed, logRows, statements(repairs()), mendThreads, raiseUsed,
		blankLost,
	} {
		if err := step(ctx, tx); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// dropAlteredBlobs deletes the attachments whose bytes do not match their hash.
func dropAlteredBlobs(ctx context.Context, tx *store.Tx) error {
	names, err := alteredBlobs(ctx, tx)
	for _, name := range names {
		if err == nil {
			_, err = tx.Exec(ctx, deleteBlob, name)
		}
	}
	return err
}

// blankLost deletes the log's documents of entities that could not be restored. These are
// attachments, whose bytes were only in the row, and documents that refer to a lost entity.
func blankLost(ctx context.Context, tx *store.Tx) error {
	var lost []mail.Document
	err := eachLost(ctx, tx, func(d mail.Document) error {
		lost = append(lost, d)
		return nil
	})
	for _, d := range lost {
		if err == nil {
			_, err = tx.Blank(ctx, mail.Stream(d.StreamProject()), d.Kind(), d.Key())
		}
	}
	return err
}

func statements(list []string) func(context.Context, *store.Tx) error {
	return func(ctx context.Context, tx *store.Tx) error {
		for _, statement := range list {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%.60s: %w", statement, err)
			}
		}
		return nil
	}
}

const (
	adoptProject = `UPDATE mail_projects SET project_key = ?2, uid = ?3, slug = ?4, human_key = ?5, identity_mode = ?6, normalized_remote = ?7,
folds_case = ?8, created_ts = ?9 WHERE id = ?1`
	adoptAgent = `UPDATE mail_agents SET project_id = ?2, name = ?3, inception_ts = ?4, last_active_ts = max(last_active_ts, ?4) WHERE id = ?1`
)

// adoptMadeUp gives placeholder rows of projects and agents the values of the logged entity with
// their number. It deletes such rows of messages and reservations.
func adoptMadeUp(ctx context.Context, tx *store.Tx) error {
	return eachLost(ctx, tx, func(d mail.Document) error {
		id := numberOf(d)
		if id == nil {
			return nil
		}
		taken, err := isTaken(ctx, tx, d, *id)
		if err != nil || !taken {
			return err
		}
		switch d := d.(type) {
		case *mail.Project:
			row, err := project.Ensure(ctx, tx, d.ProductID)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, adoptProject, d.ID, row.Key, d.UID, d.Slug, d.HumanKey, d.IdentityMode, d.Remote, d.FoldsCase, d.Created)
			return err
		case *mail.Agent:
			p, err := mail.ProjectByUID(ctx, tx, d.ProjectUID)
			if err != nil || p == nil {
				return err
			}
			if _, err = tx.Exec(ctx, adoptAgent, d.ID, p.ID, d.Name, d.Inception); err != nil {
				return err
			}
			return d.Apply(ctx, tx, 0)
		case *mail.Message, *mail.Reservation:
			_, err := tx.Exec(ctx, `DELETE FROM `+numbered(d)+` WHERE id = ?`, *id)
			return err
		}
		return nil
	})
}

// dropMadeUp handles placeholders that the log does not contain either. It deletes messages, and
// gives projects and agents values that keep the other rows valid.
func dropMadeUp(ctx context.Context, tx *store.Tx) error {
	return statements([]string{
		`DELETE FROM mail_messages WHERE importance NOT IN ('low', 'normal', 'high', 'urgent') OR created_ts <= 0 OR ordinal < 1`,
		// An unknown agent belongs to the project of its messages.
		`UPDATE mail_agents SET project_id = c.project FROM (SELECT a.id AS agent, coalesce(
  (SELECT m.project_id FROM mail_recipients r JOIN mail_messages m ON m.id = r.message_id WHERE r.agent_id = a.id AND m.project_id IN (SELECT id FROM mail_projects)),
  (SELECT project_id FROM mail_messages WHERE sender_id = a.id AND project_id IN (SELECT id FROM mail_projects)),
  (SELECT project_id FROM mail_reservations WHERE agent_id = a.id AND project_id IN (SELECT id FROM mail_projects))) AS project
  FROM mail_agents a WHERE a.project_id < 1) c WHERE c.agent = mail_agents.id AND c.project IS NOT NULL`,
		`DELETE FROM mail_recipients WHERE agent_id IN (SELECT id FROM mail_agents WHERE project_id < 1)`,
		`DELETE FROM mail_messages WHERE project_id < 1 OR sender_id IN (SELECT id FROM mail_agents WHERE project_id < 1)`,
		`DELETE FROM mail_sessions WHERE agent_id IN (SELECT id FROM mail_agents WHERE project_id < 1)`,
		`DELETE FROM mail_notices WHERE agent_id IN (SELECT id FROM mail_agents WHERE project_id < 1)`,
		`DELETE FROM mail_idempotency WHERE project_id < 1 OR agent_id IN (SELECT id FROM mail_agents WHERE project_id < 1)`,
		`DELETE FROM mail_contacts WHERE a_agent_id IN (SELECT id FROM mail_agents WHERE project_id < 1)
OR b_agent_id IN (SELECT id FROM mail_agents WHERE project_id < 1)`,
		`DELETE FROM mail_reservations WHERE project_id < 1 OR agent_id IN (SELECT id FROM mail_agents WHERE project_id < 1)`,
		`DELETE FROM mail_threads WHERE project_id < 1`,
		`DELETE FROM mail_agents WHERE project_id < 1`,
		`DELETE FROM mail_projects WHERE id < 1`,
		`UPDATE mail_projects SET uid = substr(lower(hex(zeroblob(10))), 1, 20 - length(id)) || id, slug = 'lost-' || id, human_key = '/lost-' || id,
identity_mode = 'dir', created_ts = 1000 WHERE identity_mode NOT IN ('dir', 'git-remote', 'git-toplevel', 'git-common-dir')`,
		`UPDATE mail_agents SET name = 'Lost-' || id, program = 'unknown', model = 'unknown', task_description = '', inception_ts = 1000,
attachments_policy = 'auto', contact_policy = 'auto' WHERE contact_policy NOT IN ('open', 'auto', 'contacts_only', 'block_all')`,
	})(ctx, tx)
}

// bringBack restores rows that are in the log but not in the tables. Messages get the values in
// the log, because they never change.
func bringBack(ctx context.Context, tx *store.Tx) error {
	return eachLogged(ctx, tx, func(d mail.Document) error {
		if mail.Validate(d) != nil {
			return nil
		}
		switch d := d.(type) {
		case *mail.Message:
			return bringBackMessage(ctx, d, tx)
		case *mail.Delivery:
		default:
			there, err := hasRow(ctx, tx, d)
			if err != nil || there {
				return err
			}
		}
		return unlessIncomplete(d.Apply(ctx, tx, 0))
	})
}

// unlessIncomplete ignores the error of a document that refers to a lost entity.
func unlessIncomplete(err error) error {
	if fault.HasCode(err, mail.CodeIncomplete) {
		return nil
	}
	return err
}

const (
	selectSaid     = `SELECT seq FROM changes WHERE kind = (SELECT id FROM symbols WHERE text = ?1) AND id = ?2 AND doc IS NOT NULL ORDER BY seq LIMIT 1`
	correctMessage = `UPDATE mail_messages SET sender_id = ?2, thread_id = ?3, subject = ?4, body_md = ?5, importance = ?6, ack_required = ?7, topic = ?8,
created_ts = ?9, attachments = ?10, ordinal = ?11, archive_path = ?12, reply_to = (SELECT id FROM mail_messages WHERE uid = ?13) WHERE uid = ?1`
	dropRecipients = `DELETE FROM mail_recipients WHERE message_id = ? AND kind NOT IN ('to', 'cc', 'bcc')`
)

func bringBackMessage(ctx context.Context, m *mail.Message, tx *store.Tx) error {
	here, err := mail.QueryMessage(ctx, tx, mail.SelectMessageByUID, m.UID)
	if err != nil {
		return err
	}
	if here == nil {
		var seq int64
		if err := tx.Get(ctx, []any{&seq}, selectSaid, mail.KindMessage, m.UID); err != nil {
			return err
		}
		return unlessIncomplete(m.Apply(ctx, tx, seq))
	}
	text, err := json.Marshal(here)
	if err != nil || says(m, text) {
		return err
	}
	p, err := mail.ProjectOf(ctx, tx, m)
	if err != nil {
		return unlessIncomplete(err)
	}
	sender, err := mail.AgentOf(ctx, tx, m, p.ID, m.From)
	if err != nil {
		return unlessIncomplete(err)
	}
	_, err = tx.Exec(ctx, correctMessage, m.UID, sender.ID, m.ThreadID, m.Subject, m.Body, m.Importance, m.AckRequired, m.Topic, m.Created,
		m.AttachmentsColumn(), m.Ordinal, m.ArchivePath, m.ReplyToUID)
	if err != nil {
		return err
	}
	m.ID = here.ID
	if _, err := tx.Exec(ctx, dropRecipients, m.ID); err != nil {
		return err
	}
	return unlessIncomplete(m.ApplyRecipients(ctx, tx, p.ID))
}

// mendThreads recreates lost threads and recounts all threads.
func mendThreads(ctx context.Context, tx *store.Tx) error {
	type lost struct {
		project int64
		id      string
	}
	err := all(ctx, tx, func(rows *sql.Rows) (l lost, err error) {
		return l, rows.Scan(&l.project, &l.id)
	}, func(l lost) error {
		ordinal, digest, err := mail.NewThread(ctx, tx, l.project, l.id)
		if err == nil {
			_, err = tx.Exec(ctx, mail.UpsertThread, l.project, l.id, ordinal, digest, 0)
		}
		return err
	}, selectThreadless)
	if err != nil {
		return err
	}
	return statements([]string{dropThreads, countThreads})(ctx, tx)
}

// raiseUsed makes sure that no number in use is assigned again.
func raiseUsed(ctx context.Context, tx *store.Tx) error {
	ids := map[string]int64{}
	for name, table := range numberedTables() {
		var n int64
		if err := tx.Get(ctx, []any{&n}, selectUsed+table); err != nil {
			return err
		}
		ids[name] = n
	}
	return RaiseNumbers(ctx, tx, ids)
}

// logRows logs the rows that differ from the log. Invalid rows are overwritten with the log's
// values instead.
func logRows(ctx context.Context, tx *store.Tx) error {
	type differing struct {
		p *mail.Project
		d mail.Document
	}
	var list []differing
	err := eachDiffering(ctx, tx, func(p *mail.Project, d mail.Document, _ bool) error {
		list = append(list, differing{p, d})
		return nil
	})
	for _, x := range list {
		if err != nil {
			return err
		}
		if err = mail.Validate(x.d); err == nil {
			err = mail.Put(ctx, tx, mail.Actor{}, x.p.ProductID, x.d)
			continue
		}
		var doc []byte
		found, ferr := mail.QueryOne(ctx, tx, []any{&doc}, selectLastDoc, x.d.Kind(), x.d.Key(), mail.Stream(x.p.UID))
		if err = ferr; !found || err != nil {
			continue
		}
		d, derr := mail.Decode(x.d.Kind(), doc)
		if derr == nil {
			err = unlessIncomplete(d.Apply(ctx, tx, 0))
		}
	}
	return err
}
