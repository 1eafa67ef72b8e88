package locks

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestAFileLockIsHeldByOneAtATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := LockFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := LockFile(ended, path); !errors.Is(err, context.Canceled) {
		t.Errorf("a held lock: %v", err)
	}
	got := make(chan error)
	go func() {
		again, err := LockFile(t.Context(), path)
		if err == nil {
			err = again()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("the lock was given twice: %v", err)
	default:
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if _, err := LockFile(t.Context(), filepath.Join(path, "below")); !errors.As(err, new(*fs.PathError)) {
		t.Errorf("a lock that cannot be made: %v", err)
	}
}
