package cairn

import (
	"cmp"
	"time"

	"cairn/internal/guard"
)

const (
	usualLease     = 15 * time.Minute
	minLease       = 60 // seconds
	usualGuardTime = 15 * time.Millisecond
	guardWallLimit = 100 * time.Millisecond // by the clock, for a machine under load
)

func (g *guardSettings) mode() string { return cmp.Or(value(g.Mode), guard.Warn) }

func (g *guardSettings) lease() time.Duration { return cmp.Or(secondsOf(g.Lease), usualLease) }

// time returns the CPU limit for checking the reservations of a number of files. It grows
// slightly for patches with thousands of files.
func (g *guardSettings) time(files int) time.Duration {
	limit := cmp.Or(time.Duration(value(g.MaxMS))*time.Millisecond, usualGuardTime)
	return limit + time.Duration(min(files, 4600))*10*time.Microsecond
}
