package capture_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/observationtest"
)

func TestCallsThatHooksToldWithoutIDsAreImportedOnce(t *testing.T) {
	t.Parallel()
	code := 1
	live := []observation.Call{
		{Tool: "Shell", Action: observation.Shell, Command: "make"},
		{Tool: "Shell", Action: observation.Shell, Command: "make", Failed: true, ExitCode: &code, Error: "no rule"},
		{ID: "hooks-own", Tool: "Edit", Action: observation.Edit, Path: "a.go"},
		{Tool: "Read", Action: observation.Read, Path: "a.go"},
		{Tool: "web", Action: observation.WebSearch, Query: "cone 6"},
	}
	told := []observation.Event{
		observationtest.Tool("x1", observation.Call{Tool: "Shell", Action: observation.Shell, Command: "make"}),
		observationtest.Tool("x2", observation.Call{Tool: "Shell", Action: observation.Shell, Command: "make"}),
		observationtest.Tool("x3", observation.Call{Tool: "Write", Action: observation.Write, Path: "a.go"}),
		observationtest.Tool("x4", observation.Call{Tool: "Read", Action: observation.Read, Path: "a.go"}),
		observationtest.Tool("x5", observation.Call{Tool: "web", Action: observation.WebSearch, Query: "cone 6"}),
	}
	more := []observation.Event{
		observationtest.Tool("y1", observation.Call{Tool: "Shell", Action: observation.Shell, Command: "make"}),
		observationtest.Tool("y2", observation.Call{Tool: "Edit", Action: observation.Edit, Path: "a.go"}),
		observationtest.Tool("y3", observation.Call{Tool: "Edit", Action: observation.Edit, Path: "b.go"}),
		observationtest.Tool("y4", observation.Call{Tool: "web", Action: observation.WebSearch, Query: "cone 7"}),
	}
	for _, m := range []observation.Match{observation.MatchCount, observation.MatchText} {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			t.Parallel()
			b := observationtest.New(t)
			for _, c := range live {
				b.Call(c, "")
			}
			if n := b.Matched(m, told...); n.Added != 0 || n.Known != len(told) {
				t.Errorf("what hooks told: %+v", n)
			}
			all := append(append([]observation.Event{}, told...), more...)
			if n := b.Matched(m, all...); n.Added != len(more) || n.Known != len(told) {
				t.Errorf("grown: %+v", n)
			}
			if n := b.Matched(m, all...); n.Added != 0 {
				t.Errorf("again: %+v", n)
			}
			if n := b.Matched(m, append(all, observationtest.Tool("z1", observation.Call{Tool: "Shell", Action: observation.Shell, Command: "make"}))...); n.Added != 1 {
				t.Errorf("grown again: %+v", n)
			}
			b.Want("rows", b.Query(`SELECT tool_use_id FROM observations WHERE tool_use_id > 'x' ORDER BY id`), []string{"y1", "y2", "y3", "y4", "z1"})
		})
	}
}

// An import that skips events before a day must not confuse a later call with an earlier, stored
// one.
func TestCallsAreCountedFromTheDayThatIsAskedFor(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	run := func(id string, at int64) observation.Event {
		e := observationtest.Tool(id, observation.Call{Tool: "Shell", Action: observation.Shell, Command: "make"})
		e.At, e.Match, e.Imported, e.Session, e.Cwd, e.Source = time.Unix(observationtest.Start+at, 0), observation.MatchCount, true, "s1", b.Repo, "PostToolUse"
		return e
	}
	b.Matched(observation.MatchCount, run("x1", 0))
	i := capture.NewImporter(b.Service, capture.ImportOptions{Since: time.Unix(observationtest.Start+50, 0)})
	prepare := capture.NewPreparer(b.Service)
	for _, e := range []observation.Event{run("x1", 0), run("x2", 100)} {
		p, err := prepare.Prepare(e)
		if err == nil {
			err = i.Add(t.Context(), p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n, err := i.EndFile(t.Context(), capture.ImportedFile{Path: "/t.jsonl"}, true)
	if err != nil || n.Added != 1 || n.Outside != 1 {
		t.Errorf("%+v, %v", n, err)
	}
}

func TestSessionsAreCountedApart(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Call(observation.Call{Tool: "Shell", Action: observation.Shell, Command: "make"}, "")
	other := observationtest.Tool("x1", observation.Call{Tool: "Shell", Action: observation.Shell, Command: "make"})
	other.Session = "s2"
	if n := b.Matched(observation.MatchCount, other); n.Added != 1 {
		t.Errorf("%+v", n)
	}
}

func TestReadsOfTranscriptsWithTimesFollowTheWindow(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	read := func(id string, at int64) observation.Event {
		e := observationtest.Tool(id, observation.Call{Tool: "Read", Action: observation.Read, Path: "a.go"})
		e.At = time.Unix(observationtest.Start+at, 0)
		return e
	}
	n := b.Matched(observation.MatchCount, read("r1", 0), read("r2", 200), read("r3", 301))
	if n.Added != 2 || n.Deduped != 1 {
		t.Errorf("%+v", n)
	}
	if n := b.Matched(observation.MatchCount, read("r1", 0), read("r2", 200), read("r3", 301)); n.Added != 0 {
		t.Errorf("again: %+v", n)
	}
	if n := b.Matched(observation.MatchText, read("z1", 9000), read("z2", 20_000)); n.Added != 0 {
		t.Errorf("without times: %+v", n)
	}
}

func TestWordsWithoutIDsAreRecognised(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("the pot is round. ", 200)
	words := func(kind observation.EventKind, text, line string, at int64) observation.Event {
		e := observation.Event{Kind: kind, Text: text, LineID: line, At: time.Unix(observationtest.Start+at, 0), Source: "UserPromptSubmit"}
		if kind == observation.Message {
			e.Source, e.Role = "Stop", "turn"
		}
		return e
	}
	tell := func(b observationtest.Bench) {
		b.Prompt("go on", "g1")
		b.Record(observation.Event{Kind: observation.Message, Text: "I look.\nIt is done.", Role: "turn", Source: "Stop", TurnEnds: true})
		b.Prompt("go on", "g2")
		b.Record(observation.Event{Kind: observation.Message, Text: "First.\n" + long, Role: "turn", Source: "Stop", TurnEnds: true})
	}
	for _, c := range []struct {
		match  observation.Match
		off    int64 // error of the transcript's times in seconds
		events []observation.Event
		added  int
	}{
		{observation.MatchCount, 3, []observation.Event{words(observation.Prompt, "go on", "l1", 1), words(observation.Message, "It is done.", "l2", 2), words(observation.Prompt, "go on", "l3", 3), words(observation.Message, long, "l4", 4)}, 0},
		{observation.MatchCount, 100, []observation.Event{words(observation.Prompt, "go on", "l1", 1), words(observation.Message, "It is done.", "l2", 2)}, 2},
		{observation.MatchText, 9999, []observation.Event{words(observation.Prompt, "go on", "l1", 1), words(observation.Message, "It is done.", "l2", 2), words(observation.Prompt, "go on", "l3", 3), words(observation.Message, long, "l4", 4)}, 0},
		{observation.MatchText, 9999, []observation.Event{words(observation.Prompt, "go on", "l1", 1), words(observation.Prompt, "go on", "l2", 2), words(observation.Prompt, "go on", "l3", 3)}, 1},
		{observation.MatchText, 0, []observation.Event{words(observation.Prompt, "go", "l1", 1), words(observation.Message, "done.", "l2", 2), words(observation.Message, "look.", "l3", 2)}, 3},
	} {
		b := observationtest.New(t)
		tell(b)
		for i := range c.events {
			c.events[i].At = c.events[i].At.Add(time.Duration(c.off) * time.Second)
		}
		if n := b.Matched(c.match, c.events...); n.Added != c.added {
			t.Errorf("%+v: %+v, want %d added", c, n, c.added)
		}
		if n := b.Matched(c.match, c.events...); n.Added != 0 {
			t.Errorf("%+v, again: %+v", c, n)
		}
	}
}
