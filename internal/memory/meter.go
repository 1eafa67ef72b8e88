package memory

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// TimingBounds are the upper ends of the buckets of a Timing, in seconds.
func TimingBounds() []float64 { return timingBounds[:] }

var timingBounds = [...]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60, 600}

// Timing is how long something took, each time.
type Timing struct {
	Buckets [len(timingBounds) + 1]uint64 // of which each holds only its own
	Sum     float64                       // seconds
}

// Count is how often.
func (t Timing) Count() (n uint64) {
	for _, b := range t.Buckets {
		n += b
	}
	return n
}

func (t *Timing) add(took time.Duration) {
	i, _ := slices.BinarySearch(timingBounds[:], took.Seconds())
	t.Buckets[i]++
	t.Sum += took.Seconds()
}

// timings is a Timing that any number of goroutines may add to.
type timings struct {
	buckets [len(timingBounds) + 1]atomic.Uint64
	sum     atomic.Int64 // nanoseconds
}

func (t *timings) add(took time.Duration) {
	i, _ := slices.BinarySearch(timingBounds[:], took.Seconds())
	t.buckets[i].Add(1)
	t.sum.Add(int64(took))
}

// read is what was added until now. What is added meanwhile may be in it or not.
func (t *timings) read() (out Timing) {
	for i := range t.buckets {
		out.Buckets[i] = t.buckets[i].Load()
	}
	out.Sum = time.Duration(t.sum.Load()).Seconds()
	return out
}

// Measured is what a service has done since it was made (metrics, memories §14).
type Measured struct {
	Acks          Timing            // writes of entries and contexts, from the call to the answer that they are on the disk
	InflightReads Timing            // of the two inflight tools
	Searches      map[string]Timing // by mode told
	Fallbacks     map[string]uint64 // searches by words although ModeAuto would have liked vectors, by reason
	Syncs         Timing            // of entries, from their writing to their commitment by the hub
	Purged        uint64            // rows
}

// measures is a Measured that is counted on.
type measures struct {
	mu sync.Mutex
	Measured
}

func (m *measures) do(fn func(m *Measured)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn(&m.Measured)
}

// Measured reports what the service has done.
func (b *Service) Measured() Measured {
	b.measures.mu.Lock()
	defer b.measures.mu.Unlock()
	out := b.measures.Measured
	out.Searches, out.Fallbacks = map[string]Timing{}, map[string]uint64{}
	for mode, t := range b.measures.Searches {
		out.Searches[mode] = t
	}
	for reason, n := range b.measures.Fallbacks {
		out.Fallbacks[reason] = n
	}
	return out
}

// acked counts a write that began at a time and has ended with an error or none.
func (b *Service) acked(began time.Time, err error) {
	if err == nil {
		b.measures.do(func(m *Measured) { m.Acks.add(time.Since(began)) })
	}
}

func (b *Service) inflightRead(began time.Time, err error) {
	if err == nil {
		b.measures.do(func(m *Measured) { m.InflightReads.add(time.Since(began)) })
	}
}

func (b *Service) searched(began time.Time, mode string, err error) {
	if err != nil {
		return
	}
	b.measures.do(func(m *Measured) {
		if m.Searches == nil {
			m.Searches = map[string]Timing{}
		}
		t := m.Searches[mode]
		t.add(time.Since(began))
		m.Searches[mode] = t
	})
}

// fellBack counts a search that words alone answer, because of reason.
func (b *Service) fellBack(reason string) {
	b.measures.do(func(m *Measured) {
		if m.Fallbacks == nil {
			m.Fallbacks = map[string]uint64{}
		}
		m.Fallbacks[reason]++
	})
}
