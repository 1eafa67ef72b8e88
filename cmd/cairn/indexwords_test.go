package main

import (
	"slices"
	"strings"
	"testing"
)

// TestAnAlteredWordOfAnIndexIsFoundAndRepaired alters a word in each full-text index. SQLite's own
// checks do not detect this, but the search misses a row or finds a wrong one. doctor --deep
// compares the words of every index with the rows and names the row. A salvage rebuilds the index.
func TestAnAlteredWordOfAnIndexIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ table, row, text, columns, search, want string }{
		"observations": {"observations_fts", `SELECT max(id) FROM observation_rows WHERE content LIKE '%totals right'`, "ledgers", "parts", "search totals --ids --limit 100", "searchable words of observation "},
		"turns":        {"turn_words", `SELECT max(id) FROM turns WHERE session_key NOT IN (SELECT session_key FROM stale_turns)`, "nothing", "words", "search totals --ids --limit 100", "searchable words of the turn of observation "},
		"records":      {"records_fts", `SELECT key FROM records WHERE number = 2`, "nothing", "title", "records search reasons --limit 100", "searchable words of record 2 "},
		"mail":         {"mail_fts", `SELECT max(id) FROM mail_messages`, "nothing", "body", "mail search paragraph --limit 100", "searchable words of message "},
		"memories":     {"memory_words", `SELECT max(place) FROM memory_entries`, "nothing", "words", "memory search refund --top-k 100", "searchable words of the entry at place "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFullStore(t, true).home
			find := func() string { // compared without their order, because scores change over time
				lines := strings.Split(h.run(h.command(strings.Fields(c.search)...), nil).stdout, "\n")
				for i, line := range lines {
					if score, rest, _ := strings.Cut(line, " "); strings.HasPrefix(score, "0.") {
						lines[i] = rest
					}
				}
				slices.Sort(lines)
				return strings.Join(lines, "\n")
			}
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

// TestAMemoryThatDiffersFromTheLogIsRestoredFromIt checks that an entry or context that differs
// from the change log gets the log's text.
func TestAMemoryThatDiffersFromTheLogIsRestoredFromIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ damage, want string }{
		"text":     {`UPDATE memory_entries SET raw_entry = 'Bna' || substr(raw_entry, 4) WHERE key = 3`, "differs from the log"},
		"change":   {`UPDATE memory_entries SET seq = seq + 1 WHERE key = 3`, "differs from the log"},
		"tags":     {`UPDATE memory_entries SET tags = '{' WHERE key = 3`, "tags or metadata"},
		"inflight": {`UPDATE memory_entries SET synced = 5 WHERE key = 3`, "neither inflight nor committed"},
		"context":  {`UPDATE memory_contexts SET markdown = 'another'`, "context 1 differs from the log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			for i := range 6 {
				h.cairn("memory", "add-entry", "Ana wants refund "+string(rune('a'+i)), "--tag", "topic=refunds")
			}
			h.cairn("memory", "update-context", "The context of refunds.")
			const everything = `SELECT key, raw_entry, tags, synced, seq FROM memory_entries UNION ALL SELECT seq, markdown, context_id, synced, change_seq FROM memory_contexts`
			before := h.rows(everything)
			db := h.raw()
			h.sqlite(db, c.damage)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if d, code := h.diagnosed("--deep"); code != 1 || !strings.Contains(problems(d), c.want) {
				t.Errorf("doctor --deep exits %d: %s", code, problems(d))
			}
			h.cairn("doctor", "--salvage")
			if got := h.rows(everything); strings.Join(got, "\n") != strings.Join(before, "\n") {
				t.Errorf("the salvage leaves\n%s\nof\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
			}
			if d, code := h.diagnosed("--deep"); code != 0 {
				t.Errorf("doctor --deep after the salvage: %s", problems(d))
			}
		})
	}
}
