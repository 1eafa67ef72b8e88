package continuity

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/search"
	"cairn/internal/observation/sessionstart"
	"cairn/internal/redact"
)

func runOn(t *testing.T, o Options, authors ...*author) Report {
	t.Helper()
	o.Dir = save(t, authors...)
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// at returns a session's result at a moment.
func (r Report) at(t *testing.T, session, when string) Moment {
	t.Helper()
	m := r.session(t, session).moment(when)
	if m == nil {
		t.Fatalf("session %s was not asked at the %s", session, when)
	}
	return *m
}

func (r Report) session(t *testing.T, id string) *Session {
	t.Helper()
	i := slices.IndexFunc(r.Sessions, func(s Session) bool { return s.ID == id })
	if i < 0 {
		t.Fatalf("session %s was not asked", id)
	}
	return &r.Sessions[i]
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestTheTruthLeavesOutWhatAForkCopied(t *testing.T) {
	t.Parallel()
	first := newAuthor(t, "one", "/home/ann/app", noon(1)).prompt("rename the flag").edit("/home/ann/app/flag.go")
	second := first.fork("two").wait(time.Hour).prompt("now the help").edit("/home/ann/app/help.go")
	r := runOn(t, Options{}, first, second)
	m := r.at(t, "two", atStart)
	equal(t, "edited", m.Edited.Files, "help.go")
	equal(t, "cold", m.Edited.Cold, "help.go")
	if got := r.session(t, "two"); !got.Start.After(noon(1).Add(time.Hour)) || got.Prompt != "now the help" {
		t.Errorf("the fork starts at %s with %q", got.Start, got.Prompt)
	}
	if r.Copies != 2 {
		t.Errorf("%d copies, want the prompt and the call", r.Copies)
	}
	equal(t, "the first session", r.at(t, "one", atStart).Edited.Files, "flag.go")
}

func TestTheTruthHoldsWhatWentWellInsideTheRepository(t *testing.T) {
	t.Parallel()
	r := runOn(t, Options{},
		newAuthor(t, "one", "/home/ann/app", noon(1)).prompt("look").read("/home/ann/app/known.go"),
		newAuthor(t, "two", "/home/ann/app", noon(2)).prompt("go on").
			read("known.go").read("/home/ann/app/new.go").read("/etc/hosts").read("/home/ann/app-two/x.go").
			call("Edit", true, fields{"file_path": "/home/ann/app/failed.go", "old_string": "a", "new_string": "b"}).
			call("Read", true, fields{"file_path": "/home/ann/app/missing.go"}).
			edit("/home/ann/app/sub/../known.go").call("Write", false, fields{"file_path": "/home/ann/app/made.go", "content": "x"}).
			call("Grep", false, fields{"pattern": "flag", "path": "/home/ann/app/sub"}))
	m := r.at(t, "two", atStart)
	equal(t, "touched", m.Touched.Files, "known.go", "new.go", "made.go")
	equal(t, "edited", m.Edited.Files, "known.go", "made.go")
	equal(t, "cold", m.Touched.Cold, "new.go", "made.go")
}

func TestWorktreesAndClonesAreOneRepository(t *testing.T) {
	t.Parallel()
	authors := func() []*author {
		main, tree, clone := "/home/ann/app", "/home/ann/app/.worktrees/ann/fix", "/home/bob/src/application"
		files := func(a *author) *author {
			return a.prompt("work").edit(a.cwd + "/cmd/a.go").edit(a.cwd + "/b.go").read(a.cwd + "/c.go")
		}
		return []*author{
			files(newAuthor(t, "main", main, noon(1))),
			files(newAuthor(t, "below", main+"/cmd", noon(2))).edit("a.go"),
			files(newAuthor(t, "tree", tree, noon(3))),
			files(newAuthor(t, "clone", clone, noon(4))),
			newAuthor(t, "neighbour", "/home/ann/app-two", noon(5)).prompt("work").edit("/home/ann/app-two/README.md").edit("/home/ann/app-two/z.go"),
			newAuthor(t, "stranger", "/home/ann/other", noon(6)).prompt("work").edit("/home/ann/other/README.md"),
		}
	}
	r := runOn(t, Options{}, authors()...)
	for _, session := range []string{"tree", "clone"} {
		m := r.at(t, session, atStart)
		equal(t, session, m.Edited.Files, "cmd/a.go", "b.go")
		equal(t, session+", cold", m.Touched.Cold)
		equal(t, session+", hits", slices.Sorted(slices.Values(m.answer("recent edits").Edited)), "b.go", "cmd/a.go")
	}
	equal(t, "seen from below", r.at(t, "below", atStart).Edited.Files, "cmd/cmd/a.go", "cmd/b.go", "cmd/a.go")
	for _, session := range []string{"neighbour", "stranger"} {
		if s := r.session(t, session); !s.First || s.Project == r.session(t, "main").Project {
			t.Errorf("%s is taken for project %s", session, s.Project)
		}
	}
	apart := runOn(t, Options{Machines: true}, authors()...)
	if !apart.session(t, "clone").First || apart.session(t, "tree").First {
		t.Error("with a store for every machine, only one's own worktrees are known")
	}
}

func TestTheStoreHoldsWhatHappenedBeforeTheStartAndItsClockStandsThere(t *testing.T) {
	t.Parallel()
	long := newAuthor(t, "long", "/home/ann/app", noon(1)).prompt("the long one").edit("/home/ann/app/before.go").
		wait(4 * time.Hour).edit("/home/ann/app/after.go")
	start := noon(1).Add(2*time.Hour + 30*time.Second)
	short := newAuthor(t, "short", "/home/ann/app", start).prompt("the short one").edit("/home/ann/app/after.go")
	same := newAuthor(t, "same", "/home/ann/app", start.Add(-time.Second)).edit("/home/ann/app/same.go") // its result is at the start of the last session
	r := runOn(t, Options{}, long, short, same)
	m := r.at(t, "short", atStart)
	for _, namer := range []string{injectedAtStart, "composite top 20", "composite, files only", "recent edits", "recent touches", "frequency"} {
		equal(t, namer, m.answer(namer).Named, "before.go")
	}
	equal(t, "cold", m.Edited.Cold, "after.go")

	at, q := asked(t, long, short)
	if !q.store.Now().Equal(at) {
		t.Errorf("the clock says %s at %s", q.store.Now(), at)
	}
	c, err := sessionstart.BuildForProject(t.Context(), q.journal, q.project, "startup", q.branch)
	if err != nil || !strings.Contains(c.Text, "| 2h ago | file_edit | before.go |") {
		t.Errorf("the context does not tell the age at the start: %v\n%s", err, c.Text)
	}
}

// asked replays up to the start of the last session and returns its question.
func asked(t *testing.T, authors ...*author) (time.Time, *question) {
	t.Helper()
	events, err := readFolder(t.Context(), save(t, authors...))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := fold(dir, events); err != nil {
		t.Fatal(err)
	}
	filter, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := newReplay(t.Context(), dir, filter, events)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	sessions := sessionsOf(events)
	last := sessions[len(sessions)-1]
	q, err := r.ask(context.WithoutCancel(t.Context()), last.events[0])
	if err != nil {
		t.Fatal(err)
	}
	return last.start, q
}

func TestTheFirstPromptIsAskedApartAndNotStoredYet(t *testing.T) {
	t.Parallel()
	early := newAuthor(t, "early", "/home/ann/app", noon(1)).prompt("first").edit("/home/ann/app/parser.go").edit("/home/ann/app/lexer.go")
	late := newAuthor(t, "late", "/home/ann/app", noon(2))
	late.line("system", fields{"subtype": "compact_boundary"})
	late.read("/home/ann/app/lexer.go").wait(time.Minute).prompt("fix the parser, please").edit("/home/ann/app/parser.go")
	r := runOn(t, Options{}, early, late)
	start, prompt := r.at(t, "late", atStart), r.at(t, "late", atPrompt)
	equal(t, "touched after the start", start.Touched.Files, "lexer.go", "parser.go")
	equal(t, "touched after the prompt", prompt.Touched.Files, "parser.go")
	equal(t, "found by the prompt", prompt.answer("search of the prompt").Edited, "parser.go")
	if slices.ContainsFunc(start.Answers, func(a Answer) bool { return a.Namer == "search of the prompt" }) {
		t.Error("the prompt was searched for before it was there")
	}
	equal(t, "told at the start, heard at the prompt", prompt.answer(injectedAtStart).Named, start.answer(injectedAtStart).Named...)
	if got := r.session(t, "late").Prompt; got != "fix the parser, please" {
		t.Errorf("first prompt %q", got)
	}
}

func TestSessionsBeforeASpanAreStoredAndNotAsked(t *testing.T) {
	t.Parallel()
	work := func(session string, day int) *author {
		return newAuthor(t, session, "/home/ann/app", noon(day)).prompt("work").edit("/home/ann/app/a.go")
	}
	r := runOn(t, Options{From: noon(2).Add(-time.Hour), Until: noon(3)}, work("one", 1), work("two", 2), work("three", 3))
	if len(r.Sessions) != 1 || r.Sessions[0].ID != "two" || r.Sessions[0].First {
		t.Errorf("asked: %+v", r.Sessions)
	}
	for _, f := range r.Figures {
		if f.Period != "as asked" {
			t.Errorf("period %q", f.Period)
		}
	}
}

func TestSessionsOfOneMomentKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var authors []*author
	for _, session := range []string{"c", "a", "b"} {
		authors = append(authors, newAuthor(t, session, "/home/ann/app", noon(1)).prompt("start of "+session))
	}
	want := runOn(t, Options{}, authors...)
	for range 3 {
		again := runOn(t, Options{}, authors...)
		for i := range want.Sessions {
			if again.Sessions[i].ID != want.Sessions[i].ID {
				t.Errorf("place %d: %s, before %s", i, again.Sessions[i].ID, want.Sessions[i].ID)
			}
		}
	}
}

func TestADumpIsReducedRelativeAndRedacted(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + strings.Repeat("aB3dE5gH7j", 4)[:36]
	a := newAuthor(t, "one", "/home/ann/app", noon(1))
	a.branch = "feature"
	a.prompt("use "+secret+" for /home/ann/app/a.go").edit("/home/ann/app/a.go").read("b.go").
		call("Bash", false, fields{"command": "go test ./..."}).call("Grep", false, fields{"pattern": "flag"}).
		call("Bash", false, fields{"command": "git commit -m 'a flag'"})
	file := filepath.Join(t.TempDir(), "dump.jsonl")
	if r := runOn(t, Options{Dump: file}, a); len(r.Sessions) != 0 {
		t.Errorf("a dump asked %d sessions", len(r.Sessions))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(secret)) {
		t.Error("the dump holds a secret")
	}
	var got []string
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var d dumped
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		if d.Session != "one" || d.Project != "app" || d.Folder != "/home/ann/app" || d.Branch != "feature" || d.At.IsZero() {
			t.Errorf("%s", lines.Bytes())
		}
		got = append(got, strings.TrimSpace(d.Kind+" "+d.Path+" "+strings.Split(d.Text, "\n")[0]))
	}
	equal(t, "lines", got, "prompt  use [REDACTED] for a.go", "edit a.go", "read b.go", "command  go test ./...", "search  flag", "commit  git commit -m 'a flag'")
}

func TestOnlyWholeFolderNamesAreReplaced(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"cd /home/ann/app && ls":                        "cd /tmp/r && ls",
		"/home/ann/app":                                 "/tmp/r",
		"'/home/ann/app/a.go'":                          "'/tmp/r/a.go'",
		"/home/ann/app-two/a.go":                        "/home/ann/app-two/a.go",
		"/home/ann/app2 /home/ann/apple /home/ann/app.": "/home/ann/app2 /home/ann/apple /tmp/r.",
		"nothing": "nothing",
	} {
		if got := replaceFolder(text, "/home/ann/app", "/tmp/r"); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestATextNamesRowsByNumberAndOtherPathsByTheirWords(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"cmd/a.go": true, "b.go": true, ".gitignore": true, "very/long/path/to/the/file.go": true, "x/twice/same.go": true, "y/twice/same.go": true}
	text := "# cairn context\n- Done: edited b.go, …/to/the/file.go, …/twice/same.go and 2 more; committed 123 fix .gitignore.\n" +
		"| #12 | 2h ago | file_edit | …/cut/a.go |\n| #13 | 2h ago | command | go vet cmd/a.go unknown.go |\n| #14 | 1h ago | file_read | b.go |\n"
	got := named(text, map[int64]string{12: "row/cut/a.go", 14: "b.go"}, known)
	equal(t, "named", got, "b.go", "very/long/path/to/the/file.go", ".gitignore", "row/cut/a.go", "cmd/a.go", "b.go")
}

func FuzzAnyWordIsAQuery(f *testing.F) {
	for _, seed := range []string{"", "fix the parser", `"quoted" AND (open`, "日本語 _ __a__ NEAR(x)", strings.Repeat("word ", 90), strings.Repeat("x", 1200), strings.Repeat("long_identifier", 70)} {
		f.Add(seed)
	}
	journal := observation.New(nil, observation.Config{})
	f.Fuzz(func(t *testing.T, text string) {
		query := anyWord(text)
		if query == "" {
			return
		}
		if _, err := search.Search(t.Context(), journal, search.SearchArgs{Query: query, Limit: 1}); err != nil {
			t.Errorf("%q is no query: %v", query, err)
		}
	})
}
