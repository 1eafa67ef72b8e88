package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/service"
	"cairn/internal/project"
)

// Words that only one message contains. They are chosen for the search index, which stems
// words, and for a file name.
const (
	purgedSubject = "Xyloquartz handover"
	purgedBody    = "The QIBUVEKO ledger is below the stairs."
	purgedFile    = "zuphorinth bytes of an attachment"
)

func purgedWords() []string {
	return []string{"Xyloquartz", "xyloquartz", "xyloquart", "QIBUVEKO", "qibuveko", "zuphorinth", "stairs"}
}

// mailed runs fn with the mail service of the store.
func (h *home) mailed(fn func(ctx context.Context, o *service.Mail, by mail.Caller) error) {
	h.t.Helper()
	h.opened(func(ctx context.Context, c *cairn.Cairn) error {
		s, err := c.Store(ctx)
		if err != nil {
			return err
		}
		return fn(ctx, service.New(s, mail.Config{}), mail.Caller{Owner: true, Place: project.Location{Home: h.dir}})
	})
}

// secretLetter sends several messages, one of them with the words above, and returns the id
// of that message. One of its three recipients reads it; one recipient is a blind copy.
func (h *home) secretLetter() (id int64) {
	h.t.Helper()
	h.put(filepath.Join("shop", "plan.txt"), []byte("what comes first"))
	h.put(filepath.Join("shop", "secret.bin"), []byte(purgedFile))
	h.mailed(func(ctx context.Context, o *service.Mail, by mail.Caller) error {
		for _, name := range []string{"GreenLake", "BlueDog", "RedFox", "GoldBear"} {
			if _, err := o.RegisterAgent(ctx, by, agents.RegisterArgs{ProjectKey: h.repo, Program: "codex", Model: "m", Name: name}); err != nil {
				return err
			}
		}
		for i, a := range []messages.SendArgs{
			{Subject: "First", Body: "Nothing special.", AttachmentPaths: []string{"plan.txt"}},
			{Subject: purgedSubject, Body: purgedBody, AttachmentPaths: []string{"plan.txt", "secret.bin"}, CC: []string{"RedFox"}, BCC: []string{"GoldBear"}, IdempotencyKey: "k1", AckRequired: true},
			{Subject: "Last", Body: "Nothing special either."},
		} {
			a.ProjectKey, a.SenderName, a.To, a.ThreadID = h.repo, "GreenLake", []string{"BlueDog"}, "FEAT-1"
			sent, err := o.SendMessage(ctx, by, a)
			if err != nil {
				return err
			}
			if i == 1 {
				id = sent.Deliveries[0].Payload.ID
			}
		}
		_, err := o.AcknowledgeMessage(ctx, by, h.repo, "RedFox", id)
		return err
	})
	return id
}

func (h *home) sendAgain() (out messages.Sent) {
	h.t.Helper()
	h.mailed(func(ctx context.Context, o *service.Mail, by mail.Caller) (err error) {
		out, err = o.SendMessage(ctx, by, messages.SendArgs{
			ProjectKey: h.repo, SenderName: "GreenLake", To: []string{"BlueDog"}, ThreadID: "FEAT-1", Subject: purgedSubject, Body: purgedBody,
			AttachmentPaths: []string{"plan.txt", "secret.bin"}, CC: []string{"RedFox"}, BCC: []string{"GoldBear"}, IdempotencyKey: "k1", AckRequired: true,
		})
		return err
	})
	return out
}

// tipHolds returns the files in an archive's working tree and in its main branch whose name
// or content contains one of the words.
func tipHolds(t *testing.T, folder string, words []string) (found []string) {
	t.Helper()
	names, err := exec.Command("git", "-C", folder, "ls-tree", "-r", "--name-only", "main").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(names)) {
		name = strings.TrimSuffix(name, "\n")
		content, err := exec.Command("git", "-C", folder, "show", "main:"+name).Output()
		work, werr := os.ReadFile(filepath.Join(folder, name))
		if err != nil || werr != nil {
			t.Errorf("%s: %v, %v", name, err, werr)
		}
		for _, word := range words {
			if strings.Contains(name+string(content)+string(work), word) {
				found = append(found, name)
				break
			}
		}
	}
	return found
}

func (h *home) archiveFolder() string {
	h.t.Helper()
	all, err := filepath.Glob(filepath.Join(h.dataDir(), "archive", "*", "project.json"))
	if err != nil || len(all) != 1 {
		h.t.Fatal(all, err)
	}
	return filepath.Dir(all[0])
}

// storeHolds returns the words that files of the data directory contain, not counting the
// archive.
func (h *home) storeHolds(words []string) (found []string) {
	h.t.Helper()
	for name := range h.files() {
		if strings.HasPrefix(name, "archive") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(h.dataDir(), name))
		if err != nil {
			continue // a directory
		}
		for _, word := range words {
			if bytes.Contains(data, []byte(word)) {
				found = append(found, name+": "+word)
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestAPurgedMessageLeavesATombstone searches for the words of a purged message everywhere.
func TestAPurgedMessageLeavesATombstone(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	h := newHome(t)
	h.recorded(h.shell("t1", "make"))
	id := h.secretLetter()
	words := purgedWords()
	h.cairn("archive", "sync")
	older := h.cairn("export", "--all")
	h.cairn("backup")
	folder := h.archiveFolder()
	if found := tipHolds(t, folder, words); len(found) != 7 { // canonical file, outbox, three inboxes, digest, attachment
		t.Errorf("the tip: %q", found)
	}
	if len(h.storeHolds(words)) == 0 {
		t.Fatal("the store does not hold the words; the test looks at the wrong place")
	}
	number := fmt.Sprint(id)

	// A dry run, and invalid calls.
	if said := h.cairn("purge", "--message", number); !strings.Contains(said, "would purge 1 message\n") || !strings.Contains(said, "add --confirm") {
		t.Errorf("the dry run says %q", said)
	}
	if said := h.cairn("purge", "--message", number, "--json"); !strings.Contains(said, `"messages": 1,`) || !strings.Contains(said, `"archives": []`) {
		t.Errorf("the dry run as JSON: %s", said)
	}
	h.fails("an unknown message", h.run(h.command("purge", "--message", number, "--message", "999", "--confirm"), nil), 1, "message 999 not found", "nothing was purged")
	h.fails("mixed", h.run(h.command("purge", "--message", number, "--type", "user_prompt"), nil), 2, "--type selects observations")
	h.fails("no project", h.run(h.command("purge", "--mail"), nil), 2, "--mail requires --project")
	if len(tipHolds(t, folder, []string{"QIBUVEKO"})) == 0 {
		t.Fatal("a refused purge has purged")
	}

	was := h.storeFile()
	said := h.cairn("purge", "--message", number, "--project", h.repo, "--confirm")
	for _, want := range []string{"purged 1 message\n", "also deleted: 1 attachment\n", "also deleted: 1 automatic backup\n", folder, "Git history contains them", "cairn reconcile --rebuild"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q: %s", want, said)
		}
	}
	if found := h.storeHolds(words); len(found) > 0 {
		t.Errorf("on the disk: %q", found)
	}
	if found := tipHolds(t, folder, words); len(found) > 0 {
		t.Errorf("in the tip: %q", found)
	}
	var stone struct {
		ID     int64  `json:"id"`
		UID    string `json:"uid"`
		Purged string `json:"purged_ts"`
		From   string `json:"from"`
		BCC    any    `json:"bcc"`
	}
	text, err := os.ReadFile(filepath.Join(folder, "messages", "tombstones", number+".json"))
	if err == nil {
		err = json.Unmarshal(text, &stone)
	}
	if err != nil || stone.ID != id || stone.From != "GreenLake" || stone.UID == "" || stone.Purged == "" || stone.BCC != nil || strings.Contains(string(text), "GoldBear") {
		t.Errorf("the tombstone: %s, %v", text, err)
	}
	digest, err := os.ReadFile(filepath.Join(folder, "messages", "threads", "FEAT-1.md"))
	if err != nil || !strings.Contains(string(digest), "[message "+number+"](../tombstones/"+number+".json)\n\n### (purged)\n") {
		t.Errorf("the digest: %s, %v", digest, err)
	}
	h.cairn("reconcile", "--check")
	h.check()

	// The row stays, with its receipts. A retry with the same key sends nothing.
	h.wantRows(`SELECT subject, body_md, thread_id, ack_required, sender_id FROM mail_messages WHERE id = `+number, "||FEAT-1|1|1")
	h.wantRows(`SELECT a.name, r.kind, r.ack_ts NOTNULL FROM mail_recipients r JOIN mail_agents a ON a.id = r.agent_id WHERE message_id = `+number+` ORDER BY 1`,
		"BlueDog|to|0", "GoldBear|bcc|0", "RedFox|cc|1")
	if again := h.sendAgain(); again.Deliveries[0].Payload.ID != id || again.Deliveries[0].Payload.Subject != "" || *again.Deliveries[0].Payload.Body != "" {
		t.Errorf("the kept answer: %+v", again)
	}
	h.wantRows(`SELECT count(*) FROM mail_messages`, "3")
	h.wantRows(`SELECT count(*) FROM mail_blobs`, "1") // the blob that the first message also has
	h.wantRows(`SELECT count(*) FROM archive_commits WHERE summary LIKE '%Xyloquartz%'`, "0")
	if said := h.cairn("purge", "--message", number, "--confirm"); said != "purged 0 messages\n1 message were already purged\n" {
		t.Errorf("again: %q", said)
	}

	// A copy of the store from before the purge learns of the purge from the archive.
	now, err := os.ReadFile(h.db())
	if err == nil {
		err = os.WriteFile(h.db(), was, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.wantRows(`SELECT subject FROM mail_messages WHERE id = `+number, purgedSubject)
	h.cairn("reconcile", "--reindex")
	h.wantRows(`SELECT subject || body_md FROM mail_messages WHERE id = `+number, "")
	h.wantRows(`SELECT count(*) FROM mail_blobs`, "1")
	h.cairn("reconcile", "--check")
	h.check()
	if err := os.WriteFile(h.db(), now, 0o600); err != nil {
		t.Fatal(err)
	}

	// Neither an older export nor the archive restores the message.
	file := filepath.Join(h.dir, "older.jsonl")
	if err := os.WriteFile(file, []byte(older), 0o600); err != nil {
		t.Fatal(err)
	}
	h.cairn("import", file)
	h.wantRows(`SELECT subject || body_md FROM mail_messages WHERE id = `+number, "")
	h.wantRows(`SELECT count(*) FROM mail_blobs`, "1")
	before := h.mailLines()
	h.cairn("reconcile", "--rebuild")
	h.cairn("reconcile", "--check")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(h.db() + suffix); err != nil && suffix == "" {
			t.Fatal(err)
		}
	}
	h.cairn("reconcile", "--reindex")
	h.wantRows(`SELECT subject || body_md, thread_id, ack_required FROM mail_messages WHERE id = `+number, "|FEAT-1|1")
	if after := h.mailLines(); !slices.Equal(after, before) {
		t.Errorf("after a reindex:\n%s\nbefore:\n%s", strings.Join(after, ""), strings.Join(before, ""))
	}
	h.cairn("import", file)
	h.wantRows(`SELECT subject || body_md FROM mail_messages WHERE id = `+number, "")
	h.wantRows(`SELECT count(*) FROM mail_blobs`, "1")
	h.cairn("archive", "sync")
	h.cairn("reconcile", "--check")
	h.check()

	// The command that purge prints starts a new history.
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	h.cairn("reconcile", "--rebuild")
	log, err := exec.Command("git", "-C", folder, "log", "-p", "--all", "--text").Output()
	for _, word := range words {
		if err != nil || bytes.Contains(log, []byte(word)) {
			t.Errorf("the new history holds %s (%v)", word, err)
		}
	}
	h.cairn("reconcile", "--check")

	// Purge all mail of a project.
	if said := h.cairn("purge", "--mail", "--project", h.repo, "--confirm"); !strings.HasPrefix(said, "purged 2 messages\n1 message were already purged\nalso deleted: 1 attachment\n") {
		t.Errorf("all: %q", said)
	}
	h.wantRows(`SELECT count(*), sum(length(subject || body_md)) FROM mail_messages`, "3|0")
	h.wantRows(`SELECT count(*) FROM mail_blobs`, "0")
	h.cairn("reconcile", "--check")
	h.check()
}
