package cairn

import (
	"context"
	"os"
	"time"

	"cairn/internal/followers"
	"cairn/internal/observation/browse"
	"cairn/internal/store/disk"
)

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
	s := c.Settings.Work.HTTP
	h := HTTP{Header: seconds(s.HeaderS), Read: seconds(s.ReadS), Write: seconds(s.WriteS), Idle: seconds(s.IdleS), Stop: seconds(s.StopS)}
	if s.RatePerMinute != nil {
		h.RatePerMinute = *s.RatePerMinute
	}
	return h
}

// Schema reads the version of the store's schema, which shows that the store is readable.
// It returns 0 without a store.
func (c *Cairn) Schema(ctx context.Context) (int, error) {
	s, err := c.Opened(ctx, false)
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
	s, err := c.Opened(ctx, false)
	if err != nil || s == nil {
		return m, err
	}
	for role, suffix := range map[disk.Role]string{disk.Database: "", disk.Log: "-wal"} {
		if info, err := os.Stat(c.Config.DB + suffix); err == nil {
			m.Bytes[role] = info.Size()
		}
	}
	if m.Counts, err = browse.CountStored(ctx, c.ObservationsOver(s)); err != nil {
		return m, err
	}
	m.Followers, err = c.Followers(ctx)
	return m, err
}
