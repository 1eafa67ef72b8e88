package assist

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/observationtest"
	"cairn/internal/observation/sessionstart"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// tells records in the ledger that rows were shown to session s2 on an event.
func tells(b observationtest.Bench, e observation.Event, rows ...int64) {
	b.T.Helper()
	e.Session = "s2"
	done := b.Record(e)
	var items []ledger.Item
	for _, id := range rows {
		items = append(items, ledger.Item{Section: ledger.SectionLocal, Observation: id, Tokens: 10})
	}
	if err := ledger.Inject(b.T.Context(), b.Service, e, done.Session, items); err != nil {
		b.T.Fatal(err)
	}
}

// does stores an event of session s2 and updates the ledger with it.
func does(b observationtest.Bench, e observation.Event) {
	b.T.Helper()
	e.Session = "s2"
	if err := b.Record(e).Unnoted; err != nil {
		b.T.Fatal(err)
	}
}

func start() observation.Event {
	return observation.Event{Kind: observation.SessionStart, Text: "startup", Source: "SessionStart"}
}
func stop() observation.Event {
	return observation.Event{Kind: observation.Message, Role: "turn", TurnEnds: true, Source: "Stop"}
}
func finish() observation.Event {
	return observation.Event{Kind: observation.SessionEnd, Text: "exit", Source: "SessionEnd"}
}

func calls(c ...observation.Call) observation.Event {
	return observation.Event{Kind: observation.Tool, Calls: c}
}

const used = `SELECT observation_id, ifnull(used_how, '-'), ifnull(used_at, 0) > timestamp FROM injections ORDER BY id`

func TestAnItemIsUsedWhenItsFileIsTouchedOrItsCommandRunsAgain(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	edit := func(path string) observation.Call {
		return observation.Call{Tool: "Edit", Action: observation.Edit, Path: path}
	}
	b.Call(edit("read.go"), "")                       // 1
	b.Call(edit("edited.go"), "")                     // 2
	b.Call(edit("untouched.go"), "")                  // 3
	b.Call(observationtest.Bash("go test ./..."), "") // 4
	b.Call(failing("cd x && make all", "broken"), "") // 5
	b.Call(observationtest.Bash("ls"), "")            // 6
	b.Call(edit("searched.go"), "")                   // 7
	b.Call(edit("failed.go"), "")                     // 8
	tells(b, start(), 1, 2, 3, 4, 5, 6, 7, 8)
	does(b, calls(observation.Call{Tool: "Read", Action: observation.Read, Path: filepath.Join(b.Repo, "read.go")}))
	does(b, calls(edit("edited.go")))
	does(b, calls(observation.Call{Tool: "Edit", Action: observation.Edit, Path: "failed.go", Failed: true, Error: "no match"}))
	does(b, calls(observation.Call{Tool: "Grep", Action: observation.Search, Path: "searched.go", Pattern: "x"}))
	does(b, calls(failing("cd y && go  test ./...", "FAIL")))
	does(b, calls(observationtest.Bash("A=1 make all")))
	b.Record(observation.Event{Kind: observation.Tool, Session: "s3", Calls: []observation.Call{edit("untouched.go"), observationtest.Bash("ls")}}) // of another session
	want := []string{"1|file|1", "2|file|1", "3|-|0", "4|command|1", "5|command|1", "6|-|0", "7|-|0", "8|-|0"}
	does(b, stop())
	b.Want("after the turn", b.Query(used), want)
	at := b.Query(`SELECT used_at FROM injections ORDER BY id`)
	does(b, calls(edit("read.go"), observationtest.Bash("make all")))
	does(b, finish())
	b.Want("after the session", b.Query(used), want)
	b.Want("the first use stays", b.Query(`SELECT used_at FROM injections ORDER BY id`), at)
}

func TestWhatIsTheSameInAnotherProjectIsNotUsed(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	other := b.Repository(filepath.Join(filepath.Dir(b.Repo), "billing"))
	b.Record(observation.Event{Kind: observation.Tool, Session: "s9", Cwd: other, Calls: []observation.Call{{Tool: "Edit", Action: observation.Edit, Path: "main.go"}}})
	tells(b, start(), 1)
	does(b, calls(observation.Call{Tool: "Edit", Action: observation.Edit, Path: "main.go"}))
	does(b, stop())
	b.Want("main.go of shop", b.Query(used), []string{"1|-|0"})
	does(b, observation.Event{Kind: observation.Tool, Cwd: other, Calls: []observation.Call{{Tool: "Edit", Action: observation.Edit, Path: "main.go"}}})
	does(b, stop())
	b.Want("main.go of billing", b.Query(used), []string{"1|file|1"})
}

func TestTheCallBeforeWhichAnItemIsToldIsNoUse(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	edit := observation.Call{Tool: "Edit", Action: observation.Edit, Path: "a.go"}
	b.Call(edit, "")
	b.Call(failing("make", "broken"), "")
	b.Call(observationtest.Bash("make all"), "")
	tells(b, observation.Event{Kind: observation.Touch, Source: "PreToolUse", Calls: []observation.Call{edit}}, 1, 2, 3)
	does(b, calls(edit, failing("make", "broken")))
	does(b, stop())
	b.Want("the calls themselves", b.Query(used), []string{"1|-|0", "2|-|0", "3|-|0"})
	does(b, calls(edit, observationtest.Bash("make"), observationtest.Bash("make all")))
	does(b, stop())
	b.Want("the next ones", b.Query(used), []string{"1|file|1", "2|command|1", "3|command|1"})
}

func TestAnItemIsUsedWhenItIsFetchedByItsID(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	for i := range 5 {
		b.Call(observationtest.Bash(fmt.Sprint("echo ", i)), "")
	}
	own := func(source, server, method string, args ...observation.Arg) observation.Event {
		return observation.Event{Kind: observation.Touch, Source: source, Calls: []observation.Call{{
			Tool: "mcp__" + server + "__" + method, Action: observation.MCP, Server: server, Method: method, Args: args,
		}}}
	}
	tells(b, start(), 1, 2, 3, 4, 5)
	does(b, own("PostToolUse", "cairn", "get_observations", observation.Arg{Name: "ids", Value: "[1, 2,77]"}))
	does(b, own("PostToolUse", "plugin_tools_cairn", "timeline", observation.Arg{Name: "anchor", Value: "3"}, observation.Arg{Name: "before", Value: "4"}))
	does(b, own("PostToolUse", "cairn", "search", observation.Arg{Name: "limit", Value: "4"}, observation.Arg{Name: "ids", Value: "[4]"}))
	does(b, own("PostToolUse", "cairn", "get_observations", observation.Arg{Name: "ids", Value: `["4"]`}))
	does(b, own("PostToolUse", "cairn", "timeline", observation.Arg{Name: "anchor", Value: "four"}))
	does(b, own("PreToolUse", "cairn", "get_observations", observation.Arg{Name: "ids", Value: "[5]"}))
	b.Want("used", b.Query(used), []string{"1|fetched|1", "2|fetched|1", "3|fetched|1", "4|-|0", "5|-|0"})
}

func TestTheLedgerIsSummedUpAndKeptForNinetyDays(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	if l, err := ledger.Summarize(t.Context(), b.Service, observation.Scope{}, 30); err != nil || l.Total.Items != 0 || l.Sections == nil || l.Total.TokensPerUsed != nil {
		t.Errorf("%+v, %v", l, err)
	}
	b.Call(observation.Call{Tool: "Edit", Action: observation.Edit, Path: "a.go"}, "")
	b.Call(observation.Call{Tool: "Edit", Action: observation.Edit, Path: "b.go"}, "")
	tells(b, start(), 1, 2)
	tells(b, observation.Event{Kind: observation.Prompt, Text: "and now", Source: "UserPromptSubmit"}, 1)
	does(b, calls(observation.Call{Tool: "Edit", Action: observation.Edit, Path: "a.go"}))
	does(b, stop())
	twenty, ten := 20.0, 10.0
	want := []ledger.SectionStats{
		{Trigger: "session_start", Section: "local", Stats: ledger.Stats{Items: 2, Tokens: 20, Used: 1, UseRate: 0.5, TokensPerUsed: &twenty}},
		{Trigger: "prompt", Section: "local", Stats: ledger.Stats{Items: 1, Tokens: 10, Used: 1, UseRate: 1, TokensPerUsed: &ten}},
	}
	for _, scope := range []string{"", "shop"} {
		l, err := ledger.Summarize(t.Context(), b.Service, observation.Scope{Project: scope}, 30)
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
	if _, err := ledger.Summarize(t.Context(), b.Service, observation.Scope{Project: "nobody"}, 30); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an unknown project: %v", err)
	}
	b.Now.Add(40 * 24 * 60 * 60)
	if l, err := ledger.Summarize(t.Context(), b.Service, observation.Scope{}, 30); err != nil || l.Total.Items != 0 {
		t.Errorf("after 40 days: %+v, %v", l, err)
	}
	does(b, finish())
	b.Want("kept", b.Query(`SELECT count(*) FROM injections`), []string{"3"})
	b.Now.Add(51 * 24 * 60 * 60)
	does(b, stop())
	b.Want("turns forget nothing", b.Query(`SELECT count(*) FROM injections`), []string{"3"})
	does(b, finish())
	b.Want("forgotten", b.Query(`SELECT count(*) FROM injections`), []string{"0"})
}

func TestWhatIsToldAtASessionsStartIsEnteredAndNotToldAgain(t *testing.T) {
	t.Parallel()
	b := observationtest.Helped(t)
	b.Fill(b.Repo, 300)
	b.Prompt("feed the zebra and the quagga", "")
	b.Call(observation.Call{Tool: "Edit", Action: observation.Edit, Path: "zebra/quagga.go"}, "")
	b.Record(observation.Event{Kind: observation.Message, Role: "turn", TurnEnds: true, Source: "Stop", Text: "I fed them."})
	e := start()
	e.Session = "s2"
	done := b.Record(e)
	told, err := sessionstart.BuildForProject(t.Context(), b.Service, done.Project, "startup", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := ledger.Inject(t.Context(), b.Service, e, done.Session, told.Items); err != nil {
		t.Fatal(err)
	}
	b.Want("entered", b.Query(`SELECT trigger, section, count(*) FROM injections GROUP BY 1, 2 ORDER BY 2`), []string{
		"session_start|digest|1", "session_start|intents|1", "session_start|local|20",
	})
	b.Want("the digest ends with the answer", b.Query(`SELECT o.content FROM injections i
JOIN observations o ON o.id = i.observation_id WHERE i.section = 'digest'`), []string{"I fed them."})
	wantIDs(b, "a prompt", asks(b, "s2", "did the zebra and the quagga eat"))
	wantIDs(b, "a file", announces(b, "s2", observation.Call{Tool: "Edit", Action: observation.Edit, Path: "zebra/quagga.go"}))
}

func TestTheLedgerWaitsForTheLockOnlyShortly(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	done := b.Call(observationtest.Bash("ls"), "")
	other, err := store.Open(t.Context(), storetest.Config(store.Config{Path: b.Store.Path()}))
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
	err = ledger.Inject(t.Context(), b.Service, start(), done.Session, []ledger.Item{{Section: ledger.SectionLocal, Observation: 1, Tokens: 1}})
	if took := time.Since(began); err == nil || took > 5*time.Second {
		t.Errorf("%v after %s", err, took)
	}
	close(release)
	if err := <-finished; err != nil {
		t.Error(err)
	}
}

// The end of a turn in a long session to which many rows were shown.
func BenchmarkNoteUse(b *testing.B) {
	j := observationtest.New(b)
	var rows []int64
	for i := range 30 {
		rows = append(rows, j.Call(observation.Call{Tool: "Edit", Action: observation.Edit, Path: fmt.Sprintf("old%d.go", i)}, "").IDs[0],
			j.Call(failing(fmt.Sprintf("go test -run Test%d ./...", i), "FAIL"), "").IDs[0])
	}
	tells(j, start(), rows...)
	var events []observation.Event
	for i := range 1000 {
		events = append(events,
			observation.Event{Kind: observation.Tool, Session: "s2", At: time.Unix(observationtest.Start+1000, 0), Calls: []observation.Call{{ID: fmt.Sprint("e", i), Tool: "Edit", Action: observation.Edit, Path: fmt.Sprintf("new%d.go", i%50)}}},
			observation.Event{Kind: observation.Tool, Session: "s2", At: time.Unix(observationtest.Start+1000, 0), Calls: []observation.Call{{ID: fmt.Sprint("c", i), Tool: "Bash", Action: observation.Shell, Command: fmt.Sprintf("go test -count %d ./...", i)}}})
	}
	j.Imported(events...)
	e := stop()
	session := j.Record(observation.Event{Kind: observation.Prompt, Session: "s2", Text: "go on"}).Session
	for b.Loop() {
		err := j.Store.Write(b.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			return ledger.NoteUse(ctx, tx, &e, session)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func TestAnEventIsStoredThoughTheLedgerCannotBeBroughtUpToDate(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	err := b.Store.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `ALTER TABLE injection_rows RENAME TO elsewhere`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the store is checked
		err := b.Store.Write(context.Background(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `ALTER TABLE elsewhere RENAME TO injection_rows`)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	e := finish()
	e.Session = "s1"
	done := b.Record(e)
	if done.Unnoted == nil || len(done.IDs) != 1 {
		t.Errorf("added %v, ledger: %v", done.IDs, done.Unnoted)
	}
	b.Want("rows", b.Query(`SELECT obs_type FROM observations`), []string{"session_end"})
	b.Want("digests", b.Query(`SELECT summary IS NOT NULL FROM sessions`), []string{"1"})
}
