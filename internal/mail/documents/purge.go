package documents

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"cairn/internal/mail"
	"cairn/internal/mail/messages"
	"cairn/internal/store"
)

// PurgeArgs select the messages to purge.
type PurgeArgs struct {
	IDs     []int64
	Project string // project_key: the messages must be in this project; "" for any project
	All     bool   // every message of Project, instead of IDs
	Confirm bool   // if false, Purge only counts

	// Note runs in each transaction that leaves deleted bytes on disk. It records that they must
	// be cleared.
	Note func(ctx context.Context, tx *store.Tx) error
	// Progress, if set, is called with the numbers of purged and of all messages.
	Progress func(done, total int)
}

// PurgeResult counts the entities that a purge deleted or, without Confirm, would delete.
type PurgeResult struct {
	Messages    int      `json:"messages"`
	Already     int      `json:"already"`     // messages that had been purged before
	Attachments int      `json:"attachments"` // whose bytes were deleted, because no other message refers to them
	Projects    []string `json:"projects"`    // shared ids of the projects whose archives lose files
	Seq         int64    `json:"-"`           // of the last change, 0 for none
}

const (
	purgeBatch = 200 // messages per transaction

	selectMessageIDs = `SELECT id FROM mail_messages WHERE project_id = ? ORDER BY id`
	selectRefers     = `SELECT EXISTS (SELECT 1 FROM mail_messages WHERE (?2 = 0 OR project_id = ?2) AND id <> ?3 AND attachments LIKE '[%' AND instr(attachments, ?1) > 0)`
	selectDropped    = `SELECT EXISTS (SELECT 1 FROM mail_messages WHERE project_id = ?2 AND attachments LIKE '{%' AND instr(attachments, ?1) > 0)
AND NOT EXISTS (SELECT 1 FROM mail_messages WHERE project_id = ?2 AND attachments LIKE '[%' AND instr(attachments, ?1) > 0)`
	deleteBlob    = `DELETE FROM mail_blobs WHERE sha1 = ?`
	selectAnswers = `SELECT project_id, agent_id, tool, key, result FROM mail_idempotency WHERE tool IN ('send_message', 'reply_message', 'overseer')`
	updateAnswer  = `UPDATE mail_idempotency SET result = ?5 WHERE project_id = ?1 AND agent_id = ?2 AND tool = ?3 AND key = ?4`

	dropStaleWords = `INSERT INTO mail_fts (mail_fts) VALUES ('optimize')`
)

// Purge deletes subject, body and attachments of messages permanently (mail §6). It deletes them
// from the rows, the full-text index and the change log's documents. It also removes them from
// results kept for idempotency keys, and from the store's copies of Git commit data. The bytes of
// an attachment are deleted if no other message refers to them. The row stays, with its numbers,
// uid, names, thread, times and receipts. A change makes the archive delete the message's files
// and write a tombstone. The log file and the backups may still contain the text; the caller must
// clear them (see PurgeArgs.Note). It is idempotent.
//
// Errors: INVALID_ARGUMENT without messages; NOT_FOUND for the project or an unknown message,
// before any change. After another error, PurgeResult counts what was already purged.
func (o *Documents) Purge(ctx context.Context, c mail.Caller, a PurgeArgs) (out PurgeResult, err error) {
	out.Projects = []string{}
	var found []*mail.Message
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err = a.find(ctx, tx, c)
		return err
	})
	if err != nil {
		return out, mail.Fault(err)
	}
	total := len(found)
	found = slices.DeleteFunc(found, func(m *mail.Message) bool { return m.Purged != 0 })
	out.Already = total - len(found)
	if !a.Confirm {
		out.Messages = len(found)
		return out, nil
	}
	for batch := range slices.Chunk(found, purgeBatch) {
		var did PurgeResult
		err := o.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			did, err = purgeAll(ctx, tx, o.Config.Archive, batch)
			if err == nil && a.Note != nil {
				err = a.Note(ctx, tx)
			}
			return err
		})
		if err != nil {
			return out, err
		}
		out.add(did)
		if a.Progress != nil {
			a.Progress(out.Messages, len(found))
		}
	}
	return out, nil
}

func (p *PurgeResult) add(did PurgeResult) {
	p.Messages, p.Attachments, p.Seq = p.Messages+did.Messages, p.Attachments+did.Attachments, max(p.Seq, did.Seq)
	for _, id := range did.Projects {
		if !slices.Contains(p.Projects, id) {
			p.Projects = append(p.Projects, id)
		}
	}
}

// DropStaleWords removes the words of purged messages from the index's files. It is idempotent.
func (o *Documents) DropStaleWords(ctx context.Context) error {
	return o.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, dropStaleWords)
		return err
	})
}

// project returns the project that the arguments name, or nil.
func (a *PurgeArgs) project(ctx context.Context, tx *store.Tx, c mail.Caller) (*mail.Project, error) {
	if a.Project == "" {
		return nil, nil
	}
	t, err := c.Target(a.Project)
	if err != nil {
		return nil, err
	}
	p, err := t.Find(ctx, tx)
	if err == nil && p == nil {
		err = t.NotFound(ctx, tx)
	}
	return p, err
}

// find returns the selected messages.
func (a *PurgeArgs) find(ctx context.Context, tx *store.Tx, c mail.Caller) (found []*mail.Message, err error) {
	p, err := a.project(ctx, tx, c)
	if err != nil {
		return nil, err
	}
	ids := slices.Compact(slices.Sorted(slices.Values(a.IDs)))
	switch {
	case a.All && p == nil, !a.All && len(ids) == 0:
		return nil, mail.Errorf(mail.CodeInvalid, "name the messages to purge").Hint("by their numbers, or all of a project")
	case a.All:
		ids = nil
		err := tx.Each(ctx, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		}, selectMessageIDs, p.ID)
		if err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		m, err := mail.QueryMessage(ctx, tx, mail.SelectMessageByID, id)
		switch {
		case err != nil:
			return nil, err
		case m == nil || p != nil && m.ProjectID != p.ID:
			return nil, mail.Errorf(mail.CodeNotFound, "message %d not found", id).With("message_id", id).Hint("nothing was purged")
		}
		found = append(found, m)
	}
	return found, nil
}

// purgeAll purges messages in one transaction and updates them in place.
func purgeAll(ctx context.Context, tx *store.Tx, archive mail.Archive, messages []*mail.Message) (did PurgeResult, err error) {
	for _, m := range messages {
		p, err := mail.QueryProject(ctx, tx, mail.SelectProjectByID, m.ProjectID)
		if err != nil {
			return did, err
		}
		n, err := purge(ctx, m, tx, archive, p, mail.Now(tx))
		if err != nil {
			return did, err
		}
		did.add(PurgeResult{Messages: 1, Attachments: n, Projects: []string{p.ProductID}})
	}
	if err := tx.Get(ctx, []any{&did.Seq}, `SELECT ifnull(max(seq), 0) FROM changes`); err != nil {
		return did, err
	}
	_, err = tx.Exec(ctx, dropStaleWords)
	return did, err
}

// purge deletes the texts of a message, which must equal its row. It returns how many attachments
// lost their bytes.
func purge(ctx context.Context, m *mail.Message, tx *store.Tx, archive mail.Archive, p *mail.Project, at mail.Time) (attachments int, err error) {
	attached, err := m.ParseAttachments()
	if err != nil {
		return 0, err
	}
	if _, err := tx.Blank(ctx, mail.Stream(p.UID), mail.KindMessage, m.UID); err != nil {
		return 0, err
	}
	for _, a := range attached {
		gone, everywhere, err := dropBlob(ctx, m, tx, p, a.SHA1)
		if err != nil {
			return attachments, err
		}
		if gone {
			m.Dropped = append(m.Dropped, a.SHA1)
		}
		if everywhere {
			attachments++
		}
	}
	bury(m, at)
	if err := mail.Put(ctx, tx, mail.Actor{}, p.ProductID, m); err != nil {
		return 0, err
	}
	if err := archive.DeleteSubject(ctx, tx, p.RowKey, m.Seq); err != nil {
		return 0, err
	}
	return attachments, buryAnswers(ctx, m, tx)
}

// purgeAs purges a message that was purged elsewhere. A nil message is ignored.
func purgeAs(ctx context.Context, m *mail.Message, tx *store.Tx, archive mail.Archive, elsewhere *mail.Message) error {
	if m == nil {
		return nil
	}
	p, err := mail.QueryProject(ctx, tx, mail.SelectProjectByID, m.ProjectID)
	if err == nil {
		_, err = purge(ctx, m, tx, archive, p, elsewhere.Purged)
	}
	return err
}

// bury clears the purged fields of a message.
func bury(m *mail.Message, at mail.Time) {
	m.Purged, m.Subject, m.Body, m.Attachments = at, "", "", json.RawMessage("[]")
	m.ArchivePath = mail.MessagePath(m.Created, "", m.ID, m.Ordinal)
}

// wasDropped reports whether an attachment was deleted with a purged message of its project, and
// no other message there refers to it.
func wasDropped(ctx context.Context, b *mail.Blob, tx *store.Tx) (dropped bool, err error) {
	p, err := mail.ProjectByUID(ctx, tx, b.ProjectUID)
	if err != nil || p == nil {
		return false, err
	}
	return dropped, tx.Get(ctx, []any{&dropped}, selectDropped, b.SHA1, p.ID)
}

// dropBlob deletes an attachment from a project if no other message there refers to it. It deletes
// the bytes from the store if no message in any project refers to them.
func dropBlob(ctx context.Context, m *mail.Message, tx *store.Tx, p *mail.Project, sha1 string) (gone, everywhere bool, err error) {
	if sha1 == "" {
		return false, false, nil
	}
	var here, elsewhere bool
	if err := tx.Get(ctx, []any{&here}, selectRefers, sha1, p.ID, m.ID); err != nil || here {
		return false, false, err
	}
	if n, err := tx.Blank(ctx, mail.Stream(p.UID), mail.KindBlob, sha1); err != nil || n == 0 {
		return false, false, err
	}
	if err := tx.Get(ctx, []any{&elsewhere}, selectRefers, sha1, 0, m.ID); err != nil || elsewhere {
		return true, false, err
	}
	_, err = tx.Exec(ctx, deleteBlob, sha1)
	return true, true, err
}

// buryAnswers deletes the texts of a message from the results kept for idempotency keys. The keys
// stay, so that a repeated call does not send the message again.
func buryAnswers(ctx context.Context, m *mail.Message, tx *store.Tx) error {
	type answer struct {
		project, agent    int64
		tool, key, result string
	}
	return all(ctx, tx, func(rows *sql.Rows) (a answer, err error) {
		return a, rows.Scan(&a.project, &a.agent, &a.tool, &a.key, &a.result)
	}, func(a answer) error {
		result, err := buriedIn(m, a.tool, a.result)
		if err == nil && result != nil {
			_, err = tx.Exec(ctx, updateAnswer, a.project, a.agent, a.tool, a.key, string(result))
		}
		return err
	}, selectAnswers)
}

// buriedIn returns a stored result without the texts of a purged message, or nil if it does not
// contain the message.
func buriedIn(m *mail.Message, tool, result string) ([]byte, error) {
	holds := false
	bury := func(p *messages.Payload) {
		if p.ID == m.ID {
			holds = true
			p.Subject, p.Body, p.Attachments = "", new(string), json.RawMessage("[]")
		}
	}
	var answer any
	if tool == "reply_message" {
		r := &messages.Reply{}
		if err := json.Unmarshal([]byte(result), r); err != nil {
			return nil, err
		}
		bury(&r.Payload)
		for i := range r.Deliveries {
			bury(&r.Deliveries[i].Payload)
		}
		answer = r
	} else {
		s := &messages.Sent{}
		if err := json.Unmarshal([]byte(result), s); err != nil {
			return nil, err
		}
		for i := range s.Deliveries {
			bury(&s.Deliveries[i].Payload)
		}
		s.Attachments = json.RawMessage("[]")
		answer = s
	}
	if !holds {
		return nil, nil
	}
	return json.Marshal(answer)
}

// tombstone is the file that replaces a purged message. It contains sender, recipients and times,
// but none of the message's text.
type tombstone struct {
	ID          int64     `json:"id"`
	UID         string    `json:"uid"`
	Purged      mail.Time `json:"purged_ts"`
	Project     string    `json:"project"` // human_key
	From        string    `json:"from"`
	To          []string  `json:"to"`
	CC          []string  `json:"cc"`
	ThreadID    *string   `json:"thread_id"`
	ReplyTo     *int64    `json:"reply_to"`
	Topic       *string   `json:"topic"`
	Importance  string    `json:"importance"`
	AckRequired bool      `json:"ack_required"`
	Created     mail.Time `json:"created"`
	Ordinal     int64     `json:"ordinal"`
	Dropped     []string  `json:"attachments_dropped"` // sha1
}

const tombstones = "messages/tombstones/"

func tombstonePath(id int64) string { return tombstones + fmt.Sprint(id) + ".json" }

func tombstoneFile(m *mail.Message, p *mail.Project) (File, error) {
	text, err := jsonFile(tombstone{
		m.ID, m.UID, m.Purged, p.HumanKey, m.From, mail.NonNil(m.To), mail.NonNil(m.CC), m.ThreadID, m.ReplyTo, m.Topic, m.Importance, m.AckRequired, m.Created, m.Ordinal, mail.NonNil(m.Dropped),
	})
	return File{tombstonePath(m.ID), text}, err
}

func parseTombstone(content []byte, projectUID string) (*mail.Message, error) {
	var t tombstone
	if err := strictly(content, &t); err != nil {
		return nil, err
	}
	if t.ID < 1 || t.UID == "" || t.From == "" || t.Created == 0 || t.Purged == 0 {
		return nil, fmt.Errorf("it lacks an id, a uid, a sender or a time")
	}
	m := &mail.Message{
		ID: t.ID, UID: t.UID, ProjectUID: projectUID, From: t.From, To: mail.NonNil(t.To), CC: mail.NonNil(t.CC), BCC: []string{}, ThreadID: t.ThreadID,
		ReplyTo: t.ReplyTo, Topic: t.Topic, Importance: t.Importance, AckRequired: t.AckRequired, Created: t.Created, Ordinal: t.Ordinal,
	}
	if bury(m, t.Purged); len(t.Dropped) > 0 {
		m.Dropped = t.Dropped
	}
	return m, nil
}

// DeletePattern selects files to delete: those in a folder whose names have the given prefix and
// suffix.
type DeletePattern struct{ Folder, Begin, End string }

// gone returns patterns for the files of a purged message and its attachments. The subject part of
// the file names is no longer known.
func gone(m *mail.Message) []DeletePattern {
	name := mail.MessageFile(m.Created, "", m.ID)
	stem := len(m.Created.UTC().Format("2006-01-02T15-04-05Z__"))
	files := []string{m.ArchivePath, mail.CopyPath(m.From, "outbox", m.ArchivePath)}
	for _, to := range slices.Concat(m.To, m.CC, m.BCC) {
		files = append(files, mail.CopyPath(to, "inbox", m.ArchivePath))
	}
	var out []DeletePattern
	for _, f := range files {
		out = append(out, DeletePattern{f[:len(f)-len(name)-1], name[:stem], fmt.Sprintf("__%d.md", m.ID)})
	}
	for _, sha1 := range m.Dropped {
		out = append(out, goneBlob(sha1)...)
	}
	return out
}

// goneBlob returns patterns for the files of an attachment.
func goneBlob(sha1 string) []DeletePattern {
	if len(sha1) < 2 {
		return nil
	}
	return []DeletePattern{
		{"attachments/" + sha1[:2], sha1 + ".", ""}, {"attachments/files/" + sha1[:2], sha1 + ".", ""}, {"attachments/_manifests", sha1 + ".", ""},
	}
}
