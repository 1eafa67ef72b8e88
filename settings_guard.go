package cairn

import (
	"cmp"
	"time"
)

// The modes of the guard at edit time (mail §8).
const (
	guardOff   = "off"
	guardWarn  = "warn"
	guardBlock = "block"
)

const (
	usualLease     = 15 * time.Minute
	minLease       = 60 // seconds
	usualGuardTime = 4 * time.Millisecond
)

func (g *guardSettings) mode() string { return cmp.Or(value(g.Mode), guardWarn) }

func (g *guardSettings) lease() time.Duration { return cmp.Or(lasting(g.Lease), usualLease) }

// time is how long looking for the reservations of some files may take: a little
// more for a patch of thousands.
func (g *guardSettings) time(files int) time.Duration {
	limit := cmp.Or(time.Duration(value(g.MaxMS))*time.Millisecond, usualGuardTime)
	return limit + time.Duration(min(files, 4600))*10*time.Microsecond
}
