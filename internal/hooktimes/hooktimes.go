// Package hooktimes keeps how long the last hooks took, in a small file next to the store.
// A hook knows its duration only after its transaction, so the store cannot contain it.
//
// The file has eight bytes for each hook: the time of its end in Unix seconds, then the number of
// its event in the upper eight bits and its duration in microseconds in the others, both
// little-endian. It contains no text. A file of 64 Ki entries is renamed and a new one begun, so
// the last 64 to 128 thousand hooks are known.
package hooktimes

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cairn/internal/measure"
	"cairn/internal/regular"
)

const (
	fileName  = "hook-times"
	oldSuffix = ".1"

	entrySize  = 8
	maxEntries = 64 << 10
	maxMicros  = 1<<24 - 1 // 16.8 s; a longer duration counts as this one
)

// events returns the names of the known events. Their positions are stored, so names are only
// added, at the end.
func events() []string {
	return []string{
		"other", "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop",
		"PreCompact", "PostCompact", "Notification", "SessionEnd",
	}
}

// Add appends the duration of a hook that ends at a time to the file in a data directory. It
// does nothing if that is not possible, because no hook may fail for a figure.
func Add(dir, event string, end time.Time, took time.Duration) {
	path, torn := filepath.Join(dir, fileName), int64(0)
	switch info, err := os.Stat(path); {
	case err != nil && !errors.Is(err, fs.ErrNotExist), err == nil && !info.Mode().IsRegular():
		return // opening a FIFO could block
	case err == nil && info.Size() >= maxEntries*entrySize:
		if os.Rename(path, path+oldSuffix) != nil {
			return
		}
	case err == nil:
		torn = info.Size() % entrySize // of a hook that was killed while it wrote
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	micros := uint32(min(max(took.Microseconds(), 0), maxMicros))
	var entry [entrySize]byte
	binary.LittleEndian.PutUint32(entry[:], uint32(end.Unix()))
	binary.LittleEndian.PutUint32(entry[4:], uint32(max(slices.Index(events(), event), 0))<<24|micros)
	_, _ = f.Write(append(make([]byte, (entrySize-torn)%entrySize, 2*entrySize), entry[:]...))
}

// Times are the durations of the hooks of one event.
type Times struct {
	Event   string
	Took    measure.Distribution
	Longest time.Duration
}

// Read returns the durations of the hooks that ended from a time on, by event in a fixed order,
// and the time of the oldest known hook. Events without a hook are missing. Without a file the
// list is empty and the time zero.
//
// Errors: those of reading an existing file.
func Read(dir string, since time.Time) (list []Times, oldest time.Time, err error) {
	var data []byte
	for _, name := range [...]string{fileName + oldSuffix, fileName} {
		part, err := regular.Read(filepath.Join(dir, name), 2*maxEntries*entrySize)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, oldest, err
		}
		data = append(data, part[:len(part)-len(part)%entrySize]...)
	}
	var took [256]measure.Histogram
	var longest [256]time.Duration
	known := events()
	for ; len(data) >= entrySize; data = data[entrySize:] {
		end := time.Unix(int64(binary.LittleEndian.Uint32(data)), 0)
		rest := binary.LittleEndian.Uint32(data[4:])
		event, d := int(rest>>24), time.Duration(rest&maxMicros)*time.Microsecond
		if event >= len(known) || end.Year() < firstYear {
			continue // torn
		}
		if oldest.IsZero() || end.Before(oldest) {
			oldest = end
		}
		if end.Before(since) {
			continue
		}
		took[event].Add(d)
		longest[event] = max(longest[event], d)
	}
	for i, name := range append(known[1:], known[0]) {
		at := (i + 1) % len(known)
		if t := (Times{name, took[at].Read(), longest[at]}); t.Took.Count > 0 {
			list = append(list, t)
		}
	}
	return list, oldest, nil
}

const firstYear = 2026 // no cairn has written the file before
