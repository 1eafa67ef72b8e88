package settings

import (
	"fmt"

	"cairn/internal/archive"
)

// HTTP are the keys of http (memories §14, mail §12).
type HTTP struct {
	RatePerMinute *int `toml:"rate_limit_per_minute"` // 0 for no limit
	HeaderS       *int `toml:"header_s"`
	ReadS         *int `toml:"read_s"`
	WriteS        *int `toml:"write_s"`
	IdleS         *int `toml:"idle_s"`
	StopS         *int `toml:"stop_s"`
}

// DB are the keys of db: the number of a server's read connections.
type DB struct {
	ReadersMin *int `toml:"readers_min"` // minimum number that stays open
	ReadersMax *int `toml:"readers_max"` // maximum number at the same time
}

// The number of a server's read connections (mail §11).
const (
	minReaders     = 25
	defaultReaders = 100
	maxReaders     = 1000 // upper limit of the setting
)

func (s *DB) check() *KeyError {
	if low, high := s.ReadersMin, s.ReadersMax; low != nil && *low > s.MaxOpen() {
		why := fmt.Sprintf("must be from 1 to %d", s.MaxOpen())
		if high != nil {
			why += ", which is db.readers_max"
		}
		return &KeyError{"db.readers_min", why}
	}
	return nil
}

// MaxOpen returns the maximum number of read connections.
func (s *DB) MaxOpen() int {
	if s.ReadersMax != nil {
		return *s.ReadersMax
	}
	return defaultReaders
}

// MinOpen returns the number of read connections that stay open when idle.
func (s *DB) MinOpen() int {
	if s.ReadersMin != nil {
		return *s.ReadersMin
	}
	return min(minReaders, s.MaxOpen())
}

// Archive are the keys of archive.
type Archive struct {
	WindowMS         *int  `toml:"window_ms"`
	Shards           *int  `toml:"shards"`
	ProbeMessages    *int  `toml:"probe_messages"`
	StaleLockSeconds *int  `toml:"stale_lock_seconds"`
	OfEncrypted      *bool `toml:"of_encrypted"` // also archive an encrypted store, in plain text
}

// Disk are the keys of disk, in MiB.
type Disk struct {
	WarningMB  *int `toml:"warning_mb"`
	CriticalMB *int `toml:"critical_mb"`
	FatalMB    *int `toml:"fatal_mb"`
}

// Space returns the required free disk space. A limit of 0 is never reached.
func (s *Disk) Space() archive.Space {
	number := func(v *int) int64 {
		switch {
		case v == nil:
			return 0 // the default
		case *v == 0:
			return -1
		}
		return int64(*v)
	}
	return archive.Space{Warning: number(s.WarningMB), Critical: number(s.CriticalMB), Fatal: number(s.FatalMB)}
}

// Memory are the keys of memory (memories §14), only in the user's file. The
// environment overrides them. A nil field means the default.
type Memory struct {
	Shards          *int    `toml:"shards"`
	QueueLen        *int    `toml:"queue_len"`
	EnqueueTimeout  *int    `toml:"enqueue_timeout_ms"`
	MaxContextChars *int    `toml:"max_context_chars"`
	DeleteTimeout   *int    `toml:"delete_timeout_ms"`
	Redact          *bool   `toml:"redact"`
	RetentionDays   *int    `toml:"retention_days"`
	RetentionMB     *int    `toml:"retention_mb"`
	PurgeChunk      *int    `toml:"purge_chunk"`
	PromptsDir      *string `toml:"prompts_dir"`

	SearchAlpha *float64 `toml:"search_alpha"` // the share of vectors in a hybrid score
	EmbedURL    *string  `toml:"embed_url"`
	EmbedModel  *string  `toml:"embed_model"`
}

// Hub are a device's keys of hub (memories §14).
type Hub struct {
	URL         *string `toml:"url"` // replaces the address that was used to join
	Batch       *int    `toml:"batch"`
	LeaseS      *int    `toml:"lease_s"`
	TimeoutS    *int    `toml:"timeout_s"`
	OnPermanent *string `toml:"on_permanent"` // after a refused change, later changes of its memory: skip, halt
}
