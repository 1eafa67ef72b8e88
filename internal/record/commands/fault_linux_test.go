package commands_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestChangesAreAtomicOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("cairn", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := storetest.Open(t, store.Config{Path: filepath.Join(dir, "data", "cairn.db")})
	b := commands.New(s, record.Config{})
	stored := 0
	var err error
	for err == nil && stored < 100 {
		_, err = b.Create(t.Context(), record.CreateArgs{Caller: as("s"), Type: "t", Title: "t", Body: strings.Repeat("some words ", 10_000)})
		if err == nil {
			stored++
		}
	}
	wantError(t, "a full disk", err, fault.Unavailable, record.CodeUnavailable, `"cause":"disk_full"`)
	if !strings.Contains(hintOf(err), "free") {
		t.Errorf("hint %q", hintOf(err))
	}
	p, err := b.GetProject(t.Context(), record.GetProjectArgs{Caller: as("")})
	list, listErr := b.List(t.Context(), record.ListArgs{Caller: as("")})
	if err != nil || listErr != nil || int(p.Tick) != stored || len(list) != stored {
		t.Errorf("tick %d, %d records of %d stored: %v %v", p.Tick, len(list), stored, err, listErr)
	}
	if found, err := checked(t.Context(), s); err != nil || len(found) > 0 {
		t.Errorf("check: %v %q", err, found)
	}
}
