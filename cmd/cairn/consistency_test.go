package main

import (
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cairn"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mcp"
)

// databaseFault makes the database of a town fail until gone is called.
type databaseFault struct {
	code    string
	make    func(w *town) (gone func())
	prepare func(h *home) // may be nil
	anew    bool          // restart the server after the fault
}

// TestWritesFailWholeWhereTheDatabaseFails checks the first half of mail §1's classes (G1, §14,
// §15.2). On a fault at any stage of a transaction, every writing tool returns the code for it. The
// call leaves nothing in any table or in the archive. The same call succeeds once the fault is
// repaired.
func TestWritesFailWholeWhereTheDatabaseFails(t *testing.T) {
	t.Parallel()
	faults := map[string]databaseFault{
		"another process holds the lock":  {code: mail.CodeBusy, make: (*town).lock},
		"the first row is refused":        {code: mail.CodeDatabase, make: (*town).refuseRows},
		"the change is refused":           {code: mail.CodeDatabase, make: (*town).refuseChanges},
		"the commit is refused":           {code: mail.CodeDatabase, make: (*town).refuseCommits},
		"the page of projects is corrupt": {code: mail.CodeCorruption, make: func(w *town) func() { return w.corrupt("mail_projects") }},
		"the page of changes is corrupt":  {code: mail.CodeCorruption, make: func(w *town) func() { return w.corrupt("changes") }},
	}
	maps.Copy(faults, faultsOfVolumes())
	if testing.Short() { // the other driver tests one fault of each kind
		delete(faults, "the first row is refused")
		delete(faults, "the page of changes is corrupt")
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prepared(newHome(t)).failsAndRecovers(f)
		})
	}
}

// failsAndRecovers creates a fault and calls every tool. After the repair it calls every tool
// again.
func (h *home) failsAndRecovers(f databaseFault) {
	h.t.Helper()
	if f.prepare != nil {
		f.prepare(h)
	}
	c := h.dial("", nil)
	w := found(h, c)
	rows, archive, all := w.dump(), w.archived(), w.writings()
	if f.anew {
		c.ends()
	}
	gone := f.make(w)
	if f.anew {
		c = h.dial("", nil)
	}
	var calls sync.WaitGroup
	for _, x := range all {
		if x.class != beside { // does not use the database, or only reads it
			calls.Go(func() { c.failsWith(f.code, x) })
		}
	}
	calls.Wait()
	gone()
	if now := w.dump(); now != rows {
		h.t.Errorf("something was stored: %s", firstDifference(rows, now))
	}
	if now := w.archived(); now != archive {
		h.t.Errorf("something was archived: %s", firstDifference(archive, now))
	}
	if f.code == mail.CodeCorruption { // damage is repaired while no server runs
		c.ends()
		c = h.dial("", nil)
	}
	for _, x := range all {
		before := w.changed(x.kind)
		c.failsWith("", x)
		if x.class != beside && w.changed(x.kind) == before {
			h.t.Errorf("%s stored no %s", x.tool, x.kind)
		}
	}
	c.ends()
	w.check()
	w.drain()
	if w.wantAgreement(); w.archived() == archive {
		h.t.Error("nothing was archived afterwards")
	}
}

// ends closes a client. Its server may have logged faults, but not the content of calls.
func (c *client) ends() {
	c.t.Helper()
	if err := c.Close(); err != nil {
		c.t.Errorf("closing the client: %v", err)
	}
	if state := c.server.ProcessState; state == nil || state.ExitCode() != 0 {
		c.t.Errorf("serve ended with %v and said %q", state, c.stderr)
	}
	if said := c.stderr.String(); strings.Contains(said, "Words.") || strings.Contains(said, "goroutine ") {
		c.t.Errorf("serve said %s", said)
	}
}

// lock acquires the write lock.
func (w *town) lock() (gone func()) {
	db := w.raw()
	w.sqlite(db, "BEGIN IMMEDIATE")
	return func() {
		w.sqlite(db, "ROLLBACK")
		w.closes(db)
	}
}

func (w *town) closes(db *sql.DB) {
	w.t.Helper()
	if err := db.Close(); err != nil {
		w.t.Error(err)
	}
}

// changeSchema runs statements directly on the store; gone runs the undo statements.
func (w *town) changeSchema(make, undo []string) (gone func()) {
	db := w.raw()
	w.sqlite(db, make...)
	return func() {
		w.sqlite(db, undo...)
		w.closes(db)
	}
}

// refuseRows makes every change of a row fail, in all tables.
func (w *town) refuseRows() (gone func()) {
	db := w.raw()
	all := tables(w.t, db)
	w.closes(db)
	var triggers, undo []string
	for _, table := range all {
		if strings.HasPrefix(table, "sqlite_") || strings.Contains(table, "_fts") {
			continue
		}
		for _, change := range []string{"INSERT", "UPDATE", "DELETE"} {
			name := fmt.Sprintf("refuse_%s_%s", change, table)
			triggers = append(triggers, fmt.Sprintf("CREATE TRIGGER %s BEFORE %s ON %s BEGIN SELECT raise(ABORT, 'refused'); END", name, change, table))
			undo = append(undo, "DROP TRIGGER "+name)
		}
	}
	return w.changeSchema(triggers, undo)
}

// refuseChanges makes the last statement of a write before its commit fail.
func (w *town) refuseChanges() (gone func()) {
	return w.changeSchema([]string{"CREATE TRIGGER refuse AFTER INSERT ON changes BEGIN SELECT raise(ABORT, 'refused'); END"}, []string{"DROP TRIGGER refuse"})
}

// refuseCommits makes COMMIT itself fail: a row references a missing row.
func (w *town) refuseCommits() (gone func()) {
	return w.changeSchema([]string{
		"CREATE TABLE parents (id INTEGER PRIMARY KEY)",
		"CREATE TABLE orphans (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)",
		"CREATE TRIGGER orphan AFTER INSERT ON changes BEGIN INSERT INTO orphans VALUES (7); END",
	}, []string{"DROP TRIGGER orphan", "DROP TABLE orphans", "DROP TABLE parents"})
}

// corrupt overwrites the first page of a table or an index while the server runs.
func (w *town) corrupt(name string) (gone func()) {
	db := w.raw()
	var page int64
	if err := db.QueryRowContext(w.t.Context(), `SELECT rootpage FROM sqlite_schema WHERE name = ?`, name).Scan(&page); err != nil {
		w.t.Fatal(err)
	}
	// A change by another process invalidates the cached pages of all others.
	w.sqlite(db, "CREATE TABLE forget (id)", "DROP TABLE forget", "PRAGMA wal_checkpoint(TRUNCATE)")
	w.closes(db)
	file, err := os.OpenFile(w.db(), os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	was := make([]byte, pageSize)
	put := func(data []byte) {
		if _, err := file.WriteAt(data, (page-1)*pageSize); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := file.ReadAt(was, (page-1)*pageSize); err != nil {
		w.t.Fatal(err)
	}
	put(noise(was, 0, pageSize))
	return func() {
		put(was)
		if err := file.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// TestEveryToolThatWritesHasAClass: the tables of the seed and of cairn contain all writing tools.
func TestEveryToolThatWritesHasAClass(t *testing.T) {
	t.Parallel()
	classes := map[string]string{}
	for _, x := range (&town{home: &home{}}).writings() {
		classes[x.tool] = x.class
	}
	for _, tool := range mcp.MailTools(cairn.Mail{}, mcp.MailOptions{}) {
		if (classes[tool.Name] == "") != tool.ReadOnly {
			t.Errorf("%s: class %q, only reads: %v", tool.Name, classes[tool.Name], tool.ReadOnly)
		}
		delete(classes, tool.Name)
	}
	if len(classes) > 0 {
		t.Errorf("there are no tools %v", classes)
	}
	only := slices.DeleteFunc((&town{home: &home{}}).writings(), func(x callToWrite) bool { return x.class != inStore })
	if len(only) != 5 {
		t.Errorf("%d tools of the class S", len(only))
	}
}

// TestMailIsNotDeliveredWhereLeaveCannotBeChecked (G6, §14): the data needed for the contact check
// is missing or damaged. Nothing is sent, regardless of the recipient's contact policy.
func TestMailIsNotDeliveredWhereLeaveCannotBeChecked(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.vars["CAIRN_MAIL_FIRST_CONTACT"] = "false"
	c := h.dial("", nil)
	for _, name := range []string{"GreenLake", "BlueDog"} {
		asked[agents.Registered](c, "register_agent", fields{"project_key": h.repo, "program": "codex", "model": "m1", "name": name})
		w := &town{home: h}
		w.reserves(c, name, name+"/**")
	}
	w := &town{home: h}
	first := asked[messages.Sent](c, "send_message", fields{"project_key": h.repo, "sender_name": "BlueDog", "to": "BlueDog", "cc": []string{}, "subject": "mine", "body_md": ""})
	// Drain first: then the follower has nothing to store and no position to advance in a missing
	// table.
	h.drain()
	if err := os.Remove(filepath.Join(h.dataDir(), "archive", "ids.json")); err != nil {
		t.Fatal(err)
	}
	send := callToWrite{tool: "send_message", args: fields{"project_key": h.repo, "sender_name": "GreenLake", "to": "BlueDog", "subject": "never", "body_md": "Words.\n"}}
	reply := callToWrite{tool: "reply_message", args: fields{
		"project_key": h.repo, "sender_name": "BlueDog", "message_id": first.Deliveries[0].Payload.ID, "to": "GreenLake", "body_md": "Words.\n",
	}}
	shake := callToWrite{tool: "macro_contact_handshake", args: fields{
		"project_key": h.repo, "requester": "GreenLake", "target": "BlueDog", "welcome_subject": "never", "welcome_body": "Words.\n",
	}}
	for _, table := range []string{"mail_contacts", "mail_reservations"} {
		before := w.dump()
		gone := w.changeSchema([]string{"ALTER TABLE " + table + " RENAME TO lost"}, []string{"ALTER TABLE lost RENAME TO " + table})
		calls := []callToWrite{send, reply}
		if table == "mail_contacts" {
			calls = append(calls, shake)
		}
		for _, x := range calls {
			c.failsWith(mail.CodeDatabase, x)
		}
		h.fails("a command", h.run(h.command("mail", "send", "BlueDog", "--as", "GreenLake", "-s", "never", "--body", "Words."), nil), 2, "A database error occurred.")
		gone()
		if now := w.dump(); now != before {
			t.Errorf("without %s something was stored: %s", table, firstDifference(before, now))
		}
	}
	c.failsWith(mail.CodeContactRequired, send) // the contact check works again, and the agents have no contact
	before := w.dump()
	gone := w.corrupt("mail_contacts_from")
	c.failsWith(mail.CodeCorruption, send)
	gone()
	c.ends()
	if now := w.dump(); now != before {
		t.Errorf("with a damaged page something was stored: %s", firstDifference(before, now))
	}
}
