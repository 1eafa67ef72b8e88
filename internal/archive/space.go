package archive

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Level says how full the volumes are (mail §10.4).
type Level string

// The levels of disk pressure.
const (
	LevelOK       Level = "ok"
	LevelWarning  Level = "warning"
	LevelCritical Level = "critical" // the archive pauses
	LevelFatal    Level = "fatal"    // and nothing new is to be taken
)

// Space says how much must be free on the volumes of the store and of the archive,
// in MiB; 0 for the defaults 500, 100 and 10, negative for none.
type Space struct{ Warning, Critical, Fatal int64 }

func (s *Space) defaults() {
	def(&s.Warning, 500)
	def(&s.Critical, 100)
	def(&s.Fatal, 10)
}

// level is that of so many free bytes.
func (s Space) level(free int64) Level {
	switch mib := free >> 20; {
	case mib < s.Fatal:
		return LevelFatal
	case mib < s.Critical:
		return LevelCritical
	case mib < s.Warning:
		return LevelWarning
	}
	return LevelOK
}

// Level looks at the volumes of some paths, of which some may not be there yet,
// and tells the level of the fullest; where that cannot be found out it is LevelOK.
// free is in bytes, -1 if unknown.
func (s Space) Level(paths ...string) (level Level, free int64) {
	s.defaults()
	free = -1
	for _, path := range paths {
		v, err := store.VolumeOf(existing(path))
		if err == nil && (free < 0 || v.Free < free) {
			free = v.Free
		}
	}
	if free < 0 {
		return LevelOK, free
	}
	return s.level(free), free
}

// existing is a path, or the nearest folder above it that is there.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}

// sampleEvery is how often the volumes are looked at while they are not full.
const sampleEvery = time.Minute

// pressure remembers the level.
type pressure struct {
	mu    sync.Mutex
	level Level
	until time.Time
}

// errFull says that the archive pauses without space.
var errFull = errors.New("the volume is nearly full")

// level is the level as it was sampled last: a minute ago at most, or for this call
// once it is below warning.
func (a *Archiver) level() Level {
	p := &a.pressure
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.level == LevelOK && now.Before(p.until) {
		return p.level
	}
	level, free := a.Space.Level(a.Store.Path(), a.Dir)
	if level != p.level && (level != LevelOK || p.level != "") {
		a.Log.Warn("the space on the volume has changed", "level", level, "free_mib", free>>20)
	}
	p.level, p.until = level, now.Add(sampleEvery)
	return level
}

// paused is the error while the volume is too full to archive anything.
func (a *Archiver) paused() error {
	if level := a.level(); level == LevelCritical || level == LevelFatal {
		return fault.Wrap(errFull, fault.Unavailable, CodeFull, "the archive pauses: its volume is nearly full").
			WithHint("free space; the archive then catches up by itself")
	}
	return nil
}
