package cairn

import (
	"context"
	"fmt"
	"os"
	"time"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// httpSettings are the keys of http (memories §14, mail §12); the user's file only.
type httpSettings struct {
	RatePerMinute *int `toml:"rate_limit_per_minute"` // 0 for any rate
	HeaderS       *int `toml:"header_s"`
	ReadS         *int `toml:"read_s"`
	WriteS        *int `toml:"write_s"`
	IdleS         *int `toml:"idle_s"`
	StopS         *int `toml:"stop_s"`
}

// What http may be set to.
const (
	maxRatePerMinute = 1_000_000
	maxHTTPSeconds   = 3600
)

func (s *httpSettings) validate(path string) error {
	if n := s.RatePerMinute; n != nil && (*n < 0 || *n > maxRatePerMinute) {
		return settingsFault(nil, path, "http.rate_limit_per_minute",
			fmt.Sprintf("http.rate_limit_per_minute must be from 0, for no limit, to %d", maxRatePerMinute))
	}
	for _, limit := range []struct {
		key   string
		value *int
	}{{"http.header_s", s.HeaderS}, {"http.read_s", s.ReadS}, {"http.write_s", s.WriteS}, {"http.idle_s", s.IdleS}, {"http.stop_s", s.StopS}} {
		if limit.value != nil && (*limit.value < 1 || *limit.value > maxHTTPSeconds) {
			return settingsFault(nil, path, limit.key, fmt.Sprintf("%s must be from 1 to %d seconds", limit.key, maxHTTPSeconds))
		}
	}
	return nil
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
	s := c.settings.http
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

// Measures are numbers about the store. Without one all are zero.
type Measures struct {
	Counts    observation.Stats
	Bytes     map[store.FileRole]int64
	Followers []store.Progress
	SetAside  map[string]int // by follower
}

// Measures counts what the store holds and how far its followers are. It takes tens
// of milliseconds for a million rows.
func (c *Cairn) Measures(ctx context.Context) (Measures, error) {
	m := Measures{Bytes: map[store.FileRole]int64{}, SetAside: map[string]int{}}
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return m, err
	}
	for role, suffix := range map[store.FileRole]string{store.Database: "", store.Log: "-wal"} {
		if info, err := os.Stat(c.config.DB + suffix); err == nil {
			m.Bytes[role] = info.Size()
		}
	}
	if m.Counts, err = c.over(s).Stats(ctx); err != nil {
		return m, err
	}
	if m.Followers, err = s.Followers(ctx); err != nil {
		return m, err
	}
	aside, err := s.SetAside(ctx)
	for _, a := range aside {
		m.SetAside[a.Follower]++
	}
	return m, err
}
