package documents

import (
	"bytes"
	"context"
	"encoding/json"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/messages"
	"cairn/internal/pathpattern"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// ExportImporter imports the mail of an export line by line. References must have validated each
// line. It must be used by one goroutine only.
type ExportImporter struct {
	filter   *redact.Filter
	archive  mail.Archive
	highest  map[string]int64
	raised   bool
	uids     map[string]string          // project_uid of the file → of this store
	numbers  map[string]map[int64]int64 // project_uid of this store → message number in the file → number in this store, if different
	data     bytes.Buffer               // of an attachment whose lines are being read
	imported ImportedMail
}

// ImportedMail counts the results of importing an export's mail.
type ImportedMail struct {
	Added    map[string]int `json:"added"`    // by kind; includes deliveries that gained times
	Known    int            `json:"known"`    // entities that were already in the store
	Messages int            `json:"messages"` // messages among Added
	NewIDs   int            `json:"new_ids"`  // entities that got a new number because theirs was taken
	Redacted int            `json:"redacted"` // entities in which the current rules found a secret
}

// NewExportImporter returns an importer for an export with the given highest numbers.
func NewExportImporter(filter *redact.Filter, archive mail.Archive, highest map[string]int64) *ExportImporter {
	return &ExportImporter{
		filter: filter, archive: archive, highest: highest, uids: map[string]string{}, numbers: map[string]map[int64]int64{},
		imported: ImportedMail{Added: map[string]int{}},
	}
}

// Counts returns the counts of the lines imported so far.
func (r *ExportImporter) Counts() ImportedMail { return r.imported }

// Fits checks a line of a project before the import and records which project of this store it
// belongs to. Lines of other kinds are ignored.
//
// Errors: Conflict with CodeBothHaveMail if two projects of the export are the same project in
// this store.
func (r *ExportImporter) Fits(ctx context.Context, tx *store.Tx, e *Exported) error {
	p, ok := e.document.(*mail.Project)
	if !ok {
		return nil
	}
	p.Imported = true
	here, err := homeOf(ctx, tx, p)
	if err != nil {
		return err
	}
	uid := p.UID
	if here != nil {
		uid = here.UID
	}
	for _, other := range r.uids {
		if other == uid {
			return fault.Newf(fault.Conflict, mail.CodeBothHaveMail, "two projects of the file are one project here, and the file has mail of both").
				WithHint("import it into a store of its own with --db")
		}
	}
	r.uids[p.UID] = uid
	return nil
}

// Line imports one line. An entity keeps its number if no other entity has it. Uids and names are
// kept. An entity that is already in the store stays as it is, but a delivery gains missing times.
// It is idempotent.
func (r *ExportImporter) Line(ctx context.Context, tx *store.Tx, e *Exported) error {
	if !r.raised { // new numbers must not collide with numbers on later lines
		if err := RaiseNumbers(ctx, tx, r.highest); err != nil {
			return err
		}
		r.raised = true
	}
	if p, ok := e.document.(*mail.Project); ok {
		return r.project(ctx, tx, p)
	}
	if b, ok := e.document.(*mail.Blob); ok {
		if e.From == 0 {
			r.data.Reset()
		}
		r.data.Write(e.Data)
		if int64(r.data.Len()) < b.Bytes && e.Data != nil {
			return nil // more lines follow
		}
		if e.Data != nil || b.Bytes == 0 {
			b.Data = append([]byte{}, r.data.Bytes()...)
		}
		r.data = bytes.Buffer{}
	}
	d := e.document
	rehome(r.uids, d)
	r.redact(d)
	if m, ok := d.(*mail.Message); ok {
		return r.message(ctx, tx, m)
	}
	return r.add(ctx, tx, d)
}

func (r *ExportImporter) project(ctx context.Context, tx *store.Tx, p *mail.Project) error {
	p.Imported = true
	here, err := homeOf(ctx, tx, p)
	if err != nil {
		return err
	}
	if here != nil {
		r.uids[p.UID] = here.UID
		r.imported.Known++
		return nil
	}
	r.uids[p.UID] = p.UID
	return r.add(ctx, tx, p)
}

// redact applies the current redaction rules.
func (r *ExportImporter) redact(d mail.Document) {
	if r.filter == nil {
		return
	}
	var texts []*string
	switch d := d.(type) {
	case *mail.Agent:
		texts = []*string{&d.TaskDescription}
	case *mail.Message:
		texts = []*string{&d.Subject, &d.Body}
	case *mail.Contact:
		texts = []*string{&d.Reason}
	case *mail.Reservation:
		texts = []*string{&d.Reason}
	}
	found := false
	for _, text := range texts {
		clean, _ := r.filter.Text(*text)
		found = found || clean != *text
		*text = clean
	}
	if found {
		r.imported.Redacted++
	}
}

func (r *ExportImporter) message(ctx context.Context, tx *store.Tx, m *mail.Message) error {
	was := m.ID
	here, err := mail.QueryMessage(ctx, tx, mail.SelectMessageByUID, m.UID)
	if err != nil {
		return err
	}
	if here != nil {
		r.imported.Known++
		r.became(here.ProjectUID, was, here.ID)
		return nil
	}
	// A reply to a message without a thread uses that message's number as its thread id.
	if id := r.numbers[m.ProjectUID][mail.Beginning(m.ThreadID)]; id != 0 {
		thread := mail.Decimal(id)
		m.ThreadID = &thread
	}
	if err := full(ctx, m, tx); err != nil {
		return err
	}
	if err := r.add(ctx, tx, m); err != nil {
		return err
	}
	r.imported.Messages++
	r.became(m.ProjectUID, was, m.ID)
	return nil
}

// became records the number that a message of the file has in this store.
func (r *ExportImporter) became(uid string, was, is int64) {
	if was == is {
		return
	}
	if r.numbers[uid] == nil {
		r.numbers[uid] = map[int64]int64{}
	}
	r.numbers[uid][was] = is
}

// add applies a document. It keeps its number if that is free.
func (r *ExportImporter) add(ctx context.Context, tx *store.Tx, d mail.Document) error {
	keep := true
	if id := numberOf(d); id != nil {
		taken, err := isTaken(ctx, tx, d, *id)
		if err != nil {
			return err
		}
		keep = !taken
	}
	if err := shelve(ctx, tx, d); err != nil {
		return err
	}
	added, err := Apply(ctx, tx, mail.Actor{}, r.archive, d, keep)
	if err != nil {
		return err
	}
	if !added {
		r.imported.Known++
		return nil
	}
	if r.imported.Added[d.Kind()]++; !keep {
		r.imported.NewIDs++
	}
	return nil
}

const (
	selectOrdinalTaken     = `SELECT EXISTS (SELECT 1 FROM mail_messages WHERE project_id = ?1 AND ` + mail.MessageMonth + ` = ?2 AND ordinal = ?3)`
	selectReservationTaken = `SELECT EXISTS (SELECT 1 FROM mail_reservations WHERE project_id = ?1 AND ordinal = ?2)`
)

// shelve assigns a document from elsewhere its ordinal in this store, and keeps the old one if it
// is free. The file paths are set later, when the number is known.
func shelve(ctx context.Context, tx *store.Tx, d mail.Document) (err error) {
	p := (*mail.Project)(nil)
	if _, ok := d.(*mail.Project); !ok {
		if p, err = mail.ProjectOf(ctx, tx, d); err != nil {
			return err
		}
	}
	taken := false
	switch d := d.(type) {
	case *mail.Message:
		d.ArchivePath = ""
	case *mail.Reservation:
		pattern, perr := pathpattern.Parse(d.PathPattern, pathpattern.Options{})
		if perr != nil {
			return perr
		}
		d.LitPrefix = pattern.LiteralPrefix()
		if err = tx.Get(ctx, []any{&taken}, selectReservationTaken, p.ID, d.Ordinal); err == nil && taken {
			err = tx.Get(ctx, []any{&d.Ordinal}, mail.SelectLastOrdinal, p.ID)
			d.Ordinal++
		}
		d.ArchivePath = ""
	case *mail.Contact:
		var n int64
		to, terr := mail.ProjectByUID(ctx, tx, d.ToProjectUID)
		if terr != nil || to == nil {
			return terr // Apply reports what is missing
		}
		err = tx.Get(ctx, []any{&n}, messages.SelectContactCount, p.ID)
		d.ArchivePath = "contacts/" + mail.BucketDir(n+1) + d.From + "__" + to.Slug + "__" + d.To + ".json"
	}
	return err
}

// resolve adapts a document to this store: it sets names as they are spelled here, numbers by uid,
// and values that are already stored. The document then equals the rows that it produces.
func resolve(ctx context.Context, tx *store.Tx, d mail.Document) error {
	switch d := d.(type) {
	case *mail.Project:
		return resolveProject(ctx, d, tx)
	case *mail.Message:
		return resolveMessage(ctx, d, tx)
	case *mail.Delivery:
		old, err := mail.DeliveryOf(ctx, tx, d.UID, d.ProjectUID, d.Agent)
		if err != nil || old == nil {
			return err // Apply reports it
		}
		if old.Shown == 0 {
			old.Shown, old.ShownVia = d.Shown, d.ShownVia
		}
		old.Read, old.Ack = earlier(old.Read, d.Read), earlier(old.Ack, d.Ack)
		*d = *old
	case *mail.Reservation:
		if d.ArchivePath == "" {
			d.ArchivePath = mail.ReservationPath(d.ID, d.Ordinal)
		}
		if d.Session != nil {
			var there bool
			if err := tx.Get(ctx, []any{&there}, `SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?)`, *d.Session); err != nil {
				return err
			}
			if !there {
				d.Session = nil
			}
		}
		return spell(ctx, tx, d, &d.Agent)
	case *mail.Contact:
		if err := spell(ctx, tx, d, &d.From); err != nil {
			return err
		}
		to, err := mail.ProjectByUID(ctx, tx, d.ToProjectUID)
		if err != nil || to == nil {
			return err
		}
		a, err := mail.AgentByName(ctx, tx, to.ID, d.To)
		if a != nil {
			d.To = a.Name
		}
		return err
	}
	return nil
}

// earlier returns old if it is set, else d: the first stamp wins.
func earlier(old, d mail.Time) mail.Time {
	if old != 0 {
		return old
	}
	return d
}

func resolveMessage(ctx context.Context, m *mail.Message, tx *store.Tx) error {
	names := []*string{&m.From}
	for _, list := range []*[]string{&m.To, &m.CC, &m.BCC} {
		if *list == nil {
			*list = []string{}
		}
		for i := range *list {
			names = append(names, &(*list)[i])
		}
	}
	for _, name := range names {
		if err := spell(ctx, tx, m, name); err != nil {
			return err
		}
	}
	if len(m.Attachments) == 0 || string(m.Attachments) == "null" {
		m.Attachments = json.RawMessage("[]")
	}
	m.ReplyTo = nil
	if m.ReplyToUID != nil {
		var id int64
		found, err := mail.QueryOne(ctx, tx, []any{&id}, `SELECT id FROM mail_messages WHERE uid = ?`, *m.ReplyToUID)
		switch {
		case err != nil:
			return err
		case found:
			m.ReplyTo = &id
		default:
			m.ReplyToUID = nil
		}
	}
	if err := resolveOrdinal(ctx, m, tx); err != nil {
		return err
	}
	if m.ArchivePath == "" {
		m.ArchivePath = mail.MessagePath(m.Created, m.Subject, m.ID, m.Ordinal)
	}
	return nil
}

func resolveOrdinal(ctx context.Context, m *mail.Message, tx *store.Tx) error {
	p, err := mail.ProjectOf(ctx, tx, m)
	if err != nil {
		return err
	}
	at, taken := mail.Month(m.Created), false
	if m.ArchivePath != "" {
		at = monthOf(m.ArchivePath)
	}
	if err := tx.Get(ctx, []any{&taken}, selectOrdinalTaken, p.ID, at, m.Ordinal); err != nil || !taken {
		return err
	}
	m.Ordinal, err = mail.NextOrdinal(ctx, tx, p.ID, at)
	return err
}

// monthOf returns the month in a message's path, as in the index of ordinals.
func monthOf(path string) string { return path[min(len(path), 9):min(len(path), 16)] }

// spell sets an agent's name to its spelling in the agent's row.
func spell(ctx context.Context, tx *store.Tx, d mail.Document, name *string) error {
	p, err := mail.ProjectOf(ctx, tx, d)
	if err != nil {
		return err
	}
	a, err := mail.AgentOf(ctx, tx, d, p.ID, *name)
	if err == nil {
		*name = a.Name
	}
	return err
}
