package documents

import (
	"bytes"
	"context"
	"crypto/sha1"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"cairn/internal/mail"
	"cairn/internal/store"
)

// invariants returns the queries that check the rows. Each selects one finding, in words, per
// violation.
func invariants() []string {
	return []string{
		`SELECT 'agent ' || a.name || ' (' || a.id || ') counts ' || a.received || ' received, ' || a.unread || ' unread, ' || a.ack_due
|| ' to acknowledge; its messages are others'
FROM mail_agents a LEFT JOIN (SELECT agent_id, count(*) AS n, sum(read_ts IS NULL) AS u, sum(ack_required AND ack_ts IS NULL) AS d
  FROM mail_recipients GROUP BY agent_id) r ON r.agent_id = a.id
WHERE a.received <> ifnull(r.n, 0) OR a.unread <> ifnull(r.u, 0) OR a.ack_due <> ifnull(r.d, 0)`,

		`SELECT 'recipients of message ' || m.id || ' do not repeat what it says' FROM mail_messages m JOIN mail_recipients r ON r.message_id = m.id
WHERE r.importance <> m.importance OR r.ack_required <> m.ack_required OR r.created_ts <> m.created_ts GROUP BY m.id`,

		`SELECT 'message ' || m.id || ' is of an agent of another project' FROM mail_messages m JOIN mail_agents a ON a.id = m.sender_id
WHERE a.project_id <> m.project_id`,
		`SELECT 'message ' || m.id || ' has a recipient of another project' FROM mail_messages m
JOIN mail_recipients r ON r.message_id = m.id JOIN mail_agents a ON a.id = r.agent_id WHERE a.project_id <> m.project_id GROUP BY m.id`,
		`SELECT 'message ' || m.id || ' replies to the message ' || m.reply_to || ', which is not there' FROM mail_messages m
WHERE m.reply_to NOTNULL AND m.reply_to NOT IN (SELECT id FROM mail_messages)`,
		`SELECT 'message ' || min(id) || ' has the file of another: ' || archive_path FROM mail_messages GROUP BY project_id, archive_path HAVING count(*) > 1`,
		`SELECT 'message ' || min(id) || ' has the ordinal of another' FROM mail_messages
GROUP BY project_id, substr(archive_path, 10, 7), ordinal HAVING count(*) > 1`,

		`SELECT 'thread ' || ifnull(t.thread_id, m.thread_id) || ' does not count its messages'
FROM mail_threads t FULL JOIN (SELECT project_id, thread_id, count(*) AS n, min(created_ts) AS low, max(created_ts) AS high
  FROM mail_messages WHERE thread_id NOTNULL GROUP BY project_id, thread_id) m ON m.project_id = t.project_id AND m.thread_id = t.thread_id
WHERE t.messages IS NOT m.n OR t.first_ts IS NOT m.low OR t.last_ts IS NOT m.high`,
		`SELECT 'thread ' || min(thread_id) || ' has the ordinal of another' FROM mail_threads GROUP BY project_id, ordinal HAVING count(*) > 1`,

		`SELECT 'contact ' || c.id || ' has the file of another' FROM mail_contacts c JOIN mail_agents a ON a.id = c.a_agent_id
GROUP BY a.project_id, c.archive_path HAVING count(*) > 1`,
		`SELECT 'reservation ' || r.id || ' is of an agent of another project' FROM mail_reservations r JOIN mail_agents a ON a.id = r.agent_id
WHERE a.project_id <> r.project_id`,
		`SELECT 'reservation ' || min(id) || ' has the ordinal or the file of another' FROM mail_reservations
GROUP BY project_id, ordinal HAVING count(*) > 1 UNION ALL
SELECT 'reservation ' || min(id) || ' has the ordinal or the file of another' FROM mail_reservations
GROUP BY project_id, archive_path HAVING count(*) > 1`,
		`SELECT 'reservation ' || id || ' is released without saying how' FROM mail_reservations WHERE (released_ts IS NULL) <> (release_kind IS NULL)`,

		`SELECT 'the words of message ' || id || ' are not in the index' FROM mail_messages WHERE id NOT IN (SELECT rowid FROM mail_fts)`,
		`SELECT 'the index holds words of no message' FROM mail_fts f WHERE f.rowid NOT IN (SELECT id FROM mail_messages)`,

		`SELECT 'an answer to ' || i.tool || ' is kept for an agent of another project' FROM mail_idempotency i JOIN mail_agents a ON a.id = i.agent_id
WHERE a.project_id <> i.project_id`,
		`SELECT 'a notice is about ' || n.subject_uid || ', which is not there' FROM mail_notices n
WHERE n.subject_uid NOT IN (SELECT uid FROM mail_messages) AND n.subject_uid NOT IN (SELECT uid FROM mail_reservations)`,

		`SELECT 'numbers of ' || t.name || ' are given again: the next is ' || (ifnull(s.seq, 0) + 1) FROM (
  SELECT 'mail_projects' AS name, max(id) AS high FROM mail_projects UNION ALL SELECT 'mail_agents', max(id) FROM mail_agents
  UNION ALL SELECT 'mail_messages', max(id) FROM mail_messages UNION ALL SELECT 'mail_reservations', max(id) FROM mail_reservations
  UNION ALL SELECT 'mail_contacts', max(id) FROM mail_contacts) t LEFT JOIN sqlite_sequence s ON s.name = t.name
WHERE t.high > ifnull(s.seq, 0)`,
	}
}

const (
	selectLastDoc = `SELECT doc FROM changes WHERE kind = (SELECT id FROM symbols WHERE text = ?1) AND id = ?2
AND stream = (SELECT id FROM symbols WHERE text = ?3) AND doc IS NOT NULL ORDER BY seq DESC LIMIT 1`
	selectBlanked = `SELECT EXISTS (SELECT 1 FROM changes WHERE kind = (SELECT id FROM symbols WHERE text = ?1) AND id = ?2
AND stream = (SELECT id FROM symbols WHERE text = ?3))`
	selectLogged = `SELECT k.text, c.id, min(c.seq) FROM changes c JOIN symbols k ON k.id = c.kind
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?) AND c.doc IS NOT NULL GROUP BY c.kind, c.id ORDER BY 3`
	selectMailStreams = `SELECT substr(text, 6) FROM symbols WHERE text GLOB 'mail/*' ORDER BY id`
)

// Check reads the mail of a store and reports inconsistencies. It checks counters, repeated
// columns, paths, ordinals, numbers, the full-text index and attachment bytes. It also compares
// the rows with the change log. Valid rows give no findings. It changes nothing.
func Check(ctx context.Context, tx *store.Tx) (findings []string, err error) {
	for _, query := range invariants() {
		found, err := tx.Texts(ctx, query)
		if findings = append(findings, found...); err != nil {
			return findings, err
		}
	}
	err = eachDiffering(ctx, tx, func(p *mail.Project, d mail.Document, logged bool) error {
		what := "is not what the change log says"
		if !logged {
			what = "is not in the change log"
		}
		findings = append(findings, fmt.Sprintf("%s %s of project %s %s", d.Kind(), mail.Printable(d.Key()), p.Slug, what))
		return nil
	})
	if err != nil {
		return findings, err
	}
	altered, err := alteredBlobs(ctx, tx)
	for _, name := range altered {
		findings = append(findings, "the bytes of attachment "+mail.Printable(name)+" are not what their hash says")
	}
	if err != nil {
		return findings, err
	}
	return findings, eachLost(ctx, tx, func(d mail.Document) error {
		findings = append(findings, fmt.Sprintf("%s %s is in the change log and has no row", d.Kind(), mail.Printable(d.Key())))
		return nil
	})
}

const selectBlobs = `SELECT sha1, data FROM mail_blobs`

// alteredBlobs returns the names of the attachments whose bytes do not match their hash.
func alteredBlobs(ctx context.Context, tx *store.Tx) (names []string, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var name string
		var data []byte
		err := rows.Scan(&name, &data)
		if sum := sha1.Sum(data); hex.EncodeToString(sum[:]) != name {
			names = append(names, name)
		}
		return err
	}, selectBlobs)
	return names, err
}

// eachDiffering calls found for every entity whose row differs from its last change. logged is
// false if the log does not contain the entity.
func eachDiffering(ctx context.Context, tx *store.Tx, found func(p *mail.Project, d mail.Document, logged bool) error) error {
	all, err := mail.Projects(ctx, tx)
	if err != nil {
		return err
	}
	for _, p := range all {
		err := eachDocument(ctx, tx, p, func(d mail.Document) error {
			var doc []byte
			logged, err := mail.QueryOne(ctx, tx, []any{&doc}, selectLastDoc, d.Kind(), d.Key(), mail.Stream(p.UID))
			if err != nil || logged && says(d, doc) || isImplied(d) {
				return err
			}
			if !logged {
				var blanked bool
				err := tx.Get(ctx, []any{&blanked}, selectBlanked, d.Kind(), d.Key(), mail.Stream(p.UID))
				if err != nil || blanked {
					return err
				}
			}
			return found(p, d, logged)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isImplied reports whether a delivery has no times of its own, so that its message's change is
// sufficient.
func isImplied(d mail.Document) bool {
	s, ok := d.(*mail.Delivery)
	return ok && s.Shown == 0 && s.Read == 0 && s.Ack == 0
}

// says reports whether a change's document equals an entity's rows.
func says(d mail.Document, doc []byte) bool {
	if _, ok := d.(*mail.Blob); ok { // its document only repeats columns of its row
		return true
	}
	logged, err := mail.Decode(d.Kind(), doc)
	if err != nil {
		return false
	}
	if m, ok := logged.(*mail.Message); ok && (len(m.Attachments) == 0 || string(m.Attachments) == "null") {
		m.Attachments = json.RawMessage("[]")
	}
	if s, ok := logged.(*mail.Delivery); ok {
		s.ArchivePath = d.(*mail.Delivery).ArchivePath
	}
	x, errX := json.Marshal(d)
	y, errY := json.Marshal(logged)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// eachLost calls found with the last document of every entity that is in the log but has no row.
func eachLost(ctx context.Context, tx *store.Tx, found func(mail.Document) error) error {
	return eachLogged(ctx, tx, func(d mail.Document) error {
		there, err := hasRow(ctx, tx, d)
		if err != nil || there {
			return err
		}
		return found(d)
	})
}

// eachLogged calls put with the last document of every entity in the log. Within a project,
// entities come in the order of their first changes.
func eachLogged(ctx context.Context, tx *store.Tx, put func(mail.Document) error) error {
	var uids []string
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		var uid string
		err := rows.Scan(&uid)
		uids = append(uids, uid)
		return err
	}, selectMailStreams)
	type logged struct{ kind, id string }
	for _, uid := range uids {
		if err != nil {
			return err
		}
		err = all(ctx, tx, func(rows *sql.Rows) (l logged, err error) {
			var seq int64
			return l, rows.Scan(&l.kind, &l.id, &seq)
		}, func(l logged) error {
			var doc []byte
			if found, err := mail.QueryOne(ctx, tx, []any{&doc}, selectLastDoc, l.kind, l.id, mail.Stream(uid)); err != nil || !found {
				return err
			}
			d, err := mail.Decode(l.kind, doc)
			if err != nil || d.StreamProject() != uid || d.Key() != l.id {
				return nil // altered; the log's own check reports it
			}
			return put(d)
		}, selectLogged, mail.Stream(uid))
	}
	return err
}

// hasRow reports whether the entity has a row.
func hasRow(ctx context.Context, tx *store.Tx, d mail.Document) (bool, error) {
	switch d := d.(type) {
	case *mail.Delivery:
		old, err := mail.DeliveryOf(ctx, tx, d.UID, d.ProjectUID, d.Agent)
		return old != nil, err
	case *mail.Blob:
		var there bool
		return there, tx.Get(ctx, []any{&there}, mail.SelectBlob, d.SHA1)
	}
	return known(ctx, tx, d)
}
