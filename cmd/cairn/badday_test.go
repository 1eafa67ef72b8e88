package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadPayloadsStoreNothingOrWhatCanBeRead covers the first rows of the table in observations
// §13. Each payload is sent as bytes on standard input.
func TestBadPayloadsStoreNothingOrWhatCanBeRead(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	start := fmt.Sprintf(`{"session_id":"s1","cwd":%q,"hook_event_name":"UserPromptSubmit",`, h.repo)
	for name, c := range map[string]struct{ payload, says string }{
		"empty":               {"", "invalid JSON at byte 0"},
		"white space":         {" \n", "invalid JSON at byte 2"},
		"no JSON":             {"kiln", "invalid JSON at byte 0"},
		"cut off":             {start, fmt.Sprintf("invalid JSON at byte %d", len(start))},
		"trailing word":       {`{} x`, "invalid JSON at byte 3"},
		"second object":       {`{}{}`, "invalid JSON at byte 2"},
		"array":               {`[{}]`, "payload must be a JSON object"},
		"text":                {`"hello"`, "payload must be a JSON object"},
		"null":                {`null`, "payload must be a JSON object"},
		"too deep":            {start + `"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}", "JSON nested too deeply"},
		"a million deep":      {start + `"x":` + strings.Repeat(`[`, 1<<20), "JSON nested too deeply"},
		"objects, very deep":  {strings.Repeat(`{"a":`, 1<<18), "JSON nested too deeply"},
		"deep tool_response":  {start + `"tool_response":` + strings.Repeat(`{"a":[`, 600), "JSON nested too deeply"},
		"session is a number": {`{"session_id":1,"cwd":"/","hook_event_name":"Stop"}`, "session_id"},
	} {
		e := h.record([]byte(c.payload))
		h.fails(name, e, 1, "cairn: record: "+c.says)
	}
	if _, err := os.Stat(h.db()); !os.IsNotExist(err) {
		t.Errorf("a store was made: %v", err)
	}
	h.recorded([]byte(start + `"prompt":"as deep as may be","x":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + "}"))
	h.recorded([]byte("\xef\xbb\xbf" + start + `"prompt":"after a mark"}` + " \n"))
	h.wantRows(`SELECT content FROM observations ORDER BY id`, "as deep as may be", "after a mark")
	h.check()
}

// TestTextThatIsNoTextIsMended checks that each invalid UTF-8 byte, lone surrogate and NUL becomes
// U+FFFD, and that the row is stored.
func TestTextThatIsNoTextIsMended(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	start := fmt.Sprintf(`{"session_id":"s1","cwd":%q,"hook_event_name":"UserPromptSubmit","prompt":"`, h.repo)
	for payload, want := range map[string]string{
		"a\xffb one":        "a\uFFFDb one",
		`a\ud800b two`:      "a\uFFFDb two",
		`a\udc00b three`:    "a\uFFFDb three",
		`a\u0000b four`:     "a\uFFFDb four",
		"a\xc3\x28b five":   "a\uFFFD(b five",
		`\ud83d\ude00 six`:  "😀 six",
		`a\ud800\u0041b 7`:  "a\uFFFDAb 7",
		"a\xed\xa0\x80b 8x": "a\uFFFD\uFFFD\uFFFDb 8x",
	} {
		h.recorded([]byte(start + payload + `"}`))
		got := h.rows(`SELECT content FROM observations ORDER BY id DESC LIMIT 1`)
		if len(got) != 1 || strings.ReplaceAll(got[0], "\uFFFD\uFFFD\uFFFD", "\uFFFD") != strings.ReplaceAll(want, "\uFFFD\uFFFD\uFFFD", "\uFFFD") {
			t.Errorf("%q is stored as %q, want %q", payload, got, want)
		}
	}
	h.recorded([]byte(fmt.Sprintf(`{"session_id":"s\u00001","cwd":%q,"hook_event_name":"PostToolUse","tool_name":"Ba\ud800sh","tool_use_id":"t\u0000","tool_input":{"command":"\ud800"}}`, h.repo)))
	h.check()
}

// TestToolFieldsOfTheWrongTypeStillMakeARow checks that a row is stored, possibly with only the
// tool's name.
func TestToolFieldsOfTheWrongTypeStillMakeARow(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	wrong := []any{nil, 7, true, "text", []any{}, []any{1, "two", nil}, fields{}, fields{"command": 7, "file_path": []int{1}, "stdout": fields{}},
		fields{"command": fields{"x": 1}, "file_path": nil, "filePath": 3, "numFiles": "many"}}
	n := 0
	for shift, tool := range []string{"Bash", "Read", "Write", "Edit", "Grep", "Task", "WebFetch", "mcp__x__y", "Teleport"} {
		for i, input := range wrong { // every pair, each with a different tool
			n++
			id := fmt.Sprint("w", n)
			h.recorded(h.payload("PostToolUse", fields{
				"session_id": "session-" + id, // so that no read counts as repeated
				"tool_name":  tool, "tool_use_id": id, "tool_input": input, "tool_response": wrong[(i+shift)%len(wrong)],
			}))
		}
	}
	h.wantRows(`SELECT count(*), min(length(content) > 0) FROM observations WHERE tool_name IS NOT NULL`, fmt.Sprint(n, "|1"))
	h.check()
}

// TestSettingsThatCannotBeReadFailClosed: unreadable settings may contain redaction patterns or
// exclusions.
func TestSettingsThatCannotBeReadFailClosed(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	config := filepath.Join(h.dataDir(), "config.toml")
	if err := os.MkdirAll(config, 0o700); err != nil { // a folder instead of a file
		t.Fatal(err)
	}
	h.fails("a folder", h.record(h.shell("t1", "make")), 1, "config.toml", "cannot be read")
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("[observations]\n\n[observations.filter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.fails("no TOML", h.record(h.shell("t1", "make")), 1, "config.toml: line 3")
	if _, err := os.Stat(h.db()); !os.IsNotExist(err) {
		t.Errorf("a store was made: %v", err)
	}
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	h.recorded(h.shell("t1", "make"))
}

// TestHugeTranscriptLineIsSkippedAndCounted checks that all other lines are imported.
func TestHugeTranscriptLineIsSkippedAndCounted(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	story := newStory(t, filepath.Join(h.dir, "old"), "tale", h.repo, 2)
	path := filepath.Join(story.dir, "tale-0.jsonl")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	piece := []byte(strings.Repeat("word ", 1<<18/5))
	_, err = f.WriteString(`{"type":"user","uuid":"huge","sessionId":"tale-0","message":{"role":"user","content":"`)
	for n := 0; n < 65<<20 && err == nil; n += len(piece) {
		_, err = f.Write(piece)
	}
	if err == nil {
		_, err = f.WriteString("\"}}\n")
	}
	if err == nil {
		after := fields{"type": "user", "uuid": "after", "sessionId": "tale-0", "cwd": h.repo,
			"timestamp": "2026-01-02T12:00:00.000Z", "message": fields{"role": "user", "content": "and this one after it"}}
		err = json.NewEncoder(f).Encode(after)
	}
	if cerr := f.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	var r struct {
		Added   int
		Skipped map[string]int
	}
	if err := json.Unmarshal([]byte(h.cairn("import", "--json", story.dir)), &r); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, n := range r.Skipped {
		total += n
	}
	if r.Added != len(story.contents)+1 || total != 1 {
		t.Errorf("%+v, want %d rows and one line skipped", r, len(story.contents)+1)
	}
	wantOnce(t, h.contents(), append(story.contents, "and this one after it"))
	h.check()
}

// TestOlderSchemaIsMigratedAtOnce migrates an older store by a writer and by a reader. Every row is
// kept.
func TestOlderSchemaIsMigratedAtOnce(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(h *home){
		"hook":   func(h *home) { h.recorded(h.payload("Notification", fields{"message": "x"})) },
		"search": func(h *home) { h.cairn("search", "refund") },
	} {
		h := newHome(t)
		h.worked()
		before, newest := h.rows(everyRow), h.rows(`PRAGMA user_version`)[0]
		db := h.raw()
		h.sqlite(db, `DROP TABLE turn_vocabulary`, `DROP TABLE turn_words`, `DROP TABLE turns`, `DROP TABLE stale_turns`, `DROP TRIGGER observation_lines_forgotten`, `DROP TABLE observation_lines`, `DROP TRIGGER observation_forgotten`, `DROP TABLE output_rows`, `DROP TABLE output_lines`, `DROP TABLE project_keys`, `DROP TABLE project_checkouts`, `DROP TABLE memory_vectors`, `DROP TABLE memory_groups`, `DROP TABLE memory_idempotency`, `DROP TABLE follower_leases`, `DROP TABLE memory_streams`,
			`DROP TABLE memory_tombstones`, `DROP TABLE memory_contexts`, `DROP TABLE memory_entries`, `DROP TABLE memory_words`, `DROP TABLE memories`, `DROP TABLE memory_vaults`,
			`DROP TABLE memory_users`, `DROP TABLE followers`, `DROP TABLE set_aside`,
			`CREATE TABLE followers (name TEXT PRIMARY KEY, position INTEGER NOT NULL, updated_at INTEGER NOT NULL) WITHOUT ROWID`,
			`CREATE TABLE set_aside (follower TEXT NOT NULL, seq INTEGER NOT NULL, error TEXT NOT NULL, attempts INTEGER NOT NULL, next_try INTEGER NOT NULL, PRIMARY KEY (follower, seq)) WITHOUT ROWID`,
			`DROP TABLE archive_commits`, `DROP TABLE mail_notices`,
			`DROP TABLE mail_idempotency`, `DROP TABLE mail_blobs`, `DROP TABLE mail_reservations`, `DROP TABLE mail_contacts`, `DROP TABLE mail_sessions`,
			`DROP TABLE mail_threads`, `DROP TABLE mail_fts`, `DROP TABLE mail_recipients`, `DROP TABLE mail_messages`, `DROP TABLE mail_agents`,
			`DROP TABLE mail_projects`, `DROP VIEW injections`, `DROP TABLE injection_rows`, `DROP TABLE tombstones`, `DROP TABLE session_branches`, `DROP INDEX changes_with_doc`,
			`DROP TABLE activations`, `DROP TABLE record_sessions`, `DROP TABLE record_ticks`, `DROP TABLE records_fts`, `DROP TABLE records`,
			`DROP INDEX changes_of_stream`, `ALTER TABLE projects DROP COLUMN description`, `ALTER TABLE projects DROP COLUMN created_ns`,
			`ALTER TABLE projects DROP COLUMN tick`, `ALTER TABLE projects DROP COLUMN last_record`,
			`ALTER TABLE projects DROP COLUMN records_stream`, `ALTER TABLE projects DROP COLUMN uid`,
			`ALTER TABLE sessions DROP COLUMN checkout`, `ALTER TABLE sessions DROP COLUMN closed_at`,
			`ALTER TABLE observation_rows DROP COLUMN checksum`,
			`DELETE FROM store_meta WHERE name IN ('schema', 'projects_rekey', 'memory.titled')`, `PRAGMA user_version=2`)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		t.Log(name)
		open(h)
		h.wantRows(`PRAGMA user_version`, newest)
		h.wantRows(everyRow, before...)
		h.check()
	}
}

// TestClockThatStepsBackBreaksNothing: the stored rows have times a day in the future.
func TestClockThatStepsBackBreaksNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worked()
	db := h.raw()
	h.sqlite(db, `UPDATE observation_rows SET timestamp = timestamp + 86400, checksum = NULL`, `UPDATE prompt_rows SET timestamp = timestamp + 86400`,
		`UPDATE sessions SET started_at = started_at + 86400, last_seen = last_seen + 86400, ended_at = ended_at + 86400`,
		`UPDATE changes SET at = at + 86400000000000 WHERE seq = (SELECT max(seq) FROM changes)`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	h.recorded(h.payload("SessionStart", fields{"source": "resume"}))
	h.recorded(h.payload("UserPromptSubmit", fields{"prompt": "what about the refund", "prompt_id": "p9"}))
	h.recorded(h.payload("PostToolUse", fields{
		"tool_name": "Bash", "tool_use_id": "t20", "tool_input": fields{"command": "make refund"}, "prompt_id": "p9",
	}))
	h.recorded(h.payload("Stop", fields{"last_assistant_message": "The refund is made."}))
	h.recorded(h.payload("SessionEnd", fields{"reason": "exit"}))
	if h.cairn("mark", "noted after the clock went back") == "" {
		t.Error("the mark has no id")
	}
	if out := h.cairn("search", "refund", "--ids"); strings.Count(out, "\n") != 9 {
		t.Errorf("search finds %q", out)
	}
	if out := h.cairn("context"); !strings.HasPrefix(out, "# cairn context") || strings.Contains(out, "-1") {
		t.Errorf("context: %s", out)
	}
	h.wantRows(`SELECT count(*) FROM observations o JOIN prompts p ON p.id = o.prompt_id
WHERE o.tool_use_id = 't20' AND p.content = 'what about the refund'`, "1")
	h.wantRows(`SELECT count(*) FROM (SELECT id FROM observations GROUP BY id HAVING count(*) > 1)`, "0")
	h.check()
	d, _ := h.diagnosed("--deep")
	wants(t, d, "content", "ok", "intact")
}

// TestEventThatFoundTheStoreLockedIsRestoredByAnImport imports the session's transcript. It
// restores the lost event and stores nothing twice.
func TestEventThatFoundTheStoreLockedIsRestoredByAnImport(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	story := newStory(t, filepath.Join(h.dir, "old"), "tale", h.repo, 1)
	call := story.calls[0]
	h.recorded(h.shell("t1", "make first"))
	db := h.raw()
	h.sqlite(db, "BEGIN EXCLUSIVE")
	h.fails("locked", h.record(h.payload("PostToolUse", fields{
		"session_id": call.session, "tool_name": "Bash", "tool_use_id": call.id, "tool_input": fields{"command": call.command},
	})), 1, "database is locked")
	h.sqlite(db, "ROLLBACK")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	h.wantRows(`SELECT content FROM observations`, "make first")
	h.cairn("import", story.dir)
	wantOnce(t, h.contents(), append(story.contents, "make first"))
	h.check()
}
