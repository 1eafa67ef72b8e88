package memory

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/measure"
)

// timingBounds are the upper ends of the ranges in which the service counts durations.
var timingBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 10 * time.Second, time.Minute, 10 * time.Minute,
}

// newTimings returns a histogram by timingBounds.
func newTimings() *measure.Histogram { return &measure.Histogram{Bounds: timingBounds[:]} }

// Measured is what a service has done since it was created (metrics, memories §14).
type Measured struct {
	Acks          measure.Distribution            // writes of entries and contexts, from the call until they are on the disk
	InflightReads measure.Distribution            // of the two inflight tools
	Searches      map[string]measure.Distribution // by mode
	Fallbacks     map[string]uint64               // searches by words although ModeAuto prefers vectors, by reason
	Syncs         measure.Distribution            // of entries, from their writing to their confirmation by the hub
	Purged        uint64                          // rows
}

// measures counts what Measured reports.
type measures struct {
	acks, inflightReads, syncs *measure.Histogram
	purged                     atomic.Uint64

	mu        sync.Mutex
	searches  map[string]*measure.Histogram
	fallbacks map[string]uint64
}

func newMeasures() *measures {
	return &measures{
		acks: newTimings(), inflightReads: newTimings(), syncs: newTimings(),
		searches: map[string]*measure.Histogram{}, fallbacks: map[string]uint64{},
	}
}

// Measured reports what the service has done.
func (b *Service) Measured() Measured {
	m := b.measures
	m.mu.Lock()
	defer m.mu.Unlock()
	out := Measured{
		Acks: m.acks.Read(), InflightReads: m.inflightReads.Read(), Syncs: m.syncs.Read(), Purged: m.purged.Load(),
		Searches: map[string]measure.Distribution{}, Fallbacks: maps.Clone(m.fallbacks),
	}
	for mode, h := range m.searches {
		out.Searches[mode] = h.Read()
	}
	return out
}

// acked counts a write that began at a time, unless it has failed.
func (b *Service) acked(began time.Time, err error) {
	if err == nil {
		b.measures.acks.Add(time.Since(began))
	}
}

func (b *Service) inflightRead(began time.Time, err error) {
	if err == nil {
		b.measures.inflightReads.Add(time.Since(began))
	}
}

func (b *Service) searched(began time.Time, mode string, err error) {
	if err != nil {
		return
	}
	m := b.measures
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.searches[mode] == nil {
		m.searches[mode] = newTimings()
	}
	m.searches[mode].Add(time.Since(began))
}

// fellBack counts a search that uses words only, for a reason.
func (b *Service) fellBack(reason string) {
	b.measures.mu.Lock()
	defer b.measures.mu.Unlock()
	b.measures.fallbacks[reason]++
}
