package observation

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/project"
	"cairn/internal/store"
)

// TestWhatHooksToldWithoutIDsStaysPurged purges what hooks of Gemini CLI and Cursor
// stored and tells it again as their transcripts do: with ids of their own, in
// other words, and of Cursor at times that say nothing.
func TestWhatHooksToldWithoutIDsStaysPurged(t *testing.T) {
	t.Parallel()
	code := 1
	long := strings.Repeat("the pot is round. ", 100)
	call := func(c Call) Event { return Event{Kind: Tool, Calls: []Call{c}} }
	prompt := func(text string) Event { return Event{Kind: Prompt, Text: text, Source: "UserPromptSubmit"} }
	message := func(text string) Event {
		return Event{Kind: Message, Text: text, Role: "turn", Source: "Stop", TurnEnds: true}
	}
	for _, c := range []struct {
		name       string
		live, told Event
	}{
		{"command", call(Call{Tool: "Shell", Action: Shell, Command: "make"}), call(Call{ID: "x", Tool: "Shell", Action: Shell, Command: "make"})},
		{"command with the hook's own id", call(Call{ID: "h", Tool: "Shell", Action: Shell, Command: "make"}), call(Call{ID: "x", Tool: "Shell", Action: Shell, Command: "make"})},
		{
			"command of which only the hook tells that it failed",
			call(Call{Tool: "Shell", Action: Shell, Command: "make", Failed: true, ExitCode: &code, Error: "no rule"}),
			call(Call{ID: "x", Tool: "Shell", Action: Shell, Command: "make"}),
		},
		{"edit that is told as a write", call(Call{Tool: "Edit", Action: Edit, Path: "a.go"}), call(Call{ID: "x", Tool: "Write", Action: Write, Path: "./a.go"})},
		{"read", call(Call{Tool: "Read", Action: Read, Path: "a.go"}), call(Call{ID: "x", Tool: "Read", Action: Read, Path: "a.go"})},
		{"prompt", prompt("keep quiet about this"), prompt("keep quiet about this")},
		{"prompt with the hook's id", Event{Kind: Prompt, Text: "keep quiet about this", PromptID: "g1", Source: "UserPromptSubmit"}, prompt("keep quiet about this")},
		{"message", message("It is done."), message("It is done.")},
		{"end of a message", message("I look.\nAnd look.\nIt is done."), message("It is done.")},
		{"end of a long message", message("First.\n" + long), message(long)},
	} {
		for match, harness := range map[Match]string{MatchCount: "gemini", MatchText: "cursor"} {
			t.Run(fmt.Sprint(c.name, " ", harness), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				live, told := c.live, c.told // which the test of the other harness has, too
				live.Harness, told.Harness = harness, harness
				b.record(Event{Kind: Prompt, Harness: harness, Text: "what came before", Source: "UserPromptSubmit"})
				b.record(live)
				b.purge(PurgeArgs{IDs: []int64{2}})
				if told.At = time.Unix(testStart+9, 0); match == MatchText {
					told.At = told.At.Add(-99 * time.Hour)
				}
				if told.Kind != Tool {
					told.LineID = "l1"
				}
				if n := b.matched(match, told); n.Added != 0 || n.Purged != 1 {
					t.Errorf("told again: %+v", n)
				}
				other := told
				if other.Kind == Tool {
					other.Calls = []Call{{ID: "y", Tool: "Shell", Action: Shell, Command: "make tea"}}
				} else {
					other.Text, other.LineID = "Another thing.", "l2"
				}
				if n := b.matched(match, other); n.Added != 1 {
					t.Errorf("something else: %+v", n)
				}
				i := b.Importer(ImportOptions{IncludePurged: true})
				told.Imported, told.Match, told.Session, told.Cwd = true, match, "s1", b.repo
				if told.Source == "" {
					told.Source = "PostToolUse"
				}
				p, err := b.Preparer().Prepare(told)
				if err == nil {
					err = i.Add(t.Context(), p)
				}
				n, eerr := i.EndFile(t.Context(), ImportedFile{Path: "/u.jsonl"}, true)
				if err != nil || eerr != nil || n.Added != 1 {
					t.Errorf("what was purged included: %+v %v %v", n, err, eerr)
				}
			})
		}
	}
}

// TestAPurgedCallDoesNotHideItsLikes purges one of several equal calls that hooks
// told without ids: the others are known as before, and later ones are new.
func TestAPurgedCallDoesNotHideItsLikes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	run := Call{Tool: "Shell", Action: Shell, Command: "make"}
	hook := func() int64 { return b.record(Event{Kind: Tool, Harness: "gemini", Calls: []Call{run}}).IDs[0] }
	told := func(id string, after time.Duration) Event {
		e := tool(id, run)
		e.Harness, e.At = "gemini", time.Unix(testStart, 0).Add(after)
		return e
	}
	hook() // at 1 s
	b.now.Add(1000)
	gone := hook() // at 1002 s
	b.now.Add(1000)
	hook() // at 2003 s
	b.purge(PurgeArgs{IDs: []int64{gone}})
	n := b.matched(MatchCount, told("x1", time.Second), told("x2", 1002*time.Second), told("x3", 2003*time.Second), told("x4", 3000*time.Second))
	if n.Known != 2 || n.Purged != 1 || n.Added != 1 {
		t.Errorf("%+v", n)
	}
	b.want("rows", b.query(`SELECT ifnull(tool_use_id, 'hook') FROM observations ORDER BY timestamp`), []string{"hook", "hook", "x4"})
}

// TestAReadThatWasDroppedForAPurgedOneStaysAway imports the transcript of a session
// whose second read of a file was dropped because of the first.
func TestAReadThatWasDroppedForAPurgedOneStaysAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	read := func(id string) Call { return Call{ID: id, Tool: "Read", Action: Read, Path: "hidden.go"} }
	b.prompt("look around in here", "p1")
	b.call(read("t1"), "p1")
	b.now.Add(250)
	if done := b.call(read("t2"), "p1"); done.Deduped != 1 {
		t.Fatalf("%+v", done)
	}
	b.purge(PurgeArgs{File: "hidden.go"})
	told := func(id string, at int64) Event {
		return Event{Kind: Tool, At: time.Unix(testStart+at, 0), Calls: []Call{read(id)}}
	}
	if n := b.imported(told("t1", 2), told("t2", 253), told("t3", 5000)); n.Purged != 2 || n.Added != 1 {
		t.Errorf("%+v", n)
	}
	if done := b.call(read("t4"), "p1"); len(done.IDs) != 1 {
		t.Errorf("a new read: %+v", done)
	}
}

func TestAPromptSentInTheTurnOfAPurgedOneIsStored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt("what slipped out", "p1")
	b.call(Call{ID: "t1", Tool: "Bash", Action: Shell, Command: "one"}, "p1")
	b.purge(PurgeArgs{IDs: []int64{1}})
	if done := b.prompt("what slipped out", "p1"); done.Purged != 1 || len(done.IDs) != 0 {
		t.Errorf("the same prompt, late: %+v", done)
	}
	if done := b.prompt("and mind the gap", "p1"); len(done.IDs) != 1 {
		t.Errorf("the next prompt of the turn: %+v", done)
	}
	b.call(Call{ID: "t2", Tool: "Bash", Action: Shell, Command: "two"}, "p1")
	b.want("parents", b.query(parents), []string{"command|one|-", "user_prompt|and mind the gap|and mind the gap", "command|two|-"})
}

// TestAPurgedProjectStaysAwayAfterItWasMerged imports what was never stored of a
// project that was purged and then became part of another.
func TestAPurgedProjectStaysAwayAfterItWasMerged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mall, plain := b.repository(filepath.Join(filepath.Dir(b.repo), "mall")), t.TempDir()
	b.record(Event{Kind: Prompt, Cwd: mall, Session: "m", Text: "about the mall", Source: "UserPromptSubmit"})
	b.prompt("about the shop", "")
	b.purge(PurgeArgs{Project: "shop"})
	err := b.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		return project.Merge(ctx, tx, "shop", "mall", MoveRows)
	})
	if err != nil {
		t.Fatal(err)
	}
	at := func(session, cwd, text string) Event {
		return Event{Kind: Prompt, Session: session, Cwd: cwd, Text: text, At: time.Unix(testStart-500, 0), LineID: text, Source: "UserPromptSubmit"}
	}
	n := b.imported(at("s1", b.repo, "old shop"), at("s1", plain, "beside the shop"), at("m", mall, "old mall"))
	if n.Purged != 2 || n.Added != 1 {
		t.Errorf("%+v", n)
	}
	b.want("stored", b.query(`SELECT content FROM observations ORDER BY content`), []string{"about the mall", "old mall"})
}

// TestASessionThatIsPurgedDuringItsImportGetsNoDigest purges between the import's
// transactions; the next session takes the number of the one that is gone.
func TestASessionThatIsPurgedDuringItsImportGetsNoDigest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	i, prepare := b.Importer(ImportOptions{}), b.Preparer()
	for n := range 500 { // of one transaction of an import
		p, err := prepare.Prepare(Event{
			Kind: Prompt, Session: "old", Cwd: b.repo, Text: fmt.Sprint("prompt ", n), At: time.Unix(testStart-9000+int64(n), 0),
			LineID: fmt.Sprint("u", n), Source: "UserPromptSubmit", Imported: true, Harness: "claude",
		})
		if err == nil {
			err = i.Add(t.Context(), p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b.purge(PurgeArgs{Session: "old"})
	b.record(Event{Kind: Prompt, Session: "new", Text: "good morning to all of you", Source: "UserPromptSubmit"})
	if _, err := i.EndFile(t.Context(), ImportedFile{Path: "/t.jsonl"}, true); err != nil {
		t.Fatal(err)
	}
	b.want("sessions", b.query(`SELECT key, id, ifnull(summary, 'none') FROM sessions`), []string{"1|new|none"})
}

// TestWhatAnImportAddsWhileAPurgeWaitsGoesToo lets an import commit between the
// moment at which a purge looks and the one at which it gets the lock.
func TestWhatAnImportAddsWhileAPurgeWaitsGoesToo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := func(line string) Event {
		return Event{Kind: Prompt, Text: "prompt " + line, At: time.Unix(testStart-100, 0), LineID: line, Source: "UserPromptSubmit"}
	}
	b.imported(at("u1"))
	done := PurgeResult{}
	p := purging{PurgeArgs: PurgeArgs{Session: "s1", Cwd: b.repo, Confirm: true}, journal: b.Service, done: &done}
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	if err := b.read(t.Context(), p.find); err != nil {
		t.Fatal(err)
	}
	b.imported(at("u2"))
	if err := p.run(t.Context()); err != nil || done.Rows != 2 || done.Sessions != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	b.want("left", b.query(`SELECT content FROM observations`), nil)
	if _, err := b.FinishForgetting(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestTheFirstEventsOfABatchMayBePurged drops the beginning of a session out of an
// import whose later events came first.
func TestTheFirstEventsOfABatchMayBePurged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := func(line string, s int64) Event {
		return Event{Kind: Prompt, Text: "prompt " + line, At: time.Unix(testStart-s, 0), LineID: line, Branch: "ada/" + line, Source: "UserPromptSubmit"}
	}
	b.imported(at("u1", 900), at("u2", 800))
	b.purge(PurgeArgs{IDs: []int64{1, 2}})
	b.want("sessions", b.query(`SELECT id FROM sessions`), nil)
	b.want("branches", b.query(`SELECT branch FROM session_branches`), nil)
	n := b.imported(at("u1", 900), at("u4", 600), at("u2", 800), at("u3", 700))
	if n.Purged != 2 || n.Added != 2 {
		t.Errorf("%+v", n)
	}
	b.want("session", b.query(`SELECT started_at - ?, last_seen - ? FROM sessions`, testStart, testStart), []string{"-700|-600"})
	b.want("branches", b.query(`SELECT branch FROM session_branches ORDER BY branch`), []string{"ada/u3", "ada/u4"})
}
