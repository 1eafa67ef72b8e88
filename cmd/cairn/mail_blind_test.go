package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestABlindCopyIsToldToNobodyElse (G8, §15.5) searches for the name of an agent that
// received blind copies. It searches all results for other agents, the output of hooks, the
// logs of a server that failed, and every object of the archive's repository.
func TestABlindCopyIsToldToNobodyElse(t *testing.T) {
	t.Parallel()
	h := prepared(newHome(t))
	c := h.dial("", nil)
	for _, name := range []string{"GreenLake", "BlueDog", "RedFox", "QuietOwl"} {
		args := fields{"project_key": h.repo, "program": "codex", "model": "m1", "name": name}
		if name == "BlueDog" {
			args["session_id"] = "dog"
		}
		asked[agents.Registered](c, "register_agent", args)
	}
	h.drain()
	ask := func(tool string, args fields) string {
		args["project_key"] = h.repo
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	// The list of agents is not secret. It does not show what an agent received.
	known := []string{ask("whois", fields{"agent_name": "QuietOwl"}), ask("list_contacts", fields{"agent_name": "BlueDog"})}

	w := &town{home: h}
	send := func(f fields) int64 {
		f["sender_name"], f["body_md"], f["bcc"], f["thread_id"], f["project_key"] = "GreenLake", "Words.\n", "QuietOwl", "T-1", h.repo
		return asked[messages.Sent](c, "send_message", f).Deliveries[0].Payload.ID
	}
	open := send(fields{"to": "BlueDog", "cc": "RedFox", "subject": "open", "ack_required": true, "importance": "urgent"})
	blind := send(fields{"to": []string{}, "subject": "blind"})
	gone := w.refuseChanges()
	failing := fields{"project_key": h.repo, "sender_name": "GreenLake", "to": "BlueDog", "bcc": "QuietOwl", "subject": "s", "body_md": "Words.\n"}
	c.failsWith(mail.CodeDatabase, callToWrite{tool: "send_message", args: failing})
	gone()
	asked[messages.Acknowledged](c, "acknowledge_message", fields{"project_key": h.repo, "agent_name": "QuietOwl", "message_id": open})

	answers := map[string]string{
		"the prompt of BlueDog": h.recorded(h.payload("UserPromptSubmit", fields{"session_id": "dog", "prompt": "what now?"})),
		"the log of hooks":      h.file("cairn.log"),
		"mail of the terminal":  h.cairn("mail", "inbox", "--as", "BlueDog", "--json") + h.cairn("mail", "show", fmt.Sprint(open), "--json"),
	}
	if !strings.Contains(answers["the prompt of BlueDog"], "open") {
		t.Errorf("BlueDog is told %q", answers["the prompt of BlueDog"])
	}
	for _, agent := range []string{"BlueDog", "RedFox"} {
		for tool, args := range map[string]fields{
			"fetch_inbox":          {"agent_name": agent, "include_bodies": true},
			"get_delivery_receipt": {"agent_name": agent, "message_id": open},
			"acknowledge_message":  {"agent_name": agent, "message_id": open},
			"mark_message_read":    {"agent_name": agent, "message_id": blind},
			"reply_message":        {"sender_name": agent, "message_id": open, "body_md": "Yes."},
			"macro_prepare_thread": {"agent_name": agent, "thread_id": "T-1", "program": "codex", "model": "m1", "include_inbox_bodies": true},
			"macro_start_session":  {"human_key": h.repo, "agent_name": agent, "program": "codex", "model": "m1"},
		} {
			answers[tool+" of "+agent] = ask(tool, args)
		}
		for _, box := range []string{"inbox", "mailbox", "outbox", "views/urgent-unread", "views/ack-required", "views/acks-stale", "views/ack-overdue"} {
			answers[box+" of "+agent] = c.resource(box + "/" + agent + "?project=shop")
		}
	}
	answers["search"] = ask("search_messages", fields{"query": "open OR blind OR words OR QuietOwl"})
	answers["search by recipient"] = ask("search_messages", fields{"query": "QuietOwl"})
	answers["thread"] = ask("summarize_thread", fields{"thread_id": "T-1", "include_examples": true})
	for _, address := range []string{fmt.Sprintf("message/%d?project=shop", open), fmt.Sprintf("message/%d?project=shop", blind)} {
		answers[address] = c.resource(address)
	}
	for what, text := range answers {
		if strings.Contains(text, "QuietOwl") {
			t.Errorf("%s names QuietOwl: %s", what, text)
		}
	}
	if again := []string{ask("whois", fields{"agent_name": "QuietOwl"}), ask("list_contacts", fields{"agent_name": "BlueDog"})}; again[1] != known[1] {
		t.Errorf("now %s, before %s", again[1], known[1])
	}
	if text := ask("fetch_inbox", fields{"agent_name": "QuietOwl"}); !strings.Contains(text, "blind") {
		t.Errorf("QuietOwl has got %s", text)
	}
	h.saysNothingOf("QuietOwl", c)
}

// saysNothingOf stops a server and checks that neither its log nor the archive contains
// name.
func (h *home) saysNothingOf(name string, c *client) {
	h.t.Helper()
	c.ends()
	if said := c.stderr.String(); strings.Contains(said, name) || !strings.Contains(said, "send_message") {
		h.t.Errorf("the server said %s", said)
	}
	h.drain()
	h.wantAgreement()
	root := filepath.Join(h.dataDir(), "archive")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "/agents/"+name+"/") || strings.Contains(path, "/.git/") {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), name) {
			h.t.Errorf("%s names %s", path, name)
		}
		return err
	})
	if err != nil {
		h.t.Error(err)
	}
	repository := filepath.Join(root, "shop")
	own, err := gitIn(repository, "log", "--all", "--format=", "--raw", "--no-abbrev", "--root", "-m", "--", "agents/"+name)
	all, aerr := gitIn(repository, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
	if err != nil || aerr != nil {
		h.t.Fatal(err, aerr)
	}
	searched := 0
	for line := range strings.Lines(all) {
		hash, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "tree" || strings.Contains(own, hash) { // trees contain the agent's folder, and its own files contain its name
			continue
		}
		text, err := gitIn(repository, "cat-file", kind, hash)
		about := kind == "commit" && strings.Count(text, name) == 1 && strings.Contains(text, "agent: profile "+name)
		if searched++; err != nil || strings.Contains(text, name) && !about {
			h.t.Errorf("%s %s: %v, %s", kind, hash, err, text)
		}
	}
	if searched < 10 {
		h.t.Errorf("%d objects were searched", searched)
	}
}

// file returns the text of a file in the data directory, or "" if the file does not exist.
func (h *home) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(h.dataDir(), name))
	return string(text)
}

// TestBadTextsAndNumbersOverTheWire sends texts and numbers that client libraries reject
// (mail §14).
func TestBadTextsAndNumbersOverTheWire(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.cairn("agents", "register", "GreenLake", "--program", "codex", "--model", "m1")
	w := h.listen()
	for _, text := range []string{`"a\ud800b"`, `"\udc00\ud800"`, "\"a\xffb\"", `"a\u0000b"`} {
		for _, field := range []string{"subject", "body_md", "sender_name", "thread_id"} {
			all := map[string]string{"sender_name": `"GreenLake"`, "to": `"GreenLake"`, "subject": `"s"`, "body_md": `"b"`}
			all[field] = text
			var body []string
			for name, value := range all {
				body = append(body, fmt.Sprintf("%q:%s", name, value))
			}
			r := w.do(http.MethodPost, "/v1/projects/shop/mail/send_message", "{"+strings.Join(body, ",")+"}")
			if r.status != http.StatusBadRequest || r.code() != mail.CodeInvalid && (field != "thread_id" || r.code() != mail.CodeThreadID) {
				t.Errorf("%s %q: %d %s", field, text, r.status, r.body)
			}
		}
	}
	for number, code := range map[string]string{
		"0": mail.CodeNotFound, "-1": mail.CodeNotFound, "9223372036854775808": mail.CodeNotFound, `"12abc"`: mail.CodeType, "1.5": mail.CodeType, "true": mail.CodeType,
	} {
		body := `{"agent_name":"GreenLake","message_id":` + number + `}`
		if r := w.do(http.MethodPost, "/v1/projects/shop/mail/acknowledge_message", body); r.code() != code {
			t.Errorf("%s: %d %s", number, r.status, r.body)
		}
	}
	h.wantRows("SELECT count(*) FROM mail_messages", "0")
}
