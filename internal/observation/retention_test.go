package observation

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

	"cairn/internal/project"
	"cairn/internal/store"
)

func keepDefaults(c *Config) { c.Retention = DefaultRetention() }

// oneOfEach stores a row of every type.
func (b bench) oneOfEach() {
	b.record(Event{Kind: SessionStart, Text: "startup", Source: "SessionStart"})
	b.record(Event{Kind: SessionStart, Text: "compact", Source: "SessionStart"})
	b.prompt("please do all of it", "p1")
	for i, c := range []Call{
		{Tool: "Read", Action: Read, Path: "a.go"},
		{Tool: "Write", Action: Write, Path: "b.go"},
		{Tool: "Edit", Action: Edit, Path: "c.go"},
		{Tool: "Grep", Action: Search, Pattern: "needle"},
		{Tool: "Bash", Action: Shell, Command: "ls"},
		{Tool: "Bash", Action: Shell, Command: "false", Failed: true, Error: "Exit code 1"},
		{Tool: "Bash", Action: Shell, Command: "git commit -m x"},
		{Tool: "Bash", Action: Shell, Command: "git push"},
		{Tool: "Bash", Action: Shell, Command: "gh pr list"},
		{Tool: "mcp__a__b", Action: MCP, Server: "a", Method: "b"},
		{Tool: "Task", Action: Spawn, Description: "look"},
		{Tool: "WebFetch", Action: Fetch, URL: "https://example.org"},
		{Tool: "WebSearch", Action: WebSearch, Query: "what"},
		{Tool: "Teleport"},
	} {
		c.ID = fmt.Sprint("t", i)
		b.call(c, "p1")
	}
	b.record(Event{Kind: Message, Text: "all is done", Role: "turn", Source: "Stop", TurnEnds: true})
	if _, err := b.Mark(b.t.Context(), MarkArgs{Text: "remember", Session: "s1", Cwd: b.repo}); err != nil {
		b.t.Fatal(err)
	}
	b.record(Event{Kind: SessionEnd, Text: "exit", Source: "SessionEnd"})
	if n := b.query(`SELECT count(DISTINCT obs_type) FROM observations`)[0]; n != fmt.Sprint(len(types())) {
		b.t.Fatalf("%s types are stored, there are %d", n, len(types()))
	}
}

func (b bench) sweep(a SweepArgs) SweepResult {
	b.t.Helper()
	done, err := b.Sweep(b.t.Context(), a)
	if err != nil {
		b.t.Fatal(err)
	}
	return done
}

func TestEachTypeExpiresAfterItsDaysAndTheUnlistedNever(t *testing.T) {
	t.Parallel()
	b := newBench(t).with(keepDefaults)
	b.oneOfEach()
	wanted := DefaultRetention()
	const never = 99_999
	for _, days := range []int64{90, 180, 365, 730, never} {
		b.now.Store(testStart + days*secondsPerDay)
		if n := b.sweep(SweepArgs{}).Rows; n != 0 {
			t.Errorf("on day %d already %d rows go", days, n)
		}
		b.now.Add(60) // now every row is older than that
		var want []string
		for _, name := range types() {
			if int64(wanted[name]) == days {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		dry := b.sweep(SweepArgs{DryRun: true})
		done := b.sweep(SweepArgs{})
		if got := slices.Sorted(maps.Keys(done.ByType)); !slices.Equal(got, want) || !maps.Equal(dry.ByType, done.ByType) {
			t.Errorf("after day %d: %q go, want %q; dry %v", days, got, want, dry.ByType)
		}
	}
	b.want("what stays", b.query(`SELECT obs_type FROM observations ORDER BY obs_type`), []string{"agent_message", "marker", "user_prompt"})
	b.want("the session", b.query(`SELECT id, summary ->> '$.intent' FROM sessions`), []string{"s1|please do all of it"})
	if hits, err := b.Search(t.Context(), SearchArgs{Query: "needle"}); err != nil || len(hits) > 0 {
		t.Errorf("a swept row is still found: %v %v", hits, err)
	}
}

func TestPinnedRowsDoNotExpireAndAPromptGoesWithItsRow(t *testing.T) {
	t.Parallel()
	b := newBench(t).with(func(c *Config) { c.Retention = Retention{typePrompt: 1, typeCommand: 1} })
	b.prompt("an old question", "p1")
	b.call(Call{ID: "t1", Tool: "Bash", Action: Shell, Command: "make"}, "p1")
	b.call(Call{ID: "t2", Tool: "Bash", Action: Shell, Command: "make pinned"}, "p1")
	b.call(Call{ID: "t3", Tool: "Edit", Action: Edit, Path: "a.go"}, "p1")
	if _, err := b.Pin(t.Context(), PinArgs{IDs: []int64{3}, Cwd: b.repo}); err != nil {
		t.Fatal(err)
	}
	b.now.Add(2 * secondsPerDay)
	if done := b.sweep(SweepArgs{}); done.Rows != 2 {
		t.Errorf("swept %+v", done)
	}
	b.want("rows", b.query(`SELECT content, ifnull(prompt_id, 'none') FROM observations`), []string{"make pinned|none", "a.go|none"})
	b.want("prompts", b.query(`SELECT count(*) FROM prompt_rows`), []string{"0"})
	if done := b.sweep(SweepArgs{}); done.Rows != 0 {
		t.Errorf("a second sweep takes %+v", done)
	}
}

func TestASweepKeepsItsLimitAndTakesTheOldestOfAType(t *testing.T) {
	t.Parallel()
	b := newBench(t).with(keepDefaults)
	for i := range 60 {
		b.call(Call{ID: fmt.Sprint("t", i), Tool: "Bash", Action: Shell, Command: fmt.Sprint("run ", i)}, "")
	}
	b.now.Add(200 * secondsPerDay)
	if done := b.sweep(SweepArgs{Limit: 40}); done.Rows != 40 {
		t.Errorf("swept %+v", done)
	}
	b.want("the rest", b.query(`SELECT count(*), min(content) FROM observations WHERE id > 40`), []string{"20|run 40"})
	if done := b.sweep(SweepArgs{Budget: time.Nanosecond}); done.Rows > forgetStep {
		t.Errorf("without time %+v is swept", done)
	}
	if done := b.sweep(SweepArgs{Budget: time.Minute}); done.Rows == 0 {
		t.Errorf("with time %+v is swept", done)
	}
}

func TestExpiredRowsUseUpNoRowOfTheContext(t *testing.T) {
	t.Parallel()
	two := 2
	b := newBench(t).with(func(c *Config) {
		c.Retention, c.Limits.Local = Retention{typeEdit: 10}, &two
	})
	for i := range 5 {
		b.call(Call{ID: fmt.Sprint("e", i), Tool: "Edit", Action: Edit, Path: fmt.Sprint("old", i, ".go")}, "")
		b.call(Call{ID: fmt.Sprint("c", i), Tool: "Bash", Action: Shell, Command: fmt.Sprint("old command ", i)}, "")
	}
	b.now.Add(11 * secondsPerDay)
	var p project.Project
	err := b.store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		p, _, err = project.Find(ctx, tx, "shop")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	told, err := b.Context(t.Context(), p, "startup", "")
	if err != nil || len(told.Items) != 2 || strings.Contains(told.Text, "old4.go") || !strings.Contains(told.Text, "old command 4") {
		t.Errorf("%v %s", err, told.Text)
	}
}

func TestAStoreThatIsTooLargeLosesTheShortestLivedAndOldestFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var events []Event
	for i := range 6000 {
		c := Call{ID: fmt.Sprint("t", i), Tool: "WebFetch", Action: Fetch, URL: fmt.Sprint("https://example.org/", i, "/", strings.Repeat("page", 40))}
		if i%3 == 0 {
			c = Call{ID: fmt.Sprint("t", i), Tool: "Bash", Action: Shell, Command: fmt.Sprint("run ", i, strings.Repeat(" again", 40))}
		}
		events = append(events, Event{Kind: Tool, At: time.Unix(testStart+int64(i%1000), 0), Calls: []Call{c}})
	}
	b.imported(events...)
	if _, err := b.Pin(t.Context(), PinArgs{IDs: []int64{2}, Cwd: b.repo}); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Rewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	full := b.fileSize()
	b = b.with(func(c *Config) { c.Retention, c.MaxBytes = DefaultRetention(), full*3/4 })
	dry, err := b.MakeRoom(t.Context(), SweepArgs{DryRun: true})
	if err != nil || dry.Rows == 0 || b.query(`SELECT count(*) FROM observations`)[0] != "6000" {
		t.Errorf("a dry run: %+v %v", dry, err)
	}
	done, err := b.MakeRoom(t.Context(), SweepArgs{})
	if err != nil || done.ForRoom != done.Rows || done.Rows < dry.Rows {
		t.Fatalf("%+v %v", done, err)
	}
	if size := b.fileSize(); size > full*3/4/10*9 || size < full/2 {
		t.Errorf("the file has %d bytes of %d", size, full)
	}
	if done.ByType[typeCommand] != 0 || done.ByType[typeFetch] != done.Rows {
		t.Errorf("commands go before pages that were fetched: %v", done.ByType)
	}
	b.want("the pinned row", b.query(`SELECT count(*) FROM observations WHERE id = 2`), []string{"1"})
	b.want("the oldest went", b.query(`SELECT (SELECT count(*) FROM observations WHERE obs_type = 'web_fetch' AND timestamp < ?1 AND is_pinned = 0) > 0
		AND (SELECT min(timestamp) FROM observations WHERE obs_type = 'web_fetch' AND is_pinned = 0) = ?1`, testStart), []string{"0"})
	if again, err := b.MakeRoom(t.Context(), SweepArgs{}); err != nil || again.Rows != 0 {
		t.Errorf("below the bound %+v goes (%v)", again, err)
	}
}

func (b bench) fileSize() int64 {
	b.t.Helper()
	info, err := os.Stat(b.store.Path())
	if err != nil {
		b.t.Fatal(err)
	}
	return info.Size()
}

func TestTheLedgerIsKeptForNinetyDays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt("hello there", "p1")
	err := b.store.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for i := range 1200 {
			_, err := tx.Exec(ctx, `INSERT INTO injection_rows (timestamp, session_key, trigger, section, observation_id, tokens)
				VALUES (?, 1, 'prompt', 'local', 1, 10)`, testStart+i)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.now.Store(testStart + 1100 + LedgerDays*secondsPerDay)
	if dry, done := b.sweep(SweepArgs{DryRun: true}), b.sweep(SweepArgs{}); dry.Ledger != 1100 || done.Ledger != 1100 {
		t.Errorf("dry %+v, done %+v", dry, done)
	}
	b.want("entries", b.query(`SELECT count(*) FROM injection_rows`), []string{"100"})
}

func TestIDRangesAreAscendingAndJoined(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(idRanges([]int64{9, 2, 1, 3, 7, 8, 20}))
	if err != nil || string(got) != "[[1,3],[7,9],[20,20]]" {
		t.Errorf("%s %v", got, err)
	}
}
