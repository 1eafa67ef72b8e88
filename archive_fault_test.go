package cairn

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/archive"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/documents"
	"cairn/internal/mail/messages"
	"cairn/internal/store"
)

const patience = 60 * time.Second

// subjects returns the first lines of all commits of a project's archive, oldest first.
func (m *mailed) subjects(project string) []string {
	m.t.Helper()
	return strings.Split(m.git(project, "log", "--reverse", "--format=%s", "main"), "\n")
}

// archived reports whether main contains a message with this subject, in any number of
// places.
func (m *mailed) archived(project, subject string) bool {
	out, err := m.tryGit(project, "ls-tree", "-r", "--name-only", "main")
	return err == nil && strings.Contains(out, "__"+subject+"__")
}

func TestAFullVolumePausesTheArchiveAndNothingElse(t *testing.T) {
	t.Parallel()
	m := newMailed(t)
	m.register("shop", "GreenLake", "BlueDog")
	settings := filepath.Join(m.dir, "config.toml")
	if err := os.WriteFile(settings, []byte("[disk]\ncritical_mb = 1000000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := &mailed{home: home{Cairn: opened(t, m.Config), t: t, dir: m.dir}, office: m.office, log: &notedLog{}}
	stop := full.follow()
	full.send("shop", messages.SendArgs{To: []string{"BlueDog"}, Subject: "full"})
	within(t, patience, "what is withheld counts", func() bool { return full.metrics().NeedsReindex >= 4 })
	if got := full.metrics(); got.WriteErrors+got.CommitErrors > 0 || got.Level != archive.LevelCritical {
		t.Errorf("a pause counts as an error: %+v", got)
	}
	stop()
	if m.archived("shop", "full") || !strings.Contains(full.log.String(), "level=critical") {
		t.Errorf("it archived on a full volume, or says nothing: %s", full.log)
	}
	m.follow()
	within(t, patience, "with room it catches up", func() bool { return m.archived("shop", "full") && m.metrics().NeedsReindex == 0 })
}

func TestTheProbeCountsWhatIsMissingUntilItIsRebuilt(t *testing.T) {
	t.Parallel()
	m := newMailed(t)
	m.populate("shop")
	m.sync()
	if err := os.RemoveAll(filepath.Join(m.archiveOf("shop"), "messages")); err != nil {
		t.Fatal(err)
	}
	stop := m.follow()
	within(t, patience, "the probe counts", func() bool { return m.metrics().NeedsReindex == 4 })
	if text := m.log.String(); !strings.Contains(text, "cairn reconcile --rebuild") {
		t.Errorf("the log says %s", text)
	}
	stop()
	if found := m.checked(); len(found.Missing) != 5 { // and a digest
		t.Errorf("missing: %v", found.Missing)
	}
	if done := m.rebuild(); done.Written != 5 || done.Commits != 0 {
		t.Errorf("rebuilt: %+v", done)
	}
	m.agrees("shop")
	m.follow()
	m.send("shop", messages.SendArgs{To: []string{"BlueDog"}, Subject: "later"})
	within(t, patience, "nothing is missing any more", func() bool { return m.archived("shop", "later") && m.metrics().NeedsReindex == 0 })
}

func TestAChangeThatCannotBeRenderedIsSetAsideAlone(t *testing.T) {
	t.Parallel()
	m := newMailed(t)
	m.register("shop", "GreenLake", "BlueDog")
	spoil := func(kind, id, doc string) {
		t.Helper()
		err := m.written().Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
			uid, err := documents.UIDOf(ctx, tx, "shop")
			if err == nil {
				_, err = tx.Append(ctx, store.Change{Project: "shop", Stream: mail.Stream(uid), Kind: kind, ID: id, Op: store.OpPut, Doc: json.RawMessage(doc)})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	contact := func(path string) string {
		var uid string
		err := m.written().Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			uid, err = documents.UIDOf(ctx, tx, "shop")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"from": "GreenLake", "from_project_uid": %q, "to": "BlueDog", "to_project_uid": %q, "archive_path": %q}`, uid, uid, path)
	}
	spoil(mail.KindAgent, "GreenLake", `{"name": 7}`)
	spoil(mail.KindContact, "x", contact("../../outside.json"))
	m.send("shop", messages.SendArgs{To: []string{"BlueDog"}, Subject: "behind"})
	m.sync()
	if !m.archived("shop", "behind") {
		t.Error("what comes behind is held up")
	}
	found := m.checked()
	if found.Consistent || len(found.SetAside) != 2 || found.SetAside[0].Attempts != 1 || !strings.Contains(found.SetAside[1].Error, "outside.json") {
		t.Errorf("set aside: %+v", found.SetAside)
	}
	stop := m.follow() // the new follower tries again
	within(t, patience, "they are tried again", func() bool {
		s := must(m.ArchiveStatus(t.Context(), ArchiveArgs{}))[0]
		return len(s.Aside) == 2 && s.Aside[0].Attempts == 2 && m.metrics().NeedsReindex == 2
	})
	stop()
	c, key := m.caller("shop")
	if _, err := m.office.RegisterAgent(t.Context(), c, agents.RegisterArgs{ProjectKey: key, Program: "codex", Model: "m", Name: "GreenLake"}); err != nil {
		t.Fatal(err)
	}
	// Later documents replace the corrupted ones.
	spoil(mail.KindContact, "x", contact("contacts/x.json"))
	m.sync()
	m.rebuild()
	if found := m.checked(); len(found.SetAside) != 0 || len(found.Orphans) != 1 {
		t.Errorf("still: %+v %+v", found.SetAside, found.Orphans)
	}
	if _, err := os.Stat(filepath.Join(m.dir, "outside.json")); err == nil {
		t.Error("a file was written outside of the archive")
	}
}

// TestTwoServersAndASyncArchiveEverythingOnce runs two followers, one of which waits, and a
// command that archives concurrently.
func TestTwoServersAndASyncArchiveEverythingOnce(t *testing.T) {
	t.Parallel()
	m := newMailed(t)
	m.register("shop", "GreenLake", "BlueDog")
	second := &mailed{home: home{Cairn: opened(t, m.Config), t: t, dir: m.dir}, log: &notedLog{}}
	third := &mailed{home: home{Cairn: opened(t, m.Config), t: t, dir: m.dir}, log: &notedLog{}}
	firstStop, secondStop := m.follow(), second.follow()
	var syncing sync.WaitGroup
	done := make(chan struct{})
	syncing.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if got, err := third.SyncArchive(t.Context(), ArchiveArgs{}); err != nil || len(got.Failed) > 0 {
				t.Errorf("sync: %+v, %v", got, err)
				return
			}
		}
	})
	for i := range 120 {
		m.send("shop", messages.SendArgs{To: []string{"BlueDog"}, Subject: fmt.Sprint("step-", i), ThreadID: "t"})
		if i == 60 {
			firstStop() // the other one takes over
		}
	}
	within(t, patience, "all is archived", func() bool { return m.archived("shop", "step-119") })
	close(done)
	syncing.Wait()
	secondStop()
	m.agrees("shop")
	told := map[string]int{}
	for line := range strings.Lines(m.git("shop", "log", "--format=%B", "main")) {
		if strings.HasPrefix(line, "mail: ") {
			told[line]++
		}
	}
	for line, n := range told {
		if n != 1 {
			t.Errorf("%d commits say %q", n, line)
		}
	}
	if text := m.log.String() + second.log.String(); text != "" {
		t.Errorf("the log says %s", text)
	}
}

func TestAStopArchivesWhatWasWrittenLast(t *testing.T) {
	t.Parallel()
	m := newMailed(t)
	m.register("shop", "GreenLake", "BlueDog")
	stop := m.follow()
	for i := range 150 {
		m.send("shop", messages.SendArgs{To: []string{"BlueDog"}, Subject: fmt.Sprint("step-", i)})
	}
	stop()
	m.agrees("shop")
	commits := m.subjects("shop")
	if len(commits) > 75 || !slices.ContainsFunc(commits, func(s string) bool { return strings.HasPrefix(s, "mail: ") && strings.HasSuffix(s, ")") }) {
		t.Errorf("150 messages took %d commits: %q", len(commits), commits)
	}
	if out := m.git("shop", "status", "--porcelain"); out != "" {
		t.Errorf("git status says\n%s", out)
	}
	err := m.written().Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		var behind, commits int
		if err := tx.Get(ctx, []any{&behind}, `SELECT count(*) FROM mail_messages m WHERE NOT EXISTS
			(SELECT 1 FROM archive_commits c WHERE m.seq BETWEEN c.first_seq AND c.last_seq)`); err != nil {
			return err
		}
		err := tx.Get(ctx, []any{&commits}, `SELECT count(*) FROM archive_commits`)
		if behind > 0 || commits == 0 {
			t.Errorf("of %d messages it is not known which of %d commits they are in", behind, commits)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNumbersOfTheArchiveAreNeverGivenAgain(t *testing.T) {
	t.Parallel()
	m := newMailed(t)
	m.register("shop", "GreenLake", "BlueDog")
	m.send("shop", messages.SendArgs{To: []string{"BlueDog"}, Subject: "one"})
	m.sync()
	path := filepath.Join(m.ArchiveDir(), "ids.json")
	var ids map[string]int64
	if err := json.Unmarshal(must(os.ReadFile(path)), &ids); err != nil || ids["messages"] != 1 || ids["agents"] != 2 {
		t.Fatalf("ids.json holds %v, %v", ids, err)
	}
	ids["messages"] = 4711 // as if another store had been restored over this one
	if err := os.WriteFile(path, must(json.Marshal(ids)), 0o600); err != nil {
		t.Fatal(err)
	}
	m.follow()
	within(t, patience, "numbers go on after those of the archive", func() bool { return numbersOf(t, m.written())["messages"] == 4711 })
	if id := m.send("shop", messages.SendArgs{To: []string{"BlueDog"}, Subject: "two"}); id != 4712 {
		t.Errorf("the next message is %d", id)
	}
}
