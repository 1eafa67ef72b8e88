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
	guardPatience  = 100 * time.Millisecond // longer by the clock, on a machine with too much to do
)

func (g *guardSettings) mode() string { return cmp.Or(value(g.Mode), guard.Warn) }

func (g *guardSettings) lease() time.Duration { return cmp.Or(lasting(g.Lease), usualLease) }

// time is how much CPU time looking for the reservations of some files may take:
// a little more for a patch of thousands.
func (g *guardSettings) time(files int) time.Duration {
	limit := cmp.Or(time.Duration(value(g.MaxMS))*time.Millisecond, usualGuardTime)
	return limit + time.Duration(min(files, 4600))*10*time.Microsecond
}
