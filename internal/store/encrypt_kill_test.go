package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/encryption"
	"cairn/internal/store/storetest"
)

// recordUntilKilled writes row after row like hooks, opening the store for each.
func recordUntilKilled(o order) error {
	ctx := context.Background()
	for n := 0; ; n++ {
		s, err := openEither(ctx, store.Config{Path: o.Path, Role: store.Hook}, keyOf(1))
		if err == nil {
			err = errors.Join(acknowledged(ctx, s, store.Sync(n%2), fmt.Sprintf("%s-0-%d", o.Prefix, n), false), s.Close())
		}
		if err != nil && !fault.HasCode(err, store.CodeEncrypted) && !fault.HasCode(err, store.CodeBusy) {
			return err
		}
		for range 50_000 { // because a process takes some time to start
			runtime.Gosched()
		}
	}
}

// until waits until an encryption has reached or passed a phase, and then for a random
// moment.
func until(t *testing.T, path, phase string) {
	t.Helper()
	there := func(suffix string) bool {
		_, err := os.Stat(path + suffix)
		return err == nil
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); runtime.Gosched() {
		turned := !bytes.HasPrefix(content(t, path), []byte("SQLite"))
		reached := turned
		switch phase {
		case "end":
			reached = turned && !there("-encrypted")
		case "-encrypted":
			reached = turned || there("-encrypted")
		case "-encrypting":
			reached = turned || there("-encrypted") || there("-encrypting")
		case "-cipher":
			reached = there("-cipher")
		}
		if reached {
			for range rand.IntN(50_000) {
				runtime.Gosched()
			}
			return
		}
	}
	t.Fatalf("the encryption did not reach %q; there is %q", phase, names(t, filepath.Dir(path)))
}

// encryptUntilKilled encrypts until it is killed or done.
func encryptUntilKilled(o order) error {
	storetest.Tell("begin")
	for {
		_, err := encryption.Encrypt(context.Background(), encryption.Config{Path: o.Path, Key: keyOf(1)})
		if !fault.HasCode(err, store.CodeInUse) {
			return err
		}
	}
}

func TestEncryptKilledAtAnyInstantLeavesOneCompleteStore(t *testing.T) {
	plainOnly(t)
	plain, encrypted := 0, 0
	phases := []string{"-cipher", "-encrypting", "-encrypted", "header", "end"}
	for round := range max(rounds(10), len(phases)) {
		path, want := filled(t)
		hook := child(t, "record until killed", order{Path: path, Prefix: fmt.Sprint("h", round)})
		p := child(t, "encrypt until killed", order{Path: path})
		p.Expect(t, "begin")
		stored := map[string]bool{}
		for _, id := range want {
			stored[id] = true
		}
		until(t, path, phases[round%len(phases)])
		p.Kill()
		expectPrivate(t, filepath.Dir(path))
		readUntilKilled(t, hook, 1+rand.IntN(5), func(line string) { stored[strings.TrimPrefix(line, "stored ")] = true })
		s, err := openEither(t.Context(), store.Config{Path: path}, keyOf(1))
		if err != nil {
			t.Fatalf("round %d: %v; there is %q", round, err, names(t, filepath.Dir(path)))
		}
		expectAcknowledged(t, s, stored, nil)
		if found, err := s.Check(t.Context()); err != nil || len(found) > 0 {
			t.Fatalf("round %d: %v %q", round, err, found)
		}
		storetest.Closed(t, s)
		is, err := encryption.Finish(t.Context(), path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if is {
			encrypted++
			expectNowhere(t, filepath.Dir(path), secretWord)
		} else {
			plain++
			encryptNow(t, path, keyOf(1))
		}
		if got := names(t, filepath.Dir(path)); slices.ContainsFunc(got, func(n string) bool { return strings.Contains(n, "encrypt") }) {
			t.Errorf("round %d: leftovers %q", round, got)
		}
	}
	t.Logf("killed before the turn %d times, after it %d times", plain, encrypted)
}

// The states are created by hand, because a kill seldom hits the short ones.
func TestEveryStateThatAKillCanLeaveIsFinished(t *testing.T) {
	plainOnly(t)
	path, want := filled(t)
	before := content(t, path)
	encryptNow(t, path, keyOf(1))
	after, check := content(t, path), content(t, path+"-cipher")
	half := slices.Concat(after[:4096], before[4096:])
	for name, files := range map[string]map[string][]byte{
		"check written":     {"": before, "-cipher": check},
		"copy begun":        {"": before, "-cipher": check, "-encrypting": after[:5000]},
		"copy ready":        {"": before, "-cipher": check, "-encrypted": after},
		"room made":         {"": append(slices.Clone(before), make([]byte, 9000)...), "-cipher": check, "-encrypted": after},
		"header over":       {"": half, "-cipher": check, "-encrypted": after, "-wal": make([]byte, 40000)},
		"longer than copy":  {"": slices.Concat(half, []byte(secretWord), make([]byte, 9000)), "-cipher": check, "-encrypted": after},
		"all over":          {"": after, "-cipher": check, "-encrypted": after},
		"copies not yet":    {"": after, "-cipher": check, "-encrypted": after, ".bak-1": []byte(secretWord)},
		"file gone":         {"-cipher": check, "-encrypted": after},
		"leftover of a try": {"": after, "-cipher": check, "-encrypting": after[:5000]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "cairn.db")
			for suffix, text := range files {
				if err := os.WriteFile(path+suffix, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := openEither(t.Context(), store.Config{Path: path}, keyOf(1))
			if err != nil {
				t.Fatal(err)
			}
			storetest.ExpectIDs(t, s, want...)
			if found, err := s.Check(t.Context()); err != nil || len(found) > 0 {
				t.Errorf("%v %q", err, found)
			}
			storetest.Closed(t, s)
			if encrypted, err := encryption.Finish(t.Context(), path, 0); err != nil {
				t.Error(err)
			} else if encrypted {
				expectNowhere(t, dir, secretWord)
			}
			if _, err := os.Stat(path + "-encrypted"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the ready copy is still there: %v", err)
			}
		})
	}
}
