package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/doctor"
	"cairn/internal/store/storetest"
)

// agentProgram is an agent program with the recorded hook calls and transcript of one session
// (testdata/hosts). A scripted model ran a failing assertion, a file read, an edit that fixes it,
// the command again, a commit, a query to cairn, and a last message.
type agentProgram struct {
	name  string
	kept  string // path of the session's transcript, below the home directory
	lean  bool   // uses the profile lean
	wants []string
	start string // beginning of the output that contains the context
}

func agentPrograms() []agentProgram {
	all := []string{
		"user_prompt", "command_error", "file_read", "file_edit", "command", "git_commit", "agent_message",
	}
	return []agentProgram{
		{"opencode", ".local/share/opencode/opencode.db", true, all, `{"additionalContext":"# cairn context`},
		{"copilot", ".copilot/session-state/4887b87b-3aba-4bf2-a28f-37572bd51259/events.jsonl", true, all, `{"additionalContext":"# cairn context`},
		{"qwen", ".qwen/projects/kiln/chats/5ff3272e-fe15-44ec-ae8a-3fa60151c5e4.jsonl", false, all, `{"hookSpecificOutput":{"additionalContext":"# cairn context`},
	}
}

// told returns a file sent or kept by a host, adapted as if the session ran in this home and began
// now.
func (h *home) told(host, name string) []byte {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "hosts", host, name))
	if err != nil {
		h.t.Fatal(err)
	}
	inside := func(path string) string {
		quoted, err := json.Marshal(path)
		if err != nil {
			h.t.Fatal(err)
		}
		return strings.Trim(string(quoted), `"`)
	}
	out := strings.NewReplacer("@CWD@", inside(h.repo), "@HOME@", inside(h.dir), "@SLUG@", "kiln").Replace(string(text))
	var first time.Time
	moved := func(at time.Time) time.Time {
		if first.IsZero() {
			first = at
		}
		return time.Now().Add(at.Sub(first))
	}
	out = regexp.MustCompile(`"2026-11-23T[0-9:.]+Z"`).ReplaceAllStringFunc(out, func(s string) string {
		at, err := time.Parse(`"2006-01-02T15:04:05.999Z"`, s)
		if err != nil {
			h.t.Fatal(err)
		}
		return moved(at).UTC().Format(`"2006-01-02T15:04:05.000Z"`)
	})
	return []byte(out)
}

// keepsSession writes the transcript of a host to the path where the host keeps it.
func (h *home) keepsSession(o agentProgram) {
	h.t.Helper()
	if !strings.HasSuffix(o.kept, ".db") {
		h.put(o.kept, h.told(o.name, "transcript.jsonl"))
		return
	}
	path := filepath.Join(h.dir, filepath.FromSlash(o.kept))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	db := storetest.OpenFile(path, "")
	defer db.Close()
	shift := int64(0)
	for line := range bytes.Lines(h.told(o.name, "database.jsonl")) {
		var r struct {
			Table, SQL string
			Row        []any
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&r); err != nil {
			h.t.Fatal(err)
		}
		statement := r.SQL
		for i, v := range r.Row {
			if n, ok := v.(json.Number); ok {
				at, err := n.Int64()
				if r.Row[i] = at; err != nil || at < 1e12 {
					continue // not a time
				}
				if shift == 0 {
					shift = time.Now().UnixMilli() - at
				}
				r.Row[i] = at + shift
			}
		}
		if len(r.Row) > 0 {
			statement = "INSERT INTO " + r.Table + " VALUES (?" + strings.Repeat(", ?", len(r.Row)-1) + ")"
		}
		if _, err := db.Exec(statement, r.Row...); err != nil {
			h.t.Fatal(err)
		}
	}
}

// from runs the hook of a host on a payload.
func (h *home) from(host string, payload []byte) ending {
	h.t.Helper()
	return h.run(h.command("record", "--from", host), payload)
}

const hostRows = `SELECT obs_type, ifnull(tool_name, ''), ifnull(path_key, ''), content, ifnull(metadata ->> '$.failed', '') FROM observations
WHERE obs_type NOT IN ('session_start', 'session_end') ORDER BY obs_type, content, id`

// hostRows returns the rows of a session. Paths below this home are relative to it.
func (h *home) hostRows() (rows []string) {
	for _, row := range h.rows(hostRows) {
		rows = append(rows, strings.ReplaceAll(row, h.dir, ""))
	}
	return rows
}

func TestWhatAgentProgramsReallySendIsRecordedAndTheirTranscriptsTellTheSame(t *testing.T) {
	t.Parallel()
	for _, o := range agentPrograms() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.keepsSession(o)
			var last []byte
			for payload := range bytes.Lines(h.told(o.name, "payloads.jsonl")) {
				if e := h.from(o.name, payload); e.code != 0 || e.stderr != "" || e.stdout != "" && e.stdout[0] != '{' {
					t.Fatalf("%s\nexit %d, said %q, complained %q", payload, e.code, e.stdout, e.stderr)
				}
				if bytes.Contains(payload, []byte("truncates glaze")) && bytes.Contains(payload, []byte(`"UserPromptSubmit"`)) {
					last = bytes.Clone(payload)
				}
			}
			live := h.hostRows()
			types := map[string]bool{}
			for _, row := range live {
				types[strings.SplitN(row, "|", 2)[0]] = true
			}
			for _, want := range o.wants {
				if !types[want] {
					t.Errorf("there is no %s among\n%s", want, strings.Join(live, "\n"))
				}
			}
			h.imports(0)
			other := newHome(t)
			other.keepsSession(o)
			other.cairn("import")
			if imported := other.hostRows(); !slices.Equal(imported, live) {
				t.Errorf("imported\n%s\nlive\n%s", strings.Join(imported, "\n"), strings.Join(live, "\n"))
			}
			h.nextSession(o, last)
		})
	}
}

// nextSession expects that the next session receives the context of a session, exactly once.
func (h *home) nextSession(o agentProgram, prompt []byte) {
	h.t.Helper()
	session := regexp.MustCompile(`"session_id":"[^"]*"`)
	prompt = session.ReplaceAll(prompt, []byte(`"session_id":"next"`))
	start := regexp.MustCompile(`"hook_event_name":"[^"]*"`).ReplaceAll(prompt, []byte(`"hook_event_name":"SessionStart","source":"startup"`))
	said := ""
	for _, payload := range [][]byte{start, prompt} {
		e := h.from(o.name, payload)
		if e.code != 0 || e.stderr != "" {
			h.t.Errorf("exit %d, %s", e.code, e.stderr)
		}
		said += e.stdout
	}
	if !strings.HasPrefix(said, o.start) || strings.Count(said, "# cairn context") != 1 || !strings.Contains(said, "truncates glaze") {
		h.t.Errorf("the next session is told %q", said)
	}
}

func TestInitWiresTheseHostsAndUninstallLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, o := range append(agentPrograms(), agentProgram{name: "windsurf", lean: true}, agentProgram{name: "cline", lean: true}) {
		h := newHome(t)
		before := h.tree()
		said := h.cairn("init", "--"+o.name, "--no-import")
		if !strings.Contains(said, "created") {
			t.Errorf("%s: %s", o.name, said)
		}
		wired, lean := 0, false
		for path := range h.tree() {
			text, err := os.ReadFile(path)
			if err != nil || strings.HasPrefix(path, filepath.Join(h.dir, ".cairn")) {
				continue // a folder, or a file of cairn
			}
			if bytes.Contains(text, []byte("serve")) && bytes.Contains(text, []byte(filepath.Base(h.program))) {
				wired++
			}
			lean = lean || bytes.Contains(text, []byte("--profile"))
		}
		if wired == 0 || lean != o.lean {
			t.Errorf("%s: cairn is in %d files, lean %v", o.name, wired, lean)
		}
		d, _ := h.diagnosed()
		for _, check := range d.Checks {
			if strings.HasPrefix(check.Name, o.name+".") && check.State == doctor.Problem {
				t.Errorf("%s: %+v", o.name, check)
			}
		}
		if again := h.cairn("init", "--"+o.name, "--no-import"); strings.Contains(again, "  changed") || strings.Contains(again, "created") {
			t.Errorf("%s, again: %s", o.name, again)
		}
		h.cairn("uninstall", "--purge-data")
		after := h.tree()
		for path := range after {
			if _, known := before[path]; !known {
				t.Errorf("%s: %s stays", o.name, path)
			}
		}
	}
}

// Windsurf cannot run here, so these are the payloads of its documentation. A hook of Cascade
// responds only by its exit code.
func TestWindsurfsActionsAreRecordedAndAHeldFileIsRefusedByExitCodeTwo(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file, err := json.Marshal(filepath.Join(h.repo, "calc.py"))
	if err != nil {
		t.Fatal(err)
	}
	action := func(name, info string) []byte {
		return []byte(`{"agent_action_name":"` + name + `","trajectory_id":"t1","execution_id":"e1","timestamp":"2026-01-02T03:04:05Z","tool_info":` + info + `}`)
	}
	// Register before the session starts, so that the other agent is not bound to it.
	h.cairn("agents", "register", "BlueLake", "--program", "codex-cli", "--model", "m")
	h.cairn("reserve", "calc.py", "--as", "BlueLake", "--reason", "splitting")
	write := action("pre_write_code", `{"file_path":`+string(file)+`,"edits":[{"old_string":"a","new_string":"b"}]}`)
	for _, payload := range [][]byte{
		action("pre_user_prompt", `{"user_prompt":"mend the mean"}`),
		action("post_read_code", `{"file_path":`+string(file)+`}`), write,
		action("post_write_code", `{"file_path":`+string(file)+`,"edits":[{"old_string":"a","new_string":"b"}]}`),
		action("post_run_command", `{"command_line":"python3 test_calc.py","cwd":"`+filepath.ToSlash(h.repo)+`"}`),
		action("post_mcp_tool_use", `{"mcp_server_name":"kiln","mcp_tool_name":"fire","mcp_tool_arguments":{"cone":6},"mcp_result":"hot"}`),
		action("post_mcp_tool_use", `{"mcp_server_name":"cairn","mcp_tool_name":"recall","mcp_tool_arguments":{"query":"x"},"mcp_result":"[]"}`),
		action("post_cascade_response", `{"response":"Mended."}`), action("post_setup_worktree", `{}`),
	} {
		if e := h.from("windsurf", payload); e.code != 0 || e.stdout != "" || e.stderr != "" {
			t.Errorf("%s: %+v", payload, e)
		}
	}
	want := []string{
		"user_prompt||mend the mean", "file_read|calc.py|calc.py", "file_edit|calc.py|calc.py", "command||python3 test_calc.py",
		`mcp_call||kiln.fire {"cone":6}`, "agent_message||Mended.",
	}
	got := h.rows(`SELECT obs_type, ifnull(path_key, ''), CASE WHEN obs_type LIKE 'file_%' THEN path_key ELSE content END FROM observations ORDER BY id`)
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if e := h.from("windsurf", write); e.code != 0 || e.stdout != "" {
		t.Errorf("warned: %+v", e)
	}
	h.put(".cairn/config.toml", []byte("[guard]\nmode = \"block\"\n"))
	if e := h.from("windsurf", write); e.code != 2 || !strings.Contains(e.stderr, "splitting") {
		t.Errorf("blocked: %+v", e)
	}
}
