package forget

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/integrity"
	"cairn/internal/observation/observationtest"
	"cairn/internal/observation/search"
	"cairn/internal/redact"
	"cairn/internal/store"
)

func purge(b observationtest.Bench, a PurgeArgs) PurgeResult {
	b.T.Helper()
	a.Cwd, a.Confirm = b.Repo, true
	done, err := Purge(b.T.Context(), b.Service, a)
	if err != nil {
		b.T.Fatal(err)
	}
	return done
}

func TestPurgeWithoutAUsableFilterChangesNothing(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt("hello there", "")
	for name, a := range map[string]PurgeArgs{
		"no filter": {}, "unknown type": {Type: "file_edited"}, "bad query": {Search: `"`}, "future": {OlderThan: -1},
		"unknown project": {Project: "nothing"},
	} {
		a.Confirm = true
		_, err := Purge(t.Context(), b.Service, a)
		if want := map[bool]fault.Kind{true: fault.NotFound, false: fault.Invalid}[a.Project != ""]; fault.KindOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	done, err := Purge(t.Context(), b.Service, PurgeArgs{IDs: []int64{1, 77}, Cwd: b.Repo})
	if err != nil || done.Rows != 1 || done.Counts[0] != (PurgeCount{"shop", observation.TypePrompt, 1}) {
		t.Errorf("counting: %+v %v", done, err)
	}
	b.Want("rows", b.Query(`SELECT count(*) FROM observations`), []string{"1"})
	b.Want("no trace of a purge", b.Query(`SELECT count(*) FROM store_meta WHERE name IN ('forgetting', 'tombstone_salt')`), []string{"0"})
}

func TestPurgeTakesThePromptLedgerAndEmptySessionAndTellsOthers(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt("a first question of four words", "p1")
	b.Call(observation.Call{ID: "t1", Tool: "Bash", Action: observation.Shell, Command: "make it"}, "p1")
	b.Record(observation.Event{Kind: observation.Message, Text: "made", Role: "turn", Source: "Stop", TurnEnds: true})
	b.Record(observation.Event{Kind: observation.Prompt, Session: "s2", Text: "another one", Source: "UserPromptSubmit"})
	err := b.Store.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for _, q := range []string{
			`INSERT INTO injection_rows (timestamp, session_key, trigger, section, observation_id, tokens)
				VALUES (1, 2, 'prompt', 'local', 1, 1), (1, 1, 'prompt', 'local', 4, 1)`,
			`INSERT INTO followers (name, lane, position, updated_at) VALUES ('archive', '', 1, 0)`,
		} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	done := purge(b, PurgeArgs{Type: observation.TypePrompt})
	if done.Rows != 2 || done.Prompts != 2 || done.Sessions != 1 || done.Ledger != 2 || len(done.Behind) != 1 || done.Behind[0].Follower != "archive" {
		t.Errorf("%+v", done)
	}
	b.Want("children", b.Query(`SELECT content, ifnull(prompt_id, 'none') FROM observations WHERE obs_type = 'command'`), []string{"make it|none"})
	b.Want("prompts", b.Query(`SELECT content FROM prompts`), []string{"made"})
	b.Want("digest", b.Query(`SELECT id, summary ->> '$.intent', summary ->> '$.prompts', summary ->> '$.actions' FROM sessions`), []string{"s1||0|1"})
	b.Want("ledger", b.Query(`SELECT count(*) FROM injection_rows`), []string{"0"})
	b.Want("change", b.Query(`SELECT kind, project, doc FROM change_log WHERE op = 'purge'`),
		[]string{`observation|shop|{"observations":[[1,1],[4,4]],"sessions":["s2"]}`})
	b.Want("documents", b.Query(`SELECT id, doc IS NULL FROM change_log WHERE kind = 'session' GROUP BY id`), []string{"s1|0", "s2|1"})
	if pending, err := IsUnfinished(t.Context(), b.Service); pending || err != nil {
		t.Errorf("still forgetting: %v %v", pending, err)
	}
}

// TestWhatWasPurgedIsKnownByEveryKeyItMayComeBackUnder imports purged rows again in the forms
// that transcripts, forks and late hooks use.
func TestWhatWasPurgedIsKnownByEveryKeyItMayComeBackUnder(t *testing.T) {
	t.Parallel()
	at := time.Unix(observationtest.Start, 0)
	tool := func(id, command string) observation.Event {
		return observation.Event{Kind: observation.Tool, At: at, LineID: "l-" + id, Calls: []observation.Call{{ID: id, Tool: "Bash", Action: observation.Shell, Command: command}}}
	}
	prompt := observation.Event{Kind: observation.Prompt, At: at, Text: "an open question", Source: "UserPromptSubmit"}
	message := observation.Event{Kind: observation.Message, At: at, Text: "an answer", Role: "turn", Source: "Stop"}
	summary := observation.Event{Kind: observation.Message, At: at, Text: "it was long", Role: observation.RoleSummary, Source: "PostCompact"}
	compact := observation.Event{Kind: observation.SessionStart, At: at, Text: "compact", Source: "SessionStart"}
	change := func(e observation.Event, f func(*observation.Event)) observation.Event {
		e.Calls = append([]observation.Call(nil), e.Calls...)
		f(&e)
		return e
	}
	named := change(prompt, func(e *observation.Event) { e.PromptID = "p1" })
	lined := change(message, func(e *observation.Event) { e.LineID = "u1" })
	for _, c := range []struct {
		name   string
		stored observation.Event // live, unless it has a line
		again  observation.Event // imported
		purged int
	}{
		{"call", tool("t1", "make"), tool("t1", "make"), 1},
		{"call of another id", tool("t1", "make"), tool("t2", "make"), 0},
		{"copy in a fork", tool("t1", "make"), change(tool("t1", "make"), func(e *observation.Event) { e.Session = "fork" }), 1},
		{"another call of a session that counts its ids", tool("1", "make"), change(tool("1", "ls"), func(e *observation.Event) { e.Session = "fork" }), 0},
		{"another part of a patch", tool("t1", "make"), change(tool("t1", "make"), func(e *observation.Event) { e.Calls[0].Part = 1 }), 0},
		{"prompt by its id", named, change(named, func(e *observation.Event) { e.Text, e.At = "told otherwise", at.Add(time.Hour) }), 1},
		{"prompt by its text", prompt, change(prompt, func(e *observation.Event) { e.LineID, e.At = "u9", at.Add(9*time.Second) }), 1},
		{"the same text a minute later", prompt, change(prompt, func(e *observation.Event) { e.At = at.Add(time.Minute) }), 0},
		{"the same text in another session", prompt, change(prompt, func(e *observation.Event) { e.Session = "other" }), 0},
		{"message by its line", lined, change(lined, func(e *observation.Event) { e.Session, e.At = "fork", at.Add(time.Hour) }), 1},
		{"message by its text", message, change(message, func(e *observation.Event) { e.LineID = "u3" }), 1},
		{"summary in other words", summary, change(summary, func(e *observation.Event) { e.Text, e.At = "much was said", at.Add(50*time.Second) }), 1},
		{"compaction", compact, change(compact, func(e *observation.Event) { e.At = at.Add(-50 * time.Second) }), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := observationtest.New(t)
			b.Imported(observation.Event{Kind: observation.Prompt, At: at.Add(-time.Hour), Text: "what came before", LineID: "u0", Source: "UserPromptSubmit"})
			if c.stored.LineID != "" {
				b.Imported(c.stored)
			} else {
				b.Record(c.stored)
			}
			purge(b, PurgeArgs{IDs: []int64{2}})
			done := b.Imported(c.again)
			if done.Purged != c.purged || done.Added != 1-c.purged {
				t.Errorf("importing it again: %+v", done)
			}
			b.Want("row 2", b.Query(`SELECT count(*) FROM observations WHERE id = 2`), []string{"0"})
		})
	}
}

func TestALateHookOfAPurgedCallStoresNothingAndANewOneDoes(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Call(observation.Call{ID: "t1", Tool: "Bash", Action: observation.Shell, Command: "make secret"}, "")
	purge(b, PurgeArgs{Session: "s1"})
	b.Want("sessions", b.Query(`SELECT count(*) FROM sessions`), []string{"0"})
	if done := b.Call(observation.Call{ID: "t1", Tool: "Bash", Action: observation.Shell, Command: "make secret"}, ""); done.Purged != 1 || len(done.IDs) != 0 {
		t.Errorf("the late hook: %+v", done)
	}
	b.Want("sessions after the late hook", b.Query(`SELECT count(*) FROM sessions`), []string{"0"})
	if done := b.Call(observation.Call{ID: "t2", Tool: "Bash", Action: observation.Shell, Command: "make public"}, ""); len(done.IDs) != 1 {
		t.Errorf("the session goes on: %+v", done)
	}
}

// TestAPurgedSessionOrProjectStaysAwayUpToThePurge imports events that were never stored.
func TestAPurgedSessionOrProjectStaysAwayUpToThePurge(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(observationtest.Start-500, 0), time.Unix(observationtest.Start+9999, 0)
	at := func(session, cwd, text string, when time.Time) observation.Event {
		return observation.Event{Kind: observation.Prompt, Session: session, Cwd: cwd, Text: text, At: when, LineID: text, Source: "UserPromptSubmit"}
	}
	for _, c := range []struct {
		name  string
		purge PurgeArgs
		want  []string // those of the texts below that are stored
	}{
		{"session", PurgeArgs{Session: "s1"}, []string{"here later", "other session", "outside of other"}},
		{"session before", PurgeArgs{Session: "s1", Before: early}, []string{"here early", "here later", "other session", "outside", "outside of other"}},
		{"project", PurgeArgs{Project: "shop"}, []string{"here later"}},
		{"both", PurgeArgs{Project: "shop", Session: "s1"}, []string{"here later", "other session", "outside of other"}},
		{"both, another", PurgeArgs{Project: "shop", Session: "s9"}, []string{"here early", "here later", "other session", "outside", "outside of other"}},
		{"session and type", PurgeArgs{Session: "s1", Type: observation.TypePrompt}, []string{"here early", "here later", "other session", "outside", "outside of other"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := observationtest.New(t)
			b.Prompt("what is stored", "")
			plain := t.TempDir()
			purge(b, c.purge)
			done := b.Imported(
				at("s1", b.Repo, "here early", early), at("s1", plain, "outside", early.Add(time.Second)),
				at("s3", b.Repo, "other session", early), at("s3", plain, "outside of other", early.Add(time.Second)),
				at("s1", b.Repo, "here later", late),
			)
			b.Want("stored", b.Query(`SELECT content FROM observations WHERE content != 'what is stored' ORDER BY content`), c.want)
			if done.Purged != 5-len(c.want) {
				t.Errorf("%+v", done)
			}
		})
	}
}

func TestImportingAgainGivesOrphansNoOtherParent(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	story := []observation.Event{
		{Kind: observation.Prompt, At: time.Unix(100, 0), Text: "the first", LineID: "u1", Source: "UserPromptSubmit"},
		{Kind: observation.Prompt, At: time.Unix(200, 0), Text: "the second", LineID: "u2", PromptID: "p2", Source: "UserPromptSubmit"},
		{Kind: observation.Tool, At: time.Unix(201, 0), PromptID: "p2", Calls: []observation.Call{{ID: "t1", Tool: "Bash", Action: observation.Shell, Command: "one"}}},
		{Kind: observation.Tool, At: time.Unix(202, 0), Calls: []observation.Call{{ID: "t2", Tool: "Bash", Action: observation.Shell, Command: "two"}}},
	}
	b.Imported(story...)
	purge(b, PurgeArgs{IDs: []int64{2}})
	b.Imported(append(story, observation.Event{Kind: observation.Tool, At: time.Unix(203, 0), PromptID: "p2",
		Calls: []observation.Call{{ID: "t3", Tool: "Bash", Action: observation.Shell, Command: "three"}}})...)
	b.Want("parents", b.Query(`SELECT content, ifnull(prompt_id, 'none') FROM observations ORDER BY content`),
		[]string{"one|none", "the first|1", "three|none", "two|none"})
}

func TestPurgeByFileFindsEverySpellingAndNoOtherProjectsFile(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	other := b.Repository(filepath.Join(filepath.Dir(b.Repo), "other"))
	edit := func(cwd, path, id string) {
		b.Record(observation.Event{Kind: observation.Tool, Cwd: cwd, Calls: []observation.Call{{ID: id, Tool: "Edit", Action: observation.Edit, Path: path}}})
	}
	src := filepath.Join(b.Repo, "src")
	if err := os.Mkdir(src, 0o755); err != nil {
		t.Fatal(err)
	}
	edit(b.Repo, "src/a.go", "t1")
	edit(src, "a.go", "t2")
	edit(other, "src/a.go", "t3")
	edit(b.Repo, "src/b.go", "t4")
	gone := filepath.Join(filepath.Dir(b.Repo), "gone")
	b.Repository(gone)
	edit(gone, "lost.go", "t5")
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, cwd string
		rows      int
	}{
		{"./src/../src/a.go", b.Repo, 2}, {filepath.Join(src, "a.go"), other, 2}, {"a.go", src, 2}, {"src/a.go", src, 2},
		{"src/a.go", other, 1}, {"src/nothing.go", b.Repo, 0}, {filepath.Join(gone, "lost.go"), b.Repo, 1}, {"lost.go", b.Repo, 0},
	} {
		done, err := Purge(t.Context(), b.Service, PurgeArgs{File: c.file, Cwd: c.cwd})
		if err != nil || done.Rows != c.rows {
			t.Errorf("%s in %s: %+v %v", c.file, c.cwd, done, err)
		}
	}
}

// TestRescanKeepsRowsWholeAndSearchable redacts with a rule that was added after the rows.
func TestRescanKeepsRowsWholeAndSearchable(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Record(observation.Event{Kind: observation.SessionStart, Text: "startup", Model: "model-ACME-1", Source: "SessionStart"})
	b.Prompt("ask ACME-22 about it now", "p1")
	b.Call(observation.Call{ID: "t1", Tool: "mcp__crm__find", Action: observation.MCP, Server: "crm", Method: "find", Args: []observation.Arg{
		{Name: "who", Value: "ACME-3"}, {Name: "more", Value: `{"list":[1.50,"ACME-4"],"deep":{"ACME-5":true}}`}, {Name: "n", Value: "7"},
	}}, "p1")
	b.Call(observation.Call{ID: "t2", Tool: "Edit", Action: observation.Edit, Path: "docs/ACME-6/plan.md"}, "p1")
	b.Call(observation.Call{ID: "t3", Tool: "Grep", Action: observation.Search, Pattern: "ACME-7", Path: "docs"}, "p1")
	b.Call(observation.Call{ID: "t4", Tool: "Bash", Action: observation.Shell, Command: "ls"}, "p1")
	b.Record(observation.Event{Kind: observation.Message, Text: "ACME-8 knows", Role: "turn", Source: "Stop", TurnEnds: true})
	filter, err := redact.New(redact.Options{ExtraPatterns: []string{`ACME-\d+`}})
	if err != nil {
		t.Fatal(err)
	}
	b = b.With(func(c *observation.Config) { c.Filter = filter })
	dry, err := Rescan(t.Context(), b.Service, RescanArgs{DryRun: true})
	if err != nil || dry.Rows != 6 || dry.Sessions != 1 {
		t.Errorf("dry: %+v %v", dry, err)
	}
	done, err := Rescan(t.Context(), b.Service, RescanArgs{})
	if err != nil || done.Rows != 6 || done.Sessions != 1 || done.ByType[observation.TypeEdit] != 1 || done.Rules["extra_pattern_1"] < 8 {
		t.Errorf("%+v %v", done, err)
	}
	if again, err := Rescan(t.Context(), b.Service, RescanArgs{}); err != nil || again.Rows+again.Sessions+len(again.Rules) != 0 {
		t.Errorf("again: %+v %v", again, err)
	}
	var params map[string]string
	if err := json.Unmarshal([]byte(b.Query(`SELECT metadata ->> '$.params' FROM observations WHERE obs_type = 'mcp_call'`)[0]), &params); err != nil {
		t.Fatal(err)
	}
	if params["who"] != redact.Mark || params["n"] != "7" || params["more"] != `{"deep":{"[REDACTED]":true},"list":[1.50,"[REDACTED]"]}` {
		t.Errorf("params %q", params)
	}
	b.Want("file", b.Query(`SELECT content, path_key, substr(file_path, -length(path_key)) = path_key FROM observations WHERE obs_type = 'file_edit'`),
		[]string{"docs/[REDACTED]/plan.md|docs/[REDACTED]/plan.md|1"})
	b.Want("untouched", b.Query(`SELECT content, ifnull(metadata, 'none') FROM observations WHERE obs_type = 'command'`), []string{"ls|none"})
	b.Want("session", b.Query(`SELECT model, summary ->> '$.intent' FROM sessions`), []string{"model-[REDACTED]|ask [REDACTED] about it now"})
	b.Want("log", b.Query(`SELECT count(*) FROM change_log WHERE doc LIKE '%ACME%'`), []string{"0"})
	b.Want("rows told", b.Query(`SELECT doc FROM change_log WHERE op = 'redact'`), []string{`{"observations":[[1,5],[7,7]]}`})
	for query, want := range map[string]int{"ACME": 0, "plan": 1, "knows": 1, "crm": 1, "find": 1, "deep": 1} {
		if hits, err := search.Search(t.Context(), b.Service, search.SearchArgs{Query: query, Limit: 10}); err != nil || len(hits) != want {
			t.Errorf("%s finds %d rows, want %d (%v)", query, len(hits), want, err)
		}
	}
}

// TestStoredRowsAreIndexedAsTheyWereWhenNew recomputes the searchable text of every row from the
// stored row.
func TestStoredRowsAreIndexedAsTheyWereWhenNew(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	oneOfEach(b)
	calls := []observation.Call{
		{Tool: "mcp__crm__find", Action: observation.MCP, Server: "crm", Method: "find", Args: []observation.Arg{{Name: "who", Value: "Zo\u00eb"}, {Name: "x", Value: `{"a":1}`}}},
		{Tool: "Grep", Action: observation.Search, Pattern: "x in y", Path: "docs"},
		{Tool: "Bash", Action: observation.Shell, Command: "git commit -m 'a subject'", Stdout: "[main 1234567] a subject\n"},
		{Tool: "Bash", Action: observation.Shell, Command: "make", Failed: true, Error: "Exit code 2\nno rule", Description: "build it"},
		{Tool: "Other", Path: filepath.Join(b.Repo, "z.txt")},
	}
	for i := range calls {
		calls[i].ID = fmt.Sprint("x", i)
		b.Call(calls[i], "p1")
	}
	before := b.Query(`SELECT id, sz FROM observations_fts_docsize ORDER BY id`)
	err := b.Store.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		rows, err := readStored(ctx, tx, 0)
		for i := range rows {
			if err == nil {
				err = rewriteRow(ctx, tx, &rows[i])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// A document's size is the number of its words in each column.
	sizes := func(list []string) (out []string) {
		for _, s := range list {
			id, size, _ := strings.Cut(s, "|")
			out = append(out, fmt.Sprintf("%s %x", id, []byte(size)[:min(2, len(size))]))
		}
		return out
	}
	b.Want("sizes", sizes(b.Query(`SELECT id, sz FROM observations_fts_docsize ORDER BY id`)), sizes(before))
}

func TestARescanRedactsBranches(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Worked("s1", "fix/ACME-22", "work on it all day", nil, nil)
	b.Worked("s2", "fix/other", "work on it all day", nil, nil)
	filter, err := redact.New(redact.Options{ExtraPatterns: []string{`ACME-\d+`}})
	if err != nil {
		t.Fatal(err)
	}
	b = b.With(func(c *observation.Config) { c.Filter = filter })
	for _, want := range []int{1, 0} {
		done, err := Rescan(t.Context(), b.Service, RescanArgs{})
		if err != nil || done.Sessions != want || done.Rows != 0 || done.Rules["extra_pattern_1"] != want {
			t.Errorf("%+v %v, want %d sessions", done, err, want)
		}
	}
	b.Want("branches", b.Query(`SELECT branch FROM session_branches ORDER BY session_key`), []string{"fix/" + redact.Mark, "fix/other"})
}

// TestActionsKeepAPromptWhoseTextASalvageHasLost checks that an action keeps the id of its prompt.
func TestActionsKeepAPromptWhoseTextASalvageHasLost(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt("what it said", "")
	b.Call(observation.Call{ID: "t1", Tool: "Bash", Action: observation.Shell, Command: "make"}, "")
	err := b.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM observation_rows WHERE id = 1`)
		return err
	})
	if err == nil {
		err = integrity.Repair(t.Context(), b.Service, func(string, int64) {})
	}
	if err != nil {
		t.Fatal(err)
	}
	b.Want("parents", b.Query(`SELECT content, prompt_id FROM observations`), []string{"make|1"})
}

// TestASessionWithTextlessPromptsCanBePurged purges a session with a prompt that has no row, as a
// salvage may leave it.
func TestASessionWithTextlessPromptsCanBePurged(t *testing.T) {
	t.Parallel()
	for _, args := range []PurgeArgs{{Session: "s1"}, {Type: observation.TypePrompt}} {
		b := observationtest.New(t)
		b.Worked("s1", "ada/x", "what it says", nil, nil)
		err := b.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO prompt_rows (session_key, timestamp, source) VALUES (1, 1, 'user')`)
			if err == nil {
				_, err = tx.Exec(ctx, `DELETE FROM observation_rows WHERE obs_type = 'session_start'`)
			}
			if err == nil {
				_, err = tx.Exec(ctx, `DELETE FROM observations_fts WHERE rowid = 1`)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if done := purge(b, args); done.Sessions != 1 {
			t.Errorf("%+v", done)
		}
		b.Want("left", b.Query(`SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM prompt_rows), (SELECT count(*) FROM session_branches)`), []string{"0|0|0"})
	}
}

// TestWhatASalvageCannotKeepIsFoundAndMended deletes the tombstones' salt and stores a ledger entry
// that violates an invariant.
func TestWhatASalvageCannotKeepIsFoundAndMended(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt("to be purged", "")
	b.Call(observation.Call{ID: "t1", Tool: "Bash", Action: observation.Shell, Command: "make"}, "")
	purge(b, PurgeArgs{IDs: []int64{1}})
	err := b.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		for _, q := range []string{
			`DELETE FROM store_meta WHERE name = 'tombstone_salt'`,
			`INSERT INTO injection_rows (timestamp, session_key, trigger, section, observation_id, tokens, used_at)
				VALUES (1, 1, 'prompt', 'local', 1, 1, 7)`,
		} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := integrity.Check(t.Context(), b.Service)
	if err != nil || len(found) != 2 {
		t.Errorf("found %q, %v", found, err)
	}
	if err := integrity.Repair(t.Context(), b.Service, func(string, int64) {}); err != nil {
		t.Fatal(err)
	}
	if found, err := integrity.Check(t.Context(), b.Service); err != nil || len(found) != 0 {
		t.Errorf("after mending %q, %v", found, err)
	}
}
