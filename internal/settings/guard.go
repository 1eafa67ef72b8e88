package settings

import (
	"cmp"
	"time"

	"cairn/internal/guard"
)

const (
	usualLease     = 15 * time.Minute
	minLease       = 60 // seconds
	usualGuardTime = 15 * time.Millisecond
)

// ModeOrDefault returns guard.mode.
func (g *Guard) ModeOrDefault() string { return cmp.Or(Value(g.Mode), guard.Warn) }

// LeaseTime returns how long an edit reserves its file.
func (g *Guard) LeaseTime() time.Duration { return cmp.Or(Seconds(g.Lease), usualLease) }

// TimeFor returns the CPU limit for checking the reservations of a number of files. It grows
// slightly for patches with thousands of files.
func (g *Guard) TimeFor(files int) time.Duration {
	limit := cmp.Or(time.Duration(Value(g.MaxMS))*time.Millisecond, usualGuardTime)
	return limit + time.Duration(min(files, 4600))*10*time.Microsecond
}
