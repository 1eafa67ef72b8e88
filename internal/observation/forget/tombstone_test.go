package forget

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/observationtest"
	"cairn/internal/project"
	"cairn/internal/store"
)

// TestWhatHooksToldWithoutIDsStaysPurged purges events from hooks of Gemini CLI and Cursor. It
// then imports the events as their transcripts contain them: with other ids and other texts, and
// for Cursor at unrelated times.
func TestWhatHooksToldWithoutIDsStaysPurged(t *testing.T) {
	t.Parallel()
	code := 1
	long := strings.Repeat("the pot is round. ", 100)
	call := func(c observation.Call) observation.Event {
		return observation.Event{Kind: observation.Tool, Calls: []observation.Call{c}}
	}
	prompt := func(text string) observation.Event {
		return observation.Event{Kind: observation.Prompt, Text: text, Source: "UserPromptSubmit"}
	}
	message := func(text string) observation.Event {
		return observation.Event{Kind: observation.Message, Text: text, Role: "turn", Source: "Stop", TurnEnds: true}
	}
	for _, c := range []struct {
		name       string
		live, told observation.Event
	}{
		{"command", call(observation.Call{Tool: "Shell", Action: observation.Shell, Command: "make"}), call(observation.Call{ID: "x", Tool: "Shell", Action: observation.Shell, Command: "make"})},
		{"command with the hook's own id", call(observation.Call{ID: "h", Tool: "Shell", Action: observation.Shell, Command: "make"}), call(observation.Call{ID: "x", Tool: "Shell", Action: observation.Shell, Command: "make"})},
		{
			"command of which only the hook tells that it failed",
			call(observation.Call{Tool: "Shell", Action: observation.Shell, Command: "make", Failed: true, ExitCode: &code, Error: "no rule"}),
			call(observation.Call{ID: "x", Tool: "Shell", Action: observation.Shell, Command: "make"}),
		},
		{"edit that is told as a write", call(observation.Call{Tool: "Edit", Action: observation.Edit, Path: "a.go"}), call(observation.Call{ID: "x", Tool: "Write", Action: observation.Write, Path: "./a.go"})},
		{"read", call(observation.Call{Tool: "Read", Action: observation.Read, Path: "a.go"}), call(observation.Call{ID: "x", Tool: "Read", Action: observation.Read, Path: "a.go"})},
		{"prompt", prompt("keep quiet about this"), prompt("keep quiet about this")},
		{"prompt with the hook's id", observation.Event{Kind: observation.Prompt, Text: "keep quiet about this", PromptID: "g1", Source: "UserPromptSubmit"}, prompt("keep quiet about this")},
		{"message", message("It is done."), message("It is done.")},
		{"end of a message", message("I look.\nAnd look.\nIt is done."), message("It is done.")},
		{"end of a long message", message("First.\n" + long), message(long)},
	} {
		for match, harness := range map[observation.Match]string{observation.MatchCount: "gemini", observation.MatchText: "cursor"} {
			t.Run(fmt.Sprint(c.name, " ", harness), func(t *testing.T) {
				t.Parallel()
				b := observationtest.New(t)
				live, told := c.live, c.told // shared with the parallel test of the other harness
				live.Harness, told.Harness = harness, harness
				b.Record(observation.Event{Kind: observation.Prompt, Harness: harness, Text: "what came before", Source: "UserPromptSubmit"})
				b.Record(live)
				purge(b, PurgeArgs{IDs: []int64{2}})
				if told.At = time.Unix(observationtest.Start+9, 0); match == observation.MatchText {
					told.At = told.At.Add(-99 * time.Hour)
				}
				if told.Kind != observation.Tool {
					told.LineID = "l1"
				}
				if n := b.Matched(match, told); n.Added != 0 || n.Purged != 1 {
					t.Errorf("told again: %+v", n)
				}
				other := told
				if other.Kind == observation.Tool {
					other.Calls = []observation.Call{{ID: "y", Tool: "Shell", Action: observation.Shell, Command: "make tea"}}
				} else {
					other.Text, other.LineID = "Another thing.", "l2"
				}
				if n := b.Matched(match, other); n.Added != 1 {
					t.Errorf("something else: %+v", n)
				}
				i := capture.NewImporter(b.Service, capture.ImportOptions{IncludePurged: true})
				told.Imported, told.Match, told.Session, told.Cwd = true, match, "s1", b.Repo
				if told.Source == "" {
					told.Source = "PostToolUse"
				}
				p, err := capture.NewPreparer(b.Service).Prepare(told)
				if err == nil {
					err = i.Add(t.Context(), p)
				}
				n, eerr := i.EndFile(t.Context(), capture.ImportedFile{Path: "/u.jsonl"}, true)
				if err != nil || eerr != nil || n.Added != 1 {
					t.Errorf("what was purged included: %+v %v %v", n, err, eerr)
				}
			})
		}
	}
}

// TestAPurgedCallDoesNotHideItsLikes purges one of several equal calls from hooks without ids.
// The other calls are still recognised, and later calls are new.
func TestAPurgedCallDoesNotHideItsLikes(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	run := observation.Call{Tool: "Shell", Action: observation.Shell, Command: "make"}
	hook := func() int64 {
		return b.Record(observation.Event{Kind: observation.Tool, Harness: "gemini", Calls: []observation.Call{run}}).IDs[0]
	}
	told := func(id string, after time.Duration) observation.Event {
		e := observationtest.Tool(id, run)
		e.Harness, e.At = "gemini", time.Unix(observationtest.Start, 0).Add(after)
		return e
	}
	hook() // at 1 s
	b.Now.Add(1000)
	gone := hook() // at 1002 s
	b.Now.Add(1000)
	hook() // at 2003 s
	purge(b, PurgeArgs{IDs: []int64{gone}})
	n := b.Matched(observation.MatchCount, told("x1", time.Second), told("x2", 1002*time.Second), told("x3", 2003*time.Second), told("x4", 3000*time.Second))
	if n.Known != 2 || n.Purged != 1 || n.Added != 1 {
		t.Errorf("%+v", n)
	}
	b.Want("rows", b.Query(`SELECT ifnull(tool_use_id, 'hook') FROM observations ORDER BY timestamp`), []string{"hook", "hook", "x4"})
}

// TestAReadThatWasDroppedForAPurgedOneStaysAway imports a transcript in which the second read of
// a file was dropped because of the first.
func TestAReadThatWasDroppedForAPurgedOneStaysAway(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	read := func(id string) observation.Call {
		return observation.Call{ID: id, Tool: "Read", Action: observation.Read, Path: "hidden.go"}
	}
	b.Prompt("look around in here", "p1")
	b.Call(read("t1"), "p1")
	b.Now.Add(250)
	if done := b.Call(read("t2"), "p1"); done.Deduped != 1 {
		t.Fatalf("%+v", done)
	}
	purge(b, PurgeArgs{File: "hidden.go"})
	told := func(id string, at int64) observation.Event {
		return observation.Event{Kind: observation.Tool, At: time.Unix(observationtest.Start+at, 0), Calls: []observation.Call{read(id)}}
	}
	if n := b.Imported(told("t1", 2), told("t2", 253), told("t3", 5000)); n.Purged != 2 || n.Added != 1 {
		t.Errorf("%+v", n)
	}
	if done := b.Call(read("t4"), "p1"); len(done.IDs) != 1 {
		t.Errorf("a new read: %+v", done)
	}
}

func TestAPromptSentInTheTurnOfAPurgedOneIsStored(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt("what slipped out", "p1")
	b.Call(observation.Call{ID: "t1", Tool: "Bash", Action: observation.Shell, Command: "one"}, "p1")
	purge(b, PurgeArgs{IDs: []int64{1}})
	if done := b.Prompt("what slipped out", "p1"); done.Purged != 1 || len(done.IDs) != 0 {
		t.Errorf("the same prompt, late: %+v", done)
	}
	if done := b.Prompt("and mind the gap", "p1"); len(done.IDs) != 1 {
		t.Errorf("the next prompt of the turn: %+v", done)
	}
	b.Call(observation.Call{ID: "t2", Tool: "Bash", Action: observation.Shell, Command: "two"}, "p1")
	b.Want("parents", b.Query(observationtest.Parents), []string{"command|one|-", "user_prompt|and mind the gap|and mind the gap", "command|two|-"})
}

// TestAPurgedProjectStaysAwayAfterItWasMerged imports events that were never stored. Their
// project was purged and then merged into another project.
func TestAPurgedProjectStaysAwayAfterItWasMerged(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	mall, plain := b.Repository(filepath.Join(filepath.Dir(b.Repo), "mall")), t.TempDir()
	b.Record(observation.Event{Kind: observation.Prompt, Cwd: mall, Session: "m", Text: "about the mall", Source: "UserPromptSubmit"})
	b.Prompt("about the shop", "")
	purge(b, PurgeArgs{Project: "shop"})
	err := b.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		return project.Merge(ctx, tx, "shop", "mall", observation.MoveRows)
	})
	if err != nil {
		t.Fatal(err)
	}
	at := func(session, cwd, text string) observation.Event {
		return observation.Event{Kind: observation.Prompt, Session: session, Cwd: cwd, Text: text, At: time.Unix(observationtest.Start-500, 0), LineID: text, Source: "UserPromptSubmit"}
	}
	n := b.Imported(at("s1", b.Repo, "old shop"), at("s1", plain, "beside the shop"), at("m", mall, "old mall"))
	if n.Purged != 2 || n.Added != 1 {
		t.Errorf("%+v", n)
	}
	b.Want("stored", b.Query(`SELECT content FROM observations ORDER BY content`), []string{"about the mall", "old mall"})
}

// TestASessionThatIsPurgedDuringItsImportGetsNoDigest purges between two transactions of the
// import. The next session gets the key of the purged session.
func TestASessionThatIsPurgedDuringItsImportGetsNoDigest(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	i, prepare := capture.NewImporter(b.Service, capture.ImportOptions{}), capture.NewPreparer(b.Service)
	for n := range 500 { // one transaction of an import
		p, err := prepare.Prepare(observation.Event{
			Kind: observation.Prompt, Session: "old", Cwd: b.Repo, Text: fmt.Sprint("prompt ", n), At: time.Unix(observationtest.Start-9000+int64(n), 0),
			LineID: fmt.Sprint("u", n), Source: "UserPromptSubmit", Imported: true, Harness: "claude",
		})
		if err == nil {
			err = i.Add(t.Context(), p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	purge(b, PurgeArgs{Session: "old"})
	b.Record(observation.Event{Kind: observation.Prompt, Session: "new", Text: "good morning to all of you", Source: "UserPromptSubmit"})
	if _, err := i.EndFile(t.Context(), capture.ImportedFile{Path: "/t.jsonl"}, true); err != nil {
		t.Fatal(err)
	}
	b.Want("sessions", b.Query(`SELECT key, id, ifnull(summary, 'none') FROM sessions`), []string{"1|new|none"})
}

// TestWhatAnImportAddsWhileAPurgeWaitsGoesToo commits an import after a purge has read the rows
// and before it gets the lock.
func TestWhatAnImportAddsWhileAPurgeWaitsGoesToo(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	at := func(line string) observation.Event {
		return observation.Event{Kind: observation.Prompt, Text: "prompt " + line, At: time.Unix(observationtest.Start-100, 0), LineID: line, Source: "UserPromptSubmit"}
	}
	b.Imported(at("u1"))
	done := PurgeResult{}
	p := purging{PurgeArgs: PurgeArgs{Session: "s1", Cwd: b.Repo, Confirm: true}, service: b.Service, done: &done}
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	if err := b.Read(t.Context(), p.find); err != nil {
		t.Fatal(err)
	}
	b.Imported(at("u2"))
	if err := p.run(t.Context()); err != nil || done.Rows != 2 || done.Sessions != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	b.Want("left", b.Query(`SELECT content FROM observations`), nil)
	if _, err := Finish(t.Context(), b.Service); err != nil {
		t.Fatal(err)
	}
}

// TestTheFirstEventsOfABatchMayBePurged purges the beginning of a session whose later events were
// imported first.
func TestTheFirstEventsOfABatchMayBePurged(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	at := func(line string, s int64) observation.Event {
		return observation.Event{Kind: observation.Prompt, Text: "prompt " + line, At: time.Unix(observationtest.Start-s, 0), LineID: line, Branch: "ada/" + line, Source: "UserPromptSubmit"}
	}
	b.Imported(at("u1", 900), at("u2", 800))
	purge(b, PurgeArgs{IDs: []int64{1, 2}})
	b.Want("sessions", b.Query(`SELECT id FROM sessions`), nil)
	b.Want("branches", b.Query(`SELECT branch FROM session_branches`), nil)
	n := b.Imported(at("u1", 900), at("u4", 600), at("u2", 800), at("u3", 700))
	if n.Purged != 2 || n.Added != 2 {
		t.Errorf("%+v", n)
	}
	b.Want("session", b.Query(`SELECT started_at - ?, last_seen - ? FROM sessions`, observationtest.Start, observationtest.Start), []string{"-700|-600"})
	b.Want("branches", b.Query(`SELECT branch FROM session_branches ORDER BY branch`), []string{"ada/u3", "ada/u4"})
}
