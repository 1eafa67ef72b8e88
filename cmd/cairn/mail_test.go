package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// starts registers an agent of the repository in a server's session.
func (c *client) starts(repo, name string, paths ...string) service.Started {
	c.t.Helper()
	args := fields{"human_key": repo, "program": "codex", "model": "m1", "agent_name": name}
	if len(paths) > 0 {
		args["file_reservation_paths"] = paths
	}
	return asked[service.Started](c, "macro_start_session", args)
}

// denied makes a call that must be refused with a code, and returns the error envelope.
func (c *client) denied(code, tool string, args fields) fault.Envelope {
	c.t.Helper()
	text, isError, err := c.answer(tool, args)
	var e fault.Envelope
	if err == nil {
		err = json.Unmarshal([]byte(text), &e)
	}
	if err != nil || !isError || e.Error.Code != code {
		c.t.Errorf("%s %v: %s, %v; want %s", tool, args, text, err, code)
	}
	return e
}

// TestTwoServersShareMailAndReservations uses two server processes on one store, each with
// one client.
func TestTwoServersShareMailAndReservations(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	here, there := h.connect("2025-11-25", nil), h.connect("2026-07-28", nil)
	if s := here.starts(h.repo, "BlueLake", "internal/**"); s.Agent.Name != "BlueLake" || len(s.Reservations.Granted) != 1 {
		t.Errorf("BlueLake: %+v", s)
	}
	s := there.starts(h.repo, "GreenCastle", "internal/a.go", "docs")
	if len(s.Reservations.Granted) != 1 || len(s.Reservations.Conflicts) != 1 || s.Reservations.Conflicts[0].Holders[0].Agent != "BlueLake" {
		t.Errorf("GreenCastle: %+v", s.Reservations)
	}
	there.starts(h.repo, "RedFox")
	key := s.Project.Slug

	sent := asked[messages.Sent](here, "send_message", fields{
		"project_key": h.repo, "sender_name": "BlueLake", "to": "GreenCastle", "bcc": []string{"RedFox"}, "subject": "internal", "body_md": "I move it.", "ack_required": true,
	})
	id := sent.Deliveries[0].Payload.ID
	inbox := asked[[]messages.Item](there, "fetch_inbox", fields{"project_key": key, "agent_name": "GreenCastle", "include_bodies": true})
	if len(inbox) != 1 || inbox[0].ID != id || inbox[0].From != "BlueLake" || *inbox[0].Body != "I move it." || !inbox[0].AckRequired {
		t.Fatalf("%+v", inbox)
	}
	asked[messages.Acknowledged](there, "acknowledge_message", fields{"project_key": key, "agent_name": "GreenCastle", "message_id": fmt.Sprint(id)})
	receipt := asked[messages.Receipt](here, "get_delivery_receipt", fields{"project_key": key, "agent_name": "BlueLake", "message_id": id})
	if c := receipt.Counts; c.Acknowledged != 1 || c.Queued != 1 || len(receipt.Recipients) != 2 {
		t.Errorf("%+v", receipt)
	}
	there.denied(mail.CodeDenied, "get_delivery_receipt", fields{"project_key": key, "agent_name": "RedFox", "message_id": id})
	reply := asked[messages.Reply](there, "reply_message", fields{"project_key": key, "sender_name": "GreenCastle", "message_id": id, "body_md": "Go on."})
	if *reply.ThreadID != fmt.Sprint(id) || strings.Join(reply.To, ",") != "BlueLake" {
		t.Errorf("%+v", reply)
	}

	// Only the sender and the recipient of the blind copy see its name.
	for _, c := range []*client{here, there} {
		for _, uri := range []string{"inbox/GreenCastle?include_bodies=1&project=", "message/" + fmt.Sprint(id) + "?project=", "thread/" + fmt.Sprint(id) + "?include_bodies=1&project="} {
			if text := c.resource(uri + key); strings.Contains(text, "RedFox") || !strings.Contains(text, "BlueLake") {
				t.Errorf("%s: %s", uri, text)
			}
		}
	}
	if text := here.resource("outbox/BlueLake?project=" + key); !strings.Contains(text, "RedFox") {
		t.Errorf("the sender's outbox: %s", text)
	}
	if text := there.resource("inbox/RedFox?project=" + key); !strings.Contains(text, `"kind":"bcc"`) {
		t.Errorf("its own inbox: %s", text)
	}
	if text := h.cairn("mail", "outbox", "--as", "BlueLake"); !strings.Contains(text, "to GreenCastle, bcc RedFox") {
		t.Errorf("the command line: %s", text)
	}
	e := there.denied(mail.CodeReserved, "force_release_file_reservation", fields{"project_key": key, "agent_name": "GreenCastle", "file_reservation_id": 1})
	if e.Error.Details["holder"] != "BlueLake" {
		t.Errorf("%+v", e)
	}
	if got := asked[reservations.ReleasedReservations](here, "release_file_reservations", fields{"project_key": key, "agent_name": "BlueLake"}); got.Released != 1 {
		t.Errorf("%+v", got)
	}
	if got := asked[reservations.GrantedReservations](there, "file_reservation_paths", fields{"project_key": key, "agent_name": "GreenCastle", "paths": []string{"internal/a.go"}}); len(got.Granted) != 1 {
		t.Errorf("%+v", got)
	}
	h.check()
}

// resource reads a resource of mail.
func (c *client) resource(address string) string {
	c.t.Helper()
	r, err := c.ReadResource(c.t.Context(), &sdk.ReadResourceParams{URI: "resource://" + address})
	if err != nil || len(r.Contents) != 1 || r.Contents[0].MIMEType != "application/json" {
		c.t.Fatalf("%s: %+v, %v", address, r, err)
	}
	return r.Contents[0].Text
}

// TestServersThatRaceForAPathGrantItOnce makes two processes reserve overlapping patterns
// concurrently, many times.
func TestServersThatRaceForAPathGrantItOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	servers := []*client{h.connect("", nil), h.connect("", nil)}
	names, patterns := []string{"BlueLake", "GreenCastle"}, []string{"part%d/**", "part%d/a.go"}
	for i, c := range servers {
		c.starts(h.repo, names[i])
	}
	for round := range 20 {
		var granted [2]reservations.GrantedReservations
		var group sync.WaitGroup
		for i, c := range servers {
			group.Go(func() {
				granted[i] = asked[reservations.GrantedReservations](c, "file_reservation_paths", fields{
					"project_key": h.repo, "agent_name": names[i], "paths": []string{fmt.Sprintf(patterns[i], round)},
				})
			})
		}
		group.Wait()
		if len(granted[0].Granted)+len(granted[1].Granted) != 1 || len(granted[0].Conflicts)+len(granted[1].Conflicts) != 1 {
			t.Errorf("round %d: %+v", round, granted)
		}
	}
	h.check()
}

// TestACommandActsAsTheAgentOfItsSession records a hook, so that this process counts as a
// harness. It registers an agent through a server that it starts.
func TestACommandActsAsTheAgentOfItsSession(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("t1", "make"))
	c := h.connect("", nil)
	c.starts(h.repo, "BlueLake")
	asked[messages.Sent](c, "send_message", fields{"project_key": h.repo, "sender_name": "BlueLake", "to": "BlueLake", "subject": "a note to myself", "body_md": ""})
	if text := h.cairn("mail", "inbox"); !strings.Contains(text, "a note to myself") {
		t.Errorf("inbox: %q", text)
	}
	if text := h.cairn("reserve", "a.go"); !strings.Contains(text, "granted") {
		t.Errorf("reserve: %q", text)
	}
	h.wantRows("SELECT source FROM mail_reservations", "cli")
	h.wantRows("SELECT DISTINCT agent FROM change_log WHERE kind = 'mail.reservation'", "BlueLake (by owner)")

	c.starts(h.repo, "RedFox") // now the session acts as two agents
	e := h.run(h.command("mail", "inbox"), nil)
	if e.code != 2 || !strings.Contains(e.stderr, "acts as BlueLake and RedFox (choose one with --as)") {
		t.Errorf("two agents: %+v", e)
	}
}

// TestLooseArgumentsAreTakenOverTheWire uses all lenient forms of arguments in one call.
func TestLooseArgumentsAreTakenOverTheWire(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	c := h.connect("", nil)
	c.starts(h.repo, "BlueLake")
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "send_message", Arguments: fields{
		"project_key": h.repo, "sender_name": "bluelake", "to": "BlueLake", "cc": nil, "subject": "s", "body_md": "b", "ack_required": "true", "thread_id": nil,
		"format": "toon", "llm_mode": true, "convert_images": "no", "llm_model": 7, "urgency": "much",
	}})
	if err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	if ignored := fmt.Sprint(r.Meta["cairn/ignored"]); ignored != "[urgency]" {
		t.Errorf("ignored: %s", ignored)
	}
	c.denied(mail.CodeType, "acknowledge_message", fields{"project_key": h.repo, "agent_name": "BlueLake", "message_id": "12abc"})
	c.denied(mail.CodeMissing, "acknowledge_message", fields{"project_key": h.repo, "agent_name": nil, "message_id": 1})
	c.denied(mail.CodeInvalid, "send_message", fields{"project_key": h.repo, "sender_name": "BlueLake", "to": nil, "subject": "s", "body_md": "b"})
}

// TestGuardsAreInstalledByTools calls each tool twice.
func TestGuardsAreInstalledByTools(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	repo := filepath.Join(h.dir, "guarded")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", repo).CombinedOutput(); err != nil {
		t.Skipf("no git: %v, %s", err, out)
	}
	c := h.connect("", nil)
	c.starts(repo, "BlueLake")
	hook := filepath.Join(repo, ".git", "hooks", "pre-commit")
	for range 2 {
		made := asked[struct{ Hook string }](c, "install_precommit_guard", fields{"project_key": repo, "code_repo_path": repo})
		if text, err := os.ReadFile(made.Hook); err != nil || filepath.Base(made.Hook) != "pre-commit" || len(text) == 0 {
			t.Errorf("%+v, %v", made, err)
		}
	}
	for _, want := range []bool{true, false} {
		if gone := asked[struct{ Removed bool }](c, "uninstall_precommit_guard", fields{"code_repo_path": repo}); gone.Removed != want {
			t.Errorf("%+v, want %v", gone, want)
		}
	}
	if _, err := os.Stat(hook); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the hook is still there: %v", err)
	}
}

// TestEditsAndCommitsAreSignsOfLife checks an old reservation of a file: first after a hook
// has recorded an edit, then after a commit.
func TestEditsAndCommitsAreSignsOfLife(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	repo := filepath.Join(h.dir, "real")
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@t.example", "-c", "commit.gpgsign=false"}, args...)
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v, %s", args, err, out)
		}
	}
	file, old := filepath.Join(repo, "a.go"), time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := errors.Join(os.Mkdir(repo, 0o755), os.WriteFile(file, []byte("package a"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	command := func(args ...string) string {
		t.Helper()
		cmd := h.command(args...)
		cmd.Dir = repo
		e := h.run(cmd, nil)
		if e.code != 0 {
			t.Fatalf("%v: %+v", args, e)
		}
		return e.stdout
	}
	signs := func() reservations.HolderActivity {
		t.Helper()
		var all []struct{ reservations.HolderActivity }
		if err := json.Unmarshal([]byte(command("reservations", "list", "--json")), &all); err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0].HolderActivity
	}
	command("agents", "register", "BlueLake", "--program", "codex", "--model", "m1")
	command("reserve", "a.go", "--as", "BlueLake")
	if s := signs(); s.Files.UTC() != old || s.Git != 0 || !slices.Contains(s.Reasons, "no_recent_filesystem_activity>900s") || !slices.Contains(s.Reasons, "no_recent_git_activity>900s") {
		t.Errorf("an old file: %+v", s)
	}
	h.recorded(h.payload("PostToolUse", fields{
		"cwd": repo, "tool_name": "Edit", "tool_use_id": "t1", "tool_input": fields{"file_path": file, "old_string": "a", "new_string": "b"},
	}))
	if s := signs(); !slices.Contains(s.Reasons, "filesystem_activity_recent") || s.Files.UTC() == old || s.Git != 0 {
		t.Errorf("after an edit: %+v", s)
	}
	git("add", "a.go")
	git("commit", "-q", "-m", "a")
	if s := signs(); !slices.Contains(s.Reasons, "git_activity_recent") || s.Git == 0 {
		t.Errorf("after a commit: %+v", s)
	}
}
