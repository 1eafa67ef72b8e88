package main

import (
	"strings"
	"testing"
)

// An altered word in a full-text index breaks nothing that SQLite checks: the search
// misses a row, or finds a wrong one. doctor --deep compares the words of every index
// with the rows, names the row, and a salvage rebuilds the index.
func TestAnAlteredWordOfAnIndexIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ table, row, text, columns, search, want string }{
		"observations": {"observations_fts", `SELECT max(id) FROM observation_rows WHERE content LIKE '%totals right'`, "ledgers", "parts", "search totals --ids --limit 100", "searchable words of observation "},
		"records":      {"records_fts", `SELECT key FROM records WHERE number = 2`, "nothing", "title", "records search reasons --limit 100", "searchable words of record 2 "},
		"mail":         {"mail_fts", `SELECT max(id) FROM mail_messages`, "nothing", "body", "mail search paragraph --limit 100", "searchable words of message "},
		"memories":     {"memory_words", `SELECT max(place) FROM memory_entries`, "nothing", "words", "memory search refund --top-k 100", "searchable words of the entry at place "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFullStore(t, true).home
			find := func() string { return h.run(h.command(strings.Fields(c.search)...), nil).stdout }
			before := find()
			if d, code := h.diagnosed("--deep"); code != 0 {
				t.Fatal(problems(d))
			}
			row := h.rows(c.row)[0]
			db := h.raw()
			h.sqlite(db, "DELETE FROM "+c.table+" WHERE rowid = "+row,
				"INSERT INTO "+c.table+" (rowid, "+c.columns+") VALUES ("+row+", '"+c.text+"')")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if find() == before {
				t.Fatal("the search finds what it found before")
			}
			if d, code := h.diagnosed("--deep"); code != 1 || !strings.Contains(problems(d), c.want) || strings.Contains(problems(d), "more") {
				t.Errorf("doctor --deep exits %d: %s", code, problems(d))
			}
			if e := h.run(h.command("doctor", "--salvage"), nil); e.code != 0 || !strings.Contains(e.stdout, c.want) {
				t.Errorf("the salvage exits %d: %s%s", e.code, e.stdout, e.stderr)
			}
			if d, code := h.diagnosed("--deep"); code != 0 {
				t.Errorf("doctor --deep after the salvage: %s", problems(d))
			}
			if got := find(); got != before {
				t.Errorf("the search finds\n%s\nafter the salvage, before\n%s", got, before)
			}
		})
	}
}
