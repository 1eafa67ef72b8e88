package observation

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCallsThatHooksToldWithoutIDsAreImportedOnce(t *testing.T) {
	t.Parallel()
	code := 1
	live := []Call{
		{Tool: "Shell", Action: Shell, Command: "make"},
		{Tool: "Shell", Action: Shell, Command: "make", Failed: true, ExitCode: &code, Error: "no rule"},
		{ID: "hooks-own", Tool: "Edit", Action: Edit, Path: "a.go"},
		{Tool: "Read", Action: Read, Path: "a.go"},
		{Tool: "web", Action: WebSearch, Query: "cone 6"},
	}
	told := []Event{
		tool("x1", Call{Tool: "Shell", Action: Shell, Command: "make"}),
		tool("x2", Call{Tool: "Shell", Action: Shell, Command: "make"}),
		tool("x3", Call{Tool: "Write", Action: Write, Path: "a.go"}),
		tool("x4", Call{Tool: "Read", Action: Read, Path: "a.go"}),
		tool("x5", Call{Tool: "web", Action: WebSearch, Query: "cone 6"}),
	}
	more := []Event{
		tool("y1", Call{Tool: "Shell", Action: Shell, Command: "make"}),
		tool("y2", Call{Tool: "Edit", Action: Edit, Path: "a.go"}),
		tool("y3", Call{Tool: "Edit", Action: Edit, Path: "b.go"}),
		tool("y4", Call{Tool: "web", Action: WebSearch, Query: "cone 7"}),
	}
	for _, m := range []Match{MatchCount, MatchText} {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for _, c := range live {
				b.call(c, "")
			}
			if n := b.matched(m, told...); n.Added != 0 || n.Known != len(told) {
				t.Errorf("what hooks told: %+v", n)
			}
			all := append(append([]Event{}, told...), more...)
			if n := b.matched(m, all...); n.Added != len(more) || n.Known != len(told) {
				t.Errorf("grown: %+v", n)
			}
			if n := b.matched(m, all...); n.Added != 0 {
				t.Errorf("again: %+v", n)
			}
			if n := b.matched(m, append(all, tool("z1", Call{Tool: "Shell", Action: Shell, Command: "make"}))...); n.Added != 1 {
				t.Errorf("grown again: %+v", n)
			}
			b.want("rows", b.query(`SELECT tool_use_id FROM observations WHERE tool_use_id > 'x' ORDER BY id`), []string{"y1", "y2", "y3", "y4", "z1"})
		})
	}
}

// An import that leaves out what came before a day must not take a later call
// for an earlier one that is stored.
func TestCallsAreCountedFromTheDayThatIsAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	run := func(id string, at int64) Event {
		e := tool(id, Call{Tool: "Shell", Action: Shell, Command: "make"})
		e.At, e.Match, e.Imported, e.Session, e.Cwd, e.Source = time.Unix(testStart+at, 0), MatchCount, true, "s1", b.repo, "PostToolUse"
		return e
	}
	b.matched(MatchCount, run("x1", 0))
	i := b.Importer(ImportOptions{Since: time.Unix(testStart+50, 0)})
	prepare := b.Preparer()
	for _, e := range []Event{run("x1", 0), run("x2", 100)} {
		p, err := prepare.Prepare(e)
		if err == nil {
			err = i.Add(t.Context(), p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n, err := i.EndFile(t.Context(), ImportedFile{Path: "/t.jsonl"}, true)
	if err != nil || n.Added != 1 || n.Outside != 1 {
		t.Errorf("%+v, %v", n, err)
	}
}

func TestSessionsAreCountedApart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.call(Call{Tool: "Shell", Action: Shell, Command: "make"}, "")
	other := tool("x1", Call{Tool: "Shell", Action: Shell, Command: "make"})
	other.Session = "s2"
	if n := b.matched(MatchCount, other); n.Added != 1 {
		t.Errorf("%+v", n)
	}
}

func TestReadsOfTranscriptsWithTimesFollowTheWindow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	read := func(id string, at int64) Event {
		e := tool(id, Call{Tool: "Read", Action: Read, Path: "a.go"})
		e.At = time.Unix(testStart+at, 0)
		return e
	}
	n := b.matched(MatchCount, read("r1", 0), read("r2", 200), read("r3", 301))
	if n.Added != 2 || n.Deduped != 1 {
		t.Errorf("%+v", n)
	}
	if n := b.matched(MatchCount, read("r1", 0), read("r2", 200), read("r3", 301)); n.Added != 0 {
		t.Errorf("again: %+v", n)
	}
	if n := b.matched(MatchText, read("z1", 9000), read("z2", 20_000)); n.Added != 0 {
		t.Errorf("without times: %+v", n)
	}
}

func TestWordsWithoutIDsAreRecognised(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("the pot is round. ", 200)
	words := func(kind EventKind, text, line string, at int64) Event {
		e := Event{Kind: kind, Text: text, LineID: line, At: time.Unix(testStart+at, 0), Source: "UserPromptSubmit"}
		if kind == Message {
			e.Source, e.Role = "Stop", "turn"
		}
		return e
	}
	tell := func(b bench) {
		b.prompt("go on", "g1")
		b.record(Event{Kind: Message, Text: "I look.\nIt is done.", Role: "turn", Source: "Stop", TurnEnds: true})
		b.prompt("go on", "g2")
		b.record(Event{Kind: Message, Text: "First.\n" + long, Role: "turn", Source: "Stop", TurnEnds: true})
	}
	for _, c := range []struct {
		match  Match
		off    int64 // by which the transcript's times are wrong
		events []Event
		added  int
	}{
		{MatchCount, 3, []Event{words(Prompt, "go on", "l1", 1), words(Message, "It is done.", "l2", 2), words(Prompt, "go on", "l3", 3), words(Message, long, "l4", 4)}, 0},
		{MatchCount, 100, []Event{words(Prompt, "go on", "l1", 1), words(Message, "It is done.", "l2", 2)}, 2},
		{MatchText, 9999, []Event{words(Prompt, "go on", "l1", 1), words(Message, "It is done.", "l2", 2), words(Prompt, "go on", "l3", 3), words(Message, long, "l4", 4)}, 0},
		{MatchText, 9999, []Event{words(Prompt, "go on", "l1", 1), words(Prompt, "go on", "l2", 2), words(Prompt, "go on", "l3", 3)}, 1},
		{MatchText, 0, []Event{words(Prompt, "go", "l1", 1), words(Message, "done.", "l2", 2), words(Message, "look.", "l3", 2)}, 3},
	} {
		b := newBench(t)
		tell(b)
		for i := range c.events {
			c.events[i].At = c.events[i].At.Add(time.Duration(c.off) * time.Second)
		}
		if n := b.matched(c.match, c.events...); n.Added != c.added {
			t.Errorf("%+v: %+v, want %d added", c, n, c.added)
		}
		if n := b.matched(c.match, c.events...); n.Added != 0 {
			t.Errorf("%+v, again: %+v", c, n)
		}
	}
}
