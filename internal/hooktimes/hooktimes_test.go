package hooktimes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// read returns what Read returns, as text.
func read(t *testing.T, dir string, since time.Time) string {
	t.Helper()
	list, oldest, err := Read(dir, since)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, one := range list {
		all = append(all, fmt.Sprintf("%s %d up to %v", one.Event, one.Took.Count, one.Longest))
	}
	if !oldest.IsZero() {
		all = append(all, "since "+oldest.UTC().Format(time.DateTime))
	}
	return strings.Join(all, ", ")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func TestTheDurationsOfHooksAreReadByEventAndTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want(t, "nothing", read(t, dir, time.Time{}), "")
	at := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, event := range []string{"PostToolUse", "SessionStart", "PostToolUse", "Invented", "Stop"} {
		Add(dir, event, at.Add(time.Duration(i)*time.Hour), time.Duration(i+1)*time.Millisecond)
	}
	Add(dir, "Stop", at.Add(5*time.Hour), time.Hour)
	Add(dir, "Stop", at.Add(5*time.Hour), -time.Hour)
	const since = ", since 2027-01-02 03:04:05"
	want(t, "all", read(t, dir, time.Time{}), "SessionStart 1 up to 2ms, PostToolUse 2 up to 3ms, Stop 3 up to 16.777215s, other 1 up to 4ms"+since)
	want(t, "the last", read(t, dir, at.Add(2*time.Hour)), "PostToolUse 1 up to 3ms, Stop 3 up to 16.777215s, other 1 up to 4ms"+since)
	if info, err := os.Stat(filepath.Join(dir, fileName)); err != nil || info.Size() != 7*entrySize || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%+v %v", info, err)
	}
}

// tear appends what a hook leaves that is killed while it writes.
func tear(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, fileName), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
}

func TestTheFileStaysSmallAndATornEntryHidesNoOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for range maxEntries {
		Add(dir, "Stop", at, time.Millisecond)
	}
	tear(t, dir)
	Add(dir, "PostToolUse", at.Add(time.Hour), time.Millisecond) // into a new file
	tear(t, dir)
	Add(dir, "PostToolUse", at.Add(time.Hour), time.Millisecond)
	want(t, "both files", read(t, dir, time.Time{}), fmt.Sprintf("PostToolUse 2 up to 1ms, Stop %d up to 1ms, since 2027-01-02 03:04:05", maxEntries))
	if info, err := os.Stat(filepath.Join(dir, fileName)); err != nil || info.Size() != 3*entrySize {
		t.Errorf("%+v %v", info, err)
	}
}

func TestAHookWithoutADataDirectoryOrWithAFolderInPlaceOfTheFileGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	Add(filepath.Join(dir, "none"), "Stop", time.Now(), time.Millisecond)
	if err := os.Mkdir(filepath.Join(dir, fileName), 0o700); err != nil {
		t.Fatal(err)
	}
	Add(dir, "Stop", time.Now(), time.Millisecond)
	if _, _, err := Read(dir, time.Time{}); err == nil {
		t.Error("a folder was read")
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a data directory was made")
	}
}
