package documents

import (
	"context"
	"errors"
	"fmt"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/store"
)

// Apply stores a document from an export, an archive or a hub. It appends the document to this
// store's log and applies it to the rows. With keepID the entity keeps its number, otherwise it
// gets a new one. Uids and names are kept. An entity that is already in the store stays as it is,
// with two exceptions. A delivery gains missing times, and a message that was purged elsewhere is
// purged here too. added reports whether the document was applied.
//
// The documents that d refers to must be applied before it. archive accesses the commits of the
// project's archive.
//
// Errors: Conflict with CodeIncomplete if a referenced document is missing, with CodeTaken if
// keepID is set and another entity has the number.
func Apply(ctx context.Context, tx *store.Tx, by mail.Actor, archive mail.Archive, d mail.Document, keepID bool) (added bool, err error) {
	there, err := known(ctx, tx, d)
	if err != nil || there {
		return false, err
	}
	if b, ok := d.(*mail.Blob); ok {
		if dropped, err := wasDropped(ctx, b, tx); err != nil || dropped {
			return false, err
		}
	}
	if m, ok := d.(*mail.Message); ok && m.Purged != 0 {
		if here, err := mail.QueryMessage(ctx, tx, mail.SelectMessageByUID, m.UID); err != nil || here != nil {
			return here != nil, errors.Join(err, purgeAs(ctx, here, tx, archive, m))
		}
	}
	if id := numberOf(d); id != nil {
		if !keepID {
			*id = 0
		}
		if err := claim(ctx, tx, d, id); err != nil {
			return false, err
		}
	}
	if err := resolve(ctx, tx, d); err != nil {
		return false, err
	}
	productID, err := productOf(ctx, tx, d)
	if err != nil {
		return false, err
	}
	return true, mail.Put(ctx, tx, by, productID, d)
}

// CodeTaken is the code of the error (Conflict) for a number that another entity has.
const CodeTaken = "mail_id_taken"

// numbered returns the table of a document's kind, or "" if entities of the kind have no numbers.
func numbered(d mail.Document) string {
	switch d.(type) {
	case *mail.Project:
		return "mail_projects"
	case *mail.Agent:
		return "mail_agents"
	case *mail.Message:
		return "mail_messages"
	case *mail.Reservation:
		return "mail_reservations"
	}
	return ""
}

func numberOf(d mail.Document) *int64 {
	switch d := d.(type) {
	case *mail.Project:
		return &d.ID
	case *mail.Agent:
		return &d.ID
	case *mail.Message:
		return &d.ID
	case *mail.Reservation:
		return &d.ID
	}
	return nil
}

// claim sets *id to a new number if it is 0. Otherwise it checks that the number is free.
func claim(ctx context.Context, tx *store.Tx, d mail.Document, id *int64) (err error) {
	if *id == 0 {
		*id, err = mail.NextID(ctx, tx, numbered(d))
		return err
	}
	taken, err := isTaken(ctx, tx, d, *id)
	if err != nil {
		return err
	}
	if taken {
		return fault.Newf(fault.Conflict, CodeTaken, "the number %d of the %s %s is another's here", *id, d.Kind(), mail.Printable(d.Key()))
	}
	return nil
}

// isTaken reports whether an entity of the document's kind has the number id.
func isTaken(ctx context.Context, tx *store.Tx, d mail.Document, id int64) (taken bool, err error) {
	return taken, tx.Get(ctx, []any{&taken}, `SELECT EXISTS (SELECT 1 FROM `+numbered(d)+` WHERE id = ?)`, id)
}

// known reports whether the store already contains everything that the document states.
func known(ctx context.Context, tx *store.Tx, d mail.Document) (there bool, err error) {
	var query string
	var args []any
	switch d := d.(type) {
	case *mail.Project:
		query, args = `SELECT EXISTS (SELECT 1 FROM mail_projects WHERE uid = ?)`, []any{d.UID}
	case *mail.Agent:
		query, args = `SELECT EXISTS (SELECT 1 FROM mail_agents a JOIN mail_projects p ON p.id = a.project_id
WHERE p.uid = ? AND a.name = ?)`, []any{d.ProjectUID, d.Name}
	case *mail.Message:
		query, args = `SELECT EXISTS (SELECT 1 FROM mail_messages WHERE uid = ?1 AND (?2 = 0 OR attachments LIKE '{%'))`, []any{d.UID, int64(d.Purged)}
	case *mail.Delivery:
		old, err := mail.DeliveryOf(ctx, tx, d.UID, d.ProjectUID, d.Agent)
		if err != nil || old == nil {
			return false, err
		}
		return *old == *d || covers(old, d), nil
	case *mail.Contact:
		query, args = `SELECT EXISTS (SELECT 1 FROM mail_contacts c
JOIN mail_agents a ON a.id = c.a_agent_id JOIN mail_projects p ON p.id = a.project_id
JOIN mail_agents b ON b.id = c.b_agent_id JOIN mail_projects q ON q.id = b.project_id
WHERE p.uid = ? AND a.name = ? AND q.uid = ? AND b.name = ?)`, []any{d.FromProjectUID, d.From, d.ToProjectUID, d.To}
	case *mail.Reservation:
		query, args = `SELECT EXISTS (SELECT 1 FROM mail_reservations WHERE uid = ?)`, []any{d.UID}
	case *mail.Blob:
		query, args = mail.SelectBlobLogged, []any{d.SHA1, mail.KindBlob, mail.Stream(d.ProjectUID)}
	default:
		return false, fmt.Errorf("no document: %T", d)
	}
	return there, tx.Get(ctx, []any{&there}, query, args...)
}

// covers reports whether old has every time that d has.
func covers(old, d *mail.Delivery) bool {
	has := func(old, d mail.Time) bool { return old != 0 || d == 0 }
	return has(old.Shown, d.Shown) && has(old.Read, d.Read) && has(old.Ack, d.Ack)
}

// productOf returns the id, shared by all parts of cairn, of the project whose stream contains the
// document.
func productOf(ctx context.Context, tx *store.Tx, d mail.Document) (string, error) {
	if p, ok := d.(*mail.Project); ok {
		return p.ProductID, nil
	}
	p, err := mail.ProjectOf(ctx, tx, d)
	if err != nil {
		return "", err
	}
	return p.ProductID, nil
}
