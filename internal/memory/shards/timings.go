package shards

import (
	"time"

	"cairn/internal/measure"
)

// timingBounds are the upper ends of the ranges in which the service counts durations.
var timingBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 10 * time.Second, time.Minute, 10 * time.Minute,
}

// Timings returns a histogram by timingBounds.
func Timings() *measure.Histogram { return &measure.Histogram{Bounds: timingBounds[:]} }
