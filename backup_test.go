package cairn

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/archive/repository"
	"cairn/internal/copies"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/documents"
	"cairn/internal/mail/messages"
	"cairn/internal/observation"
	"cairn/internal/store"
)

// backedUp returns a home with mail and an archive of several commits, and a backup of it.
func backedUp(t *testing.T) (h home, file string) {
	t.Helper()
	h = correspondence(t, clockAt(1_770_000_000))
	r, err := repository.Open(t.Context(), filepath.Join(h.dir, "archive", "shop"), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"one\n", "two\n", "three\n"} {
		files := []repository.File{{Path: "messages/a.md", Content: []byte(text)}, {Path: "project.json", Content: []byte("{}\n")}}
		if _, err := r.WriteFiles(t.Context(), files); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Commit(t.Context(), files, "mail: "+text, time.Unix(1_770_000_000+int64(i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.RefreshIndex(t.Context()), r.Close()); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(h.dir, "archive", "ids.json"), `{"messages":500,"agents":9}`, 0o600)
	file = filepath.Join(t.TempDir(), "backup.tar.gz")
	h.backup(file)
	return h, file
}

func (h home) backup(file string) copies.BackupReport {
	h.t.Helper()
	r, err := h.Backup(context.Background(), copies.BackupArgs{File: file, Version: "test"})
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// recovered restores a backup over a home. It closes the home and opens it again.
func (h home) recovered(a copies.RestoreArgs) (home, copies.Restored, error) {
	h.t.Helper()
	if err := h.Close(); err != nil {
		h.t.Fatal(err)
	}
	config := h.Config
	config.Wait = 50 * time.Millisecond
	r, err := RestoreBackup(h.t.Context(), config, a)
	h.Cairn = opened(h.t, h.Config)
	return h, r, err
}

func tree(t *testing.T, dir string) (text string) {
	t.Helper()
	for _, args := range [][]string{{"fsck", "--strict"}, {"log", "--all", "--format=%H %s"}, {"status", "--porcelain"}, {"ls-tree", "-r", "HEAD"}} {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		text += string(out)
	}
	return text
}

func TestABackupBringsBackStoreMailAndArchive(t *testing.T) {
	t.Parallel()
	h, file := backedUp(t)
	before, files := h.export(""), tree(t, filepath.Join(h.dir, "archive", "shop"))
	for name, target := range map[string]home{"elsewhere": newHome(t, h.now, ""), "in place": h} {
		target, r, err := target.recovered(copies.RestoreArgs{File: file})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		target.sound()
		if again := target.export(""); !slices.Equal(body(again), body(before)) {
			t.Errorf("%s: the restored store differs\n%s", name, firstDifference(before, again))
		}
		if got := tree(t, filepath.Join(target.dir, "archive", "shop")); got != files {
			t.Errorf("%s: the archive is\n%s\nwant\n%s", name, got, files)
		}
		if want := map[string]int{"elsewhere": 0, "in place": 2}[name]; len(r.Moved) != want || r.Archives != 1 {
			t.Errorf("%s: %+v", name, r)
		}
		for _, dir := range r.Moved {
			if !isThere(dir) {
				t.Errorf("%s: %s is not there", name, dir)
			}
		}
		sent, err := target.mailService().SendMessage(t.Context(), mail.Caller{Owner: true}, messages.SendArgs{
			ProjectKey: "shop", SenderName: "GreenLake", To: []string{"BlueDog"}, Subject: "again",
		})
		if err != nil || sent.Deliveries[0].Payload.ID != 100_004 {
			t.Errorf("%s: %v, the next message is %+v", name, err, sent)
		}
	}
}

// TestNumbersGoOnAboveAllThatWereSeen checks that new numbers are larger than those of the
// backup, of the present store and of the archives.
func TestNumbersGoOnAboveAllThatWereSeen(t *testing.T) {
	t.Parallel()
	h, file := backedUp(t)
	put(t, filepath.Join(h.dir, "archive", "ids.json"), `{"messages":300000}`, 0o600)
	s, err := h.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		return documents.RaiseNumbers(ctx, tx, map[string]int64{"agents": 700_000})
	})
	if err != nil {
		t.Fatal(err)
	}
	h, _, err = h.recovered(copies.RestoreArgs{File: file})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = h.Store(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		got, err := tx.Numbers(ctx)
		want := map[string]int64{"mail_messages": 300_000, "mail_agents": 700_001, "mail_reservations": 100_002, "mail_projects": 100_001, "mail_contacts": 100_001}
		for table, n := range want {
			if got[table] != n {
				t.Errorf("%s goes on above %d, want %d", table, got[table], n)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEqualStatesMakeEqualBackups checks this for different storage forms of the archive's
// objects.
func TestEqualStatesMakeEqualBackups(t *testing.T) {
	t.Parallel()
	h, file := backedUp(t)
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again.tar.gz")
	dir := filepath.Join(h.dir, "archive", "shop")
	for _, change := range [][]string{nil, {"repack", "-a", "-d", "-q"}, {"repack", "-a", "-d", "-f", "-q", "--depth=3", "--window=3"}, {"commit-graph", "write"}} {
		if change != nil {
			if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, change...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		h.backup(again)
		second, err := os.ReadFile(again)
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("after %v the backup differs (%v)", change, err)
		}
	}
}

func TestABackupOfAnEncryptedStoreStaysSoAndNeedsItsKey(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	now := clockAt(1_770_000_000)
	h := newHome(t, now, hex.EncodeToString(key))
	h.mustRestore(correspondence(t, now).export(""))
	before := h.export("")
	file, again := filepath.Join(t.TempDir(), "a.tar.gz"), filepath.Join(t.TempDir(), "b.tar.gz")
	if r := h.backup(file); !r.Encrypted {
		t.Errorf("%+v", r)
	}
	h.backup(again)
	a, errA := os.ReadFile(file)
	b, errB := os.ReadFile(again)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Error("two backups of an encrypted store differ")
	}
	if text := databaseIn(t, a); bytes.Contains(text, []byte("SQLite format")) || bytes.Contains(text, []byte("GreenLake")) {
		t.Error("the copy is plain")
	}
	plain := newHome(t, now, "")
	if v, err := plain.Backups().Verify(t.Context(), file); err != nil || !v.OK || v.Content {
		t.Errorf("without the key: %v, %+v", err, v)
	}
	if _, _, err := plain.recovered(copies.RestoreArgs{File: file}); !fault.HasCode(err, store.CodeKey) {
		t.Errorf("restored without the key: %v", err)
	}
	same := newHome(t, now, hex.EncodeToString(key))
	same, _, err := same.recovered(copies.RestoreArgs{File: file})
	if err != nil {
		t.Fatal(err)
	}
	same.sound()
	if got := same.export(""); !slices.Equal(body(got), body(before)) {
		t.Error("the restored store differs")
	}
	fresh := newHome(t, now, "")
	fresh.Config.Key, fresh.Config.DB = hex.EncodeToString(key), filepath.Join(t.TempDir(), "cairn.db")
	fresh.Cairn = opened(t, fresh.Config)
	if fresh, _, err = fresh.recovered(copies.RestoreArgs{File: file}); err != nil {
		t.Fatal(err)
	}
	fresh.sound()
	withPlain := newHome(t, now, "")
	withPlain.event(startOf(withPlain.dir))
	withPlain.Config.Key = hex.EncodeToString(key)
	if _, _, err := withPlain.recovered(copies.RestoreArgs{File: file, Force: true}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("over a plain store: %v", err)
	}
}

func startOf(dir string) observation.Event {
	return observation.Event{Kind: observation.SessionStart, Session: "s1", Cwd: dir, Source: "SessionStart", Text: "startup"}
}

// TestADamagedBackupIsNamedAndChangesNothing changes each part of a backup.
func TestADamagedBackupIsNamedAndChangesNothing(t *testing.T) {
	t.Parallel()
	h, file := backedUp(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string][]byte{
		"empty": {}, "text": []byte("hello"), "half": whole[:len(whole)/2], "all but the end": whole[:len(whole)-9],
		"one bit": flipped(whole, len(whole)/2), "the last": flipped(whole, len(whole)-3), "twice": append(slices.Clone(whole), whole...),
	} {
		path := filepath.Join(t.TempDir(), "broken.tar.gz")
		put(t, path, string(broken), 0o600)
		v, err := h.Backups().Verify(t.Context(), path)
		if err != nil || v.OK || v.Problem == "" {
			t.Errorf("%s: %v, %+v", name, err, v)
		}
		before := h.head()
		var rerr error
		if h, _, rerr = h.recovered(copies.RestoreArgs{File: path, Force: true}); !fault.HasCode(rerr, copies.CodeBackup) {
			t.Errorf("%s was restored: %v", name, rerr)
		}
		if h.head() != before || !isThere(filepath.Join(h.dir, "archive", "shop")) {
			t.Errorf("%s changed something", name)
		}
	}
	h.sound()
}

func flipped(text []byte, at int) []byte {
	out := slices.Clone(text)
	out[at] ^= 16
	return out
}

func TestARestoreWaitsForNobodyWhoHasTheStoreOpen(t *testing.T) {
	t.Parallel()
	h, file := backedUp(t)
	config := h.Config
	config.Wait = 50 * time.Millisecond
	h.event(startOf(h.dir))
	if _, err := RestoreBackup(t.Context(), config, copies.RestoreArgs{File: file}); !fault.HasCode(err, copies.CodeLater) {
		t.Errorf("over a store that has gone on: %v", err)
	}
	if r, err := RestoreBackup(t.Context(), config, copies.RestoreArgs{File: file, DryRun: true}); err != nil || r.Later == 0 || len(r.Moved) > 0 {
		t.Errorf("a dry run: %v, %+v", err, r)
	}
	h.sound()
}

// TestARestoreThatWasKilledBeforeTheArchiveIsCompleted checks that the next command that
// uses the archive completes the restore.
func TestARestoreThatWasKilledBeforeTheArchiveIsCompleted(t *testing.T) {
	t.Parallel()
	h, file := backedUp(t)
	h, r, err := h.recovered(copies.RestoreArgs{File: file})
	if err != nil {
		t.Fatal(err)
	}
	stamp := r.Moved[0][strings.LastIndexByte(r.Moved[0], '-')+1:]
	place := filepath.Join(h.dir, "archive")
	// The states between the two renames and before the first.
	for _, undo := range []func() error{
		func() error { return os.Rename(place, place+".restore-"+stamp) },
		func() error {
			return errors.Join(os.Rename(place, place+".restore-"+stamp), os.Rename(place+".backup-"+stamp, place))
		},
	} {
		if err := undo(); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(place+".restore-99", "x"), "of a restore that replaced nothing", 0o600)
		if err := h.FinishRestore(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !isThere(filepath.Join(place, "shop", ".git")) || isThere(place+".restore-"+stamp) || !isThere(place+".restore-99") {
			t.Error("the archive was not put in its place")
		}
	}
}

// databaseIn returns the store in a backup.
func databaseIn(t testing.TB, backup []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(backup))
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != "cairn.db" {
			continue
		}
		text, err := io.ReadAll(in)
		if err != nil || len(text) == 0 {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		return text
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
