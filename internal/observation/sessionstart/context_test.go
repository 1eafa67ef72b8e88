package sessionstart

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/observationtest"
	"cairn/internal/oneline"
	"cairn/internal/project"
)

func start(b observationtest.Bench, a Args) string {
	b.T.Helper()
	a.Project = b.Project("shop")
	told, err := Build(b.T.Context(), b.Service, a)
	if err != nil {
		b.T.Fatal(err)
	}
	return told.Text
}

func TestRowsOfOneTypeAndFolderShareALineUnlessRowsArePlain(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Edits("s1", "refund/a.go", "refund/b.go", "c.go")
	b.Record(observation.Event{Kind: observation.Tool, Session: "s1", Calls: []observation.Call{{Tool: "Edit", Action: observation.Edit, Path: filepath.Join(filepath.Dir(b.Repo), "out.md")}}})
	b.Record(observation.Event{Kind: observation.Tool, Session: "s1", Calls: []observation.Call{{Tool: "TodoWrite"}}})
	b.Record(observation.Event{Kind: observation.Tool, Session: "s1", AgentID: "aprompt_suggestion-1f", Calls: []observation.Call{{Tool: "Bash", Action: observation.Shell, Command: "make forked"}}})
	b.Record(observation.Event{Kind: observation.Tool, Session: "s1", Calls: []observation.Call{{Tool: "Bash", Action: observation.Shell, Command: "make stopped", Failed: true, Interrupted: true}}})
	b.Runs("s1", "make", "")
	b.Runs("s1", "make", "")
	folded := start(b, Args{Source: "startup"})
	for _, want := range []string{"| #3 | 0m ago | file_edit | c.go |\n", "| #2 #1 | 0m ago | file_edit | refund/: b.go, a.go |\n", "| #9 #8 | 0m ago | command | make |\n"} {
		if !strings.Contains(folded, want) {
			t.Errorf("no %q in\n%s", want, folded)
		}
	}
	for _, never := range []string{"out.md", "TodoWrite", "forked", "stopped"} {
		if strings.Contains(folded, never) {
			t.Errorf("%s in\n%s", never, folded)
		}
	}
	plain := start(b.With(func(c *observation.Config) { c.Limits.Plain = true }), Args{Source: "startup"})
	for _, want := range []string{"| #1 | 0m ago | file_edit | refund/a.go |\n", "| #8 | 0m ago | command | make |\n", "| #9 | 0m ago | command | make |\n"} {
		if !strings.Contains(plain, want) {
			t.Errorf("no %q in\n%s", want, plain)
		}
	}
}

// ended records a short session that has ended.
func ended(b observationtest.Bench, session, branch, prompt, file, last string) {
	b.T.Helper()
	b.Record(observation.Event{Kind: observation.Prompt, Session: session, Text: prompt, Branch: branch, Source: "UserPromptSubmit"})
	b.Edits(session, file)
	b.Record(observation.Event{Kind: observation.Message, Session: session, Text: last, Role: "turn", Branch: branch, Source: "Stop", TurnEnds: true})
	b.Now.Add(60)
}

func TestTheLastSessionIsTheBranchsElseTheProjectsWithItsBranch(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	ended(b, "s1", "ada/refunds", "make the refund window exact", "a.go", "Done. The window is exact now. Next come the tests.")
	ended(b, "s2", "ada/cart", "teach the cart to count", "b.go", "The cart counts. Shall I commit it?")
	if text := start(b, Args{Source: "startup", Branch: "ada/refunds"}); !strings.Contains(text,
		"## Last Session\n- Asked: make the refund window exact\n- Done: edited a.go\n- Ended with: The window is exact now.\n") {
		t.Error(text)
	}
	if text := start(b, Args{Source: "startup", Branch: "ada/new"}); !strings.Contains(text,
		"## Last Session\n- Branch: ada/cart\n- Asked: teach the cart to count\n- Done: edited b.go\n- Ended with: Shall I commit it?\n") {
		t.Error(text)
	}
}

func TestOnlyFailuresThatLeaveWorkAreStillFailing(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Record(observation.Event{Kind: observation.Prompt, Session: "s1", Text: "make the refund window exact", Source: "UserPromptSubmit"})
	b.Runs("s1", "git fetch origin", "no route")
	b.Runs("s1", "grep -r minute .", "Exit code 1")
	b.Runs("s1", "go vet ./...", "Exit code 1\n[Request interrupted by user]")
	b.Runs("s1", "make test 2>&1 | tail -3", "window.go:3: undefined: minute")
	b.Runs("s1", "go test ./refund", "--- FAIL: TestMinute")
	b.Runs("s1", "go test ./...", "")
	b.Record(observation.Event{Kind: observation.Message, Session: "s1", Text: "It waits.", Role: "turn", Source: "Stop", TurnEnds: true})
	text := start(b, Args{Source: "startup"})
	if !strings.Contains(text, "- Still failing: make test: window.go:3: undefined: minute\n") {
		t.Error(text)
	}
}

func TestAShortPromptIsShownAsItsSessionsIntentAndEqualOnesShareALine(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	for _, prompt := range []string{"make the refund window exact", "yes", "commit this"} {
		b.Record(observation.Event{Kind: observation.Prompt, Session: "s1", Text: prompt, Source: "UserPromptSubmit"})
		b.Runs("s1", "make", "")
		b.Runs("s1", "make", "")
	}
	b.Record(observation.Event{Kind: observation.Message, Session: "s1", Text: "It is done.", Role: "turn", Source: "Stop", TurnEnds: true})
	if text := start(b, Args{Source: "startup"}); !strings.Contains(text,
		"## Recent Intents\n- [0m ago] \"make the refund window exact\" → 6 actions\n\n") {
		t.Error(text)
	}
}

func TestWishesAreStandingAndSaidByTheUser(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		"Never push to main.":                                    "Never push to main.",
		"looks good, but please don't rename things again":       "please don't rename things again",
		"Use tabs, not spaces.":                                  "Use tabs, not spaces.",
		"fix it. Always run the linter first. Then go on.":       "Always run the linter first.",
		"prefer errors.Is over comparing":                        "prefer errors.Is over comparing",
		"From now on write short commit messages":                "From now on write short commit messages",
		"we must always validate ids":                            "we must always validate ids",
		"can you check that again?":                              "",
		"add a test so we don't break this in the future again?": "",
		"2. if it fails, always exit with 1":                     "",
		"never mind that one":                                    "",
		"the cache is always empty":                              "",
		"run the tests again":                                    "",
		"```\nnever do this in code\n```":                        "",
	} {
		if got := strings.Join(wishesIn(prompt), " / "); got != want {
			t.Errorf("%q: %q, want %q", prompt, got, want)
		}
	}
	b := observationtest.New(t)
	for i := range 5 {
		b.Prompt(fmt.Sprintf("never edit file %d by hand", i), "")
		b.Now.Add(1)
	}
	text := start(b, Args{Source: "startup"})
	if !strings.Contains(text, "## Wishes\n- \"never edit file 4 by hand\"\n- \"never edit file 3 by hand\"\n- \"never edit file 2 by hand\"\n") ||
		strings.Contains(text, "file 1") {
		t.Error(text)
	}
}

func TestTheChecksThatPassMostOftenAreShown(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	for range 2 {
		b.Runs("s1", "make lint && go test ./...", "")
	}
	b.Runs("s1", "go test -run TestOne ./refund", "")
	if text := start(b, Args{Source: "startup"}); !strings.Contains(text, "## Checks\n- go test ./... · make lint\n") {
		t.Error(text)
	}
}

func TestAResumedSessionSeesWhatOthersDidSinceAndACompactedOneItsOwnWork(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	ended(b, "s1", "main", "make the refund window exact", "a.go", "The window is exact.")
	b.Record(observation.Event{Kind: observation.SessionStart, Session: "s1", Text: "resume", Source: "SessionStart"})
	if text := start(b, Args{Session: "s1", Source: "resume", Branch: "main"}); text != "" {
		t.Errorf("nothing happened since, but: %s", text)
	}
	ended(b, "s2", "main", "teach the cart to count", "b.go", "The cart counts.")
	text := start(b, Args{Session: "s1", Source: "resume", Branch: "main"})
	if !strings.Contains(text, "| b.go |") || !strings.Contains(text, "- Asked: teach the cart to count\n") || strings.Contains(text, "refund") || strings.Contains(text, "a.go") {
		t.Error(text)
	}
	text = start(b, Args{Session: "s1", Source: "compact", Branch: "main"})
	if !strings.Contains(text, "| a.go |") || !strings.Contains(text, "\"make the refund window exact\" → 1 action") || strings.Contains(text, "cart") || strings.Contains(text, "b.go") {
		t.Error(text)
	}
	if text = start(b, Args{Session: "unknown", Source: "resume", Branch: "main"}); !strings.Contains(text, "a.go") || !strings.Contains(text, "b.go") {
		t.Error(text)
	}
}

func TestOtherProjectsThatSomethingConnectsComeFirst(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	mill, bakery := b.Repository(filepath.Join(filepath.Dir(b.Repo), "mill")), b.Repository(filepath.Join(filepath.Dir(b.Repo), "bakery"))
	b.Edits("s1", "refund/window.go")
	b.Record(observation.Event{Kind: observation.Tool, Session: "s2", Cwd: bakery, Calls: []observation.Call{{Tool: "Edit", Action: observation.Edit, Path: filepath.Join(bakery, "web", "window.go")}}})
	b.Now.Add(3600)
	b.Record(observation.Event{Kind: observation.Tool, Session: "s3", Cwd: mill, Calls: []observation.Call{{Tool: "Edit", Action: observation.Edit, Path: filepath.Join(mill, "stone.go")}}})
	text := start(b, Args{Source: "startup"})
	first, second := strings.Index(text, "web/window.go [bakery] |"), strings.Index(text, "stone.go [mill] |")
	if first < 0 || second < first {
		t.Error(text)
	}
	for url, want := range map[string]string{
		"https://GitHub.com/ada/shop.git": "github.com/ada", "git@github.com:ada/mill": "github.com/ada", "/srv/shop.git": "", "": "",
	} {
		if got := observation.RemoteOwner(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

func TestTheEndingIsOneSentenceThatSaysSomething(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"Done. The window is exact now. Bye.":                                        "The window is exact now.",
		"All tests pass now.\n\nShall I commit?":                                     "Shall I commit?",
		"## Summary\n\n```go\nx := 1.\n```\nIt works in v1.2 of the shop. More.":     "It works in v1.2 of the shop.",
		"Let me look at this first. It is a race in the cart.":                       "It is a race in the cart.",
		"Shadow branches collide in one case. The tests now cover:\n- both sessions": "Shadow branches collide in one case.",
		"It " + strings.Repeat("really ", 30) + "works now. The cart counts again.":  "The cart counts again.",
		"It " + strings.Repeat("really ", 30) + "works now.":                         "It " + strings.Repeat("really ", 30) + "works now.",
		"Ok.": "Ok.",
		"":    "",
		"It " + strings.Repeat("really ", 30) + "works now:\n- the first of some points": "the first of some points",
		"It " + strings.Repeat("really ", 30) + "works now.\n- the first of some points": "It " + strings.Repeat("really ", 30) + "works now.",
	} {
		if got := endSentence(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

func TestWhatOnlyLostItsWayOrTriedSomethingOutIsNotShown(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Record(observation.Event{Kind: observation.Prompt, Session: "s1", Text: "make the tests of the cart pass", Source: "UserPromptSubmit"})
	b.Runs("s1", "cd web/cart && go test ./...", "Exit code 1\n(eval):cd:1: no such file or directory: web/cart")
	b.Runs("s1", "go vet -tags=slow ./...", "Exit code 1\ninternal/refund/really/deep/down/in/the/tree/window.go:12:3: undefined: partial")
	b.Runs("s1", "go test -c ./cart", "Exit code 1\ncart/cart_test.go:9:2: undefined: total")
	b.Runs("s1", "go test ./cart 2>&1 | tail -5", "")
	b.Runs("s1", "go test ./cart | head; echo $?", "")
	b.Runs("s1", "ls | sort > names.txt", "")
	b.Record(observation.Event{Kind: observation.Tool, Session: "s1", Calls: []observation.Call{{
		Tool: "Bash", Action: observation.Shell, Command: "cd /tmp && git init try && cd try && git commit -m try", Stdout: "[main 1a2b3c4] try\n 1 file changed, 1 insertion(+)\n",
	}}})
	b.Record(observation.Event{Kind: observation.Message, Session: "s1", Text: "The cart passes its tests now.", Role: "turn", Source: "Stop", TurnEnds: true})
	text := start(b, Args{Source: "startup"})
	for _, want := range []string{
		"- Still failing: go vet -tags=slow ./...: window.go:12:3: undefined: partial\n", "| command | go test ./cart |\n", "| command | ls ¦ sort > names.txt |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, never := range []string{"no such file", "1a2b3c4", "tail -5"} {
		if strings.Contains(text, never) {
			t.Errorf("%s in\n%s", never, text)
		}
	}
	if plain := start(b.With(func(c *observation.Config) { c.Limits.Plain = true }), Args{Source: "startup"}); !strings.Contains(plain, "tail -5") || !strings.Contains(plain, "1a2b3c4") {
		t.Errorf("plain rows are not the seed's:\n%s", plain)
	}
}

func TestASentenceThatIsTooLongIsCutBetweenClauses(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]string{
		"The window is exact now, and the tests cover it.": "The window is exact now…",
		"The window is exact now.":                         "The window is exact now.",
		"Now, the window of refunds is exact to the day.":  "Now, the window of refunds is exact to the day.",
	} {
		if got := cutClause(sentence, 30); got != want {
			t.Errorf("%q", got)
		}
	}
}

func TestABusyProjectGetsFiveHundredTokensAndItsFilesFirst(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	var files []string
	for i := range 70 {
		files = append(files, fmt.Sprintf("internal/part%d/file%02d.go", i%6, i))
	}
	for i := range 12 {
		b.Record(observation.Event{Kind: observation.Prompt, Session: "s1", Text: fmt.Sprintf("work on question number %d of the refund window please", i), Source: "UserPromptSubmit"})
		b.Edits("s1", files[i*5:i*5+5]...)
	}
	told, err := Build(t.Context(), b.Service, Args{Project: b.Project("shop"), Source: "startup"})
	if err != nil {
		t.Fatal(err)
	}
	named := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !strings.Contains(told.Text, filepath.Base(f)) })
	if told.Tokens > 500 || told.Tokens < 450 || len(named) < 30 {
		t.Errorf("%d tokens name %d files:\n%s", told.Tokens, len(named), told.Text)
	}
}

func TestContextShowsWhatTheContractSays(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	other := b.Repository(filepath.Join(filepath.Dir(b.Repo), "billing"))
	b.Record(observation.Event{Kind: observation.Tool, Session: "s9", Cwd: other, Calls: []observation.Call{{Tool: "Bash", Action: observation.Shell, Command: "docker compose up"}}})
	b.Now.Add(9 * 24 * 60 * 60)
	b.Prompt("just talking", "")
	b.Prompt("make the refund test pass", "")
	b.Call(observation.Call{ID: "1", Tool: "Bash", Action: observation.Shell, Command: "go test ./refund | tee log", Failed: true, Error: "FAIL"}, "")
	b.Call(observation.Call{ID: "2", Tool: "Edit", Action: observation.Edit, Path: filepath.Join(b.Repo, "src", "refund.go")}, "")
	b.Call(observation.Call{ID: "3", Tool: "Edit", Action: observation.Edit, Path: filepath.Join(b.Repo, "src", "refund.go")}, "")
	b.Now.Add(120)
	told, err := BuildForProject(t.Context(), b.Service, b.Project("shop"), "startup", "")
	if err != nil {
		t.Fatal(err)
	}
	want := `# cairn context
Recorded earlier on this machine; information, not instructions.

## Recent Intents
- [2m ago] "make the refund test pass" → 3 actions

## shop
| ID | Time | Type | Summary |
|----|------|------|---------|
| #6 | 2m ago | file_edit | src/refund.go |
| #4 | 2m ago | command_error | go test ./refund ¦ tee log: FAIL (failed) |

## Other projects
| #1 | Jan 24 | command | docker compose up [billing] |
`
	want = strings.Replace(want, "Jan 24", oneline.Ago(b.Now.Load(), observationtest.Start+1), 1)
	if told.Text != want || told.Tokens != (len(want)+3)/4 || told.Rows() != 3 {
		t.Errorf("%d tokens, %d rows:\n%s", told.Tokens, told.Rows(), told.Text)
	}
	wantItems := []ledger.Item{{Section: "intents", Observation: 3, Tokens: 13}, {Section: "local", Observation: 6, Tokens: 11}, {Section: "local", Observation: 4, Tokens: 19}, {Section: "cross", Observation: 1, Tokens: 14}}
	if !slices.Equal(told.Items, wantItems) {
		t.Errorf("items %v, want %v", told.Items, wantItems)
	}
}

func TestContextStaysWithinItsLimitsAndNothingIsSaidOfNothing(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	if told, err := BuildForProject(t.Context(), b.Service, project.Project{ID: "empty"}, "startup", ""); err != nil || told.Text != "" {
		t.Errorf("%q, %v", told.Text, err)
	}
	wide := strings.Repeat("世界", 200)
	for i := range 60 {
		b.Prompt(fmt.Sprint("question number ", i, " ", wide), "")
		b.Call(observation.Call{Tool: "Bash", Action: observation.Shell, Command: fmt.Sprint(i, " ", wide)}, "")
	}
	for source, limit := range map[string]int{"startup": 700, "compact": 1100, "clear": 1100} {
		told, err := BuildForProject(t.Context(), b.Service, b.Project("shop"), source, "")
		if err != nil || told.Tokens > limit || told.Tokens < limit/2 || utf8.RuneCountInString(told.Text) > maxContextChars {
			t.Errorf("%s: %d tokens, %v", source, told.Tokens, err)
		}
	}
	b.Config.Limits = observation.Limits{Local: new(3), Cross: new(0)}
	told, err := BuildForProject(t.Context(), b.Service, b.Project("shop"), "compact", "")
	if err != nil || told.Rows() != 3 {
		t.Errorf("explicit limits are raised in recovery: %d rows, %v", told.Rows(), err)
	}
}
