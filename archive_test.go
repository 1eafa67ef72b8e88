package cairn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/archive"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/documents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/store"
)

// mailed is a home in which agents exchange mail.
type mailed struct {
	home
	office *service.Mail
	log    *notedLog
}

// notedLog is a log that tests can read.
type notedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *notedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *notedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newMailed(t testing.TB) *mailed {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	now := &atomic.Int64{}
	now.Store(1_772_357_405)
	m := &mailed{home: newHome(t, now, ""), log: &notedLog{}}
	m.office = service.New(m.written(), mail.Config{NoContactEnforcement: true})
	return m
}

func (m *mailed) written() *store.Store {
	m.t.Helper()
	s, err := m.Store(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// caller returns an agent as caller in a project's directory, which it creates.
func (m *mailed) caller(name string) (mail.Caller, string) {
	m.t.Helper()
	dir := filepath.Join(m.dir, "work", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.t.Fatal(err)
	}
	place, err := project.Locate(dir, m.dir)
	if err != nil {
		m.t.Fatal(err)
	}
	return mail.Caller{Owner: true, Place: place}, dir
}

func (m *mailed) register(project string, names ...string) {
	m.t.Helper()
	c, key := m.caller(project)
	for _, name := range names {
		if _, err := m.office.RegisterAgent(m.t.Context(), c, agents.RegisterArgs{ProjectKey: key, Program: "claude-code", Model: "m", Name: name}); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *mailed) send(project string, a messages.SendArgs) int64 {
	m.t.Helper()
	id, err := m.trySend(project, a)
	if err != nil {
		m.t.Fatal(err)
	}
	return id
}

func (m *mailed) trySend(project string, a messages.SendArgs) (int64, error) {
	c, key := m.caller(project)
	a.ProjectKey = key
	if a.SenderName == "" {
		a.SenderName = "GreenLake"
	}
	if a.Body == "" {
		a.Body = "Some words.\n"
	}
	sent, err := m.office.SendMessage(m.t.Context(), c, a)
	if err != nil {
		return 0, err
	}
	return sent.Deliveries[0].Payload.ID, nil
}

// populate fills a project with mail of every kind: threads, blind copies, replies,
// contacts, reservations, attachments, states.
func (m *mailed) populate(name string) {
	m.t.Helper()
	ctx := m.t.Context()
	m.register(name, "GreenLake", "BlueDog", "RedFox", "QuietOwl")
	c, key := m.caller(name)
	if err := os.WriteFile(filepath.Join(key, "notes.txt"), []byte("attached\n"), 0o600); err != nil {
		m.t.Fatal(err)
	}
	first := m.send(name, messages.SendArgs{
		To: []string{"BlueDog"}, CC: []string{"RedFox"}, BCC: []string{"QuietOwl"}, Subject: "Build plan", Body: "---\r\n---json\n{}\n", ThreadID: "FEAT-1",
		AckRequired: true, AttachmentPaths: []string{"notes.txt"},
	})
	m.send(name, messages.SendArgs{BCC: []string{"QuietOwl"}, Subject: "../../con: é\u0301", Importance: "urgent"})
	_, err := m.office.ReplyMessage(ctx, c, messages.ReplyArgs{ProjectKey: key, MessageID: first, SenderName: "BlueDog", Body: "Yes."})
	do := func(_ any, failed error) { err = errors.Join(err, failed) }
	do(m.office.AcknowledgeMessage(ctx, c, key, "QuietOwl", first))
	do(m.office.MarkMessageRead(ctx, c, key, "BlueDog", first))
	do(m.office.RequestContact(ctx, c, messages.RequestArgs{ProjectKey: key, FromAgent: "BlueDog", ToAgent: "RedFox", Reason: "x"}))
	do(m.office.SetContactPolicy(ctx, c, key, "RedFox", "contacts_only"))
	granted, failed := m.office.FileReservationPaths(ctx, c, reservations.ReserveArgs{ProjectKey: key, AgentName: "BlueDog", Paths: []string{"src/**", "a b.go"}, Reason: "r"})
	do(granted, failed)
	do(m.office.ReleaseFileReservations(ctx, c, reservations.ReleaseArgs{ProjectKey: key, AgentName: "BlueDog", Paths: []string{"src/**"}}))
	if err != nil {
		m.t.Fatal(err)
	}
}

// follow archives in the background until stop is called.
func (m *mailed) follow() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.FollowArchive(ctx, slog.New(slog.NewTextHandler(m.log, nil))) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				m.t.Errorf("following: %v", err)
			}
		})
	}
	m.t.Cleanup(stop)
	return stop
}

// within waits until a condition holds, for a limited time.
func within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

func (m *mailed) archiveOf(project string) string { return filepath.Join(m.ArchiveDir(), project) }

// git runs plain git in a project's archive.
func (m *mailed) git(project string, args ...string) string {
	m.t.Helper()
	out, err := m.tryGit(project, args...)
	if err != nil {
		m.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

func (m *mailed) tryGit(project string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = m.archiveOf(project)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CEILING_DIRECTORIES="+m.ArchiveDir(),
		"GIT_AUTHOR_NAME=Ana", "GIT_AUTHOR_EMAIL=ana@example.org", "GIT_COMMITTER_NAME=Ana", "GIT_COMMITTER_EMAIL=ana@example.org")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m *mailed) sync() archive.SyncResult {
	m.t.Helper()
	done, err := m.SyncArchive(m.t.Context(), ArchiveArgs{})
	if err != nil || len(done.Failed) > 0 {
		m.t.Fatalf("sync: %v, %v", done.Failed, err)
	}
	return done
}

func (m *mailed) rebuild() archive.Rebuilt {
	m.t.Helper()
	done, err := m.RebuildArchive(m.t.Context(), ArchiveArgs{})
	if err != nil {
		m.t.Fatal(err)
	}
	return done
}

func (m *mailed) checked() ArchiveCheck {
	m.t.Helper()
	found, err := m.CheckArchive(m.t.Context(), ArchiveArgs{})
	if err != nil {
		m.t.Fatal(err)
	}
	return found
}

// agrees expects that store and archive agree, that everything is archived, and that the
// Git repositories are intact.
func (m *mailed) agrees(projects ...string) {
	m.t.Helper()
	found := m.checked()
	if !found.Consistent || found.Pending > 0 {
		text, _ := json.MarshalIndent(found, "", " ")
		m.t.Errorf("store and archive differ: %s", text)
	}
	for _, p := range projects {
		if out, err := m.tryGit(p, "fsck", "--strict", "--full", "--no-dangling"); err != nil || strings.TrimSpace(out) != "" {
			m.t.Errorf("git fsck of %s: %v %s", p, err, out)
		}
	}
}

func (m *mailed) metrics() archive.Metrics {
	m.t.Helper()
	got, err := m.ArchiveMetrics(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return got
}

// archivedDocuments returns all entities of all projects of a store, as JSON by kind and
// key.
func archivedDocuments(t testing.TB, s *store.Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		ids, err := documents.Projects(ctx, tx)
		for _, id := range ids {
			uid, failed := documents.UIDOf(ctx, tx, id)
			err = errors.Join(err, failed, documents.RenderAll(ctx, tx, uid, func(d mail.Document, files []documents.File) error {
				if d == nil {
					for _, f := range files {
						out[id+" digest "+f.Path] = string(f.Content)
					}
					return nil
				}
				text, err := json.Marshal(d)
				out[id+" "+d.Kind()+" "+d.Key()] = string(text)
				return err
			}))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatAgentsWriteIsInGitAMomentLater(t *testing.T) {
	t.Parallel()
	m := newMailed(t)
	m.register("shop", "GreenLake", "BlueDog")
	stop := m.follow()
	within(t, 20*time.Second, "the profiles are archived", func() bool {
		out, err := m.tryGit("shop", "ls-tree", "-r", "--name-only", "main")
		return err == nil && strings.Contains(out, "agents/BlueDog/profile.json")
	})
	id := m.send("shop", messages.SendArgs{To: []string{"BlueDog"}, Subject: "Build plan"})
	began := time.Now()
	within(t, 20*time.Second, "the message is archived", func() bool {
		out, err := m.tryGit("shop", "log", "--format=%s", "main")
		return err == nil && strings.Contains(out, "mail: GreenLake -> BlueDog | Build plan")
	})
	t.Logf("in Git after %s", time.Since(began))
	stop()
	tree := m.git("shop", "ls-tree", "-r", "--name-only", "main")
	for _, folder := range []string{"messages/", "agents/GreenLake/outbox/", "agents/BlueDog/inbox/"} {
		if !strings.Contains(tree, fmt.Sprintf("%s2026/03/2026-03-01T09-30-05Z__build-plan__%d.md", folder, id)) {
			t.Errorf("no copy in %s:\n%s", folder, tree)
		}
	}
	if out := m.git("shop", "status", "--porcelain"); out != "" {
		t.Errorf("after a clean stop git status says\n%s", out)
	}
	m.agrees("shop")
	if text := m.log.String(); text != "" {
		t.Errorf("the log says %s", text)
	}
}

func TestADeletedArchiveIsRebuiltAndASecondRebuildWritesNothing(t *testing.T) {
	t.Parallel()
	m := newMailed(t)
	m.populate("shop")
	m.populate("con")
	m.sync()
	m.agrees("shop", "con-p")
	before := archivedDocuments(t, m.written())
	if err := os.RemoveAll(m.ArchiveDir()); err != nil {
		t.Fatal(err)
	}
	if found := m.checked(); found.Consistent || len(found.Missing) == 0 || found.ArchiveMessages != 0 || found.DBMessages != 8 {
		t.Errorf("a deleted archive is consistent: %+v", found)
	}
	dry, err := m.RebuildArchive(t.Context(), ArchiveArgs{DryRun: true})
	if err != nil || dry.Written == 0 || dry.Commits != 0 {
		t.Errorf("a dry run says %+v, %v", dry, err)
	}
	if _, err := os.Stat(m.archiveOf("shop")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dry run made something: %v", err)
	}
	first := m.rebuild()
	m.agrees("shop", "con-p")
	second := m.rebuild()
	if first.Written != dry.Written || first.Commits == 0 || second.Written != 0 || second.Commits != 0 || second.Skipped != first.Written+first.Skipped {
		t.Errorf("rebuilding wrote %+v, then %+v; the dry run said %+v", first, second, dry)
	}
	if after := archivedDocuments(t, m.written()); !reflect.DeepEqual(before, after) {
		t.Error("rebuilding has changed the store")
	}
}

func TestADeletedStoreIsRestoredFromItsArchive(t *testing.T) {
	t.Parallel()
	m := newMailed(t)
	m.populate("shop")
	m.populate("bakery")
	m.sync()
	before := archivedDocuments(t, m.written())
	numbers := numbersOf(t, m.written())
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, f := range must(filepath.Glob(m.Path() + "*")) {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	again := &mailed{home: m.home, log: &notedLog{}}
	again.Cairn = opened(t, m.Config)
	done, err := again.ReindexArchive(t.Context(), ArchiveArgs{})
	if err != nil || len(done.Conflicts)+len(done.Unparseable) > 0 || len(done.NotRecoverable) != 3 {
		t.Fatalf("reindexing: %+v, %v", done, err)
	}
	after := archivedDocuments(t, again.written())
	for key := range before {
		if before[key] != after[key] {
			t.Errorf("%s was\n%s\nand is\n%s", key, before[key], after[key])
		}
	}
	if len(before) != len(after) {
		t.Errorf("%d entities were, %d are: %v", len(before), len(after), slices.Sorted(maps.Keys(after)))
	}
	again.office = service.New(again.written(), mail.Config{NoContactEnforcement: true})
	if got := numbersOf(t, again.written()); !reflect.DeepEqual(got, numbers) {
		t.Errorf("the highest numbers are %v, want %v", got, numbers)
	}
	if id := again.send("shop", messages.SendArgs{To: []string{"BlueDog"}, Subject: "Next"}); id != numbers["messages"]+1 {
		t.Errorf("the next message is %d after %d", id, numbers["messages"])
	}
	commits := again.git("bakery", "rev-list", "--count", "main")
	again.sync()
	again.agrees("shop", "bakery")
	if now := again.git("bakery", "rev-list", "--count", "main"); now != commits {
		t.Errorf("the same content was committed again: %s commits, then %s", commits, now)
	}
	twice, err := again.ReindexArchive(t.Context(), ArchiveArgs{})
	if err != nil || len(twice.Inserted) > 0 || len(twice.Conflicts) > 0 {
		t.Errorf("reindexing again: %+v, %v", twice, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func numbersOf(t testing.TB, s *store.Store) (out map[string]int64) {
	t.Helper()
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = documents.Numbers(ctx, tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestABlindCopyIsNamedNowhereOutsideItsFolder searches all commits, trees and blobs (mail
// §15.5).
func TestABlindCopyIsNamedNowhereOutsideItsFolder(t *testing.T) {
	t.Parallel()
	m := newMailed(t)
	m.register("shop", "GreenLake", "BlueDog", "QuietOwl")
	m.sync()
	for i := range 5 {
		m.send("shop", messages.SendArgs{To: []string{"BlueDog"}, BCC: []string{"QuietOwl"}, Subject: fmt.Sprint("step ", i), ThreadID: "t1"})
		m.send("shop", messages.SendArgs{BCC: []string{"QuietOwl"}, Subject: "alone"})
		if i%2 == 0 {
			m.sync()
		}
	}
	m.sync()
	m.agrees("shop")
	registered := 0
	for line := range strings.Lines(m.git("shop", "log", "--format=%B", "main")) {
		if strings.TrimSpace(line) == "agent: profile QuietOwl" {
			registered++
		} else if strings.Contains(line, "QuietOwl") {
			t.Errorf("a commit says %q", line)
		}
	}
	if registered != 1 {
		t.Errorf("the registration is told %d times", registered)
	}
	blobs := 0
	for entry := range strings.Lines(m.git("shop", "log", "--format=", "--raw", "--no-abbrev", "-m", "--root", "main")) {
		f := strings.Fields(entry) // :mode mode blob blob letter path
		if len(f) < 6 || strings.HasPrefix(f[5], "agents/QuietOwl/") {
			continue
		}
		blobs++
		if text := m.git("shop", "cat-file", "blob", f[3]); strings.Contains(text, "QuietOwl") || strings.Contains(f[5], "QuietOwl") {
			t.Errorf("%s names QuietOwl:\n%s", f[5], text)
		}
	}
	if blobs < 20 {
		t.Errorf("only %d blobs were searched", blobs)
	}
	err := filepath.WalkDir(m.ArchiveDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "agents/QuietOwl/") || strings.Contains(path, "/.git/") {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "QuietOwl") {
			t.Errorf("%s names QuietOwl", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	m.git("shop", "show", "main:agents/QuietOwl/profile.json")
}

// TestRecordsAreArchivedAndRestoredBesideMail covers projects with and without mail. The
// records must move with a project that is merged into another one.
func TestRecordsAreArchivedAndRestoredBesideMail(t *testing.T) {
	t.Parallel()
	m := newMailed(t)
	m.populate("shop")
	for _, id := range []string{"shop", "mill", "nul"} {
		m.decide(id, "Which queue do we use?", "And which "+id+"?")
	}
	stop := m.follow()
	m.decide("shop", "Later")
	within(t, patience, "records are archived", func() bool {
		out, err := m.tryGit("shop", "ls-tree", "-r", "--name-only", "main", "records/")
		return err == nil && strings.Contains(out, "records/R003-later.md") && strings.Contains(out, "records/history/")
	})
	stop()
	m.agrees("shop", "mill", "nul-p")
	if text := m.git("mill", "show", "main:records/R001-which-queue-do-we-use.md"); !strings.Contains(text, "Which queue do we use?") {
		t.Errorf("the page is\n%s", text)
	}
	before := m.export("")
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, f := range must(filepath.Glob(m.Path() + "*")) {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	again := &mailed{home: m.home, log: &notedLog{}}
	again.Cairn = opened(t, m.Config)
	done, err := again.ReindexArchive(t.Context(), ArchiveArgs{})
	if err != nil || len(done.Conflicts)+len(done.Unparseable) > 0 || done.Inserted[record.KindRecord] != 7 {
		t.Fatalf("reindexing: %+v, %v", done, err)
	}
	again.sync()
	again.agrees("shop", "mill", "nul-p")
	if after := again.export(""); recordLines(before) != recordLines(after) {
		t.Errorf("the records were\n%s\nand are\n%s", recordLines(before), recordLines(after))
	}
	again.decide("mill", "Third")
	again.sync()
	again.git("mill", "show", "main:records/R003-third.md")

	again.office = service.New(again.written(), mail.Config{NoContactEnforcement: true})
	again.register("bakery", "GreenLake", "BlueDog")
	again.sync()
	stop = again.follow()
	if err := again.Merge(t.Context(), "mill", "bakery"); err != nil {
		t.Fatal(err)
	}
	within(t, patience, "merged records are in the other archive", func() bool {
		_, err := again.tryGit("bakery", "show", "main:records/R003-third.md")
		return err == nil
	})
	stop()
	again.agrees("bakery")
}

// recordLines returns the lines of an export that describe records.
func recordLines(export []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(export)) {
		if strings.Contains(line, `"kind":"record`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// decide creates records in a project.
func (m *mailed) decide(id string, titles ...string) {
	m.t.Helper()
	for _, title := range titles {
		_, err := m.Records().Create(m.t.Context(), record.CreateArgs{
			Caller: record.Caller{Project: id, SessionID: "s-" + id, Ancestors: []project.Process{}}, Type: "question", Title: title, Summary: "Why?", Body: "Words.\n",
		})
		if err != nil {
			m.t.Fatal(err)
		}
	}
}

func TestSettingsOfTheArchiveAreChecked(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]string{
		"[archive]\nwindow_ms = 0\nshards = 64\nprobe_messages = 0\nstale_lock_seconds = 1\n[disk]\nwarning_mb = 0\ncritical_mb = 0\nfatal_mb = 0\n": "",
		"[archive]\nwindow_ms = -1\n":         "line 2: archive.window_ms",
		"[archive]\nshards = 0\n":             "line 2: archive.shards",
		"[archive]\nprobe_messages = -5\n":    "line 2: archive.probe_messages",
		"[archive]\nstale_lock_seconds = 0\n": "line 2: archive.stale_lock_seconds",
		"[disk]\nfatal_mb = 1\nwarning_mb=-1": "line 3: disk.warning_mb",
		"[archive]\nshards = \"many\"\n":      "config.toml",
		"[disk]\ncritical_mb = 1073741824":    "",
		"[disk]\ncritical_mb = 1073741825":    "line 2: disk.critical_mb must be from 0 to 1073741824",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Open(Config{Dir: dir, Home: dir})
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v, want %q", text, err, wrong)
		}
		if err == nil {
			if a := c.archiver(nil, nil); strings.Contains(text, "shards = 64") && (a.Window >= 0 || a.Shards != 64 || a.Probe >= 0 || a.Stale != time.Second || a.Space.Warning >= 0) {
				t.Errorf("%q comes to %+v", text, a.Config)
			}
		}
	}
}
