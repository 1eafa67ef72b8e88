package cairn

import (
	"context"
	"fmt"
	"os"
	"time"

	"cairn/internal/followers"
	"cairn/internal/observation/browse"
	"cairn/internal/store/disk"
)

// httpSettings are the keys of http (memories §14, mail §12).
type httpSettings struct {
	RatePerMinute *int `toml:"rate_limit_per_minute"` // 0 for no limit
	HeaderS       *int `toml:"header_s"`
	ReadS         *int `toml:"read_s"`
	WriteS        *int `toml:"write_s"`
	IdleS         *int `toml:"idle_s"`
	StopS         *int `toml:"stop_s"`
}

// dbSettings are the keys of db: the number of a server's read connections.
type dbSettings struct {
	ReadersMin *int `toml:"readers_min"` // minimum number that stays open
	ReadersMax *int `toml:"readers_max"` // maximum number at the same time
}

// The number of a server's read connections (mail §11).
const (
	minReaders     = 25
	defaultReaders = 100
	maxReaders     = 1000 // upper limit of the setting
)

func (s *dbSettings) check() *keyError {
	if low, high := s.ReadersMin, s.ReadersMax; low != nil && *low > s.maxOpen() {
		why := fmt.Sprintf("must be from 1 to %d", s.maxOpen())
		if high != nil {
			why += ", which is db.readers_max"
		}
		return &keyError{"db.readers_min", why}
	}
	return nil
}

// maxOpen returns the maximum number of read connections.
func (s *dbSettings) maxOpen() int {
	if s.ReadersMax != nil {
		return *s.ReadersMax
	}
	return defaultReaders
}

// minOpen returns the number of read connections that stay open when idle.
func (s *dbSettings) minOpen() int {
	if s.ReadersMin != nil {
		return *s.ReadersMin
	}
	return min(minReaders, s.maxOpen())
}

// HTTP contains the settings of the HTTP server. Zero means the server's default.
type HTTP struct {
	RatePerMinute                   int
	Header, Read, Write, Idle, Stop time.Duration
}

// HTTP returns the settings of the HTTP server.
func (c *Cairn) HTTP() HTTP {
	seconds := func(n *int) time.Duration {
		if n == nil {
			return 0
		}
		return time.Duration(*n) * time.Second
	}
	s := c.settings.work.HTTP
	h := HTTP{Header: seconds(s.HeaderS), Read: seconds(s.ReadS), Write: seconds(s.WriteS), Idle: seconds(s.IdleS), Stop: seconds(s.StopS)}
	if s.RatePerMinute != nil {
		h.RatePerMinute = *s.RatePerMinute
	}
	return h
}

// Now returns the time of the store's clock.
func (c *Cairn) Now() time.Time {
	if c.config.Clock == nil {
		return time.Now()
	}
	return c.config.Clock()
}

// Dir returns the data directory.
func (c *Cairn) Dir() string { return c.config.Dir }

// Schema reads the version of the store's schema, which shows that the store is readable.
// It returns 0 without a store.
func (c *Cairn) Schema(ctx context.Context) (int, error) {
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return 0, err
	}
	return s.Schema(ctx)
}

// StoreMetrics are metrics of the store. Without a store all are zero.
type StoreMetrics struct {
	Counts    browse.Stats
	Bytes     map[disk.Role]int64
	Followers followers.Account
}

// StoreMetrics counts the content of the store and the lag of its followers. It takes tens
// of milliseconds for a million rows.
func (c *Cairn) StoreMetrics(ctx context.Context) (StoreMetrics, error) {
	m := StoreMetrics{Bytes: map[disk.Role]int64{}}
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return m, err
	}
	for role, suffix := range map[disk.Role]string{disk.Database: "", disk.Log: "-wal"} {
		if info, err := os.Stat(c.config.DB + suffix); err == nil {
			m.Bytes[role] = info.Size()
		}
	}
	if m.Counts, err = browse.CountStored(ctx, c.observationsOver(s)); err != nil {
		return m, err
	}
	m.Followers, err = c.Followers(ctx)
	return m, err
}
