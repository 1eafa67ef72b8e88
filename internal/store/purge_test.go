package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// onDisk reports whether the store's file or a file next to it contains a text. It decrypts
// encrypted files.
func onDisk(t *testing.T, s *store.Store, text string) bool {
	t.Helper()
	files, err := filepath.Glob(s.Path() + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err == nil && (bytes.Contains(data, []byte(text)) || bytes.Contains(inside(t, data), []byte(text))) {
			return true
		}
	}
	return false
}

func TestBlankTakesTheDocumentsOfOneEntityAndTheChainHolds(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	doc := json.RawMessage(`{"secret":"xylophone"}`)
	for _, c := range []store.Change{
		{Stream: "a", Kind: "session", ID: "one", Op: store.OpPut, Doc: doc},
		{Stream: "a", Kind: "session", ID: "one", Op: store.OpPut, Doc: doc},
		{Stream: "a", Kind: "session", ID: "two", Op: store.OpPut, Doc: json.RawMessage(`{}`)},
		{Stream: "a", Kind: "project", ID: "one", Op: store.OpPut, Doc: json.RawMessage(`{}`)},
		{Stream: "b", Kind: "session", ID: "one", Op: store.OpPut, Doc: json.RawMessage(`{}`)},
	} {
		storetest.Append(t, s, c)
	}
	for _, want := range []int64{2, 0} {
		var n int64
		err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.Blank(ctx, "a", "session", "one")
			return err
		})
		if err != nil || n != want {
			t.Errorf("blanked %d, want %d (%v)", n, want, err)
		}
	}
	var left []string
	for _, c := range storetest.Changes(t, s) {
		left = append(left, fmt.Sprintf("%s/%s:%t,%t", c.Kind, c.ID, c.Doc != nil, c.DocHash != nil))
	}
	want := "session/one:false,true session/one:false,true session/two:true,true project/one:true,true session/one:true,true"
	if got := strings.Join(left, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if found, err := s.Check(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("check: %v %v", found, err)
	}
}

// A table and an index are filled in random order and rows are changed, so that pages are
// divided and contain copies.
func TestRewriteLeavesNothingOfDeletedAndOverwrittenRows(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.Exec(t, s, `CREATE TABLE texts (id INTEGER PRIMARY KEY, key TEXT, body TEXT)`)
	storetest.Exec(t, s, `CREATE INDEX texts_by_key ON texts (key)`)
	err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		for i := range 3000 {
			_, err := tx.Exec(ctx, `INSERT INTO texts (key, body) VALUES (?, ?)`,
				fmt.Sprintf("%08d/xylophone%d", rand.IntN(1e8), i%2), strings.Repeat("x", i%200)+"xylophone")
			if err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `UPDATE texts SET key = 'short' || id, body = 'nothing' WHERE id % 3 > 0`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, s, `DELETE FROM texts WHERE key LIKE '%xylophone%'`)
	if !onDisk(t, s, "xylophone") {
		t.Fatal("nothing is left to rewrite")
	}
	for range 2 {
		if err := s.Rewrite(t.Context()); err != nil {
			t.Fatal(err)
		}
		if onDisk(t, s, "xylophone") {
			t.Error("a deleted text is still on the disk")
		}
	}
	storetest.MustWrite(t, s, "after")
}

func TestRewriteReportsThatAReaderHoldsTheLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{Wait: 50 * time.Millisecond})
	storetest.MustWrite(t, s, "xylophone")
	err := s.Read(t.Context(), func(ctx context.Context, _ *store.Tx) error {
		storetest.ExpectCode(t, s.Rewrite(context.WithoutCancel(t.Context())), store.CodeHeld)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := s.Rewrite(t.Context()); err != nil {
		t.Errorf("after the reader has ended: %v", err)
	}
	storetest.ExpectIDs(t, s, "xylophone")
}

func TestShrinkReturnsFreePages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.Exec(t, s, `CREATE TABLE texts (id INTEGER PRIMARY KEY, body BLOB)`)
	storetest.Exec(t, s, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
		INSERT INTO texts (body) SELECT randomblob(4000) FROM n`)
	if err := s.Shrink(t.Context()); err != nil {
		t.Fatal(err)
	}
	full := fileSize(t, s.Path())
	storetest.Exec(t, s, `DELETE FROM texts WHERE id > 500`)
	if err := s.Shrink(t.Context()); err != nil {
		t.Fatal(err)
	}
	if size := fileSize(t, s.Path()); size > full/3 || fileSize(t, s.Path()+"-wal") != 0 {
		t.Errorf("the file has %d bytes of %d, the log %d", size, full, fileSize(t, s.Path()+"-wal"))
	}
	var used int64
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		used, err = tx.Used(ctx)
		return err
	})
	if err != nil || used != fileSize(t, s.Path()) {
		t.Errorf("used %d of %d bytes (%v)", used, fileSize(t, s.Path()), err)
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestOnlyAutomaticBackupsOfTheStoreAreRemoved(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.MustWrite(t, s, "kept")
	dir, base := filepath.Split(s.Path())
	stays := []string{dir + "notes.bak", filepath.Join(dir, "backups", "other.db"), s.Path()}
	goes := []string{s.Path() + ".bak", s.Path() + ".bak-3", s.Path() + ".bak-damaged-1-wal", s.Path() + "-salvage-1-merged", filepath.Join(dir, "backups", base+".2026-01-02")}
	if err := os.Mkdir(filepath.Join(dir, "backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range append(stays[:2:2], goes...) {
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{5, 0} {
		if n, err := s.RemoveBackups(); n != want || err != nil {
			t.Errorf("removed %d, want %d (%v)", n, want, err)
		}
	}
	for _, path := range stays {
		fileSize(t, path)
	}
	for _, path := range goes {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	storetest.ExpectIDs(t, s, "kept")
}
