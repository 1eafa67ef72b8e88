package forget

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/observationtest"
	"cairn/internal/observation/search"
	"cairn/internal/observation/sessionstart"
	"cairn/internal/project"
	"cairn/internal/store"
)

func keepDefaults(c *observation.Config) { c.Retention = observation.DefaultRetention() }

// oneOfEach stores a row of every type.
func oneOfEach(b observationtest.Bench) {
	b.Record(observation.Event{Kind: observation.SessionStart, Text: "startup", Source: "SessionStart"})
	b.Record(observation.Event{Kind: observation.SessionStart, Text: "compact", Source: "SessionStart"})
	b.Prompt("please do all of it", "p1")
	for i, c := range []observation.Call{
		{Tool: "Read", Action: observation.Read, Path: "a.go"},
		{Tool: "Write", Action: observation.Write, Path: "b.go"},
		{Tool: "Edit", Action: observation.Edit, Path: "c.go"},
		{Tool: "Grep", Action: observation.Search, Pattern: "needle"},
		{Tool: "Bash", Action: observation.Shell, Command: "ls"},
		{Tool: "Bash", Action: observation.Shell, Command: "false", Failed: true, Error: "Exit code 1"},
		{Tool: "Bash", Action: observation.Shell, Command: "git commit -m x"},
		{Tool: "Bash", Action: observation.Shell, Command: "git push"},
		{Tool: "Bash", Action: observation.Shell, Command: "gh pr list"},
		{Tool: "mcp__a__b", Action: observation.MCP, Server: "a", Method: "b"},
		{Tool: "Task", Action: observation.Spawn, Description: "look"},
		{Tool: "WebFetch", Action: observation.Fetch, URL: "https://example.org"},
		{Tool: "WebSearch", Action: observation.WebSearch, Query: "what"},
		{Tool: "Teleport"},
	} {
		c.ID = fmt.Sprint("t", i)
		b.Call(c, "p1")
	}
	b.Record(observation.Event{Kind: observation.Message, Text: "all is done", Role: "turn", Source: "Stop", TurnEnds: true})
	if _, err := capture.Mark(b.T.Context(), b.Service, capture.MarkArgs{Text: "remember", Session: "s1", Cwd: b.Repo}); err != nil {
		b.T.Fatal(err)
	}
	b.Record(observation.Event{Kind: observation.SessionEnd, Text: "exit", Source: "SessionEnd"})
	if n := b.Query(`SELECT count(DISTINCT obs_type) FROM observations`)[0]; n != fmt.Sprint(len(observation.Types())) {
		b.T.Fatalf("%s types are stored, there are %d", n, len(observation.Types()))
	}
}

func sweep(b observationtest.Bench, a SweepArgs) SweepResult {
	b.T.Helper()
	done, err := Sweep(b.T.Context(), b.Service, a)
	if err != nil {
		b.T.Fatal(err)
	}
	return done
}

func TestEachTypeExpiresAfterItsDaysAndTheUnlistedNever(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t).With(keepDefaults)
	oneOfEach(b)
	wanted := observation.DefaultRetention()
	const never = 99_999
	for _, days := range []int64{90, 180, 365, 730, never} {
		b.Now.Store(observationtest.Start + days*observation.SecondsPerDay)
		if n := sweep(b, SweepArgs{}).Rows; n != 0 {
			t.Errorf("on day %d already %d rows go", days, n)
		}
		b.Now.Add(60) // now every row is older than that
		var want []string
		for _, name := range observation.Types() {
			if int64(wanted[name]) == days {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		dry := sweep(b, SweepArgs{DryRun: true})
		done := sweep(b, SweepArgs{})
		if got := slices.Sorted(maps.Keys(done.ByType)); !slices.Equal(got, want) || !maps.Equal(dry.ByType, done.ByType) {
			t.Errorf("after day %d: %q go, want %q; dry %v", days, got, want, dry.ByType)
		}
	}
	b.Want("what stays", b.Query(`SELECT obs_type FROM observations ORDER BY obs_type`), []string{"agent_message", "marker", "user_prompt"})
	b.Want("the session", b.Query(`SELECT id, summary ->> '$.intent' FROM sessions`), []string{"s1|please do all of it"})
	if hits, err := search.Search(t.Context(), b.Service, search.SearchArgs{Query: "needle"}); err != nil || len(hits) > 0 {
		t.Errorf("a swept row is still found: %v %v", hits, err)
	}
}

func TestPinnedRowsDoNotExpireAndAPromptGoesWithItsRow(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t).With(func(c *observation.Config) {
		c.Retention = observation.Retention{observation.TypePrompt: 1, observation.TypeCommand: 1}
	})
	b.Prompt("an old question", "p1")
	b.Call(observation.Call{ID: "t1", Tool: "Bash", Action: observation.Shell, Command: "make"}, "p1")
	b.Call(observation.Call{ID: "t2", Tool: "Bash", Action: observation.Shell, Command: "make pinned"}, "p1")
	b.Call(observation.Call{ID: "t3", Tool: "Edit", Action: observation.Edit, Path: "a.go"}, "p1")
	if _, err := capture.Pin(t.Context(), b.Service, capture.PinArgs{IDs: []int64{3}, Cwd: b.Repo}); err != nil {
		t.Fatal(err)
	}
	b.Now.Add(2 * observation.SecondsPerDay)
	if done := sweep(b, SweepArgs{}); done.Rows != 2 {
		t.Errorf("swept %+v", done)
	}
	b.Want("rows", b.Query(`SELECT content, ifnull(prompt_id, 'none') FROM observations`), []string{"make pinned|none", "a.go|none"})
	b.Want("prompts", b.Query(`SELECT count(*) FROM prompt_rows`), []string{"0"})
	if done := sweep(b, SweepArgs{}); done.Rows != 0 {
		t.Errorf("a second sweep takes %+v", done)
	}
}

func TestASweepKeepsItsLimitAndTakesTheOldestOfAType(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t).With(keepDefaults)
	for i := range 60 {
		b.Call(observation.Call{ID: fmt.Sprint("t", i), Tool: "Bash", Action: observation.Shell, Command: fmt.Sprint("run ", i)}, "")
	}
	b.Now.Add(200 * observation.SecondsPerDay)
	if done := sweep(b, SweepArgs{Limit: 40}); done.Rows != 40 {
		t.Errorf("swept %+v", done)
	}
	b.Want("the rest", b.Query(`SELECT count(*), min(content) FROM observations WHERE id > 40`), []string{"20|run 40"})
	if done := sweep(b, SweepArgs{Budget: time.Nanosecond}); done.Rows > forgetStep {
		t.Errorf("without time %+v is swept", done)
	}
	if done := sweep(b, SweepArgs{Budget: time.Minute}); done.Rows == 0 {
		t.Errorf("with time %+v is swept", done)
	}
}

func TestExpiredRowsUseUpNoRowOfTheContext(t *testing.T) {
	t.Parallel()
	two := 2
	b := observationtest.New(t).With(func(c *observation.Config) {
		c.Retention, c.Limits.Local = observation.Retention{observation.TypeEdit: 10}, &two
	})
	for i := range 5 {
		b.Call(observation.Call{ID: fmt.Sprint("e", i), Tool: "Edit", Action: observation.Edit, Path: fmt.Sprint("old", i, ".go")}, "")
		b.Call(observation.Call{ID: fmt.Sprint("c", i), Tool: "Bash", Action: observation.Shell, Command: fmt.Sprint("old command ", i)}, "")
	}
	b.Now.Add(11 * observation.SecondsPerDay)
	var p project.Project
	err := b.Store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		p, _, err = project.Find(ctx, tx, "shop")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	told, err := sessionstart.BuildForProject(t.Context(), b.Service, p, "startup", "")
	if err != nil || len(told.Items) != 2 || strings.Contains(told.Text, "old4.go") || !strings.Contains(told.Text, "old command 4") {
		t.Errorf("%v %s", err, told.Text)
	}
}

func TestAStoreThatIsTooLargeLosesTheShortestLivedAndOldestFirst(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	var events []observation.Event
	for i := range 6000 {
		c := observation.Call{ID: fmt.Sprint("t", i), Tool: "WebFetch", Action: observation.Fetch, URL: fmt.Sprint("https://example.org/", i, "/", strings.Repeat("page", 40))}
		if i%3 == 0 {
			c = observation.Call{ID: fmt.Sprint("t", i), Tool: "Bash", Action: observation.Shell, Command: fmt.Sprint("run ", i, strings.Repeat(" again", 40))}
		}
		events = append(events, observation.Event{Kind: observation.Tool, At: time.Unix(observationtest.Start+int64(i%1000), 0), Calls: []observation.Call{c}})
	}
	b.Imported(events...)
	if _, err := capture.Pin(t.Context(), b.Service, capture.PinArgs{IDs: []int64{2}, Cwd: b.Repo}); err != nil {
		t.Fatal(err)
	}
	if err := b.Store.Rewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	full := fileSize(b)
	b = b.With(func(c *observation.Config) { c.Retention, c.MaxBytes = observation.DefaultRetention(), full*3/4 })
	dry, err := EnforceSizeLimit(t.Context(), b.Service, SweepArgs{DryRun: true})
	if err != nil || dry.Rows == 0 || b.Query(`SELECT count(*) FROM observations`)[0] != "6000" {
		t.Errorf("a dry run: %+v %v", dry, err)
	}
	done, err := EnforceSizeLimit(t.Context(), b.Service, SweepArgs{})
	if err != nil || done.ForRoom != done.Rows || done.Rows < dry.Rows {
		t.Fatalf("%+v %v", done, err)
	}
	if size := fileSize(b); size > full*3/4/10*9 || size < full/2 {
		t.Errorf("the file has %d bytes of %d", size, full)
	}
	if done.ByType[observation.TypeCommand] != 0 || done.ByType[observation.TypeFetch] != done.Rows {
		t.Errorf("commands go before pages that were fetched: %v", done.ByType)
	}
	b.Want("the pinned row", b.Query(`SELECT count(*) FROM observations WHERE id = 2`), []string{"1"})
	b.Want("the oldest went", b.Query(`SELECT (SELECT count(*) FROM observations WHERE obs_type = 'web_fetch' AND timestamp < ?1 AND is_pinned = 0) > 0
		AND (SELECT min(timestamp) FROM observations WHERE obs_type = 'web_fetch' AND is_pinned = 0) = ?1`, observationtest.Start), []string{"0"})
	if again, err := EnforceSizeLimit(t.Context(), b.Service, SweepArgs{}); err != nil || again.Rows != 0 {
		t.Errorf("below the bound %+v goes (%v)", again, err)
	}
}

func fileSize(b observationtest.Bench) int64 {
	b.T.Helper()
	info, err := os.Stat(b.Store.Path())
	if err != nil {
		b.T.Fatal(err)
	}
	return info.Size()
}

func TestTheLedgerIsKeptForNinetyDays(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt("hello there", "p1")
	err := b.Store.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for i := range 1200 {
			_, err := tx.Exec(ctx, `INSERT INTO injection_rows (timestamp, session_key, trigger, section, observation_id, tokens)
				VALUES (?, 1, 'prompt', 'local', 1, 10)`, observationtest.Start+i)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Now.Store(observationtest.Start + 1100 + ledger.KeptDays*observation.SecondsPerDay)
	if dry, done := sweep(b, SweepArgs{DryRun: true}), sweep(b, SweepArgs{}); dry.Ledger != 1100 || done.Ledger != 1100 {
		t.Errorf("dry %+v, done %+v", dry, done)
	}
	b.Want("entries", b.Query(`SELECT count(*) FROM injection_rows`), []string{"100"})
}

func TestIDRangesAreAscendingAndJoined(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(idRanges([]int64{9, 2, 1, 3, 7, 8, 20}))
	if err != nil || string(got) != "[[1,3],[7,9],[20,20]]" {
		t.Errorf("%s %v", got, err)
	}
}
