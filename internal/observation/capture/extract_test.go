package capture

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/observation"
	"cairn/internal/redact"
)

func testFilter(tb testing.TB) *redact.Filter {
	tb.Helper()
	f, err := redact.New(redact.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// plantedKey returns a text in the form of an AWS key id. It is assembled so that secret
// scanners do not report this source file.
func plantedKey() string { return "AKIA" + strings.Repeat("Q3ZT", 4) }

func metaText(t *testing.T, m observation.Metadata) string {
	t.Helper()
	text, err := m.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDraftsOfSessionsAndTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("some words ", 400)
	for _, c := range []struct {
		name                   string
		event                  observation.Event
		obsType, content, meta string
	}{
		{"start", observation.Event{Kind: observation.SessionStart, Text: "startup", Model: "opus"}, "session_start", "startup", `{"model":"opus"}`},
		{"start without a model", observation.Event{Kind: observation.SessionStart, Text: "resume"}, "session_start", "resume", ""},
		{"start without a source", observation.Event{Kind: observation.SessionStart}, "session_start", "", ""},
		{"compaction", observation.Event{Kind: observation.SessionStart, Text: "compact"}, "session_compact", "compact", ""},
		{"end", observation.Event{Kind: observation.SessionEnd, Text: "logout"}, "session_end", "logout", ""},
		{"prompt", observation.Event{Kind: observation.Prompt, Text: "fix <it> & \"go\"\n", PromptID: "p", AgentID: "a"}, "user_prompt", "fix <it> & \"go\"\n", ""},
		{"long prompt", observation.Event{Kind: observation.Prompt, Text: long}, "user_prompt", long[:2000], ""},
		{"message", observation.Event{Kind: observation.Message, Text: "done", Role: "turn", TurnEnds: true}, "agent_message", "done", `{"kind":"turn"}`},
		{"subagent's message", observation.Event{Kind: observation.Message, Text: "done", Role: "subagent"}, "agent_message", "done", `{"kind":"subagent"}`},
		{"summary", observation.Event{Kind: observation.Message, Text: "so far", Role: "compact_summary"}, "agent_message", "so far", `{"kind":"compact_summary"}`},
		{"imported", observation.Event{Kind: observation.Prompt, Text: "go", Imported: true}, "user_prompt", "go", `{"imported":true}`},
		{"secret", observation.Event{Kind: observation.Prompt, Text: "use " + plantedKey() + " now"}, "user_prompt", "use [REDACTED] now", `{"redacted":true}`},
		{"bad bytes", observation.Event{Kind: observation.Prompt, Text: "a\xff\x00b"}, "user_prompt", "a\uFFFD\uFFFDb", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rows := drafts(&c.event, testFilter(t))
			if len(rows) != 1 {
				t.Fatalf("%d rows", len(rows))
			}
			d := rows[0]
			if d.Type != c.obsType || d.Content != c.content || d.Tool != "" || d.Failed {
				t.Errorf("got %s %q, tool %q, want %s %q", d.Type, d.Content, d.Tool, c.obsType, c.content)
			}
			if got := metaText(t, d.Meta); got != c.meta {
				t.Errorf("metadata %s, want %s", got, c.meta)
			}
		})
	}
}

func TestLongMessageKeepsBothEnds(t *testing.T) {
	t.Parallel()
	text := "first words " + strings.Repeat("middle part ", 300) + "last words"
	d := drafts(&observation.Event{Kind: observation.Message, Role: "turn", Text: text}, testFilter(t))[0]
	if !strings.HasPrefix(d.Content, text[:1200]) || !strings.HasSuffix(d.Content, text[len(text)-800:]) || len(d.Content) != 2000 {
		t.Errorf("%d characters: %.40q … %q", len(d.Content), d.Content, d.Content[len(d.Content)-20:])
	}
}

func TestNoRow(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]observation.Event{
		"ignored":              {Kind: observation.Ignored, Text: "x"},
		"touch":                {Kind: observation.Touch, Text: "x"},
		"blank prompt":         {Kind: observation.Prompt, Text: " \n\t"},
		"blank message":        {Kind: observation.Message},
		"no call":              {Kind: observation.Tool},
		"own tool":             {Kind: observation.Tool, Calls: []observation.Call{{Action: observation.MCP, Tool: "mcp__cairn__search", Server: "cairn", Method: "search"}}},
		"own tool of a plugin": {Kind: observation.Tool, Calls: []observation.Call{{Action: observation.MCP, Server: "plugin_cairn_cairn", Method: "search"}}},
		"own tool that failed": {Kind: observation.Tool, Calls: []observation.Call{{Action: observation.MCP, Server: "cairn", Method: "search", Failed: true}}},
		"own command":          {Kind: observation.Tool, Calls: []observation.Call{{Action: observation.Shell, Tool: "Bash", Command: "cairn search x"}}},
		"own failed command":   {Kind: observation.Tool, Calls: []observation.Call{{Action: observation.Shell, Tool: "Bash", Command: "cairn search x", Failed: true}}},
	} {
		if rows := drafts(&e, testFilter(t)); len(rows) != 0 {
			t.Errorf("%s: %+v", name, rows)
		}
	}
	for _, server := range []string{"cairns", "plugin_cairn", "cairn_plugin_x", "plugin_x_cairn_y", "x_cairn"} {
		if rows := drafts(&observation.Event{Kind: observation.Tool, Calls: []observation.Call{{Action: observation.MCP, Server: server, Method: "m"}}}, testFilter(t)); len(rows) != 1 {
			t.Errorf("server %s: %d rows", server, len(rows))
		}
	}
}

type callCase struct {
	name                   string
	call                   observation.Call
	obsType, content, meta string
}

func checkCalls(t *testing.T, cases []callCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.call.ID, c.call.Part = "toolu_1", 2
			rows := drafts(&observation.Event{Kind: observation.Tool, Calls: []observation.Call{c.call}}, testFilter(t))
			if len(rows) != 1 {
				t.Fatalf("%d rows", len(rows))
			}
			d := rows[0]
			if d.Type != c.obsType || d.Content != c.content {
				t.Errorf("got %s %q, want %s %q", d.Type, d.Content, c.obsType, c.content)
			}
			if d.Tool != c.call.Tool || d.CallID != "toolu_1" || d.Part != 2 || d.Failed != c.call.Failed {
				t.Errorf("the call's own facts are not kept: %+v", d)
			}
			if got := metaText(t, d.Meta); got != c.meta {
				t.Errorf("metadata\n%s, want\n%s", got, c.meta)
			}
		})
	}
}

func TestDraftsOfCalls(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("word ", 500)
	checkCalls(t, []callCase{
		{"read", observation.Call{Tool: "Read", Action: observation.Read, Path: "a/b.go", DurationMS: 12}, "file_read", "a/b.go", `{"duration_ms":12}`},
		{"read without a path", observation.Call{Tool: "Read", Action: observation.Read}, "file_read", "Read", ""},
		{"write", observation.Call{Tool: "Write", Action: observation.Write, Path: "/r/a.go", Created: true}, "file_write", "/r/a.go", `{"created":true}`},
		{"overwrite", observation.Call{Tool: "Write", Action: observation.Write, Path: "/r/a.go"}, "file_write", "/r/a.go", ""},
		{"edit", observation.Call{Tool: "Edit", Action: observation.Edit, Path: "a.go", ReplaceAll: true}, "file_edit", "a.go", `{"replace_all":true}`},
		{"patch that deletes", observation.Call{Tool: "apply_patch", Action: observation.Edit, Path: "a.go", Deleted: true}, "file_edit", "a.go", `{"deleted":true}`},
		{"failed edit", observation.Call{Tool: "Edit", Action: observation.Edit, Path: "a.go", Failed: true, Error: "\x1b[31mnot found\x1b[0m"},
			"file_edit", "a.go", `{"error":"not found","failed":true}`},
		{"failed read that says nothing", observation.Call{Tool: "Read", Action: observation.Read, Path: "a.go", Failed: true, Error: " "},
			"file_read", "a.go", `{"failed":true}`},
		{"search", observation.Call{Tool: "Grep", Action: observation.Search, Pattern: "func .*", Path: "src", Mode: "content", NumFiles: new(0)},
			"search", "func .* in src", `{"mode":"content","num_files":0}`},
		{"search everywhere", observation.Call{Tool: "Glob", Action: observation.Search, Pattern: "**/*.go"}, "search", "**/*.go", ""},
		{"search without a pattern", observation.Call{Tool: "Glob", Action: observation.Search, Path: "src"}, "search", "src", ""},
		{"task", observation.Call{Tool: "Agent", Action: observation.Spawn, Description: "find it", Prompt: "long story", SubagentType: "Explore", SpawnedID: "a1"},
			"task_spawn", "find it", `{"agent_id":"a1","subagent_type":"Explore"}`},
		{"task without a description", observation.Call{Tool: "Task", Action: observation.Spawn, Description: " ", Prompt: words}, "task_spawn", words[:200], ""},
		{"fetch", observation.Call{Tool: "WebFetch", Action: observation.Fetch, URL: "https://go.dev/?a=b&c=<d>"}, "web_fetch", "https://go.dev/?a=b&c=<d>", ""},
		{"fetch with a password", observation.Call{Tool: "WebFetch", Action: observation.Fetch, URL: "https://me:" + plantedKey() + "@x.org/"},
			"web_fetch", "https://me:[REDACTED]@x.org/", `{"redacted":true}`},
		{"web search", observation.Call{Tool: "WebSearch", Action: observation.WebSearch, Query: words}, "web_search", words[:500], ""},
		{"question", observation.Call{Tool: "AskUserQuestion", Action: observation.Ask, Question: words}, "tool_other", words[:200], ""},
		{"empty question", observation.Call{Tool: "AskUserQuestion", Action: observation.Ask}, "tool_other", "AskUserQuestion", ""},
		{"skill", observation.Call{Tool: "Skill", Action: observation.Skill, SkillName: "pdf"}, "tool_other", "Skill pdf", ""},
		{"skill without a name", observation.Call{Tool: "Skill", Action: observation.Skill}, "tool_other", "Skill", ""},
		{"any other tool", observation.Call{Tool: "TodoWrite", Action: observation.Other, Failed: true, Error: "no"}, "tool_other", "TodoWrite", `{"error":"no","failed":true}`},
	})
}

func TestDraftsOfMCPCalls(t *testing.T) {
	t.Parallel()
	mcp := func(args ...observation.Arg) observation.Call {
		return observation.Call{Tool: "mcp__git__log", Action: observation.MCP, Server: "git", Method: "log", Args: args}
	}
	checkCalls(t, []callCase{
		{"no arguments", mcp(), "mcp_call", "git.log", `{"method":"log","server":"git"}`},
		{"no server", observation.Call{Tool: "log", Action: observation.MCP, Method: "log"}, "mcp_call", "log", `{"method":"log"}`},
		{"neither", observation.Call{Tool: "x__", Action: observation.MCP}, "mcp_call", "x__", ""},
		{"arguments", mcp(observation.Arg{Name: "q", Value: `say "hi" <b>`}, observation.Arg{Name: "n", Value: "5"}, observation.Arg{Name: "deep", Value: `{"a":[1,null]}`}, observation.Arg{Name: "list", Value: `["a"]`}, observation.Arg{Name: "link", Value: "[a](b)"}, observation.Arg{Name: "empty", Value: ""}),
			"mcp_call", `git.log {"q":"say \"hi\" <b>","n":5,"deep":{"a":[1,null]},"list":["a"],"link":"[a](b)","empty":""}`,
			`{"method":"log","params":{"deep":"{\"a\":[1,null]}","empty":"","link":"[a](b)","list":"[\"a\"]","n":"5","q":"say \"hi\" <b>"},"server":"git"}`},
		{"secret by its name", mcp(observation.Arg{Name: "password", Value: "open sesame"}), "mcp_call", `git.log {"password":"[REDACTED]"}`,
			`{"method":"log","params":{"password":"[REDACTED]"},"redacted":true,"server":"git"}`},
		{"secret by a neighbour", mcp(observation.Arg{Name: "name", Value: "API_KEY"}, observation.Arg{Name: "value", Value: "hunter2hunter"}), "mcp_call",
			`git.log {"name":"API_KEY","value":"[REDACTED]"}`,
			`{"method":"log","params":{"name":"API_KEY","value":"[REDACTED]"},"redacted":true,"server":"git"}`},
		{"secret inside", mcp(observation.Arg{Name: "db", Value: `{"password":["open sesame"],"port":5432}`}), "mcp_call", `git.log {"db":{"password":"[REDACTED]","port":5432}}`,
			`{"method":"log","params":{"db":"{\"password\":\"[REDACTED]\",\"port\":5432}"},"redacted":true,"server":"git"}`},
		{"secret as a name", mcp(observation.Arg{Name: "a " + plantedKey(), Value: "b " + plantedKey()}, observation.Arg{Name: "c", Value: "{not json"}), "mcp_call",
			`git.log {"a [REDACTED]":"b [REDACTED]","c":{not json}`,
			`{"method":"log","params":{"a [REDACTED]":"b [REDACTED]","c":"{not json"},"redacted":true,"server":"git"}`},
		{"secret by its shape", mcp(observation.Arg{Name: "text", Value: "it is " + plantedKey()}), "mcp_call", `git.log {"text":"it is [REDACTED]"}`,
			`{"method":"log","params":{"text":"it is [REDACTED]"},"redacted":true,"server":"git"}`},
	})
}

func TestMCPArgumentsAreBounded(t *testing.T) {
	t.Parallel()
	for _, length := range []struct{ name, value, looked int }{{6, 500, 4}, {100, 500, 3}, {199, 199, 3}, {199, 1, 5}, {6, 0, 143}} {
		c := observation.Call{Tool: "mcp__a__b", Action: observation.MCP, Server: "a", Method: "b"}
		for i := range 5000 {
			name := fmt.Sprintf("%06d%s", i, strings.Repeat("n", length.name-6))
			c.Args = append(c.Args, observation.Arg{Name: name, Value: strings.Repeat("wörd ", 100)[:length.value]})
		}
		if n := len((&drafter{filter: testFilter(t)}).arguments(c.Args)); n != length.looked {
			t.Errorf("%v: %d arguments are looked at", length, n)
		}
		d := drafts(&observation.Event{Kind: observation.Tool, Calls: []observation.Call{c}}, testFilter(t))[0]
		if n := utf8.RuneCountInString(d.Content); n != maxMCP {
			t.Errorf("%v: content has %d characters", length, n)
		}
		total := 0
		for name, value := range d.Meta["params"].(map[string]string) {
			if n := utf8.RuneCountInString(value); n > maxParam {
				t.Errorf("%v: %s has %d characters", length, name, n)
			}
			total += utf8.RuneCountInString(name + value)
		}
		if total < maxParams/2 || total > maxParams {
			t.Errorf("%v: params have %d characters", length, total)
		}
	}
}

func TestDraftsOfCommands(t *testing.T) {
	t.Parallel()
	bash := func(command string) observation.Call {
		return observation.Call{Tool: "Bash", Action: observation.Shell, Command: command}
	}
	with := func(c observation.Call, change func(*observation.Call)) observation.Call { change(&c); return c }
	fail := func(command, text string) observation.Call {
		return with(bash(command), func(c *observation.Call) { c.Failed, c.Error, c.ExitCode = true, text, new(1) })
	}
	words := strings.Repeat("word ", 500)
	commit := "[main c0dd4af] fix: <x>\n 2 files changed, 3 insertions(+)\n create mode 100644 a b.go\n"
	push := "To github.com:o/r.git\n   c0dd4af..d1ccd8b  main -> main\n"
	checkCalls(t, []callCase{
		{"command", with(bash("go test ./... > x && echo <ok>"), func(c *observation.Call) { c.Description, c.DurationMS = "Run tests", 1500 }),
			"command", "go test ./... > x && echo <ok>", `{"description":"Run tests","duration_ms":1500}`},
		{"flags", with(bash("make"), func(c *observation.Call) {
			c.Interrupted, c.Background, c.Note, c.Description = true, true, "no match", words
		}), "command", "make", `{"background":true,"description":"` + words[:200] + `","interrupted":true,"note":"no match"}`},
		{"success has no exit code", with(bash("make"), func(c *observation.Call) { c.ExitCode = new(0) }), "command", "make", ""},
		{"long", bash(words), "command", words[:500], ""},
		{"blank", bash(" "), "command", "Bash", ""},
		{"secret", bash("deploy " + plantedKey()), "command", "deploy [REDACTED]", `{"redacted":true}`},
		{"quoted push", bash(`echo "git push"`), "command", `echo "git push"`, ""},
		{"dry run", bash("git push --dry-run"), "command", "git push --dry-run", ""},

		{"commit", with(bash("git commit -am x"), func(c *observation.Call) { c.Stdout = commit }), "git_commit", "git commit -am x",
			`{"branch":"main","commit_hash":"c0dd4af","commit_message":"fix: <x>","files_changed":2,"insertions":3,"new_files":["a b.go"]}`},
		{"coloured commit", with(bash("git commit"), func(c *observation.Call) { c.Stdout = "[\x1b[32mmain\x1b[m c0dd4af] s" }), "git_commit", "git commit",
			`{"branch":"main","commit_hash":"c0dd4af","commit_message":"s"}`},
		{"quiet commit", bash("git commit -qam x"), "git_commit", "git commit -qam x", ""},
		{"secret in a commit", with(bash("git commit"), func(c *observation.Call) { c.Stdout = "[main c0dd4af] add " + plantedKey() }), "git_commit", "git commit",
			`{"branch":"main","commit_hash":"c0dd4af","commit_message":"add [REDACTED]","redacted":true}`},
		{"push", with(bash("git push"), func(c *observation.Call) { c.Stderr = push }), "git_push", "git push",
			`{"branch":"main","hash_range":"c0dd4af..d1ccd8b","remote_url":"github.com:o/r.git"}`},
		{"push with joined streams", with(bash("git push 2>&1"), func(c *observation.Call) { c.Stdout = push }), "git_push", "git push 2>&1",
			`{"branch":"main","hash_range":"c0dd4af..d1ccd8b","remote_url":"github.com:o/r.git"}`},
		{"push to a URL with a password", with(bash("git push"), func(c *observation.Call) {
			c.Stderr = "To https://me:" + plantedKey() + "@x.org/r.git\n * [new branch] a -> a"
		}), "git_push", "git push", `{"branch":"a","redacted":true,"remote_url":"https://me:[REDACTED]@x.org/r.git"}`},
		{"push before commit before gh", with(bash("gh pr list; git commit; git push"), func(c *observation.Call) { c.Stdout, c.Stderr = commit, push }),
			"git_push", "gh pr list; git commit; git push",
			`{"branch":"main","commit_hash":"c0dd4af","commit_message":"fix: <x>","files_changed":2,"hash_range":"c0dd4af..d1ccd8b",` +
				`"insertions":3,"new_files":["a b.go"],"remote_url":"github.com:o/r.git"}`},
		{"commit before gh", bash("gh pr list; git commit"), "git_commit", "gh pr list; git commit", ""},
		{"gh", bash("gh pr view 3"), "github", "gh pr view 3", ""},
		{"no facts of a plain command", with(bash("git log"), func(c *observation.Call) { c.Stdout, c.Stderr = commit, push }), "command", "git log", ""},
		{"PowerShell", observation.Call{Tool: "PowerShell", Action: observation.Shell, Command: "cd \"C:\\x\\\"; git push"}, "git_push", "cd \"C:\\x\\\"; git push", ""},

		{"failed", fail("go test", "Exit code 1\n\x1b[31mFAIL\x1b[0m"), "command_error", "go test\nFAIL",
			`{"command":"go test","error":"FAIL","exit_code":1,"failed":true}`},
		{"failed push", with(fail("git push", "Exit code 1"), func(c *observation.Call) { c.Stderr = push }), "command_error", "git push\nc0dd4af..d1ccd8b main -> main",
			`{"command":"git push","error":"c0dd4af..d1ccd8b main -> main\nTo github.com:o/r.git\n   c0dd4af..d1ccd8b  main -> main","exit_code":1,"failed":true}`},
		{"failed, no code, no text", with(bash("make"), func(c *observation.Call) { c.Failed = true }), "command_error", "make", `{"command":"make","failed":true}`},
		{"failed, only output", with(bash("make"), func(c *observation.Call) { c.Failed, c.Stdout = true, "oops" }), "command_error", "make\noops",
			`{"command":"make","error":"oops","failed":true}`},
		{"failed, error stream first", with(bash("make"), func(c *observation.Call) { c.Failed, c.Stdout, c.Stderr = true, "out", "err" }),
			"command_error", "make\nerr\nout", `{"command":"make","error":"err\nout","failed":true}`},
		{"failed without a command", with(bash(""), func(c *observation.Call) { c.Failed, c.Error = true, "no" }), "command_error", "Bash\nno",
			`{"error":"no","failed":true}`},
		{"failed at length", fail(words, words), "command_error", words[:500] + "\n" + words[:500],
			`{"command":"` + words[:500] + `","error":"` + words[:1000] + words[len(words)-1000:] + `","exit_code":1,"failed":true}`},
	})
}

func TestNewFilesAreBounded(t *testing.T) {
	t.Parallel()
	stdout := "[main c0dd4af] s\n" + strings.Repeat(" create mode 100644 "+strings.Repeat("dir/", 49)+"\n", 50)
	d := drafts(&observation.Event{Kind: observation.Tool, Calls: []observation.Call{{Tool: "Bash", Action: observation.Shell, Command: "git commit", Stdout: stdout}}}, testFilter(t))[0]
	if text := strings.Join(d.Meta["new_files"].([]string), ""); len(text) != maxNewFileText {
		t.Errorf("%d characters", len(text))
	}
}

func TestEveryCallOfAPatchMakesARow(t *testing.T) {
	t.Parallel()
	e := observation.Event{Kind: observation.Tool, Imported: true, Calls: []observation.Call{
		{ID: "c", Part: 0, Tool: "apply_patch", Action: observation.Write, Path: "a", Created: true},
		{ID: "c", Part: 1, Tool: "apply_patch", Action: observation.Edit, Path: "b"},
		{ID: "d", Tool: "mcp__cairn__search", Action: observation.MCP, Server: "cairn"},
	}}
	rows := drafts(&e, testFilter(t))
	if len(rows) != 2 || rows[0].Part != 0 || rows[1].Part != 1 || rows[0].Path != "a" || rows[1].Path != "b" {
		t.Fatalf("%+v", rows)
	}
	if got := metaText(t, rows[0].Meta) + metaText(t, rows[1].Meta); got != `{"created":true,"imported":true}{"imported":true}` {
		t.Error(got)
	}
}

func TestPathsAreRedacted(t *testing.T) {
	t.Parallel()
	for _, action := range []observation.Action{observation.Read, observation.Write, observation.Edit, observation.Search} {
		d := drafts(&observation.Event{Kind: observation.Tool, Calls: []observation.Call{{Tool: "x", Action: action, Pattern: "p", Path: "/tmp/" + plantedKey() + "/f"}}}, testFilter(t))[0]
		if strings.Contains(d.Path+d.Content, plantedKey()) || !strings.Contains(d.Path, "[REDACTED]") || d.Meta["redacted"] != true {
			t.Errorf("action %d: %+v", action, d)
		}
	}
}

func TestSecretAcrossALimitIsRemovedWhole(t *testing.T) {
	t.Parallel()
	half := plantedKey()[:8]
	mcp := observation.Event{Kind: observation.Tool, Calls: []observation.Call{{Tool: "mcp__s__m", Action: observation.MCP, Server: "s", Method: "m"}}}
	for _, c := range []struct {
		limit int
		event observation.Event
	}{
		{maxPrompt, observation.Event{Kind: observation.Prompt}},
		{messageHead, observation.Event{Kind: observation.Message}},
		{observation.MaxCommand, observation.Event{Kind: observation.Tool, Calls: []observation.Call{{Tool: "Bash", Action: observation.Shell}}}},
		{maxErrorText, observation.Event{Kind: observation.Tool, Calls: []observation.Call{{Tool: "Bash", Action: observation.Shell, Failed: true}}}},
		{errorHead, observation.Event{Kind: observation.Tool, Calls: []observation.Call{{Tool: "Read", Action: observation.Read, Failed: true}}}},
		{maxMCP - 9, mcp},
		{maxMCP, mcp},
		{maxParam, mcp},
		{maxTask, observation.Event{Kind: observation.Tool, Calls: []observation.Call{{Tool: "Task", Action: observation.Spawn}}}},
	} {
		for before := c.limit - 25; before <= c.limit; before++ {
			text := strings.Repeat("ab ", before/3+1)[:before-1] + " " + plantedKey()
			e := c.event
			e.Text = text + strings.Repeat(" ab", 1000)
			for i := range e.Calls {
				call := &e.Calls[i]
				call.Prompt, call.Command, call.Error, call.Args = text, text, e.Text, []observation.Arg{{Name: "x", Value: text}}
			}
			d := drafts(&e, testFilter(t))[0]
			if all := d.Content + metaText(t, d.Meta); strings.Contains(all, half) || d.Meta["redacted"] != true {
				t.Fatalf("limit %d, secret at %d: %s", c.limit, before, all)
			}
		}
	}
}

func TestSearchableTextSaysEverythingOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    draft
		want string
	}{
		{draft{Content: "x"}, "x"},
		{draft{Content: "src/a.go", Path: "src/a.go"}, "src/a.go"},
		{draft{Content: "func in src", Path: "src"}, "func in src"},
		{draft{Content: "go\nboom", Meta: observation.Metadata{"error": "boom", "command": "go", "commit_hash": "c0dd4af", "failed": true}}, "go\nboom"},
		{draft{Content: "mainframe", Meta: observation.Metadata{"branch": "main", "commit_message": "fix", "description": "the thing"}},
			"mainframe\nthe thing\nfix\nmain"},
		{draft{Content: "s.m {…}", Meta: observation.Metadata{"server": "s", "method": "m", "params": map[string]string{"b": "two", "a": ""}}},
			"s.m {…}\na\nb\ntwo"},
	} {
		if got := c.d.searchable(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
