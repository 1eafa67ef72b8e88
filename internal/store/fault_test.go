package store_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/storetest"

	"github.com/gofrs/flock"
)

func content(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func expectUnchanged(t testing.TB, path string, before []byte) {
	t.Helper()
	if !bytes.Equal(content(t, path), before) {
		t.Errorf("%s was altered", filepath.Base(path))
	}
}

// populated creates a store of some hundred pages and closes it.
func populated(t testing.TB) (path string) {
	t.Helper()
	path = storetest.Path(t)
	s, err := open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			for m := range 200 {
				if err := storetest.Note(ctx, tx, fmt.Sprintf("%d-%d-%s", n, m, strings.Repeat("x", 400))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	storetest.Closed(t, s)
	return path
}

func TestFileThatIsNotADatabaseIsRefusedAndUnchanged(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"short": "hello", "long": strings.Repeat("no database ", 1000)} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, reading := range []bool{false, true} {
			_, err := open(t.Context(), store.Config{Path: path, ReadOnly: reading})
			storetest.ExpectCode(t, err, store.CodeCorrupt)
			if fault.KindOf(err) != fault.Internal {
				t.Errorf("%s: kind %v", name, fault.KindOf(err))
			}
		}
		expectUnchanged(t, path, []byte(text))
	}
}

func TestDamageIsReportedRefusesWritersAndIsUnchanged(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"middle overwritten": func(b []byte) []byte {
			for i := len(b) / 4; i < 3*len(b)/4; i++ {
				b[i] = 0xa5
			}
			return b
		},
		"all but the first page overwritten": func(b []byte) []byte {
			for i := 4096; i < len(b); i++ {
				b[i] = 0x5a
			}
			return b
		},
		"schema overwritten": func(b []byte) []byte {
			for i := 100; i < 4096; i++ {
				b[i] = 0xa5
			}
			return b
		},
		"cut in half": func(b []byte) []byte { return b[:len(b)/2/4096*4096] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := populated(t)
			broken := damage(content(t, path))
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := open(t.Context(), store.Config{Path: path})
			if err == nil {
				err = s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					_, err := tx.Changes(ctx, 0, 1<<30)
					return err
				})
				storetest.ExpectCode(t, storetest.Write(t.Context(), s, store.Full, "new"), store.CodeCorrupt)
				if found, err := s.Check(t.Context()); err == nil && len(found) == 0 {
					t.Error("the check has found nothing")
				}
				storetest.Closed(t, s)
			}
			storetest.ExpectCode(t, err, store.CodeCorrupt)
			expectUnchanged(t, path, broken)
		})
	}
}

func TestPathThatIsNotAFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(file, "cairn.db")} {
		for _, reading := range []bool{false, true} {
			_, err := open(t.Context(), store.Config{Path: path, ReadOnly: reading})
			storetest.ExpectCode(t, err, store.CodeReadOnly)
		}
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) != 1 {
		t.Errorf("the folder now holds %v, %v", found, err)
	}
}

func TestWritesOnAFullDiskAreAtomic(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.MustWrite(t, s, "before")
	limitPages(t, s, 20)
	err := s.Write(t.Context(), store.Full, then("half", big))
	storetest.ExpectCode(t, err, store.CodeFull)
	if f := fault.As(err); f.Kind != fault.Unavailable || f.Message != "disk full" || f.Hint == "" {
		t.Errorf("got %+v", f)
	}
	storetest.ExpectIDs(t, s, "before")
	storetest.MustWrite(t, s, "after")
	if err := s.Write(t.Context(), store.Full, big); err != nil {
		t.Errorf("with space again: %v", err)
	}
	storetest.ExpectIDs(t, s, "before", "after", "big")
}

func TestStoreLockedPastTheWaitIsBusyAndThenWorks(t *testing.T) {
	t.Parallel()
	const wait = 40 * time.Millisecond
	s := storetest.Open(t, store.Config{Wait: wait})
	storetest.MustWrite(t, s, "a")
	expectBusy := func() {
		t.Helper()
		begin := time.Now()
		err := storetest.Write(t.Context(), s, store.Full, "refused")
		storetest.ExpectCode(t, err, store.CodeBusy)
		if f := fault.As(err); f.Kind != fault.Unavailable || f.Message != "database is locked" {
			t.Errorf("got %+v", f)
		}
		if took := time.Since(begin); took < wait {
			t.Errorf("it has waited %v only", took)
		}
		if got := storetest.IDs(t, s); !slices.Contains(got, "a") {
			t.Errorf("readers see %q", got)
		}
	}
	db := storetest.Raw(t, s.Path()) // a plain SQLite program
	storetest.RawExec(t, db, "BEGIN IMMEDIATE")
	expectBusy()
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	ran := false
	go func() {
		left <- s.Write(ctx, store.Full, func(context.Context, *store.Tx) error { ran = true; return nil })
	}()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) || ran {
		t.Errorf("a caller that left got %v, its write ran: %v", err, ran)
	}
	storetest.RawExec(t, db, "ROLLBACK")
	expectFreeLine(t, s)
	storetest.MustWrite(t, s, "b")

	holder := child(t, "hold the lock", order{Path: s.Path()}) // another cairn process
	holder.Expect(t, "held")
	expectBusy()
	holder.Send("go")
	if _, err := holder.Wait(t); err != nil {
		t.Fatal(err)
	}
	storetest.MustWrite(t, s, "c")
	storetest.ExpectIDs(t, s, "a", "b", "held", "c")

	holder = child(t, "hold the lock", order{Path: s.Path()})
	holder.Expect(t, "held")
	expectBusy()
	holder.Kill()
	storetest.MustWrite(t, s, "d")
	storetest.ExpectIDs(t, s, "a", "b", "held", "c", "d")
}

func holdLock(o order, in *bufio.Reader) error {
	ctx := context.Background()
	s, err := open(ctx, store.Config{Path: o.Path})
	if err != nil {
		return err
	}
	err = s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		storetest.Tell("held")
		storetest.Hear(in)
		return storetest.Note(ctx, tx, "held")
	})
	return errors.Join(err, s.Close())
}

// expectFreeLine fails the test unless another process can get the writers' lock.
func expectFreeLine(t *testing.T, s *store.Store) {
	t.Helper()
	other, got := flock.New(s.Path()+"-lock"), make(chan error, 1)
	go func() { got <- errors.Join(other.Lock(), other.Unlock()) }()
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the line is blocked by a process that does not write")
	}
}

// Callers that repeatedly time out while another process writes must not pile up.
func TestTimedOutCallersDoNotPileUp(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	holder := child(t, "hold the lock", order{Path: s.Path()})
	holder.Expect(t, "held")
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Microsecond)
		if err := storetest.Write(ctx, s, store.Normal, "never"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	patient := make(chan error)
	go func() { patient <- storetest.Write(t.Context(), s, store.Normal, "patient") }()
	holder.Send("go")
	if _, err := holder.Wait(t); err != nil {
		t.Fatal(err)
	}
	if err := <-patient; err != nil {
		t.Errorf("the patient caller got %v", err)
	}
	storetest.ExpectIDs(t, s, "held", "patient")

	holder = child(t, "hold the lock", order{Path: s.Path()})
	holder.Expect(t, "held")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := storetest.Write(ctx, s, store.Normal, "never"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	holder.Send("go")
	if _, err := holder.Wait(t); err != nil {
		t.Fatal(err)
	}
	expectFreeLine(t, s) // although no caller here needed it when it was granted
}

func TestPathMayHoldAnyCharacter(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"with space", "100%", "%41", "what?", "a#b", "a&b=c;d", "ünï cødé ☃", "'quoted\"", "file:x", "back\\slash", "a:b", "?mode=memory", "-wal", "*[x]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), name)
			path := filepath.Join(dir, name+".db")
			s := storetest.Open(t, store.Config{Path: path})
			storetest.MustWrite(t, s, "a")
			storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: path, ReadOnly: true}), "a")
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if !strings.HasPrefix(e.Name(), name+".db") {
					t.Errorf("a stray file %q", e.Name())
				}
			}
			if s.Path() != path {
				t.Errorf("the path is %q", s.Path())
			}
		})
	}
	path := "/" + storetest.Path(t) // the first folder must not be treated as a host
	storetest.MustWrite(t, storetest.Open(t, store.Config{Path: path}), "a")
}

func TestRelativePathWorks(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"cairn.db", filepath.Join("sub", "x:y.db"), "a:b.db"} {
		s, err := open(t.Context(), store.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		storetest.MustWrite(t, s, "a")
		storetest.Closed(t, s)
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestCheckpointShortensALongLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{Role: store.Hook}) // a hook never checkpoints
	for range 6 {
		if err := s.Write(t.Context(), store.Normal, big); err != nil {
			t.Fatal(err)
		}
	}
	size := func() int64 {
		info, err := os.Stat(s.Path())
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if before := size(); before > 1<<20 {
		t.Errorf("a hook has checkpointed: the file has %d bytes", before)
	}
	if err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := size(); after < 6<<20 {
		t.Errorf("after the checkpoint the file has %d bytes", after)
	}
}

// The last process that closes a store deletes its write-ahead log, perhaps while another
// process examines it.
func TestFileThatIsDeletedDuringExaminationCountsAsMissing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cairn.db")
	flicker := make(chan error, 1)
	go func() {
		var err error
		for n := 0; n < 2500 && err == nil; n++ {
			err = errors.Join(os.WriteFile(path, []byte("SQLite format 3\x00"), 0o600), os.Remove(path))
		}
		flicker <- err
	}()
	for {
		select {
		case err := <-flicker:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
		if _, err := store.KeyFits(path, make([]byte, store.KeySize)); err != nil {
			t.Fatal(err, <-flicker)
		}
	}
}
