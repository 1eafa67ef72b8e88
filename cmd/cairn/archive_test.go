package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/service"
	"cairn/internal/project"
)

// posting is a home in which agents of this process send mail to each other while other processes
// archive it.
type posting struct {
	*home
	office *service.Mail
	caller mail.Caller
}

func newPosting(t *testing.T) *posting {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	p := &posting{home: newHome(t)}
	p.open()
	for _, name := range []string{"GreenLake", "BlueDog"} {
		if _, err := p.office.RegisterAgent(t.Context(), p.caller, agents.RegisterArgs{ProjectKey: p.repo, Program: "codex", Model: "m", Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// open opens the store in this process. It is closed by closed or at the end of the test.
func (p *posting) open() (closed func()) {
	p.t.Helper()
	c, err := cairn.Open(cairn.Config{Home: p.dir, Dir: p.dataDir()})
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := c.Store(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	place, err := project.Locate(p.repo, p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	p.office, p.caller = service.New(s, mail.Config{NoContactEnforcement: true}), mail.Caller{Owner: true, Place: place}
	closed = func() { _ = c.Close() }
	p.t.Cleanup(closed)
	return closed
}

func (p *posting) post(subject string) int64 {
	p.t.Helper()
	sent, err := p.office.SendMessage(context.WithoutCancel(p.t.Context()), p.caller, messages.SendArgs{
		ProjectKey: p.repo, SenderName: "GreenLake", To: []string{"BlueDog"}, Subject: subject, Body: "Words.\n", ThreadID: "t",
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return sent.Deliveries[0].Payload.ID
}

func (p *posting) archive() string { return filepath.Join(p.dataDir(), "archive", "shop") }

func (p *posting) git(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", p.archive()}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CEILING_DIRECTORIES="+filepath.Dir(p.archive()))
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// soon waits until a condition holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(stopLimit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("never: " + what)
		}
	}
}

// checkedArchive returns the output of cairn reconcile --check and its exit code.
func (p *posting) checkedArchive() (found map[string]any, code int) {
	p.t.Helper()
	e := p.run(p.command("reconcile", "--check", "--json"), nil)
	if err := json.Unmarshal([]byte(e.stdout), &found); err != nil {
		p.t.Fatalf("reconcile --check: %v, exit %d, %s", err, e.code, e.stderr)
	}
	return found, e.code
}

func (p *posting) wantAgreement() {
	p.t.Helper()
	if found, code := p.checkedArchive(); code != 0 || found["consistent"] != true || found["pending"] != 0.0 {
		p.t.Errorf("reconcile --check: exit %d, %v", code, found)
	}
	if out, err := p.git("fsck", "--strict", "--full", "--no-dangling"); err != nil || out != "" {
		p.t.Errorf("git fsck: %v, %s", err, out)
	}
}

func TestAServerArchivesWhatOtherProcessesWrite(t *testing.T) {
	t.Parallel()
	p := newPosting(t)
	server := p.connect("", nil)
	p.post("first")
	holds := func(subject string) func() bool {
		return func() bool {
			out, err := p.git("log", "--format=%B", "main")
			return err == nil && strings.Contains(out, "| "+subject)
		}
	}
	soon(t, "the first message is in Git", holds("first"))
	began := time.Now()
	p.post("second")
	soon(t, "the second message is in Git", holds("second"))
	t.Logf("in Git after %s", time.Since(began))
	p.post("at the end")
	server.leave() // exit code 0, empty standard error
	p.wantAgreement()
	if out, err := p.git("status", "--porcelain"); err != nil || out != "" {
		t.Errorf("git status: %v, %s", err, out)
	}
	status := p.cairn("archive", "status")
	if !strings.Contains(status, "shop") || !strings.Contains(status, "0 changes behind") {
		t.Errorf("archive status says\n%s", status)
	}
}

// TestReconcileSpeaksTheShapesOfTheContract checks keys and exit codes (mail §10.6).
func TestReconcileSpeaksTheShapesOfTheContract(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.fails("without a store", h.run(h.command("reconcile", "--check"), nil), 2, "no store", "--reindex")
	h.fails("without a word", h.run(h.command("reconcile"), nil), 2, "--check, --rebuild and --reindex")
	h.fails("two at once", h.run(h.command("reconcile", "--check", "--rebuild"), nil), 2)
	h.fails("a dry check", h.run(h.command("archive", "reconcile", "--check", "--dry-run"), nil), 2, "--dry-run")
	p := newPosting(t)
	p.post("one")
	p.fails("an unknown project", p.run(p.command("reconcile", "--check", "--project", "nowhere"), nil), 2, "nowhere")

	found, code := p.checkedArchive()
	if code != 0 || found["pending"] == 0.0 || found["consistent"] != true {
		t.Errorf("before anything is archived: exit %d, %v", code, found)
	}
	wantKeys(t, found, "consistent", "db_messages", "archive_messages", "missing", "mismatched", "orphans", "duplicate_ids", "uncommitted", "pending",
		"set_aside", "entities", "projects")
	wantKeys(t, found["entities"].(map[string]any), "agents", "deliveries", "contacts", "reservations", "blobs")
	wantKeys(t, found["entities"].(map[string]any)["agents"].(map[string]any), "db", "archive")
	p.cairn("archive", "sync", "--json")
	p.wantAgreement()

	tree := strings.Fields(p.cairnGit("ls-tree", "-r", "--name-only", "main", "messages/2026", "messages/"))
	message := filepath.Join(p.archive(), tree[slices.IndexFunc(tree, func(path string) bool { return strings.Contains(path, "__one__") })])
	text, err := os.ReadFile(message)
	if err != nil {
		t.Fatal(err)
	}
	copied := strings.Replace(message, "__one__", "__two__", 1)
	if err := errors.Join(os.WriteFile(copied, text, 0o600), os.WriteFile(message, append(text, "more"...), 0o600), os.Remove(filepath.Join(p.archive(), "project.json"))); err != nil {
		t.Fatal(err)
	}
	found, code = p.checkedArchive()
	for list, n := range map[string]int{"missing": 1, "mismatched": 1, "orphans": 1, "duplicate_ids": 2} {
		if got := found[list].([]any); code != 1 || found["consistent"] != false || len(got) != n {
			t.Errorf("exit %d, %s: %v", code, list, got)
		}
	}
	if says := p.run(p.command("reconcile", "--check"), nil); says.code != 1 || !strings.Contains(says.stdout, "--rebuild") {
		t.Errorf("for people: exit %d, %s", says.code, says.stdout)
	}
	var done map[string]any
	if err := json.Unmarshal([]byte(p.cairn("reconcile", "--rebuild", "--json")), &done); err != nil || done["written"] != 2.0 || done["commits"] != 0.0 {
		t.Errorf("rebuilt %v, %v", done, err)
	}
	wantKeys(t, done, "written", "commits", "skipped", "elapsed_ms")
	if _, err := os.Stat(copied); err != nil {
		t.Errorf("the orphan was touched: %v", err)
	}
	if err := os.Remove(copied); err != nil {
		t.Fatal(err)
	}
	p.wantAgreement()

	if out := p.cairn("archive", "verify"); !strings.Contains(out, "intact") {
		t.Errorf("verify says %s", out)
	}
	packs := filepath.Join(p.archive(), ".git", "objects", "pack")
	if err := os.Rename(packs, packs+"-aside"); err != nil {
		t.Fatal(err)
	}
	var verified []struct{ OK bool }
	e := p.run(p.command("archive", "verify", "--json"), nil)
	if err := json.Unmarshal([]byte(e.stdout), &verified); err != nil || e.code != 1 || len(verified) != 1 || verified[0].OK {
		t.Errorf("verify of an archive without objects: exit %d, %s", e.code, e.stdout)
	}
	if e := p.run(p.command("reconcile", "--check"), nil); e.code != 2 || strings.Count(e.stderr, "\n") != 1 {
		t.Errorf("reconcile --check of an archive without objects: exit %d, %s%s", e.code, e.stdout, e.stderr)
	}
	if err := errors.Join(os.RemoveAll(packs), os.Rename(packs+"-aside", packs)); err != nil {
		t.Fatal(err)
	}
	p.wantAgreement()

	dry := p.cairn("reconcile", "--reindex", "--dry-run", "--json")
	if err := json.Unmarshal([]byte(dry), &done); err != nil || len(done["inserted"].(map[string]any)) != 0 {
		t.Errorf("a dry reindex: %s, %v", dry, err)
	}
	clear(done)
	if err := json.Unmarshal([]byte(p.cairn("reconcile", "--reindex", "--json")), &done); err != nil {
		t.Error(err)
	}
	wantKeys(t, done, "inserted", "conflicts", "unparseable", "not_recoverable")
}

func (p *posting) cairnGit(args ...string) string {
	p.t.Helper()
	out, err := p.git(args...)
	if err != nil {
		p.t.Fatalf("git %q: %v, %s", args, err, out)
	}
	return out
}

func wantKeys(t *testing.T, object map[string]any, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(object)); !slices.Equal(got, want) {
		t.Errorf("the keys are %q, want %q", got, want)
	}
}

func TestWithoutGitEverythingWorksAndTheArchiveWaits(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	p := newPosting(t)
	path := p.vars["PATH"]
	p.vars["PATH"] = filepath.Dir(p.program)
	server := p.dial("", nil)
	p.post("one")
	soon(t, "the server says why", func() bool { return strings.Contains(server.stderr.String(), "git is not installed") })
	if hits := server.rows("search", fields{"query": "x"}); len(hits) != 0 {
		t.Errorf("search answers %v", hits)
	}
	if err := server.Close(); err != nil || server.server.ProcessState.ExitCode() != 0 {
		t.Errorf("the server ended with %v, %v", server.server.ProcessState, err)
	}
	if e := p.run(p.command("archive", "sync"), nil); e.code != 1 || !strings.Contains(e.stderr, "git is not installed") {
		t.Errorf("archive sync: exit %d, %s", e.code, e.stderr)
	}
	p.vars["PATH"] = path
	again := p.connect("", nil)
	soon(t, "with git it catches up", func() bool {
		out, err := p.git("log", "--format=%B", "main")
		return err == nil && strings.Contains(out, "| one")
	})
	again.leave()
	p.wantAgreement()
}

// TestALostStoreIsMadeAgainFromItsArchiveByTheProgram rebuilds a lost store from its archive, and a
// lost archive from the store (mail §15.3).
func TestALostStoreIsMadeAgainFromItsArchiveByTheProgram(t *testing.T) {
	t.Parallel()
	p := newPosting(t)
	closed := p.open()
	last := p.post("one")
	p.cairn("archive", "sync")
	closed()
	for _, f := range mustGlob(t, p.db()+"*") {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	if out := p.cairn("reconcile", "--reindex"); !strings.Contains(out, "1  mail.message") || !strings.Contains(out, "not kept") {
		t.Errorf("reindex says\n%s", out)
	}
	p.cairn("archive", "sync")
	p.wantAgreement()
	p.open()
	if id := p.post("two"); id != last+1 {
		t.Errorf("the message after %d is %d", last, id)
	}
	if err := os.RemoveAll(filepath.Dir(p.archive())); err != nil {
		t.Fatal(err)
	}
	p.cairn("reconcile", "--rebuild")
	p.wantAgreement()
	if out := p.cairn("reconcile", "--rebuild"); !strings.HasPrefix(out, "wrote 0 files in 0 commits") {
		t.Errorf("rebuilding again: %s", out)
	}
}

func mustGlob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	return found
}
