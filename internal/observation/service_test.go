package observation

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRowsBelongToThePromptThatCausedThem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.call(Call{ID: "early", Tool: "Read", Action: Read, Path: "a.go"}, "p1")       // its prompt comes later
	b.prompt("first question", "p1")                                                // and claims it
	b.prompt("second question", "")                                                 // no id
	b.call(Call{ID: "late", Tool: "Edit", Action: Edit, Path: "b.go"}, "p1")        // stays with the first
	b.call(Call{ID: "adopt", Tool: "Edit", Action: Edit, Path: "c.go"}, "p2")       // the second takes the id
	b.record(Event{Kind: Message, Text: "an answer", Role: "turn", Source: "Stop"}) // never a parent
	b.call(Call{ID: "none", Tool: "Bash", Action: Shell, Command: "ls"}, "")        // the newest
	b.want("parents", b.query(parents), []string{
		"file_read|a.go|first question",
		"user_prompt|first question|first question",
		"user_prompt|second question|second question",
		"file_edit|b.go|first question",
		"file_edit|c.go|second question",
		"agent_message|an answer|an answer",
		"command|ls|second question",
	})
}

func TestTheSameDeliveryMakesOneRowAndOneWithoutIDIsNeverARepeat(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 3 {
		b.call(Call{ID: "t1", Tool: "Bash", Action: Shell, Command: "make"}, "")
		b.call(Call{Tool: "Bash", Action: Shell, Command: "make"}, "")
	}
	b.want("rows", b.query(`SELECT count(*), count(tool_use_id) FROM observations`), []string{"4|1"})
}

func TestEqualReadsWithinTheWindowAreDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	read := func(id string, failed bool) {
		b.call(Call{ID: id, Tool: "Read", Action: Read, Path: "a.go", Failed: failed}, "")
	}
	read("r1", false)
	read("r2", false) // dropped
	read("r3", true)  // a failure is never dropped
	b.now.Add(299)
	read("r4", false) // 300 s and more after r1: kept
	b.call(Call{ID: "e1", Tool: "Edit", Action: Edit, Path: "a.go"}, "")
	b.call(Call{ID: "e2", Tool: "Edit", Action: Edit, Path: "a.go"}, "") // edits never
	b.want("rows", b.query(`SELECT tool_use_id FROM observations ORDER BY id`), []string{"r1", "r3", "r4", "e1", "e2"})
}

func TestWhatWasRecordedLiveIsNotImportedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt("fix the totals", "")
	b.call(Call{ID: "t1", Tool: "Edit", Action: Edit, Path: "a.go"}, "")
	b.record(Event{Kind: Message, Text: "done", Role: "turn", Source: "Stop", TurnEnds: true})
	at := func(n int64) time.Time { return time.Unix(testStart+n, 0) }
	transcript := []Event{
		{Kind: Prompt, Text: "fix the totals", PromptID: "p9", LineID: "u1", At: at(1), Source: "UserPromptSubmit"},
		{Kind: Tool, PromptID: "p9", At: at(2), Calls: []Call{{ID: "t1", Tool: "Edit", Action: Edit, Path: "a.go"}}},
		{Kind: Tool, PromptID: "p9", At: at(2), Calls: []Call{{ID: "t2", Tool: "Bash", Action: Shell, Command: "make"}}},
		{Kind: Message, Text: "done", Role: "turn", LineID: "u2", At: at(3), Source: "Stop"},
	}
	first := b.imported(transcript...)
	second := b.imported(transcript...)
	if first.Added != 1 || first.Known != 3 || second.Added != 0 || second.Known != 4 {
		t.Errorf("first %+v, second %+v", first, second)
	}
	b.want("filled", b.query(`SELECT harness_prompt_id, source_uuid FROM prompts ORDER BY id`), []string{"p9|u1", "|u2"})
	b.want("row", b.query(`SELECT harness_prompt_id FROM observations WHERE tool_use_id = 't1'`), []string{"p9"})
}

func TestCopiesOfAForkAddNothingButTheSameCallLaterDoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	call := func(session string, at int64) Event {
		return Event{
			Kind: Tool, Session: session, At: time.Unix(testStart+at, 0),
			Calls: []Call{{ID: "t1", Tool: "Bash", Action: Shell, Command: "make"}},
		}
	}
	prompt := func(session string) Event {
		return Event{Kind: Prompt, Session: session, Text: "go on please", LineID: "u1", At: time.Unix(testStart, 0), Source: "UserPromptSubmit"}
	}
	if n := b.imported(prompt("s1"), call("s1", 0), prompt("s2"), call("s2", 59)).Added; n != 2 {
		t.Errorf("a copy added rows: %d in all", n)
	}
	if n := b.imported(call("s3", 61)).Added; n != 1 {
		t.Errorf("a call of its own added %d rows", n)
	}
}

// Some harnesses name a turn and not its prompt.
func TestPromptSentInMidTurnIsKeptThoughItSharesTheTurnsId(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := time.Unix(testStart, 0)
	prompt := func(text string, after time.Duration) Event {
		return Event{Kind: Prompt, Session: "s1", Text: text, PromptID: "turn-1", At: at.Add(after), Source: "UserPromptSubmit"}
	}
	b.record(prompt("make the pots", 0))
	b.record(prompt("make the pots", 0)) // delivered twice
	b.record(prompt("blue ones", time.Second))
	later := prompt("blue ones", time.Second)
	later.PromptID = "" // as transcripts tell it
	if n := b.imported(prompt("make the pots", 0), later).Added; n != 0 {
		t.Errorf("the transcript added %d rows", n)
	}
	b.want("prompts", b.query(`SELECT content || '|' || ifnull(harness_prompt_id, '') FROM prompts ORDER BY id`), []string{"make the pots|turn-1", "blue ones|"})
}

func TestCopiedPromptsAndMessagesAddNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn := func(session string, after int64) []Event {
		at := time.Unix(testStart+after, 0)
		return []Event{
			{Kind: Prompt, Session: session, Text: "make the pots", PromptID: "turn-1", At: at, Source: "UserPromptSubmit"},
			{Kind: Message, Session: session, Text: "Done.", Role: "turn", PromptID: "turn-1", At: at, Source: "Stop"},
		}
	}
	for i, c := range []struct {
		session string
		after   int64
		added   int
	}{{"s1", 0, 2}, {"s2", 59, 0}, {"s3", 200, 2}} {
		if n := b.imported(turn(c.session, c.after)...).Added; n != c.added {
			t.Errorf("%d: added %d, want %d", i, n, c.added)
		}
	}
}

func TestDigestTellsIntentFilesCommandsAndNextSteps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt("/compact", "")
	b.prompt("make the refund test pass", "")
	b.call(Call{ID: "1", Tool: "Bash", Action: Shell, Command: "cd app && go  test ./refund", Failed: true, Error: "FAIL"}, "")
	b.call(Call{ID: "2", Tool: "Edit", Action: Edit, Path: filepath.Join(b.repo, "a.go")}, "")
	b.call(Call{ID: "3", Tool: "Edit", Action: Edit, Path: "b.go", Failed: true, Error: "no match"}, "")
	b.call(Call{ID: "4", Tool: "Bash", Action: Shell, Command: "go test ./refund"}, "")
	b.call(Call{ID: "5", Tool: "Bash", Action: Shell, Command: "make lint", Failed: true, Error: "exit 2"}, "")
	b.call(Call{ID: "6", Tool: "Bash", Action: Shell, Command: `git commit -m "round half up"`, Stdout: "[main 1a2b3c4] round half up\n 1 file changed, 2 insertions(+)"}, "")
	b.record(Event{Kind: Message, Text: "All fixed. Next: the docs.", Role: "turn", Source: "Stop", TurnEnds: true})
	b.want("digest", b.query(`SELECT summary FROM sessions`), []string{
		`{"intent":"make the refund test pass","files_edited":["a.go"],` +
			`"commits":[{"hash":"1a2b3c4","message":"round half up"}],` +
			`"fixed":["go test ./refund"],"failing":["make lint"],` +
			`"next_steps":"All fixed. Next: the docs.","prompts":2,"actions":6,"source":"rules"}`,
	})
}

func TestASecretIsNeitherInTheStoreNorSearchable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	secret := "ghp_" + strings.Repeat("Ab3d", 9)
	b.prompt("use "+secret+" for the release", "")
	b.call(Call{ID: "1", Tool: "Bash", Action: Shell, Command: "curl -H 'Authorization: Bearer " + secret + "' https://example.org"}, "")
	if rows := b.query(`SELECT id FROM observations WHERE content LIKE ? OR metadata LIKE ?`, "%"+secret[:12]+"%", "%"+secret[:12]+"%"); len(rows) > 0 {
		t.Errorf("the secret is in rows %v", rows)
	}
	b.want("marked", b.query(`SELECT metadata ->> '$.redacted' FROM observations ORDER BY id`), []string{"1", "1"})
	hits, err := b.Search(t.Context(), SearchArgs{Query: secret, Limit: 10})
	if err != nil || len(hits) != 0 {
		t.Errorf("found %v, %v", hits, err)
	}
}

func TestMarksGoToTheNewestSessionOrOneOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt("work on the shop", "")
	mark := func(a MarkArgs) string {
		a.Cwd = b.repo
		id, err := b.Mark(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		return b.query(`SELECT session_id || '|' || is_pinned FROM observations WHERE id = ?`, id)[0]
	}
	if got := mark(MarkArgs{Text: "keep the old endpoint", Pin: true}); got != "s1|1" {
		t.Error(got)
	}
	b.now.Add(25 * 60 * 60)
	if got := mark(MarkArgs{Text: "another day"}); got != fmt.Sprintf("mark-%d|0", b.now.Load()) {
		t.Error(got)
	}
	for _, a := range []MarkArgs{{Text: " \n"}, {Text: "x", Session: "nobody"}, {Text: "x", Project: "nothing"}} {
		a.Cwd = b.repo
		if _, err := b.Mark(t.Context(), a); err == nil {
			t.Errorf("%+v was accepted", a)
		}
	}
}

func TestPinningAnUnknownTargetChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.prompt("pin me please", "").IDs[0]
	if _, err := b.Pin(t.Context(), PinArgs{IDs: []int64{id, 999}, Cwd: b.repo}); err == nil {
		t.Error("an unknown id was pinned")
	}
	b.want("pinned", b.query(`SELECT count(*) FROM observations WHERE is_pinned`), []string{"0"})
	b.call(Call{ID: "1", Tool: "Edit", Action: Edit, Path: "a/b.go"}, "")
	for _, a := range []PinArgs{{Session: "s1"}, {File: "./a/b.go"}, {IDs: []int64{id}}} {
		a.Cwd = b.repo
		if n, err := b.Pin(t.Context(), a); err != nil || n == 0 {
			t.Errorf("%+v: %d, %v", a, n, err)
		}
	}
	b.want("pinned", b.query(`SELECT count(*) FROM observations WHERE is_pinned`), []string{"2"})
}
