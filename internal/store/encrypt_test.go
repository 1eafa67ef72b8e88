package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/encryption"
	"cairn/internal/store/storetest"
)

// secretWord is in every row of these tests and must not be in any file afterwards.
const secretWord = "marzipan"

func keyOf(b byte) []byte { return bytes.Repeat([]byte{b}, store.KeySize) }

// plainOnly skips a test that is about plain stores.
func plainOnly(t *testing.T) {
	t.Helper()
	if storetest.Key() != nil {
		t.Skip("about plain stores")
	}
	t.Parallel()
}

// filled returns a plain store with rows, closed.
func filled(t testing.TB) (path string, want []string) {
	t.Helper()
	path = storetest.Path(t)
	s, err := store.Open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 200 {
		want = append(want, fmt.Sprintf("%s-%d-%s", secretWord, n, strings.Repeat("x", n)))
	}
	storetest.MustWrite(t, s, want...)
	storetest.Closed(t, s)
	return path, want
}

func encryptNow(t testing.TB, path string, key []byte) encryption.Report {
	t.Helper()
	done, err := encryption.Encrypt(t.Context(), encryption.Config{Path: path, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// expectNowhere fails the test if a file below dir contains a text.
func expectNowhere(t testing.TB, dir string, texts ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		found, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, text := range texts {
			if bytes.Contains(found, []byte(text)) {
				t.Errorf("%s contains %q", filepath.Base(path), text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// expectPrivate fails the test if other users can read a file in dir. It requires a
// umask that lets them by default, as most systems have.
func expectPrivate(t testing.TB, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", e.Name(), info.Mode().Perm())
		}
	}
}

func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestEncryptedStoreHoldsTheSameRowsAndNoFileTheirText(t *testing.T) {
	plainOnly(t)
	path, want := filled(t)
	dir := filepath.Dir(path)
	for _, name := range []string{"cairn.db.bak", "cairn.db.bak-2", "cairn.db.bak-damaged-3-wal", "cairn.db-salvage-4-merged"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(secretWord), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := storetest.Open(t, store.Config{Path: filepath.Join(dir, "mine.db")})
	done := encryptNow(t, path, keyOf(1))
	expectNowhere(t, dir, secretWord)
	if got := names(t, dir); !slices.Contains(got, "mine.db") || slices.ContainsFunc(got, func(n string) bool {
		return strings.Contains(n, ".bak") || strings.Contains(n, "-salvage-") || strings.Contains(n, "encrypt") || n == "cairn.db-wal"
	}) {
		t.Errorf("there is %q", got)
	}
	if len(done.Destroyed) != 4 || !slices.Equal(done.Left, []string{"mine.db"}) || done.Rows < 200 || done.Bytes == 0 {
		t.Errorf("the report is %+v", done)
	}
	storetest.Closed(t, other)

	s := storetest.Open(t, store.Config{Path: path, Key: keyOf(1)})
	storetest.ExpectIDs(t, s, want...)
	storetest.MustWrite(t, s, secretWord+"-after")
	expectNowhere(t, dir, secretWord) // the write-ahead log exists now
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Errorf("no write-ahead log to look at: %v", err)
	}
	storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: path, Key: keyOf(1), ReadOnly: true}), append(want, secretWord+"-after")...)
}

func TestWrongOrMissingKeyIsNeverDamageAndChangesNothing(t *testing.T) {
	plainOnly(t)
	path, want := filled(t)
	encryptNow(t, path, keyOf(1))
	holder := storetest.Open(t, store.Config{Path: path, Key: keyOf(1)})
	storetest.MustWrite(t, holder, "in the log")
	log := content(t, path+"-wal")
	for _, reading := range []bool{false, true} {
		_, err := store.Open(t.Context(), store.Config{Path: path, ReadOnly: reading})
		storetest.ExpectCode(t, err, store.CodeEncrypted)
		_, err = store.Open(t.Context(), store.Config{Path: path, Key: keyOf(2), ReadOnly: reading})
		storetest.ExpectCode(t, err, store.CodeKey)
		if f := fault.As(err); f.Kind != fault.Unavailable || !strings.Contains(f.Hint, "CAIRN_KEY") || !strings.Contains(f.Hint, "key_file") {
			t.Errorf("the fault is %v: %s", f.Kind, f.Hint)
		}
		_, err = store.Open(t.Context(), store.Config{Path: path, Key: []byte("short"), ReadOnly: reading})
		storetest.ExpectCode(t, err, store.CodeKey)
	}
	expectUnchanged(t, path+"-wal", log)
	storetest.ExpectIDs(t, holder, append(want, "in the log")...)
	if ok, err := store.KeyFits(path, keyOf(2)); ok || err != nil {
		t.Errorf("a wrong key fits: %v %v", ok, err)
	}
	if ok, err := store.KeyFits(path, keyOf(1)); !ok || err != nil {
		t.Errorf("the key does not fit: %v %v", ok, err)
	}
}

func TestDamageUnderTheRightKeyIsDamage(t *testing.T) {
	plainOnly(t)
	for name, at := range map[string]int64{"header": 0, "middle": 5 * 4096} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, _ := filled(t)
			encryptNow(t, path, keyOf(1))
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte("damage"), at); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			s, err := store.Open(t.Context(), store.Config{Path: path, Key: keyOf(1), ReadOnly: true})
			if err != nil {
				storetest.ExpectCode(t, err, store.CodeCorrupt)
				return
			}
			defer storetest.Closed(t, s)
			if found, err := s.Check(t.Context()); err == nil && len(found) == 0 {
				t.Error("the damage was not found")
			} else if err != nil {
				storetest.ExpectCode(t, err, store.CodeCorrupt)
			}
		})
	}
}

func TestCopyWithoutItsKeyCheckOpensWithItsKeyAndLosesNothing(t *testing.T) {
	plainOnly(t)
	path, want := filled(t)
	encryptNow(t, path, keyOf(1))
	s := storetest.Open(t, store.Config{Path: path, Key: keyOf(1)})
	storetest.MustWrite(t, s, "in the log")
	want = append(want, "in the log")
	copied := filepath.Join(t.TempDir(), "cairn.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := os.WriteFile(copied+suffix, content(t, path+suffix), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := store.Open(t.Context(), store.Config{Path: copied})
	storetest.ExpectCode(t, err, store.CodeCorrupt)
	_, err = store.Open(t.Context(), store.Config{Path: copied, Key: keyOf(2)})
	storetest.ExpectCode(t, err, store.CodeCorrupt)
	storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: copied, Key: keyOf(1)}), want...)
	if encrypted, err := encryption.Finish(t.Context(), copied, 0); !encrypted || err != nil {
		t.Errorf("the key check was not written again: %v", err)
	}
	// A key check of another store is replaced too.
	if err := os.WriteFile(copied+"-cipher", []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: copied, Key: keyOf(1)}), want...)
}

func TestCopyOfAnEncryptedStoreIsEncrypted(t *testing.T) {
	plainOnly(t)
	path, want := filled(t)
	encryptNow(t, path, keyOf(1))
	dir := t.TempDir()
	to := filepath.Join(dir, "copy.db")
	s := storetest.Open(t, store.Config{Path: path, Key: keyOf(1)})
	if err := s.CopyTo(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	expectNowhere(t, dir, secretWord)
	if err := s.CopyTo(t.Context(), to); fault.KindOf(err) != fault.Conflict {
		t.Errorf("copying over a file: %v", err)
	}
	storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: to, Key: keyOf(1)}), want...)
}

func TestPlainStoreRestoredOverAnEncryptedOneIsPlain(t *testing.T) {
	plainOnly(t)
	path, want := filled(t)
	backup := content(t, path)
	encryptNow(t, path, keyOf(1))
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	encrypted, err := encryption.Finish(t.Context(), path, 0)
	if encrypted || err != nil {
		t.Fatalf("it counts as encrypted: %v", err)
	}
	storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: path}), want...)
}

func TestEncryptRefusesWhatItCannotDo(t *testing.T) {
	plainOnly(t)
	path, want := filled(t)
	c := encryption.Config{Path: path, Key: keyOf(1), Wait: 10 * time.Millisecond}
	holder := child(t, "hold the lock", order{Path: path})
	holder.Expect(t, "held")
	_, err := encryption.Encrypt(t.Context(), c)
	storetest.ExpectCode(t, err, store.CodeInUse)
	holder.Send("go")
	if _, err := holder.Wait(t); err != nil {
		t.Fatal(err)
	}

	_, err = encryption.Encrypt(t.Context(), encryption.Config{Path: storetest.Path(t), Key: keyOf(1)})
	storetest.ExpectCode(t, err, store.CodeMissing)
	encryptNow(t, path, keyOf(1))
	_, err = encryption.Encrypt(t.Context(), c)
	storetest.ExpectCode(t, err, store.CodeEncrypted)
	storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: path, Key: keyOf(1)}), append(want, "held")...)
}

// Each step of the copying fails once. The store stays plain, other users can read no
// file, and no write-ahead log is left.
func TestFailedEncryptionLeavesThePlainStoreAndNoLog(t *testing.T) {
	plainOnly(t)
	for name, block := range map[string]string{
		"an old copy cannot be removed": "-encrypting", "a ready copy cannot be removed": "-encrypted", "the key check cannot be written": "-cipher",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, want := filled(t)
			if err := os.MkdirAll(filepath.Join(path+block, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := encryption.Encrypt(t.Context(), encryption.Config{Path: path, Key: keyOf(1)})
			if err == nil {
				t.Fatal("the encryption did not fail")
			}
			expectPrivate(t, filepath.Dir(path))
			if left := names(t, filepath.Dir(path)); slices.Contains(left, "cairn.db-wal") {
				t.Errorf("there is %q", left)
			}
			if err := os.RemoveAll(path + block); err != nil {
				t.Fatal(err)
			}
			storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: path}), want...)
		})
	}
}

func TestEncryptedStoreBehindALinkLeavesNoLog(t *testing.T) {
	plainOnly(t)
	path, want := filled(t)
	link := filepath.Join(t.TempDir(), "cairn.db")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	encryptNow(t, link, keyOf(1))
	expectPrivate(t, filepath.Dir(path))
	if left := names(t, filepath.Dir(path)); slices.Contains(left, "cairn.db-wal") {
		t.Errorf("there is %q", left)
	}
	storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: link, Key: keyOf(1)}), want...)
}

// openEither opens a store whether or not it is encrypted, like the façade.
func openEither(ctx context.Context, c store.Config, key []byte) (*store.Store, error) {
	s, err := store.Open(ctx, c)
	if !fault.HasCode(err, store.CodeEncrypted) {
		return s, err
	}
	encrypted, err := encryption.Finish(ctx, c.Path, c.Wait)
	if err != nil {
		return nil, err
	}
	if encrypted {
		c.Key = key
	}
	return store.Open(ctx, c)
}

// Two connections of one process read and write concurrently. SQLite alone reported
// damage here.
func TestReadersOfAnEncryptedLogNeverMeetAHalfWrittenBlock(t *testing.T) {
	plainOnly(t)
	s := storetest.Open(t, store.Config{Key: keyOf(1)})
	storetest.MustWrite(t, s, "first")
	reader := storetest.Open(t, store.Config{Path: s.Path(), Key: keyOf(1), ReadOnly: true})
	var done atomic.Bool
	failed := make(chan error, 3)
	for range cap(failed) {
		go func() {
			var err error
			for err == nil && !done.Load() {
				err = reader.Read(context.Background(), func(ctx context.Context, tx *store.Tx) error {
					head, err := tx.Head(ctx)
					if err == nil {
						_, err = tx.Changes(ctx, head-5, 5) // the writer is writing the newest changes
					}
					return err
				})
			}
			failed <- err
		}()
	}
	writes := 2000
	if testing.Short() { // the driver of encrypted stores is the same in every build
		writes = 500
	}
	if os.Getenv("CAIRN_SOAK") != "" {
		writes = 20_000
	}
	for n := range writes {
		if err := storetest.Write(t.Context(), s, store.Normal, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	done.Store(true)
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Errorf("a reader met %v", err)
		}
	}
}

// Everything that the parts use of SQLite works in an encrypted store, too.
func TestEncryptedStoreKnowsWhatThePartsUse(t *testing.T) {
	plainOnly(t)
	s := storetest.Open(t, store.Config{Key: keyOf(1)})
	storetest.Exec(t, s,
		`CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1)`,
		`INSERT INTO words (rowid, text) VALUES (1, 'alpha beta'), (2, 'beta gamma')`,
		`DELETE FROM words WHERE rowid = 1`,
		`CREATE TABLE pairs (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID`,
		`INSERT INTO pairs VALUES (1, 2), (3, 4)`,
	)
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for query, want := range map[string]string{
			`SELECT group_concat(rowid) FROM words WHERE words MATCH 'beta'`: "2",
			`SELECT bm25(words) < 0 FROM words WHERE words MATCH 'b*'`:       "1",
			`SELECT round(exp(1), 3)`:                                        "2.718",
			`SELECT sum(value) FROM json_each('[1,2,3]')`:                    "6",
			`SELECT json_extract('{"a":"b"}', '$.a')`:                        "b",
			`SELECT count(*) FROM pairs WHERE (a, b) > (1, 2)`:               "1",
		} {
			var got string
			if err := tx.Get(ctx, []any{&got}, query); err != nil || got != want {
				t.Errorf("%s gives %q, want %q: %v", query, got, want, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSuiteHoldsOverEncryptedStores runs the tests of the guarantees again with encrypted
// stores.
func TestSuiteHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t,
		"TestFileThatIsNotADatabaseIsRefusedAndUnchanged", "TestDamageIsReportedRefusesWritersAndIsUnchanged",
		"TestPathThatIsNotAFileIsRefused", "TestWritesOnAFullDiskAreAtomic", "TestStoreLockedPastTheWaitIsBusyAndThenWorks",
		"TestTimedOutCallersDoNotPileUp", "TestPathMayHoldAnyCharacter", "TestCheckpointShortensALongLog",
		"TestEightConcurrentWritingProcessesMeetNoError", "TestKillLosesNothingAcknowledgedAndKeepsNothingRefused",
		"TestSchemaIsTheGoldenOne", "TestNewerSchemaIsRefusedForWritingAndReading",
		"TestUnfinishedCreationIsCompleted", "TestCreationKilledAtAnyInstantIsCompletedByTheNext", "TestThirtyTwoFirstProcessesLoseNothing",
		"TestAnotherProgramsDatabaseIsRefusedAndUnchanged", "TestWriteAheadLogWithoutItsFileIsNotDestroyed",
		"TestCopyIsAStoreOfTheSameContent", "TestReadSeesOneSnapshotAndCannotWrite", "TestEndOfContextInterruptsAQueryAndKeepsTheConnection",
		"TestReadersThatLeaveAtAnyInstantAffectNoOther", "TestFullDiskInASharedCommitStoresNothingAndIsSurvived",
		"TestDurabilityIsAsRequestedByTheWrite", "TestConcurrentWritersShareCommitsAndOneErrorAffectsNoOther",
		"TestSalvageLosesNothingOutsideADamagedPage", "TestSalvageOfATruncatedFileKeepsTheRest", "TestSalvageWorksWithoutTheHeader",
		"TestSalvageOfARebuiltFileWithoutItsSchema", "TestSalvageIncludesTheLog", "TestSalvageReadsADamagedLogUpToTheDamage",
		"TestSalvageOfALogWithoutItsFile", "TestSalvageOfAFileThatIsNotAStoreCreatesAnEmptyOne", "TestSalvageLeavesIntactMissingNewerAndForeignStoresUnchanged",
		"TestSalvageOfAnOlderSchemaBringsItToTheNewest", "TestExamineChangesNoByte", "TestSalvageThroughALinkRepairsTheFileItLeadsTo",
		"TestSalvageUsesNoNumberTwice", "TestSalvageWhileAnotherProcessHasTheStoreOpenIsRefused",
		"TestKilledSalvageLeavesTheOldStoreOrTheNew",
		"TestRewriteLeavesNothingOfDeletedAndOverwrittenRows", "TestRewriteReportsThatAReaderHoldsTheLog", "TestShrinkReturnsFreePages",
		"TestOnlyAutomaticBackupsOfTheStoreAreRemoved", "TestBlankTakesTheDocumentsOfOneEntityAndTheChainHolds",
		"TestLogEqualsAModelOverAnySequence", "TestLongTextsAndNumbersAtTheirLimitsAreReadBack", "TestErrorInCommitReachesAllAndStoresNothing",
	)
}
