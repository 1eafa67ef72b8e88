package memory

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/measure"
	"cairn/internal/memory/shards"
)

// Measured is what a service has done since it was created (metrics, memories §14).
type Measured struct {
	Acks          measure.Distribution            // writes of entries and contexts, from the call until they are on the disk
	InflightReads measure.Distribution            // of the two inflight tools
	Searches      map[string]measure.Distribution // by mode
	Fallbacks     map[string]uint64               // searches by words although ModeAuto prefers vectors, by reason
	Syncs         measure.Distribution            // of entries, from their writing to their confirmation by the hub
	Purged        uint64                          // rows
}

// Measures counts what Measured reports.
type Measures struct {
	acks, inflightReads, Syncs *measure.Histogram
	Purged                     atomic.Uint64

	mu        sync.Mutex
	searches  map[string]*measure.Histogram
	fallbacks map[string]uint64
}

func newMeasures() *Measures {
	return &Measures{
		acks: shards.Timings(), inflightReads: shards.Timings(), Syncs: shards.Timings(),
		searches: map[string]*measure.Histogram{}, fallbacks: map[string]uint64{},
	}
}

// Measured reports what the service has done.
func (b *Kernel) Measured() Measured {
	m := b.Measures
	m.mu.Lock()
	defer m.mu.Unlock()
	out := Measured{
		Acks: m.acks.Read(), InflightReads: m.inflightReads.Read(), Syncs: m.Syncs.Read(), Purged: m.Purged.Load(),
		Searches: map[string]measure.Distribution{}, Fallbacks: maps.Clone(m.fallbacks),
	}
	for mode, h := range m.searches {
		out.Searches[mode] = h.Read()
	}
	return out
}

// Acked counts a write that began at a time, unless it has failed.
func (b *Kernel) Acked(began time.Time, err error) {
	if err == nil {
		b.Measures.acks.Add(time.Since(began))
	}
}

// InflightRead counts a read of inflight entries, unless it has failed.
func (b *Kernel) InflightRead(began time.Time, err error) {
	if err == nil {
		b.Measures.inflightReads.Add(time.Since(began))
	}
}

// Searched counts a search of a mode, unless it has failed.
func (b *Kernel) Searched(began time.Time, mode string, err error) {
	if err != nil {
		return
	}
	m := b.Measures
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.searches[mode] == nil {
		m.searches[mode] = shards.Timings()
	}
	m.searches[mode].Add(time.Since(began))
}

// FellBack counts a search that uses words only, for a reason.
func (b *Kernel) FellBack(reason string) {
	b.Measures.mu.Lock()
	defer b.Measures.mu.Unlock()
	b.Measures.fallbacks[reason]++
}
