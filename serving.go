package cairn

import (
	"context"
	"fmt"
	"os"
	"time"

	"cairn/internal/followers"
	"cairn/internal/observation/browse"
	"cairn/internal/store"
)

// httpSettings are the keys of http (memories §14, mail §12).
type httpSettings struct {
	RatePerMinute *int `toml:"rate_limit_per_minute"` // 0 for any rate
	HeaderS       *int `toml:"header_s"`
	ReadS         *int `toml:"read_s"`
	WriteS        *int `toml:"write_s"`
	IdleS         *int `toml:"idle_s"`
	StopS         *int `toml:"stop_s"`
}

// dbSettings are the keys of db: how many connections a server reads with.
type dbSettings struct {
	ReadersMin *int `toml:"readers_min"` // at the same time, unless callers wait for long; so many stay open
	ReadersMax *int `toml:"readers_max"` // at the same time
}

// How many connections a server reads with (mail §11).
const (
	minReaders     = 25
	defaultReaders = 100
	maxReaders     = 1000 // that may be asked for
)

func (s *dbSettings) check() *keyError {
	if low, high := s.ReadersMin, s.ReadersMax; low != nil && *low > s.most() {
		why := fmt.Sprintf("must be from 1 to %d", s.most())
		if high != nil {
			why += ", which is db.readers_max"
		}
		return &keyError{"db.readers_min", why}
	}
	return nil
}

// most is how many connections may read at the same time.
func (s *dbSettings) most() int {
	if s.ReadersMax != nil {
		return *s.ReadersMax
	}
	return defaultReaders
}

// kept is how many of them stay open while nobody reads.
func (s *dbSettings) kept() int {
	if s.ReadersMin != nil {
		return *s.ReadersMin
	}
	return min(minReaders, s.most())
}

// HTTP is how the settings want the HTTP server to be; a zero stands for the
// server's own value.
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

// Now is the time by the clock of the store.
func (c *Cairn) Now() time.Time {
	if c.config.Clock == nil {
		return time.Now()
	}
	return c.config.Clock()
}

// Dir is the data directory.
func (c *Cairn) Dir() string { return c.config.Dir }

// Schema reads the number of the store's schema, which shows that it can be read; 0
// while there is no store.
func (c *Cairn) Schema(ctx context.Context) (int, error) {
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return 0, err
	}
	return s.Schema(ctx)
}

// StoreMetrics are numbers about the store. Without one all are zero.
type StoreMetrics struct {
	Counts    browse.Stats
	Bytes     map[store.FileRole]int64
	Followers followers.Account
}

// StoreMetrics counts what the store holds and how far its followers are. It takes tens
// of milliseconds for a million rows.
func (c *Cairn) Measures(ctx context.Context) (StoreMetrics, error) {
	m := StoreMetrics{Bytes: map[store.FileRole]int64{}}
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return m, err
	}
	for role, suffix := range map[store.FileRole]string{store.Database: "", store.Log: "-wal"} {
		if info, err := os.Stat(c.config.DB + suffix); err == nil {
			m.Bytes[role] = info.Size()
		}
	}
	if m.Counts, err = browse.CountStored(ctx, c.over(s)); err != nil {
		return m, err
	}
	m.Followers, err = c.Followers(ctx)
	return m, err
}
