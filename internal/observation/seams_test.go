package observation

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/oneline"
	"cairn/internal/project"
	"cairn/internal/store"
)

// TestALiveRowBelongsToThePromptThatWasStoredLast also when the clock steps back,
// and when an import brings older prompts meanwhile. An imported row belongs to
// the latest prompt before it.
func TestALiveRowBelongsToThePromptThatWasStoredLast(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	run := func(id, command string) Call { return Call{ID: id, Tool: "Bash", Action: Shell, Command: command} }
	b.prompt("before the step", "")
	b.now.Add(-1000)
	b.prompt("after the step", "")
	b.call(run("t1", "one"), "")
	b.imported(Event{Kind: Prompt, Text: "long ago", LineID: "u1", At: time.Unix(testStart-5000, 0), Source: "UserPromptSubmit"})
	b.call(run("t2", "two"), "")
	b.call(run("t3", "three"), "p2") // the newest without an id takes it
	b.imported(
		Event{Kind: Tool, At: time.Unix(testStart-4000, 0), Calls: []Call{run("t4", "four")}},
		Event{Kind: Tool, At: time.Unix(testStart+500, 0), Calls: []Call{run("t5", "five")}},
	)
	if _, err := b.Mark(t.Context(), MarkArgs{Text: "six", Session: "s1", Cwd: b.repo}); err != nil {
		t.Fatal(err)
	}
	b.want("parents", b.query(`SELECT o.content, p.content FROM observations o JOIN prompts p ON p.id = o.prompt_id
WHERE o.obs_type IN ('command', 'marker') ORDER BY o.id`), []string{
		"one|after the step", "two|after the step", "three|after the step", "four|long ago", "five|before the step", "six|after the step",
	})
	b.want("ids", b.query(`SELECT content FROM prompts WHERE harness_prompt_id = 'p2'`), []string{"after the step"})
}

func TestHelpGoesWithThePromptThatWasAskedThoughTheClockSteppedBack(t *testing.T) {
	t.Parallel()
	b := helped(t)
	b.fill(b.repo, 300)
	b.now.Add(5000)
	first := b.asks("s1", "where do walrus and narwhal winter")
	b.wantIDs("nothing known", first)
	b.record(Event{Kind: Prompt, Session: "s2", Text: "feed the quagga and the okapi", Source: "UserPromptSubmit"})
	fed := b.query(`SELECT max(id) FROM observations`)[0]
	b.now.Add(-3000)
	told := b.asks("s1", "did quagga and okapi eat")
	if got := fmt.Sprint(ids(told)); got != "["+fed+"]" {
		t.Errorf("told of %s, want row %s:\n%s", got, fed, told.Text)
	}
}

func TestFilesOfWhichAllRowsHaveExpiredAreNotLikely(t *testing.T) {
	t.Parallel()
	b := helped(t).with(func(c *Config) { c.Retention = Retention{typeEdit: 30, typeRead: 10} })
	b.worked("s1", "ada/sails", "mend the sail", []string{"sail.go", "mast.go"}, []string{"rope.go"})
	b.now.Add(20 * secondsPerDay)
	b.worked("s2", "main", "scrape the keel", []string{"keel.go"}, []string{"mast.go"})
	b.now.Add(5 * secondsPerDay)
	b.wantLikely("reads are gone", b.likely("ada/sails", "", 9), "sail.go", "mast.go", "keel.go")
	b.now.Add(10 * secondsPerDay)
	b.wantLikely("edits too", b.likely("ada/sails", "", 9), "keel.go")
	told := b.asks("s3", "the sail is torn again")
	if strings.Contains(told.Text, "sail.go") {
		t.Errorf("told of an expired file:\n%s", told.Text)
	}
}

// TestNobodyIsToldOfAProjectThatHasNoRow asks for a project without a key, which
// must not stand for any other.
func TestNobodyIsToldOfAProjectThatHasNoRow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.worked("s1", "HEAD", "work on it all day", []string{"in.go"}, nil)
	if files, err := b.Likely(t.Context(), LikelyArgs{Branch: "HEAD", Prompt: "work on in.go", Limit: 9}); err != nil || len(files) > 0 {
		t.Errorf("%v %v", files, err)
	}
	told, err := b.Context(t.Context(), project.Project{ID: "new"}, "startup", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range told.Items {
		if i.Section != sectionCross {
			t.Errorf("%+v in\n%s", i, told.Text)
		}
	}
}

// TestTheContextKeepsItsBoundsWhateverThingsAreCalled fills every section with the
// longest and strangest names that can be.
func TestTheContextKeepsItsBoundsWhateverThingsAreCalled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	strange := []string{"|", "`x`", "## Pinned", "\n## shop\n", "{", "\u202e", "é", "日本語", "\x1b[31m", " "}
	for i := range 60 {
		name := strings.Repeat(strange[i%len(strange)], 1+i*7%90)
		session := fmt.Sprint("s", i%7)
		b.record(Event{Kind: Prompt, Session: session, Text: "do what " + name + " says now", Branch: "b/" + name, Source: "UserPromptSubmit"})
		b.record(Event{Kind: Tool, Session: session, Calls: []Call{{ID: fmt.Sprint("e", i), Tool: "Edit", Action: Edit, Path: fmt.Sprint(name, "/", name, i, ".go")}}})
		b.record(Event{Kind: Tool, Session: session, Calls: []Call{{ID: fmt.Sprint("c", i), Tool: "Bash", Action: Shell, Command: name + " run", Failed: true, Error: name}}})
		b.record(Event{Kind: Message, Session: session, Text: "said " + name, Role: "turn", Source: "Stop", TurnEnds: true})
	}
	for source, limit := range map[string]int{"startup": 700, "compact": 1100} {
		told, err := b.Context(t.Context(), b.project("shop"), source, "b/|")
		if err != nil {
			t.Fatal(err)
		}
		if told.Tokens > limit || told.Tokens != oneline.Tokens(told.Text) || len([]rune(told.Text)) > 9500 || !strings.HasPrefix(told.Text, "# cairn context\n") {
			t.Errorf("%s: %d tokens, %d characters", source, told.Tokens, len([]rune(told.Text)))
		}
		sum := 0
		var heads []string
		for _, i := range told.Items {
			sum += i.Tokens
		}
		if sum > told.Tokens || sum < told.Tokens*3/4 {
			t.Errorf("%s: items of %d tokens in a text of %d", source, sum, told.Tokens)
		}
		for line := range strings.Lines(told.Text) {
			if strings.HasPrefix(line, "#") {
				heads = append(heads, strings.Trim(line, "# \n"))
			}
		}
		order := []string{"cairn context", "This Session", "Last Session", "Recent Intents", "Checks", "shop", "Likely Files"}
		if at := slices.Compact(heads); !slices.Equal(at, slices.DeleteFunc(order, func(s string) bool { return !slices.Contains(heads, s) })) {
			t.Errorf("%s: sections %q", source, heads)
		}
	}
}

// TestBranchesFollowTheirSessionIntoAnotherProject merges projects.
func TestBranchesFollowTheirSessionIntoAnotherProject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mall := b.repository(filepath.Join(filepath.Dir(b.repo), "mall"))
	b.worked("s1", "ada/refunds", "make refunds exact", []string{"pay.go"}, nil)
	b.record(Event{Kind: Prompt, Session: "m", Cwd: mall, Text: "open up", Source: "UserPromptSubmit"})
	err := b.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		return project.Merge(ctx, tx, "shop", "mall", MoveRows)
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := b.Likely(t.Context(), LikelyArgs{Project: b.project("mall"), Branch: "ada/refunds", Limit: 9})
	if err != nil || len(files) != 1 || files[0].Score < 8*0.69 {
		t.Errorf("%+v %v", files, err)
	}
}
