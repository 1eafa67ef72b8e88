package capture_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/observationtest"
	"cairn/internal/observation/search"
)

func TestRowsBelongToThePromptThatCausedThem(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Call(observation.Call{ID: "early", Tool: "Read", Action: observation.Read, Path: "a.go"}, "p1")       // its prompt arrives later
	b.Prompt("first question", "p1")                                                                        // and claims it
	b.Prompt("second question", "")                                                                         // no id
	b.Call(observation.Call{ID: "late", Tool: "Edit", Action: observation.Edit, Path: "b.go"}, "p1")        // belongs to the first prompt
	b.Call(observation.Call{ID: "adopt", Tool: "Edit", Action: observation.Edit, Path: "c.go"}, "p2")       // the second prompt gets the id
	b.Record(observation.Event{Kind: observation.Message, Text: "an answer", Role: "turn", Source: "Stop"}) // never a parent
	b.Call(observation.Call{ID: "none", Tool: "Bash", Action: observation.Shell, Command: "ls"}, "")        // the newest
	b.Want("parents", b.Query(observationtest.Parents), []string{
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
	b := observationtest.New(t)
	for range 3 {
		b.Call(observation.Call{ID: "t1", Tool: "Bash", Action: observation.Shell, Command: "make"}, "")
		b.Call(observation.Call{Tool: "Bash", Action: observation.Shell, Command: "make"}, "")
	}
	b.Want("rows", b.Query(`SELECT count(*), count(tool_use_id) FROM observations`), []string{"4|1"})
}

func TestEqualReadsWithinTheWindowAreDropped(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	read := func(id string, failed bool) {
		b.Call(observation.Call{ID: id, Tool: "Read", Action: observation.Read, Path: "a.go", Failed: failed}, "")
	}
	read("r1", false)
	read("r2", false) // dropped
	read("r3", true)  // a failure is never dropped
	b.Now.Add(299)
	read("r4", false) // 300 s or more after r1: stored
	b.Call(observation.Call{ID: "e1", Tool: "Edit", Action: observation.Edit, Path: "a.go"}, "")
	b.Call(observation.Call{ID: "e2", Tool: "Edit", Action: observation.Edit, Path: "a.go"}, "") // edits are never dropped
	b.Want("rows", b.Query(`SELECT tool_use_id FROM observations ORDER BY id`), []string{"r1", "r3", "r4", "e1", "e2"})
}

func TestWhatWasRecordedLiveIsNotImportedAgain(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt("fix the totals", "")
	b.Call(observation.Call{ID: "t1", Tool: "Edit", Action: observation.Edit, Path: "a.go"}, "")
	b.Record(observation.Event{Kind: observation.Message, Text: "done", Role: "turn", Source: "Stop", TurnEnds: true})
	at := func(n int64) time.Time { return time.Unix(observationtest.Start+n, 0) }
	transcript := []observation.Event{
		{Kind: observation.Prompt, Text: "fix the totals", PromptID: "p9", LineID: "u1", At: at(1), Source: "UserPromptSubmit"},
		{Kind: observation.Tool, PromptID: "p9", At: at(2), Calls: []observation.Call{{ID: "t1", Tool: "Edit", Action: observation.Edit, Path: "a.go"}}},
		{Kind: observation.Tool, PromptID: "p9", At: at(2), Calls: []observation.Call{{ID: "t2", Tool: "Bash", Action: observation.Shell, Command: "make"}}},
		{Kind: observation.Message, Text: "done", Role: "turn", LineID: "u2", At: at(3), Source: "Stop"},
	}
	first := b.Imported(transcript...)
	second := b.Imported(transcript...)
	if first.Added != 1 || first.Known != 3 || second.Added != 0 || second.Known != 4 {
		t.Errorf("first %+v, second %+v", first, second)
	}
	b.Want("filled", b.Query(`SELECT harness_prompt_id, source_uuid FROM prompts ORDER BY id`), []string{"p9|u1", "|u2"})
	b.Want("row", b.Query(`SELECT harness_prompt_id FROM observations WHERE tool_use_id = 't1'`), []string{"p9"})
}

func TestCopiesOfAForkAddNothingButTheSameCallLaterDoes(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	call := func(session string, at int64) observation.Event {
		return observation.Event{
			Kind: observation.Tool, Session: session, At: time.Unix(observationtest.Start+at, 0),
			Calls: []observation.Call{{ID: "t1", Tool: "Bash", Action: observation.Shell, Command: "make"}},
		}
	}
	prompt := func(session string) observation.Event {
		return observation.Event{Kind: observation.Prompt, Session: session, Text: "go on please", LineID: "u1", At: time.Unix(observationtest.Start, 0), Source: "UserPromptSubmit"}
	}
	if n := b.Imported(prompt("s1"), call("s1", 0), prompt("s2"), call("s2", 59)).Added; n != 2 {
		t.Errorf("a copy added rows: %d in all", n)
	}
	if n := b.Imported(call("s3", 61)).Added; n != 1 {
		t.Errorf("a call of its own added %d rows", n)
	}
}

// Some harnesses report the id of a turn, not of its prompt.
func TestPromptSentInMidTurnIsKeptThoughItSharesTheTurnsId(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	at := time.Unix(observationtest.Start, 0)
	prompt := func(text string, after time.Duration) observation.Event {
		return observation.Event{Kind: observation.Prompt, Session: "s1", Text: text, PromptID: "turn-1", At: at.Add(after), Source: "UserPromptSubmit"}
	}
	b.Record(prompt("make the pots", 0))
	b.Record(prompt("make the pots", 0)) // delivered twice
	b.Record(prompt("blue ones", time.Second))
	later := prompt("blue ones", time.Second)
	later.PromptID = "" // as in transcripts
	if n := b.Imported(prompt("make the pots", 0), later).Added; n != 0 {
		t.Errorf("the transcript added %d rows", n)
	}
	b.Want("prompts", b.Query(`SELECT content || '|' || ifnull(harness_prompt_id, '') FROM prompts ORDER BY id`), []string{"make the pots|turn-1", "blue ones|"})
}

func TestCopiedPromptsAndMessagesAddNothing(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	turn := func(session string, after int64) []observation.Event {
		at := time.Unix(observationtest.Start+after, 0)
		return []observation.Event{
			{Kind: observation.Prompt, Session: session, Text: "make the pots", PromptID: "turn-1", At: at, Source: "UserPromptSubmit"},
			{Kind: observation.Message, Session: session, Text: "Done.", Role: "turn", PromptID: "turn-1", At: at, Source: "Stop"},
		}
	}
	for i, c := range []struct {
		session string
		after   int64
		added   int
	}{{"s1", 0, 2}, {"s2", 59, 0}, {"s3", 200, 2}} {
		if n := b.Imported(turn(c.session, c.after)...).Added; n != c.added {
			t.Errorf("%d: added %d, want %d", i, n, c.added)
		}
	}
}

func TestDigestTellsIntentFilesCommandsAndNextSteps(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt("/compact", "")
	b.Prompt("make the refund test pass", "")
	b.Call(observation.Call{ID: "1", Tool: "Bash", Action: observation.Shell, Command: "cd app && go  test ./refund", Failed: true, Error: "FAIL"}, "")
	b.Call(observation.Call{ID: "2", Tool: "Edit", Action: observation.Edit, Path: filepath.Join(b.Repo, "a.go")}, "")
	b.Call(observation.Call{ID: "3", Tool: "Edit", Action: observation.Edit, Path: "b.go", Failed: true, Error: "no match"}, "")
	b.Call(observation.Call{ID: "4", Tool: "Bash", Action: observation.Shell, Command: "go test ./refund"}, "")
	b.Call(observation.Call{ID: "5", Tool: "Bash", Action: observation.Shell, Command: "make lint", Failed: true, Error: "exit 2"}, "")
	b.Call(observation.Call{ID: "6", Tool: "Bash", Action: observation.Shell, Command: `git commit -m "round half up"`, Stdout: "[main 1a2b3c4] round half up\n 1 file changed, 2 insertions(+)"}, "")
	b.Record(observation.Event{Kind: observation.Message, Text: "All fixed. Next: the docs.", Role: "turn", Source: "Stop", TurnEnds: true})
	b.Want("digest", b.Query(`SELECT summary FROM sessions`), []string{
		`{"intent":"make the refund test pass","files_edited":["a.go"],` +
			`"commits":[{"hash":"1a2b3c4","message":"round half up"}],` +
			`"fixed":["go test ./refund"],"failing":["make lint"],` +
			`"next_steps":"All fixed. Next: the docs.","prompts":2,"actions":6,"source":"rules"}`,
	})
}

func TestASecretIsNeitherInTheStoreNorSearchable(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	secret := "ghp_" + strings.Repeat("Ab3d", 9)
	b.Prompt("use "+secret+" for the release", "")
	b.Call(observation.Call{ID: "1", Tool: "Bash", Action: observation.Shell, Command: "curl -H 'Authorization: Bearer " + secret + "' https://example.org"}, "")
	if rows := b.Query(`SELECT id FROM observations WHERE content LIKE ? OR metadata LIKE ?`, "%"+secret[:12]+"%", "%"+secret[:12]+"%"); len(rows) > 0 {
		t.Errorf("the secret is in rows %v", rows)
	}
	b.Want("marked", b.Query(`SELECT metadata ->> '$.redacted' FROM observations ORDER BY id`), []string{"1", "1"})
	hits, err := search.Search(t.Context(), b.Service, search.SearchArgs{Query: secret, Limit: 10})
	if err != nil || len(hits) != 0 {
		t.Errorf("found %v, %v", hits, err)
	}
}

func TestMarksGoToTheNewestSessionOrOneOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Prompt("work on the shop", "")
	mark := func(a capture.MarkArgs) string {
		a.Cwd = b.Repo
		id, err := capture.Mark(t.Context(), b.Service, a)
		if err != nil {
			t.Fatal(err)
		}
		return b.Query(`SELECT session_id || '|' || is_pinned FROM observations WHERE id = ?`, id)[0]
	}
	if got := mark(capture.MarkArgs{Text: "keep the old endpoint", Pin: true}); got != "s1|1" {
		t.Error(got)
	}
	b.Now.Add(25 * 60 * 60)
	if got := mark(capture.MarkArgs{Text: "another day"}); got != fmt.Sprintf("mark-%d|0", b.Now.Load()) {
		t.Error(got)
	}
	for _, a := range []capture.MarkArgs{{Text: " \n"}, {Text: "x", Session: "nobody"}, {Text: "x", Project: "nothing"}} {
		a.Cwd = b.Repo
		if _, err := capture.Mark(t.Context(), b.Service, a); err == nil {
			t.Errorf("%+v was accepted", a)
		}
	}
}

func TestPinningAnUnknownTargetChangesNothing(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	id := b.Prompt("pin me please", "").IDs[0]
	if _, err := capture.Pin(t.Context(), b.Service, capture.PinArgs{IDs: []int64{id, 999}, Cwd: b.Repo}); err == nil {
		t.Error("an unknown id was pinned")
	}
	b.Want("pinned", b.Query(`SELECT count(*) FROM observations WHERE is_pinned`), []string{"0"})
	b.Call(observation.Call{ID: "1", Tool: "Edit", Action: observation.Edit, Path: "a/b.go"}, "")
	for _, a := range []capture.PinArgs{{Session: "s1"}, {File: "./a/b.go"}, {IDs: []int64{id}}} {
		a.Cwd = b.Repo
		if n, err := capture.Pin(t.Context(), b.Service, a); err != nil || n == 0 {
			t.Errorf("%+v: %d, %v", a, n, err)
		}
	}
	b.Want("pinned", b.Query(`SELECT count(*) FROM observations WHERE is_pinned`), []string{"2"})
}
