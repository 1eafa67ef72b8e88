package observation

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// tells enters a row in the ledger as told to session s2 on an event.
func (b bench) tells(e Event, rows ...int64) {
	b.t.Helper()
	e.Session = "s2"
	done := b.record(e)
	var items []Item
	for _, id := range rows {
		items = append(items, Item{sectionLocal, id, 10})
	}
	if err := b.Inject(b.t.Context(), e, done.Session, items); err != nil {
		b.t.Fatal(err)
	}
}

// does stores an event of session s2 and brings the ledger up to date with it.
func (b bench) does(e Event) {
	b.t.Helper()
	e.Session = "s2"
	if err := b.record(e).Unnoted; err != nil {
		b.t.Fatal(err)
	}
}

func start() Event  { return Event{Kind: SessionStart, Text: "startup", Source: "SessionStart"} }
func stop() Event   { return Event{Kind: Message, Role: "turn", TurnEnds: true, Source: "Stop"} }
func finish() Event { return Event{Kind: SessionEnd, Text: "exit", Source: "SessionEnd"} }

func calls(c ...Call) Event { return Event{Kind: Tool, Calls: c} }

const used = `SELECT observation_id, ifnull(used_how, '-'), ifnull(used_at, 0) > timestamp FROM injections ORDER BY id`

func TestAnItemIsUsedWhenItsFileIsTouchedOrItsCommandRunsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	edit := func(path string) Call { return Call{Tool: "Edit", Action: Edit, Path: path} }
	b.call(edit("read.go"), "")                       // 1
	b.call(edit("edited.go"), "")                     // 2
	b.call(edit("untouched.go"), "")                  // 3
	b.call(bash("go test ./..."), "")                 // 4
	b.call(failing("cd x && make all", "broken"), "") // 5
	b.call(bash("ls"), "")                            // 6
	b.call(edit("searched.go"), "")                   // 7
	b.call(edit("failed.go"), "")                     // 8
	b.tells(start(), 1, 2, 3, 4, 5, 6, 7, 8)
	b.does(calls(Call{Tool: "Read", Action: Read, Path: filepath.Join(b.repo, "read.go")}))
	b.does(calls(edit("edited.go")))
	b.does(calls(Call{Tool: "Edit", Action: Edit, Path: "failed.go", Failed: true, Error: "no match"}))
	b.does(calls(Call{Tool: "Grep", Action: Search, Path: "searched.go", Pattern: "x"}))
	b.does(calls(failing("cd y && go  test ./...", "FAIL")))
	b.does(calls(bash("A=1 make all")))
	b.record(Event{Kind: Tool, Session: "s3", Calls: []Call{edit("untouched.go"), bash("ls")}}) // of another session
	want := []string{"1|file|1", "2|file|1", "3|-|0", "4|command|1", "5|command|1", "6|-|0", "7|-|0", "8|-|0"}
	b.does(stop())
	b.want("after the turn", b.query(used), want)
	at := b.query(`SELECT used_at FROM injections ORDER BY id`)
	b.does(calls(edit("read.go"), bash("make all")))
	b.does(finish())
	b.want("after the session", b.query(used), want)
	b.want("the first use stays", b.query(`SELECT used_at FROM injections ORDER BY id`), at)
}

func TestWhatIsTheSameInAnotherProjectIsNotUsed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.repository(filepath.Join(filepath.Dir(b.repo), "billing"))
	b.record(Event{Kind: Tool, Session: "s9", Cwd: other, Calls: []Call{{Tool: "Edit", Action: Edit, Path: "main.go"}}})
	b.tells(start(), 1)
	b.does(calls(Call{Tool: "Edit", Action: Edit, Path: "main.go"}))
	b.does(stop())
	b.want("main.go of shop", b.query(used), []string{"1|-|0"})
	b.does(Event{Kind: Tool, Cwd: other, Calls: []Call{{Tool: "Edit", Action: Edit, Path: "main.go"}}})
	b.does(stop())
	b.want("main.go of billing", b.query(used), []string{"1|file|1"})
}

func TestTheCallBeforeWhichAnItemIsToldIsNoUse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	edit := Call{Tool: "Edit", Action: Edit, Path: "a.go"}
	b.call(edit, "")
	b.call(failing("make", "broken"), "")
	b.call(bash("make all"), "")
	b.tells(Event{Kind: Touch, Source: "PreToolUse", Calls: []Call{edit}}, 1, 2, 3)
	b.does(calls(edit, failing("make", "broken")))
	b.does(stop())
	b.want("the calls themselves", b.query(used), []string{"1|-|0", "2|-|0", "3|-|0"})
	b.does(calls(edit, bash("make"), bash("make all")))
	b.does(stop())
	b.want("the next ones", b.query(used), []string{"1|file|1", "2|command|1", "3|command|1"})
}

func TestAnItemIsUsedWhenItIsFetchedByItsID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 5 {
		b.call(bash(fmt.Sprint("echo ", i)), "")
	}
	own := func(source, server, method string, args ...Arg) Event {
		return Event{Kind: Touch, Source: source, Calls: []Call{{
			Tool: "mcp__" + server + "__" + method, Action: MCP, Server: server, Method: method, Args: args,
		}}}
	}
	b.tells(start(), 1, 2, 3, 4, 5)
	b.does(own("PostToolUse", "cairn", "get_observations", Arg{"ids", "[1, 2,77]"}))
	b.does(own("PostToolUse", "plugin_tools_cairn", "timeline", Arg{"anchor", "3"}, Arg{"before", "4"}))
	b.does(own("PostToolUse", "cairn", "search", Arg{"limit", "4"}, Arg{"ids", "[4]"}))
	b.does(own("PostToolUse", "cairn", "get_observations", Arg{"ids", `["4"]`}))
	b.does(own("PostToolUse", "cairn", "timeline", Arg{"anchor", "four"}))
	b.does(own("PreToolUse", "cairn", "get_observations", Arg{"ids", "[5]"}))
	b.want("used", b.query(used), []string{"1|fetched|1", "2|fetched|1", "3|fetched|1", "4|-|0", "5|-|0"})
}

func TestTheLedgerIsSummedUpAndKeptForNinetyDays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if l, err := b.Ledger(t.Context(), Scope{}, 30); err != nil || l.Total.Items != 0 || l.Sections == nil || l.Total.TokensPerUsed != nil {
		t.Errorf("%+v, %v", l, err)
	}
	b.call(Call{Tool: "Edit", Action: Edit, Path: "a.go"}, "")
	b.call(Call{Tool: "Edit", Action: Edit, Path: "b.go"}, "")
	b.tells(start(), 1, 2)
	b.tells(Event{Kind: Prompt, Text: "and now", Source: "UserPromptSubmit"}, 1)
	b.does(calls(Call{Tool: "Edit", Action: Edit, Path: "a.go"}))
	b.does(stop())
	twenty, ten := 20.0, 10.0
	want := []SectionStats{
		{"session_start", "local", InjectionStats{2, 20, 1, 0.5, &twenty}},
		{"prompt", "local", InjectionStats{1, 10, 1, 1, &ten}},
	}
	for _, scope := range []string{"", "shop"} {
		l, err := b.Ledger(t.Context(), Scope{scope}, 30)
		if err != nil || len(l.Sections) != 2 || l.Total.Items != 3 || l.Total.Used != 2 || *l.Total.TokensPerUsed != 15 {
			t.Fatalf("%+v, %v", l, err)
		}
		for i, s := range l.Sections {
			if w := want[i]; s.Trigger != w.Trigger || s.Section != w.Section || s.Items != w.Items || s.Tokens != w.Tokens ||
				s.Used != w.Used || s.UseRate != w.UseRate || *s.TokensPerUsed != *w.TokensPerUsed {
				t.Errorf("%+v, want %+v", s, w)
			}
		}
	}
	if _, err := b.Ledger(t.Context(), Scope{"nobody"}, 30); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an unknown project: %v", err)
	}
	b.now.Add(40 * 24 * 60 * 60)
	if l, err := b.Ledger(t.Context(), Scope{}, 30); err != nil || l.Total.Items != 0 {
		t.Errorf("after 40 days: %+v, %v", l, err)
	}
	b.does(finish())
	b.want("kept", b.query(`SELECT count(*) FROM injections`), []string{"3"})
	b.now.Add(51 * 24 * 60 * 60)
	b.does(stop())
	b.want("turns forget nothing", b.query(`SELECT count(*) FROM injections`), []string{"3"})
	b.does(finish())
	b.want("forgotten", b.query(`SELECT count(*) FROM injections`), []string{"0"})
}

func TestWhatIsToldAtASessionsStartIsEnteredAndNotToldAgain(t *testing.T) {
	t.Parallel()
	b := helped(t)
	b.fill(b.repo, 300)
	b.prompt("feed the zebra and the quagga", "")
	b.call(Call{Tool: "Edit", Action: Edit, Path: "zebra/quagga.go"}, "")
	b.record(Event{Kind: Message, Role: "turn", TurnEnds: true, Source: "Stop", Text: "I fed them."})
	e := start()
	e.Session = "s2"
	done := b.record(e)
	told, err := b.Context(t.Context(), done.Project, "startup", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Inject(t.Context(), e, done.Session, told.Items); err != nil {
		t.Fatal(err)
	}
	b.want("entered", b.query(`SELECT trigger, section, count(*) FROM injections GROUP BY 1, 2 ORDER BY 2`), []string{
		"session_start|digest|1", "session_start|intents|1", "session_start|local|20",
	})
	b.want("the digest ends with the answer", b.query(`SELECT o.content FROM injections i
JOIN observations o ON o.id = i.observation_id WHERE i.section = 'digest'`), []string{"I fed them."})
	b.wantIDs("a prompt", b.asks("s2", "did the zebra and the quagga eat"))
	b.wantIDs("a file", b.announces("s2", Call{Tool: "Edit", Action: Edit, Path: "zebra/quagga.go"}))
}

func TestTheLedgerWaitsForTheLockOnlyShortly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	done := b.call(bash("ls"), "")
	other, err := store.Open(t.Context(), storetest.Config(store.Config{Path: b.store.Path()}))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	held, release := make(chan struct{}), make(chan struct{})
	finished := make(chan error)
	go func() {
		finished <- other.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	began := time.Now()
	err = b.Inject(t.Context(), start(), done.Session, []Item{{sectionLocal, 1, 1}})
	if took := time.Since(began); err == nil || took > 5*time.Second {
		t.Errorf("%v after %s", err, took)
	}
	close(release)
	if err := <-finished; err != nil {
		t.Error(err)
	}
}

// The end of a turn in a long session that was told much.
func BenchmarkNoteUse(b *testing.B) {
	j := newBench(b)
	var rows []int64
	for i := range 30 {
		rows = append(rows, j.call(Call{Tool: "Edit", Action: Edit, Path: fmt.Sprintf("old%d.go", i)}, "").IDs[0],
			j.call(failing(fmt.Sprintf("go test -run Test%d ./...", i), "FAIL"), "").IDs[0])
	}
	j.tells(start(), rows...)
	var events []Event
	for i := range 1000 {
		events = append(events,
			Event{Kind: Tool, Session: "s2", At: time.Unix(testStart+1000, 0), Calls: []Call{{ID: fmt.Sprint("e", i), Tool: "Edit", Action: Edit, Path: fmt.Sprintf("new%d.go", i%50)}}},
			Event{Kind: Tool, Session: "s2", At: time.Unix(testStart+1000, 0), Calls: []Call{{ID: fmt.Sprint("c", i), Tool: "Bash", Action: Shell, Command: fmt.Sprintf("go test -count %d ./...", i)}}})
	}
	j.imported(events...)
	e := stop()
	session := j.record(Event{Kind: Prompt, Session: "s2", Text: "go on"}).Session
	for b.Loop() {
		err := j.store.Write(b.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			return noteUse(ctx, tx, &e, session)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func TestAnEventIsStoredThoughTheLedgerCannotBeBroughtUpToDate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.store.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `ALTER TABLE injection_rows RENAME TO elsewhere`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the store is checked
		err := b.store.Write(context.Background(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `ALTER TABLE elsewhere RENAME TO injection_rows`)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	e := finish()
	e.Session = "s1"
	done := b.record(e)
	if done.Unnoted == nil || len(done.IDs) != 1 {
		t.Errorf("added %v, ledger: %v", done.IDs, done.Unnoted)
	}
	b.want("rows", b.query(`SELECT obs_type FROM observations`), []string{"session_end"})
	b.want("digests", b.query(`SELECT summary IS NOT NULL FROM sessions`), []string{"1"})
}
