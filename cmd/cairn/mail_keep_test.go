package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/project"
)

// letters writes mail in the repository's project: n messages, each with an attachment and
// a reservation. The recipient has read every second message.
func (h *home) letters(n int) {
	h.t.Helper()
	h.put(filepath.Join("shop", "plan.txt"), []byte("what comes first"))
	h.opened(func(ctx context.Context, c *cairn.Cairn) error {
		s, err := c.Store(ctx)
		if err != nil {
			return err
		}
		o, by := service.New(s, mail.Config{}), mail.Caller{Owner: true, Place: project.Location{Home: h.dir}}
		for _, name := range []string{"GreenLake", "BlueDog"} {
			if _, err := o.RegisterAgent(ctx, by, agents.RegisterArgs{ProjectKey: h.repo, Program: "codex", Model: "m", Name: name}); err != nil {
				return err
			}
		}
		for i := range n {
			sent, err := o.SendMessage(ctx, by, messages.SendArgs{
				ProjectKey: h.repo, SenderName: "GreenLake", To: []string{"BlueDog"}, Subject: fmt.Sprintf("letter %d", i),
				Body: strings.Repeat(fmt.Sprintf("paragraph %d. ", i), 20), ThreadID: fmt.Sprintf("FEAT-%d", i%7), AttachmentPaths: []string{"plan.txt"},
			})
			if err != nil {
				return err
			}
			if i%2 == 0 {
				_, err = o.MarkMessageRead(ctx, by, h.repo, "BlueDog", sent.Deliveries[0].Payload.ID)
			}
			_, rerr := o.FileReservationPaths(ctx, by, reservations.ReserveArgs{ProjectKey: h.repo, AgentName: "BlueDog", Paths: []string{fmt.Sprintf("src/%d/**", i)}})
			if err := errors.Join(err, rerr); err != nil {
				return err
			}
		}
		return nil
	})
}

// mailLines returns the lines of mail in an export of everything.
func (h *home) mailLines() (out []string) {
	h.t.Helper()
	for line := range strings.Lines(h.cairn("export", "--all")) {
		if strings.HasPrefix(line, `{"kind":"mail.`) {
			out = append(out, line)
		}
	}
	return out
}

// TestSalvageBringsMailBackFromItsOtherCopy damages pages of rows and of the change log.
// Both contain the same mail, so the loss of a page of either loses only attachments.
func TestSalvageBringsMailBackFromItsOtherCopy(t *testing.T) {
	t.Parallel()
	source := newHome(t)
	source.recorded(source.shell("t1", "make"))
	source.letters(40)
	want := source.mailLines()
	file := source.storeFile()
	var pages []int
	for n := 1; n < len(file)/pageSize; n++ {
		page := file[n*pageSize : (n+1)*pageSize]
		if bytes.Contains(page, []byte("paragraph ")) || bytes.Contains(page, []byte("GreenLake")) || bytes.Contains(page, []byte("FEAT-")) || bytes.Contains(page, []byte("src/")) {
			pages = append(pages, n)
		}
	}
	if len(pages) < 10 {
		t.Fatalf("%d pages hold mail", len(pages))
	}
	rounds := often(6, 4)
	if soaking() {
		rounds = len(pages)
	}
	for range rounds {
		n := pages[rand.IntN(len(pages))]
		if soaking() {
			n, pages = pages[0], pages[1:]
		}
		broken := bytes.Clone(file)
		clear(broken[n*pageSize : (n+1)*pageSize])
		h := newHome(t)
		h.putStore(broken)
		h.salvage(broken)
		if e := h.run(h.command("doctor", "--deep"), nil); e.code != 0 && strings.Contains(e.stdout, "problem  content") {
			t.Errorf("page %d: %s", n+1, e.stdout)
		}
		got := h.mailLines()
		missing := map[string]bool{}
		for _, line := range want {
			missing[line] = true
		}
		for _, line := range got {
			delete(missing, line)
		}
		for line := range missing {
			t.Errorf("page %d: lost or altered: %s", n+1, line)
		}
		h.letters(1)
		h.check()
	}
}

// TestARestoreThatIsKilledLeavesTheOldStoreOrTheNew kills a restore at random instants.
func TestARestoreThatIsKilledLeavesTheOldStoreOrTheNew(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("t1", "make first"))
	h.letters(5)
	backup := filepath.Join(h.dir, "backup.tar.gz")
	h.cairn("backup", backup)
	h.recorded(h.shell("t2", "make second"))
	present := h.storeFile()
	began := time.Now()
	h.cairn("restore", "--force", backup)
	typical := time.Since(began)
	old, restored, killed := 0, 0, 0
	for range often(25, 10) {
		for name := range h.files() {
			if strings.HasPrefix(filepath.Base(name), "cairn.db") {
				if err := os.Remove(filepath.Join(h.dataDir(), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
		}
		h.putStore(present)
		cmd := h.command("restore", "--force", backup)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(rand.Int64N(int64(typical*5/4))), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		if timer.Stop(); err != nil {
			killed++
		}
		h.check()
		switch rows := strings.Join(h.rows(`SELECT content FROM observations ORDER BY id`), " "); {
		case strings.Contains(rows, "make second"):
			old++
		case strings.Contains(rows, "make first"):
			restored++
		default:
			t.Fatalf("the store holds %q", rows)
		}
		if len(h.mailLines()) != 1+2+1+5+3+5 { // project, agents, attachment, messages, deliveries, reservations
			t.Errorf("%d lines of mail", len(h.mailLines()))
		}
	}
	h.cairn("restore", "--force", backup)
	h.check()
	t.Logf("killed %d; %d old, %d restored", killed, old, restored)
	if killed == 0 {
		t.Error("no restore was killed before it ended")
	}
}

// TestARestoreIsRefusedWhileAServerHasTheStoreOpen also checks that the restore succeeds
// after the server has ended.
func TestARestoreIsRefusedWhileAServerHasTheStoreOpen(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.recorded(h.shell("t1", "make first"))
	backup := filepath.Join(h.dir, "backup.tar.gz")
	h.cairn("backup", backup)
	c := h.dial("", nil)
	c.rows("search", fields{"query": "first"})
	h.fails("restore", h.run(h.command("restore", "--force", backup), nil), 2, "another process has the store open", "agents' sessions")
	for name := range h.files() {
		if strings.Contains(name, ".backup-") || strings.Contains(name, "-restore-") {
			t.Errorf("%s was left", name)
		}
	}
	if err := c.Close(); err != nil {
		t.Logf("the server: %v", err)
	}
	h.cairn("restore", "--force", backup)
	h.check()
}
