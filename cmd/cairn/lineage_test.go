package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"cairn"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/store"
)

// hostCall is one run of cairn, started by a host of sessions.
type hostCall struct {
	Args  []string
	Input []byte
}

type hostAnswer struct {
	Code           int
	Stdout, Stderr string
}

// agentHost is a program that acts as an agent's process. It runs the cairn binary in its first
// argument, as its input specifies, and exits when its input ends.
func agentHost() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var call hostCall
		if err := in.Decode(&call); err != nil {
			return
		}
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(os.Args[1], call.Args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(call.Input), &stdout, &stderr
		answer := hostAnswer{}
		if err := cmd.Run(); err != nil {
			answer.Code = cmd.ProcessState.ExitCode()
		}
		answer.Stdout, answer.Stderr = stdout.String(), stderr.String()
		if err := out.Encode(answer); err != nil {
			os.Exit(1)
		}
	}
}

// host is a running agentHost.
type host struct {
	*home
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func (h *home) host() *host {
	h.t.Helper()
	program, err := exec.LookPath("agenthost")
	if err != nil {
		h.t.Fatal(err)
	}
	p := &host{home: h, cmd: h.command()}
	p.cmd.Path, p.cmd.Args = program, []string{program, h.program}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		h.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	p.out = json.NewDecoder(out)
	if err := p.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(p.kill)
	return p
}

// kill ends the process like a crash: no hook runs.
func (p *host) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed, perhaps earlier
}

// recorded runs the hook in the host's process.
func (p *host) recorded(payload []byte) string {
	p.t.Helper()
	if err := json.NewEncoder(p.in).Encode(hostCall{[]string{"record"}, payload}); err != nil {
		p.t.Fatal(err)
	}
	var answer hostAnswer
	if err := p.out.Decode(&answer); err != nil || answer.Code != 0 || answer.Stderr != "" {
		p.t.Fatalf("the hook of another process: %+v, %v", answer, err)
	}
	return answer.Stdout
}

// recorder is a process in which hooks run: the test process or a host.
type recorder interface{ recorded(payload []byte) string }

func (h *home) starts(in recorder, session, source string) string {
	return in.recorded(h.payload("SessionStart", fields{"session_id": session, "source": source}))
}

func (h *home) ends(in recorder, session, reason string) {
	in.recorded(h.payload("SessionEnd", fields{"session_id": session, "reason": reason}))
}

func (h *home) edits(in recorder, session, file string, more ...string) string {
	f := fields{"session_id": session, "tool_name": "Edit", "tool_input": fields{"file_path": file}}
	if len(more) > 0 {
		f = fields{"session_id": session, "turn_id": "t", "tool_name": "apply_patch", "tool_input": fields{
			"command": "*** Begin Patch\n*** Update File: " + file + "\n*** End Patch",
		}}
	}
	return in.recorded(h.payload("PreToolUse", f))
}

// registers registers an agent without a name, and returns the generated name.
func (c *client) registers(h *home, more fields) string {
	c.t.Helper()
	args := fields{"project_key": h.repo, "program": "claude-code", "model": "m1"}
	for name, value := range more {
		args[name] = value
	}
	return asked[agents.Registered](c, "register_agent", args).Name
}

func (c *client) reserves(h *home, name string, paths ...string) reservations.GrantedReservations {
	c.t.Helper()
	return asked[reservations.GrantedReservations](c, "file_reservation_paths", fields{"project_key": h.repo, "agent_name": name, "paths": paths})
}

// wantSaid expects each of the texts in the output of a hook. A text that begins with ! must be
// absent.
func wantSaid(t *testing.T, what, said string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		unwanted, not := strings.CutPrefix(text, "!")
		if strings.Contains(said, unwanted) == not {
			t.Errorf("%s: want %q in\n%s", what, text, said)
		}
	}
}

// TestTwoSessionsOfOneProcessStayApart uses the test process as one host of two sessions, each with
// its own server.
func TestTwoSessionsOfOneProcessStayApart(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.settle("[guard]\nmax_ms = 20000\n")
	h.starts(h, "a", "startup")
	h.starts(h, "b", "startup")
	names := map[string]string{}
	for _, session := range []string{"a", "b"} {
		c := h.connect("", nil)
		call := c.calls("register_agent", fields{"project_key": h.repo, "program": "claude-code", "model": "m1"})
		h.sees(session, "claude", call, nil)
		var made struct{ Name string }
		if err := json.Unmarshal([]byte(call.result), &made); err != nil {
			t.Fatal(err)
		}
		names[session] = made.Name
		if g := c.reserves(h, made.Name, "src/"+session+"/**"); len(g.Granted) != 1 {
			t.Errorf("%s: %+v", session, g)
		}
	}
	if names["a"] == names["b"] {
		t.Errorf("both are %s", names["a"])
	}
	h.wantRows(bonds, "a|"+names["a"]+"|call", "b|"+names["b"]+"|call")
	for _, step := range []struct{ session, file, holder string }{{"a", "src/a/x.go", ""}, {"b", "src/a/x.go", "a"}, {"a", "src/b/x.go", "b"}, {"b", "src/b/x.go", ""}} {
		said := h.edits(h, step.session, step.file)
		if step.holder == "" && said != "" {
			t.Errorf("%s is asked about its own %s: %s", step.session, step.file, said)
		} else if step.holder != "" {
			wantSaid(t, step.session, said, "is reserved by "+names[step.holder], "You are "+names[step.session]+".")
		}
	}
	// Only the session id distinguishes the two. Neither commands nor records guess the session.
	if e := h.run(h.command("mail", "inbox"), nil); e.code == 0 || !strings.Contains(e.stderr, "has several sessions") {
		t.Errorf("a command of one of them: %+v", e)
	}
	if e := h.run(h.command("records", "create", "--type", "note", "--title", "x"), nil); e.code != 0 || !strings.Contains(e.stderr, "in the new session S-") {
		t.Errorf("a record of one of them: %+v", e)
	}
	// Before a commit, a reservation of the two sessions only warns; one of a third agent blocks
	// the commit.
	h.cairn("agents", "register", "GreenLake", "--program", "codex", "--model", "m1")
	h.cairn("reserve", "docs/**", "--as", "GreenLake")
	for _, step := range []struct {
		file string
		code int
		said string
	}{{"src/a/x.go", 0, "only a warning"}, {"src/b/x.go", 0, "only a warning"}, {"docs/x.md", 1, "holder: GreenLake"}, {"other.go", 0, ""}} {
		e := h.run(h.command("guard", "check", "--stdin-nul"), []byte(step.file+"\x00"))
		if e.code != step.code || !strings.Contains(e.stderr, step.said) || step.said == "" && e.stderr != "" {
			t.Errorf("committing %s: %+v", step.file, e)
		}
	}
	c := h.connect("", nil)
	if name := c.registers(h, fields{"session_id": "b", "name": names["b"]}); name != names["b"] {
		t.Errorf("by its id b is %s", name)
	}
	h.ends(h, "a", "other")
	if e := h.run(h.command("guard", "check", "--stdin-nul"), []byte("docs/x.md\x00")); e.code != 1 || !strings.Contains(e.stderr, "you are "+names["b"]) {
		t.Errorf("committing with one session left: %+v", e)
	}
	if text := h.cairn("mail", "inbox"); strings.Contains(text, "several") {
		t.Errorf("with one session left: %s", text)
	}
	h.check()
}

// TestAnAgentOutlivesItsSession checks that an agent with a reservation and mail keeps both in each
// way in which a session can continue.
func TestAnAgentOutlivesItsSession(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]struct {
		next   string // id of the next session
		source string
		before func(h *home, in recorder) recorder // runs before the next session begins and returns its process
	}{
		"compaction":                         {"s1", "compact", func(_ *home, in recorder) recorder { return in }},
		"compaction under a new id":          {"s2", "compact", func(_ *home, in recorder) recorder { return in }},
		"resume":                             {"s1", "resume", func(h *home, in recorder) recorder { h.ends(in, "s1", "other"); return h.host() }},
		"resume of a killed session":         {"s1", "resume", func(h *home, in recorder) recorder { in.(*host).kill(); return h.host() }},
		"resume under a new id":              {"s2", "resume", func(h *home, in recorder) recorder { h.ends(in, "s1", "resume"); return in }},
		"clear":                              {"s2", "clear", func(h *home, in recorder) recorder { h.ends(in, "s1", "clear"); return in }},
		"clear that the host does not tell":  {"s2", "clear", func(_ *home, in recorder) recorder { return in }},
		"a new session":                      {"s2", "startup", func(h *home, in recorder) recorder { h.ends(in, "s1", "other"); return h.host() }},
		"a new session after a killed one":   {"s2", "startup", func(h *home, in recorder) recorder { in.(*host).kill(); return h.host() }},
		"a new session in the same old host": {"s2", "startup", func(h *home, in recorder) recorder { h.ends(in, "s1", "other"); return in }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.settle("[guard]\nmax_ms = 20000\n")
			first := h.host()
			wantSaid(t, "the first start", h.starts(first, "s1", "startup"), "!## You")
			c := h.connect("", nil)
			me := c.registers(h, fields{"session_id": "s1"})
			if g := c.reserves(h, me, "src/**"); len(g.Granted) != 1 {
				t.Fatalf("%+v", g)
			}
			h.cairn("records", "create", "--type", "note", "--title", "x", "--session", "s1")
			in := step.before(h, first)
			h.cairn("agents", "register", "GreenLake", "--program", "codex", "--model", "m1")
			h.cairn("mail", "send", me, "--as", "GreenLake", "--subject", "While you were away", "--body", "b")

			told := h.starts(in, step.next, step.source)
			wantSaid(t, "the start", told, "## You\n- you are "+me+": 1 unread, 0 to acknowledge\n- "+me+" holds src/**\n", "#1 normal GreenLake: While you were away")
			if said := h.edits(in, step.next, "src/a.go"); said != "" {
				t.Errorf("its own file: %s", said)
			}
			wantSaid(t, "another harness", h.edits(in, "c1", "src/a.go", "codex"), "src/a.go is reserved by "+me)
			if now := c.registers(h, fields{"session_id": step.next}); now != me {
				t.Errorf("registered again it is %s, was %s", now, me)
			}
			if g := c.reserves(h, me, "src/a.go"); len(g.Granted) != 1 || len(g.Conflicts) != 0 {
				t.Errorf("reserving in its own: %+v", g)
			}
			inbox := asked[[]messages.Item](c, "fetch_inbox", fields{"project_key": h.repo, "agent_name": me, "unread_only": true})
			if len(inbox) != 1 || inbox[0].Subject != "While you were away" {
				t.Errorf("inbox: %+v", inbox)
			}
			if e := h.run(h.command("records", "activate", "R001", "--session", step.next), nil); e.code != 0 || strings.Contains(e.stderr, "conflict") {
				t.Errorf("its own record: %+v", e)
			}
			if other := c.registers(h, fields{"session_id": step.next}); other == me {
				t.Errorf("a second agent of the session is %s again", other)
			}
			h.wantRows(`SELECT count(*) FROM mail_reservations WHERE released_ts NOTNULL`, "0")
			h.check()
		})
	}
}

// TestTwoLiveSessionsOfOneLineageHaveTwoNames starts a second session while the first one lives. It
// starts a third session after the first one has ended.
func TestTwoLiveSessionsOfOneLineageHaveTwoNames(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.settle("[guard]\nmax_ms = 20000\n")
	first, second, third := h.host(), h.host(), h.host()
	c := h.connect("", nil)
	h.starts(first, "a", "startup")
	a := c.registers(h, fields{"session_id": "a"})
	c.reserves(h, a, "src/**")
	wantSaid(t, "the second", h.starts(second, "b", "startup"), "!## You")
	b := c.registers(h, fields{"session_id": "b"})
	if a == b {
		t.Fatalf("both are %s", a)
	}
	wantSaid(t, "the second", h.edits(second, "b", "src/a.go"), "reserved by "+a, "You are "+b+".")
	if g := c.reserves(h, b, "src/a.go"); len(g.Granted) != 0 {
		t.Errorf("%+v", g)
	}
	first.kill()
	if said := h.edits(second, "b", "src/a.go"); said != "" {
		t.Errorf("a dead session of its own lineage stands in the way: %s", said)
	}
	wantSaid(t, "the third", h.starts(third, "c", "startup"), "you are "+a+":", a+" holds src/**", "!"+b)
	wantSaid(t, "the second", h.edits(second, "b", "src/a.go"), "reserved by "+a)
	wantSaid(t, "the second, resumed", h.starts(second, "b", "compact"), "you are "+b+":", "!you are "+a)
	// A session in another checkout belongs to another lineage.
	third.kill()
	other := h.repository(h.dir + "/other")
	said := second.recorded(h.payload("SessionStart", fields{"session_id": "d", "source": "startup", "cwd": other}))
	wantSaid(t, "in another checkout", said, "!## You")
	h.check()
}

// TestAServerOfAContinuedSessionKnowsItByItsProcess calls one server without session ids.
func TestAServerOfAContinuedSessionKnowsItByItsProcess(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := h.connect("", nil)
	h.starts(h, "s1", "startup")
	me := c.registers(h, nil)
	c.reserves(h, me, "src/**")
	h.starts(h, "s1", "compact")
	if now := c.registers(h, nil); now != me {
		t.Errorf("after the compaction: %s, was %s", now, me)
	}
	h.ends(h, "s1", "clear")
	h.starts(h, "s2", "clear")
	if now := c.registers(h, nil); now != me {
		t.Errorf("after clearing: %s, was %s", now, me)
	}
	if g := c.reserves(h, me, "src/a.go"); len(g.Granted) != 1 {
		t.Errorf("%+v", g)
	}
	h.wantRows(`SELECT s.id FROM mail_reservations r JOIN sessions s ON s.key = r.session_key ORDER BY r.id`, "s1", "s2")
	h.cairn("reserve", "docs/**")
	h.wantRows(`SELECT count(*), count(DISTINCT agent_id) FROM mail_reservations`, "3|1")
	h.wantRows(`SELECT s.id, ifnull(b.ended_ts, 0) = 0, b.source FROM mail_sessions b JOIN sessions s ON s.key = b.session_key ORDER BY 1`,
		"s1|0|server", "s2|1|server")
	for i, tool := range []string{"register_agent", "create_agent_identity"} {
		if name := asked[agents.Registered](c, tool, fields{"project_key": h.repo, "program": "p", "model": fmt.Sprint(i)}).Name; name == me {
			t.Errorf("%s: %s again", tool, name)
		}
	}
	h.check()
}

// TestAnAgentOverHTTPIsKnownByItsSessionID uses one server whose clients send their session ids.
// The server releases what a session left reserved.
func TestAnAgentOverHTTPIsKnownByItsSessionID(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.vars["CAIRN_RESERVATIONS_SWEEP_SECONDS"] = "1"
	w := h.listen()
	a, b := w.connect("/mcp", "2025-11-25", nil), w.connect("/mcp", "2026-07-28", nil)
	h.starts(h, "a", "startup")
	h.starts(h, "b", "startup")
	one, two := a.registers(h, fields{"session_id": "a"}), b.registers(h, fields{"session_id": "b"})
	a.reserves(h, one, "src/**")
	if one == two {
		t.Errorf("both are %s", one)
	}
	wantSaid(t, "the other", h.edits(h, "b", "src/a.go"), "reserved by "+one, "You are "+two+".")
	h.ends(h, "a", "clear")
	wantSaid(t, "the next", h.starts(h, "c", "startup"), "you are "+one+":")
	if name := a.registers(h, fields{"session_id": "c"}); name != one {
		t.Errorf("the next is %s, was %s", name, one)
	}
	h.ends(h, "c", "other")
	const past = 400_000_000_000
	h.opened(func(ctx context.Context, c *cairn.Cairn) error {
		s, err := c.Store(ctx)
		if err != nil {
			return err
		}
		return s.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
			for _, statement := range []string{
				`UPDATE sessions SET closed_at = closed_at - ?/1000000000`, `UPDATE mail_sessions SET ended_ts = ended_ts - ?`,
				`UPDATE mail_agents SET last_active_ts = last_active_ts - ?`,
			} {
				if _, err := tx.Exec(ctx, statement, past); err != nil {
					return err
				}
			}
			return nil
		})
	})
	h.soon("the release", func() bool {
		return len(h.rows(`SELECT id FROM mail_reservations WHERE release_kind = 'session_end'`)) == 1
	})
	h.check()
}
