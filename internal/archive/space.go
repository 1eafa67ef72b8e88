package archive

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cairn/internal/archive/repository"
	"cairn/internal/fault"
	"cairn/internal/store/disk"
)

// Level is the level of disk pressure (mail §10.4).
type Level string

// The levels, from most to least free space.
const (
	LevelOK       Level = "ok"
	LevelWarning  Level = "warning"
	LevelCritical Level = "critical" // the archive pauses
	LevelFatal    Level = "fatal"    // and new data must be refused
)

// Space contains the minimum free space for each level on the volumes of the store and of
// the archive, in MiB. 0 means the defaults 500, 100 and 10; negative values disable a
// level.
type Space struct{ Warning, Critical, Fatal int64 }

func (s *Space) defaults() {
	def(&s.Warning, 500)
	def(&s.Critical, 100)
	def(&s.Fatal, 10)
}

// level returns the level for a number of free bytes.
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

// Level returns the level of the fullest volume of some paths, which may not exist yet.
// It is LevelOK if the free space is unknown. free is in bytes, -1 if unknown.
func (s Space) Level(paths ...string) (level Level, free int64) {
	s.defaults()
	free = -1
	for _, path := range paths {
		v, err := disk.VolumeOf(existing(path))
		if err == nil && (free < 0 || v.Free < free) {
			free = v.Free
		}
	}
	if free < 0 {
		return LevelOK, free
	}
	return s.level(free), free
}

// existing returns a path, or its nearest existing ancestor.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}

// sampleEvery is the interval of checks while the volumes are not full.
const sampleEvery = time.Minute

// pressure caches the level.
type pressure struct {
	mu    sync.Mutex
	level Level
	until time.Time
}

// errFull means that the archive pauses for lack of space.
var errFull = errors.New("the volume is nearly full")

// level returns the last sampled level, at most a minute old. Once the level is not OK,
// every call samples it.
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
		a.Log.Warn("the free space of the volume has changed", "level", level, "free_mib", free>>20)
	}
	p.level, p.until = level, now.Add(sampleEvery)
	return level
}

// paused returns an error while the volume is too full for archiving.
func (a *Archiver) paused() error {
	if level := a.level(); level == LevelCritical || level == LevelFatal {
		return fault.Wrap(errFull, fault.Unavailable, repository.CodeFull, "the archive pauses: its volume is nearly full").
			WithHint("free space; the archive then catches up automatically")
	}
	return nil
}
