package assist

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/likely"
	"cairn/internal/observation/observationtest"
	"cairn/internal/observation/sessionstart"
	"cairn/internal/oneline"
	"cairn/internal/project"
	"cairn/internal/store"
)

// TestALiveRowBelongsToThePromptThatWasStoredLast covers a clock that steps back and an import
// that adds older prompts in between. An imported row belongs to the latest prompt before it.
func TestALiveRowBelongsToThePromptThatWasStoredLast(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	run := func(id, command string) observation.Call {
		return observation.Call{ID: id, Tool: "Bash", Action: observation.Shell, Command: command}
	}
	b.Prompt("before the step", "")
	b.Now.Add(-1000)
	b.Prompt("after the step", "")
	b.Call(run("t1", "one"), "")
	b.Imported(observation.Event{Kind: observation.Prompt, Text: "long ago", LineID: "u1", At: time.Unix(observationtest.Start-5000, 0), Source: "UserPromptSubmit"})
	b.Call(run("t2", "two"), "")
	b.Call(run("t3", "three"), "p2") // the newest prompt without an id gets it
	b.Imported(
		observation.Event{Kind: observation.Tool, At: time.Unix(observationtest.Start-4000, 0), Calls: []observation.Call{run("t4", "four")}},
		observation.Event{Kind: observation.Tool, At: time.Unix(observationtest.Start+500, 0), Calls: []observation.Call{run("t5", "five")}},
	)
	if _, err := capture.Mark(t.Context(), b.Service, capture.MarkArgs{Text: "six", Session: "s1", Cwd: b.Repo}); err != nil {
		t.Fatal(err)
	}
	b.Want("parents", b.Query(`SELECT o.content, p.content FROM observations o JOIN prompts p ON p.id = o.prompt_id
WHERE o.obs_type IN ('command', 'marker') ORDER BY o.id`), []string{
		"one|after the step", "two|after the step", "three|after the step", "four|long ago", "five|before the step", "six|after the step",
	})
	b.Want("ids", b.Query(`SELECT content FROM prompts WHERE harness_prompt_id = 'p2'`), []string{"after the step"})
}

func TestHelpGoesWithThePromptThatWasAskedThoughTheClockSteppedBack(t *testing.T) {
	t.Parallel()
	b := observationtest.Helped(t)
	b.Fill(b.Repo, 300)
	b.Now.Add(5000)
	first := asks(b, "s1", "where do walrus and narwhal winter")
	wantIDs(b, "nothing known", first)
	b.Record(observation.Event{Kind: observation.Prompt, Session: "s2", Text: "feed the quagga and the okapi", Source: "UserPromptSubmit"})
	fed := b.Query(`SELECT max(id) FROM observations`)[0]
	b.Now.Add(-3000)
	told := asks(b, "s1", "did quagga and okapi eat")
	if got := fmt.Sprint(ids(told)); got != "["+fed+"]" {
		t.Errorf("told of %s, want row %s:\n%s", got, fed, told.Text)
	}
}

func TestFilesOfWhichAllRowsHaveExpiredAreNotLikely(t *testing.T) {
	t.Parallel()
	b := observationtest.Helped(t).With(func(c *observation.Config) {
		c.Retention = observation.Retention{observation.TypeEdit: 30, observation.TypeRead: 10}
	})
	b.Worked("s1", "ada/sails", "mend the sail", []string{"sail.go", "mast.go"}, []string{"rope.go"})
	b.Now.Add(20 * observation.SecondsPerDay)
	b.Worked("s2", "main", "scrape the keel", []string{"keel.go"}, []string{"mast.go"})
	b.Now.Add(5 * observation.SecondsPerDay)
	wantLikely(b, "reads are gone", likelyFiles(b, "ada/sails", "", 9), "sail.go", "mast.go", "keel.go")
	b.Now.Add(10 * observation.SecondsPerDay)
	wantLikely(b, "edits too", likelyFiles(b, "ada/sails", "", 9), "keel.go")
	told := asks(b, "s3", "the sail is torn again")
	if strings.Contains(told.Text, "sail.go") {
		t.Errorf("told of an expired file:\n%s", told.Text)
	}
}

// TestNobodyIsToldOfAProjectThatHasNoRow uses a project without a key. The missing key must not
// match any other project.
func TestNobodyIsToldOfAProjectThatHasNoRow(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Worked("s1", "HEAD", "work on it all day", []string{"in.go"}, nil)
	if files, err := likely.Files(t.Context(), b.Service, likely.Args{Branch: "HEAD", Prompt: "work on in.go", Limit: 9}); err != nil || len(files) > 0 {
		t.Errorf("%v %v", files, err)
	}
	told, err := sessionstart.BuildForProject(t.Context(), b.Service, project.Project{ID: "new"}, "startup", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range told.Items {
		if i.Section != ledger.SectionCross {
			t.Errorf("%+v in\n%s", i, told.Text)
		}
	}
}

// TestTheContextKeepsItsBoundsWhateverThingsAreCalled fills every section with the longest and
// strangest possible names.
func TestTheContextKeepsItsBoundsWhateverThingsAreCalled(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	strange := []string{"|", "`x`", "## Pinned", "\n## shop\n", "{", "\u202e", "é", "日本語", "\x1b[31m", " "}
	for i := range 60 {
		name := strings.Repeat(strange[i%len(strange)], 1+i*7%90)
		session := fmt.Sprint("s", i%7)
		b.Record(observation.Event{Kind: observation.Prompt, Session: session, Text: "do what " + name + " says now", Branch: "b/" + name, Source: "UserPromptSubmit"})
		b.Record(observation.Event{Kind: observation.Tool, Session: session, Calls: []observation.Call{{ID: fmt.Sprint("e", i), Tool: "Edit", Action: observation.Edit, Path: fmt.Sprint(name, "/", name, i, ".go")}}})
		b.Record(observation.Event{Kind: observation.Tool, Session: session, Calls: []observation.Call{{ID: fmt.Sprint("c", i), Tool: "Bash", Action: observation.Shell, Command: name + " run", Failed: true, Error: name}}})
		b.Record(observation.Event{Kind: observation.Message, Session: session, Text: "said " + name, Role: "turn", Source: "Stop", TurnEnds: true})
	}
	for source, limit := range map[string]int{"startup": 700, "compact": 1100} {
		told, err := sessionstart.BuildForProject(t.Context(), b.Service, b.Project("shop"), source, "b/|")
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
	b := observationtest.New(t)
	mall := b.Repository(filepath.Join(filepath.Dir(b.Repo), "mall"))
	b.Worked("s1", "ada/refunds", "make refunds exact", []string{"pay.go"}, nil)
	b.Record(observation.Event{Kind: observation.Prompt, Session: "m", Cwd: mall, Text: "open up", Source: "UserPromptSubmit"})
	err := b.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		return project.Merge(ctx, tx, "shop", "mall", observation.MoveRows)
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := likely.Files(t.Context(), b.Service, likely.Args{Project: b.Project("mall"), Branch: "ada/refunds", Limit: 9})
	if err != nil || len(files) != 1 || files[0].Score < 8*0.69 {
		t.Errorf("%+v %v", files, err)
	}
}
